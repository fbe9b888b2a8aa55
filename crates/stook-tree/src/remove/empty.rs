//! Emptying a directory: what is no directory goes at once, directories become tasks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_pool::{Tasks, advance};
use stook_sys::{Directory, FileKind, Links, is_mount_point, is_no_directory, is_not_permitted};
use stook_timers::scope;

use super::node::Node;
use super::{RemoveObserver, RemoveOptions, Tree};
use crate::TreeError;
use crate::held::Holder;
use crate::names::{Name, Names};

/// Names read at a time. A directory of more is read in parts, each before it goes.
pub(super) const MOST_NAMES: usize = 1 << 20;

/// From this many on, names in disorder are removed in the order of their inodes: a disk that keeps those in blocks
/// changes each block once. Fewer are in few blocks anyway. Names that come in order, either way, are best left so: a
/// file system in memory keeps its youngest file first, and finds that the fastest.
const SORTED_FROM: usize = 512;

/// Names between two looks at whether to stop.
const STEP: usize = 256;

pub(super) struct Remover<'a, O> {
    pub(super) options: &'a RemoveOptions,
    pub(super) observer: &'a O,
    pub(super) has_patterns: bool,
    pub(super) entries: AtomicU64,
    pub(super) directories: AtomicU64,
}

pub(super) enum Task<'r> {
    Tree(&'r Tree),
    Directory(Waiting<'r>),
}

/// A directory that waits to be emptied.
pub(super) struct Waiting<'r> {
    pub(super) parent: Arc<Node<'r>>,
    pub(super) name: Box<[u8]>,
    pub(super) attempts: u32,
}

/// What became of a name.
enum Outcome {
    Gone,
    /// Somebody else removed it.
    WasGone,
    IsDirectory,
    Stays,
}

impl<O: RemoveObserver> Remover<'_, O> {
    pub(super) fn begin<'r>(&self, tree: &'r Tree, tasks: &Tasks<Task<'r>>) {
        match Directory::open_handle(&tree.holder) {
            Ok(directory) => {
                let waiting = Waiting {
                    parent: Arc::new(Node::holding(directory, &tree.prefix)),
                    name: tree.name.as_slice().into(),
                    attempts: 0,
                };
                tasks.extend([Task::Directory(waiting)]);
            }
            Err(error) if error.is_not_found() => self.observer.missing(&tree.path()),
            Err(error) => self.observer.failed(TreeError {
                path: tree.path(),
                operation: "remove",
                source: error.source,
            }),
        }
    }

    pub(super) fn run<'r>(
        &self,
        waiting: Waiting<'r>,
        holder: &'r Holder,
        tasks: &Tasks<Task<'r>>,
    ) {
        let parent = Arc::clone(&waiting.parent);
        match self.open(&waiting) {
            Ok(Some(directory)) => {
                Names::with(|names| self.empty(directory, waiting, names, holder, tasks));
            }
            Ok(None) => drop(waiting),
            Err(source) => {
                self.fail(&waiting.parent, &waiting.name, "remove", source);
                drop(waiting);
            }
        }
        self.leave(parent, tasks);
    }

    /// Opens a directory; None if that was not needed to be rid of the name.
    fn open(&self, waiting: &Waiting<'_>) -> io::Result<Option<Directory>> {
        let Waiting { parent, name, .. } = waiting;
        match self.open_below(parent, name) {
            Ok(directory) => Ok(Some(directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if parent.is_holding() && waiting.attempts == 0 {
                    self.observer.missing(&parent.path(name));
                }
                Ok(None)
            }
            Err(error) if is_no_directory(&error) => self.remove_other(parent, name),
            Err(error) if is_mount_point(&error) => {
                Err(io::Error::other("something else is mounted there"))
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.open_closed(parent, name, error)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn open_below(&self, parent: &Node<'_>, name: &[u8]) -> io::Result<Directory> {
        let _scope = scope!("open");
        let (base, path) = parent.nearest(name);
        // What the user named is the tree, whatever is mounted there.
        if self.options.one_file_system && !parent.is_holding() {
            base.open_on_same_mount(&path)
        } else {
            base.open_beneath(&path)
        }
    }

    /// What the listing called a directory is none, or not any more; or it is a tree that is none.
    fn remove_other(&self, parent: &Node<'_>, name: &[u8]) -> io::Result<Option<Directory>> {
        if parent.is_holding() && self.options.keep_root {
            return Err(io::Error::other(
                "it is no directory, and a root is to be kept",
            ));
        }
        let found = Name::of_unknown_kind();
        let directory = parent.reach()?;
        match self.remove_name(&directory, parent, name, found)? {
            Outcome::Gone => self.count(1, 0),
            Outcome::WasGone => {}
            Outcome::Stays => parent.keep(),
            // Twice another thing within a moment: whoever does that may go on doing it.
            Outcome::IsDirectory => return Err(io::Error::other("another process changes it")),
        }
        Ok(None)
    }

    /// An empty directory can be removed unread. Any other needs permissions.
    fn open_closed(
        &self,
        parent: &Node<'_>,
        name: &[u8],
        error: io::Error,
    ) -> io::Result<Option<Directory>> {
        if self.options.is_dry_run {
            return Err(error);
        }
        let directory = parent.reach()?;
        if self.options.force_chmod {
            let mode = directory.metadata(name, Links::Refuse)?.mode;
            directory.set_mode(name, mode | 0o700)?;
            return self.open_below(parent, name).map(Some);
        }
        let is_kept = self.has_patterns || (parent.is_holding() && self.options.keep_root);
        if !is_kept && directory.remove_directory(name).is_ok() {
            self.count(1, 1);
            return Ok(None);
        }
        Err(error)
    }

    /// Removes all names of a directory but those of directories, which become tasks.
    fn empty<'r>(
        &self,
        directory: Directory,
        waiting: Waiting<'r>,
        names: &mut Names,
        holder: &'r Holder,
        tasks: &Tasks<Task<'r>>,
    ) {
        let Waiting {
            parent,
            name,
            attempts,
        } = waiting;
        let mut own = Node::below(Arc::clone(&parent), name, attempts);
        let mut below = Vec::new();
        loop {
            let more = match names.read_up_to(&directory, MOST_NAMES) {
                Ok(more) => more,
                // Somebody else removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(source) => {
                    self.fail(&parent, &own.name, "list", source);
                    own.keep();
                    break;
                }
            };
            self.remove_names(&directory, &own, names, &mut below);
            if !more || self.observer.is_stopped() {
                break;
            }
        }
        drop(parent);
        if below.is_empty() {
            drop(directory);
        } else {
            own.hold(directory, holder);
        }
        let own = Arc::new(own);
        let waiting = below.into_iter().rev().map(|name| {
            Task::Directory(Waiting {
                parent: Arc::clone(&own),
                name,
                attempts: 0,
            })
        });
        tasks.extend(waiting.collect::<Vec<_>>());
        self.leave(own, tasks);
    }

    fn remove_names(
        &self,
        directory: &Directory,
        own: &Node<'_>,
        names: &mut Names,
        below: &mut Vec<Box<[u8]>>,
    ) {
        let _scope = scope!("unlink");
        if names.all.len() >= SORTED_FROM && !are_in_order(&names.all) {
            names.all.sort_unstable_by_key(|name| name.inode);
        }
        let mut steps = names.all.chunks(STEP);
        while let Some(step) = steps.next() {
            let mut gone = 0;
            for each in step {
                let name = each.place.of(&names.bytes);
                match self.remove_name(directory, own, name, *each) {
                    Ok(Outcome::Gone) => gone += 1,
                    Ok(Outcome::WasGone) => {}
                    Ok(Outcome::IsDirectory) => below.push(name.into()),
                    Ok(Outcome::Stays) => own.keep(),
                    Err(source) => self.fail(own, name, "remove", source),
                }
            }
            self.count(gone, 0);
            advance(step.len() as u64);
            if self.observer.is_stopped() && steps.len() > 0 {
                own.keep();
                return;
            }
        }
    }

    fn remove_name(
        &self,
        directory: &Directory,
        own: &Node<'_>,
        name: &[u8],
        found: Name,
    ) -> io::Result<Outcome> {
        if found.kind == Some(FileKind::Directory) {
            let is_left = self.has_patterns && self.options.filter.prunes(&own.path_in_tree(name));
            return Ok(if is_left {
                Outcome::Stays
            } else {
                Outcome::IsDirectory
            });
        }
        if self.has_patterns || self.options.is_dry_run {
            if found.kind.is_none()
                && directory.metadata(name, Links::Refuse)?.kind == FileKind::Directory
            {
                return Ok(Outcome::IsDirectory);
            }
            // A tree that is no directory is matched by its name.
            let path = if own.is_holding() {
                name.to_vec()
            } else {
                own.path_in_tree(name)
            };
            if !self.options.filter.selects(&path) {
                return Ok(Outcome::Stays);
            }
            if self.options.is_dry_run {
                self.observer.would_remove(&own.path(name));
                return Ok(Outcome::Gone);
            }
        }
        match directory.remove(name) {
            Ok(()) => Ok(Outcome::Gone),
            Err(error) => self.not_removed(directory, name, error),
        }
    }

    fn not_removed(
        &self,
        directory: &Directory,
        name: &[u8],
        error: io::Error,
    ) -> io::Result<Outcome> {
        match error.kind() {
            io::ErrorKind::NotFound => Ok(Outcome::WasGone),
            io::ErrorKind::IsADirectory => Ok(Outcome::IsDirectory),
            io::ErrorKind::PermissionDenied if self.options.force_chmod => {
                let mode = directory.own_metadata()?.mode;
                if mode & 0o300 == 0o300 {
                    return Err(explained(error));
                }
                directory.set_own_mode(mode | 0o700)?;
                directory.remove(name)?;
                Ok(Outcome::Gone)
            }
            _ => Err(explained(error)),
        }
    }

    pub(super) fn count(&self, entries: u64, directories: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.directories.fetch_add(directories, Ordering::Relaxed);
        self.observer.removed(entries);
    }

    pub(super) fn fail(
        &self,
        node: &Node<'_>,
        name: &[u8],
        operation: &'static str,
        source: io::Error,
    ) {
        node.keep();
        self.observer.failed(TreeError {
            path: node.path(name),
            operation,
            source,
        });
    }
}

/// Returns true if nearly all inodes ascend, or nearly all descend.
fn are_in_order(names: &[Name]) -> bool {
    let ascending = names
        .windows(2)
        .filter(|pair| pair[0].inode < pair[1].inode)
        .count();
    ascending.min(names.len() - ascending) <= names.len() / 16
}

/// Adds the usual reason where the system's word for it helps nobody.
pub(super) fn explained(error: io::Error) -> io::Error {
    let hint = if is_not_permitted(&error) {
        "`lsattr` tells whether it is immutable"
    } else if error.kind() == io::ErrorKind::ResourceBusy {
        "it is in use, or something is mounted there"
    } else {
        return error;
    };
    io::Error::other(format!("{} ({hint})", stook_sys::cause(&error)))
}
