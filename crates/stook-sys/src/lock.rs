//! One writer per archive: a lock file that names its holder.
//!
//! The file exists only while its holder runs. `flock` tells a living holder from a dead one, also
//! across machines where the file system supports it; where it does not, the process number and the
//! host name in the file do. The lock file of a killed process is taken over silently; a file of that name
//! with another content belongs to somebody else and is left alone.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::FlockType;

use crate::directory::metadata_of;
use crate::process::{host_name, is_process_alive};
use crate::{Context, FileKind, SysError, calls, create_new_file, exists, remove_file};

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

/// Returns false if the file system refuses to say whether a file is locked: SQLite cannot lock it there, either.
///
/// Closing any descriptor of a file drops all locks of the process on it, this one's, too.
pub fn has_locks(file: &File) -> bool {
    rustix::process::fcntl_getlk(file, &rustix::process::Flock::from(FlockType::ReadLock)).is_ok()
}

/// Locks a file for as long as it is open; returns false if somebody else has it locked.
///
/// The lock belongs to this opening of the file: another one of the same process does not share it.
///
/// # Errors
/// As `flock`; `Unsupported` or the like on a file system without such locks.
pub fn try_lock(file: &File) -> std::io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
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
        let (file, is_new) = match create_new_file(path) {
            Ok(file) => (file, true),
            Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {
                match open_own(path) {
                    Ok(file) => (file, false),
                    Err(error) if error.is_not_found() => return Ok(None),
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Self::held_by(&file, path)?),
            // No locks on this file system: only the name in the file can tell.
            Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK)
                if is_new || is_stale(&file, path)? => {}
            Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK) => {
                return Err(Self::held_by(&file, path)?);
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

    /// Returns true if a lock file is at this path: one that names its holder, or one that is still empty.
    pub fn is_at(path: &Path) -> bool {
        open_own(path).is_ok()
    }

    fn held_by(file: &File, path: &Path) -> Result<LockError, SysError> {
        let (process, host) = read_holder(file, path)?;
        Ok(LockError::Held { process, host })
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Removed while still locked, so that no process can lock the old file in between.
        // A failure leaves a file that the next writer takes over.
        let _ = remove_file(&self.path);
    }
}

/// Opens a file that has the name of the lock, unless its content shows that it is something else.
fn open_own(path: &Path) -> Result<File, SysError> {
    // A link may lead to anything, and a fifo would keep the reader waiting.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file: File = calls::openat(CWD, path, flags, Mode::empty())
        .context("open", path)?
        .into();
    let is_regular = metadata_of(&file).context("look at", path)?.kind == FileKind::File;
    let mut bytes = [0; LONGEST_HOLDER + 1];
    let len = if is_regular {
        crate::read_up_to_at(&file, &mut bytes, 0).context("read", path)?
    } else {
        bytes.len()
    };
    if !is_holder_text(&bytes[..len]) {
        let why = "stook did not write this file, and needs its name";
        return Err(std::io::Error::other(why)).context("lock", path);
    }
    Ok(file)
}

/// Longest text that names a holder: the number of a process, a space, the name of a host, a line feed.
const LONGEST_HOLDER: usize = 1024;

fn is_holder_text(bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        return true;
    }
    let Some(line) = bytes.strip_suffix(b"\n") else {
        return false;
    };
    let mut words = line.splitn(2, |&byte| byte == b' ');
    let (process, host) = (words.next().unwrap_or(b""), words.next());
    let is_number = !process.is_empty() && process.iter().all(u8::is_ascii_digit);
    let is_word = |host: &[u8]| !host.iter().any(u8::is_ascii_whitespace);
    is_number && host.is_some_and(is_word) && bytes.len() <= LONGEST_HOLDER
}

fn holder_text() -> String {
    format!("{} {}\n", std::process::id(), host_name())
}

fn read_holder(file: &File, path: &Path) -> Result<(String, String), SysError> {
    let mut bytes = [0; LONGEST_HOLDER];
    let len = crate::read_up_to_at(file, &mut bytes, 0).context("read", path)?;
    let text = String::from_utf8_lossy(&bytes[..len]);
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap_or("unknown").to_owned();
    Ok((next(), next()))
}

fn is_stale(file: &File, path: &Path) -> Result<bool, SysError> {
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
    fn a_file_is_locked_once_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let directory = crate::Directory::open(folder.path()).unwrap();
        let open = || directory.open_or_create_file(b"lock", 0o600).unwrap();
        let (first, second) = (open(), open());
        assert!(try_lock(&first).unwrap());
        assert!(!try_lock(&second).unwrap());
        drop(first);
        assert!(try_lock(&second).unwrap());
        std::os::unix::fs::symlink("lock", folder.path().join("link")).unwrap();
        directory.open_or_create_file(b"link", 0o600).unwrap_err();
    }

    #[test]
    fn a_link_that_leads_nowhere_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::os::unix::fs::symlink("nowhere/at/all", &path).unwrap();
        assert!(matches!(WriterLock::acquire(&path), Err(LockError::Sys(_))));
    }

    #[test]
    fn a_file_of_another_content_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let foreign: [&[u8]; 5] = [
            b"mine",
            b"12 host",
            b"12\n",
            b"12 two words\n",
            &[b'1'; 4000],
        ];
        for content in foreign {
            std::fs::write(&path, content).unwrap();
            assert!(matches!(WriterLock::acquire(&path), Err(LockError::Sys(_))));
            assert!(!WriterLock::is_at(&path));
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
        std::fs::remove_file(&path).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, b"").unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(matches!(WriterLock::acquire(&path), Err(LockError::Sys(_))));
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"");
    }

    #[test]
    fn lock_file_of_a_killed_process_is_taken_over() {
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
