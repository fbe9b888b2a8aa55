//! `commit`: built parts become volumes of the archive; `abandon`: they do not.
//!
//! ```text
//!   1  every part was built, its rows are members that were planned     nothing is changed
//!   2  members that are missing go into another part                    part-000007
//!   3  which part becomes which volume                                  commit, durable
//!   4  for each: rows and volume get the names of an unfinished volume, then all is as in `create`
//!   5  the run ends, or the plan names the other part
//! ```
//! A commit that was killed goes on from step 4 when it is called again. Whatever it left, an archive whose plan is
//! abandoned then is one with an interrupted run.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use stook_index::{Index, Mtime, RunId, Staging, Volume, VolumeId};
use stook_sys::{Owners, exists, open_file, remove_file, rename_to_new, sync_directory, utc_now};
use stook_timers::scope;

use super::block_file::{READ_BYTES, bad_file};
use super::build::ONLY_VOLUME;
use super::build_result::read_result;
use super::commit_log::{AssignedVolume, CommitLog, read_log, write_log};
use super::comparison::{Comparison, FailedMembers, Remainder};
use super::deleted_names::DeletedNames;
use super::directory::{PlanDirectory, remove_built, reserving_plan};
use super::part::PartReader;
use super::parts_writer::{PartsWriter, PlannedPart};
use super::plan_file::{Base, PlanFile};
use crate::ArchiveError;
use crate::folder::Folder;
use crate::observer::Observer;
use crate::recovery::{Blank, next_volume, remove_staging};

/// How to commit.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// Destinations of [`build_part`](crate::build_part) besides the plan directory.
    pub built_in: Vec<PathBuf>,
    /// What becomes of members that failed.
    pub failures: FailedMembers,
}

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
}

/// Commits the parts of a plan, which must all be built, and ends the run if nothing is left over.
///
/// Volumes get the next numbers in the order of the parts, and their rows one transaction each. A part is checked against
/// its rows, not against its bytes: `check` does that.
///
/// # Errors
/// `NoPlan`; `NotBuilt` if parts are missing; `PlanOutdated` if another program has written to the archive since it was
/// planned; `OtherPlan`, `BadPlanFile`, `BadBuilt` if what was built is not what was planned: nothing is changed then.
/// `Sys` if a destination is not on the archive's file system. After any other error the same call goes on.
///
/// # Cost
/// One pass over the parts and their rows, and the transactions; no byte of a volume is read or copied.
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
    reserving_plan(archive, &folder.open_index()?)?.ok_or_else(no_plan)?;
    let _lock = folder.lock()?;
    let mut index = folder.open_index_to_write()?;
    let plan = reserving_plan(archive, &index)?.ok_or_else(no_plan)?;
    let committer = Committer {
        folder: &folder,
        directory: &directory,
        options,
        plan: &plan,
        observer,
    };
    let log = match read_log(&directory, &plan)? {
        Some(log) => log,
        None => committer.prepare(&index)?,
    };
    committer.require_base(&index, &log)?;
    let mut report = committer.commit_volumes(&mut index, &log)?;
    committer.end(&mut index, &log, &mut report)?;
    Ok(report)
}

/// Gives up the plan of an archive: removes its parts and what was built in the plan directory, and the archive can be written
/// again. What was committed stays. The run is then like one that was interrupted: the next `create` or `update` goes on
/// with it.
///
/// # Errors
/// `NoPlan`; `Locked` while a plan is made or committed; `Sys` if something cannot be removed. A builder that is still
/// running fails.
pub fn abandon(archive: &Path) -> Result<(), ArchiveError> {
    let folder = Folder::new(archive);
    folder.require_index()?;
    let directory = PlanDirectory::of(archive);
    if exists(directory.path())?.is_none() {
        return Err(ArchiveError::NoPlan {
            path: archive.to_owned(),
        });
    }
    let _lock = folder.lock()?;
    directory.remove()
}

struct Committer<'a> {
    folder: &'a Folder,
    directory: &'a PlanDirectory,
    options: &'a CommitOptions,
    plan: &'a PlanFile,
    observer: &'a dyn Observer,
}

impl Committer<'_> {
    /// Returns where a part was built; None if nowhere.
    fn built(&self, part: u32) -> Result<Option<PathBuf>, ArchiveError> {
        let name = format!("built-{part:06}");
        let others = self.options.built_in.iter().map(PathBuf::as_path);
        for folder in std::iter::once(self.directory.path()).chain(others) {
            let path = folder.join(&name);
            if exists(&path)?.is_some() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Checks everything, and decides what becomes of it.
    fn prepare(&self, index: &Index) -> Result<CommitLog, ArchiveError> {
        let _scope = scope!("check parts");
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for part in self.plan.parts.clone() {
            match self.built(part)? {
                Some(path) => found.push((part, path)),
                None => missing.push(self.directory.part(part)),
            }
        }
        if !missing.is_empty() {
            return Err(ArchiveError::NotBuilt { parts: missing });
        }
        let owners = Owners::default();
        let first = self.plan.parts.end;
        let mut rest = Remainder {
            parts: PartsWriter::new(self.directory, self.plan.header, first, &owners),
            failures: self.options.failures,
            failed: 0,
        };
        let mut volumes = Vec::new();
        let mut id = next_volume(self.folder, index, Blank::Foreign)?;
        for (part, path) in found {
            if let Some(volume) = self.check(part, &path, id, &owners, &mut rest)? {
                volumes.push(volume);
                id = VolumeId(id.0 + 1);
            }
        }
        let failed = rest.failed;
        let parts = u32::try_from(rest.parts.finish()?.len()).unwrap_or(u32::MAX);
        let log = CommitLog {
            generation: self.plan.generation,
            volumes,
            remaining: first..first.saturating_add(parts),
            failed,
        };
        self.require_base(
            index,
            &CommitLog {
                volumes: Vec::new(),
                ..log.clone()
            },
        )?;
        write_log(self.directory, &log)?;
        Ok(log)
    }

    /// Compares what was built with its part. Returns None if nothing was.
    fn check(
        &self,
        part: u32,
        built: &Path,
        id: VolumeId,
        owners: &Owners,
        rest: &mut Remainder<'_>,
    ) -> Result<Option<AssignedVolume>, ArchiveError> {
        let result = read_result(built)?;
        if result.plan != Some(self.plan.id()) || result.number != part {
            return Err(ArchiveError::OtherPlan {
                path: built.to_owned(),
            });
        }
        let path = self.directory.part(part);
        let file = BufReader::with_capacity(READ_BYTES, open_file(&path)?);
        let reader = PartReader::new(file).map_err(bad_file(&path))?;
        let mut comparison = Comparison {
            path: &path,
            reader,
            owners,
            piece: None,
            overflowed: result.overflowed.iter().map(Vec::as_slice).collect(),
            rest,
            end: 0,
            members: 0,
            bytes: 0,
        };
        let bad = |what| ArchiveError::BadBuilt {
            path: built.to_owned(),
            what,
        };
        if let Some(volume) = &result.volume {
            let folder = Folder::until(built, self.folder.interrupt.clone());
            let len = exists(&folder.partial(ONLY_VOLUME))?.map(|metadata| metadata.size);
            if len != Some(volume.len) {
                return Err(bad("its volume is missing or of another length"));
            }
            let staging = Staging::open_until(folder.staging(ONLY_VOLUME), &folder.interrupt)?;
            let content = staging
                .checkpoint()?
                .map_or(0, |checkpoint| checkpoint.offset);
            let mut outcome = Ok(());
            staging.rows(|row| {
                outcome = comparison.pass(&row).and_then(|is_planned| {
                    let is_in_place = row.offset < content && content <= volume.len;
                    if is_planned && is_in_place {
                        Ok(())
                    } else {
                        Err(bad("it has a row that was not planned"))
                    }
                });
                match outcome {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            })?;
            outcome?;
        }
        let (members, bytes) = comparison.finish()?;
        match (result.volume, members == result.members) {
            (_, false) => Err(bad("it has other rows than members")),
            (Some(built), _) => Ok(Some(AssignedVolume {
                part,
                id,
                built,
                members,
                bytes,
            })),
            (None, _) => Ok(None),
        }
    }

    /// Refuses to write behind what somebody else has written since.
    fn require_base(&self, index: &Index, log: &CommitLog) -> Result<(), ArchiveError> {
        let present: BTreeSet<VolumeId> = index.volumes()?.iter().map(|volume| volume.id).collect();
        let committed = log
            .volumes
            .iter()
            .filter(|volume| present.contains(&volume.id));
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
        let present: BTreeSet<VolumeId> = index.volumes()?.iter().map(|volume| volume.id).collect();
        for volume in &log.volumes {
            if !present.contains(&volume.id) {
                self.commit_volume(index, volume)?;
            }
            remove_staging(self.folder, volume.id)?;
            self.observer.advanced(volume.members, volume.bytes);
            report.members += volume.members;
            report.bytes += volume.bytes;
            report.volumes += 1;
        }
        for part in self.plan.parts.clone() {
            if let Some(built) = self.built(part)? {
                remove_built(&built)?;
            }
            remove_file(&self.directory.part(part))?;
        }
        Ok(report)
    }

    /// From the first step on, the files are those of an unfinished volume of the run.
    fn commit_volume(
        &self,
        index: &mut Index,
        volume: &AssignedVolume,
    ) -> Result<(), ArchiveError> {
        let _scope = scope!("commit");
        let (folder, id) = (self.folder, volume.id);
        let built = self.built(volume.part)?.map(|path| Folder::new(&path));
        if let Some(built) = &built {
            self.take_rows(built, id)?;
            if exists(&built.partial(ONLY_VOLUME))?.is_some() {
                rename_to_new(&built.partial(ONLY_VOLUME), &folder.partial(id))?;
            }
        }
        if exists(&folder.volume(id))?.is_some() {
            // Killed just before the transaction ended.
            rename_to_new(&folder.volume(id), &folder.partial(id))?;
        }
        sync_directory(folder.path())?;
        let staging = Staging::open_until(folder.staging(id), &folder.interrupt)?;
        let make_durable = || -> Result<Volume, ArchiveError> {
            rename_to_new(&folder.partial(id), &folder.volume(id))?;
            sync_directory(folder.path())?;
            Ok(Volume {
                id,
                size: volume.built.len,
                md5: volume.built.md5,
            })
        };
        index.commit_volume_when(id, [], &[], Some(&staging), make_durable)?;
        Ok(())
    }

    /// Gives the rows of a part to a volume of the run.
    fn take_rows(&self, built: &Folder, id: VolumeId) -> Result<(), ArchiveError> {
        let rows = built.staging(ONLY_VOLUME);
        if exists(&rows)?.is_none() {
            return Ok(());
        }
        let mut staging = Staging::open_until(&rows, &self.folder.interrupt)?;
        if let Some(mut checkpoint) = staging.checkpoint()? {
            checkpoint.run = RunId(self.plan.id().run);
            checkpoint.volume = id;
            // No process adds to it from here on.
            checkpoint.planned_end = checkpoint.planned;
            staging.record(&checkpoint, [], &[])?;
        }
        drop(staging);
        Ok(rename_to_new(&rows, &self.folder.staging(id))?)
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
            let names = DeletedNames::open(&self.directory.deleted())?;
            let names = names.into_iter().flatten();
            let now = Mtime::from(utc_now());
            report.deleted = index.finish_run_with(run, now, report.failed, names)?;
            return self.directory.remove();
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
            ..self.plan.clone()
        })?;
        Ok(remove_file(&self.directory.commit_log())?)
    }
}
