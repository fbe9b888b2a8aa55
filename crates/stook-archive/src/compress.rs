//! Compresses what packers have encoded, frame by frame: in the workers, so that the writer only appends.
//!
//! ```text
//!   members of a batch   | a | b | c | d | a large one ............... | e |
//!   frames               |     1 MiB   | 1 MiB    | 1 MiB    | its end | ...      no small member is split
//! ```
//! A frame ends before the member with which it would be longer than 1 MiB, and with its batch, which the plan cuts; a
//! longer member has frames of its own. So frames depend on the tree and on nothing else.

use std::ops::Range;
use std::sync::Mutex;

use stook_index::VolumeEncoding;
use stook_pool::Budget;
use stook_sys::available_cpus;
use stook_timers::scope;
use stook_volume::{FrameEncoder, FrameError, MAX_FRAME, SeekEntry, ZstdLevel, frame_checksum};

use crate::buffers::Buffers;
use crate::mutex::lock;
use crate::packed::Packed;

/// Bytes as they go into the file of a volume.
#[derive(Debug, Default)]
pub(crate) struct EncodedBytes {
    pub(crate) bytes: Vec<u8>,
    /// The frames that they are; none if the volume is not compressed.
    pub(crate) frames: Vec<SeekEntry>,
}

impl EncodedBytes {
    /// Returns bytes that are not compressed.
    pub(crate) fn plain(bytes: Vec<u8>) -> Self {
        let frames = Vec::new();
        Self { bytes, frames }
    }

    /// Returns how many bytes of the uncompressed volume they are.
    pub(crate) fn len(&self) -> u64 {
        if self.frames.is_empty() {
            return self.bytes.len() as u64;
        }
        self.frames.iter().map(|frame| u64::from(frame.len)).sum()
    }
}

/// Encoders of one level, as many as there are processors: more would only take memory.
#[derive(Debug)]
pub(crate) struct Compressor {
    level: ZstdLevel,
    idle: Mutex<Vec<FrameEncoder>>,
    running: Budget,
}

impl Compressor {
    pub(crate) fn new(level: ZstdLevel) -> Self {
        Self {
            level,
            idle: Mutex::default(),
            running: Budget::new(available_cpus()),
        }
    }

    /// Returns the frames of some content, each as long as can be.
    pub(crate) fn compress(
        &self,
        content: &[u8],
        buffers: &Buffers,
    ) -> Result<EncodedBytes, FrameError> {
        if content.is_empty() {
            return Ok(EncodedBytes::default());
        }
        let _running = self.running.reserve(1);
        let _scope = scope!("compress");
        let idle = lock(&self.idle).pop();
        let mut encoder = idle.map_or_else(|| FrameEncoder::new(self.level), Ok)?;
        let mut encoded = EncodedBytes::plain(buffers.take(content.len()));
        for content in content.chunks(MAX_FRAME) {
            push_frame(&mut encoder, content, &mut encoded)?;
        }
        lock(&self.idle).push(encoder);
        Ok(encoded)
    }
}

/// Returns how volumes are stored that are compressed at a level, or not.
pub(crate) fn encoding_of(level: Option<ZstdLevel>) -> VolumeEncoding {
    match level {
        Some(_) => VolumeEncoding::Zstd,
        None => VolumeEncoding::Plain,
    }
}

/// Appends the frame of some content.
pub(crate) fn push_frame(
    encoder: &mut FrameEncoder,
    content: &[u8],
    encoded: &mut EncodedBytes,
) -> Result<(), FrameError> {
    let stored = encoder.encode(content, &mut encoded.bytes)?;
    let (Ok(stored), Ok(len), Some(checksum)) = (
        u32::try_from(stored),
        u32::try_from(content.len()),
        frame_checksum(&encoded.bytes),
    ) else {
        let len = content.len() as u64;
        return Err(FrameError::TooLong { len });
    };
    encoded.frames.push(SeekEntry {
        stored,
        len,
        checksum,
    });
    Ok(())
}

/// Returns how many of the first members go into one frame, and their bytes: at least one member.
pub(crate) fn first_group(members: &[Packed], start: usize) -> (usize, Range<usize>) {
    let (mut count, mut end) = (0, start);
    for member in members {
        let len = usize::try_from(member.len).unwrap_or(usize::MAX);
        let next = end.saturating_add(len);
        if count > 0 && next - start > MAX_FRAME {
            break;
        }
        (count, end) = (count + 1, next);
    }
    (count, start..end)
}

/// Cuts the bytes of a large member into frames as they come.
pub(crate) struct LargeMemberFrames<'a> {
    compressor: &'a Compressor,
    buffers: &'a Buffers,
    /// What is no whole frame yet.
    rest: Vec<u8>,
}

impl<'a> LargeMemberFrames<'a> {
    pub(crate) fn new(compressor: &'a Compressor, buffers: &'a Buffers) -> Self {
        Self {
            compressor,
            buffers,
            rest: Vec::new(),
        }
    }

    /// Takes the next bytes; returns the frames that are whole by now.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) -> Result<EncodedBytes, FrameError> {
        let mut all = bytes;
        if !self.rest.is_empty() {
            self.rest.extend_from_slice(&all);
            std::mem::swap(&mut self.rest, &mut all);
            self.buffers.give(std::mem::take(&mut self.rest));
        }
        let whole = all.len() - all.len() % MAX_FRAME;
        let encoded = self.compressor.compress(&all[..whole], self.buffers)?;
        self.rest.extend_from_slice(&all[whole..]);
        self.buffers.give(all);
        Ok(encoded)
    }

    /// Takes the last bytes; returns the last frames.
    pub(crate) fn finish(&mut self, bytes: &[u8]) -> Result<EncodedBytes, FrameError> {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        self.compressor.compress(&rest, self.buffers)
    }
}
