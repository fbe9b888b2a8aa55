//! `check`: reads every byte of the volumes once and says what is not as it was written.
//!
//! ```text
//!   a volume   | member | member | ... | trailer |     every byte belongs to one of these:
//!                header: its own checksum, and what the index says
//!                content: the MD5 in the index          padding, trailer: zeros
//! ```
//! Before that the whole index is checked, patterns or not: it takes a second or two for a million members.
//! A row that cannot be read is a damage; the others are compared with the volumes.
//! Headers that stook wrote carry a CRC of all their bytes. Those of other writers do not, so for a
//! volume of theirs the MD5 of the whole volume is taken in the same read, where the index has one.

mod member;
mod record;
mod rows_md5;
mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use stook_index::{AsOf, Index, RowId, RowRef, Selection, Structure, Volume, VolumeId};
use stook_pool::Jobs;
use stook_timers::scope;
use stook_tree::Pattern;

use crate::ArchiveError;
use crate::archive::{Archive, Parts};
use crate::cause::Cause;
use crate::folder::Folder;
use crate::hasher::{Hashing, VolumeHasher, wait_for};
use crate::mutex::lock;
use crate::observer::{CountingObserver, Damage, Failure, Note, Observer};
use crate::read::{
    DEFAULT_MAX_HOLE_BYTES, LoadedRange, RowBatch, VolumeBytes, VolumeStore, Volumes,
    for_each_batch, is_stooks,
};
use crate::select::{is_match, require_matches};
pub(crate) use record::passed_volumes;
use record::{Checked, record};
pub(crate) use rows_md5::RowsMd5;
use volume::{VolumeCheck, read_members};

/// How to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// Check only these members; nothing means everything, with all that is between the members.
    pub patterns: Vec<Pattern>,
    /// Take the MD5 of every whole volume.
    pub whole_volumes: bool,
    /// Holes of one member, in bytes, past which it is not verified: they would be hashed for hours.
    pub max_hole_bytes: u64,
    /// How many workers.
    pub jobs: Jobs,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            whole_volumes: false,
            max_hole_bytes: DEFAULT_MAX_HOLE_BYTES,
            jobs: Jobs::Adaptive,
        }
    }
}

/// What a `check` found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Members checked.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Volumes read.
    pub volumes: u64,
    /// Volumes whose MD5 was taken and compared.
    pub volume_md5s: u64,
    /// Damages, each reported to the observer.
    pub damages: u64,
    /// Members that were not verified, each reported to the observer as a failure.
    pub unverified: u64,
}

/// Checks an archive.
///
/// # Errors
/// `NoMatch` if a pattern matches nothing, `Index` if the index cannot be read at all, `Interrupted`. Damage is
/// no error: the observer is shown it, and it is counted. Nor is a member that claims more holes than are hashed.
pub fn check(
    archive: &mut Archive,
    options: &CheckOptions,
    observer: &dyn Observer,
) -> Result<CheckReport, ArchiveError> {
    let Parts {
        folder,
        index,
        store,
        ..
    } = archive.parts(observer)?;
    let checker = Checker::new(folder, store, options.max_hole_bytes, observer);
    let mut report = CheckReport::default();
    let (volumes, structure) = checker.check_index(index)?;
    if observer.is_interrupted() {
        return Err(ArchiveError::Interrupted);
    }
    if options.patterns.is_empty() {
        check_volumes(index, volumes, &checker, options, &mut report)?;
    } else {
        check_members(folder, index, &checker, options)?;
    }
    index.require_unchanged()?;
    report.damages = checker.observer.damages();
    report.unverified = checker.observer.failures();
    report.members = checker.members.load(Relaxed);
    report.bytes = checker.bytes.load(Relaxed);
    checker.record(index, structure)?;
    if observer.is_interrupted() {
        return Err(ArchiveError::Interrupted);
    }
    Ok(report)
}

fn check_members(
    folder: &Folder,
    index: &mut Index,
    checker: &Checker<'_>,
    options: &CheckOptions,
) -> Result<(), ArchiveError> {
    let matched: Vec<AtomicBool> = options
        .patterns
        .iter()
        .map(|_| AtomicBool::new(false))
        .collect();
    let matches = |row: &RowRef<'_>| is_match(&options.patterns, &matched, row.name);
    let selection = Selection::all_versions(index, AsOf::Now, &matches)?;
    require_matches(folder, &options.patterns, &matched, &selection)?;
    checker
        .observer
        .phase("check", Some(selection.len()), Some(selection.bytes()));
    checker.volumes.expect_rows(index, &selection)?;
    let _scope = scope!("check");
    for_each_batch(
        ("check", options.jobs),
        index,
        &selection,
        &checker.volumes,
        &checker.observer,
        |batch| checker.check_batch(&batch),
    )
}

fn check_volumes(
    index: &mut Index,
    mut volumes: CheckedVolumes,
    checker: &Checker<'_>,
    options: &CheckOptions,
    report: &mut CheckReport,
) -> Result<(), ArchiveError> {
    volumes.add_records(checker.folder, index)?;
    checker
        .observer
        .phase("check", Some(volumes.rows), Some(volumes.bytes));
    checker.volumes.expect(volumes.volumes.keys().copied());
    let _scope = scope!("check");
    for volume in volumes.volumes.values() {
        if checker.observer.is_interrupted() {
            break;
        }
        let is_whole = checker.check_volume(index, volume, options)?;
        report.volumes += 1;
        report.volume_md5s += u64::from(is_whole);
    }
    for id in &volumes.strangers {
        checker.observer.note(&Note::NotIndexed(*id));
    }
    Ok(())
}

/// A volume that the index speaks of.
struct CheckedVolume {
    id: VolumeId,
    /// Its rows in `tars`.
    records: Vec<Volume>,
    /// First and last row of a member in it; other volumes may have rows in between.
    rows: RangeInclusive<RowId>,
    /// Bytes of content in them.
    bytes: u64,
}

impl CheckedVolume {
    /// Returns how many rows it has at most.
    fn most_rows(&self) -> u64 {
        let (first, last) = (self.rows.start().0, self.rows.end().0);
        let more = last.checked_sub(first).unwrap_or(i64::MAX);
        u64::try_from(more).map_or(0, |more| more.saturating_add(1))
    }
}

/// The volumes that the index speaks of, and those in the folder that it does not.
#[derive(Default)]
struct CheckedVolumes {
    volumes: BTreeMap<VolumeId, CheckedVolume>,
    strangers: Vec<VolumeId>,
    rows: u64,
    /// Bytes of content in all rows.
    bytes: u64,
}

impl CheckedVolumes {
    /// Reads what can be read: what cannot is left out.
    fn read(folder: &Folder, index: &Index) -> Result<Self, ArchiveError> {
        let mut volumes = Self::default();
        index.readable_rows(|row| {
            volumes.add_row(&row);
            ControlFlow::Continue(())
        })?;
        volumes.add_records(folder, index)?;
        Ok(volumes)
    }

    /// Rows come in the order of their ids.
    fn add_row(&mut self, row: &RowRef<'_>) {
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(row.size);
        let volume = volume_at(&mut self.volumes, row.volume, row.id);
        volume.bytes = volume.bytes.saturating_add(row.size);
        volume.rows = (*volume.rows.start()).min(row.id)..=row.id;
    }

    /// What `tars` says, and what lies in the folder.
    fn add_records(&mut self, folder: &Folder, index: &Index) -> Result<(), ArchiveError> {
        for record in index.volume_records()? {
            volume_at(&mut self.volumes, record.id, RowId(i64::MAX))
                .records
                .push(record);
        }
        self.strangers = folder.volumes()?;
        self.strangers.retain(|id| !self.volumes.contains_key(id));
        Ok(())
    }
}

fn volume_at(
    volumes: &mut BTreeMap<VolumeId, CheckedVolume>,
    id: VolumeId,
    first: RowId,
) -> &mut CheckedVolume {
    volumes.entry(id).or_insert_with(|| CheckedVolume {
        id,
        records: Vec::new(),
        rows: first..=RowId(0),
        bytes: 0,
    })
}

struct Checker<'a> {
    folder: &'a Folder,
    volumes: Volumes,
    observer: CountingObserver<'a>,
    max_hole_bytes: u64,
    members: AtomicU64,
    bytes: AtomicU64,
    checked: Mutex<Checked>,
    /// Volumes with members that were not verified.
    unverified: Mutex<BTreeSet<VolumeId>>,
    /// Volumes of which bytes are out of reach.
    unread: Mutex<BTreeSet<VolumeId>>,
}

impl<'a> Checker<'a> {
    fn new(
        folder: &'a Folder,
        store: &Arc<dyn VolumeStore>,
        max_hole_bytes: u64,
        observer: &'a dyn Observer,
    ) -> Self {
        Self {
            folder,
            volumes: Volumes::new(Arc::clone(store)),
            observer: CountingObserver::new(observer),
            max_hole_bytes,
            members: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            checked: Mutex::default(),
            unverified: Mutex::default(),
            unread: Mutex::default(),
        }
    }

    /// Checks the index, and gathers the volumes of its rows on the way.
    fn check_index(&self, index: &Index) -> Result<(CheckedVolumes, Structure), ArchiveError> {
        self.observer.phase("check index", None, None);
        let _scope = scope!("check index");
        let mut volumes = CheckedVolumes::default();
        let structure = index.check(
            &mut |row| {
                volumes.add_row(&row);
                if self.observer.is_interrupted() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
            &mut |damage| self.observer.index_damaged(&damage),
        )?;
        Ok((volumes, structure))
    }

    /// Writes down what was noted of volumes, and returns it.
    fn record(self, index: &mut Index, structure: Structure) -> Result<Checked, ArchiveError> {
        let checked = std::mem::take(&mut *lock(&self.checked));
        record(self.folder, index, structure, &checked, &self.observer)?;
        Ok(checked)
    }

    fn check_batch(&self, batch: &RowBatch) {
        let volume = match self.volumes.get(batch.volume) {
            Ok(volume) => volume,
            Err(error) => {
                let cause = Cause::volume_unusable(error.operation, &error.source);
                return self.damaged(batch.volume, None, None, cause);
            }
        };
        let check = VolumeCheck {
            checker: self,
            id: batch.volume,
            volume: &*volume,
            has_its_length: false,
            is_stooks: false,
        };
        match LoadedRange::of(batch, &*volume, &self.volumes.buffers) {
            Ok(loaded) => {
                for (row, found) in read_members(&batch.rows, &loaded) {
                    check.check_member(row, found, &loaded);
                }
            }
            Err(error) => {
                check.unreadable(&batch.rows, batch.start(), &error);
            }
        }
    }

    /// Returns true if the MD5 of the whole volume was taken.
    fn check_volume(
        &self,
        index: &mut Index,
        listed: &CheckedVolume,
        options: &CheckOptions,
    ) -> Result<bool, ArchiveError> {
        let id = listed.id;
        let (volume, len) = match self.open(id, index) {
            Ok(opened) => opened,
            Err(cause) => {
                self.damaged(id, None, None, cause);
                return Ok(false);
            }
        };
        let framed = volume.as_framed();
        let file_len = match framed.map_or(Ok(len), |framed| framed.file().len()) {
            Ok(file_len) => file_len,
            Err(error) => {
                self.damaged(id, None, None, Cause::volume_unusable("look at", &error));
                return Ok(false);
            }
        };
        let record = self.matching_record(id, &listed.records, file_len);
        let check = VolumeCheck {
            checker: self,
            id,
            volume: &*volume,
            has_its_length: record.is_some(),
            is_stooks: id.is_compressed() || is_stooks(&*volume),
        };
        let expected = record
            .and_then(|record| record.md5)
            .filter(|_| options.whole_volumes || !check.is_stooks);
        let buffers = &self.volumes.buffers;
        let hashing = expected.map(|_| Hashing::start(buffers)).transpose()?;
        let hasher = match &hashing {
            Some(hashing) => hashing.begin(),
            None => VolumeHasher::none(buffers),
        };
        let found = match framed {
            None => {
                check.check_sections(index, listed, len, options.jobs, &hasher)?;
                wait_for(hasher.finish())
            }
            Some(framed) => {
                let known = index.frames_of_volume(id)?;
                if known.is_some_and(|known| known != framed.frames()) {
                    self.damaged(id, None, None, Cause::OtherFrames);
                }
                let rest = |volume: &VolumeCheck<'_>, index: &mut Index| {
                    let none = VolumeHasher::none(buffers);
                    volume.check_sections(index, listed, len, options.jobs, &none)
                };
                check.check_framed(framed, hasher, || rest(&check, index))?
            }
        };
        if lock(&self.unread).contains(&id) {
            return Ok(false);
        }
        if found.is_some() && found != expected && !self.observer.is_interrupted() {
            self.damaged(id, None, None, Cause::WrongVolumeMd5);
        }
        if options.whole_volumes && expected.is_none() {
            self.observer
                .noted(&format!("{id} has no MD5 in the index"));
        }
        Ok(found.is_some())
    }

    /// Opens a volume; returns its length, too, or what is wrong with it.
    fn open(&self, id: VolumeId, index: &Index) -> Result<(Arc<dyn VolumeBytes>, u64), Cause> {
        let volume = self.volumes.get_indexed(id, index).map_err(|error| {
            if error.is_not_found() {
                Cause::VolumeMissing
            } else {
                Cause::volume_unusable("open", &error.source)
            }
        })?;
        match volume.len() {
            Ok(len) => Ok((volume, len)),
            Err(error) => Err(Cause::volume_unusable("look at", &error)),
        }
    }

    /// Of several rows for one volume, as zstash may leave them, any one may be right.
    fn matching_record(&self, id: VolumeId, records: &[Volume], len: u64) -> Option<Volume> {
        let matching = records.iter().rev().find(|record| record.size == len);
        match (matching, records.last()) {
            (Some(matching), Some(newest)) if matching != newest => {
                self.observer.noted(&format!(
                    "{id} has several rows in `tars`, and the newest one is wrong"
                ));
            }
            (None, Some(newest)) => {
                let cause = Cause::VolumeResized {
                    found: len,
                    index: newest.size,
                };
                self.damaged(id, None, None, cause);
            }
            _ => {}
        }
        matching.copied()
    }

    /// The volume has not passed, though nothing is known to be wrong with it.
    fn not_verified(&self, volume: VolumeId, member: &[u8], why: Cause) {
        lock(&self.unverified).insert(volume);
        self.observer.failed(&Failure::new("verify", member, why));
    }

    /// Bytes are out of reach: nothing is known to be wrong with them.
    fn unread(&self, volume: VolumeId, member: Option<&[u8]>, cause: Cause) {
        if self.observer.is_interrupted() {
            return;
        }
        lock(&self.unread).insert(volume);
        let name = volume.to_string();
        self.not_verified(volume, member.unwrap_or(name.as_bytes()), cause);
    }

    fn damaged(&self, volume: VolumeId, offset: Option<u64>, member: Option<&[u8]>, cause: Cause) {
        if cause.is_out_of_reach() {
            return self.unread(volume, member, cause);
        }
        lock(&self.checked).insert(volume, None);
        self.observer.damaged(&Damage {
            volume,
            offset,
            member: member.map(<[u8]>::to_vec),
            cause,
        });
    }
}
