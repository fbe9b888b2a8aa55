//! Copying trees: one pair walk over the tree and its copy, side by side.
//!
//! ```text
//!   a directory (traverse/) ──> open it, make its copy ──> copy each of its names; a large file is a task of its own
//!   last to leave a directory: its owner, attributes, mode and time, and on to the one above
//! ```
//! - **Nothing is followed.** Every name is reached relative to an open directory, on both sides.
//! - **Nothing half done looks done.** A file gets the time of its original last; until then it has another one.
//!   A file that replaces another is written beside it and renamed. So the same copy with
//!   [`CopyOptions::is_update`] goes on where another one ended, however it ended.
//! - **The copy is open to its maker alone until it is done**: directories get their modes last.
//!
//! - **Rights only shrink on the way**: at every moment somebody may open a copy only if its old rights or the new ones say
//!   so (`metadata/apply.rs`).
//!
//! What is not kept: times of last access, and sockets.

mod ahead;
mod content;
mod context;
mod copier;
mod entry;
mod fault;
mod file;
mod links;
mod options;
mod pair_walk;
mod roots;
mod state;
mod target;
mod unchanged;
mod verify;
mod visitor;

use std::path::Path;

use stook_sys::{Context, SysError};
use stook_timers::scope;

pub use options::{Copied, CopyObserver, CopyOptions};
pub use verify::{Verified, verify};

use crate::traverse::HandleBudget;
use context::CopyContext;
use copier::Copier;
use pair_walk::PairWalk;
use roots::Roots;

/// Makes `dest` a copy of `tree`, which may also be a single file.
///
/// If one of them is named by a symbolic link, what it leads to is meant; below them nothing is followed.
///
/// # Errors
/// If there is no such tree, if `dest` is there already and no update is wanted, if only one of them is a directory, and
/// if one of them is within the other. What fails later is reported to the observer; the rest is copied.
///
/// # Cost
/// For each small file: on one side openat, statx, flistxattr, pread64 and close, on the other openat, pwrite64,
/// utimensat and close; fchown if new files belong to somebody else, fchmod for modes that the umask does not let
/// through. For each file that is unchanged: two statx, and two listxattrat where the file systems have attributes.
/// Memory for the names of one directory for each worker, at most a million at a time, and 100 bytes for each file with
/// several names.
pub fn copy(
    tree: &Path,
    dest: &Path,
    options: &CopyOptions,
    observer: &dyn CopyObserver,
) -> Result<Copied, SysError> {
    let _scope = scope!("copy");
    let roots = Roots::to_copy(tree, dest, options)?;
    let leave_out = roots.leave_out().context("look at", dest)?;
    let is_made_ahead = is_made_ahead(&roots, options);
    let context = CopyContext::new(options, observer, roots.paths);
    let budget = HandleBudget::new();
    let copier = Copier::new(&context, is_made_ahead);
    let walk = PairWalk {
        context: &context,
        visitor: &copier,
        leave_out,
    };
    match &roots.single {
        None => {
            let state = copier.state_of_roots(&roots.pair, roots.is_made);
            if copier.is_made_ahead {
                ahead::make_directories(&context, &roots.pair, leave_out, &budget);
            }
            let state = state.map_err(|fault| context.error(fault))?;
            walk.over_trees("copy", roots.pair, state, &budget);
        }
        Some(single) => {
            let state = copier.state_of_holders(&roots.pair);
            let state = state.map_err(|fault| context.error(fault))?;
            walk.over_single(roots.pair, state, single);
        }
    }
    Ok(context.copied())
}

/// Returns true if all directories of a new copy are to be made before any file.
fn is_made_ahead(roots: &Roots, options: &CopyOptions) -> bool {
    let copy = roots.pair.copy.as_ref().filter(|_| roots.is_made);
    options.filter.is_empty() && copy.is_some_and(|copy| copy.is_on_ext().unwrap_or(false))
}
