//! A directory of a Globus endpoint, through the program `globus`.
//!
//! ```text
//!   put   task: local endpoint ──checksums──> .NAME.LABEL.stook-partial ──> size ──> rename
//!   get   one task for all files ──checksums──> a folder beside the targets ──> size ──> rename
//! ```
//! A task belongs to the service: it goes on when this program ends. A put that was interrupted finds its task again. The
//! service compares checksums of both ends, but does not tell them. It does not replace a file by a rename, so the old
//! one steps aside first: see `docs/stores.md` for the moment between.

mod answer;
mod endpoint;
mod get;
mod put;
mod task;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use stook_sys::{absolute, remove_file, write_file};

use crate::error::{StoreCause, StoreError};
use crate::local_file::require_name;
use crate::program::{Input, ProgramOptions};
use crate::store::{Abilities, Download, Proof, Store, Stored, StoredFile, Upload};
use crate::transfer::{Silent, TransferObserver};
use answer::word;
pub use endpoint::{EndpointError, EndpointId, local_endpoint};
use task::Transfer;

/// The name of the file that shows whether anything can be written.
const PROBE: &str = ".stook-probe";
/// How the name ends under which a file is transferred.
const PARTIAL: &str = ".stook-partial";
/// How the name ends of a file that is being replaced.
const PREVIOUS: &str = ".stook-previous";

/// How Globus is reached.
#[derive(Debug, Clone)]
pub struct GlobusOptions {
    /// The program. Its patience is that for one call, not for a task.
    pub program: ProgramOptions,
    /// The endpoint of this machine, which knows files by the paths that they have here.
    pub local: EndpointId,
    /// A folder of this machine that its endpoint can read and write.
    pub scratch: PathBuf,
    /// How often a task is looked at, once it has taken some seconds.
    pub poll_every: Duration,
    /// How long a task may stand still.
    pub patience: Duration,
}

impl GlobusOptions {
    /// Returns the usual ones.
    pub fn new(local: EndpointId, scratch: impl Into<PathBuf>) -> Self {
        let program = ProgramOptions {
            patience: Duration::from_secs(300),
            ..ProgramOptions::new("globus")
        };
        Self {
            program,
            local,
            scratch: scratch.into(),
            poll_every: Duration::from_secs(10),
            patience: Duration::from_secs(6 * 3600),
        }
    }
}

/// A directory of an endpoint.
#[derive(Debug)]
pub struct GlobusStore {
    endpoint: EndpointId,
    path: String,
    name: String,
    options: GlobusOptions,
}

impl GlobusStore {
    /// Returns the store in a directory of an endpoint; it is looked at when something is asked of it.
    pub fn new(endpoint: EndpointId, path: &str, options: GlobusOptions) -> Self {
        let path = format!("/{}", path.trim_matches('/'));
        Self {
            name: format!("globus://{endpoint}{path}"),
            endpoint,
            path,
            options,
        }
    }

    fn failed(&self, operation: &'static str, file: &str) -> impl Fn(StoreCause) -> StoreError {
        let (file, store) = (file.to_owned(), self.name.clone());
        move |cause| StoreError::new(operation, &file, &store, cause)
    }

    fn call(
        &self,
        arguments: &[&str],
        input: Input,
        observer: &dyn TransferObserver,
    ) -> Result<Value, StoreCause> {
        answer::call(&self.options.program, arguments, input, observer)
    }

    /// Returns the path of a file.
    fn remote(&self, name: &str) -> Result<String, StoreCause> {
        let path = format!("{}/{name}", self.path.trim_end_matches('/'));
        word(&path).map(|_| path)
    }

    fn at(&self, path: &str) -> String {
        format!("{}:{path}", self.endpoint)
    }

    /// Returns all files that are there, whatever they are for; None if the directory is not there.
    fn listing(
        &self,
        observer: &dyn TransferObserver,
    ) -> Result<Option<Vec<StoredFile>>, StoreCause> {
        word(&self.path)?;
        let arguments = ["ls", &self.at(&self.path), "--all"];
        let answer = match self.call(&arguments, Input::Nothing, observer) {
            Err(StoreCause::NotFound) => return Ok(None),
            answer => answer?,
        };
        let entries = answer["DATA"].as_array().into_iter().flatten();
        let files = entries.filter(|entry| entry["type"] == "file");
        let files = files.filter_map(|entry| {
            Some(StoredFile {
                name: entry["name"].as_str()?.to_owned(),
                size: entry["size"].as_u64()?,
                version: None,
            })
        });
        Ok(Some(files.collect()))
    }

    /// Renames a file. It is not interrupted, as it takes no time.
    fn rename(&self, from: &str, to: &str) -> Result<(), StoreCause> {
        let arguments = ["rename", self.endpoint.as_str(), from, to];
        self.call(&arguments, Input::Nothing, &Silent).map(|_| ())
    }

    /// Deletes one file; one that is not there is no error.
    fn remove(&self, path: &str) -> Result<(), StoreCause> {
        let at = self.at(path);
        let arguments = ["delete", &at, "--ignore-missing", "--notify", "off"];
        let interruption = &self.options.program.interruption;
        let answer = self.call(&arguments, Input::Nothing, interruption)?;
        match answer["task_id"].as_str() {
            Some(id) => self.wait(id, interruption),
            None => Err(answer::said("no task".to_owned())),
        }
    }

    /// Transfers a small file and deletes it; brings back what a run that was killed left aside.
    fn prepare_path(&self) -> Result<(), StoreCause> {
        let interruption = &self.options.program.interruption;
        let (probe, local) = (self.remote(PROBE)?, self.options.scratch.join(PROBE));
        write_file(&local, b"stook")?;
        let transferred = local_path(&local).and_then(|local| {
            let transfer = Transfer {
                source: self.options.local.as_str(),
                destination: self.endpoint.as_str(),
                batch: format!("{} {}\n", word(&local)?, word(&probe)?),
                label: "stook probe",
            };
            self.transfer(&transfer, interruption)
        });
        let removed = remove_file(&local);
        transferred?;
        removed?;
        self.remove(&probe)?;
        let files = self.listing(interruption)?.unwrap_or_default();
        for file in &files {
            let name = file
                .name
                .strip_suffix(PREVIOUS)
                .and_then(|name| name.strip_prefix('.'));
            let Some(name) = name else {
                continue;
            };
            if !files.iter().any(|file| file.name == name) {
                self.rename(&self.remote(&file.name)?, &self.remote(name)?)?;
            }
        }
        Ok(())
    }

    fn list_files(&self) -> Result<Vec<StoredFile>, StoreCause> {
        let files = self.listing(&self.options.program.interruption)?;
        let mut files = files.unwrap_or_default();
        files.retain(|file| {
            let ends = [PARTIAL, PREVIOUS]
                .iter()
                .any(|suffix| file.name.ends_with(suffix));
            file.name != PROBE && !ends
        });
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }

    fn stat_file(&self, name: &str) -> Result<Option<StoredFile>, StoreCause> {
        require_name(name)?;
        self.remote(name)?;
        let files = self.listing(&self.options.program.interruption)?;
        let files = files.unwrap_or_default();
        Ok(files.into_iter().find(|file| file.name == name))
    }
}

impl Store for GlobusStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            gives: Proof::HashedInTransfer,
            minimum: Proof::HashedInTransfer,
            is_conditional: false,
            is_atomic: true,
            has_ranges: false,
            is_writable: true,
        }
    }

    fn prepare(&self) -> Result<(), StoreError> {
        self.prepare_path().map_err(self.failed("write to", ""))
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
        let proof = verified.map_err(self.failed("verify", file.name))?;
        let version = None;
        Ok(Stored { proof, version })
    }

    fn get(
        &self,
        downloads: &[Download<'_>],
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreError> {
        self.get_all(downloads, observer, arrived)
    }

    fn read_range(
        &self,
        file: &StoredFile,
        _offset: u64,
        _buffer: &mut [u8],
    ) -> Result<usize, StoreError> {
        Err(self.failed("read", &file.name)(StoreCause::NoRanges))
    }

    fn list(&self) -> Result<Vec<StoredFile>, StoreError> {
        self.list_files().map_err(self.failed("list", ""))
    }

    fn stat(&self, name: &str) -> Result<Option<StoredFile>, StoreError> {
        self.stat_file(name).map_err(self.failed("look at", name))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let delete = || {
            require_name(name)?;
            self.remove(&self.remote(name)?)
        };
        delete().map_err(self.failed("delete", name))
    }
}

/// Returns how the endpoint of this machine knows a file, which need not be there: by its path without links.
fn local_path(path: &Path) -> Result<String, StoreCause> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => absolute(parent)?,
        _ => absolute(Path::new("."))?,
    };
    let path = folder.join(path.file_name().unwrap_or_default());
    let text = path.into_os_string().into_string();
    text.map_err(|_not_utf8| StoreCause::Character(char::REPLACEMENT_CHARACTER))
}
