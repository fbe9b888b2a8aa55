//! ZODB's own lock: who has a database open for writing holds `flock` on `Data.fs.lock`, and has written its number there.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stook_sys::{Context, Directory, read_up_to_at, set_len, try_lock, write_all_at};

use super::save::{beside, folder_of};
use crate::error::ZodbError;

/// Held while the index of a database is written by somebody other than the database; dropping it gives the lock back.
///
/// The file stays, as ZODB's own does: to remove it would let two processes have the lock.
#[derive(Debug)]
pub struct DatabaseLock {
    _file: File,
}

impl DatabaseLock {
    /// Takes the lock of the database at `data`.
    ///
    /// # Errors
    /// [`ZodbError::Locked`] if a process has the database open; [`ZodbError::Sys`] if the lock file cannot be made.
    ///
    /// # Source
    /// `zc.lockfile.LockFile`, which writes a space, the number of the process and a line feed.
    pub fn acquire(data: &Path) -> Result<Self, ZodbError> {
        let path = beside(data, ".lock");
        let name = path.file_name().unwrap_or_default().as_bytes();
        let folder = Directory::open(folder_of(&path))?;
        let file = folder
            .open_or_create_file(name, 0o666)
            .context("open", &path)?;
        if !try_lock(&file).context("lock", &path)? {
            let holder = holder_in(&file).context("read", &path)?;
            return Err(ZodbError::Locked { path, holder });
        }
        let text = format!(" {}\n", std::process::id());
        write_all_at(&file, text.as_bytes(), 0).context("write", &path)?;
        set_len(&file, text.len() as u64).context("write", &path)?;
        Ok(Self { _file: file })
    }
}

fn holder_in(file: &File) -> std::io::Result<Option<String>> {
    let mut bytes = [0; 64];
    let len = read_up_to_at(file, &mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..len]);
    let number = text.split_whitespace().next().unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Ok(is_number.then(|| number.to_owned()))
}
