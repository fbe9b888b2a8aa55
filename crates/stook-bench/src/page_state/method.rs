//! Making the kernel forget what it holds of files in memory.

use std::path::Path;

use stook_sys::{Context, FileKind, Forget, Storage};

use crate::error::BenchError;
use crate::remedy::Remedy;

/// How the kernel is made to forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Everything that the machine holds: data, names and inodes.
    DropCaches,
    /// The data of the files that are known, one after the other. Names and inodes stay.
    Fadvise,
}

impl Method {
    /// Returns the first one that this user may use.
    pub fn available() -> Self {
        if stook_sys::may_drop_caches() {
            Self::DropCaches
        } else {
            Self::Fadvise
        }
    }

    /// Returns its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::DropCaches => "drop_caches",
            Self::Fadvise => "fadvise",
        }
    }
}

/// Makes the whole machine cold: the kernel forgets data, names and inodes of all files.
///
/// # Errors
/// [`BenchError::Refused`] where this user may not.
pub fn drop_all() -> Result<(), BenchError> {
    drop_caches(Forget::Everything)
}

pub(super) fn drop_caches(what: Forget) -> Result<(), BenchError> {
    stook_sys::drop_caches(what).map_err(|error| {
        let what = format!("the caches cannot be dropped: {error}");
        BenchError::refused_with(Remedy::DropCachesAsRoot, what)
    })
}

/// Drops the pages of these files, those of disks among them.
///
/// # Errors
/// [`BenchError::Sys`] if the kernel refuses.
pub(crate) fn drop_pages_of(paths: &[impl AsRef<Path>]) -> Result<(), BenchError> {
    for path in paths
        .iter()
        .map(AsRef::as_ref)
        .filter(|path| is_droppable(path))
    {
        // What is gone has no pages.
        if let Ok(file) = stook_sys::open_file(path) {
            stook_sys::drop_pages(&file).context("drop the pages of", path)?;
        }
    }
    Ok(())
}

/// Directories have no pages of their own, and opening what a process serves would change the state of its caches.
pub(super) fn is_droppable(path: &Path) -> bool {
    let storage = stook_sys::storage(path);
    matches!(storage, Ok(Storage::Disk | Storage::Overlay))
        && stook_sys::look_at(path).is_ok_and(|metadata| metadata.kind == FileKind::File)
}
