//! One writer per archive: a lock file that names its holder.
//!
//! The file exists only while its holder runs. `flock` tells a living holder from a dead one, also
//! across machines where the file system supports it; where it does not, the process number and the
//! host name in the file do. A leftover of a killed process is taken over silently.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::directory::metadata_of;
use crate::process::{host_name, is_process_alive};
use crate::{Context, SysError, create_new_file, exists, open_read_write, remove_file};

/// Held while an archive is written; dropping it removes the lock file.
#[derive(Debug)]
pub struct WriterLock {
    path: PathBuf,
    file: File,
}

/// Why the lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it.
    Held {
        /// Its process number, as it wrote it.
        process: String,
        /// The machine it runs on.
        host: String,
    },
    /// The lock file cannot be made or read.
    Sys(SysError),
}

impl From<SysError> for LockError {
    fn from(error: SysError) -> Self {
        Self::Sys(error)
    }
}

/// Holders that may come and go while the lock is being taken.
const ATTEMPTS: u32 = 100;

impl WriterLock {
    /// Takes the lock, or says who has it.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process writes, [`LockError::Sys`] if the file cannot be made.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        for _ in 0..ATTEMPTS {
            // None: the file was removed by its holder while it was being opened.
            if let Some(lock) = Self::attempt(path)? {
                return Ok(lock);
            }
        }
        // Something has the name and cannot be opened: a link that leads nowhere, say.
        let source = std::io::ErrorKind::AlreadyExists.into();
        let path = path.to_owned();
        Err(LockError::Sys(SysError {
            operation: "create",
            path,
            source,
        }))
    }

    fn attempt(path: &Path) -> Result<Option<Self>, LockError> {
        let (mut file, is_new) = match create_new_file(path) {
            Ok(file) => (file, true),
            Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {
                match open_read_write(path) {
                    Ok(file) => (file, false),
                    Err(error) if error.is_not_found() => return Ok(None),
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Self::held_by(&mut file, path)?),
            // No locks on this file system: only the name in the file can tell.
            Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK)
                if is_new || is_stale(&mut file, path)? => {}
            Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK) => {
                return Err(Self::held_by(&mut file, path)?);
            }
            Err(error) => {
                return Err(SysError {
                    operation: "lock",
                    path: path.to_owned(),
                    source: error.into(),
                }
                .into());
            }
        }
        let here = metadata_of(&file).context("look at", path)?;
        if !exists(path)?.is_some_and(|there| there.is_same_file(&here)) {
            return Ok(None);
        }
        // From here on an error removes the file again.
        let lock = Self {
            path: path.to_owned(),
            file,
        };
        lock.file.set_len(0).context("write", path)?;
        crate::write_all_at(&lock.file, holder_text().as_bytes(), 0).context("write", path)?;
        Ok(Some(lock))
    }

    fn held_by(file: &mut File, path: &Path) -> Result<LockError, SysError> {
        let (process, host) = read_holder(file, path)?;
        Ok(LockError::Held { process, host })
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Removed while still locked, so that nobody can lock the old file in between.
        // A failure leaves a file that the next writer takes over.
        let _ = remove_file(&self.path);
    }
}

fn holder_text() -> String {
    format!("{} {}\n", std::process::id(), host_name())
}

fn read_holder(file: &mut File, path: &Path) -> Result<(String, String), SysError> {
    let mut text = String::new();
    file.take(1024)
        .read_to_string(&mut text)
        .context("read", path)?;
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap_or("unknown").to_owned();
    Ok((next(), next()))
}

fn is_stale(file: &mut File, path: &Path) -> Result<bool, SysError> {
    let (process, host) = read_holder(file, path)?;
    let is_alive = process.parse().is_ok_and(is_process_alive);
    Ok(host == host_name() && !is_alive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_writer_is_told_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = WriterLock::acquire(&path).unwrap();
        let Err(LockError::Held { process, host }) = WriterLock::acquire(&path) else {
            panic!("taken twice")
        };
        assert_eq!(process, std::process::id().to_string());
        assert_eq!(host, host_name());
        drop(lock);
        assert!(!path.exists());
        WriterLock::acquire(&path).unwrap();
    }

    #[test]
    fn a_link_that_leads_nowhere_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::os::unix::fs::symlink("nowhere/at/all", &path).unwrap();
        assert!(matches!(WriterLock::acquire(&path), Err(LockError::Sys(_))));
    }

    #[test]
    fn leftover_of_a_killed_process_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "1 elsewhere\n").unwrap();
        let lock = WriterLock::acquire(&path).unwrap();
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .starts_with(&std::process::id().to_string())
        );
        drop(lock);
        assert!(!path.exists());
    }
}
