//! Consecutive members for one worker.

use stook_pool::Weight;

use super::member::{Member, content_len};
use super::volume_ranges::OutputStream;
use crate::read::BATCH_BYTES;

/// Members in a batch at most. Where every file costs milliseconds, 128 workers share even 20,000 files
/// evenly; where it costs microseconds, the hand-over is still a hundredth of the work.
const BATCH_MEMBERS: usize = 64;

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

/// Returns the work on consecutive members, in order.
pub(crate) fn batches<'p, M>(
    members: M,
    stream: OutputStream,
) -> impl Iterator<Item = Batch<'p>> + Send
where
    M: Iterator<Item = Member<'p>> + Send,
{
    let mut members = members.peekable();
    std::iter::from_fn(move || {
        let first = members.next()?;
        let mut held = content_len(&first.metadata());
        let is_large = held > BATCH_BYTES;
        let mut batch = Batch {
            stream,
            members: vec![first],
            is_large,
            buffer_len: 0,
        };
        while !is_large && batch.members.len() < BATCH_MEMBERS {
            let fits = |next: &Member<'p>| held + content_len(&next.metadata()) <= BATCH_BYTES;
            let Some(next) = members.next_if(fits) else {
                break;
            };
            held += content_len(&next.metadata());
            batch.members.push(next);
        }
        let content = usize::try_from(held.min(BATCH_BYTES)).unwrap_or(0);
        batch.buffer_len = content + batch.members.len() * USUAL_OVERHEAD;
        Some(batch)
    })
}
