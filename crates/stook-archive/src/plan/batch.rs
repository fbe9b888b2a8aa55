//! Consecutive members for one worker.

use stook_index::VolumeEncoding;
use stook_pool::Weight;
use stook_volume::{BLOCK, MAX_FRAME, padding};

use super::member::{Member, content_len};
use super::volume_ranges::OutputStream;
use crate::read::BATCH_BYTES;

/// Members in a batch at most. Where every file costs milliseconds, 128 workers share even 20,000 files
/// evenly; where it costs microseconds, the hand-over is still a hundredth of the work.
const BATCH_MEMBERS: usize = 64;

/// The same where a batch becomes one frame of a compressed volume: more members compress better.
const FRAME_MEMBERS: usize = 256;

/// Bytes of such a batch: a frame, and room for names that are longer than usual.
const FRAME_BYTES: u64 = MAX_FRAME as u64 - (16 << 10);

/// Header blocks of a member in it: extended header, records, header block.
const FRAME_OVERHEAD: u64 = 3 * BLOCK;

/// Header blocks and padding of a usual member.
const USUAL_OVERHEAD: usize = 3 * 512 + 512;

/// Consecutive members for one worker: either all small, or a single large one.
pub(crate) struct Batch<'p> {
    pub(crate) stream: OutputStream,
    /// None if the stream ends here.
    pub(crate) members: Vec<Member<'p>>,
    pub(crate) is_large: bool,
    /// About how many bytes the members take in a volume, or a slice of a large one.
    pub(crate) buffer_len: usize,
}

impl Batch<'_> {
    pub(crate) fn end_of(stream: OutputStream) -> Self {
        Self {
            stream,
            members: Vec::new(),
            is_large: false,
            buffer_len: 0,
        }
    }
}

impl Weight for Batch<'_> {
    fn weight(&self) -> usize {
        self.buffer_len
    }
}

/// Where a batch ends.
#[derive(Clone, Copy)]
struct Limits {
    members: usize,
    bytes: u64,
    encoding: VolumeEncoding,
}

impl Limits {
    fn of(encoding: VolumeEncoding) -> Self {
        let (members, bytes) = match encoding {
            VolumeEncoding::Plain => (BATCH_MEMBERS, BATCH_BYTES),
            VolumeEncoding::Zstd => (FRAME_MEMBERS, FRAME_BYTES),
        };
        Self {
            members,
            bytes,
            encoding,
        }
    }

    /// Returns the bytes for which a member with so much content counts.
    fn weight(self, content: u64) -> u64 {
        match self.encoding {
            VolumeEncoding::Plain => content,
            VolumeEncoding::Zstd => content + padding(content) + FRAME_OVERHEAD,
        }
    }
}

/// Returns the work on consecutive members, in order. What follows a batch does not depend on what is in front of it, so
/// a run that goes on behind one cuts the rest as it would have been.
pub(crate) fn batches<'p, M>(
    members: M,
    stream: OutputStream,
    encoding: VolumeEncoding,
) -> impl Iterator<Item = Batch<'p>> + Send
where
    M: Iterator<Item = Member<'p>> + Send,
{
    let mut members = members.peekable();
    std::iter::from_fn(move || {
        let first = members.next()?;
        let content = content_len(&first.metadata());
        let is_large = content > BATCH_BYTES;
        let limits = Limits::of(encoding);
        let mut held = limits.weight(content);
        let mut held_content = content;
        let mut batch = Batch {
            stream,
            members: vec![first],
            is_large,
            buffer_len: 0,
        };
        while !is_large && batch.members.len() < limits.members {
            let weight = |next: &Member<'p>| limits.weight(content_len(&next.metadata()));
            let Some(next) = members.next_if(|next| held + weight(next) <= limits.bytes) else {
                break;
            };
            held += weight(&next);
            held_content += content_len(&next.metadata());
            batch.members.push(next);
        }
        let content = usize::try_from(held_content.min(BATCH_BYTES)).unwrap_or(0);
        batch.buffer_len = content + batch.members.len() * USUAL_OVERHEAD;
        Some(batch)
    })
}
