//! Where a volume ends.

use stook_index::VolumeEncoding;
use stook_volume::{Dialect, padding, trailer_len};

/// Decides where a volume ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VolumeSplitter {
    pub(crate) dialect: Dialect,
    pub(crate) limit: u64,
    /// Whether volumes are compressed. Their limit holds for the uncompressed volume: only that length is known beforehand.
    pub(crate) encoding: VolumeEncoding,
}

impl VolumeSplitter {
    /// Returns true if a member still goes into a volume of which `offset` bytes are written.
    ///
    /// zstash counts 512 bytes of header whatever they are, and forgets the trailer: its own volumes
    /// are only met byte for byte with the same rule.
    pub(crate) fn fits(self, offset: u64, member_len: u64, content_len: u64) -> bool {
        let end = match self.dialect {
            Dialect::Zstash => offset + 512 + content_len + padding(content_len),
            Dialect::Stook => offset + member_len + trailer_len(offset + member_len),
        };
        offset == 0 || end <= self.limit
    }
}
