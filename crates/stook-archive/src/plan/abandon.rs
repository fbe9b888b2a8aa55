//! `abandon`: a plan is given up, and what was made for it alone goes.

use std::path::Path;

use stook_index::{Index, RunId};
use stook_sys::{Context, Directory, remove_file};

use super::directory::PlanDirectory;
use super::plan_file::{Made, PlanFile};
use crate::ArchiveError;
use crate::folder::Folder;

/// What was given up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbandonReport {
    /// Parts of the plan that were not committed.
    pub parts: u64,
    /// Those that were built, in the plan directory.
    pub built: u64,
    /// Members in the parts, and bytes of content in them; None if the plan cannot be read.
    pub planned: Option<(u64, u64)>,
    /// True if the archive began with the plan, so that it is gone, too.
    pub is_archive_gone: bool,
    /// Names in the plan directory that stook did not make, and that stay.
    pub foreign: Vec<Vec<u8>>,
}

/// Gives up the plan of an archive: removes its parts and what was built in the plan directory, and the archive can be written
/// again.
///
/// If nothing of the plan was committed, its run is taken back, too; an index and a folder that were made for it go. If
/// something was, that stays, and the run is like one that was interrupted: the next `create` or `update` goes on with it.
/// Files that stook did not make stay where they are. From its first step on nothing of the plan can be committed: a call
/// that was ended early is called again, or the next writer removes what it left.
///
/// # Errors
/// `NoPlan`; `Locked` while a plan is made or committed; `Sys` if something cannot be removed. A builder that is still
/// running fails.
pub fn abandon(archive: &Path) -> Result<AbandonReport, ArchiveError> {
    let folder = Folder::new(archive);
    folder.require_index()?;
    let directory = PlanDirectory::of(archive);
    let no_plan = || ArchiveError::NoPlan {
        path: archive.to_owned(),
    };
    if !directory.has_own()? {
        return Err(no_plan());
    }
    let lock = folder.lock()?;
    if !directory.has_own()? {
        return Err(no_plan());
    }
    let plan = match directory.read() {
        Ok(Some(plan)) => {
            directory.give_up()?;
            Some(plan)
        }
        // An earlier call was ended early.
        Ok(None) => directory.read_given_up().or_else(unless_damaged)?,
        Err(error) => unless_damaged(error)?,
    };
    let (parts, built) = directory.counts()?;
    let foreign = directory.remove()?;
    let mut report = AbandonReport {
        parts,
        built,
        planned: plan.as_ref().map(|plan| (plan.members, plan.bytes)),
        is_archive_gone: false,
        foreign,
    };
    if let Some(plan) = plan {
        report.is_archive_gone = take_back(&folder, &plan)?;
        drop(lock);
        if report.is_archive_gone && plan.made.folder {
            remove_empty(archive)?;
        }
    }
    Ok(report)
}

/// A damaged plan is given up all the same; one that cannot be read may be sound.
fn unless_damaged(error: ArchiveError) -> Result<Option<PlanFile>, ArchiveError> {
    match error {
        ArchiveError::BadPlanFile { source, .. } if !source.is_unread() => Ok(None),
        error => Err(error),
    }
}

/// Takes back the run of a plan of which nothing was committed. Returns true if the archive began with it, and is gone.
fn take_back(folder: &Folder, plan: &PlanFile) -> Result<bool, ArchiveError> {
    let Ok(index) = folder.open_index_to_write() else {
        // The plan is given up all the same, and the next writer reports what is wrong.
        return Ok(false);
    };
    let is_untouched = plan.generation == 0
        && plan.base.is_followed_by(&index, 0, 0)?
        && folder.unfinished()?.is_empty();
    if !is_untouched {
        return Ok(false);
    }
    undo(folder, index, RunId(plan.id().run), plan.made)
}

/// Undoes what was made for a plan, of which nothing may have been committed. Returns true if the archive is gone.
pub(crate) fn undo(
    folder: &Folder,
    mut index: Index,
    run: RunId,
    made: Made,
) -> Result<bool, ArchiveError> {
    if made.run && !index.take_back_run(run)? {
        return Ok(false);
    }
    let is_empty = index.runs()?.is_empty() && index.row_count()? == 0;
    drop(index);
    if made.index && is_empty {
        remove_file(&folder.index())?;
    }
    Ok(made.index && is_empty)
}

/// Removes a folder unless something has come into it.
pub(crate) fn remove_empty(path: &Path) -> Result<(), ArchiveError> {
    let resolved = stook_sys::absolute(path)?;
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Ok(());
    };
    let parent = Directory::open(parent)?;
    match parent.remove_directory(std::os::unix::ffi::OsStrExt::as_bytes(name)) {
        Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => Ok(()),
        other => Ok(other.context("remove", path)?),
    }
}
