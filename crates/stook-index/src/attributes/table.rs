//! The attributes of all members at once, for passes over all rows.

use std::ops::ControlFlow;
use std::sync::Mutex;

use stook_pool::{Jobs, WorkerPool};

use super::{AttributesBlock, Members, StoredAttributes};
use crate::blocks::StoredBlock;
use crate::damage::IndexDamage;
use crate::error::IndexError;
use crate::index::Index;
use crate::schema::ATTRIBUTES;
use crate::types::VolumeId;

/// All blocks that can be read.
#[derive(Debug, Default)]
pub struct AttributesTable {
    /// Ascending by volume and first offset.
    blocks: Vec<AttributesBlock>,
}

impl AttributesTable {
    pub(crate) fn load(index: &Index, jobs: Jobs) -> Result<(Self, Vec<IndexDamage>), IndexError> {
        let mut stored = Vec::new();
        let mut damages = Vec::new();
        index.blocks(ATTRIBUTES, &mut |block| {
            match block {
                Ok(block) => stored.push(block),
                Err(damage) => damages.push(damage),
            }
            ControlFlow::Continue(())
        })?;
        let decoded = Mutex::new((Vec::with_capacity(stored.len()), damages));
        let interrupt = &index.interrupt;
        let is_raised = || interrupt.is_raised();
        WorkerPool::new("attributes", jobs)
            .until(&is_raised)
            .for_each(stored.into_iter(), |block: StoredBlock| {
                let id = block.id;
                let block = StoredAttributes(block).decode_or_why();
                let mut decoded = stook_sys::lock(&decoded);
                match block {
                    Ok(block) => decoded.0.push(block),
                    Err(bad) => {
                        let damage = IndexDamage::value(ATTRIBUTES, id, bad.column, bad.why);
                        decoded.1.push(damage);
                    }
                }
            });
        let (mut blocks, mut damages) = stook_sys::into_inner(decoded);
        blocks.sort_unstable_by_key(|block| (block.volume(), block.first()));
        damages.sort_by_key(|damage| damage.rows.as_ref().map(|rows| *rows.start()));
        Ok((Self { blocks }, damages))
    }

    /// Returns the members of a volume from the one at this offset to the end of its block; `None` if no block has it.
    ///
    /// # Cost
    /// Two binary searches. The members that follow cost none.
    pub fn members_from(&self, volume: VolumeId, offset: u64) -> Option<Members<'_>> {
        let is_before =
            |block: &AttributesBlock| (block.volume(), block.first()) <= (volume, offset);
        let place = self.blocks.partition_point(is_before).checked_sub(1)?;
        let block = &self.blocks[place];
        (block.volume() == volume)
            .then(|| block.iter_from(offset))
            .flatten()
    }
}
