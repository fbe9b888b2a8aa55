//! What an interrupted run left in the folder, and what of it the next run can go on from.
//!
//! Only what is provably stook's own is gone on with, or removed. Anything else that has a name of an unfinished volume
//! stays, and its number is passed over.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use stook_index::{Checkpoint, Frame, Index, IndexError, RunId, Staging, VolumeId};
use stook_sys::{
    Context, FileId, exists, metadata, open_file, remove_file, rename_to_new, set_mode,
};

use stook_volume::{Dialect, ZstdLevel};

use crate::ArchiveError;
use crate::compress::encoding_of;
use crate::folder::Folder;
use crate::frame_log::are_usable;
use crate::read::is_stooks;
use crate::survey::{Survey, archive_order};

/// A volume that an interrupted run left, as far as it can be used.
pub(crate) struct PartialVolume {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) staging: Staging,
    /// First names of files with several names that the volume holds, for hard links.
    pub(crate) names: HashMap<FileId, Vec<u8>>,
}

/// In zstash's dialect a hard link needs to know which files the volume holds already.
pub(crate) fn resumable(
    checkpoint: Checkpoint,
    staging: Staging,
    found: &Survey,
) -> Result<PartialVolume, ArchiveError> {
    let mut names: HashMap<FileId, Vec<u8>> = HashMap::new();
    if !found.held_links.is_empty() {
        let mut staged = HashSet::new();
        staging.rows(|row| {
            staged.insert(row.name.to_vec());
            ControlFlow::Continue(())
        })?;
        for (name, identity) in found
            .held_links
            .iter()
            .filter(|(name, _)| staged.contains(name))
        {
            let first = names.entry(*identity).or_insert_with(|| name.clone());
            if archive_order(name, first).is_lt() {
                first.clone_from(name);
            }
        }
    }
    Ok(PartialVolume {
        checkpoint,
        staging,
        names,
    })
}

/// Returns the first number that is free in the index and in the folder.
///
/// # Errors
/// `NoVolumeNumber`, or if the index or the folder cannot be read.
pub(crate) fn next_volume(
    folder: &Folder,
    index: &Index,
    blank: Blank,
) -> Result<VolumeId, ArchiveError> {
    let in_index = index.next_volume()?.0.checked_sub(1).map(VolumeId::plain);
    let in_folder = folder.volumes()?.into_iter().next_back();
    let foreign = foreign_numbers(folder, blank)?.into_iter().next_back();
    match in_index.max(in_folder).max(foreign) {
        None => Ok(VolumeId::plain(0)),
        Some(last) => volume_behind(folder, last),
    }
}

/// Returns the number behind that of a volume.
///
/// # Errors
/// `NoVolumeNumber`.
pub(crate) fn volume_behind(folder: &Folder, last: VolumeId) -> Result<VolumeId, ArchiveError> {
    if let Some(next) = last.next() {
        return Ok(next);
    }
    // The one at fault is a file, unless it is in the index alone; behind it are at most the volumes of this run.
    let in_folder = folder.volumes()?.into_iter().chain(folder.unfinished()?);
    let near = in_folder.filter(|id| last.0 - id.0 <= u64::from(u32::MAX));
    Err(ArchiveError::NoVolumeNumber {
        path: folder.path().to_owned(),
        last: near.max().unwrap_or(last),
    })
}

/// Whose the staged rows of a volume are if their file is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blank {
    /// Of a run that was interrupted.
    Own,
    /// Of the user: there is no such run, or what it left has been removed.
    Foreign,
}

/// Returns the numbers that no volume can have, because a file that stook did not make has a name that the volume
/// would need while it is written.
pub(crate) fn foreign_numbers(
    folder: &Folder,
    blank: Blank,
) -> Result<Vec<VolumeId>, ArchiveError> {
    let mut numbers = folder.unfinished()?;
    numbers.retain(|&id| !folder.is_own_unfinished(id, blank == Blank::Own));
    Ok(numbers)
}

/// Removes a volume that was never committed.
pub(crate) fn remove_unfinished(folder: &Folder, id: VolumeId) -> Result<(), ArchiveError> {
    remove_file(&folder.partial(id))?;
    remove_staging(folder, id)
}

/// Removes what stook left of an archive whose index is gone: nothing says which run it was.
pub(crate) fn remove_all_unfinished(folder: &Folder) -> Result<(), ArchiveError> {
    for id in folder.unfinished()? {
        if folder.is_own_unfinished(id, false) {
            remove_unfinished(folder, id)?;
        }
    }
    Ok(())
}

/// Removes the staged rows of a volume.
pub(crate) fn remove_staging(folder: &Folder, id: VolumeId) -> Result<(), ArchiveError> {
    Ok(Staging::discard(folder.staging(id))?)
}

/// Looks for what an interrupted run left, and cleans up what cannot be used.
///
/// Returns the volumes to go on with, in order.
pub(crate) fn recover(
    folder: &Folder,
    index: &Index,
    run: Option<RunId>,
) -> Result<Vec<(Checkpoint, Staging)>, ArchiveError> {
    Index::discard_unfinished(folder.index())?;
    let mut usable = Vec::new();
    let unfinished = folder.unfinished()?;
    if unfinished.is_empty() {
        return Ok(usable);
    }
    let first_uncommitted = index.next_volume()?;
    let zstd = index.zstd_level()?.and_then(ZstdLevel::new);
    for id in unfinished {
        let id = id.stored_as(encoding_of(zstd));
        if !folder.is_own_unfinished(id, run.is_some()) {
            continue;
        }
        // Volumes are committed in order: one with rows, or before one with rows, is never touched.
        if id < first_uncommitted {
            remove_unfinished(folder, id)?;
            continue;
        }
        if exists(&folder.volume(id))?.is_some() {
            rename_to_new(&folder.volume(id), &folder.partial(id))?;
        }
        // Volumes lose their write bits before they are synced and renamed.
        make_writable(&folder.partial(id))?;
        match read_checkpoint(folder, id, run)? {
            Some(found) => usable.push(found),
            None => remove_unfinished(folder, id)?,
        }
    }
    Ok(usable)
}

/// Returns whether an unfinished volume is written in this dialect: `check` trusts the headers of a volume
/// that begins in stook's, so there must be no mixtures.
pub(crate) fn is_of_dialect(
    folder: &Folder,
    id: VolumeId,
    dialect: Dialect,
) -> Result<bool, ArchiveError> {
    if id.is_compressed() {
        return Ok(dialect == Dialect::Stook);
    }
    let file = open_file(&folder.partial(id))?;
    Ok(is_stooks(&file) == (dialect == Dialect::Stook))
}

fn make_writable(path: &Path) -> Result<(), ArchiveError> {
    let file = match open_file(path) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    let mode = metadata(&file).context("look at", path)?.mode;
    if mode & 0o200 == 0 {
        set_mode(&file, mode | 0o200).context("set the mode of", path)?;
    }
    Ok(())
}

/// A checkpoint that is damaged, or whose volume is shorter than it says, is none. Any other error is
/// not a reason to throw work away.
fn read_checkpoint(
    folder: &Folder,
    id: VolumeId,
    run: Option<RunId>,
) -> Result<Option<(Checkpoint, Staging)>, ArchiveError> {
    let staging = match Staging::open_until(folder.staging(id), &folder.interrupt) {
        Ok(staging) => staging,
        Err(IndexError::NotFound { .. } | IndexError::BadStaging { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let checkpoint = match staging.checkpoint() {
        Ok(Some(checkpoint)) => checkpoint,
        Ok(None) | Err(IndexError::BadStaging { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let len = exists(&folder.partial(id))?.map_or(0, |metadata| metadata.size);
    let is_this = checkpoint.volume == id && checkpoint.volume.encoding() == id.encoding();
    let is_there = Some(checkpoint.run) == run && len >= checkpoint.stored;
    let is_usable = is_this && is_there && has_its_frames(&checkpoint, &staging)?;
    Ok(is_usable.then_some((checkpoint, staging)))
}

/// Returns true if the frames on record are all that a compressed volume holds.
fn has_its_frames(checkpoint: &Checkpoint, staging: &Staging) -> Result<bool, ArchiveError> {
    if !checkpoint.volume.is_compressed() {
        return Ok(checkpoint.stored == checkpoint.offset);
    }
    Ok(are_usable(&staging.frames()?, end_of(checkpoint)))
}

/// Returns where the members of an unfinished volume end.
pub(crate) fn end_of(checkpoint: &Checkpoint) -> Frame {
    Frame {
        offset: checkpoint.offset,
        stored: checkpoint.stored,
    }
}
