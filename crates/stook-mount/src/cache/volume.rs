//! One volume: its key, its length, its blocks.

use std::ops::Range;

use super::key::{BLOCK_BYTES, BlockKey, VolumeKey};
use super::mirrors::Copies;

/// A volume whose identity is known.
#[derive(Debug)]
pub(super) struct CachedFile {
    pub(super) key: VolumeKey,
    pub(super) size: u64,
    pub(super) copies: Copies,
    /// Its place among the volumes on record; None if it is not on record.
    pub(super) place: Option<usize>,
    /// Whether its key means the same to other processes.
    pub(super) is_lasting: bool,
}

impl CachedFile {
    pub(super) fn name(&self) -> &str {
        &self.copies.identity.name
    }

    pub(super) fn block(&self, number: u64) -> BlockKey {
        let volume = self.key;
        BlockKey { volume, number }
    }

    pub(super) fn block_count(&self) -> u64 {
        self.size.div_ceil(BLOCK_BYTES)
    }

    /// Returns the blocks that a range touches.
    pub(super) fn blocks_of(&self, range: &Range<u64>) -> Range<u64> {
        let end = range.end.min(self.size);
        range.start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)
    }

    /// Returns the bytes of some blocks.
    pub(super) fn bytes_of(&self, blocks: Range<u64>) -> Range<u64> {
        blocks.start * BLOCK_BYTES..self.size.min(blocks.end * BLOCK_BYTES)
    }

    pub(super) fn block_len(&self, number: u64) -> usize {
        let bytes = self.bytes_of(number..number + 1);
        usize::try_from(bytes.end.saturating_sub(bytes.start)).unwrap_or(0)
    }
}
