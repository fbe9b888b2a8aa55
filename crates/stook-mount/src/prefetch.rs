//! Has the blocks of whole files in the cache before anybody reads them.

use std::fmt;

use serde::Serialize;
use stook_archive::{ArchiveError, Catalogue};

use crate::cache::{BLOCK_BYTES, CachedVolumes, VolumeRange};

/// What came of fetching the files that match patterns.
#[derive(Debug, Default, Serialize)]
pub struct Prefetched {
    /// Files that match.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Bytes that were fetched from a store now.
    pub fetched_bytes: u64,
    /// Blocks that were in the cache already.
    pub present_blocks: u64,
    /// Blocks that could not be fetched, or not be kept.
    pub failed_blocks: u64,
    /// The first reason why.
    pub error: Option<String>,
    /// Bytes in the volumes for which the cache has no room.
    pub left_out_bytes: u64,
    /// Whether it was asked to end before all was done.
    pub is_interrupted: bool,
    /// Patterns that match nothing.
    pub unmatched: Vec<String>,
}

impl fmt::Display for Prefetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, fetched) = (self.files, self.fetched_bytes);
        write!(
            f,
            "prefetched {files} files: {fetched} bytes from the store"
        )?;
        if self.present_blocks > 0 {
            write!(f, ", {} blocks were here", self.present_blocks)?;
        }
        if self.left_out_bytes > 0 {
            write!(f, "; no room for {} bytes", self.left_out_bytes)?;
        }
        if self.failed_blocks > 0 {
            write!(f, "; {} blocks failed", self.failed_blocks)?;
        }
        if let Some(error) = &self.error {
            write!(f, ": {error}")?;
        }
        if self.is_interrupted {
            write!(f, "; interrupted")?;
        }
        for pattern in &self.unmatched {
            write!(f, "; nothing matches `{pattern}`")?;
        }
        Ok(())
    }
}

/// Fetches what the files that match need, in the order of the volumes, no more than the cache has room for. A block that a reader
/// fetches meanwhile is not fetched again.
///
/// # Errors
/// Those of [`Catalogue::stored_files`].
pub(crate) fn prefetch(
    catalogue: &Catalogue,
    volumes: &CachedVolumes,
    patterns: &[String],
    is_interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Prefetched, ArchiveError> {
    let texts: Vec<&[u8]> = patterns.iter().map(String::as_bytes).collect();
    let stored = catalogue.stored_files(&texts, BLOCK_BYTES)?;
    let (mut room, mut left_out_bytes) = (volumes.room(), 0);
    let mut ranges = Vec::new();
    for (volume, mut range) in stored.ranges {
        let len = range.end - range.start;
        // Of the first and the last block other files may have a part.
        let taken = len.min(room.saturating_sub(2 * BLOCK_BYTES));
        room -= room.min(taken + 2 * BLOCK_BYTES);
        left_out_bytes += len - taken;
        range.end = range.start + taken;
        if taken > 0 {
            let volume = volume.to_string();
            ranges.push(VolumeRange { volume, range });
        }
    }
    let report = volumes.prefetch(&ranges, is_interrupted);
    let unmatched = stored.unmatched.into_iter();
    Ok(Prefetched {
        files: stored.files,
        bytes: stored.bytes,
        fetched_bytes: report.fetched_bytes,
        present_blocks: report.present,
        failed_blocks: report.failed + report.not_kept,
        error: report.error.map(|error| error.to_string()),
        left_out_bytes,
        is_interrupted: report.is_interrupted,
        unmatched: unmatched.map(|place| patterns[place].clone()).collect(),
    })
}
