//! The bytes of a batch on their way into volumes.

use stook_index::VolumeId;

/// Bytes of a batch that are in order but not yet written.
pub(crate) struct PendingBytes {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Where they go.
    pub(crate) volume: Option<VolumeId>,
}

impl PendingBytes {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            start: 0,
            end: 0,
            volume: None,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        (self.end - self.start) as u64
    }

    /// Bytes that come before the next member in a volume.
    pub(crate) fn ahead_of(&self, volume: VolumeId) -> u64 {
        if self.volume == Some(volume) {
            self.len()
        } else {
            0
        }
    }

    /// Adds the next member.
    pub(crate) fn extend(&mut self, len: usize) {
        self.end += len;
    }

    /// Passes over bytes that are not written; what is ready before them must have been taken.
    pub(crate) fn skip(&mut self, len: usize) {
        self.start += len;
        self.end += len;
    }

    /// Takes out what is ready; without copying if that is all.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let (start, end) = (self.start, self.end);
        self.start = end;
        if start == end {
            None
        } else if start == 0 && end == self.bytes.len() {
            Some(std::mem::take(&mut self.bytes))
        } else {
            Some(self.bytes[start..end].to_vec())
        }
    }
}
