//! Puts an index beside its file: at any moment, and after a crash, there is the old one or the new one, whole.
//!
//! ZODB removes the old index before it renames the new one, and syncs neither.

use std::ffi::{OsStr, OsString};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_sys::{
    Context, Metadata, TemporaryNames, create_new_file, exists, install, look_at, metadata,
    remove_file, set_mode, set_owner,
};

use super::bytes::encode_index;
use crate::error::ZodbError;
use crate::index::Index;

/// Returns the path of the index of a database: `Data.fs.index` for `Data.fs`.
pub fn index_path(data: &Path) -> PathBuf {
    beside(data, ".index")
}

pub(super) fn beside(data: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(data);
    path.push(ending);
    path.into()
}

/// Saves the index of the database at `data`, durably, in the place of the one that is there; returns its bytes.
///
/// The new file has owner and mode of the one before, or else of the database. An unprivileged user cannot chown; not an
/// error. The caller holds the [`crate::DatabaseLock`], or is the database.
///
/// # Errors
/// [`ZodbError::Sys`] with "look at", "create", "write", "rename" or "sync"; nothing of the new index stays then.
pub fn save_index(data: &Path, index: &Index, position: u64) -> Result<u64, ZodbError> {
    let _scope = stook_timers::scope!("write");
    let path = index_path(data);
    let like = match exists(&path)? {
        Some(old) => old,
        None => look_at(data)?,
    };
    let partial = temporary_path(&path)?;
    let written = write_like(&partial, &like, index, position).and_then(|len| {
        install(&partial, &path)?;
        Ok(len)
    });
    written.inspect_err(|_| {
        // The error to tell is the one of writing.
        let _ = remove_file(&partial);
    })
}

fn temporary_path(path: &Path) -> Result<PathBuf, ZodbError> {
    let folder = folder_of(path);
    let inode = look_at(folder)?.identity().1;
    let name = TemporaryNames::new("partial").next(inode);
    Ok(folder.join(OsStr::from_bytes(&name)))
}

fn write_like(
    partial: &Path,
    like: &Metadata,
    index: &Index,
    position: u64,
) -> Result<u64, ZodbError> {
    let file = create_new_file(partial)?;
    // The owner first: the kernel takes set-id bits away with it.
    let _ = set_owner(&file, like.uid, like.gid);
    set_mode(&file, like.mode & 0o666).context("set the mode of", partial)?;
    let mut out = BufWriter::with_capacity(256 << 10, file);
    let written = encode_index(index, position, &mut out).and_then(|()| out.flush());
    written
        .and_then(|()| out.get_ref().sync_all())
        .context("write", partial)?;
    Ok(metadata(out.get_ref()).context("look at", partial)?.size)
}

pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
