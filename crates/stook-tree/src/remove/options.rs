//! How to remove, and the observer of a removal.

use stook_pool::{Jobs, Observer};

use crate::TreeError;

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
    /// Only report what would be removed.
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

/// Receives the events of a removal, on several threads at once.
pub trait RemoveObserver: Observer<Failure = TreeError> {
    /// In a dry run: this would be removed.
    fn would_remove(&self, _path: &[u8]) {}
    /// A tree that is not there.
    fn missing(&self, _path: &[u8]) {}
}
