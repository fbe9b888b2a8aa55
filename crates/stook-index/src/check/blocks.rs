//! The blocks of attributes and of frames: each is as it was written, and of a volume that rows name.

use super::Check;
use crate::AttributesBlock;
use crate::blocks::{BAD_CRC, BAD_DATA, BAD_ROW, COLUMNS, StoredBlock};
use crate::error::{IndexError, READ};
use crate::frames::FramesBlock;
use crate::row::BadValue;
use crate::schema::{ATTRIBUTES, FRAMES};
use crate::types::VolumeId;

/// Where the parts lie that a block tells of.
struct Extent {
    row: i64,
    volume: VolumeId,
    first: u64,
    last: u64,
}

impl Check<'_> {
    pub(super) fn attributes(&mut self) -> Result<(), IndexError> {
        self.blocks(ATTRIBUTES, |block| {
            let entries = block.entries;
            AttributesBlock::decode(block.volume, block.first, block.data)
                .filter(|block| block.len() as u64 == entries)
                .map(|block| block.last())
        })
    }

    pub(super) fn frames(&mut self) -> Result<(), IndexError> {
        self.blocks(FRAMES, |block| {
            let entries = block.entries;
            FramesBlock::decode(block.first, block.data)
                .filter(|block| block.iter().len() as u64 == entries)
                .and_then(|block| block.iter().last())
                .map(|frame| frame.offset)
        })
    }

    /// `last` returns where the last part begins, if the block can be decoded.
    fn blocks(
        &mut self,
        table: &'static str,
        last: impl Fn(StoredBlock) -> Option<u64>,
    ) -> Result<(), IndexError> {
        let mut extents: Vec<Extent> = Vec::new();
        self.each(table, COLUMNS, |check, row, values| {
            let block = StoredBlock::of_row(values).map_err(check.index.fault(READ))?;
            let bad = match block {
                None => Some(BAD_ROW),
                Some(block) if !block.is_as_written() => Some(BAD_CRC),
                Some(block) => {
                    let (volume, first) = (block.volume, block.first);
                    let is_known = check.volumes.contains_key(&volume)
                        || check.has_unknown_rows
                        || check.has_bad_rows;
                    let found = last(block);
                    extents.extend(found.map(|last| Extent {
                        row,
                        volume,
                        first,
                        last,
                    }));
                    if found.is_none() {
                        Some(BAD_DATA)
                    } else {
                        (!is_known).then_some(BAD_VOLUME)
                    }
                }
            };
            if let Some(bad) = bad {
                check.bad_value(table, row, bad);
            }
            Ok(())
        })?;
        extents.sort_by_key(|extent| (extent.volume, extent.first));
        for pair in extents.windows(2) {
            if pair[0].volume == pair[1].volume && pair[0].last >= pair[1].first {
                self.bad_value(table, pair[1].row, AMONG_OTHERS);
            }
        }
        Ok(())
    }
}

const BAD_VOLUME: BadValue = BadValue::new("volume", "its volume has no members");
const AMONG_OTHERS: BadValue =
    BadValue::new("first", "it begins before the block in front of it ends");
