//! Copying trees: one round over the tree and its copy, side by side.
//!
//! ```text
//!   task: a directory ──> open it, make its copy ──> all its names ──┬─> few: copy each
//!                                                                    ├─> many: a task for every chunk of them
//!                                                                    ├─> a large file: a task of its own
//!                                                                    └─> one task for each directory
//!   last to leave a directory: its owner, attributes, mode and time, and on to the one above
//! ```
//! - **Nothing is followed.** Every name is reached relative to an open directory, on both sides.
//! - **Nothing half done looks done.** A file gets the time of its original last; until then it has another one.
//!   A file that replaces another is written beside it and renamed. So the same round with
//!   [`CopyOptions::is_update`] goes on where another one ended, however it ended.
//! - **The copy is open to its maker alone until it is done**: directories get their modes last.
//!
//! - **Rights only shrink on the way**: at every moment somebody may open a copy only if its old rights or the new ones say
//!   so (`apply.rs`).
//!
//! What is not kept: times of last access, and sockets.

mod ahead;
mod apply;
mod content;
mod dress;
mod entry;
mod errand;
mod file;
mod links;
mod making;
mod node;
mod places;
mod rights;
mod round;
mod settable;
mod task;
mod unchanged;
mod verify;
mod work;

use std::path::Path;

use stook_pool::Jobs;
use stook_sys::{Context, SysError};
use stook_timers::scope;

pub use apply::CAPABILITY;
pub use dress::Owner;
pub use rights::{ACCESS_ACL, DEFAULT_ACL, Rights};
pub use settable::{Named, Open, Settable};
pub use verify::{Verified, verify};

use crate::held::Holder;
use crate::{Filter, TreeError};
use errand::Errand;
use making::Making;
use places::Places;
use round::Round;

/// How to copy.
#[derive(Debug, Clone, Default)]
pub struct CopyOptions {
    /// How many directories, or parts of them, are copied together.
    pub jobs: Jobs,
    /// What to copy: patterns match the path below the tree. A directory is made if it is selected, or anything in it.
    pub filter: Filter,
    /// Leave out what is mounted below the tree: the directory is made, and stays empty.
    pub one_file_system: bool,
    /// The copy may be there: only what differs by kind, size or modification time is copied.
    ///
    /// Owners, modes, access control lists and attributes of everything, and times of directories, are set right, too. What
    /// only the copy has stays. A directory takes
    /// the place of anything else; something else takes that of an empty directory only.
    pub is_update: bool,
    /// Only tell what would be copied.
    pub is_dry_run: bool,
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Entries of all kinds.
    pub entries: u64,
    /// The directories among them.
    pub directories: u64,
    /// Bytes of the files among them, holes counted.
    pub bytes: u64,
    /// Entries that were there already.
    pub unchanged: u64,
    /// True if there was no room for more, and the rest was not tried.
    pub is_full: bool,
}

/// Receives what a copy tells, on several threads at once.
pub trait CopyObserver: Sync {
    /// So many entries, and bytes, are done.
    fn advanced(&self, _entries: u64, _bytes: u64) {}
    /// In a dry run: this would be copied.
    fn would_copy(&self, _path: &[u8]) {}
    /// This is not copied on purpose, and why.
    fn skipped(&self, _path: &[u8], _why: &str) {}
    /// Something is not as in the tree, and that is no failure.
    fn noted(&self, _text: &str) {}
    /// This failed, and why; the rest goes on.
    fn failed(&self, error: TreeError);
    /// Returns true if the copy should end early.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Files that a worker has open at a time: a directory, a file, both copies, and the directory of a hard link.
const OPEN_FILES: usize = 5;

/// Makes `dest` a copy of `tree`, which may also be a single file.
///
/// If one of them is named by a symbolic link, what it leads to is meant; below them nothing is followed.
///
/// # Errors
/// If there is no such tree, if `dest` is there already and no update is wanted, if only one of them is a directory, and
/// if one of them is within the other. What fails later is told to the observer, and the rest goes on.
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
    let places = Places::to_copy(tree, dest, options)?;
    let leave_out = places.leave_out().context("look at", dest)?;
    let is_made_ahead = is_made_ahead(&places, options);
    let errand = Errand::new(options, observer, places.roots);
    let holder = Holder::new();
    let making = Making::new(&errand, is_made_ahead);
    let round = Round {
        name: "copy",
        errand: &errand,
        work: &making,
        holder: &holder,
        leave_out,
    };
    match &places.single {
        None => {
            let facts = making.facts_of_roots(&places.pair, places.is_made);
            if making.is_made_ahead {
                ahead::make_directories(&errand, &places.pair, leave_out, &holder);
            }
            round.over_trees(places.pair, facts.map_err(|fault| errand.error(fault))?);
        }
        Some(single) => {
            let facts = making.facts_of_holders(&places.pair);
            let facts = facts.map_err(|fault| errand.error(fault))?;
            round.over_single(places.pair, facts, single);
        }
    }
    Ok(errand.copied())
}

/// Returns true if all directories of a new copy are to be made before any file.
fn is_made_ahead(places: &Places, options: &CopyOptions) -> bool {
    let copy = places.pair.copy.as_ref().filter(|_| places.is_made);
    options.filter.is_empty() && copy.is_some_and(|copy| copy.is_on_ext().unwrap_or(false))
}
