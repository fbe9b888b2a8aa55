//! Opening a directory that is to be emptied, and what else may be found in its place.

use std::io;

use stook_sys::{Directory, is_mount_point, is_no_directory};
use stook_timers::scope;

use super::options::RemoveObserver;
use super::remover::{Location, Outcome, Remover};
use super::state::{RemoveNode, State, reach, written_path};
use crate::Reason;
use crate::traverse::Waiting;

impl<O: RemoveObserver> Remover<'_, O> {
    /// Opens a directory; None if the name was removed without opening it.
    pub(super) fn open(
        &self,
        waiting: &Waiting<'_, Directory, State>,
    ) -> io::Result<Option<Directory>> {
        let Waiting {
            node: parent,
            name,
            attempts,
        } = waiting;
        let mut opened = self.open_below(parent, name);
        if self.options.force_chmod && !self.options.is_dry_run && is_denied(&opened) {
            opened = reach(parent)
                .and_then(|directory| directory.add_mode_of_directory(name, 0o700))
                .and_then(|()| self.open_below(parent, name));
        }
        match opened {
            Ok(directory) => Ok(Some(directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if parent.is_root() && *attempts == 0 {
                    self.observer.missing(&written_path(parent, name));
                }
                Ok(None)
            }
            Err(error) if is_no_directory(&error) => self.remove_other(parent, name),
            Err(error) if is_mount_point(&error) => Err(Reason::IsMountedBelow.into()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.remove_closed(parent, name, error)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn open_below(&self, parent: &RemoveNode<'_>, name: &[u8]) -> io::Result<Directory> {
        let _scope = scope!("open");
        let (base, path) = parent.nearest(name);
        // What the user named is the tree, whatever is mounted there.
        if self.options.one_file_system && !parent.is_root() {
            base.open_on_same_mount(&path)
        } else {
            base.open_beneath(&path)
        }
    }

    /// What the listing called a directory is none, or not any more; or it is a tree that is none.
    fn remove_other(&self, parent: &RemoveNode<'_>, name: &[u8]) -> io::Result<Option<Directory>> {
        if parent.is_root() && self.options.keep_root {
            return Err(Reason::KeptRootNotADirectory.into());
        }
        let location = Location {
            directory: &*reach(parent)?,
            node: parent,
            path: b"",
        };
        match self.remove_name(&location, name, None)? {
            Outcome::Removed => self.count(1, 0),
            Outcome::AlreadyGone => {}
            Outcome::Kept => parent.data.keep(),
            // Replaced twice within a moment: another process may go on doing that.
            Outcome::IsDirectory => return Err(Reason::ChangesAllTheTime.into()),
        }
        Ok(None)
    }

    /// An empty directory can be removed unread. Any other needs permissions.
    fn remove_closed(
        &self,
        parent: &RemoveNode<'_>,
        name: &[u8],
        error: io::Error,
    ) -> io::Result<Option<Directory>> {
        let is_kept = self.policy.is_some() || (parent.is_root() && self.options.keep_root);
        if self.options.is_dry_run || is_kept {
            return Err(error);
        }
        let removed = reach(parent).and_then(|directory| directory.remove_directory(name));
        if removed.is_err() {
            return Err(error);
        }
        self.count(1, 1);
        Ok(None)
    }
}

fn is_denied<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
}
