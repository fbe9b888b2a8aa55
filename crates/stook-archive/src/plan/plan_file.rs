//! The file `plan`: which run it is of, what the archive held then, and which parts there are.

use std::ops::Range;

use stook_index::{Index, Volume};
use stook_volume::crc32;

use super::blocks::{Encode, Fields};
use super::part::{PartHeader, PlanId};
use crate::ArchiveError;

/// What an archive holds: nothing else may have been written between plan and commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) last_row: i64,
    /// Rows of `tars`, and the checksum of all of them.
    volumes: u64,
    checksum: u32,
}

/// The file `plan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanFile {
    /// How members are written; its number means nothing.
    pub(crate) header: PartHeader,
    /// How often parts were committed, and others put in their place.
    pub(crate) generation: u64,
    pub(crate) base: Base,
    /// Those that are to be built.
    pub(crate) parts: Range<u32>,
    /// Names in the file `deleted`.
    pub(crate) deleted: u64,
    /// Files that failed so far.
    pub(crate) failed: u64,
    /// Members of the parts.
    pub(crate) members: u64,
    /// Bytes of content in them.
    pub(crate) bytes: u64,
    pub(crate) made: Made,
}

/// What was not there before the plan, so that it goes with a plan that is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Made {
    /// The folder of the archive.
    pub(crate) folder: bool,
    pub(crate) index: bool,
    /// The run; false if it goes on with an interrupted one.
    pub(crate) run: bool,
}

impl PlanFile {
    pub(crate) fn id(&self) -> PlanId {
        self.header.plan
    }
}

impl Base {
    pub(crate) fn of(index: &Index) -> Result<Self, ArchiveError> {
        let volumes = index.volume_records()?;
        Ok(Self {
            last_row: index.last_row()?,
            volumes: volumes.len() as u64,
            checksum: checksum(&volumes),
        })
    }

    /// Returns true if so many volumes and rows were added, and nothing else: the last of the volumes are those.
    pub(crate) fn is_followed_by(
        &self,
        index: &Index,
        volumes: u64,
        rows: u64,
    ) -> Result<bool, ArchiveError> {
        let records = index.volume_records()?;
        let before = usize::try_from(self.volumes).unwrap_or(usize::MAX);
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        Ok(records.len() as u64 == self.volumes.saturating_add(volumes)
            && index.last_row()? == self.last_row.saturating_add(rows)
            && checksum(records.get(..before).unwrap_or_default()) == self.checksum)
    }

    fn encode(&self, block: &mut Vec<u8>) {
        block.signed(self.last_row);
        block.number(self.volumes);
        block.number(self.checksum.into());
    }

    fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            last_row: fields.signed()?,
            volumes: fields.number()?,
            checksum: fields.number32()?,
        })
    }
}

fn checksum(volumes: &[Volume]) -> u32 {
    let mut text = Vec::new();
    for volume in volumes {
        text.number(volume.id.0);
        text.number(volume.size);
        text.bytes(volume.md5.as_ref().map_or(&[][..], |md5| md5));
    }
    crc32(&[&text])
}

pub(crate) fn encode_plan(plan: &PlanFile) -> Vec<u8> {
    let mut block = Vec::new();
    plan.header.encode(&mut block);
    block.number(plan.generation);
    plan.base.encode(&mut block);
    encode_range(&plan.parts, &mut block);
    for number in [plan.deleted, plan.failed, plan.members, plan.bytes] {
        block.number(number);
    }
    let Made { folder, index, run } = plan.made;
    block.extend([folder, index, run].map(u8::from));
    block
}

pub(crate) fn decode_plan(payload: &[u8]) -> Option<PlanFile> {
    let mut fields = Fields(payload);
    let plan = PlanFile {
        header: PartHeader::decode(&mut fields)?,
        generation: fields.number()?,
        base: Base::decode(&mut fields)?,
        parts: decode_range(&mut fields)?,
        deleted: fields.number()?,
        failed: fields.number()?,
        members: fields.number()?,
        bytes: fields.number()?,
        made: Made {
            folder: fields.flag()?,
            index: fields.flag()?,
            run: fields.flag()?,
        },
    };
    // The next one has a number, too.
    let is_last = plan.generation == u64::MAX;
    fields.end().filter(|()| !is_last).map(|()| plan)
}

pub(crate) fn encode_range(range: &Range<u32>, block: &mut Vec<u8>) {
    block.number(range.start.into());
    block.number(range.end.into());
}

pub(crate) fn decode_range(fields: &mut Fields<'_>) -> Option<Range<u32>> {
    let range = fields.number32()?..fields.number32()?;
    (range.start <= range.end).then_some(range)
}
