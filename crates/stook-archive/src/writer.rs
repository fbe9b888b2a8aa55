//! Writes volumes and commits them.
//!
//! ```text
//!   parts ──> 000003.tar.partial ──sync──> rename to 000003.tar ──> one transaction: tars + files
//!               │ every checkpoint: sync, then rows and offset into 000003.rows.partial
//! ```
//! Nothing is in the index before its bytes are durable under their final name. `000003.rows.partial`
//! exists from the first byte of a volume until its commit: whoever finds one knows that the volume is
//! stook's own and unfinished, also if it was renamed already, and how much of it can be kept.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stook_index::{Checkpoint, Index, Mtime, NewRow, RunId, Staging, Volume, VolumeId};
use stook_sys::{
    Context, FileId, create_new_file, metadata, open_file, open_read_write, rename_to_new,
    set_mode, start_writeback, sync_directory, write_all_at,
};
use stook_timers::scope;
use stook_volume::{Dialect, Kind, encode, trailer_len};

use crate::ArchiveError;
use crate::batch::is_stooks;
use crate::buffers::Buffers;
use crate::folder::Folder;
use crate::hasher::VolumeHasher;
use crate::observer::Observer;
use crate::pack::{Packed, Part, SeveralNames};
use crate::plan::Cutter;
use crate::recovery::{Leftover, next_volume, recover, remove_staging, remove_unfinished};

/// How volumes are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterOptions {
    pub(crate) cutter: Cutter,
    pub(crate) takes_md5: bool,
    pub(crate) read_only: bool,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) checkpoint_interval: Duration,
}

/// Bytes after which the disk is told to begin writing.
const WRITEBACK_BYTES: u64 = 32 << 20;

/// Rows kept in memory before a checkpoint is made whatever the bytes: about 30 MB of names.
const MOST_ROWS: usize = 250_000;

pub(crate) struct VolumeWriter<'a> {
    folder: &'a Folder,
    index: &'a mut Index,
    run: RunId,
    options: WriterOptions,
    observer: &'a dyn Observer,
    buffers: Arc<Buffers>,
    next: VolumeId,
    current: Option<OpenVolume>,
    /// The large member whose slices are arriving.
    large: Option<LargeMember>,
    pub(crate) written: Written,
}

/// What has been written.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) members: u64,
    pub(crate) bytes: u64,
    pub(crate) volumes: u64,
}

struct OpenVolume {
    id: VolumeId,
    file: File,
    offset: u64,
    /// Up to where the disk has been told to write.
    written_back: u64,
    hasher: VolumeHasher,
    rows: Vec<PendingRow>,
    staging: Option<Staging>,
    staged_offset: u64,
    staged_at: Instant,
    names: HashMap<FileId, Vec<u8>>,
}

struct PendingRow {
    name: Vec<u8>,
    size: u64,
    mtime: Mtime,
    md5: Option<[u8; 16]>,
    offset: u64,
}

struct LargeMember {
    row: PendingRow,
    identity: Option<FileId>,
    /// Bytes that the observer was told of.
    told: u64,
}

impl<'a> VolumeWriter<'a> {
    pub(crate) fn new(
        folder: &'a Folder,
        index: &'a mut Index,
        run: RunId,
        options: WriterOptions,
        observer: &'a dyn Observer,
        buffers: &Arc<Buffers>,
    ) -> Result<Self, ArchiveError> {
        let next = next_volume(folder, index)?;
        let written = Written::default();
        Ok(Self {
            folder,
            index,
            run,
            options,
            observer,
            buffers: Arc::clone(buffers),
            next,
            current: None,
            large: None,
            written,
        })
    }

    /// Goes on with the volume that an interrupted run left.
    pub(crate) fn resume(&mut self, leftover: Leftover) -> Result<(), ArchiveError> {
        let Leftover {
            checkpoint,
            staging,
            names,
        } = leftover;
        let path = self.folder.partial(checkpoint.volume);
        let file = open_read_write(&path)?;
        file.set_len(checkpoint.offset).context("truncate", &path)?;
        let hasher = if self.options.takes_md5 {
            VolumeHasher::start(Some(&checkpoint.md5_state), &self.buffers)
        } else {
            None
        };
        let hasher = hasher.unwrap_or_else(|| VolumeHasher::none(&self.buffers));
        self.next = self.next.max(VolumeId(checkpoint.volume.0 + 1));
        self.current = Some(OpenVolume {
            id: checkpoint.volume,
            file,
            offset: checkpoint.offset,
            written_back: checkpoint.offset,
            hasher,
            rows: Vec::new(),
            staging: Some(staging),
            staged_offset: checkpoint.offset,
            staged_at: Instant::now(),
            names,
        });
        // `check` trusts the headers of a volume that begins in stook's dialect: no mixtures.
        if is_stooks(&open_file(&path)?) != (self.options.cutter.dialect == Dialect::Stook) {
            self.seal()?;
        }
        Ok(())
    }

    /// Takes the next part.
    pub(crate) fn take(&mut self, part: Part) -> Result<(), ArchiveError> {
        let _scope = scope!("write");
        match part {
            Part::Members { bytes, members } => self.take_members(bytes, members)?,
            Part::Begin { bytes, member } => self.begin_large(bytes, member)?,
            Part::Slice(bytes) => {
                self.tell_slice(bytes.len() as u64);
                self.append(bytes)?;
            }
            Part::End { bytes, md5 } => {
                self.append(bytes)?;
                self.end_large(md5);
            }
            Part::Abort => self.abort_large()?,
        }
        if self.large.is_none() {
            self.checkpoint_if_due()?;
        }
        if self.observer.is_interrupted() {
            return Err(ArchiveError::Interrupted);
        }
        Ok(())
    }

    fn take_members(&mut self, bytes: Vec<u8>, members: Vec<Packed>) -> Result<(), ArchiveError> {
        let mut pending = Pending {
            bytes,
            start: 0,
            end: 0,
        };
        for packed in members {
            let len = usize::try_from(packed.len)
                .map_err(|error| ArchiveError::Output(std::io::Error::other(error)))?;
            let ahead = (pending.end - pending.start) as u64;
            if !self.fits(&packed, ahead) {
                self.flush(&mut pending)?;
                self.seal()?;
            }
            self.open_volume()?;
            let identity = packed
                .several_names
                .as_ref()
                .map(|several| several.identity);
            let link = packed
                .several_names
                .as_ref()
                .and_then(|several| self.as_hard_link(several));
            match (link, &packed.several_names) {
                (Some(header), Some(several)) => {
                    self.flush(&mut pending)?;
                    let offset = self.offset();
                    self.append(header)?;
                    pending.start += several.header_len;
                    pending.end += len;
                    self.flush(&mut pending)?;
                    self.observer.advanced(1, packed.size);
                    self.push_row(row_of(packed, offset), identity);
                }
                _ => {
                    let offset = self.offset() + (pending.end - pending.start) as u64;
                    pending.end += len;
                    self.observer.advanced(1, packed.size);
                    self.push_row(row_of(packed, offset), identity);
                }
            }
        }
        self.flush(&mut pending)
    }

    fn begin_large(&mut self, bytes: Vec<u8>, member: Packed) -> Result<(), ArchiveError> {
        if !self.fits(&member, 0) {
            self.seal()?;
        }
        let volume = self.open_volume()?;
        volume.hasher.mark();
        let offset = volume.offset;
        let identity = member
            .several_names
            .as_ref()
            .map(|several| several.identity);
        let link = member
            .several_names
            .as_ref()
            .and_then(|several| self.as_hard_link(several));
        self.append(link.unwrap_or(bytes))?;
        self.large = Some(LargeMember {
            row: row_of(member, offset),
            identity,
            told: 0,
        });
        Ok(())
    }

    fn tell_slice(&mut self, bytes: u64) {
        if let Some(large) = &mut self.large {
            large.told += bytes;
            self.observer.advanced(0, bytes);
        }
    }

    fn end_large(&mut self, md5: [u8; 16]) {
        if let Some(LargeMember {
            mut row,
            identity,
            told,
        }) = self.large.take()
        {
            row.md5 = Some(md5);
            self.observer.advanced(1, row.size.saturating_sub(told));
            self.push_row(row, identity);
        }
    }

    /// Takes a member that failed back out of the volume.
    fn abort_large(&mut self) -> Result<(), ArchiveError> {
        if let (Some(large), Some(volume)) = (self.large.take(), &mut self.current) {
            volume.hasher.rewind();
            volume.offset = large.row.offset;
            volume.written_back = volume.written_back.min(volume.offset);
            volume
                .file
                .set_len(volume.offset)
                .context("truncate", self.folder.partial(volume.id))?;
        }
        Ok(())
    }

    fn fits(&self, packed: &Packed, ahead: u64) -> bool {
        let offset = self.offset() + ahead;
        self.options.cutter.fits(offset, packed.len, packed.size)
    }

    fn offset(&self) -> u64 {
        self.current.as_ref().map_or(0, |volume| volume.offset)
    }

    /// Encodes the header anew if the file is in this volume already under another name.
    fn as_hard_link(&self, several: &SeveralNames) -> Option<Vec<u8>> {
        let first = self.current.as_ref()?.names.get(&several.identity)?;
        let mut header = several.header.clone();
        header.kind = Kind::HardLink;
        header.target.clone_from(first);
        let mut bytes = Vec::new();
        // A header that cannot be encoded as a link stays that of a file.
        encode(&header, Dialect::Zstash, &mut bytes).ok()?;
        Some(bytes)
    }

    fn push_row(&mut self, row: PendingRow, identity: Option<FileId>) {
        self.written.members += 1;
        self.written.bytes += row.size;
        self.observer.done(&row.name);
        if let Some(volume) = &mut self.current {
            if let Some(identity) = identity {
                volume
                    .names
                    .entry(identity)
                    .or_insert_with(|| row.name.clone());
            }
            volume.rows.push(row);
        }
    }

    fn open_volume(&mut self) -> Result<&mut OpenVolume, ArchiveError> {
        if self.current.is_none() {
            let id = self.next;
            self.next = VolumeId(id.0 + 1);
            // The marker comes first: a volume without one is not ours.
            create_new_file(&self.folder.staging(id))?;
            let file = create_new_file(&self.folder.partial(id))?;
            let hasher = if self.options.takes_md5 {
                VolumeHasher::start(None, &self.buffers)
            } else {
                None
            };
            self.current = Some(OpenVolume {
                id,
                file,
                offset: 0,
                written_back: 0,
                hasher: hasher.unwrap_or_else(|| VolumeHasher::none(&self.buffers)),
                rows: Vec::new(),
                staging: None,
                staged_offset: 0,
                staged_at: Instant::now(),
                names: HashMap::new(),
            });
        }
        Ok(self.current.as_mut().expect("opened above"))
    }

    fn flush(&mut self, pending: &mut Pending) -> Result<(), ArchiveError> {
        let Pending { bytes, start, end } = pending;
        if start == end {
            return Ok(());
        }
        let run = if *start == 0 && *end == bytes.len() {
            std::mem::take(bytes)
        } else {
            bytes[*start..*end].to_vec()
        };
        *start = *end;
        self.append(run)
    }

    fn append(&mut self, bytes: Vec<u8>) -> Result<(), ArchiveError> {
        let Some(volume) = &mut self.current else {
            return Ok(());
        };
        {
            let _scope = scope!("write volume");
            write_all_at(&volume.file, &bytes, volume.offset)
                .context("write", self.folder.partial(volume.id))?;
        }
        volume.offset += bytes.len() as u64;
        if volume.offset - volume.written_back >= WRITEBACK_BYTES {
            let len = volume.offset - volume.written_back;
            start_writeback(&volume.file, volume.written_back, len);
            volume.written_back = volume.offset;
        }
        volume.hasher.update(bytes);
        Ok(())
    }

    fn checkpoint_if_due(&mut self) -> Result<(), ArchiveError> {
        let Some(volume) = &self.current else {
            return Ok(());
        };
        let is_due = volume.offset - volume.staged_offset >= self.options.checkpoint_bytes
            || volume.staged_at.elapsed() >= self.options.checkpoint_interval
            || volume.rows.len() >= MOST_ROWS;
        if is_due { self.checkpoint() } else { Ok(()) }
    }

    /// Makes everything up to here durable, for a later run to go on from.
    pub(crate) fn checkpoint(&mut self) -> Result<(), ArchiveError> {
        let _scope = scope!("checkpoint");
        let Some(volume) = &mut self.current else {
            return Ok(());
        };
        if volume.rows.is_empty() {
            return Ok(());
        }
        volume
            .file
            .sync_data()
            .context("sync", self.folder.partial(volume.id))?;
        sync_directory(self.folder.path())?;
        let staging = match &mut volume.staging {
            Some(staging) => staging,
            None => {
                // Takes the place of the empty marker.
                remove_staging(self.folder, volume.id)?;
                volume
                    .staging
                    .insert(Staging::create(self.folder.staging(volume.id))?)
            }
        };
        let checkpoint = Checkpoint {
            run: self.run,
            volume: volume.id,
            offset: volume.offset,
            md5_state: volume.hasher.state().unwrap_or_default(),
        };
        staging.record(&checkpoint, volume.rows.iter().map(PendingRow::as_new))?;
        volume.rows.clear();
        volume.staged_offset = volume.offset;
        volume.staged_at = Instant::now();
        Ok(())
    }

    /// Ends the volume and commits it; a volume without members vanishes.
    pub(crate) fn seal(&mut self) -> Result<(), ArchiveError> {
        let _scope = scope!("seal");
        let Some(volume) = &self.current else {
            return Ok(());
        };
        if volume.rows.is_empty() && volume.staging.is_none() {
            return self.discard();
        }
        let trailer =
            usize::try_from(trailer_len(volume.offset)).expect("a trailer is less than 12 KiB");
        self.append(vec![0; trailer])?;
        let Some(volume) = self.current.take() else {
            return Ok(());
        };
        let OpenVolume {
            id,
            file,
            offset,
            hasher,
            rows,
            staging,
            ..
        } = volume;
        let partial = self.folder.partial(id);
        if self.options.read_only {
            let mode = metadata(&file).context("look at", &partial)?.mode;
            set_mode(&file, mode & !0o222).context("set the mode of", &partial)?;
        }
        {
            let _scope = scope!("sync");
            file.sync_all().context("sync", &partial)?;
        }
        rename_to_new(&partial, &self.folder.volume(id))?;
        sync_directory(self.folder.path())?;
        let row = Volume {
            id,
            size: offset,
            md5: hasher.finish(),
        };
        {
            let _scope = scope!("commit");
            self.index.commit_volume(
                &row,
                rows.iter().map(PendingRow::as_new),
                staging.as_ref(),
            )?;
        }
        drop(staging);
        remove_staging(self.folder, id)?;
        self.written.volumes += 1;
        Ok(())
    }

    /// After an error: keeps what a checkpoint made durable, removes the rest.
    ///
    /// The error that led here is the one to tell; what fails here is met again by the next run.
    pub(crate) fn abandon(&mut self, error: &ArchiveError) {
        if matches!(error, ArchiveError::Interrupted) {
            let _ = self.abort_large().and_then(|()| self.checkpoint());
        }
        self.current = None;
        if let Ok(Some((checkpoint, _))) = recover(self.folder, self.index, Some(self.run)) {
            // On a full disk, what is not durable need not take room.
            let partial = open_read_write(&self.folder.partial(checkpoint.volume));
            let _ = partial.map(|file| file.set_len(checkpoint.offset));
        }
    }

    fn discard(&mut self) -> Result<(), ArchiveError> {
        if let Some(volume) = self.current.take() {
            remove_unfinished(self.folder, volume.id)?;
            self.next = volume.id;
        }
        Ok(())
    }
}

/// Bytes of a batch that are in order but not yet written.
struct Pending {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl PendingRow {
    fn as_new(&self) -> NewRow<'_> {
        NewRow {
            name: &self.name,
            size: self.size,
            mtime: self.mtime,
            md5: self.md5,
            offset: self.offset,
        }
    }
}

fn row_of(packed: Packed, offset: u64) -> PendingRow {
    PendingRow {
        name: packed.name,
        size: packed.size,
        mtime: packed.mtime,
        md5: packed.md5,
        offset,
    }
}
