//! How to copy, and the observer of a copy.

use stook_pool::{Jobs, Observer};

use crate::{Filter, TreeError};

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
    /// Only report what would be copied.
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

/// Receives the events of a copy, on several threads at once.
pub trait CopyObserver: Observer<Failure = TreeError> {
    /// In a dry run: this would be copied.
    fn would_copy(&self, _path: &[u8]) {}
    /// This is not copied on purpose, and why.
    fn skipped(&self, _path: &[u8], _why: &str) {}
    /// Something differs from the tree; not an error.
    fn noted(&self, _text: &str) {}
}

/// Files that a worker has open at a time: a directory, a file, both copies, and the directory of a hard link.
pub(super) const OPEN_FILES: usize = 5;
