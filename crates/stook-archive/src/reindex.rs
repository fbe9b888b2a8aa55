//! `reindex`: a new index.db from the volumes alone.
//!
//! Every volume is scanned for members, also past damage, and the MD5 of every file is taken from its
//! bytes. If the old index can still be read, it gives what volumes cannot (runs, deletions, settings),
//! and it is a witness: an MD5 that it has and the bytes have not is kept, so that `check` goes on
//! calling the damage by its name.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use stook_index::{
    AttributesEncoder, Config, Index, IndexError, Mtime, NewBlock, NewRow, Rebuild, Row, RowId,
    Volume, VolumeId,
};
use stook_pool::{Budget, Jobs};
use stook_sys::{Context, SysError, exists};
use stook_timers::scope;
use stook_volume::{BLOCK, Depth, Event, Member, Scanner, VolumeError};

use crate::ArchiveError;
use crate::attributes::attributes_of_member;
use crate::buffers::Buffers;
use crate::cause::Cause;
use crate::folder::Folder;
use crate::hasher::{Hashing, VolumeHasher, wait_for};
use crate::memory::{budget_bytes, worker_pool};
use crate::mutex::lock;
use crate::observer::{CountingObserver, Damage, Failure, Observer};
use crate::plan::{DEFAULT_VOLUME_BYTES, refuse_planned};
use crate::read::{
    BATCH_BYTES, ContentMd5, DEFAULT_MAX_HOLE_BYTES, Interrupted, LoadedRange, LocalFolder,
    SkipBadPages, VolumeBytes, VolumeStore, is_stooks, too_many_holes,
};
use crate::task::begin_in;

/// How to rebuild an index.
#[derive(Debug, Clone)]
pub struct ReindexOptions {
    /// Holes of one member, in bytes, past which its MD5 is not taken: that would take hours.
    pub max_hole_bytes: u64,
    /// How many workers.
    pub jobs: Jobs,
}

impl From<Jobs> for ReindexOptions {
    fn from(jobs: Jobs) -> Self {
        Self {
            max_hole_bytes: DEFAULT_MAX_HOLE_BYTES,
            jobs,
        }
    }
}

/// What a `reindex` did.
#[derive(Debug, Clone, Default)]
pub struct ReindexReport {
    /// Volumes read.
    pub volumes: u64,
    /// Members found.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Runs taken over from the old index.
    pub runs: u64,
    /// Damages and losses, each told to the observer.
    pub damages: u64,
    /// Members whose MD5 was not taken, each told to the observer.
    pub failed: u64,
}

/// Rebuilds the index of an archive.
///
/// # Errors
/// `NoVolumes` if there is nothing to read, `Index` if the old index is from a newer stook, `Locked` if
/// another process writes, `Sys` if no volume can be opened, `Interrupted`. A volume that cannot be read is damage, and the
/// others are indexed. The old index stays in place until the new one is complete.
pub fn reindex(
    archive: &Path,
    options: impl Into<ReindexOptions>,
    observer: &dyn Observer,
) -> Result<ReindexReport, ArchiveError> {
    let options = options.into();
    let folder = Folder::until(archive, observer.interrupt());
    let observer = CountingObserver::new(observer);
    // Looked at before the lock is made: what is refused changes nothing.
    require_volumes(&folder)?;
    let old = open_old(&folder, &observer)?;
    if let Some(old) = &old {
        // Rows get new numbers.
        refuse_planned(archive, old)?;
    }
    let _lock = folder.lock()?;
    let volumes = require_volumes(&folder)?;
    let config = old
        .as_ref()
        .and_then(|old| old.config().ok())
        .unwrap_or_else(unknown_config);
    let mut rebuild = Rebuild::new(folder.index(), &config)?;
    rebuild.set_interrupt(&folder.interrupt)?;
    let mut report = ReindexReport::default();
    observer.phase("reindex", None, Some(total_len(&folder, &volumes)));
    let _scope = scope!("reindex");
    let store = LocalFolder::new(archive);
    let mut unopened = None;
    for &id in &volumes {
        let reader = VolumeReader {
            store: &store,
            id,
            options: &options,
            buffers: Arc::default(),
            observer: &observer,
        };
        let read = reader.read(old.as_ref());
        require_going_on(&observer)?;
        let (volume, found, attributes) = match read {
            Err(ArchiveError::Sys(error)) => {
                reader.out_of_reach(&error);
                unopened = unopened.or(Some(error));
                continue;
            }
            other => other?,
        };
        report.volumes += 1;
        report.members += found.len() as u64;
        report.bytes = found
            .iter()
            .fold(report.bytes, |sum, found| sum.saturating_add(found.size));
        rebuild.add_volume(&volume, found.iter().map(Found::as_row), &attributes)?;
    }
    match unopened {
        Some(error) if report.volumes == 0 => return Err(error.into()),
        _ => {}
    }
    if let Some(old) = &old {
        if let Err(error) = note_missing_volumes(old, &volumes, &observer) {
            observer.noted(&format!("volumes that are missing cannot be told: {error}"));
        }
        match rebuild.carry_over(old) {
            Ok(runs) => report.runs = runs as u64,
            Err(error) => {
                observer.noted(&format!("runs and deletions cannot be recovered: {error}"));
            }
        }
    }
    drop(old);
    require_going_on(&observer)?;
    rebuild.finish()?;
    report.damages = observer.damages();
    report.failed = observer.failures();
    Ok(report)
}

fn require_going_on(observer: &CountingObserver<'_>) -> Result<(), ArchiveError> {
    if observer.is_interrupted() {
        Err(ArchiveError::Interrupted)
    } else {
        Ok(())
    }
}

fn require_volumes(folder: &Folder) -> Result<Vec<VolumeId>, ArchiveError> {
    let volumes = folder.volumes()?;
    if volumes.is_empty() {
        return Err(ArchiveError::NoVolumes {
            path: folder.path().to_owned(),
        });
    }
    Ok(volumes)
}

/// Opens the old index if it can be read. That of a newer stook is not replaced: it may hold what
/// this program does not know of.
fn open_old(
    folder: &Folder,
    observer: &CountingObserver<'_>,
) -> Result<Option<Index>, ArchiveError> {
    let why = match exists(&folder.index()) {
        Ok(None) => "there is no index.db".to_owned(),
        _ => match folder.open_old_index() {
            Ok(index) => return Ok(Some(index)),
            Err(error @ (IndexError::Newer { .. } | IndexError::Interrupted { .. })) => {
                return Err(error.into());
            }
            Err(error) => error.to_string(),
        },
    };
    observer.noted(&format!(
        "{why}: runs and deletions cannot be recovered, so files that an update found deleted are members again, \
         and contents cannot be compared with what was archived"
    ));
    Ok(None)
}

fn unknown_config() -> Config {
    Config {
        hpss: "none".to_owned(),
        maxsize: DEFAULT_VOLUME_BYTES,
        path: b"unknown".to_vec(),
    }
}

/// A volume that cannot be looked at is named when its turn comes.
fn total_len(folder: &Folder, volumes: &[VolumeId]) -> u64 {
    let found = |&id: &VolumeId| exists(&folder.volume(id)).ok().flatten();
    let lens = volumes.iter().filter_map(found);
    lens.fold(0, |sum: u64, metadata| sum.saturating_add(metadata.size))
}

fn note_missing_volumes(
    old: &Index,
    volumes: &[VolumeId],
    observer: &CountingObserver<'_>,
) -> Result<(), IndexError> {
    let mut missing: HashMap<VolumeId, u64> = HashMap::new();
    old.readable_rows(|row| {
        if volumes.binary_search(&row.volume).is_err() {
            *missing.entry(row.volume).or_default() += 1;
        }
        ControlFlow::Continue(())
    })?;
    for (volume, members) in missing {
        observer.damaged(&Damage {
            volume,
            offset: None,
            member: None,
            cause: Cause::MembersLost(members),
        });
    }
    Ok(())
}

/// A member on its way into the new index.
struct Found {
    name: Vec<u8>,
    size: u64,
    mtime: Mtime,
    md5: Option<[u8; 16]>,
    offset: u64,
    /// Why its MD5 was not taken; then it has that of the old index, or is left out.
    not_hashed: Option<Cause>,
}

impl Found {
    fn as_row(&self) -> NewRow<'_> {
        NewRow {
            name: &self.name,
            size: self.size,
            mtime: self.mtime,
            md5: self.md5,
            offset: self.offset,
        }
    }
}

struct VolumeReader<'a> {
    store: &'a dyn VolumeStore,
    id: VolumeId,
    options: &'a ReindexOptions,
    buffers: Arc<Buffers>,
    observer: &'a CountingObserver<'a>,
}

impl VolumeReader<'_> {
    fn read(
        &self,
        old: Option<&Index>,
    ) -> Result<(Volume, Vec<Found>, Vec<NewBlock>), ArchiveError> {
        let bytes = self.store.open(&self.id.to_string())?;
        let members = self.scan(&*bytes)?;
        let (mut found, md5) = self.take_md5s(&*bytes, &members)?;
        // What was not got round to is not lost.
        require_going_on(self.observer)?;
        let size = bytes.len().context("look at", self.id.to_string())?;
        let mut volume = Volume {
            id: self.id,
            size,
            md5,
        };
        if old.is_none() && members.iter().any(has_plain_header) {
            let id = self.id;
            self.observer.noted(&format!(
                "{id} has headers with whole seconds only: fractions of its times are lost"
            ));
        }
        if let Some(old) = old {
            if let Err(error) = self.compare_with(old, &mut found) {
                let id = self.id;
                self.observer.noted(&format!(
                    "{id} cannot be compared with the old index: {error}"
                ));
            }
            let records = old.volume_records().unwrap_or_default();
            let recorded = records
                .iter()
                .rev()
                .find(|record| record.id == self.id && record.size == size);
            // What the volume had when it was written outweighs what it has now.
            volume.md5 = recorded.and_then(|record| record.md5).or(md5);
        }
        found.retain(|found| self.is_kept(found));
        let attributes = attributes_of_found(&members, &found);
        Ok((volume, found, attributes))
    }

    fn scan(&self, volume: &dyn VolumeBytes) -> Result<Vec<Member>, ArchiveError> {
        let _scope = scope!("scan");
        let mut members = Vec::new();
        // A header without stook's CRC may promise more content than was written, and swallow members.
        let depth = if is_stooks(volume) {
            Depth::Headers
        } else {
            Depth::Contents
        };
        let source = SkipBadPages::new(volume, self.observer);
        for event in Scanner::new(&source, 0).with_depth(depth) {
            require_going_on(self.observer)?;
            match event {
                Ok(Event::Member(member)) => members.push(member),
                Ok(Event::Damage {
                    offset,
                    len,
                    reason,
                }) => {
                    let cause = match len {
                        0 => reason.into(),
                        len => Cause::Skipped {
                            reason: Arc::new(reason),
                            len,
                        },
                    };
                    self.damaged(Some(offset), None, cause);
                }
                Ok(Event::End { .. }) => {}
                Err(error) => self.ends_early(error),
            }
        }
        Ok(members)
    }

    /// What follows in this volume is out of reach.
    fn ends_early(&self, error: VolumeError) {
        let offset = match &error {
            VolumeError::Io { offset, .. } => Some(*offset),
            _ => None,
        };
        self.damaged(offset, None, Cause::RestLeftOut(Box::new(error.into())));
    }

    fn out_of_reach(&self, error: &SysError) {
        let cause = Cause::volume_unusable(error.operation, &error.source);
        self.damaged(None, None, Cause::VolumeLeftOut(Box::new(cause)));
    }

    /// Names a member whose MD5 was not taken; without one from the old index it is no file.
    fn is_kept(&self, found: &Found) -> bool {
        let Some(why) = &found.not_hashed else {
            return true;
        };
        let (operation, why) = if found.md5.is_some() {
            ("verify", Cause::OldMd5Kept(Box::new(why.clone())))
        } else {
            ("index", why.clone())
        };
        let failure = Failure::new(operation, &found.name, why);
        self.observer.failed(&failure);
        found.md5.is_some()
    }

    /// Takes the MD5 of every file on the workers, and of the volume meanwhile.
    fn take_md5s(
        &self,
        volume: &dyn VolumeBytes,
        members: &[Member],
    ) -> Result<(Vec<Found>, Option<[u8; 16]>), ArchiveError> {
        let _scope = scope!("md5s");
        let found = Mutex::new(Vec::with_capacity(members.len()));
        let hashing = Hashing::start(&self.buffers)?;
        let hasher = hashing.begin();
        let budget = Budget::new(budget_bytes());
        let volume_md5 = std::thread::scope(|scope| {
            let whole = begin_in(scope, || self.hash_volume(volume, hasher))?;
            worker_pool("md5s", self.options.jobs).for_each(members.chunks(256), |members| {
                let done: Vec<Found> = members
                    .iter()
                    .filter_map(|member| self.found(&budget, volume, member))
                    .collect();
                lock(&found).extend(done);
            });
            let md5 = whole
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, ArchiveError>(md5)
        })?;
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by_key(|found| found.offset);
        Ok((found, volume_md5))
    }

    /// None if the volume cannot be read to its end.
    fn hash_volume(&self, volume: &dyn VolumeBytes, hasher: VolumeHasher) -> Option<[u8; 16]> {
        let len = usize::try_from(BATCH_BYTES).ok()?;
        let mut offset = 0;
        loop {
            let mut bytes = self.buffers.take(len);
            let count = volume.append_at(&mut bytes, len, offset).ok()?;
            if self.observer.is_interrupted() {
                return None;
            }
            if count == 0 {
                return wait_for(hasher.finish());
            }
            offset += count as u64;
            hasher.update(bytes);
        }
    }

    fn found(&self, budget: &Budget, volume: &dyn VolumeBytes, member: &Member) -> Option<Found> {
        if self.observer.is_interrupted() {
            return None;
        }
        let header = &member.header;
        let not_hashed = too_many_holes(member, self.options.max_hole_bytes);
        let md5 = if header.kind.has_content() && not_hashed.is_none() {
            let held = usize::try_from(member.data_len.min(BATCH_BYTES)).unwrap_or(0);
            let _reserved = budget.reserve(2 * held);
            match content_md5(volume, &self.buffers, member, self.observer) {
                Ok(md5) => Some(md5),
                Err(_) if self.observer.is_interrupted() => return None,
                Err(error) => {
                    self.damaged(Some(member.offset), Some(&header.name), error.into());
                    return None;
                }
            }
        } else {
            None
        };
        self.observer.advanced(1, member.end - member.offset);
        let size = if header.kind.has_content() {
            header.size
        } else {
            0
        };
        Some(Found {
            name: header.name.clone(),
            size,
            mtime: header.mtime.into(),
            md5,
            offset: member.offset,
            not_hashed,
        })
    }

    /// Sets what the old index knows better, and names what it knows and the volume has no longer.
    fn compare_with(&self, old: &Index, found: &mut [Found]) -> Result<(), IndexError> {
        let mut known: HashMap<Vec<u8>, Vec<Row>> = HashMap::new();
        old.rows_of_volume(self.id, RowId(i64::MIN)..=RowId(i64::MAX), |row| {
            known
                .entry(row.name.to_vec())
                .or_default()
                .push(row.to_row());
            ControlFlow::Continue(())
        })?;
        for found in found {
            let Some(rows) = known.get_mut(&found.name) else {
                continue;
            };
            let is_it = |row: &Row| {
                row.size == found.size && (row.mtime.0 - found.mtime.0).abs() <= 1_000_000
            };
            let Some(at) = rows.iter().position(is_it) else {
                continue;
            };
            let row = rows.remove(at);
            // Headers of old writers have whole seconds only.
            found.mtime = row.mtime;
            if row.md5.is_some() && found.md5 != row.md5 {
                found.md5 = row.md5;
                if found.not_hashed.is_some() {
                    continue;
                }
                self.damaged(Some(found.offset), Some(&found.name), Cause::WrongOldMd5);
            }
        }
        let mut lost: Vec<Row> = known.into_values().flatten().collect();
        lost.sort_by_key(|row| row.id);
        for row in lost {
            self.damaged(None, Some(&row.name), Cause::Lost);
        }
        Ok(())
    }

    fn damaged(&self, offset: Option<u64>, member: Option<&[u8]>, cause: Cause) {
        self.observer.damaged(&Damage {
            volume: self.id,
            offset,
            member: member.map(<[u8]>::to_vec),
            cause,
        });
    }
}

/// Returns the attributes of the members that are kept; both ascend by offset.
fn attributes_of_found(members: &[Member], found: &[Found]) -> Vec<NewBlock> {
    let mut encoder = AttributesEncoder::default();
    let mut kept = found.iter().map(|found| found.offset).peekable();
    for member in members {
        if kept.next_if_eq(&member.offset).is_some() {
            encoder.push(&attributes_of_member(member));
        }
    }
    encoder.take()
}

/// A header block without an extended header, as GNU tar and zstash under Python 3.7 wrote it.
fn has_plain_header(member: &Member) -> bool {
    member.data_offset - member.offset == BLOCK
}

fn content_md5(
    volume: &dyn VolumeBytes,
    buffers: &Buffers,
    member: &Member,
    observer: &CountingObserver<'_>,
) -> io::Result<[u8; 16]> {
    let len = member.data_len.min(BATCH_BYTES);
    let loaded = LoadedRange::read(volume, buffers, member.data_offset, len)?;
    let header = &member.header;
    let mut md5 = ContentMd5::new(&header.name, header.size, observer);
    loaded.content(member, |offset, bytes| {
        md5.update(offset, bytes)?;
        if observer.is_interrupted() {
            Err(io::Error::from(Interrupted))
        } else {
            Ok(())
        }
    })?;
    Ok(md5.finish()?)
}
