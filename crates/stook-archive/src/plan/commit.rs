//! `commit`: built parts become volumes of the archive.
//!
//! ```text
//!   1  every part was built, its rows are members that were planned,
//!      its volume has the MD5 that it was built with                    taken-000003
//!   2  members that are missing go into other parts                     part-000007
//!   3  which part becomes which volume                                  commit, durable
//!   4  for each: rows and volume get the names of an unfinished volume, then all is as in `create`
//!   5  the run ends, or the plan names the other parts
//! ```
//! A commit that was killed begins anew before step 3, and goes on from step 4 behind it, when it is called again. What was
//! built is compared once more before it moves: a volume that is damaged by then takes the commit back to step 1, if nothing
//! has moved yet. Later its members count as failed, for others that failed are in other parts already.
//! Whatever it left, an archive whose plan is abandoned then is one with an interrupted run.

use std::collections::BTreeSet;
use std::path::Path;

use stook_index::{Frame, Index, Mtime, RunId, Staging, Volume, VolumeId, VolumeParts};
use stook_sys::{exists, remove_file, rename_to_new, sync_directory, utc_now};
use stook_timers::scope;

use super::commit_log::{AssignedVolume, CommitLog, read_log};
use super::commit_options::CommitOptions;
use super::damage::{BuiltDamage, ONLY_VOLUME, assigned_damage};
use super::deleted_names::DeletedNames;
use super::directory::{PlanDirectory, PlanState, plan_state, remove_built};
use super::parts_writer::PlannedPart;
use super::plan_file::{Base, PlanFile};
use super::prepare::Preparation;
use crate::ArchiveError;
use crate::attributes::fill_new_volumes;
use crate::folder::Folder;
use crate::frame_log::last_frames;
use crate::observer::{CountingObserver, Note, Observer};
use crate::recovery::{end_of, remove_staging, remove_unfinished};

/// What a commit did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitReport {
    /// Members committed.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Volumes committed.
    pub volumes: u64,
    /// Names recorded as deleted.
    pub deleted: u64,
    /// Files that failed in the whole run so far and are in no part.
    pub failed: u64,
    /// Parts with what overflowed or failed. If there are none the run is finished; else the archive stays reserved, and these
    /// are to be built and committed.
    pub remaining: Vec<PlannedPart>,
    /// True if an earlier call had committed everything, and was ended before it had removed the plan. This one has removed
    /// it; what the earlier one had counted is not known any more, but for what failed.
    pub was_committed: bool,
    /// Once everything is committed: names that stay in the plan directory, because stook did not make them or cannot remove
    /// them.
    pub foreign: Vec<Vec<u8>>,
}

/// Commits the parts of a plan, which must all be built, and ends the run if nothing is left over.
///
/// Volumes get the next numbers in the order of the parts, and their rows one transaction each. What was built is compared
/// with its part first: rows, length and MD5 of the volume. With [`FailedMembers::Record`](crate::FailedMembers::Record), parts of members that failed
/// before need not be built. A call that was ended after the run had ended goes on, too: it removes what is left of the plan.
/// Once everything is committed, what cannot be removed of the plan is no error, but named in the report.
///
/// # Errors
/// `NoPlan`; `NotBuilt` if parts are missing; `PlanOutdated` if another program has written to the archive since it was
/// planned; `OtherPlan`, `OtherPart`, `BadPlanFile` if what was built is not what was planned; `NoVolumeNumber`; `BadBuilt` if it is damaged: the archive is
/// unchanged then, and [`build_part`](crate::build_part) builds these parts again. `Sys` if a destination is missing or not on the
/// archive's file system. After any other error the same call goes on.
///
/// # Cost
/// One pass over the parts and four over the files of their rows, and the transactions: rows are hashed, checked by SQLite and
/// compared before anything is decided, and hashed once more before they move. With [`BuiltVolumes::Verified`](crate::BuiltVolumes::Verified) volumes are read once, up to
/// eight at a time: at the speed of the storage, or of one MD5 for a single volume. No byte of a volume is copied.
pub fn commit(
    archive: &Path,
    options: &CommitOptions,
    observer: &dyn Observer,
) -> Result<CommitReport, ArchiveError> {
    let folder = Folder::until(archive, observer.interrupt());
    let directory = PlanDirectory::of(archive);
    let no_plan = || ArchiveError::NoPlan {
        path: archive.to_owned(),
    };
    // Looked at first: what is refused leaves no trace of the lock.
    plan_state(archive, &folder.open_index()?)?.ok_or_else(no_plan)?;
    let _lock = folder.lock()?;
    let mut index = folder.open_index_to_write()?;
    let report = match plan_state(archive, &index)?.ok_or_else(no_plan)? {
        PlanState::Reserving(plan) => commit_plan(&folder, &mut index, &plan, options, observer)?,
        PlanState::Committed { failed } => CommitReport {
            failed,
            was_committed: true,
            foreign: directory.clean_up(),
            ..CommitReport::default()
        },
    };
    if report.remaining.is_empty() {
        // The archive is whole by now, whatever the volumes of others are like.
        let observer = CountingObserver::new(observer);
        fill_new_volumes(&folder, &mut index, options.jobs, &observer)?;
    }
    Ok(report)
}

fn commit_plan(
    folder: &Folder,
    index: &mut Index,
    plan: &PlanFile,
    options: &CommitOptions,
    observer: &dyn Observer,
) -> Result<CommitReport, ArchiveError> {
    let directory = PlanDirectory::of(folder.path());
    let committer = Committer {
        folder,
        directory: &directory,
        plan,
        observer,
    };
    let log = match committer.log(index)? {
        Some(log) => log,
        None => {
            committer.require_base(index, &[])?;
            let preparation = Preparation {
                folder,
                directory: &directory,
                options,
                plan,
                observer,
            };
            preparation.decide(index)?
        }
    };
    committer.require_base(index, &log.volumes)?;
    let mut report = committer.commit_volumes(index, &log)?;
    committer.end(index, &log, &mut report)?;
    Ok(report)
}

struct Committer<'a> {
    folder: &'a Folder,
    directory: &'a PlanDirectory,
    plan: &'a PlanFile,
    observer: &'a dyn Observer,
}

impl Committer<'_> {
    /// Refuses to write behind what another program has written since.
    fn require_base(&self, index: &Index, volumes: &[AssignedVolume]) -> Result<(), ArchiveError> {
        let present = present_volumes(index)?;
        let committed = volumes.iter().filter(|volume| present.contains(&volume.id));
        let (volumes, rows) = committed.fold((0, 0), |(volumes, rows), volume| {
            (volumes + 1, rows + volume.members)
        });
        if self.plan.base.is_followed_by(index, volumes, rows)? {
            Ok(())
        } else {
            Err(ArchiveError::PlanOutdated {
                path: self.folder.path().to_owned(),
            })
        }
    }

    /// Returns what a commit that was killed has decided, unless it is to be decided anew; then no log is left.
    fn log(&self, index: &Index) -> Result<Option<CommitLog>, ArchiveError> {
        let log = read_log(self.directory, self.plan)?;
        if let Some(log) = &log
            && (self.is_begun(index, log)? || !self.is_damaged(log)?)
        {
            return Ok(Some(log.clone()));
        }
        // That of the parts before these is left by a kill, too.
        self.directory.remove_log()?;
        for part in log.map_or(0..0, |log| log.remaining) {
            remove_file(&self.directory.part(part))?;
        }
        Ok(None)
    }

    /// Returns true if a volume of the log is in the archive, or on its way.
    fn is_begun(&self, index: &Index, log: &CommitLog) -> Result<bool, ArchiveError> {
        let present = present_volumes(index)?;
        for volume in &log.volumes {
            let is_moving = exists(&self.folder.staging(volume.id))?.is_some();
            if is_moving || present.contains(&volume.id) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_damaged(&self, log: &CommitLog) -> Result<bool, ArchiveError> {
        for volume in &log.volumes {
            if self.damage(volume)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn damage(&self, volume: &AssignedVolume) -> Result<Option<BuiltDamage>, ArchiveError> {
        let taken = self.directory.taken(volume.part);
        assigned_damage(self.folder, &taken, volume, self.observer)
    }

    fn commit_volumes(
        &self,
        index: &mut Index,
        log: &CommitLog,
    ) -> Result<CommitReport, ArchiveError> {
        let mut report = CommitReport {
            failed: self.plan.failed + log.failed,
            ..CommitReport::default()
        };
        let (members, bytes) = log.volumes.iter().fold((0, 0), |(members, bytes), volume| {
            (members + volume.members, bytes + volume.bytes)
        });
        self.observer.phase("commit", Some(members), Some(bytes));
        let present = present_volumes(index)?;
        for volume in &log.volumes {
            self.observer.advanced(volume.members, volume.bytes);
            if !present.contains(&volume.id) {
                if self.damage(volume)?.is_some() {
                    self.give_up(volume)?;
                    report.failed += volume.members;
                    continue;
                }
                self.commit_volume(index, volume)?;
            }
            remove_staging(self.folder, volume.id)?;
            report.members += volume.members;
            report.bytes += volume.bytes;
            report.volumes += 1;
        }
        Ok(report)
    }

    /// Leaves a volume that is damaged to the next update.
    fn give_up(&self, volume: &AssignedVolume) -> Result<(), ArchiveError> {
        let (folder, id) = (self.folder, volume.id);
        if exists(&folder.staging(id))?.is_some() {
            move_if_there(&folder.volume(id), &folder.partial(id))?;
            remove_unfinished(folder, id)?;
        }
        let (part, members) = (volume.part, volume.members);
        self.observer.note(&Note::BuiltLost { part, members });
        Ok(())
    }

    /// Removes the parts that are committed. What cannot be removed goes with the plan, or is named then.
    fn remove_parts(&self) {
        for part in self.plan.parts.clone() {
            let _ = remove_built(&self.directory.taken(part));
            let _ = remove_built(&self.directory.built(part));
            let _ = remove_file(&self.directory.part(part));
        }
    }

    /// From the first step on, the files are those of an unfinished volume of the run.
    fn commit_volume(
        &self,
        index: &mut Index,
        volume: &AssignedVolume,
    ) -> Result<(), ArchiveError> {
        let _scope = scope!("commit");
        let (folder, id) = (self.folder, volume.id);
        let taken = Folder::new(&self.directory.taken(volume.part));
        // Rows that have moved are known to be as they were built; behind that they change.
        move_if_there(&taken.staging(ONLY_VOLUME), &folder.staging(id))?;
        move_if_there(&taken.partial(ONLY_VOLUME), &folder.partial(id))?;
        // Killed just before the transaction ended.
        move_if_there(&folder.volume(id), &folder.partial(id))?;
        sync_directory(folder.path())?;
        let mut staging = Staging::open_until(folder.staging(id), &folder.interrupt)?;
        self.give_number(&mut staging, id)?;
        let make_durable = || -> Result<Vec<Volume>, ArchiveError> {
            rename_to_new(&folder.partial(id), &folder.volume(id))?;
            sync_directory(folder.path())?;
            Ok(vec![Volume {
                id,
                size: volume.built.len,
                md5: volume.built.md5,
            }])
        };
        let frames = unstaged_frames(&staging, volume)?;
        let parts = VolumeParts {
            frames: &frames,
            ..VolumeParts::default()
        };
        index.commit_volume_when(id, [], parts, Some(&staging), make_durable)?;
        Ok(())
    }

    /// Makes the rows of a part those of a volume of the run.
    fn give_number(&self, staging: &mut Staging, id: VolumeId) -> Result<(), ArchiveError> {
        if let Some(mut checkpoint) = staging.checkpoint()? {
            checkpoint.run = RunId(self.plan.id().run);
            checkpoint.volume = id;
            // No process adds to it from here on.
            checkpoint.planned_end = checkpoint.planned;
            staging.record(&checkpoint, [], VolumeParts::default())?;
        }
        Ok(())
    }

    /// Ends the run, or puts what is left over in the place of the plan.
    fn end(
        &self,
        index: &mut Index,
        log: &CommitLog,
        report: &mut CommitReport,
    ) -> Result<(), ArchiveError> {
        if log.remaining.is_empty() {
            let run = RunId(self.plan.id().run);
            let names = DeletedNames::of(self.directory, self.plan)?;
            let now = Mtime::from(utc_now());
            report.deleted = index.finish_run_with(run, now, report.failed, names)?;
            report.foreign = self.directory.clean_up();
            return Ok(());
        }
        for part in log.remaining.clone() {
            report
                .remaining
                .push(PlannedPart::read(&self.directory.part(part))?);
        }
        self.directory.write(&PlanFile {
            generation: self.plan.generation + 1,
            base: Base::of(index)?,
            parts: log.remaining.clone(),
            failed: report.failed,
            members: report.remaining.iter().map(|part| part.members).sum(),
            bytes: report.remaining.iter().map(|part| part.bytes).sum(),
            ..self.plan.clone()
        })?;
        // Not before: a commit that goes on may need them.
        self.remove_parts();
        self.directory.remove_log()
    }
}

/// Returns the frames of a built volume that its rows do not know: those behind its members.
fn unstaged_frames(staging: &Staging, volume: &AssignedVolume) -> Result<Vec<Frame>, ArchiveError> {
    let checkpoint = staging.checkpoint()?.filter(|_| volume.id.is_compressed());
    let Some(checkpoint) = checkpoint else {
        return Ok(Vec::new());
    };
    let frames = staging.frames()?.len() as u64;
    Ok(last_frames(end_of(&checkpoint), frames, volume.built.len).to_vec())
}

fn present_volumes(index: &Index) -> Result<BTreeSet<VolumeId>, ArchiveError> {
    Ok(index.volumes()?.iter().map(|volume| volume.id).collect())
}

/// Gives a file a name that nothing has; one that has moved already is fine.
fn move_if_there(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    if exists(from)?.is_some() {
        rename_to_new(from, to)?;
    }
    Ok(())
}
