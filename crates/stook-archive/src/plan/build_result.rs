//! The file `result` beside a built volume: what became of the members of a part.

use std::io::BufWriter;
use std::path::Path;

use stook_sys::{Context, create_new_file, exists, open_file, sync_directory};

use super::block_file::{bad_file, finish, open_blocks};
use super::blocks::{BlockWriter, Encode, Fields, FileRole};
use super::damage::ONLY_VOLUME;
use super::part::PlanId;
use crate::ArchiveError;
use crate::buffers::Buffers;
use crate::commit_queue::BuiltVolume;
use crate::folder::Folder;
use crate::observer::Observer;
use crate::read::file_md5;

/// The file `result` beside a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BuildResult {
    pub(crate) plan: Option<PlanId>,
    pub(crate) number: u32,
    pub(crate) volume: Option<BuiltVolume>,
    /// Of the file with its rows and attributes; there is one if there is a volume.
    pub(crate) rows_md5: Option<[u8; 16]>,
    pub(crate) members: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: u64,
    pub(crate) overflowed: Vec<Vec<u8>>,
}

const RESULT: &str = "result";

impl BuildResult {
    /// Refuses a result of another plan, or of another part of this one.
    pub(crate) fn require(
        &self,
        plan: PlanId,
        number: u32,
        built: &Path,
    ) -> Result<(), ArchiveError> {
        let path = || built.to_owned();
        if self.plan != Some(plan) {
            return Err(ArchiveError::OtherPlan { path: path() });
        }
        if self.number != number {
            let (path, part) = (path(), self.number);
            return Err(ArchiveError::OtherPart { path, part });
        }
        Ok(())
    }
}

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
    block.extend(result.rows_md5.iter().flatten());
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
    let plan = PlanId::decode(&mut fields)?;
    let number = fields.number32()?;
    let volume = decode_volume(&mut fields)?;
    let rows_md5 = match volume {
        Some(_) => Some(fields.array()?),
        None => None,
    };
    let result = BuildResult {
        plan: Some(plan),
        number,
        volume,
        rows_md5,
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

/// Takes the MD5 of the rows and attributes of a built volume, which enter the index as they are; None if they are missing.
///
/// # Errors
/// `Sys` if they cannot be read, `Interrupted`.
pub(crate) fn rows_md5(
    built: &Path,
    observer: &dyn Observer,
) -> Result<Option<[u8; 16]>, ArchiveError> {
    let path = Folder::new(built).staging(ONLY_VOLUME);
    let Some(found) = exists(&path)? else {
        return Ok(None);
    };
    let file = open_file(&path)?;
    let is_interrupted = || observer.is_interrupted();
    let md5 = file_md5(&file, found.size, &Buffers::default(), is_interrupted);
    match md5.context("read", &path)? {
        Some(md5) => Ok(Some(md5)),
        None => Err(ArchiveError::Interrupted),
    }
}
