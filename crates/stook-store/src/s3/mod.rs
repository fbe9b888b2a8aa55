//! A prefix in a bucket of an object store that speaks S3.
//!
//! ```text
//!   put     one request up to 8 MiB, else parts; conditions are the server's to keep (If-None-Match, If-Match)
//!   proof   the entity tag is made of MD5s that we computed too; if it is not, the object is read back
//!   get     ranges of 8 MiB, four at a time, of one version (If-Match)
//! ```
//! The version of a file is its entity tag, without quotes. The library repeats nothing; here a request that is the same
//! when it comes twice is repeated twice, after a moment. What lasts longer is up to the caller.

mod connect;
mod download;
mod refusal;
mod service;
mod upload;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use stook_md5::Md5;
use stook_sys::TemporaryNames;

use crate::error::{Difference, StoreCause, StoreError};
use crate::local_file::{NewFile, expected_md5, require_name};
use crate::network::{Meter, Network};
use crate::s3::service::Call;
use crate::settings::Settings;
use crate::store::{
    Abilities, Condition, Download, FileVersion, Proof, Store, Stored, StoredFile, Upload,
};
use crate::transfer::{Silent, TransferObserver, get_each};

/// How long to wait before a request is sent again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];

/// An entity tag that no object has.
const NO_TAG: &str = "\"00000000000000000000000000000000\"";

/// A prefix in a bucket.
#[derive(Debug)]
pub struct S3Store {
    name: String,
    prefix: String,
    client: Arc<AmazonS3>,
    network: Network,
    /// Whether the bucket has answered like one that exists.
    is_seen: AtomicBool,
    /// Whether the server keeps conditions, as far as that is known.
    is_conditional: AtomicBool,
    probes: TemporaryNames,
}

impl S3Store {
    /// Returns the store below a prefix, which may be empty; nothing is asked of the server.
    ///
    /// # Errors
    /// `Login` if the settings have no credentials; `Io` if they make no sense.
    pub fn new(bucket: &str, prefix: &str, settings: &Settings) -> Result<Self, StoreError> {
        let prefix = prefix.trim_matches('/');
        let name = match prefix {
            "" => format!("s3://{bucket}"),
            prefix => format!("s3://{bucket}/{prefix}"),
        };
        let failed = |cause| StoreError::new("open", "", &name, cause);
        let network = Network::new(settings).map_err(failed)?;
        let client = connect::connect(bucket, &settings.s3, network.client.clone());
        Ok(Self {
            client: Arc::new(client.map_err(failed)?),
            prefix: prefix.to_owned(),
            name,
            network,
            is_seen: AtomicBool::new(false),
            is_conditional: AtomicBool::new(true),
            probes: TemporaryNames::new("probe"),
        })
    }

    fn failed(&self, operation: &'static str, file: &str) -> impl Fn(StoreCause) -> StoreError {
        let (file, store) = (file.to_owned(), self.name.clone());
        move |cause| StoreError::new(operation, &file, &store, cause)
    }

    fn path_of(&self, name: &str) -> Result<Path, StoreCause> {
        require_name(name)?;
        let path = match self.prefix.as_str() {
            "" => Path::parse(name),
            prefix => Path::parse(format!("{prefix}/{name}")),
        };
        path.map_err(|_control_character| StoreCause::Name)
    }

    async fn stat_file(&self, name: &str) -> Result<Option<StoredFile>, StoreCause> {
        let path = self.path_of(name)?;
        let options = || GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let head = again(|| Call::default().ask(self.client.get_opts(&path, options()))).await;
        match head {
            Ok(found) => {
                self.is_seen.store(true, Ordering::Relaxed);
                Ok(Some(StoredFile {
                    name: name.to_owned(),
                    size: found.meta.size,
                    version: version(found.meta.e_tag),
                }))
            }
            // An answer to HEAD has no body, so it does not say what is missing, or why it was refused.
            Err(StoreCause::NotFound) => self.require_bucket().await.map(|()| None),
            Err(cause @ (StoreCause::Denied | StoreCause::Said { .. })) => {
                self.require_bucket().await?;
                Err(cause)
            }
            Err(cause) => Err(cause),
        }
    }

    /// # Errors
    /// `NoPlace` if there is no bucket, and why else it cannot be asked.
    async fn require_bucket(&self) -> Result<(), StoreCause> {
        if !self.is_seen.load(Ordering::Relaxed) {
            let nothing = Path::from(NO_TAG);
            let list = || Call::default().ask(self.client.list_with_delimiter(Some(&nothing)));
            again(list).await?;
            self.is_seen.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Requires now what the server is asked for later, so that nothing is sent in vain.
    async fn require_condition(&self, upload: &Upload<'_>) -> Result<(), StoreCause> {
        let is_kept = match upload.condition {
            Condition::Always => true,
            Condition::New => self.stat_file(upload.name).await?.is_none(),
            Condition::Unchanged(version) => {
                let found = self.stat_file(upload.name).await?;
                found.is_some_and(|found| found.version.as_ref() == Some(version))
            }
        };
        if is_kept {
            Ok(())
        } else {
            Err(StoreCause::Exists)
        }
    }

    fn put_file(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreCause> {
        let sent = upload::send(self, upload, observer);
        let (sent, tag) = sent.map_err(|cause| match (cause, upload.condition) {
            // Nothing is there whose version it could be.
            (StoreCause::NotFound, Condition::Unchanged(_)) => StoreCause::Exists,
            (cause, _) => cause,
        })?;
        let mut stored = Stored {
            proof: Proof::HashedInTransfer,
            version: version(tag),
        };
        let is_same = stored
            .version
            .as_ref()
            .is_some_and(|found| found.0 == sent.tag);
        if upload.proof == Proof::ReadBack || !is_same {
            let file = StoredFile {
                name: upload.name.to_owned(),
                size: sent.digest.size,
                version: stored.version.clone(),
            };
            self.read_back(&file, sent.digest.md5, observer)?;
            stored.proof = Proof::ReadBack;
        }
        Ok(stored)
    }

    fn verify_file(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreCause> {
        let stat = self.stat_file(upload.name);
        let found = self.network.run(observer, &Meter::default(), stat)?;
        let found = found.ok_or(StoreCause::NotFound)?;
        if found.size != upload.size {
            let (expected, found) = (upload.size, found.size);
            return Err(StoreCause::Different(Difference::Size { expected, found }));
        }
        let mut proof = Proof::Size;
        if upload.proof > Proof::Size {
            let md5 = expected_md5(upload, observer)?;
            self.read_back(&found, md5, observer)?;
            proof = Proof::ReadBack;
        }
        let version = found.version;
        Ok(Stored { proof, version })
    }

    fn read_back(
        &self,
        file: &StoredFile,
        expected: [u8; 16],
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let mut md5 = Md5::new();
        let receive = download::receive(self, file, |piece| {
            md5.update(piece);
            Ok(())
        });
        self.network.run(observer, &Meter::default(), receive)?;
        if md5.finish() != expected {
            return Err(StoreCause::Different(Difference::Hash));
        }
        Ok(())
    }

    fn get_file(
        &self,
        wanted: &Download<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let stat = self.stat_file(wanted.name);
        let found = self.network.run(observer, &Meter::default(), stat)?;
        let file = found.ok_or(StoreCause::NotFound)?;
        if let Some(expected) = wanted.size.filter(|size| *size != file.size) {
            let found = file.size;
            return Err(StoreCause::Different(Difference::Size { expected, found }));
        }
        NewFile::write_whole(wanted.path, |local| {
            let receive = download::receive(self, &file, |piece| {
                observer.transferred(piece.len() as u64);
                Ok(local.append(piece)?)
            });
            self.network.run(observer, &Meter::default(), receive)
        })
    }

    async fn list_files(&self) -> Result<Vec<StoredFile>, StoreCause> {
        let prefix = Path::parse(&self.prefix).map_err(|_bad| StoreCause::Name)?;
        let list = || Call::default().ask(self.client.list_with_delimiter(Some(&prefix)));
        let found = again(list).await?;
        self.is_seen.store(true, Ordering::Relaxed);
        let named = found.objects.into_iter().filter_map(|object| {
            // An object may have the name of the prefix itself: a folder, in some programs.
            let name = object.location.prefix_match(&prefix)?.next()?;
            Some(StoredFile {
                name: name.as_ref().to_owned(),
                size: object.size,
                version: version(object.e_tag),
            })
        });
        let mut files: Vec<StoredFile> = named.collect();
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }

    /// Puts a small file, and finds out whether conditions are kept.
    async fn probe(&self, path: &Path) -> Result<bool, StoreCause> {
        let put = |mode: PutMode| {
            let options = PutOptions::from(mode);
            Call::default().ask(self.client.put_opts(path, "probe".into(), options))
        };
        again(|| put(PutMode::Overwrite)).await?;
        let of_nothing = UpdateVersion {
            e_tag: Some(NO_TAG.to_owned()),
            version: None,
        };
        for mode in [PutMode::Create, PutMode::Update(of_nothing)] {
            match put(mode).await {
                Err(StoreCause::Exists) => {}
                // A server that does not know the header takes the file, or says that it does not.
                Ok(_) | Err(StoreCause::Said { .. }) => return Ok(false),
                Err(cause) => return Err(cause),
            }
        }
        Ok(true)
    }

    async fn delete_file(&self, path: &Path) -> Result<(), StoreCause> {
        match again(|| Call::default().ask(self.client.delete(path))).await {
            Err(StoreCause::NotFound) => Ok(()),
            other => other,
        }
    }
}

/// Does what can be done twice, again if that may help.
async fn again<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, StoreCause>
where
    F: Future<Output = Result<T, StoreCause>>,
{
    for pause in PAUSES {
        match attempt().await {
            Err(cause) if cause.advice() == crate::error::Advice::Retry => {
                tokio::time::sleep(pause).await;
            }
            other => return other,
        }
    }
    attempt().await
}

/// Returns the version that an entity tag stands for; some servers leave out the quotes in some answers.
fn version(tag: Option<String>) -> Option<FileVersion> {
    tag.map(|tag| FileVersion(tag.trim_matches('"').to_owned()))
}

fn quoted(version: &FileVersion) -> String {
    format!("\"{}\"", version.0)
}

impl Store for S3Store {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            gives: Proof::HashedInTransfer,
            minimum: Proof::HashedInTransfer,
            is_conditional: self.is_conditional.load(Ordering::Relaxed),
            is_atomic: true,
            has_ranges: true,
            is_writable: true,
        }
    }

    /// Finds out, too, whether the server keeps conditions: until then it is taken to.
    fn prepare(&self) -> Result<(), StoreError> {
        let prepare = || {
            let name = self.probes.next(0);
            let name = std::str::from_utf8(&name).map_err(|_bytes| StoreCause::Name)?;
            let path = self.path_of(name)?;
            let probed = self
                .network
                .run(&Silent, &Meter::default(), self.probe(&path));
            let deleted = self
                .network
                .run(&Silent, &Meter::default(), self.delete_file(&path));
            self.is_conditional.store(probed?, Ordering::Relaxed);
            deleted
        };
        prepare().map_err(self.failed("write to", ""))
    }

    fn put(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let put = self.put_file(upload, observer);
        put.map_err(self.failed("put", upload.name))
    }

    fn verify(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let verified = self.verify_file(file, observer);
        verified.map_err(self.failed("verify", file.name))
    }

    fn get(
        &self,
        downloads: &[Download<'_>],
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreError> {
        get_each(downloads, arrived, |download| {
            let got = self.get_file(download, observer);
            got.map_err(self.failed("get", download.name))
        })
    }

    fn read_range(
        &self,
        file: &StoredFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StoreError> {
        if buffer.is_empty() || offset >= file.size {
            return Ok(0);
        }
        let end = file.size.min(offset.saturating_add(buffer.len() as u64));
        let read = || {
            let path = self.path_of(&file.name)?;
            let version = file.version.as_ref();
            let range = download::range(&self.client, &path, version, offset..end);
            self.network.run(&Silent, &Meter::default(), range)
        };
        let bytes = read().map_err(self.failed("read", &file.name))?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn list(&self) -> Result<Vec<StoredFile>, StoreError> {
        let list = self.list_files();
        let list = self.network.run(&Silent, &Meter::default(), list);
        list.map_err(self.failed("list", ""))
    }

    fn stat(&self, name: &str) -> Result<Option<StoredFile>, StoreError> {
        let stat = self.stat_file(name);
        let stat = self.network.run(&Silent, &Meter::default(), stat);
        stat.map_err(self.failed("look at", name))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let delete = || {
            let path = self.path_of(name)?;
            self.network
                .run(&Silent, &Meter::default(), self.delete_file(&path))
        };
        delete().map_err(self.failed("delete", name))
    }
}
