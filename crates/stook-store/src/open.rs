//! From what a user writes to a store.

use std::sync::Arc;

use crate::directory::DirectoryStore;
use crate::error::{StoreCause, StoreError};
use crate::globus::{EndpointError, EndpointId, GlobusStore};
use crate::hsi::HsiStore;
use crate::http::HttpStore;
use crate::location::Location;
use crate::s3::S3Store;
use crate::settings::Settings;
use crate::ssh::SshStore;
use crate::store::Store;

impl Location {
    /// Returns the store at this place. Nothing is asked of it.
    ///
    /// # Errors
    /// `Login` if there are no credentials for it; `Url` if it cannot be reached that way; `Endpoint`.
    pub fn open(&self, settings: &Settings) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Directory(path) => Arc::new(DirectoryStore::new(path)),
            Self::Http(url) => Arc::new(HttpStore::new(url, settings)?),
            Self::S3 { bucket, prefix } => Arc::new(S3Store::new(bucket, prefix, settings)?),
            Self::Hpss(path) => {
                let mut options = settings.hsi.clone();
                options.program.interruption = settings.interruption.clone();
                Arc::new(HsiStore::new(path, options))
            }
            Self::Ssh {
                user,
                host,
                port,
                path,
            } => {
                let mut options = settings.ssh.clone();
                options.program.interruption = settings.interruption.clone();
                Arc::new(SshStore::new(user.as_deref(), host, *port, path, options)?)
            }
            Self::Globus { endpoint, path } => {
                let failed = |error: EndpointError| {
                    StoreError::new("open", "", &self.to_string(), StoreCause::from(error))
                };
                let options = settings.globus.clone();
                let no_local = || failed(EndpointError::NoLocal("unknown".to_owned()));
                let mut options = options.ok_or_else(no_local)?;
                options.program.interruption = settings.interruption.clone();
                let endpoint = EndpointId::parse(endpoint).map_err(failed)?;
                Arc::new(GlobusStore::new(endpoint, path, options))
            }
        })
    }
}
