//! Which members go into which volume, and in which order workers take them.
//!
//! ```text
//!   plan, in archive order:   a b c d | e f g h | i j k l | m n
//!   volumes:                     3        4         5        6
//!   workers take batches of:  3 4 5 6 3 4 5 6 3 4 5 3 4 5
//! ```
//! The MD5 of a volume is one serial stream of about 0.8 GB/s. Where there are several volumes, as many as
//! [`MOST_ACTIVE`] are built at a time, so that their streams run side by side. What a volume holds
//! follows from the plan alone, never from who is faster.

use std::collections::{BTreeMap, VecDeque};

use stook_index::{VolumeEncoding, VolumeId};
use stook_sys::Owners;
use stook_volume::member_len;

use super::{Batch, Place, Plan, VolumeSplitter, batches, content_len, header_of};

/// Volumes built at a time: their MD5s fill the lanes of an AVX2 register.
const MOST_ACTIVE: usize = 8;

/// How far a volume may be ahead of the first one that is still being built: it is committed only after that
/// one, and its rows wait until then.
const MOST_AHEAD: usize = 16;

/// Where members are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStream {
    /// This volume.
    Volume(VolumeId),
    /// Whatever volume comes next: there is only one at a time, and its end is found while writing.
    Sequence,
}

impl OutputStream {
    /// Returns the volume; None for the sequence.
    pub(crate) fn volume(self) -> Option<VolumeId> {
        match self {
            Self::Volume(id) => Some(id),
            Self::Sequence => None,
        }
    }
}

/// Consecutive members for one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VolumeRange {
    pub(crate) stream: OutputStream,
    pub(crate) start: Place,
    pub(crate) members: usize,
    /// Length of the volume without its trailer, as far as metadata shows it.
    pub(crate) len: u64,
    /// What that was planned to be by the run that began the volume.
    end: Option<u64>,
}

/// Returns everything as one range.
pub(crate) fn in_sequence(plan: &Plan) -> Vec<VolumeRange> {
    let range = plan.places().next().map(|start| VolumeRange {
        stream: OutputStream::Sequence,
        start,
        members: usize::try_from(plan.members).unwrap_or(usize::MAX),
        len: 0,
        end: None,
    });
    range.into_iter().collect()
}

/// Volumes that an interrupted run began: the bytes that the plan gave to the members in them, and what that
/// comes to when all are, if that was planned.
pub(crate) type Begun = BTreeMap<VolumeId, (u64, Option<u64>)>;

/// Splits the plan into volumes of the given numbers. One that was begun gets what it would have got then: a
/// member that was planned for the next one may well be small enough for this one, too.
pub(crate) fn split_into_volumes(
    plan: &Plan,
    splitter: VolumeSplitter,
    owners: &Owners,
    ids: impl IntoIterator<Item = VolumeId>,
    begun: &Begun,
) -> Vec<VolumeRange> {
    let mut ids = ids.into_iter();
    let mut ranges: Vec<VolumeRange> = Vec::new();
    for start in plan.places() {
        let member = plan.member(start);
        let member = member.planned();
        let len = member_len(
            &header_of(&member, owners, splitter.dialect),
            splitter.dialect,
        );
        let content = content_len(&member.metadata);
        let fits = |held, end: Option<u64>| match end {
            Some(end) => held + len <= end,
            None => splitter.fits(held, len, content),
        };
        if let Some(last) = ranges.last_mut()
            && fits(last.len, last.end)
        {
            last.members += 1;
            last.len += len;
            continue;
        }
        // A volume that was begun may have no room for even one.
        let next = ids.by_ref().find_map(|id| {
            let (held, end) = begun.get(&id).copied().unwrap_or_default();
            fits(held, end).then_some((id, held, end))
        });
        let Some((id, held, end)) = next else { break };
        ranges.push(VolumeRange {
            stream: OutputStream::Volume(id),
            start,
            members: 1,
            len: held + len,
            end,
        });
    }
    ranges
}

/// Returns the work in order: ranges side by side, each closed by an empty batch.
pub(crate) fn interleave<'p>(
    plan: &'p Plan,
    ranges: &'p [VolumeRange],
    encoding: VolumeEncoding,
) -> impl Iterator<Item = Batch<'p>> + Send + use<'p> {
    let mut waiting = ranges.iter().enumerate().peekable();
    let mut active: VecDeque<(usize, OutputStream, _)> = VecDeque::new();
    std::iter::from_fn(move || {
        while active.len() < MOST_ACTIVE {
            let first = active.iter().map(|(number, ..)| *number).min();
            let is_near = |number| first.is_none_or(|first| number < first + MOST_AHEAD);
            let Some((number, range)) = waiting.next_if(|(number, _)| is_near(*number)) else {
                break;
            };
            let batches = batches(plan.members_of(range), range.stream, encoding);
            active.push_back((number, range.stream, batches));
        }
        let (number, stream, mut batches) = active.pop_front()?;
        match batches.next() {
            Some(batch) => {
                active.push_back((number, stream, batches));
                Some(batch)
            }
            None => Some(Batch::end_of(stream)),
        }
    })
}
