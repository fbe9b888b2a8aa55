//! One pass over a tree: every name and every stat, once, directory by directory.
//!
//! ```text
//!   a directory (traverse/) ──> statx each name ──> Listing, when the last chunk of its names is done
//! ```
//! Listings arrive on the worker threads in no particular order; entries within a listing are sorted by name, if that is
//! wanted. The names of a large directory are taken in the order of their inodes: the inodes of a disk are read in
//! blocks, each of them once then, and ahead.

mod listing;
mod options;
mod work;

use stook_sys::Directory;
use stook_timers::scope;

use crate::traverse::{HandleBudget, Task, TraverseOptions, traverse};
pub use listing::{Entry, Listing};
pub use options::{Detail, Visitor, WalkOptions};
use work::Walk;

/// Walks the tree below `root` and hands every directory to the visitor.
///
/// # Cost
/// For each directory: open, getdents64 until empty, one statx for itself and one for each entry
/// that is neither a directory nor skipped, one more for what a symbolic link leads to, close. For a pruned one: one statx.
/// With [`Detail::Kinds`] no statx where the file system returns the kind with the name.
///
/// Memory for the names of one directory for each worker, and for a directory of many names 24 bytes a
/// name and the [`Listing`] itself.
pub fn walk(root: &Directory, options: &WalkOptions, visitor: &impl Visitor) {
    let _scope = scope!("walk");
    let budget = HandleBudget::new();
    let walk = Walk { options, visitor };
    let traverse_options = TraverseOptions {
        name: "walk",
        jobs: options.jobs,
        open_files: 2,
    };
    let root = walk.root(root).map(Task::Rest);
    traverse(&walk, &budget, &traverse_options, root);
}
