//! One volume on its way into a new index: its members, their MD5s, and what the old index knows better.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use stook_index::{
    AttributesEncoder, Frame, Index, IndexError, Mtime, NewBlock, NewRow, Row, RowId, Volume,
    VolumeId,
};
use stook_pool::Budget;
use stook_sys::{Context, SysError};
use stook_timers::scope;
use stook_volume::{BLOCK, Depth, Event, Member, Scanner, VolumeError};

use super::options::ReindexOptions;
use crate::ArchiveError;
use crate::attributes::attributes_of_member;
use crate::buffers::Buffers;
use crate::cause::Cause;
use crate::hasher::{Hashing, VolumeHasher, wait_for};
use crate::memory::{budget_bytes, worker_pool};
use crate::mutex::{into_inner, lock};
use crate::observer::{CountingObserver, Damage, Failure, Observer};
use crate::read::{
    BATCH_BYTES, ContentMd5, FrameCache, FramedVolume, Interrupted, LoadedRange, SkipBadPages,
    VolumeBytes, VolumeStore, is_stooks, open_volume, too_many_holes,
};
use crate::task::begin_in;

/// A member on its way into the new index.
pub(super) struct Found {
    name: Vec<u8>,
    pub(super) size: u64,
    mtime: Mtime,
    md5: Option<[u8; 16]>,
    offset: u64,
    /// Why its MD5 was not taken; then it has that of the old index, or is left out.
    not_hashed: Option<Cause>,
}

impl Found {
    pub(super) fn as_row(&self) -> NewRow<'_> {
        NewRow {
            name: &self.name,
            size: self.size,
            mtime: self.mtime,
            md5: self.md5,
            offset: self.offset,
        }
    }
}

pub(super) struct VolumeReader<'a> {
    pub(super) store: &'a dyn VolumeStore,
    pub(super) id: VolumeId,
    pub(super) options: &'a ReindexOptions,
    pub(super) buffers: Arc<Buffers>,
    pub(super) observer: &'a CountingObserver<'a>,
    pub(super) frames: Arc<FrameCache>,
}

/// All that the new index gets of a volume.
pub(super) struct ReadVolume {
    pub(super) volume: Volume,
    pub(super) found: Vec<Found>,
    pub(super) attributes: Vec<NewBlock>,
    pub(super) frames: Vec<Frame>,
}

impl VolumeReader<'_> {
    pub(super) fn read(&self, old: Option<&Index>) -> Result<ReadVolume, ArchiveError> {
        let bytes = open_volume(self.store, self.id, None, &self.frames)?;
        let framed = bytes.as_framed();
        if let Some(framed) = framed {
            self.check_seek_table(framed);
        }
        let members = self.scan(&*bytes)?;
        let file = framed.map_or(&bytes, FramedVolume::file);
        let (mut found, md5) = self.take_md5s(&*bytes, &**file, &members)?;
        // What was not got round to is not lost.
        require_going_on(self.observer)?;
        let size = file.len().context("look at", self.id.to_string())?;
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
        Ok(ReadVolume {
            volume,
            found,
            attributes,
            frames: framed.map_or_else(Vec::new, |framed| framed.frames().to_vec()),
        })
    }

    /// Frames are found without their table, too, but not from the end of the volume.
    fn check_seek_table(&self, volume: &FramedVolume) {
        let fault = volume.seek_table_fault();
        if let Some(cause) = fault.map_or_else(|error| Some(error.into()), |it| it.map(Cause::from))
        {
            self.damaged(None, None, cause);
        }
    }

    fn scan(&self, volume: &dyn VolumeBytes) -> Result<Vec<Member>, ArchiveError> {
        let _scope = scope!("scan");
        let mut members = Vec::new();
        // A header without stook's CRC may promise more content than was written, and swallow members.
        let depth = if self.id.is_compressed() || is_stooks(volume) {
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

    pub(super) fn out_of_reach(&self, error: &SysError) {
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
        file: &dyn VolumeBytes,
        members: &[Member],
    ) -> Result<(Vec<Found>, Option<[u8; 16]>), ArchiveError> {
        let _scope = scope!("md5s");
        let found = Mutex::new(Vec::with_capacity(members.len()));
        let hashing = Hashing::start(&self.buffers)?;
        let hasher = hashing.begin();
        let budget = Budget::new(budget_bytes());
        let volume_md5 = std::thread::scope(|scope| {
            let whole = begin_in(scope, || self.hash_volume(file, hasher))?;
            let is_interrupted = || self.observer.is_interrupted();
            let pool = worker_pool("md5s", self.options.jobs).until(&is_interrupted);
            pool.for_each(members.chunks(256), |members| {
                // Asked before each: small ones are read to their end before they ask.
                let done: Vec<Found> = members
                    .iter()
                    .map_while(|member| (!is_interrupted()).then_some(member))
                    .filter_map(|member| self.found(&budget, volume, member))
                    .collect();
                lock(&found).extend(done);
            });
            let md5 = whole
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, ArchiveError>(md5)
        })?;
        let mut found = into_inner(found);
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

pub(super) fn require_going_on(observer: &CountingObserver<'_>) -> Result<(), ArchiveError> {
    if observer.is_interrupted() {
        Err(ArchiveError::Interrupted)
    } else {
        Ok(())
    }
}
