//! The endpoints of the double of `globus`: identifiers, and the folders behind them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::doubles::session::{change_json, read_json};

use super::{Failure, Result};

const NAME: &str = "endpoints.json";

/// All endpoints.
pub(super) struct Endpoints(BTreeMap<String, PathBuf>);

impl Endpoints {
    pub(super) fn new(folder: &Path) -> Self {
        Self(read_json(&folder.join(NAME)))
    }

    pub(super) fn add(folder: &Path, id: &str, root: &Path) {
        change_json(folder, NAME, |endpoints: &mut BTreeMap<String, PathBuf>| {
            endpoints.insert(id.to_owned(), root.to_owned());
        });
    }

    /// Returns where a path of an endpoint lies; `~` is a folder of its own.
    pub(super) fn path(&self, id: &str, path: &str) -> Result<PathBuf> {
        let root = self.0.get(id).ok_or_else(|| {
            Failure::Service(404, "EndpointNotFound", format!("No such endpoint '{id}'"))
        })?;
        let path = path.trim_start_matches('/');
        let path = match path.strip_prefix('~') {
            Some(below) => format!("home/{}", below.trim_start_matches('/')),
            None => path.to_owned(),
        };
        Ok(root.join(path))
    }

    /// Takes `ENDPOINT:PATH` apart.
    pub(super) fn split(word: &str) -> Result<(&str, &str)> {
        let split = word.split_once(':');
        split.ok_or_else(|| Failure::Usage(format!("{word}: a path is missing")))
    }

    /// Returns true if an endpoint is this machine itself.
    pub(super) fn is_local(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|root| root == Path::new("/"))
    }
}
