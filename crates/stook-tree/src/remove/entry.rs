//! One name that is no directory: whether it is removed, and how.

use std::io;

use stook_sys::{Directory, FileKind, Links, busy};

use super::options::RemoveObserver;
use super::policy::{Candidate, Decision, RemovalPolicy};
use super::remover::{Location, Outcome, Remover};
use super::state::{RemoveNode, written_path};
use crate::path::join;

impl<O: RemoveObserver> Remover<'_, O> {
    /// Removes what the name stands for, unless it is a directory.
    pub(super) fn remove_name(
        &self,
        at: &Location<'_, '_>,
        name: &[u8],
        kind: Option<FileKind>,
    ) -> io::Result<Outcome> {
        if kind == Some(FileKind::Directory) {
            return Ok(self.directory_found(at, name));
        }
        if self.policy.is_none() && !self.options.is_dry_run {
            return self.unlink(at, name);
        }
        if kind.is_none() {
            match at.directory.metadata(name, Links::Refuse) {
                Ok(metadata) if metadata.kind == FileKind::Directory => {
                    return Ok(self.directory_found(at, name));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Outcome::AlreadyGone);
                }
                Err(error) => return Err(error),
            }
        }
        match self.decision(at, name) {
            Decision::Remove | Decision::RemoveAs(_) if self.options.is_dry_run => {
                self.require_removable(at.directory, name)?;
                self.observer.would_remove(&written_path(at.node, name));
                Ok(Outcome::Removed)
            }
            Decision::Remove => self.unlink(at, name),
            Decision::RemoveAs(name) => self.unlink(at, &name),
            Decision::Keep => Ok(Outcome::Kept),
            Decision::AlreadyGone => Ok(Outcome::AlreadyGone),
        }
    }

    fn unlink(&self, at: &Location<'_, '_>, name: &[u8]) -> io::Result<Outcome> {
        let Location {
            directory, node, ..
        } = *at;
        match self.permitted(directory, node, || directory.remove(name)) {
            Ok(()) => Ok(Outcome::Removed),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Ok(Outcome::AlreadyGone),
                io::ErrorKind::IsADirectory => Ok(Outcome::IsDirectory),
                _ => Err(error),
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
        node: &RemoveNode<'_>,
        remove: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        let refused = match remove() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
            other => return other,
        };
        // What holds a tree is not part of it.
        if !self.options.force_chmod || node.is_root() {
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

    fn directory_found(&self, at: &Location<'_, '_>, name: &[u8]) -> Outcome {
        let is_kept = |policy: &dyn RemovalPolicy| policy.prunes(&join(at.path, name));
        if self.policy.is_some_and(is_kept) {
            Outcome::Kept
        } else {
            Outcome::IsDirectory
        }
    }

    fn decision(&self, at: &Location<'_, '_>, name: &[u8]) -> Decision {
        // The path of a tree that is no directory is its name.
        self.policy.map_or(Decision::Remove, |policy| {
            policy.decide(&Candidate {
                directory: at.directory,
                name,
                path: &join(at.path, name),
            })
        })
    }
}
