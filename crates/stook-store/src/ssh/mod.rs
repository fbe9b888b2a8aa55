//! A directory of another machine, through the program `ssh`.
//!
//! ```text
//!   put    ssh: cat >temporary, sync, MD5 of what is on the disk ──> the same? ──> ssh: rename, under the condition
//!   get    ssh: cat ──> local file            state before and after must be one
//!   range  ssh: tail, head                    of the state that is known
//! ```
//! The other end needs a POSIX shell and the usual small programs. A file gets its name only after its size and MD5
//! were compared: a transfer that breaks off looks like the end of the file to the other end.
//! The version of a file is its state: size, time, inode, time of the last change.

mod scripts;
mod session;

pub use session::SshOptions;

use std::fs::File;
use std::io::Seek;
use std::time::Duration;

use stook_sys::{TemporaryNames, look_at, open_file};

use crate::error::{Difference, StoreCause, StoreError};
use crate::local_file::{NewFile, expected_md5, require_name};
use crate::program::{Input, Output};
use crate::store::{
    Abilities, Condition, Download, FileVersion, Proof, Store, Stored, StoredFile, Upload,
};
use crate::transfer::{Silent, TransferObserver, get_each};
use session::{Session, require_printable};

/// How names end of files that are not whole yet.
const PARTIAL: &str = "partial";

/// What the names of our own files begin with.
const OWN: &str = ".stook";

/// Most bytes that one run of `ssh` reads of a range.
const MOST_RANGE_BYTES: usize = 32 << 20;

/// How long it may take to remove a file that did not become whole.
const TIDY_TIME: Duration = Duration::from_millis(700);

/// A directory of another machine.
#[derive(Debug)]
pub struct SshStore {
    name: String,
    path: String,
    session: Session,
    temporary: TemporaryNames,
}

impl SshStore {
    /// Returns the store in a directory of a machine; nothing is asked of it.
    ///
    /// # Errors
    /// `Url` if user or host would be taken for an option; `Character` if the path has a control character.
    pub fn new(
        user: Option<&str>,
        host: &str,
        port: Option<u16>,
        path: &str,
        options: SshOptions,
    ) -> Result<Self, StoreError> {
        let destination = match user {
            Some(user) => format!("{user}@{host}"),
            None => host.to_owned(),
        };
        let name = match port {
            Some(port) => format!("ssh://{destination}:{port}{path}"),
            None => format!("ssh://{destination}{path}"),
        };
        let failed = |cause| StoreError::new("open", "", &name, cause);
        if destination.starts_with('-') || host.starts_with('-') {
            return Err(failed(StoreCause::Url));
        }
        require_printable(path).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            session: Session {
                options,
                destination: destination.replace(['[', ']'], ""),
                port,
            },
            name,
            temporary: TemporaryNames::new(PARTIAL),
        })
    }

    fn failed(&self, operation: &'static str, file: &str) -> impl Fn(StoreCause) -> StoreError {
        let (file, store) = (file.to_owned(), self.name.clone());
        move |cause| StoreError::new(operation, &file, &store, cause)
    }

    /// Runs a script in the directory.
    fn run(
        &self,
        script: &str,
        arguments: &[&str],
        observer: &dyn TransferObserver,
    ) -> Result<Output, StoreCause> {
        let mut all = vec![self.path.as_str()];
        all.extend(arguments);
        let nothing = &mut || false;
        self.session
            .run(script, &all, Input::Nothing, observer, nothing)
    }

    fn temporary_name(&self) -> Result<String, StoreCause> {
        let name = String::from_utf8(self.temporary.next(0));
        name.map_err(|_bytes| StoreCause::Name)
    }

    fn stat_file(&self, name: &str) -> Result<Option<StoredFile>, StoreCause> {
        require(name)?;
        match self.run(scripts::STAT, &[name], &Silent) {
            Ok(output) => Ok(Some(stored_file(name, line(&output.stdout)?)?)),
            Err(StoreCause::NotFound) => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    fn put_file(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreCause> {
        require(upload.name)?;
        require_size(upload.size, look_at(upload.path)?.size)?;
        let temporary = self.temporary_name()?;
        let put = self.send(upload, &temporary, observer).and_then(|proof| {
            let condition = match upload.condition {
                Condition::Always => "always",
                Condition::New => "new",
                Condition::Unchanged(version) => &version.0,
            };
            let names = [&*temporary, upload.name, condition];
            let output = self.run(scripts::INSTALL, &names, observer)?;
            let version = stored_file(upload.name, line(&output.stdout)?)?.version;
            Ok(Stored { proof, version })
        });
        put.inspect_err(|_| self.tidy(&temporary))
    }

    /// Sends a file under a temporary name, and compares what lies there.
    fn send(
        &self,
        upload: &Upload<'_>,
        temporary: &str,
        observer: &dyn TransferObserver,
    ) -> Result<Proof, StoreCause> {
        let file = open_file(upload.path)?;
        let input = Input::File(file.try_clone().map_err(StoreCause::Io)?);
        let mut sent = 0;
        let mut has_moved = || {
            // The program reads on from the same place.
            let position = (&file).stream_position().unwrap_or(sent);
            let moved = position.saturating_sub(sent);
            observer.transferred(moved);
            sent = position.max(sent);
            moved > 0
        };
        let arguments = [self.path.as_str(), temporary];
        let script = scripts::SEND;
        let output = self
            .session
            .run(script, &arguments, input, observer, &mut has_moved)?;
        has_moved();
        let found = hashed(&output.stdout)?;
        require_hashed(&found, upload.size, expected_md5(upload, observer)?)
    }

    fn tidy(&self, temporary: &str) {
        let mut options = self.session.options.clone();
        options.program.interruption = crate::program::Interruption::default();
        options.program.patience = TIDY_TIME;
        let session = Session {
            options,
            destination: self.session.destination.clone(),
            port: self.session.port,
        };
        let arguments = [self.path.as_str(), temporary];
        // What stays is removed when the place is prepared, days later; there is a failure to report already.
        let _ = session.run(
            scripts::DELETE,
            &arguments,
            Input::Nothing,
            &Silent,
            &mut || false,
        );
    }

    fn verify_file(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreCause> {
        let found = self.stat_file(file.name)?.ok_or(StoreCause::NotFound)?;
        require_size(file.size, found.size)?;
        let mut proof = Proof::Size;
        if file.proof > Proof::Size {
            let output = self.run(scripts::HASH, &[file.name], observer)?;
            let md5 = expected_md5(file, observer)?;
            proof = require_hashed(&hashed(&output.stdout)?, file.size, md5)?;
        }
        let version = found.version;
        Ok(Stored { proof, version })
    }

    fn get_file(
        &self,
        download: &Download<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        require(download.name)?;
        NewFile::write_whole(download.path, |local| {
            let file: &File = local.file();
            let mut received = 0;
            let mut has_moved = || {
                let len = file.metadata().map_or(received, |metadata| metadata.len());
                let moved = len.saturating_sub(received);
                observer.transferred(moved);
                received = len.max(received);
                moved > 0
            };
            let arguments = [self.path.as_str(), download.name];
            let output =
                self.session
                    .run_into(file, scripts::GET, &arguments, observer, &mut has_moved)?;
            has_moved();
            let states = String::from_utf8_lossy(&output.stderr);
            let mut states = states.lines().rev();
            let (Some(after), Some(before)) = (states.next(), states.next()) else {
                return Err(odd("no state of the file"));
            };
            let size = stored_file(download.name, after)?.size;
            if before != after {
                return Err(StoreCause::Changed);
            }
            require_size(size, received)?;
            require_size(download.size.unwrap_or(size), size)
        })
    }

    fn read(&self, file: &StoredFile, offset: u64, buffer: &mut [u8]) -> Result<usize, StoreCause> {
        require(&file.name)?;
        let state = file.version.as_ref().map_or("any", |version| &version.0);
        let wanted = file.size.saturating_sub(offset).min(buffer.len() as u64);
        let mut done = 0;
        while (done as u64) < wanted {
            let first = (offset + done as u64 + 1).to_string();
            let len = (wanted - done as u64).min(MOST_RANGE_BYTES as u64);
            let arguments = [&*file.name, state, &first, &len.to_string()];
            let output = self.run(scripts::RANGE, &arguments, &Silent)?;
            require_size(len, output.stdout.len() as u64)?;
            buffer[done..done + output.stdout.len()].copy_from_slice(&output.stdout);
            done += output.stdout.len();
        }
        Ok(done)
    }

    fn list_files(&self) -> Result<Vec<StoredFile>, StoreCause> {
        let output = self.run(scripts::LIST, &[], &Silent)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let files = text.lines().filter_map(|line| {
            let (state, name) = line.split_once(" ./")?;
            let is_ours = name.starts_with(OWN);
            (!is_ours).then(|| stored_file(name, state))
        });
        let mut files = files.collect::<Result<Vec<_>, _>>()?;
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }
}

impl Drop for SshStore {
    fn drop(&mut self) {
        self.session.close();
    }
}

fn require(name: &str) -> Result<(), StoreCause> {
    require_name(name)?;
    require_printable(name)
}

fn require_size(expected: u64, found: u64) -> Result<(), StoreCause> {
    if expected != found {
        return Err(StoreCause::Different(Difference::Size { expected, found }));
    }
    Ok(())
}

/// Compares what a script found with what must be there. Without a program for MD5s only sizes can be.
fn require_hashed(
    (size, found): &(u64, Option<String>),
    expected_size: u64,
    expected: [u8; 16],
) -> Result<Proof, StoreCause> {
    require_size(expected_size, *size)?;
    let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
    match found {
        None => Ok(Proof::Size),
        Some(found) if *found == expected => Ok(Proof::ReadBack),
        Some(_) => Err(StoreCause::Different(Difference::Hash)),
    }
}

/// Reads a size and an MD5, each on a line, among empty lines.
fn hashed(output: &[u8]) -> Result<(u64, Option<String>), StoreCause> {
    let text = String::from_utf8_lossy(output);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let size = lines.next().and_then(|line| line.parse().ok());
    let md5 = lines.next().and_then(|line| line.split(' ').next());
    Ok((
        size.ok_or_else(|| odd("no size of the file"))?,
        md5.map(str::to_owned),
    ))
}

/// Reads a state: the size comes first.
fn stored_file(name: &str, state: &str) -> Result<StoredFile, StoreCause> {
    let size = state.split(' ').next().and_then(|size| size.parse().ok());
    Ok(StoredFile {
        name: name.to_owned(),
        size: size.ok_or_else(|| odd(state))?,
        version: Some(FileVersion(state.to_owned())),
    })
}

fn line(output: &[u8]) -> Result<&str, StoreCause> {
    let text = std::str::from_utf8(output).ok().map(str::trim_end);
    text.ok_or_else(|| odd("no text"))
}

fn odd(text: &str) -> StoreCause {
    StoreCause::Answer {
        program: "ssh".to_owned(),
        text: text.to_owned(),
    }
}

impl Store for SshStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            gives: Proof::ReadBack,
            minimum: Proof::ReadBack,
            is_conditional: true,
            is_atomic: true,
            has_ranges: true,
            is_writable: true,
        }
    }

    fn prepare(&self) -> Result<(), StoreError> {
        let prepare = || {
            let name = self.temporary_name()?;
            self.run(scripts::PREPARE, &[&name], &Silent).map(drop)
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
        let read = self.read(file, offset, buffer);
        read.map_err(self.failed("read", &file.name))
    }

    fn list(&self) -> Result<Vec<StoredFile>, StoreError> {
        self.list_files().map_err(self.failed("list", ""))
    }

    fn stat(&self, name: &str) -> Result<Option<StoredFile>, StoreError> {
        self.stat_file(name).map_err(self.failed("look at", name))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let delete = || {
            require(name)?;
            self.run(scripts::DELETE, &[name], &Silent).map(drop)
        };
        delete().map_err(self.failed("delete", name))
    }
}
