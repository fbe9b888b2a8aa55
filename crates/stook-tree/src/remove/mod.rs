//! Removing trees: every name once, nothing looked at, nothing followed.
//!
//! ```text
//!   a directory (traverse/) ──> all its names ──> unlink each; directories become tasks
//!   last to leave a directory: close, rmdir, and on to the one above
//! ```
//! A directory is worked on by one worker: the kernel lets nobody else into it anyway. It is read as a whole
//! before anything in it goes, because some file systems lose their place otherwise.

mod entry;
mod guard;
mod leave;
mod opening;
mod options;
mod policy;
mod remover;
mod state;
mod tree;

use std::sync::atomic::AtomicU64;

use stook_sys::names_of_mount_points;
use stook_timers::scope;

use crate::traverse::{HandleBudget, Task, TraverseOptions, traverse};
pub use guard::Guard;
pub use options::{RemoveObserver, RemoveOptions, Removed};
pub use policy::{Candidate, Decision, RemovalPolicy};
use remover::Remover;
pub use tree::Tree;
pub(crate) use tree::names_directory;

/// Removes trees, or what the policy says of them: a directory goes if the policy removes it and all in it went.
///
/// # Cost
/// For each directory: openat2, getdents64 until empty, one unlinkat for each name, close, and its own
/// unlinkat. For each tree one open more. Memory for the names of one directory for each
/// worker, at most a million at a time if all goes, and for the names of directories that wait.
pub fn remove<O: RemoveObserver>(
    trees: &[Tree],
    options: &RemoveOptions,
    policy: Option<&dyn RemovalPolicy>,
    observer: &O,
) -> Removed {
    let _scope = scope!("remove");
    let remover = Remover {
        trees,
        options,
        observer,
        policy,
        mount_points: options.is_dry_run.then(names_of_mount_points).flatten(),
        entries: AtomicU64::new(0),
        directories: AtomicU64::new(0),
    };
    let budget = HandleBudget::new();
    let traverse_options = TraverseOptions {
        name: "remove",
        jobs: options.jobs,
        open_files: 2,
    };
    // The last task is taken first.
    let first_to_last = (0..trees.len()).rev().map(Task::Root);
    traverse(&remover, &budget, &traverse_options, first_to_last);
    Removed {
        entries: remover.entries.into_inner(),
        directories: remover.directories.into_inner(),
    }
}
