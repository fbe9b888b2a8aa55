//! The file `commit`: which part becomes which volume. From here on a commit that was killed goes on.

use std::ops::Range;

use stook_index::VolumeId;
use stook_sys::exists;

use super::block_file::{bad_file, open_blocks};
use super::blocks::{Encode, Fields, FileRole};
use super::build_result::{decode_volume, encode_volume};
use super::directory::PlanDirectory;
use super::plan_file::{PlanFile, decode_range, encode_range};
use crate::ArchiveError;
use crate::commit_queue::BuiltVolume;
use crate::compress::encoding_of;

/// The file `commit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitLog {
    pub(crate) generation: u64,
    pub(crate) volumes: Vec<AssignedVolume>,
    /// Parts with what is left over.
    pub(crate) remaining: Range<u32>,
    /// Members that are given up.
    pub(crate) failed: u64,
}

/// A part that becomes a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AssignedVolume {
    pub(crate) part: u32,
    pub(crate) id: VolumeId,
    pub(crate) built: BuiltVolume,
    /// Of the file with its rows and attributes.
    pub(crate) rows_md5: [u8; 16],
    pub(crate) members: u64,
    pub(crate) bytes: u64,
}

impl CommitLog {
    /// Returns false if its numbers are too large to be added.
    fn can_be_summed(&self, plan: &PlanFile) -> bool {
        let sum = |of: fn(&AssignedVolume) -> u64| {
            let mut numbers = self.volumes.iter().map(of);
            numbers.try_fold(0, u64::checked_add)
        };
        sum(|volume| volume.members).is_some()
            && sum(|volume| volume.bytes).is_some()
            && self.failed.checked_add(plan.failed).is_some()
    }
}

pub(crate) fn write_log(directory: &PlanDirectory, log: &CommitLog) -> Result<(), ArchiveError> {
    directory.replace("commit", FileRole::Commit, |blocks| {
        let mut block = Vec::new();
        block.number(log.generation);
        encode_range(&log.remaining, &mut block);
        block.number(log.failed);
        blocks.write(b'C', &block)?;
        for volume in &log.volumes {
            block.clear();
            block.number(volume.part.into());
            block.number(volume.id.0);
            encode_volume(Some(&volume.built), &mut block);
            block.extend(volume.rows_md5);
            block.number(volume.members);
            block.number(volume.bytes);
            blocks.write(b'V', &block)?;
        }
        Ok(())
    })
}

/// Reads what a commit that was killed had decided; None if it had not, or was of the parts before these.
pub(crate) fn read_log(
    directory: &PlanDirectory,
    plan: &PlanFile,
) -> Result<Option<CommitLog>, ArchiveError> {
    let path = directory.commit_log();
    if exists(&path)?.is_none() {
        return Ok(None);
    }
    let read = || {
        let mut blocks = open_blocks(&path, FileRole::Commit)?;
        let first = blocks
            .next_block()?
            .and_then(|(_, payload)| decode_log(payload));
        let mut log = first.ok_or_else(|| blocks.malformed("it is no log"))?;
        while let Some((_, payload)) = blocks.next_block()? {
            match decode_assigned(payload) {
                Some(volume) => log.volumes.push(AssignedVolume {
                    id: volume.id.stored_as(encoding_of(plan.header.zstd)),
                    ..volume
                }),
                None => return Err(blocks.malformed("it is no volume")),
            }
        }
        if !log.can_be_summed(plan) {
            return Err(blocks.malformed("it counts more than an archive can hold"));
        }
        Ok(log)
    };
    let log = read().map_err(bad_file(&path))?;
    Ok((log.generation == plan.generation).then_some(log))
}

fn decode_log(payload: &[u8]) -> Option<CommitLog> {
    let mut fields = Fields(payload);
    let log = CommitLog {
        generation: fields.number()?,
        volumes: Vec::new(),
        remaining: decode_range(&mut fields)?,
        failed: fields.number()?,
    };
    fields.end().map(|()| log)
}

fn decode_assigned(payload: &[u8]) -> Option<AssignedVolume> {
    let mut fields = Fields(payload);
    let volume = AssignedVolume {
        part: fields.number32()?,
        id: VolumeId::plain(fields.number()?),
        built: decode_volume(&mut fields)??,
        rows_md5: fields.array()?,
        members: fields.number()?,
        bytes: fields.number()?,
    };
    fields.end().map(|()| volume)
}
