//! The blocks in the index.

use std::ops::ControlFlow;

use super::AttributesBlock;
use crate::blocks::{BAD_CRC, BAD_DATA, StoredBlock};
use crate::error::IndexError;
use crate::index::Index;
use crate::row::BadValue;
use crate::schema::ATTRIBUTES;
use crate::types::VolumeId;

/// A block as it lies in the index: what decodes it need not be what reads the index.
#[derive(Debug)]
pub struct StoredAttributes(pub(super) StoredBlock);

impl StoredAttributes {
    /// Returns the volume.
    pub fn volume(&self) -> VolumeId {
        self.0.volume
    }

    /// Returns the block; `None` if it is not as it was written.
    pub fn decode(self) -> Option<AttributesBlock> {
        self.decode_or_why().ok()
    }

    pub(super) fn decode_or_why(self) -> Result<AttributesBlock, BadValue> {
        let Self(block) = self;
        if !block.is_as_written() {
            return Err(BAD_CRC);
        }
        let entries = block.entries;
        AttributesBlock::decode(block.volume, block.first, block.data)
            .filter(|block| block.len() as u64 == entries)
            .ok_or(BAD_DATA)
    }
}

impl Index {
    /// Returns the block with the attributes of the member that begins at this offset of a volume. `None` if its header
    /// must be read: zstash wrote it, or the block is damaged.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// One lookup; decodes up to 4,096 members, so the caller keeps the block for the next ones.
    pub fn attributes_at(
        &self,
        volume: VolumeId,
        offset: u64,
    ) -> Result<Option<AttributesBlock>, IndexError> {
        let found = self.block_at(ATTRIBUTES, volume, offset)?;
        let block = found.and_then(|block| StoredAttributes(block).decode());
        Ok(block.filter(|block| block.contains(offset)))
    }

    /// Shows the blocks of a volume in the order of their members, until `visit` breaks off. Damaged ones are left out.
    ///
    /// # Errors
    /// As [`Index::attributes_at`].
    pub fn attributes_of_volume(
        &self,
        volume: VolumeId,
        mut visit: impl FnMut(AttributesBlock) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        self.blocks_of_volume(ATTRIBUTES, volume, &mut |block| {
            let decoded = StoredAttributes(block).decode();
            decoded.map_or(ControlFlow::Continue(()), &mut visit)
        })
    }

    /// Shows all blocks of all volumes, in no order that counts, until `visit` breaks off.
    ///
    /// # Errors
    /// As [`Index::attributes_at`].
    ///
    /// # Cost
    /// Reads about 10 bytes a member. Decoding is left to the caller, who may have several threads for it.
    pub fn attributes(
        &self,
        mut visit: impl FnMut(StoredAttributes) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        self.blocks(ATTRIBUTES, &mut |block| match block {
            Ok(block) => visit(StoredAttributes(block)),
            Err(_) => ControlFlow::Continue(()),
        })
    }
}
