//! Emptying a directory: what is no directory goes at once, directories become tasks.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_pool::{Tasks, advance};
use stook_sys::{Directory, FileKind, is_mount_point, is_no_directory};
use stook_timers::scope;

use super::entry::{Outcome, Place};
use super::judge::Judge;
use super::node::Node;
use super::{RemoveObserver, RemoveOptions, Tree};
use crate::TreeError;
use crate::archive::{INDEX, is_archive};
use crate::held::Holder;
use crate::names::{Name, Names};
use crate::path::join;

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
    /// None if everything goes.
    pub(super) judge: Option<&'a dyn Judge>,
    /// In a dry run, the names that mount points have; `None` if they are not known.
    pub(super) mount_points: Option<HashSet<Vec<u8>>>,
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
            Ok(Some(directory)) if self.enters(&directory, &waiting) => {
                Names::with(|names| self.empty(directory, waiting, names, holder, tasks));
            }
            Ok(Some(_)) => waiting.parent.keep(),
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
        let mut opened = self.open_below(parent, name);
        if self.options.force_chmod && !self.options.is_dry_run && is_denied(&opened) {
            opened = parent
                .reach()
                .and_then(|directory| directory.add_mode_of_directory(name, 0o700))
                .and_then(|()| self.open_below(parent, name));
        }
        match opened {
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
                self.remove_closed(parent, name, error)
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
        let place = Place {
            directory: &*parent.reach()?,
            node: parent,
            path: Vec::new(),
        };
        match self.remove_name(&place, name, None)? {
            Outcome::Gone => self.count(1, 0),
            Outcome::WasGone => {}
            Outcome::Stays => parent.keep(),
            // Twice another thing within a moment: whoever does that may go on doing it.
            Outcome::IsDirectory => return Err(io::Error::other("another process changes it")),
        }
        Ok(None)
    }

    /// An empty directory can be removed unread. Any other needs permissions.
    fn remove_closed(
        &self,
        parent: &Node<'_>,
        name: &[u8],
        error: io::Error,
    ) -> io::Result<Option<Directory>> {
        let is_kept = self.judge.is_some() || (parent.is_holding() && self.options.keep_root);
        if self.options.is_dry_run || is_kept {
            return Err(error);
        }
        let removed = parent
            .reach()
            .and_then(|directory| directory.remove_directory(name));
        if removed.is_err() {
            return Err(error);
        }
        self.count(1, 1);
        Ok(None)
    }

    fn enters(&self, directory: &Directory, waiting: &Waiting<'_>) -> bool {
        self.judge.is_none_or(|judge| {
            let path = waiting.parent.path_in_tree(&waiting.name);
            judge.enters(directory, &path)
        })
    }

    /// A directory that is removed in the end shows then whether names were left out. Any other is read as a whole.
    fn most_names(&self, parent: &Node<'_>) -> usize {
        let may_stay = self.judge.is_some() || (parent.is_holding() && self.options.keep_root);
        if may_stay { usize::MAX } else { MOST_NAMES }
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
        let place = Place {
            directory: &directory,
            node: &own,
            path: self
                .judge
                .map_or_else(Vec::new, |_| parent.path_in_tree(&own.name)),
        };
        let mut below = Vec::new();
        let mut was_empty = attempts == 0;
        let mut has_begun = false;
        loop {
            let more = match names.read_up_to(&directory, self.most_names(&parent)) {
                Ok(more) => more,
                // Somebody else removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(source) => {
                    self.fail(&parent, &own.name, "list", source);
                    own.keep();
                    break;
                }
            };
            was_empty &= names.all.is_empty();
            if !has_begun && self.keeps_archive(&place, names, more) {
                own.keep();
                break;
            }
            has_begun = true;
            self.remove_names(&place, names, &mut below);
            if !more || self.observer.is_stopped() {
                break;
            }
        }
        if was_empty
            && self
                .judge
                .is_some_and(|judge| !judge.releases_empty(&directory, &place.path))
        {
            own.keep();
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

    /// Returns true if a directory stays because it is an archive, and tells so. Only the names that were read are
    /// looked at, unless the index is one of them, or there are more.
    fn keeps_archive(&self, place: &Place<'_, '_>, names: &Names, has_more: bool) -> bool {
        let mut all = names.all.iter().map(|each| each.place.of(&names.bytes));
        if self.options.with_archives || !(has_more || all.any(|name| name == INDEX)) {
            return false;
        }
        let source = match is_archive(place.directory) {
            Ok(false) => return false,
            Ok(true) => io::Error::other("it is an archive; --with-archives removes it, too"),
            Err(error) => error,
        };
        let is_told = match self.judge {
            Some(judge) => !is_concerned(judge, place, names) || judge.keeps_archive(&place.path),
            None => false,
        };
        if let Some(parent) = place.node.parent.as_deref().filter(|_| !is_told) {
            self.fail(parent, &place.node.name, "remove", source);
        }
        true
    }

    fn remove_names(&self, place: &Place<'_, '_>, names: &mut Names, below: &mut Vec<Box<[u8]>>) {
        let _scope = scope!("unlink");
        if names.all.len() >= SORTED_FROM && !are_in_order(&names.all) {
            names.all.sort_unstable_by_key(|name| name.inode);
        }
        let mut steps = names.all.chunks(STEP);
        while let Some(step) = steps.next() {
            let mut gone = 0;
            for each in step {
                // Where each call takes long, a step must not be finished first.
                if self.observer.is_stopped() {
                    place.node.keep();
                    break;
                }
                let name = each.place.of(&names.bytes);
                match self.remove_name(place, name, each.kind) {
                    Ok(Outcome::Gone) => gone += 1,
                    Ok(Outcome::WasGone) => {}
                    Ok(Outcome::IsDirectory) => below.push(name.into()),
                    Ok(Outcome::Stays) => place.node.keep(),
                    Err(source) => self.fail(place.node, name, "remove", source),
                }
            }
            self.count(gone, 0);
            advance(step.len() as u64);
            if self.observer.is_stopped() && steps.len() > 0 {
                place.node.keep();
                return;
            }
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

/// Returns true if anything in a directory might go.
fn is_concerned(judge: &dyn Judge, place: &Place<'_, '_>, names: &Names) -> bool {
    names.all.iter().any(|each| {
        let path = join(&place.path, each.place.of(&names.bytes));
        if each.kind == Some(FileKind::Directory) {
            !judge.prunes(&path)
        } else {
            judge.selects(&path)
        }
    })
}

fn is_denied<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
}

/// Returns true if nearly all inodes ascend, or nearly all descend.
fn are_in_order(names: &[Name]) -> bool {
    let ascending = names
        .windows(2)
        .filter(|pair| pair[0].inode < pair[1].inode)
        .count();
    ascending.min(names.len() - ascending) <= names.len() / 16
}
