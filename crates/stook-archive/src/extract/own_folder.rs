//! The archive's own folder, which an extraction never writes into, whatever path leads there, and other archives,
//! which are no targets.
//!
//! Directories are told apart by device and inode, so that neither links nor bind mounts hide the folder. It is looked
//! through once. Index and volumes may be links; the files that they lead to are not replaced.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use stook_index::Mtime;
use stook_sys::{
    Context, Directory, FileId, FileKind, Links, NameBuffer, SysError, is_no_directory,
};
use stook_tree::{is_archive, is_in_archive, join};

use crate::ArchiveError;

/// The name of an archive's index.
pub(super) const INDEX: &[u8] = b"index.db";

/// The size and the time of a member.
pub(super) type SizeAndTime = (u64, Mtime);

pub(super) struct OwnFolder {
    /// The folder, and the directories in it.
    directories: HashSet<FileId>,
    /// What links in the folder lead to.
    linked: HashSet<FileId>,
    /// False if none of them can be in the target.
    is_in_reach: bool,
}

impl OwnFolder {
    /// Returns the folder of an archive, if the target may be written into.
    ///
    /// `index_member` returns what the extraction would write as `index.db` in the target. If that is there already, the
    /// target is an archive that an interrupted extraction brought back, and that may go on.
    ///
    /// # Errors
    /// `IntoArchive` if the target is the folder, or lies in it, or would if it were made; `IntoOtherArchive` if that
    /// holds for another archive; `Sys`.
    pub(super) fn beside(
        archive: &Path,
        into: &Path,
        index_member: impl FnOnce() -> Result<Option<SizeAndTime>, ArchiveError>,
    ) -> Result<Self, ArchiveError> {
        let folder = Directory::open(archive)?;
        let (nearest, is_in_reach) = nearest_directory(into)?;
        let upwards = nearest
            .identities_upwards()
            .context("look at what is above", into)?;
        let own = Self::of(&folder, is_in_reach).context("list", archive)?;
        let path = || into.to_owned();
        if upwards.iter().any(|&directory| own.has(directory)) {
            return Err(ArchiveError::IntoArchive { path: path() });
        }
        let look = "look at what is above";
        if is_in_archive(&nearest).context(look, into)? {
            return Err(ArchiveError::IntoOtherArchive { path: path() });
        }
        if is_archive(&nearest).context("look at", into)?
            && !(is_in_reach && is_brought_back(&nearest, index_member()?))
        {
            return Err(ArchiveError::IntoOtherArchive { path: path() });
        }
        Ok(own)
    }

    /// Returns a folder with all directories in it, as far as they can be listed.
    fn of(folder: &Directory, is_in_reach: bool) -> io::Result<Self> {
        let mut own = Self {
            directories: HashSet::from([folder.own_metadata()?.identity()]),
            linked: HashSet::new(),
            is_in_reach,
        };
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
                let is_file = name.kind == Some(FileKind::File);
                if !is_file {
                    names.push(name.name.to_vec());
                }
            })?;
            for name in names {
                if own.add(&directory, &name) {
                    waiting.push(join(&path, &name));
                }
            }
        }
        Ok(own)
    }

    /// Adds an entry of the folder; true if it is a directory that was not known.
    fn add(&mut self, directory: &Directory, name: &[u8]) -> bool {
        match directory.metadata(name, Links::Refuse) {
            Ok(entry) if entry.kind == FileKind::Directory => {
                self.directories.insert(entry.identity())
            }
            Ok(entry) if entry.kind == FileKind::Symlink => {
                let end = directory.metadata(name, Links::Follow);
                self.linked.extend(end.map(|end| end.identity()));
                false
            }
            _ => false,
        }
    }

    /// Returns true if this is a file of the archive that lies elsewhere.
    pub(super) fn links_to(&self, file: FileId) -> bool {
        self.linked.contains(&file)
    }

    /// Returns true if this is a directory of the archive.
    pub(super) fn has(&self, directory: FileId) -> bool {
        self.directories.contains(&directory)
    }

    /// Returns true if this is a directory of the archive; only asked for where that is possible.
    pub(super) fn is(&self, directory: &Directory) -> io::Result<bool> {
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

/// Returns true if the index of an archive is the one that the extraction brings back.
fn is_brought_back(archive: &Directory, member: Option<SizeAndTime>) -> bool {
    archive.metadata(INDEX, Links::Refuse).is_ok_and(|there| {
        there.kind == FileKind::File && Some((there.size, there.mtime.into())) == member
    })
}
