//! Emptying a directory: what is no directory goes at once, directories become tasks.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_sys::{Directory, FileKind};
use stook_timers::scope;

use super::options::{RemoveObserver, RemoveOptions};
use super::policy::RemovalPolicy;
use super::state::{RemoveNode, State, path_in_tree, written_path};
use super::tree::Tree;
use crate::archive::{INDEX, is_archive};
use crate::names::{Name, Names};
use crate::path::join;
use crate::traverse::{At, Entered, FoundOf, MOST_NAMES, Node, Part, TasksOf, Traverse, Waiting};
use crate::{Reason, TreeError};

/// From this many on, names in disorder are removed in the order of their inodes: a disk that keeps those in blocks
/// changes each block once. Fewer are in few blocks anyway. Names that come in order, either way, are best left so: a
/// file system in memory keeps its youngest file first, and finds that the fastest.
const SORTED_FROM: usize = 512;

pub(super) struct Remover<'a, O> {
    pub(super) trees: &'a [Tree],
    pub(super) options: &'a RemoveOptions,
    pub(super) observer: &'a O,
    /// None if everything is removed.
    pub(super) policy: Option<&'a dyn RemovalPolicy>,
    /// In a dry run, the names that mount points have; `None` if they are not known.
    pub(super) mount_points: Option<HashSet<Vec<u8>>>,
    pub(super) entries: AtomicU64,
    pub(super) directories: AtomicU64,
}

/// A directory from which names are removed.
pub(super) struct Location<'a, 't> {
    pub(super) directory: &'a Directory,
    pub(super) node: &'a RemoveNode<'t>,
    /// Its path below the tree, if there is a policy that wants to know.
    pub(super) path: &'a [u8],
}

/// What became of a name.
pub(super) enum Outcome {
    Removed,
    /// Somebody else removed it.
    AlreadyGone,
    IsDirectory,
    Kept,
}

impl<'t, O: RemoveObserver> Traverse<'t> for Remover<'_, O> {
    type Open = Directory;
    type Data = State;
    /// The path below the tree, if there is a policy that wants to know.
    type Collected = Vec<u8>;
    /// Names that are gone.
    type Step = u64;

    const STEP: usize = 256;

    fn is_interrupted(&self) -> bool {
        self.observer.is_interrupted()
    }

    fn begin_root(&self, number: usize) -> Option<Waiting<'t, Directory, State>> {
        let tree = &self.trees[number];
        match Directory::open_handle(&tree.holder) {
            Ok(directory) => {
                let holding = Node::root(directory, &tree.prefix, State::default());
                return Some(Waiting::new(&Arc::new(holding), &tree.name));
            }
            Err(error) if error.is_not_found() => self.observer.missing(&tree.path()),
            Err(error) => self.observer.failed(&TreeError {
                path: tree.path(),
                operation: "remove",
                source: error.source,
            }),
        }
        None
    }

    fn enter(&self, waiting: &Waiting<'t, Directory, State>) -> Option<Entered<Directory, State>> {
        let Waiting {
            node,
            name,
            attempts,
        } = waiting;
        match self.open(waiting) {
            Ok(Some(open)) if self.enters(&open, node, name) => Some(Entered {
                open,
                data: State::new(*attempts),
                is_listed: true,
            }),
            Ok(Some(_)) => {
                node.data.keep();
                None
            }
            Ok(None) => None,
            Err(source) => {
                self.fail(node, name, "remove", source);
                None
            }
        }
    }

    /// A directory that is removed in the end shows then whether names were left out. Any other is read as a whole.
    fn most_names(&self, node: &RemoveNode<'t>) -> usize {
        let may_stay = self.policy.is_some() || (node.depth() == 1 && self.options.keep_root);
        if may_stay { usize::MAX } else { MOST_NAMES }
    }

    fn list_failed(&self, node: &RemoveNode<'t>, error: io::Error) -> bool {
        // Unless somebody else removed it.
        if error.kind() != io::ErrorKind::NotFound {
            node.data.keep();
            if let Some(parent) = node.parent() {
                self.fail(parent, node.name(), "list", error);
            }
        }
        false
    }

    fn begin_names(
        &self,
        node: &RemoveNode<'t>,
        open: &Directory,
        names: &Names,
        part: Part,
    ) -> Option<Vec<u8>> {
        let path = self
            .policy
            .map_or_else(Vec::new, |_| path_in_tree(node, b""));
        if part.is_first {
            let location = Location {
                directory: open,
                node,
                path: &path,
            };
            if self.keeps_archive(&location, names, part.has_more) {
                node.data.keep();
                return None;
            }
            let was_empty = names.all.is_empty() && node.data.attempts == 0;
            if was_empty && self.policy.is_some_and(|it| !it.removes_empty(open, &path)) {
                node.data.keep();
            }
        }
        Some(path)
    }

    fn order(&self, names: &mut Names) -> usize {
        if names.all.len() >= SORTED_FROM && !are_in_order(&names.all) {
            names.all.sort_unstable_by_key(|name| name.inode);
        }
        // The kernel lets only one worker at a time into a directory.
        names.all.len()
    }

    fn timed(&self, run: impl FnOnce()) {
        let _scope = scope!("unlink");
        run();
    }

    fn begin_step(&self, _names: usize) -> u64 {
        0
    }

    fn entry(
        &self,
        at: &At<'_, 't, Self>,
        name: &Name,
        gone: &mut u64,
        found: &mut FoundOf<'t, Self>,
    ) {
        let bytes = name.place.of(at.bytes);
        let location = Location {
            directory: at.open,
            node: at.node,
            path: at.collected,
        };
        match self.remove_name(&location, bytes, name.kind) {
            Ok(Outcome::Removed) => *gone += 1,
            Ok(Outcome::AlreadyGone) => {}
            Ok(Outcome::IsDirectory) => found.add_directory(name.inode, bytes),
            Ok(Outcome::Kept) => at.node.data.keep(),
            Err(source) => self.fail(at.node, bytes, "remove", source),
        }
    }

    fn end_step(&self, _at: &At<'_, 't, Self>, gone: u64) {
        self.count(gone, 0);
    }

    fn leave(
        &self,
        node: RemoveNode<'t>,
        open: Option<Directory>,
        tasks: &TasksOf<'t, Self>,
    ) -> Option<Arc<RemoveNode<'t>>> {
        let (is_kept, attempts) = (node.data.is_kept(), node.data.attempts);
        drop(open);
        let (parent, name) = node.close();
        if let Some(parent) = &parent {
            if is_kept {
                parent.data.keep();
            } else {
                tasks.extend(self.remove_directory(parent, name, attempts));
            }
        }
        parent
    }
}

impl<O: RemoveObserver> Remover<'_, O> {
    fn enters(&self, directory: &Directory, parent: &RemoveNode<'_>, name: &[u8]) -> bool {
        self.policy
            .is_none_or(|policy| policy.enters(directory, &path_in_tree(parent, name)))
    }

    /// Returns true if a directory is kept because it is an archive, and reports it. Only the names that were read are
    /// looked at, unless the index is one of them, or there are more.
    fn keeps_archive(&self, at: &Location<'_, '_>, names: &Names, has_more: bool) -> bool {
        let mut all = names.all.iter().map(|each| each.place.of(&names.bytes));
        if self.options.with_archives || !(has_more || all.any(|name| name == INDEX)) {
            return false;
        }
        let source = match is_archive(at.directory) {
            Ok(false) => return false,
            Ok(true) => Reason::IsArchive.into(),
            Err(error) => error,
        };
        let is_reported = match self.policy {
            Some(policy) => !is_concerned(policy, at, names) || policy.keeps_archive(at.path),
            None => false,
        };
        if let Some(parent) = at.node.parent().filter(|_| !is_reported) {
            self.fail(parent, at.node.name(), "remove", source);
        }
        true
    }

    pub(super) fn count(&self, entries: u64, directories: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.directories.fetch_add(directories, Ordering::Relaxed);
        self.observer.advanced(entries, 0);
    }

    pub(super) fn fail(
        &self,
        node: &RemoveNode<'_>,
        name: &[u8],
        operation: &'static str,
        source: io::Error,
    ) {
        node.data.keep();
        self.observer.failed(&TreeError {
            path: written_path(node, name),
            operation,
            source,
        });
    }
}

/// Returns true if anything in a directory might be removed.
fn is_concerned(policy: &dyn RemovalPolicy, at: &Location<'_, '_>, names: &Names) -> bool {
    names.all.iter().any(|each| {
        let path = join(at.path, each.place.of(&names.bytes));
        if each.kind == Some(FileKind::Directory) {
            !policy.prunes(&path)
        } else {
            policy.selects(&path)
        }
    })
}

/// Returns true if nearly all inodes ascend, or nearly all descend.
fn are_in_order(names: &[Name]) -> bool {
    let ascending = names
        .windows(2)
        .filter(|pair| pair[0].inode < pair[1].inode)
        .count();
    ascending.min(names.len() - ascending) <= names.len() / 16
}
