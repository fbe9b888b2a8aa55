//! The archive's own folder, which an extraction never writes into, whatever path leads there.
//!
//! Directories are told apart by device and inode, so that neither links nor bind mounts hide the folder. It is looked
//! through once, and only if the target was there before: nothing else can be in a new one.

use std::collections::HashSet;
use std::path::Path;

use stook_sys::{
    Context, Directory, FileId, FileKind, Links, NameBuffer, SysError, is_no_directory,
};
use stook_tree::join;

use crate::ArchiveError;

pub(super) struct OwnFolder {
    /// The folder, and the directories in it.
    directories: HashSet<FileId>,
    /// False if none of them can be in the target.
    is_in_reach: bool,
}

impl OwnFolder {
    /// Returns the folder of an archive, if the target may be written into.
    ///
    /// # Errors
    /// `IntoArchive` if the target is the folder, or lies in it, or would if it were made; `Sys`.
    pub(super) fn beside(archive: &Path, into: &Path) -> Result<Self, ArchiveError> {
        let folder = Directory::open(archive)?;
        let own = folder
            .own_metadata()
            .context("look at", archive)?
            .identity();
        let (nearest, is_in_reach) = nearest_directory(into)?;
        let upwards = nearest
            .identities_upwards()
            .context("look at what is above", into)?;
        let directories = if is_in_reach {
            directories_of(&folder, own).context("list", archive)?
        } else {
            HashSet::from([own])
        };
        if upwards
            .iter()
            .any(|directory| directories.contains(directory))
        {
            return Err(ArchiveError::IntoArchive {
                path: into.to_owned(),
            });
        }
        Ok(Self {
            directories,
            is_in_reach,
        })
    }

    /// Returns true if this is a directory of the archive.
    pub(super) fn has(&self, directory: FileId) -> bool {
        self.directories.contains(&directory)
    }

    /// Returns true if this is a directory of the archive; only asked for where that is possible.
    pub(super) fn is(&self, directory: &Directory) -> std::io::Result<bool> {
        Ok(self.is_in_reach && self.has(directory.own_metadata()?.identity()))
    }
}

/// Returns the target, or else the directory in which the first one would be made, and whether it is the target.
fn nearest_directory(into: &Path) -> Result<(Directory, bool), SysError> {
    let mut is_target = true;
    for path in into.ancestors() {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        match Directory::open_handle(path) {
            Err(error) if error.is_not_found() => is_target = false,
            Err(error) if is_no_directory(&error.source) => {
                return Err(error.source).context("create", into);
            }
            other => return Ok((other?, is_target)),
        }
    }
    // The path was relative and has come to its beginning.
    Ok((Directory::open_handle(Path::new("."))?, false))
}

/// Returns a folder and all directories in it, as far as they can be listed.
fn directories_of(folder: &Directory, own: FileId) -> std::io::Result<HashSet<FileId>> {
    let mut found = HashSet::from([own]);
    let mut buffer = NameBuffer::default();
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let directory = match folder.open_beneath(&path) {
            Ok(directory) => directory,
            Err(error) if path.is_empty() => return Err(error),
            Err(_) => continue,
        };
        let mut names = Vec::new();
        directory.names(&mut buffer, |name| {
            if name.kind.is_none_or(|kind| kind == FileKind::Directory) {
                names.push(name.name.to_vec());
            }
        })?;
        for name in names {
            let entry = directory.metadata(&name, Links::Refuse);
            let is_new = entry.is_ok_and(|entry| {
                entry.kind == FileKind::Directory && found.insert(entry.identity())
            });
            if is_new {
                waiting.push(join(&path, &name));
            }
        }
    }
    Ok(found)
}
