//! The file `result` beside a built volume: what became of the members of a part.

use std::io::BufWriter;
use std::path::Path;

use stook_sys::{Context, create_new_file, sync_directory};

use super::block_file::{bad_file, finish, open_blocks};
use super::blocks::{BlockWriter, Encode, Fields, FileRole};
use super::part::PlanId;
use crate::ArchiveError;
use crate::commit_queue::BuiltVolume;

/// The file `result` beside a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BuildResult {
    pub(crate) plan: Option<PlanId>,
    pub(crate) number: u32,
    pub(crate) volume: Option<BuiltVolume>,
    pub(crate) members: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: u64,
    pub(crate) overflowed: Vec<Vec<u8>>,
}

const RESULT: &str = "result";

/// Writes what became of a part, durably.
pub(crate) fn write_result(folder: &Path, result: &BuildResult) -> Result<(), ArchiveError> {
    let path = folder.join(RESULT);
    let file = BufWriter::new(create_new_file(&path)?);
    let write = || {
        let mut blocks = BlockWriter::new(file, FileRole::Built)?;
        blocks.write(b'B', &encode_result(result))?;
        let mut block = Vec::new();
        for name in &result.overflowed {
            block.clear();
            block.bytes(name);
            blocks.write(b'O', &block)?;
        }
        finish(blocks)
    };
    write().context("write", &path)?;
    Ok(sync_directory(folder)?)
}

fn encode_result(result: &BuildResult) -> Vec<u8> {
    let mut block = Vec::new();
    if let Some(plan) = result.plan {
        plan.encode(&mut block);
    }
    block.number(result.number.into());
    encode_volume(result.volume.as_ref(), &mut block);
    for number in [result.members, result.bytes, result.failed] {
        block.number(number);
    }
    block
}

pub(crate) fn encode_volume(volume: Option<&BuiltVolume>, block: &mut Vec<u8>) {
    block.push(u8::from(volume.is_some()));
    if let Some(BuiltVolume { len, md5 }) = volume {
        block.number(*len);
        block.push(u8::from(md5.is_some()));
        block.extend(md5.iter().flatten());
    }
}

pub(crate) fn decode_volume(fields: &mut Fields<'_>) -> Option<Option<BuiltVolume>> {
    if !fields.flag()? {
        return Some(None);
    }
    let len = fields.number()?;
    let md5 = match fields.flag()? {
        true => Some(fields.array()?),
        false => None,
    };
    Some(Some(BuiltVolume { len, md5 }))
}

fn decode_result(payload: &[u8]) -> Option<BuildResult> {
    let mut fields = Fields(payload);
    let result = BuildResult {
        plan: Some(PlanId::decode(&mut fields)?),
        number: fields.number32()?,
        volume: decode_volume(&mut fields)?,
        members: fields.number()?,
        bytes: fields.number()?,
        failed: fields.number()?,
        overflowed: Vec::new(),
    };
    fields.end().map(|()| result)
}

/// Reads what became of a part.
pub(crate) fn read_result(built: &Path) -> Result<BuildResult, ArchiveError> {
    let path = built.join(RESULT);
    let read = || {
        let mut blocks = open_blocks(&path, FileRole::Built)?;
        let first = blocks
            .next_block()?
            .and_then(|(_, payload)| decode_result(payload));
        let mut result = first.ok_or_else(|| blocks.malformed("it is no result"))?;
        while let Some((_, payload)) = blocks.next_block()? {
            let name = Fields(payload).bytes().map(<[u8]>::to_vec);
            match name {
                Some(name) => result.overflowed.push(name),
                None => return Err(blocks.malformed("it is no name")),
            }
        }
        Ok(result)
    };
    read().map_err(bad_file(&path))
}
