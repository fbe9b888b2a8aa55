//! The way down: which directories are open, and how the next one is opened.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stook_sys::{Directory, FileId, Links, Metadata};
use stook_timers::scope;

use super::Task;
use super::names::Name;

/// Directories held open for the tasks below them; more are opened from the root again. At most half
/// of what the process may open: the rest is for the tasks themselves, and for the caller.
const MOST_OPEN: usize = 512;

/// Opens directories, and counts those that stay open.
pub(super) struct Openings<'a> {
    root: &'a Directory,
    links: Links,
    most: usize,
    kept: AtomicUsize,
}

/// A directory that waits to be looked into.
pub(super) struct Unopened<'w> {
    pub(super) path: Vec<u8>,
    pub(super) parent: Option<Arc<OpenParent<'w>>>,
    pub(super) ancestors: Option<Arc<Ancestor>>,
}

/// A directory that is being looked into.
pub(super) struct Opened {
    pub(super) directory: Directory,
    pub(super) path: Vec<u8>,
    pub(super) metadata: Metadata,
    pub(super) ancestors: Option<Arc<Ancestor>>,
}

/// A directory held open for the tasks below it; the last of them closes it.
pub(super) struct OpenParent<'w> {
    pub(super) directory: Directory,
    kept: &'w AtomicUsize,
}

impl Drop for OpenParent<'_> {
    fn drop(&mut self) {
        self.kept.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the tasks below a directory have in common.
pub(super) struct Below<'t, 'w> {
    pub(super) path: &'t [u8],
    pub(super) parent: Option<&'t Arc<OpenParent<'w>>>,
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
            most: MOST_OPEN.min(stook_sys::most_open_files() / 2),
            kept: AtomicUsize::new(0),
        }
    }

    /// Each worker has at most two directories open besides those that are kept.
    pub(super) fn most_workers(&self) -> usize {
        self.most / 4
    }

    pub(super) fn open(&self, task: &Unopened<'_>) -> io::Result<Directory> {
        let _scope = scope!("open");
        match &task.parent {
            Some(parent) => self.open_path(&parent.directory, last_name(&task.path)),
            None => self.open_path(self.root, &task.path),
        }
    }

    pub(super) fn metadata(&self, task: &Unopened<'_>) -> io::Result<Metadata> {
        let name = last_name(&task.path);
        match &task.parent {
            Some(parent) => parent.directory.metadata(name, self.links),
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

    /// Keeps a directory open, or gives it back if that would be too many.
    pub(super) fn keep(&self, directory: Directory) -> Result<OpenParent<'_>, Directory> {
        let one_more = |kept| (kept < self.most).then_some(kept + 1);
        let counted = self
            .kept
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        if counted.is_err() {
            return Err(directory);
        }
        Ok(OpenParent {
            directory,
            kept: &self.kept,
        })
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

pub(super) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
