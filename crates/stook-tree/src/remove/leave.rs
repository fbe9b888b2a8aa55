//! Leaving a directory: the last one to do so removes it.

use std::io;
use std::sync::Arc;

use stook_pool::Tasks;
use stook_timers::scope;

use super::RemoveObserver;
use super::empty::{MOST_NAMES, Remover, Task, Waiting};
use super::entry::explained;
use super::node::Node;
use crate::names::Names;

/// How often a directory is emptied that was not empty after all: some file systems leave out names when much
/// changes, and others may be writing.
const MOST_ATTEMPTS: u32 = 8;

impl<O: RemoveObserver> Remover<'_, O> {
    /// Leaves a directory; the last one to do so removes it, and leaves the one above.
    pub(super) fn leave<'r>(&self, node: Arc<Node<'r>>, tasks: &Tasks<Task<'r>>) {
        let mut leaving = Some(node);
        while let Some(node) = leaving.and_then(Arc::into_inner) {
            let (stays, attempts) = (node.stays(), node.attempts);
            let (parent, name) = node.close();
            if let Some(parent) = &parent {
                if stays {
                    parent.keep();
                } else {
                    self.remove_directory(parent, name, attempts, tasks);
                }
            }
            leaving = parent;
        }
    }

    fn remove_directory<'r>(
        &self,
        parent: &Arc<Node<'r>>,
        name: Box<[u8]>,
        attempts: u32,
        tasks: &Tasks<Task<'r>>,
    ) {
        let _scope = scope!("rmdir");
        if parent.is_holding() && self.options.keep_root {
            return;
        }
        if self
            .judge
            .is_some_and(|judge| !judge.releases(&parent.path_in_tree(&name)))
        {
            return parent.keep();
        }
        if self.options.is_dry_run {
            let removable = parent
                .reach()
                .and_then(|directory| self.require_removable(&directory, &name));
            if let Err(error) = removable {
                return self.fail(parent, &name, "remove", explained(error));
            }
            self.observer.would_remove(&parent.path(&name));
            return self.count(1, 1);
        }
        let removed = parent.reach().and_then(|directory| {
            self.permitted(&directory, parent, || directory.remove_directory(&name))
        });
        match removed {
            Ok(()) => self.count(1, 1),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if is_worth_another_try(&error) && attempts < MOST_ATTEMPTS => {
                tasks.extend([Task::Directory(Waiting {
                    parent: Arc::clone(parent),
                    name,
                    attempts: attempts + 1,
                })]);
            }
            Err(error) => {
                let source = self.why_not_empty(parent, &name, error);
                self.fail(parent, &name, "remove", source);
            }
        }
    }

    /// Says who may be to blame for a directory that is never empty.
    fn why_not_empty(&self, parent: &Node<'_>, name: &[u8], error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::DirectoryNotEmpty {
            return explained(error);
        }
        let left = self.open_below(parent, name).and_then(|directory| {
            Names::with(|names| {
                names.read_up_to(&directory, MOST_NAMES)?;
                let mut left = names.all.iter().map(|each| each.place.of(&names.bytes));
                Ok(left.any(|name| name.starts_with(b".nfs")))
            })
        });
        io::Error::other(if left.unwrap_or(false) {
            "it is not empty: a `.nfs` file in it belongs to a process that has the file open"
        } else {
            "it is not empty: another process may be writing there"
        })
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
