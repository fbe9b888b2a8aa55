//! One pass over a tree: every name and every stat, once, directory by directory.
//!
//! ```text
//!   task: a directory ──> open below its parent ──> names (getdents64) ──┬─> statx each ──> Listing
//!                              ^                                         │
//!                              └── one task for each directory among them┤
//!                                                                        └─> many names: one task for each
//!                              the last of them makes the Listing <── statx each ── chunk of them (split.rs)
//! ```
//! A task holds its parent open until it has opened itself; when too many directories are open, tasks
//! go down from the root instead. The youngest task is taken first, so few wait at any time. Listings
//! arrive on the worker threads in no particular order; entries within a listing are sorted by name, if that is wanted.

mod listing;
mod look;
mod open;
mod split;

use std::io;
use std::sync::Arc;

use stook_pool::{Jobs, Tasks, WorkerPool};
use stook_sys::{Directory, FileId, FileKind, Links, Metadata};
use stook_timers::scope;

pub use listing::{Entry, Listing};

use crate::TreeError;
use crate::names::Names;
use look::Found;
use open::{Ancestor, Below, Opened, Openings, Unopened};
use split::Chunk;

/// How to walk.
#[derive(Debug, Clone)]
pub struct WalkOptions {
    /// How many directories are looked at together.
    pub jobs: Jobs,
    /// What to do with symbolic links within the tree.
    pub links: Links,
    /// A directory to leave out, by identity: however it is spelled, it is found.
    pub leave_out: Option<FileId>,
    /// How much to find out.
    pub detail: Detail,
    /// Sort the entries of each listing by name; else they come in no particular order.
    pub sorted: bool,
    /// Hand over a directory that may not be read, as one that was not looked into, besides reporting the failure.
    pub unreadable: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self {
            jobs: Jobs::Adaptive,
            links: Links::Refuse,
            leave_out: None,
            detail: Detail::LinkTargets,
            sorted: true,
            unreadable: false,
        }
    }
}

/// How much a walk finds out about each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Its kind, which most file systems tell with the name; all other facts may be zero.
    Kinds,
    /// All its facts.
    Facts,
    /// Also whether a symbolic link leads to a directory.
    LinkTargets,
}

/// Receives what a walk finds, on several threads at once.
pub trait Visitor: Sync {
    /// Returns true if the directory need not be looked into.
    fn prunes(&self, _path: &[u8]) -> bool {
        false
    }
    /// Returns true if an entry of a directory is of no interest: then it is not looked at where its kind is told with
    /// its name, and not handed over. Not asked about directories.
    fn skips(&self, _directory: &[u8], _name: &[u8], _kind: FileKind) -> bool {
        false
    }
    /// Takes the path of a directory that is left out by its identity.
    fn left_out(&self, _path: &[u8]) {}
    /// Takes one listed directory.
    fn directory(&self, listing: Listing);
    /// Takes a failure; the walk goes on.
    fn failed(&self, error: TreeError);
    /// Returns true if the walk should end early.
    fn is_stopped(&self) -> bool {
        false
    }
}

struct Walk<'a, V> {
    options: &'a WalkOptions,
    visitor: &'a V,
    openings: Openings<'a>,
}

enum Task<'w> {
    Directory(Unopened<'w>),
    Chunk(Chunk<'w>),
}

/// Walks the tree below `root` and hands every directory to the visitor.
///
/// # Cost
/// For each directory: open, getdents64 until empty, one statx for itself and one for each entry
/// that is neither a directory nor skipped, one more for what a symbolic link leads to, close. For a pruned one: one statx.
/// With [`Detail::Kinds`] no statx where the file system tells the kind with the name.
///
/// Memory for the names of one directory for each worker, and for a directory of many names 24 bytes a
/// name and the [`Listing`] itself.
pub fn walk(root: &Directory, options: &WalkOptions, visitor: &impl Visitor) {
    let _scope = scope!("walk");
    let walk = Walk {
        options,
        visitor,
        openings: Openings::new(root, options.links),
    };
    let pool = WorkerPool::new("walk", options.jobs).at_most(walk.openings.most_workers());
    pool.recursive([Task::Directory(Unopened::root())], |task, tasks| {
        if visitor.is_stopped() {
            return;
        }
        match task {
            Task::Directory(unopened) => walk.run(unopened, tasks),
            Task::Chunk(chunk) => walk.run_chunk(chunk, tasks),
        }
    });
}

impl<V: Visitor> Walk<'_, V> {
    fn run<'w>(&'w self, task: Unopened<'w>, tasks: &Tasks<Task<'w>>) {
        if self.visitor.prunes(&task.path) {
            return self.pass_over(task);
        }
        let directory = match self.openings.open(&task) {
            Ok(directory) => directory,
            Err(source) => return self.closed(task, source),
        };
        let Unopened {
            path,
            parent,
            ancestors,
        } = task;
        drop(parent);
        let metadata = match self.own_metadata(&directory) {
            Ok(metadata) => metadata,
            Err(source) => return self.fail(path, "look at", source),
        };
        if self.options.leave_out == Some(metadata.identity()) {
            return self.visitor.left_out(&path);
        }
        let ancestors = match self.with_ancestor(ancestors, &metadata) {
            Ok(ancestors) => ancestors,
            Err(source) => return self.fail(path, "follow", source),
        };
        let opened = Opened {
            directory,
            path,
            metadata,
            ancestors,
        };
        Names::with(|names| self.list(opened, names, tasks));
    }

    /// The directory could not be opened.
    fn closed(&self, task: Unopened<'_>, source: io::Error) {
        let is_told = self.options.unreadable && source.kind() == io::ErrorKind::PermissionDenied;
        if is_told && let Ok(metadata) = self.closed_metadata(&task) {
            let listing = Listing::unread(task.path.clone(), metadata);
            self.visitor.directory(listing);
        }
        self.fail(task.path, "open", source);
    }

    /// In a directory that may be read but not entered, only kinds can be found out.
    fn closed_metadata(&self, task: &Unopened<'_>) -> io::Result<Metadata> {
        if self.options.detail == Detail::Kinds {
            Ok(Metadata::of_kind(FileKind::Directory))
        } else {
            self.openings.metadata(task)
        }
    }

    /// Reports a directory without looking into it; so it may be one that cannot be opened.
    fn pass_over(&self, task: Unopened<'_>) {
        let metadata = self.openings.metadata(&task).and_then(|metadata| {
            if metadata.kind == FileKind::Directory {
                Ok(metadata)
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        });
        match metadata {
            Ok(metadata) if self.options.leave_out == Some(metadata.identity()) => {
                self.visitor.left_out(&task.path);
            }
            Ok(metadata) => self.visitor.directory(Listing::unread(task.path, metadata)),
            Err(source) => self.fail(task.path, "look at", source),
        }
    }

    fn own_metadata(&self, directory: &Directory) -> io::Result<Metadata> {
        let is_needed = self.options.detail > Detail::Kinds
            || self.options.leave_out.is_some()
            || self.options.links == Links::Follow;
        if is_needed {
            directory.own_metadata()
        } else {
            Ok(Metadata::of_kind(FileKind::Directory))
        }
    }

    fn with_ancestor(
        &self,
        above: Option<Arc<Ancestor>>,
        own: &Metadata,
    ) -> io::Result<Option<Arc<Ancestor>>> {
        match self.options.links {
            Links::Refuse => Ok(None),
            Links::Follow => Ancestor::new(own.identity(), above).map(Some),
        }
    }

    fn list<'w>(&'w self, opened: Opened, names: &mut Names, tasks: &Tasks<Task<'w>>) {
        if let Err(source) = names.read(&opened.directory) {
            self.fail(opened.path.clone(), "list", source);
        }
        if let Err(opened) = self.split(opened, names, tasks) {
            self.look_alone(opened, names, tasks);
        }
    }

    /// Looks at all names of a directory and hands it over.
    fn look_alone<'w>(&'w self, opened: Opened, names: &Names, tasks: &Tasks<Task<'w>>) {
        let mut found = Found::with_capacity(names.all.len());
        let Names { bytes, all, .. } = names;
        self.look_at_all(&opened.directory, &opened.path, (bytes, all), &mut found);
        let Opened {
            directory,
            path,
            metadata,
            ancestors,
        } = opened;
        if !found.subdirectories.is_empty() {
            let parent = self.openings.hold(directory).ok().map(Arc::new);
            let below = Below {
                path: &path,
                parent: parent.as_ref(),
                ancestors: ancestors.as_ref(),
            };
            tasks.extend(below.tasks(&mut found.subdirectories, bytes));
        }
        let listing = Listing {
            path,
            metadata,
            entries: found.entries,
            is_empty: found.is_empty,
            names: bytes.clone(),
        };
        self.hand_over(listing);
    }

    fn hand_over(&self, mut listing: Listing) {
        if self.visitor.is_stopped() {
            // It may lack entries.
            return;
        }
        if self.options.sorted {
            listing.sort();
        }
        listing.entries.shrink_to_fit();
        self.visitor.directory(listing);
    }

    fn fail(&self, path: Vec<u8>, operation: &'static str, source: io::Error) {
        self.visitor.failed(TreeError {
            path,
            operation,
            source,
        });
    }
}
