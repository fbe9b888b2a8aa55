//! What a commit does before it changes the archive: it takes what was built, compares that with the parts, and decides
//! which part becomes which volume.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use stook_index::{Index, Staging, VolumeId};
use stook_sys::{Directory, Owners, exists, remove_file};
use stook_timers::scope;

use super::build_result::read_result;
use super::commit_log::{AssignedVolume, CommitLog, read_log, write_log};
use super::commit_options::{BuiltVolumes, CommitOptions, FailedMembers};
use super::comparison::{Comparison, Remainder};
use super::damage::{BuiltDamage, DamagedPart, ONLY_VOLUME, rows_damage, volume_damage};
use super::deleted_names::DeletedNames;
use super::directory::{PlanDirectory, built_name};
use super::part::is_retry;
use super::parts_writer::{PartNumbers, PlannedPart};
use super::plan_file::PlanFile;
use super::taken::{TakenPart, TakenParts};
use super::verify::{VolumeToVerify, damaged_volumes};
use crate::ArchiveError;
use crate::compress::encoding_of;
use crate::folder::Folder;
use crate::observer::{Note, Observer};
use crate::recovery::{Blank, next_volume, volume_behind};

pub(crate) struct Preparation<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) directory: &'a PlanDirectory,
    pub(crate) options: &'a CommitOptions,
    pub(crate) plan: &'a PlanFile,
    pub(crate) observer: &'a dyn Observer,
}

/// Parts that are committed now.
struct FoundParts {
    built: Vec<(u32, PathBuf)>,
    /// Members of parts that are not built, which failed before.
    given_up: u64,
}

/// What was built of a part, or what is wrong with it.
type Checked = Result<Option<AssignedVolume>, BuiltDamage>;

impl Preparation<'_> {
    /// Checks everything, and decides what becomes of it. After an error what was built can be committed again, but for
    /// what is damaged.
    pub(crate) fn decide(&self, index: &Index) -> Result<CommitLog, ArchiveError> {
        let _scope = scope!("check parts");
        // Read to its end before anything is decided: behind that a damaged one would stop every commit.
        DeletedNames::of(self.directory, self.plan)?.try_for_each(|name| name.map(drop))?;
        let FoundParts { built, given_up } = self.find()?;
        let taken = TakenParts::take(self.directory, built)?;
        let numbers = PartNumbers::from(self.plan.parts.end);
        let decided = self.decide_on(index, &taken, given_up, &numbers);
        match decided {
            Ok(log) => Ok(log),
            Err(error) => Err(self.undo(&taken, &numbers, error)),
        }
    }

    /// Finds where the parts were built.
    fn find(&self) -> Result<FoundParts, ArchiveError> {
        for folder in &self.options.built_in {
            Directory::open(folder)?;
        }
        let (mut built, mut given_up) = (Vec::new(), 0);
        let (mut missing, mut are_retries) = (Vec::new(), true);
        for part in self.plan.parts.clone() {
            if let Some(path) = self.built(part)? {
                built.push((part, path));
                continue;
            }
            let path = self.directory.part(part);
            let is_retry = is_retry(&path)?;
            if is_retry && self.options.failures == FailedMembers::Record {
                given_up += PlannedPart::read(&path)?.members;
            } else {
                are_retries &= is_retry;
                missing.push(path);
            }
        }
        if missing.is_empty() {
            return Ok(FoundParts { built, given_up });
        }
        Err(ArchiveError::NotBuilt {
            archive: self.folder.path().to_owned(),
            parts: missing,
            are_retries,
        })
    }

    /// Returns where a part was built; None if nowhere.
    fn built(&self, part: u32) -> Result<Option<PathBuf>, ArchiveError> {
        let name = built_name(part);
        let others = self
            .options
            .built_in
            .iter()
            .map(|folder| folder.join(&name));
        let here = [self.directory.taken(part), self.directory.built(part)];
        for path in here.into_iter().chain(others) {
            if exists(&path)?.is_some() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn decide_on(
        &self,
        index: &Index,
        taken: &TakenParts<'_>,
        given_up: u64,
        numbers: &PartNumbers,
    ) -> Result<CommitLog, ArchiveError> {
        let owners = Owners::default();
        let (directory, failures) = (self.directory, self.options.failures);
        let mut rest = Remainder::new(directory, self.plan.header, numbers, &owners, failures);
        let (mut volumes, mut damaged) = (Vec::new(), Vec::new());
        let mut last = None;
        for taken in &taken.parts {
            let id = match last {
                None => {
                    let encoding = encoding_of(self.plan.header.zstd);
                    next_volume(self.folder, index, Blank::Foreign)?.stored_as(encoding)
                }
                Some(last) => volume_behind(self.folder, last)?,
            };
            match self.check(taken, id, &owners, &mut rest)? {
                Ok(Some(volume)) => {
                    volumes.push(volume);
                    last = Some(id);
                }
                Ok(None) => {}
                Err(damage) => damaged.push((taken.part, damage)),
            }
        }
        let wrong = self.verify(&volumes)?.into_iter();
        damaged.extend(wrong.map(|part| (part, BuiltDamage::WrongMd5)));
        if !damaged.is_empty() {
            return Err(self.damaged(damaged));
        }
        let failed = rest.finish()?;
        let log = CommitLog {
            generation: self.plan.generation,
            volumes,
            remaining: self.plan.parts.end..numbers.next(),
            failed: failed + given_up,
        };
        write_log(self.directory, &log)?;
        Ok(log)
    }

    fn damaged(&self, mut damaged: Vec<(u32, BuiltDamage)>) -> ArchiveError {
        damaged.sort_by_key(|(part, _)| *part);
        let parts = damaged.into_iter().map(|(part, damage)| DamagedPart {
            part: self.directory.part(part),
            damage,
        });
        ArchiveError::BadBuilt {
            parts: parts.collect(),
        }
    }

    /// Takes the MD5 of all volumes that were built with one; returns the parts of those that have another now.
    fn verify(&self, volumes: &[AssignedVolume]) -> Result<Vec<u32>, ArchiveError> {
        if self.options.volumes == BuiltVolumes::OfTheirLength {
            return Ok(Vec::new());
        }
        let with_md5 = volumes
            .iter()
            .filter_map(|volume| Some((volume, volume.built.md5?)));
        let with_md5: Vec<_> = with_md5
            .map(|(volume, md5)| {
                let folder = Folder::new(&self.directory.taken(volume.part));
                (folder.partial(ONLY_VOLUME), volume, md5)
            })
            .collect();
        if with_md5.len() < volumes.len() {
            let without = volumes.len() - with_md5.len();
            self.observer.note(&Note::NotVerified(without as u64));
        }
        let to_verify: Vec<_> = with_md5
            .iter()
            .map(|(path, volume, md5)| VolumeToVerify {
                part: volume.part,
                path,
                len: volume.built.len,
                md5: *md5,
            })
            .collect();
        damaged_volumes(&to_verify, self.options.jobs, self.observer)
    }

    /// Compares what was built with its part; None if nothing was written.
    fn check(
        &self,
        taken: &TakenPart,
        id: VolumeId,
        owners: &Owners,
        rest: &mut Remainder<'_>,
    ) -> Result<Checked, ArchiveError> {
        let result = match read_result(&taken.path) {
            Err(ArchiveError::BadPlanFile { source, .. }) if !source.is_unread() => {
                return Ok(Err(BuiltDamage::Result(source)));
            }
            other => other?,
        };
        result.require(self.plan.id(), taken.part, &taken.origin)?;
        let path = self.directory.part(taken.part);
        let mut comparison = Comparison::new(&path, &result.overflowed, owners, rest)?;
        if let Some(volume) = &result.volume {
            if let Some(damage) = volume_damage(&taken.path, volume.len)? {
                return Ok(Err(damage));
            }
            if let Some(damage) = rows_damage(&taken.path, result.rows_md5, self.observer)? {
                return Ok(Err(damage));
            }
            if let Err(damage) = self.compare_rows(&taken.path, volume.len, &mut comparison)? {
                return Ok(Err(damage));
            }
        }
        let (members, bytes) = comparison.finish()?;
        if members != result.members {
            let (found, built) = (members, result.members);
            return Ok(Err(BuiltDamage::OtherRows { found, built }));
        }
        Ok(Ok(result.volume.map(|built| AssignedVolume {
            part: taken.part,
            id,
            built,
            rows_md5: result.rows_md5.unwrap_or_default(),
            members,
            bytes,
        })))
    }

    fn compare_rows(
        &self,
        taken: &Path,
        len: u64,
        comparison: &mut Comparison<'_, '_>,
    ) -> Result<Result<(), BuiltDamage>, ArchiveError> {
        let folder = Folder::until(taken, self.folder.interrupt.clone());
        let (mut end, mut stored, mut outcome) = (0, 0, Ok(true));
        let opened = Staging::open_until(folder.staging(ONLY_VOLUME), &folder.interrupt);
        let read = opened.and_then(|staging| {
            if let Some(checkpoint) = staging.checkpoint()? {
                (end, stored) = (checkpoint.offset, checkpoint.stored);
            }
            staging.rows(|row| {
                let is_in_place = row.offset < end && stored <= len;
                outcome = comparison
                    .pass(&row)
                    .map(|is_planned| is_planned && is_in_place);
                match outcome {
                    Ok(true) => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                }
            })
        });
        match read {
            Err(error) if error.is_damage() => return Ok(Err(BuiltDamage::Rows(error))),
            other => other?,
        }
        Ok(match outcome? {
            true => Ok(()),
            false => Err(BuiltDamage::ForeignRow),
        })
    }

    /// After an error: what was built is as it was, but for what is damaged. Returns the error to report: that something
    /// damaged is in the way and stays comes first.
    fn undo(
        &self,
        taken: &TakenParts<'_>,
        numbers: &PartNumbers,
        error: ArchiveError,
    ) -> ArchiveError {
        // Decided all the same: the next commit goes on with it.
        if !matches!(read_log(self.directory, self.plan), Ok(None)) {
            return error;
        }
        for number in self.plan.parts.end..numbers.next() {
            let _ = remove_file(&self.directory.part(number));
        }
        let damaged = match &error {
            ArchiveError::BadBuilt { parts } => parts.iter().map(|part| &*part.part).collect(),
            _ => BTreeSet::new(),
        };
        let put_back = taken.put_back(&damaged);
        put_back.err().unwrap_or(error)
    }
}
