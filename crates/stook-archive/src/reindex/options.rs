//! How an index is rebuilt.

use stook_pool::Jobs;

use crate::read::DEFAULT_MAX_HOLE_BYTES;

/// How to rebuild an index.
#[derive(Debug, Clone)]
pub struct ReindexOptions {
    /// Holes of one member, in bytes, past which its MD5 is not taken: that would take hours.
    pub max_hole_bytes: u64,
    /// How many workers.
    pub jobs: Jobs,
}

impl From<Jobs> for ReindexOptions {
    fn from(jobs: Jobs) -> Self {
        Self {
            max_hole_bytes: DEFAULT_MAX_HOLE_BYTES,
            jobs,
        }
    }
}
