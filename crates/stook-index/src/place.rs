//! Puts a finished database file in the place of another, or of none.
//!
//! A database is made under `NAME.partial` and renamed, so that a half-made index never stands
//! under its own name. A journal left beside the old file goes first: SQLite would apply it to
//! the new one. Nothing here guards against a second writer; the archive's lock does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stook_sys::Context;

use crate::error::IndexError;

/// Returns the name under which a database is made before it is put in place.
pub(crate) fn partial_path(path: &Path) -> PathBuf {
    with_suffix(path, ".partial")
}

/// Removes a database that is not needed any more, after the journals that belong to it: a kill in between leaves none.
pub(crate) fn remove_database(path: &Path) -> Result<(), IndexError> {
    remove_journals(path)?;
    Ok(stook_sys::remove_file(path)?)
}

/// Moves a closed, synced database to `path`, durably.
pub(crate) fn install(partial: &Path, path: &Path) -> Result<(), IndexError> {
    stook_sys::sync_directory(folder(path))?;
    remove_journals(path)?;
    Ok(stook_sys::install(partial, path)?)
}

/// Moves a closed database that was never synced to `path`, where there is none, durably.
pub(crate) fn install_new(partial: &Path, path: &Path) -> Result<(), IndexError> {
    stook_sys::open_file(partial)?
        .sync_all()
        .context("sync", partial)?;
    remove_journals(path)?;
    stook_sys::rename(partial, path)?;
    Ok(stook_sys::sync_directory(folder(path))?)
}

/// What SQLite appends to the name of a database for the files that belong to it.
pub(crate) const JOURNALS: [&str; 3] = ["-journal", "-wal", "-shm"];

pub(crate) fn remove_journals(path: &Path) -> Result<(), IndexError> {
    for suffix in JOURNALS {
        stook_sys::remove_file(&with_suffix(path, suffix))?;
    }
    Ok(())
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
