//! How to commit.

use std::path::PathBuf;

use stook_pool::Jobs;

/// How to commit.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// Destinations of [`build_part`](crate::build_part) besides the plan directory.
    pub built_in: Vec<PathBuf>,
    /// What becomes of members that failed.
    pub failures: FailedMembers,
    /// How volumes are compared with what was built.
    pub volumes: BuiltVolumes,
    /// How many workers read volumes; more than eight are of no use.
    pub jobs: Jobs,
}

/// How a volume is compared with what was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuiltVolumes {
    /// Its length, and its MD5 if it was built with one.
    #[default]
    Verified,
    /// Its length alone: for a process that has built the volumes itself.
    OfTheirLength,
}

/// What becomes of members that failed while their part was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailedMembers {
    /// They go into another part, to be built again: a file that has changed since fails again.
    #[default]
    Retry,
    /// They count as failed, as in `create`; the next update archives them.
    Record,
}
