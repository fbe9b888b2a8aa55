//! One name that is no directory: it is judged, and goes.

use std::io;

use stook_sys::{Directory, FileKind, Links, busy, is_not_permitted};

use super::RemoveObserver;
use super::empty::Remover;
use super::judge::{Candidate, Judge, Verdict};
use super::node::Node;
use crate::path::join;

/// A directory from which names are removed.
pub(super) struct Place<'a, 'r> {
    pub(super) directory: &'a Directory,
    pub(super) node: &'a Node<'r>,
    /// Its path below the tree, if a judge wants to know.
    pub(super) path: Vec<u8>,
}

/// What became of a name.
pub(super) enum Outcome {
    Gone,
    /// Somebody else removed it.
    WasGone,
    IsDirectory,
    Stays,
}

impl<O: RemoveObserver> Remover<'_, O> {
    /// Removes what the name stands for, unless it is a directory.
    pub(super) fn remove_name(
        &self,
        place: &Place<'_, '_>,
        name: &[u8],
        kind: Option<FileKind>,
    ) -> io::Result<Outcome> {
        if kind == Some(FileKind::Directory) {
            return Ok(self.directory_found(place, name));
        }
        if self.judge.is_none() && !self.options.is_dry_run {
            return self.unlink(place, name);
        }
        if kind.is_none() {
            match place.directory.metadata(name, Links::Refuse) {
                Ok(metadata) if metadata.kind == FileKind::Directory => {
                    return Ok(self.directory_found(place, name));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Outcome::WasGone);
                }
                Err(error) => return Err(error),
            }
        }
        match self.judged(place, name) {
            Verdict::Goes | Verdict::GoesAs(_) if self.options.is_dry_run => {
                self.require_removable(place.directory, name)
                    .map_err(explained)?;
                self.observer.would_remove(&place.node.path(name));
                Ok(Outcome::Gone)
            }
            Verdict::Goes => self.unlink(place, name),
            Verdict::GoesAs(name) => self.unlink(place, &name),
            Verdict::Stays => Ok(Outcome::Stays),
            Verdict::WasGone => Ok(Outcome::WasGone),
        }
    }

    fn unlink(&self, place: &Place<'_, '_>, name: &[u8]) -> io::Result<Outcome> {
        let Place {
            directory, node, ..
        } = *place;
        match self.permitted(directory, node, || directory.remove(name)) {
            Ok(()) => Ok(Outcome::Gone),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Ok(Outcome::WasGone),
                io::ErrorKind::IsADirectory => Ok(Outcome::IsDirectory),
                _ => Err(explained(error)),
            },
        }
    }

    /// In a dry run, fails as the removal of a mount point would; a file can be one, too.
    pub(super) fn require_removable(&self, directory: &Directory, name: &[u8]) -> io::Result<()> {
        let points = self.mount_points.as_ref();
        let may_be_one = points.is_none_or(|names| names.contains(name));
        if may_be_one && directory.is_mount_root(name)? {
            return Err(busy());
        }
        Ok(())
    }

    /// Calls `remove`, and once more if the directory refuses it, but may be given the permissions for it.
    pub(super) fn permitted(
        &self,
        directory: &Directory,
        node: &Node<'_>,
        remove: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        let refused = match remove() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
            other => return other,
        };
        // What holds a tree is not part of it.
        if !self.options.force_chmod || node.is_holding() {
            return Err(refused);
        }
        let mode = directory.own_metadata()?.mode;
        // Another remover may just have given them.
        if mode & 0o300 == 0o300 || directory.set_own_mode(mode | 0o700).is_ok() {
            remove()
        } else {
            Err(refused)
        }
    }

    fn directory_found(&self, place: &Place<'_, '_>, name: &[u8]) -> Outcome {
        let stays = |judge: &dyn Judge| judge.prunes(&join(&place.path, name));
        if self.judge.is_some_and(stays) {
            Outcome::Stays
        } else {
            Outcome::IsDirectory
        }
    }

    fn judged(&self, place: &Place<'_, '_>, name: &[u8]) -> Verdict {
        // The path of a tree that is no directory is its name.
        self.judge.map_or(Verdict::Goes, |judge| {
            judge.judge(&Candidate {
                directory: place.directory,
                name,
                path: &join(&place.path, name),
            })
        })
    }
}

/// Adds the usual reason where the system's word for it helps nobody.
pub(super) fn explained(error: io::Error) -> io::Error {
    let hint = if is_not_permitted(&error) {
        "`lsattr` tells whether it is immutable; in a sticky directory only its owner may"
    } else if error.kind() == io::ErrorKind::ResourceBusy {
        "it is in use, or something is mounted there"
    } else {
        return error;
    };
    io::Error::other(format!("{} ({hint})", stook_sys::cause(&error)))
}
