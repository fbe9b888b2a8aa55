//! Removing a directory that was emptied.

use std::io;
use std::sync::Arc;

use stook_timers::scope;

use super::options::RemoveObserver;
use super::remover::Remover;
use super::state::{RemoveNode, path_in_tree, reach, written_path};
use crate::Reason;
use crate::names::Names;
use crate::traverse::{MOST_NAMES, Task, TaskOf, Waiting};

/// How often a directory is emptied that was not empty after all: some file systems leave out names when much
/// changes, and others may be writing.
const MOST_ATTEMPTS: u32 = 8;

impl<O: RemoveObserver> Remover<'_, O> {
    /// Removes a directory that was emptied; returns the task to empty it again if it was not.
    pub(super) fn remove_directory<'t>(
        &self,
        parent: &Arc<RemoveNode<'t>>,
        name: Box<[u8]>,
        attempts: u32,
    ) -> Option<TaskOf<'t, Self>> {
        let _scope = scope!("rmdir");
        if parent.is_root() && self.options.keep_root {
            return None;
        }
        if self
            .policy
            .is_some_and(|policy| !policy.removes(&path_in_tree(parent, &name)))
        {
            parent.data.keep();
            return None;
        }
        if self.options.is_dry_run {
            let removable =
                reach(parent).and_then(|directory| self.require_removable(&directory, &name));
            if let Err(error) = removable {
                self.fail(parent, &name, "remove", error);
                return None;
            }
            self.observer.would_remove(&written_path(parent, &name));
            self.count(1, 1);
            return None;
        }
        let removed = reach(parent).and_then(|directory| {
            self.permitted(&directory, parent, || directory.remove_directory(&name))
        });
        match removed {
            Ok(()) => self.count(1, 1),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if is_worth_another_try(&error) && attempts < MOST_ATTEMPTS => {
                return Some(Task::Directory(Waiting {
                    node: Arc::clone(parent),
                    name,
                    attempts: attempts + 1,
                }));
            }
            Err(error) => {
                let source = self.why_not_empty(parent, &name, error);
                self.fail(parent, &name, "remove", source);
            }
        }
        None
    }

    /// Says who may be to blame for a directory that is never empty.
    fn why_not_empty(&self, parent: &RemoveNode<'_>, name: &[u8], error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::DirectoryNotEmpty {
            return error;
        }
        let left = self.open_below(parent, name).and_then(|directory| {
            Names::with(|names| {
                names.read_up_to(&directory, MOST_NAMES)?;
                let mut left = names.all.iter().map(|each| each.place.of(&names.bytes));
                Ok(left.any(|name| name.starts_with(b".nfs")))
            })
        });
        if left.unwrap_or(false) {
            Reason::HeldOpen.into()
        } else {
            Reason::NotEmpty.into()
        }
    }
}

fn is_worth_another_try(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
    )
}
