//! The way down: which directories are open, and how the next one is opened.

use std::io;
use std::sync::Arc;

use stook_sys::{Directory, FileId, Links, Metadata};
use stook_timers::scope;

use super::Task;
use crate::held::{Held, Holder};
use crate::names::Name;
use crate::path::{join, last_name};

/// Opens directories, and counts those that stay open.
pub(super) struct Openings<'a> {
    root: &'a Directory,
    links: Links,
    holder: Holder,
}

/// A directory that waits to be looked into.
pub(super) struct Unopened<'w> {
    pub(super) path: Vec<u8>,
    pub(super) parent: Option<Arc<Held<'w>>>,
    pub(super) ancestors: Option<Arc<Ancestor>>,
}

/// A directory that is being looked into.
pub(super) struct Opened {
    pub(super) directory: Directory,
    pub(super) path: Vec<u8>,
    pub(super) metadata: Metadata,
    pub(super) ancestors: Option<Arc<Ancestor>>,
}

/// What the tasks below a directory have in common.
pub(super) struct Below<'t, 'w> {
    pub(super) path: &'t [u8],
    pub(super) parent: Option<&'t Arc<Held<'w>>>,
    pub(super) ancestors: Option<&'t Arc<Ancestor>>,
}

/// The chain of directories above, kept only when links are followed, to find loops.
pub(super) struct Ancestor {
    identity: FileId,
    above: Option<Arc<Ancestor>>,
}

impl Drop for Ancestor {
    /// One after the other: a chain may be longer than the stack is deep.
    fn drop(&mut self) {
        let mut next = self.above.take();
        while let Some(mut ancestor) = next.and_then(Arc::into_inner) {
            next = ancestor.above.take();
        }
    }
}

impl<'a> Openings<'a> {
    pub(super) fn new(root: &'a Directory, links: Links) -> Self {
        Self {
            root,
            links,
            holder: Holder::new(),
        }
    }

    pub(super) fn most_workers(&self) -> usize {
        self.holder.most_workers(2)
    }

    pub(super) fn open(&self, task: &Unopened<'_>) -> io::Result<Directory> {
        let _scope = scope!("open");
        match &task.parent {
            Some(parent) => self.open_path(parent, last_name(&task.path)),
            None => self.open_path(self.root, &task.path),
        }
    }

    pub(super) fn metadata(&self, task: &Unopened<'_>) -> io::Result<Metadata> {
        let name = last_name(&task.path);
        match &task.parent {
            Some(parent) => parent.metadata(name, self.links),
            None if task.path.is_empty() => self.root.own_metadata(),
            None => {
                // With the slash at its end, which opens the same directory.
                let above = &task.path[..task.path.len() - name.len()];
                self.open_path(self.root, above)?.metadata(name, self.links)
            }
        }
    }

    fn open_path(&self, base: &Directory, path: &[u8]) -> io::Result<Directory> {
        match self.links {
            Links::Follow => base.open_following(path),
            Links::Refuse => base.open_beneath(path),
        }
    }

    /// Holds a directory open, or gives it back if that would be too many.
    pub(super) fn hold(&self, directory: Directory) -> Result<Held<'_>, Directory> {
        self.holder.hold(directory)
    }
}

impl Unopened<'_> {
    pub(super) fn root() -> Self {
        Self {
            path: Vec::new(),
            parent: None,
            ancestors: None,
        }
    }
}

impl<'w> Below<'_, 'w> {
    /// Returns tasks for the directories of these names.
    ///
    /// Tasks are taken from the end, so that the lowest inode comes first: on a disk, directories made
    /// together lie together.
    pub(super) fn tasks(&self, names: &mut [Name], bytes: &[u8]) -> impl Iterator<Item = Task<'w>> {
        names.sort_unstable_by_key(|name| std::cmp::Reverse(name.inode));
        names.iter().map(|name| {
            Task::Directory(Unopened {
                path: join(self.path, name.place.of(bytes)),
                parent: self.parent.cloned(),
                ancestors: self.ancestors.cloned(),
            })
        })
    }
}

impl Ancestor {
    /// # Errors
    /// If the directory is one of those above it.
    pub(super) fn new(identity: FileId, above: Option<Arc<Self>>) -> io::Result<Arc<Self>> {
        let mut next = above.as_ref();
        while let Some(ancestor) = next {
            if ancestor.identity == identity {
                return Err(io::Error::other(
                    "the link leads to a directory above itself",
                ));
            }
            next = ancestor.above.as_ref();
        }
        Ok(Arc::new(Self { identity, above }))
    }
}
