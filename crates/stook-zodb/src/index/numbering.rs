//! Small numbers for all objects of an index: the places of a table with a row for each.
//!
//! A slot is a number below 2^32; a dense chunk has 1,024, whatever it holds, so there are at most a third more slots than
//! objects. The index must not change meanwhile.

use super::{Index, join, split};
use crate::id::Oid;

/// Slots for the objects of an index.
#[derive(Debug)]
pub(crate) struct Numbering {
    /// First slot of each near chunk, and behind them of each far one; one more at the end.
    bases: Vec<u32>,
    /// Numbers of the far chunks.
    far: Vec<u64>,
}

impl Numbering {
    /// Numbers all objects; `None` if there are too many.
    pub(crate) fn new(index: &Index) -> Option<Self> {
        let mut bases = Vec::with_capacity(index.near.len() + index.far.len() + 1);
        let mut next = 0_u32;
        for (_, chunk) in index.chunks() {
            bases.push(next);
            next = next.checked_add(u32::try_from(chunk.slots()).ok()?)?;
        }
        bases.push(next);
        // The last number is for "none".
        let far = index.far.keys().copied().collect();
        (next < u32::MAX).then_some(Self { bases, far })
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.bases.last().map_or(0, |end| *end as usize)
    }

    /// Returns the slot of an object.
    #[inline]
    pub(crate) fn slot(&self, index: &Index, oid: Oid) -> Option<u32> {
        let (number, suffix) = split(oid);
        let at = match usize::try_from(number) {
            Ok(at) if at < index.near.len() => at,
            _ => index.near.len() + self.far.binary_search(&number).ok()?,
        };
        let slot = index.chunk(number)?.slot(suffix)?;
        Some(self.bases[at] + u32::try_from(slot).ok()?)
    }

    /// Returns the object of a slot.
    pub(crate) fn oid(&self, index: &Index, slot: u32) -> Option<Oid> {
        let at = self
            .bases
            .partition_point(|base| *base <= slot)
            .checked_sub(1)?;
        let number = match at.checked_sub(index.near.len()) {
            None => at as u64,
            Some(far) => *self.far.get(far)?,
        };
        let within = (slot - self.bases[at]) as usize;
        let (suffix, _) = index.chunk(number)?.entry(within)?;
        Some(join(number, suffix))
    }
}
