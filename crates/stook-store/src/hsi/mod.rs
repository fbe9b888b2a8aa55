//! HPSS, a tape archive, through the program `hsi`.
//!
//! ```text
//!   put   put -c on ──> .NAME.stook-partial ──> size and stored hash, or hashverify ──> mv ──> size and hash again
//!   get   one session: a list of all files, which hsi sorts by tape and position ──> a folder beside the targets
//! ```
//! `hsi` ends with odd exit codes and prints errors with 0, so what happened is told by sizes and hashes alone; its
//! messages only say why. `put -c on` stores a hash that the client computed while it read the local file: it proves what
//! was sent. `hashverify` reads the file from where it lies. HPSS replaces files without asking: nothing is conditional.

mod get;
mod put;
mod words;

use std::ffi::OsString;
use std::path::Path;

use crate::error::{StoreCause, StoreError};
use crate::local_file::require_name;
use crate::program::{Input, Program, ProgramOptions};
use crate::store::{Abilities, Download, Proof, Store, Stored, StoredFile, Upload};
use crate::transfer::TransferObserver;
use words::{Answer, quoted};

/// The name of the file that shows whether anything can be written.
const PROBE: &str = ".stook-probe";
/// How the name ends under which a file is put.
const PARTIAL: &str = ".stook-partial";
/// How the name ends of a file that is being replaced.
const PREVIOUS: &str = ".stook-previous";

/// How HPSS is reached.
#[derive(Debug, Clone)]
pub struct HsiOptions {
    /// The program; what it is called by is also what logs in.
    pub program: ProgramOptions,
    /// The class of service of new files; None: the one that HPSS takes.
    pub class_of_service: Option<u32>,
}

impl Default for HsiOptions {
    fn default() -> Self {
        Self {
            program: ProgramOptions::new("hsi"),
            class_of_service: None,
        }
    }
}

/// A directory of HPSS.
#[derive(Debug)]
pub struct HsiStore {
    path: String,
    name: String,
    options: HsiOptions,
}

impl HsiStore {
    /// Returns the store in a directory; without a slash in front it is below the user's home in HPSS. It is looked at
    /// when something is asked of it.
    pub fn new(path: &str, options: HsiOptions) -> Self {
        let path = match path.trim_end_matches('/') {
            "" => "/".to_owned(),
            path if path.starts_with('/') || path.starts_with("./") => path.to_owned(),
            path => format!("./{path}"),
        };
        Self {
            name: format!("hpss:{}", path.trim_start_matches("./")),
            path,
            options,
        }
    }

    fn failed(&self, operation: &'static str, file: &str) -> impl Fn(StoreCause) -> StoreError {
        let (file, store) = (file.to_owned(), self.name.clone());
        move |cause| StoreError::new(operation, &file, &store, cause)
    }

    /// Returns how messages name the program.
    fn program(&self) -> String {
        let path = &self.options.program.path;
        let name = path.file_name().unwrap_or(path.as_os_str());
        stook_sys::display_path(Path::new(name))
    }

    /// Returns the path of a file as a word.
    fn remote(&self, name: &str) -> Result<String, StoreCause> {
        quoted(&format!("{}/{name}", self.path.trim_end_matches('/')))
    }

    /// Runs requests in one session.
    fn session(
        &self,
        requests: &str,
        directory: Option<&Path>,
        observer: &dyn TransferObserver,
        has_moved: &mut dyn FnMut() -> bool,
    ) -> Result<Answer, StoreCause> {
        let options = &self.options.program;
        let own = ["-q", "-P"].map(OsString::from);
        let mut arguments = Vec::from(own);
        arguments.extend(options.arguments.iter().cloned());
        arguments.push(requests.into());
        let program = Program {
            path: &options.path,
            arguments,
            input: Input::Nothing,
            directory,
            patience: options.patience,
        };
        let output = program.run(observer, has_moved)?;
        let login = stook_sys::display_path(&options.path);
        Answer::of(&output, &self.program(), &login)
    }

    /// Runs requests that move no bytes.
    fn ask(&self, requests: &str) -> Result<Answer, StoreCause> {
        let interruption = &self.options.program.interruption;
        self.session(requests, None, interruption, &mut || false)
    }

    /// Makes and removes a file; brings back what a run that was killed left aside.
    fn prepare_path(&self) -> Result<(), StoreCause> {
        let (path, probe) = (quoted(&self.path)?, self.remote(PROBE)?);
        let requests = format!("mkdir -p {path}; touch {probe}; ls -alN {path}; rm {probe}");
        let answer = self.ask(&requests)?;
        if answer.file(PROBE).is_none() {
            return Err(self.reason(&answer, PROBE));
        }
        for file in answer.files() {
            let name = file.name.strip_suffix(PREVIOUS);
            let Some(name) = name.and_then(|name| name.strip_prefix('.')) else {
                continue;
            };
            if answer.file(name).is_none() {
                let (previous, path) = (self.remote(&file.name)?, self.remote(name)?);
                self.ask(&format!("mv {previous} {path}"))?;
            }
        }
        Ok(())
    }

    fn list_files(&self) -> Result<Vec<StoredFile>, StoreCause> {
        let answer = self.ask(&format!("ls -alN {}", quoted(&self.path)?))?;
        let mut files = answer.files();
        match answer.cause(&self.program(), &self.path) {
            Some(StoreCause::NotFound) if files.is_empty() => {}
            Some(cause) => return Err(cause),
            None => {}
        }
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
        let answer = self.ask(&format!("ls -lN {}", self.remote(name)?))?;
        match answer.file(name) {
            Some(file) => Ok(Some(file)),
            None if answer.lacks() => Ok(None),
            None => Err(self.reason(&answer, name)),
        }
    }

    fn delete_file(&self, name: &str) -> Result<(), StoreCause> {
        require_name(name)?;
        let path = self.remote(name)?;
        let answer = self.ask(&format!("rm {path}; ls -lN {path}"))?;
        match answer.file(name) {
            None if answer.lacks() => Ok(()),
            _ => Err(self.reason(&answer, name)),
        }
    }

    /// Changes the group of the directory, and of all below it if that is asked for.
    ///
    /// # Errors
    /// As [`Store::delete`].
    pub fn change_group(&self, group: &str, below: bool) -> Result<(), StoreError> {
        let change = || -> Result<(), StoreCause> {
            let (group, path) = (quoted(group)?, quoted(&self.path)?);
            let option = if below { "-R " } else { "" };
            let answer = self.ask(&format!("chgrp {option}{group} {path}"))?;
            answer.cause(&self.program(), "").map_or(Ok(()), Err)
        };
        change().map_err(self.failed("change the group of", ""))
    }

    /// Returns why an answer lacks what was asked for.
    fn reason(&self, answer: &Answer, name: &str) -> StoreCause {
        let program = self.program();
        let cause = answer.cause(&program, name);
        cause.unwrap_or_else(|| answer.unknown(&program))
    }
}

impl Store for HsiStore {
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
        self.delete_file(name).map_err(self.failed("delete", name))
    }
}
