//! Writes volumes, several at a time where there are several, and commits them in order.
//!
//! ```text
//!   parts ──> 000003.tar.partial ──sync──┐
//!   parts ──> 000004.tar.partial ──sync──┼─> rename to 000003.tar ──> one transaction: tars + files
//!   parts ──> 000005.tar.partial         │    in the order of the volumes
//!               │ every checkpoint: sync, then rows and offset into 000005.rows.partial
//! ```
//! Nothing is in the index before its bytes are durable under their final name. A part goes to the
//! volume of its track. A member that does not fit there, because its file has attributes that the plan did
//! not know of, goes to the free track: volumes behind the planned ones, begun and ended as needed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stook_index::{Index, Interrupt, RunId, Volume, VolumeId};
use stook_sys::{open_read_write, rename_to_new, sync_directory};
use stook_timers::scope;

use crate::ArchiveError;
use crate::buffers::Buffers;
use crate::folder::Folder;
use crate::hasher::{Hashing, VolumeHasher};
use crate::memory::cached_bytes;
use crate::observer::Observer;
use crate::open_volume::{ClosingVolume, OpenVolume, PendingRow};
use crate::pack::{Packed, Part};
use crate::plan::Cutter;
use crate::recovery::{Leftover, is_of_dialect, recover, remove_staging};
use crate::tracks::Track;

/// How volumes are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterOptions {
    pub(crate) cutter: Cutter,
    pub(crate) takes_md5: bool,
    pub(crate) read_only: bool,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) checkpoint_interval: Duration,
}

/// Rows kept in memory before a checkpoint is made whatever the bytes: about 30 MB of names.
const MOST_ROWS: usize = 250_000;

/// Volumes on their way to the disk, past which the first of them is waited for.
const MOST_CLOSING: usize = 8;

pub(crate) struct VolumeWriter<'a> {
    folder: &'a Folder,
    index: &'a mut Index,
    run: RunId,
    options: WriterOptions,
    observer: &'a dyn Observer,
    /// The next number for the free track.
    next: VolumeId,
    /// The volume of the free track.
    free: Option<VolumeId>,
    open: BTreeMap<VolumeId, OpenVolume>,
    /// Volumes that are complete; None if nothing came into one.
    ended: BTreeMap<VolumeId, Option<ClosingVolume>>,
    /// The planned lengths of volumes with tracks of their own.
    planned: BTreeMap<VolumeId, u64>,
    /// All volumes that are not committed yet, in order.
    order: VecDeque<VolumeId>,
    /// Where the slices go that are arriving.
    large: Option<Arriving>,
    checkpoint_at: Instant,
    pub(crate) written: Written,
    /// The last one to go: its thread ends when no volume holds a stream any more.
    hashing: Hashing,
}

/// What has been written.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) members: u64,
    pub(crate) bytes: u64,
    pub(crate) volumes: u64,
}

/// A large member on its way.
struct Arriving {
    volume: VolumeId,
    /// Bytes that the observer was told of.
    told: u64,
}

impl<'a> VolumeWriter<'a> {
    /// Returns a writer without volumes; [`Self::expect`] says which there will be.
    ///
    /// # Errors
    /// `NoThread`.
    pub(crate) fn new(
        folder: &'a Folder,
        index: &'a mut Index,
        run: RunId,
        options: WriterOptions,
        observer: &'a dyn Observer,
        buffers: &Arc<Buffers>,
    ) -> Result<Self, ArchiveError> {
        Ok(Self {
            folder,
            index,
            run,
            options,
            observer,
            hashing: Hashing::start(buffers)?,
            next: VolumeId(0),
            free: None,
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            planned: BTreeMap::new(),
            order: VecDeque::new(),
            large: None,
            checkpoint_at: Instant::now(),
            written: Written::default(),
        })
    }

    /// Says which volumes have tracks of their own, with their planned lengths, and the first number behind.
    pub(crate) fn expect(&mut self, planned: BTreeMap<VolumeId, u64>, next: VolumeId) {
        self.order.extend(planned.keys());
        self.planned = planned;
        self.next = next;
    }

    /// Goes on with a volume that an interrupted run left, in its own track or in the free one; or closes it, if
    /// it gets nothing more, or is in another dialect.
    pub(crate) fn resume(
        &mut self,
        leftover: Leftover,
        is_complete: bool,
    ) -> Result<(), ArchiveError> {
        let id = leftover.checkpoint.volume;
        let hasher = if self.options.takes_md5 {
            self.hashing.resume(&leftover.checkpoint.md5_state)
        } else {
            None
        };
        let hasher = hasher.unwrap_or_else(|| self.hashing.none());
        let volume = OpenVolume::resume(self.folder, leftover, self.planned_end(id), hasher)?;
        self.open.insert(id, volume);
        if !self.order.contains(&id) {
            if let Some(before) = self.free {
                self.end(before)?;
            }
            self.order.push_back(id);
            self.free = Some(id);
            self.next = self.next.max(VolumeId(id.0 + 1));
        }
        let dialect = self.options.cutter.dialect;
        if is_complete || !is_of_dialect(self.folder, id, dialect)? {
            self.end(id)?;
        }
        Ok(())
    }

    /// Takes the next part of a track.
    pub(crate) fn take(&mut self, track: Track, part: Part) -> Result<(), ArchiveError> {
        let _scope = scope!("write");
        if self.observer.is_interrupted() {
            // A part before this one may be missing.
            return Err(ArchiveError::Interrupted);
        }
        match part {
            Part::Members { bytes, members } => self.take_members(track, bytes, members)?,
            Part::Begin { bytes, member } => self.begin_large(track, bytes, member)?,
            Part::Slice(bytes) => self.take_slice(bytes)?,
            Part::End { bytes, md5 } => self.end_large(bytes, md5)?,
            Part::Abort => self.abort_large()?,
            Part::EndOfTrack => {
                if let Track::Volume(id) = track {
                    self.end(id)?;
                }
            }
        }
        self.commit_ended(Wait::No)?;
        if self.large.is_none() {
            self.checkpoint_if_due()?;
        }
        Ok(())
    }

    fn take_members(
        &mut self,
        track: Track,
        bytes: Vec<u8>,
        members: Vec<Packed>,
    ) -> Result<(), ArchiveError> {
        let mut run = Run::new(bytes);
        for packed in members {
            let id = self.volume_for(track, &packed, &mut run)?;
            run.volume = Some(id);
            let Some(volume) = self.open.get_mut(&id) else {
                continue;
            };
            let len = usize::try_from(packed.len)
                .map_err(|error| ArchiveError::Output(std::io::Error::other(error)))?;
            let link = volume.as_hard_link(packed.several_names.as_deref());
            let offset = volume.offset() + run.len();
            match (link, &packed.several_names) {
                (Some(header), Some(several)) => {
                    if let Some(bytes) = run.take() {
                        volume.append(self.folder, bytes)?;
                    }
                    volume.append(self.folder, header)?;
                    run.skip(several.header_len);
                    run.end += len - several.header_len;
                }
                _ => run.end += len,
            }
            self.observer.advanced(1, packed.size);
            let row = volume.push_row(packed, offset);
            self.written.count(self.observer, row);
        }
        self.flush(&mut run)
    }

    /// Returns the volume that a member goes to, begun if need be.
    fn volume_for(
        &mut self,
        track: Track,
        packed: &Packed,
        run: &mut Run,
    ) -> Result<VolumeId, ArchiveError> {
        let cutter = self.options.cutter;
        if let Track::Volume(id) = track {
            match self.open.get_mut(&id) {
                Some(volume) if !volume.fits(cutter, packed, run.ahead_of(id)) => {
                    volume.pass_over(packed);
                }
                Some(_) => return self.turn_to(id, run),
                None => return self.begin(id),
            }
        }
        if let Some(id) = self.free
            && let Some(volume) = self.open.get(&id)
        {
            if volume.fits(cutter, packed, run.ahead_of(id)) {
                return self.turn_to(id, run);
            }
            self.flush(run)?;
            self.end(id)?;
        }
        self.flush(run)?;
        let id = self.next;
        self.next = VolumeId(id.0 + 1);
        self.order.push_back(id);
        self.free = Some(id);
        self.begin(id)
    }

    /// What is ahead of a member in its batch goes to its own volume first.
    fn turn_to(&mut self, id: VolumeId, run: &mut Run) -> Result<VolumeId, ArchiveError> {
        if run.volume != Some(id) {
            self.flush(run)?;
        }
        Ok(id)
    }

    fn begin(&mut self, id: VolumeId) -> Result<VolumeId, ArchiveError> {
        let hasher = self.new_hasher();
        let volume = OpenVolume::create(self.folder, id, self.planned_end(id), hasher)?;
        self.open.insert(id, volume);
        Ok(id)
    }

    fn planned_end(&self, id: VolumeId) -> u64 {
        self.planned.get(&id).copied().unwrap_or(0)
    }

    fn new_hasher(&self) -> VolumeHasher {
        if self.options.takes_md5 {
            self.hashing.begin()
        } else {
            self.hashing.none()
        }
    }

    fn flush(&mut self, run: &mut Run) -> Result<(), ArchiveError> {
        let volume = run.volume.and_then(|id| self.open.get_mut(&id));
        match (run.take(), volume) {
            (Some(bytes), Some(volume)) => volume.append(self.folder, bytes),
            _ => Ok(()),
        }
    }

    fn begin_large(
        &mut self,
        track: Track,
        bytes: Vec<u8>,
        member: Packed,
    ) -> Result<(), ArchiveError> {
        let id = self.volume_for(track, &member, &mut Run::new(Vec::new()))?;
        self.large = Some(Arriving {
            volume: id,
            told: 0,
        });
        match self.open.get_mut(&id) {
            Some(volume) => volume.begin_large(self.folder, bytes, member),
            None => Ok(()),
        }
    }

    fn take_slice(&mut self, bytes: Vec<u8>) -> Result<(), ArchiveError> {
        let Some(arriving) = &mut self.large else {
            return Ok(());
        };
        let len = bytes.len() as u64;
        arriving.told += len;
        self.observer.advanced(0, len);
        match self.open.get_mut(&arriving.volume) {
            Some(volume) => volume.append(self.folder, bytes),
            None => Ok(()),
        }
    }

    fn end_large(&mut self, bytes: Vec<u8>, md5: [u8; 16]) -> Result<(), ArchiveError> {
        let Some(arriving) = self.large.take() else {
            return Ok(());
        };
        if let Some(volume) = self.open.get_mut(&arriving.volume) {
            volume.append(self.folder, bytes)?;
            if let Some(row) = volume.end_large(md5) {
                let rest = row.size.saturating_sub(arriving.told);
                self.observer.advanced(1, rest);
                self.written.count(self.observer, row);
            }
        }
        Ok(())
    }

    fn abort_large(&mut self) -> Result<(), ArchiveError> {
        let arriving = self.large.take();
        match arriving.and_then(|arriving| self.open.get_mut(&arriving.volume)) {
            Some(volume) => volume.abort_large(self.folder),
            None => Ok(()),
        }
    }

    fn checkpoint_if_due(&mut self) -> Result<(), ArchiveError> {
        let (mut bytes, mut rows) = (0, 0);
        let open = self.open.values().map(OpenVolume::unstaged);
        let closing = self.ended.values().flatten().map(ClosingVolume::unstaged);
        for (more_bytes, more_rows) in open.chain(closing) {
            bytes += more_bytes;
            rows += more_rows;
        }
        let is_due = bytes >= self.options.checkpoint_bytes
            || self.checkpoint_at.elapsed() >= self.options.checkpoint_interval
            || rows >= MOST_ROWS;
        if is_due { self.checkpoint() } else { Ok(()) }
    }

    /// Makes everything up to here durable, for a later run to go on from.
    fn checkpoint(&mut self) -> Result<(), ArchiveError> {
        let _scope = scope!("checkpoint");
        self.commit_ended(Wait::Yes)?;
        self.stage()
    }

    /// Makes durable what no transaction has taken yet.
    fn stage(&mut self) -> Result<(), ArchiveError> {
        for closing in self.ended.values_mut().flatten() {
            closing.checkpoint(self.folder, self.run)?;
        }
        let stays_cached = self.stays_cached();
        for volume in self.open.values_mut() {
            volume.checkpoint(self.folder, self.run)?;
            if !stays_cached {
                volume.drop_cached();
            }
        }
        self.checkpoint_at = Instant::now();
        Ok(())
    }

    /// A small archive can be read back at once; a large one must not drive out everything else.
    fn stays_cached(&self) -> bool {
        self.written.bytes <= cached_bytes()
    }

    /// Ends a volume; one without members vanishes.
    fn end(&mut self, id: VolumeId) -> Result<(), ArchiveError> {
        let _scope = scope!("end volume");
        if self.free == Some(id) {
            self.free = None;
        }
        let closing = match self.open.remove(&id) {
            Some(volume) if volume.is_empty() => {
                volume.discard(self.folder)?;
                if self.order.back() == Some(&id) && self.next.0 == id.0 + 1 {
                    // Nobody has seen the number.
                    self.order.pop_back();
                    self.next = id;
                    return Ok(());
                }
                None
            }
            Some(volume) => {
                let stays_cached = self.stays_cached();
                Some(volume.close(self.folder, self.options.read_only, stays_cached)?)
            }
            None => None,
        };
        self.ended.insert(id, closing);
        if self.ended.len() > MOST_CLOSING
            && self
                .order
                .front()
                .is_some_and(|first| self.ended.contains_key(first))
        {
            self.commit_first(Wait::Yes)?;
        }
        Ok(())
    }

    /// Ends all volumes and commits them.
    pub(crate) fn finish(&mut self) -> Result<(), ArchiveError> {
        let _scope = scope!("seal");
        for id in self.order.clone() {
            if !self.ended.contains_key(&id) {
                self.end(id)?;
            }
        }
        self.commit_ended(Wait::Yes)
    }

    /// Commits what is complete, up to the first volume that is not.
    fn commit_ended(&mut self, wait: Wait) -> Result<(), ArchiveError> {
        while self.commit_first(wait)? {}
        Ok(())
    }

    /// Commits the first volume; false if it is not complete.
    fn commit_first(&mut self, wait: Wait) -> Result<bool, ArchiveError> {
        let Some(first) = self.order.front().copied() else {
            return Ok(false);
        };
        match self.ended.get(&first) {
            None => return Ok(false),
            Some(Some(closing)) if wait == Wait::No && !closing.is_durable() => return Ok(false),
            Some(_) => {}
        }
        self.order.pop_front();
        if let Some(closing) = self.ended.remove(&first).flatten() {
            self.commit(closing)?;
        }
        Ok(true)
    }

    /// Rows go into the transaction while the volume is still on its way to the disk; it ends when the
    /// volume has its name.
    fn commit(&mut self, mut closing: ClosingVolume) -> Result<(), ArchiveError> {
        let _scope = scope!("commit");
        let (id, len) = (closing.id, closing.len);
        let rows = std::mem::take(&mut closing.rows);
        let staging = closing.staging.take();
        let folder = self.folder;
        let make_durable = || -> Result<Volume, ArchiveError> {
            let md5 = closing.wait_until_durable()?;
            rename_to_new(&folder.partial(id), &folder.volume(id))?;
            sync_directory(folder.path())?;
            Ok(Volume { id, size: len, md5 })
        };
        let committed = self.index.commit_volume_when(
            id,
            rows.iter().map(PendingRow::as_new),
            staging.as_ref(),
            make_durable,
        );
        if matches!(committed, Err(ArchiveError::Interrupted)) {
            // As before: the next run commits it.
            (closing.rows, closing.staging) = (rows, staging);
            self.order.push_front(id);
            self.ended.insert(id, Some(closing));
            return Err(ArchiveError::Interrupted);
        }
        committed?;
        drop(staging);
        remove_staging(folder, id)?;
        self.written.volumes += 1;
        Ok(())
    }

    /// After an error: keeps what a checkpoint made durable, removes the rest.
    ///
    /// The error that led here is the one to tell; what fails here is met again by the next run.
    pub(crate) fn abandon(&mut self, error: &ArchiveError) {
        let _ = self.index.set_interrupt(&Interrupt::never());
        if matches!(error, ArchiveError::Interrupted) {
            let _ = self.keep();
        }
        self.open.clear();
        for mut closing in std::mem::take(&mut self.ended).into_values().flatten() {
            let _ = closing.wait_until_durable();
        }
        // Not one whose statements end at once.
        let folder = Folder::new(self.folder.path());
        for leftover in recover(&folder, self.index, Some(self.run)).unwrap_or_default() {
            // On a full disk, what is not durable need not take room.
            let (checkpoint, _) = leftover;
            let partial = open_read_write(&self.folder.partial(checkpoint.volume));
            let _ = partial.map(|file| file.set_len(checkpoint.offset));
        }
    }

    /// Makes durable what is there. The next run commits it: a transaction may have millions of rows.
    fn keep(&mut self) -> Result<(), ArchiveError> {
        self.abort_large()?;
        self.stage()
    }
}

impl Written {
    fn count(&mut self, observer: &dyn Observer, row: &PendingRow) {
        self.members += 1;
        self.bytes += row.size;
        observer.done(&row.name);
    }
}

/// Whether to wait for a volume that is not durable yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Yes,
    No,
}

/// Bytes of a batch that are in order but not yet written.
struct Run {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Where they go.
    volume: Option<VolumeId>,
}

impl Run {
    fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            start: 0,
            end: 0,
            volume: None,
        }
    }

    fn len(&self) -> u64 {
        (self.end - self.start) as u64
    }

    /// Bytes that come before the next member in a volume.
    fn ahead_of(&self, volume: VolumeId) -> u64 {
        if self.volume == Some(volume) {
            self.len()
        } else {
            0
        }
    }

    /// Passes over bytes that are not written.
    fn skip(&mut self, len: usize) {
        self.start += len;
        self.end += len;
    }

    /// Takes out what is ready; without copying if that is all.
    fn take(&mut self) -> Option<Vec<u8>> {
        let (start, end) = (self.start, self.end);
        self.start = end;
        if start == end {
            None
        } else if start == 0 && end == self.bytes.len() {
            Some(std::mem::take(&mut self.bytes))
        } else {
            Some(self.bytes[start..end].to_vec())
        }
    }
}
