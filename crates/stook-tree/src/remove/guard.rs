//! What is never removed, even for root: mistakes that cannot be undone.

use std::io;
use std::path::Path;

use stook_sys::{Context, Directory, FileId, FileKind, Links, SysError};

use super::tree::{Tree, names_directory};
use crate::Reason;
use crate::archive::{INDEX, is_archive, is_volume_name};
use crate::path::join;

/// Decides which trees may be removed.
#[derive(Debug)]
pub struct Guard {
    /// The root, None if it may be removed.
    root: Option<FileId>,
    /// The working directory and all above it.
    working: Vec<FileId>,
    refuses_mounts: bool,
    refuses_archives: bool,
}

impl Guard {
    /// Returns a guard of the root, if wanted, the working directory and all above it, mount points, if wanted, and
    /// archives.
    ///
    /// # Errors
    /// If these directories cannot be looked at.
    pub fn new(preserve_root: bool, refuses_mounts: bool) -> Result<Self, SysError> {
        let handle = |path: &str| Directory::open_handle(Path::new(path));
        let working = handle(".")?.identities_upwards();
        let root = handle("/")?.own_metadata().context("look at", "/")?;
        Ok(Self {
            root: preserve_root.then(|| root.identity()),
            working: working.context("look at what is above", ".")?,
            refuses_mounts,
            refuses_archives: true,
        })
    }

    /// Returns the guard, with archives admitted if that is wanted.
    #[must_use]
    pub fn with_archives(self, is_wanted: bool) -> Self {
        Self {
            refuses_archives: !is_wanted,
            ..self
        }
    }

    /// Returns the tree at a path.
    ///
    /// # Errors
    /// The operation "remove" with the path: it is protected, it ends in a slash and is no directory, or what leads to it cannot be looked at. A tree
    /// that is not there is no error.
    pub fn admit(&self, path: &Path) -> Result<Tree, SysError> {
        let tree = Tree::at(path).context("remove", path)?;
        let holder = match Directory::open_handle(&tree.holder) {
            Err(error) if error.is_not_found() => return Ok(tree),
            other => other?,
        };
        let metadata = match holder.metadata(&tree.name, Links::Refuse) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(tree),
            other => other.context("look at", path)?,
        };
        if names_directory(path) && metadata.kind != FileKind::Directory {
            // POSIX resolves a slash at the end as a directory, and a link to one is not followed here.
            let error = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(error).context("remove", path);
        }
        let refused = |why: Reason| Err(io::Error::from(why)).context("remove", path);
        if self.root == Some(metadata.identity()) {
            return refused(Reason::IsRoot);
        }
        if self.root.is_some() && self.working.contains(&metadata.identity()) {
            return refused(Reason::HoldsWorkingDirectory);
        }
        let is_mount =
            self.refuses_mounts && holder.is_mount_root(&tree.name).context("look at", path)?;
        if is_mount {
            return refused(Reason::IsMountPoint);
        }
        if self.refuses_archives {
            refuse_archive(&holder, &tree.name, metadata.kind).context("remove", path)?;
        }
        Ok(tree)
    }
}

/// Refuses an archive, and the index and the volumes of one.
fn refuse_archive(holder: &Directory, name: &[u8], kind: FileKind) -> io::Result<()> {
    if kind != FileKind::Directory {
        let is_part = (name == INDEX || is_volume_name(name)) && is_archive(holder)?;
        return refuse_if(is_part, Reason::IsPartOfArchive);
    }
    let is_refused = match holder.metadata(&join(name, INDEX), Links::Refuse) {
        // A directory that may not be searched cannot be emptied either, and that is reported instead.
        Err(_) => false,
        // What has the name of an index and cannot be looked at may well be one.
        Ok(_) => holder
            .open_beneath(name)
            .and_then(|tree| is_archive(&tree))
            .unwrap_or(true),
    };
    refuse_if(is_refused, Reason::IsArchive)
}

fn refuse_if(is_refused: bool, why: Reason) -> io::Result<()> {
    if is_refused { Err(why.into()) } else { Ok(()) }
}
