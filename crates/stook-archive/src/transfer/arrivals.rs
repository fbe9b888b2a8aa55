//! Where volumes arrive: a folder of this process in the folder of the archive.
//!
//! ```text
//!   .stook-....partial/stook.lock   held as long as the process lives
//!                      000000.tar   on its way, or whole and not compared yet
//! ```
//! A killed process leaves its folder. The next one that fetches sees by the lock that nobody has it, takes what is whole, and
//! removes the rest.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_index::VolumeId;
use stook_sys::{
    Context, Directory, FileKind, NameBuffer, SysError, WriterLock, create_directory, exists,
    is_temporary_name, look_at, remove_file, utc_now,
};

use crate::ArchiveError;
use crate::folder::Folder;

/// The lock of a folder.
const LOCK: &str = "stook.lock";

/// What has no lock belongs to nobody after so long without a change.
const ABANDONED_SECONDS: i64 = 3600;

/// Folders in folders: a store may have one of its own in ours.
const DEPTH: u32 = 3;

/// The folder of this process.
pub(super) struct Arrivals {
    path: PathBuf,
    lock: Option<WriterLock>,
}

impl Arrivals {
    pub(super) fn begin(folder: &Folder) -> Result<Self, ArchiveError> {
        let path = folder.temporary()?;
        create_directory(&path)?;
        let lock = WriterLock::acquire(&path.join(LOCK));
        let lock = lock.map_err(|error| ArchiveError::lock(error, &path))?;
        Ok(Self {
            path,
            lock: Some(lock),
        })
    }

    /// Returns where a volume arrives.
    pub(super) fn volume(&self, id: VolumeId) -> PathBuf {
        self.path.join(id.to_string())
    }
}

impl Drop for Arrivals {
    /// What stays is removed by the next process.
    fn drop(&mut self) {
        drop(self.lock.take());
        let _ = remove_all(&self.path, DEPTH);
    }
}

/// Removes what processes have left that do not live any more; `found` sees each volume before that, and may take it.
/// What cannot be removed takes room, and harms nothing.
pub(super) fn sweep(
    folder: &Folder,
    found: &mut dyn FnMut(VolumeId, &Path),
) -> Result<(), ArchiveError> {
    let inode = look_at(folder.path())?.identity().1;
    for name in names(folder.path())? {
        if !is_temporary_name(&name, "partial", inode) {
            continue;
        }
        let path = folder.path().join(OsStr::from_bytes(&name));
        if let Ok(Some(_lock)) = left(&path) {
            show_volumes(&path, DEPTH, found);
            let _ = remove_all(&path, DEPTH);
        }
    }
    Ok(())
}

/// What has been left by a process.
enum Left {
    Locked { _lock: WriterLock },
    Old,
}

/// Returns None if somebody may still have it.
fn left(path: &Path) -> Result<Option<Left>, SysError> {
    let Some(metadata) = exists(path)? else {
        return Ok(None);
    };
    let lock = path.join(LOCK);
    if metadata.kind == FileKind::Directory && exists(&lock)?.is_some() {
        let taken = WriterLock::acquire(&lock).ok();
        return Ok(taken.map(|lock| Left::Locked { _lock: lock }));
    }
    let oldest = utc_now().seconds - ABANDONED_SECONDS;
    Ok((metadata.mtime.seconds < oldest).then_some(Left::Old))
}

fn show_volumes(path: &Path, depth: u32, found: &mut dyn FnMut(VolumeId, &Path)) {
    for name in names(path).unwrap_or_default() {
        let path = path.join(OsStr::from_bytes(&name));
        let volume = std::str::from_utf8(&name).ok();
        match (look_at(&path), volume.and_then(|name| name.parse().ok())) {
            (Ok(it), Some(volume)) if it.kind == FileKind::File => found(volume, &path),
            (Ok(it), _) if it.kind == FileKind::Directory && depth > 0 => {
                show_volumes(&path, depth - 1, found);
            }
            _ => {}
        }
    }
}

fn remove_all(path: &Path, depth: u32) -> Result<(), SysError> {
    if look_at(path)?.kind != FileKind::Directory {
        return remove_file(path);
    }
    if depth > 0 {
        for name in names(path)? {
            remove_all(&path.join(OsStr::from_bytes(&name)), depth - 1)?;
        }
    }
    remove_empty_directory(path)
}

/// Removes a directory that holds nothing.
pub(super) fn remove_empty_directory(path: &Path) -> Result<(), SysError> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let above = Directory::open(parent.unwrap_or(Path::new(".")))?;
    let name = path.file_name().unwrap_or_default();
    above
        .remove_directory(name.as_bytes())
        .context("remove", path)
}

fn names(path: &Path) -> Result<Vec<Vec<u8>>, SysError> {
    let mut names = Vec::new();
    let directory = Directory::open(path)?;
    let listed = directory.names(&mut NameBuffer::default(), |found| {
        names.push(found.name.to_vec());
    });
    listed.context("list", path)?;
    Ok(names)
}
