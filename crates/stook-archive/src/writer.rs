//! Writes volumes, several at a time where there are several.
//!
//! A piece goes to the volume of its stream. A member that does not fit there, because its file has attributes that the
//! plan did not know of, goes to the sequence: volumes behind the planned ones, begun and ended as needed. Where the
//! volume is a part of a plan, it is only named, and becomes a member of another part. Complete volumes are committed by
//! `commit_queue.rs`; every checkpoint syncs the others, and then their rows and offset into `000005.rows.partial`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stook_index::VolumeId;
use stook_timers::scope;

use crate::ArchiveError;
use crate::buffers::Buffers;
use crate::commit_queue::{BuiltPart, CommitQueue, Target, Wait};
use crate::compress::EncodedBytes;
use crate::create::WriteOptions;
use crate::folder::Folder;
use crate::hasher::{Hashing, VolumeHasher};
use crate::memory::cached_bytes;
use crate::observer::Observer;
use crate::open_volume::{OpenVolume, PendingRow};
use crate::packed::{Packed, Piece};
use crate::pending_bytes::PendingBytes;
use crate::plan::{OutputStream, VolumeSplitter};
use crate::recovery::{PartialVolume, is_of_dialect, volume_behind};

/// How volumes are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterOptions {
    pub(crate) splitter: VolumeSplitter,
    pub(crate) takes_md5: bool,
    pub(crate) read_only: bool,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) checkpoint_interval: Duration,
}

/// Rows kept in memory before a checkpoint is made whatever the bytes: about 30 MB of names.
const MOST_ROWS: usize = 250_000;

/// The same where names are long: in a chain of 20,000 directories they are as many bytes as all else.
const MOST_NAME_BYTES: usize = 64 << 20;

pub(crate) struct VolumeWriter<'a> {
    folder: &'a Folder,
    options: WriterOptions,
    observer: &'a dyn Observer,
    /// The next number for the sequence; how the volume is stored is the splitter's to say.
    next: VolumeId,
    /// The volume that the sequence has come to.
    in_sequence: Option<VolumeId>,
    open: BTreeMap<VolumeId, OpenVolume>,
    queue: CommitQueue<'a>,
    /// The planned lengths of volumes with streams of their own.
    planned: BTreeMap<VolumeId, u64>,
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
    /// Bytes that the observer knows of.
    reported: u64,
}

impl<'a> VolumeWriter<'a> {
    /// Returns a writer without volumes; [`Self::expect`] says which there will be.
    ///
    /// # Errors
    /// `NoThread`.
    pub(crate) fn new(
        folder: &'a Folder,
        target: Target<'a>,
        options: WriterOptions,
        observer: &'a dyn Observer,
        buffers: &Arc<Buffers>,
    ) -> Result<Self, ArchiveError> {
        Ok(Self {
            folder,
            queue: CommitQueue::new(folder, target, observer),
            options,
            observer,
            hashing: Hashing::start(buffers)?,
            next: VolumeId::plain(0),
            in_sequence: None,
            open: BTreeMap::new(),
            planned: BTreeMap::new(),
            large: None,
            checkpoint_at: Instant::now(),
            written: Written::default(),
        })
    }

    /// Says which volumes have streams of their own, with their planned lengths, and the first number behind.
    pub(crate) fn expect(&mut self, planned: BTreeMap<VolumeId, u64>, next: VolumeId) {
        self.queue.expect(planned.keys().copied());
        self.planned = planned;
        self.next = next;
    }

    /// Goes on with a volume that an interrupted run left, in its own stream or in the sequence; or closes it, if
    /// it gets nothing more, or is in another dialect.
    pub(crate) fn resume(
        &mut self,
        partial: PartialVolume,
        is_complete: bool,
    ) -> Result<(), ArchiveError> {
        let id = partial.checkpoint.volume;
        let hasher = if self.options.takes_md5 {
            self.hashing.resume(&partial.checkpoint.md5_state)
        } else {
            None
        };
        let hasher = hasher.unwrap_or_else(|| self.hashing.none());
        let volume = OpenVolume::resume(self.folder, partial, self.planned_end(id), hasher)?;
        self.open.insert(id, volume);
        if !self.queue.expects(id) {
            if let Some(before) = self.in_sequence {
                self.end(before)?;
            }
            self.queue.expect([id]);
            self.in_sequence = Some(id);
            self.next = self.next.max(VolumeId::plain(id.0 + 1));
        }
        let dialect = self.options.splitter.dialect;
        if is_complete || !is_of_dialect(self.folder, id, dialect)? {
            self.end(id)?;
        }
        Ok(())
    }

    /// Takes the next piece of a stream.
    pub(crate) fn take(&mut self, stream: OutputStream, piece: Piece) -> Result<(), ArchiveError> {
        let _scope = scope!("write");
        if self.observer.is_interrupted() || self.queue.has_failed() {
            // A piece before this one may be missing.
            return Err(ArchiveError::Interrupted);
        }
        match piece {
            Piece::Members { bytes, members } => self.take_members(stream, bytes, members)?,
            Piece::Frames { encoded, members } => self.take_frames(stream, encoded, members)?,
            Piece::Begin { encoded, member } => self.begin_large(stream, encoded, *member)?,
            Piece::Slice(encoded) => self.take_slice(encoded)?,
            Piece::End { encoded, md5 } => self.end_large(encoded, md5)?,
            Piece::Abort => self.abort_large()?,
            Piece::EndOfStream => {
                if let OutputStream::Volume(id) = stream {
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
        stream: OutputStream,
        bytes: Vec<u8>,
        members: Vec<Packed>,
    ) -> Result<(), ArchiveError> {
        let mut pending = PendingBytes::new(bytes);
        for mut packed in members {
            let len = usize::try_from(packed.len)
                .map_err(|error| ArchiveError::Output(std::io::Error::other(error)))?;
            let one = std::slice::from_ref(&packed);
            let Some(id) = self.volume_for(stream, one, &mut pending)? else {
                self.flush(&mut pending)?;
                pending.skip(len);
                continue;
            };
            pending.volume = Some(id);
            let Some(volume) = self.open.get_mut(&id) else {
                continue;
            };
            let link = volume.as_hard_link(&mut packed);
            let offset = volume.offset() + pending.len();
            match (link, &packed.several_names) {
                (Some(header), Some(several)) => {
                    if let Some(bytes) = pending.take() {
                        volume.append(self.folder, EncodedBytes::plain(bytes))?;
                    }
                    volume.append(self.folder, EncodedBytes::plain(header))?;
                    pending.skip(several.header_len);
                    pending.extend(len - several.header_len);
                }
                _ => pending.extend(len),
            }
            self.observer.advanced(1, packed.size);
            let row = volume.push_row(packed, offset);
            self.written.count(self.observer, id, row);
        }
        self.flush(&mut pending)
    }

    /// Members of one frame go into one volume.
    fn take_frames(
        &mut self,
        stream: OutputStream,
        encoded: EncodedBytes,
        members: Vec<Packed>,
    ) -> Result<(), ArchiveError> {
        let mut nothing = PendingBytes::new(Vec::new());
        let Some(id) = self.volume_for(stream, &members, &mut nothing)? else {
            return Ok(());
        };
        let Some(volume) = self.open.get_mut(&id) else {
            return Ok(());
        };
        let mut offset = volume.offset();
        volume.append(self.folder, encoded)?;
        for packed in members {
            self.observer.advanced(1, packed.size);
            let len = packed.len;
            let row = volume.push_row(packed, offset);
            self.written.count(self.observer, id, row);
            offset += len;
        }
        Ok(())
    }

    /// Returns the volume that members go to, begun if need be; None if they do not fit into the volume of a part.
    fn volume_for(
        &mut self,
        stream: OutputStream,
        members: &[Packed],
        pending: &mut PendingBytes,
    ) -> Result<Option<VolumeId>, ArchiveError> {
        let splitter = self.options.splitter;
        if let OutputStream::Volume(id) = stream {
            match self.open.get_mut(&id) {
                Some(volume) if !volume.fits(splitter, members, pending.ahead_of(id)) => {
                    volume.pass_over(members);
                }
                Some(_) => return self.turn_to(id, pending).map(Some),
                None => return self.begin(id).map(Some),
            }
        }
        if let Target::Part(built) = &mut self.queue.target {
            let names = members.iter().map(|packed| packed.name.clone());
            built.overflowed.extend(names);
            return Ok(None);
        }
        if let Some(id) = self.in_sequence
            && let Some(volume) = self.open.get(&id)
        {
            if volume.fits(splitter, members, pending.ahead_of(id)) {
                return self.turn_to(id, pending).map(Some);
            }
            self.flush(pending)?;
            self.end(id)?;
        }
        self.flush(pending)?;
        let id = self.next.stored_as(splitter.encoding);
        self.next = volume_behind(self.folder, id)?;
        self.queue.expect([id]);
        self.in_sequence = Some(id);
        self.begin(id).map(Some)
    }

    /// What is ahead of a member in its batch goes to its own volume first.
    fn turn_to(
        &mut self,
        id: VolumeId,
        pending: &mut PendingBytes,
    ) -> Result<VolumeId, ArchiveError> {
        if pending.volume != Some(id) {
            self.flush(pending)?;
        }
        Ok(id)
    }

    fn begin(&mut self, id: VolumeId) -> Result<VolumeId, ArchiveError> {
        let planned = self.planned_end(id);
        let longest = self.options.splitter.limit;
        self.queue
            .wait_for_room(if planned == 0 { longest } else { planned })?;
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

    fn flush(&mut self, pending: &mut PendingBytes) -> Result<(), ArchiveError> {
        let volume = pending.volume.and_then(|id| self.open.get_mut(&id));
        match (pending.take(), volume) {
            (Some(bytes), Some(volume)) => volume.append(self.folder, EncodedBytes::plain(bytes)),
            _ => Ok(()),
        }
    }

    fn begin_large(
        &mut self,
        stream: OutputStream,
        encoded: EncodedBytes,
        member: Packed,
    ) -> Result<(), ArchiveError> {
        let mut nothing = PendingBytes::new(Vec::new());
        let one = std::slice::from_ref(&member);
        let Some(id) = self.volume_for(stream, one, &mut nothing)? else {
            return Ok(());
        };
        self.large = Some(Arriving {
            volume: id,
            reported: 0,
        });
        match self.open.get_mut(&id) {
            Some(volume) => volume.begin_large(self.folder, encoded, member),
            None => Ok(()),
        }
    }

    fn take_slice(&mut self, encoded: EncodedBytes) -> Result<(), ArchiveError> {
        let Some(arriving) = &mut self.large else {
            return Ok(());
        };
        let len = encoded.len();
        arriving.reported += len;
        self.observer.advanced(0, len);
        match self.open.get_mut(&arriving.volume) {
            Some(volume) => volume.append(self.folder, encoded),
            None => Ok(()),
        }
    }

    fn end_large(&mut self, encoded: EncodedBytes, md5: [u8; 16]) -> Result<(), ArchiveError> {
        let Some(arriving) = self.large.take() else {
            return Ok(());
        };
        if let Some(volume) = self.open.get_mut(&arriving.volume) {
            volume.append(self.folder, encoded)?;
            if let Some(row) = volume.end_large(md5) {
                let rest = row.size.saturating_sub(arriving.reported);
                self.observer.advanced(1, rest);
                self.written.count(self.observer, arriving.volume, row);
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
        let (mut bytes, mut rows, mut name_bytes) = (0, 0, 0);
        let open = self.open.values().map(OpenVolume::unstaged);
        for unstaged in open.chain(self.queue.unstaged()) {
            bytes += unstaged.bytes;
            rows += unstaged.rows;
            name_bytes += unstaged.name_bytes;
        }
        let is_due = bytes >= self.options.checkpoint_bytes
            || self.checkpoint_at.elapsed() >= self.options.checkpoint_interval
            || rows >= MOST_ROWS
            || name_bytes >= MOST_NAME_BYTES;
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
        self.queue.checkpoint()?;
        let (run, stays_cached) = (self.queue.run(), self.stays_cached());
        for volume in self.open.values_mut() {
            volume.checkpoint(self.folder, run)?;
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
        if self.in_sequence == Some(id) {
            self.in_sequence = None;
        }
        let closing = match self.open.remove(&id) {
            Some(volume) if volume.is_empty() => {
                volume.discard(self.folder)?;
                if self.next.0 == id.0 + 1 && self.queue.take_back(id) {
                    // Nobody has seen the number.
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
        let ended = self.queue.end(id, closing);
        self.written.volumes = self.queue.committed;
        ended
    }

    /// Ends all volumes and commits them.
    pub(crate) fn finish(&mut self) -> Result<(), ArchiveError> {
        let _scope = scope!("finish volumes");
        for id in self.queue.unended() {
            self.end(id)?;
        }
        self.commit_ended(Wait::Yes)
    }

    fn commit_ended(&mut self, wait: Wait) -> Result<(), ArchiveError> {
        let committed = self.queue.commit_ended(wait);
        self.written.volumes = self.queue.committed;
        committed
    }

    /// Returns what became of a part of a plan; None for a run on an archive.
    pub(crate) fn into_built(self) -> Option<BuiltPart> {
        match self.queue.target {
            Target::Index { .. } => None,
            Target::Part(built) => Some(built),
        }
    }

    /// After an error: keeps what a checkpoint made durable, removes the rest.
    ///
    /// The error that led here is the one to report; what fails here is met again by the next run.
    pub(crate) fn abandon(&mut self, error: &ArchiveError) {
        self.queue.outlive_interruption();
        let is_kept = matches!(self.queue.target, Target::Index { .. });
        if is_kept && matches!(error, ArchiveError::Interrupted) {
            let _ = self.keep();
        }
        self.open.clear();
        self.queue.abandon();
    }

    /// Makes durable what is there. The next run commits it: a transaction may have millions of rows.
    fn keep(&mut self) -> Result<(), ArchiveError> {
        self.abort_large()?;
        self.stage()
    }
}

impl WriterOptions {
    pub(crate) fn new(options: &WriteOptions, splitter: VolumeSplitter) -> Self {
        Self {
            splitter,
            takes_md5: options.volume_md5,
            read_only: options.read_only_volumes,
            checkpoint_bytes: options.checkpoint_bytes,
            checkpoint_interval: options.checkpoint_interval,
        }
    }
}

impl Written {
    fn count(&mut self, observer: &dyn Observer, volume: VolumeId, row: &PendingRow) {
        self.members += 1;
        self.bytes += row.size;
        observer.archived(volume, &row.name);
        observer.done(&row.name);
    }
}
