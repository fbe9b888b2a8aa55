//! Removing trees: every name once, nothing looked at, nothing followed.
//!
//! ```text
//!   task: a directory ──> open below its parent ──> all its names (getdents64) ──┬─> unlink each
//!                                                                                └─> one task for each directory
//!   last to leave a directory: close, rmdir, and on to the one above
//! ```
//! A directory is worked on by one worker: the kernel lets nobody else into it anyway. It is read as a whole
//! before anything in it goes, because some file systems lose their place otherwise. The youngest
//! task is taken first, so that few directories are begun and not ended.

mod empty;
mod entry;
mod judge;
mod leave;
mod node;
mod refuse;

use std::sync::atomic::AtomicU64;

use stook_pool::{Jobs, WorkerPool};
use stook_sys::names_of_mount_points;
use stook_timers::scope;

pub use judge::{Candidate, Judge, Verdict};
pub(crate) use refuse::names_directory;
pub use refuse::{Guard, Tree};

use crate::TreeError;
use crate::held::Holder;
use empty::{Remover, Task};

/// How to remove.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one independent switch of the command line"
)]
pub struct RemoveOptions {
    /// How many directories are emptied together.
    pub jobs: Jobs,
    /// Leave what is mounted below the tree, and say so.
    pub one_file_system: bool,
    /// Empty the trees only.
    pub keep_root: bool,
    /// Give directories the permissions that it takes to empty them.
    pub force_chmod: bool,
    /// Remove archives in the trees, too; otherwise each of them stays, which is a failure.
    pub with_archives: bool,
    /// Only tell what would be removed.
    pub is_dry_run: bool,
}

impl Default for RemoveOptions {
    fn default() -> Self {
        Self {
            jobs: Jobs::Adaptive,
            one_file_system: true,
            keep_root: false,
            force_chmod: false,
            with_archives: false,
            is_dry_run: false,
        }
    }
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Entries of all kinds.
    pub entries: u64,
    /// The directories among them.
    pub directories: u64,
}

/// Receives what a removal tells, on several threads at once.
pub trait RemoveObserver: Sync {
    /// Some entries are gone.
    fn removed(&self, _entries: u64) {}
    /// In a dry run: this would be removed.
    fn would_remove(&self, _path: &[u8]) {}
    /// This stays, and why; the rest goes on.
    fn failed(&self, error: TreeError);
    /// A tree that is not there.
    fn missing(&self, _path: &[u8]) {}
    /// Returns true if the removal should end early.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Removes trees, or what the judge gives free of them: a directory goes when it is given free and all in it went.
///
/// # Cost
/// For each directory: openat2, getdents64 until empty, one unlinkat for each name, close, and its own
/// unlinkat. For each tree one open more. Memory for the names of one directory for each
/// worker, at most a million at a time if all goes, and for the names of directories that wait.
pub fn remove<O: RemoveObserver>(
    trees: &[Tree],
    options: &RemoveOptions,
    judge: Option<&dyn Judge>,
    observer: &O,
) -> Removed {
    let _scope = scope!("remove");
    let remover = Remover {
        options,
        observer,
        judge,
        mount_points: options.is_dry_run.then(names_of_mount_points).flatten(),
        entries: AtomicU64::new(0),
        directories: AtomicU64::new(0),
    };
    let holder = Holder::new();
    let pool = WorkerPool::new("remove", options.jobs).at_most(holder.most_workers(2));
    let last_first = trees.iter().rev().map(Task::Tree);
    pool.recursive(last_first, |task, tasks| match task {
        Task::Tree(_) if observer.is_stopped() => {}
        Task::Tree(tree) => remover.begin(tree, tasks),
        Task::Directory(waiting) if observer.is_stopped() => {
            waiting.parent.keep();
            remover.leave(waiting.parent, tasks);
        }
        Task::Directory(waiting) => remover.run(waiting, &holder, tasks),
    });
    Removed {
        entries: remover.entries.into_inner(),
        directories: remover.directories.into_inner(),
    }
}
