//! One volume while it is being written: its bytes, its rows, its checkpoints.
//!
//! `000003.rows.partial` exists from the first byte of a volume until its commit: it proves
//! that the volume is stook's own and unfinished, also if it was renamed already, and how much of it
//! can be kept. It knows nothing of the index or of other volumes: see `writer.rs`.

use std::collections::HashMap;
use std::fs::File;

use stook_index::{
    AttributesEncoder, Checkpoint, Frame, Mtime, NewBlock, NewRow, RunId, Staging, VolumeId,
    VolumeParts,
};
use stook_sys::{
    Context, FileId, SysError, create_new_file, drop_cached, metadata, open_read_write, set_mode,
    start_writeback, sync_directory, write_all_at,
};
use stook_timers::scope;
use stook_volume::{
    Dialect, FrameEncoder, Kind, ZstdLevel, encode, encode_seek_table, trailer_len,
};

use crate::ArchiveError;
use crate::attributes::HeaderFacts;
use crate::compress::{EncodedBytes, push_frame};
use crate::folder::Folder;
use crate::frame_log::{FrameLog, last_frames};
use crate::hasher::{Answer, VolumeHasher, wait_for};
use crate::packed::Packed;
use crate::plan::VolumeSplitter;
use crate::recovery::{PartialVolume, end_of, remove_unfinished};
use crate::task::Task;

/// Bytes after which the disk is asked to begin writing.
const WRITEBACK_BYTES: u64 = 32 << 20;

pub(crate) struct OpenVolume {
    pub(crate) id: VolumeId,
    file: File,
    /// Where the next member begins in the uncompressed volume.
    offset: u64,
    /// Bytes of the file: as many, unless it is compressed.
    stored: u64,
    frames: FrameLog,
    /// Bytes that the plan gave to the members so far.
    planned: u64,
    /// What that will come to; 0 if there is no plan.
    planned_end: u64,
    /// Up to where the disk has been asked to write.
    written_back: u64,
    hasher: VolumeHasher,
    rows: Vec<PendingRow>,
    /// Bytes of their names.
    name_bytes: usize,
    /// Of the same members as `rows`.
    attributes: AttributesEncoder,
    staging: Option<Staging>,
    staged_offset: u64,
    /// First names of files with several, in zstash's dialect.
    names: HashMap<FileId, Vec<u8>>,
    /// The large member whose slices are arriving.
    large: Option<LargeMember>,
}

pub(crate) struct PendingRow {
    pub(crate) name: Vec<u8>,
    pub(crate) size: u64,
    mtime: Mtime,
    md5: Option<[u8; 16]>,
    offset: u64,
}

/// What no checkpoint covers yet.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Unstaged {
    /// Of members in the volume.
    pub(crate) bytes: u64,
    /// In memory.
    pub(crate) rows: usize,
    pub(crate) name_bytes: usize,
}

struct LargeMember {
    begin: Frame,
    row: PendingRow,
    facts: HeaderFacts,
    planned: u64,
    identity: Option<FileId>,
}

impl OpenVolume {
    pub(crate) fn create(
        folder: &Folder,
        id: VolumeId,
        planned_end: u64,
        hasher: VolumeHasher,
    ) -> Result<Self, ArchiveError> {
        // The marker comes first: a volume without one is not ours.
        create_new_file(&folder.staging(id))?;
        let file = create_new_file(&folder.partial(id))?;
        Ok(Self::new(id, planned_end, file, hasher))
    }

    fn new(id: VolumeId, planned_end: u64, file: File, hasher: VolumeHasher) -> Self {
        Self {
            id,
            file,
            offset: 0,
            stored: 0,
            frames: FrameLog::default(),
            planned: 0,
            planned_end,
            written_back: 0,
            hasher,
            rows: Vec::new(),
            name_bytes: 0,
            attributes: AttributesEncoder::default(),
            staging: None,
            staged_offset: 0,
            names: HashMap::new(),
            large: None,
        }
    }

    /// Goes on with a volume that an interrupted run left.
    pub(crate) fn resume(
        folder: &Folder,
        partial: PartialVolume,
        planned_end: u64,
        hasher: VolumeHasher,
    ) -> Result<Self, ArchiveError> {
        let PartialVolume {
            checkpoint,
            staging,
            names,
        } = partial;
        let path = folder.partial(checkpoint.volume);
        let file = open_read_write(&path)?;
        file.set_len(checkpoint.stored).context("truncate", &path)?;
        let end = end_of(&checkpoint);
        let frames = FrameLog::resume(&staging.frames()?, end, &file).context("read", &path)?;
        Ok(Self {
            offset: checkpoint.offset,
            stored: checkpoint.stored,
            frames,
            planned: checkpoint.planned,
            written_back: checkpoint.stored,
            staging: Some(staging),
            staged_offset: checkpoint.offset,
            names,
            ..Self::new(checkpoint.volume, planned_end, file, hasher)
        })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns what a kill would lose now.
    pub(crate) fn unstaged(&self) -> Unstaged {
        Unstaged {
            bytes: self.offset - self.staged_offset,
            rows: self.rows.len(),
            name_bytes: self.name_bytes,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.staging.is_none()
    }

    /// Returns true if members that stay together still go into the volume.
    pub(crate) fn fits(&self, splitter: VolumeSplitter, members: &[Packed], ahead: u64) -> bool {
        let len = members.iter().map(|packed| packed.len).sum();
        let size = members.iter().map(|packed| packed.size).sum();
        splitter.fits(self.offset + ahead, len, size)
    }

    /// Appends bytes of members.
    pub(crate) fn append(
        &mut self,
        folder: &Folder,
        encoded: EncodedBytes,
    ) -> Result<(), ArchiveError> {
        let mut place = self.end();
        for &frame in &encoded.frames {
            self.frames.push(place, frame);
            place.offset += u64::from(frame.len);
            place.stored += u64::from(frame.stored);
        }
        self.offset += encoded.len();
        self.write(folder, encoded.bytes)
    }

    /// Returns where the volume ends so far.
    fn end(&self) -> Frame {
        Frame {
            offset: self.offset,
            stored: self.stored,
        }
    }

    fn write(&mut self, folder: &Folder, bytes: Vec<u8>) -> Result<(), ArchiveError> {
        {
            let _scope = scope!("write volume");
            write_all_at(&self.file, &bytes, self.stored)
                .context("write", folder.partial(self.id))?;
        }
        self.stored += bytes.len() as u64;
        let len = self.stored - self.written_back;
        if len >= WRITEBACK_BYTES {
            start_writeback(&self.file, self.written_back, len);
            self.written_back = self.stored;
        }
        self.hasher.update(bytes);
        Ok(())
    }

    /// Counts members that the plan gave to this volume, and that went elsewhere.
    pub(crate) fn pass_over(&mut self, members: &[Packed]) {
        self.planned += members.iter().map(|packed| packed.planned).sum::<u64>();
    }

    /// Adds the row of a member that is written from `offset` on.
    pub(crate) fn push_row(&mut self, packed: Packed, offset: u64) -> &PendingRow {
        let several = packed.several_names.as_ref();
        let identity = several.map(|several| several.identity);
        self.planned += packed.planned;
        self.attributes.push(&packed.facts.attributes(offset));
        self.push(row_of(packed, offset), identity)
    }

    fn push(&mut self, row: PendingRow, identity: Option<FileId>) -> &PendingRow {
        if let Some(identity) = identity {
            let name = || row.name.clone();
            self.names.entry(identity).or_insert_with(name);
        }
        let place = self.rows.len();
        self.name_bytes += row.name.len();
        self.rows.push(row);
        &self.rows[place]
    }

    /// Encodes the header anew if the file is in this volume already under another name.
    pub(crate) fn as_hard_link(&self, packed: &mut Packed) -> Option<Vec<u8>> {
        let several = packed.several_names.as_ref()?;
        let first = self.names.get(&several.identity)?;
        let mut header = several.header.clone();
        header.kind = Kind::HardLink;
        header.target.clone_from(first);
        let mut bytes = Vec::new();
        // A header that cannot be encoded as a link stays that of a file.
        encode(&header, Dialect::Zstash, &mut bytes).ok()?;
        packed.facts.become_hard_link(first, bytes.len());
        Some(bytes)
    }

    pub(crate) fn begin_large(
        &mut self,
        folder: &Folder,
        encoded: EncodedBytes,
        mut member: Packed,
    ) -> Result<(), ArchiveError> {
        self.hasher.mark();
        let header = match self.as_hard_link(&mut member) {
            Some(header) => EncodedBytes::plain(header),
            None => encoded,
        };
        let begin = self.end();
        let several = member.several_names.as_deref();
        let identity = several.map(|several| several.identity);
        let planned = member.planned;
        let facts = std::mem::take(&mut member.facts);
        let row = row_of(member, self.offset);
        self.large = Some(LargeMember {
            begin,
            row,
            facts,
            planned,
            identity,
        });
        self.append(folder, header)
    }

    pub(crate) fn end_large(&mut self, md5: [u8; 16]) -> Option<&PendingRow> {
        let LargeMember {
            mut row,
            facts,
            planned,
            identity,
            ..
        } = self.large.take()?;
        row.md5 = Some(md5);
        self.attributes.push(&facts.attributes(row.offset));
        self.planned += planned;
        Some(self.push(row, identity))
    }

    /// Takes a member that failed back out of the volume.
    pub(crate) fn abort_large(&mut self, folder: &Folder) -> Result<(), ArchiveError> {
        if let Some(large) = self.large.take() {
            self.hasher.rewind();
            self.frames.truncate(large.begin);
            Frame {
                offset: self.offset,
                stored: self.stored,
            } = large.begin;
            self.written_back = self.written_back.min(self.stored);
            self.file
                .set_len(self.stored)
                .context("truncate", folder.partial(self.id))?;
        }
        Ok(())
    }

    /// Makes everything up to here durable, for a later run to go on from.
    pub(crate) fn checkpoint(&mut self, folder: &Folder, run: RunId) -> Result<(), ArchiveError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let path = folder.partial(self.id);
        self.file.sync_data().context("sync", &path)?;
        sync_directory(folder.path())?;
        let checkpoint = Checkpoint {
            run,
            volume: self.id,
            offset: self.offset,
            stored: self.stored,
            planned: self.planned,
            planned_end: self.planned_end,
            md5_state: wait_for(self.hasher.state()).unwrap_or_default(),
        };
        let attributes = self.attributes.take();
        let parts = VolumeParts {
            attributes: &attributes,
            frames: self.frames.unstaged(),
        };
        record(folder, &mut self.staging, &checkpoint, &self.rows, parts)?;
        self.frames.have_staged();
        self.rows.clear();
        self.name_bytes = 0;
        self.staged_offset = self.offset;
        Ok(())
    }

    /// Hints to the system that the durable part will not be read soon.
    pub(crate) fn drop_cached(&self) {
        drop_cached(&self.file, 0, self.stored);
    }

    /// Writes the end of the volume and makes it durable, on a thread of its own.
    pub(crate) fn close(
        mut self,
        folder: &Folder,
        is_read_only: bool,
        stays_cached: bool,
    ) -> Result<ClosingVolume, ArchiveError> {
        let (end, unstaged) = (self.end(), self.unstaged());
        let md5_state = self.hasher.state();
        let frames = self.frames.unstaged().to_vec();
        let last_frames = self.append_end(folder)?;
        let (path, file, hasher) = (folder.partial(self.id), self.file, self.hasher);
        let len = self.stored;
        let syncing = Task::begin(move || {
            let _scope = scope!("sync");
            if is_read_only {
                let mode = metadata(&file).context("look at", &path)?.mode;
                set_mode(&file, mode & !0o222).context("set the mode of", &path)?;
            }
            file.sync_all().context("sync", &path)?;
            if !stays_cached {
                drop_cached(&file, 0, len);
            }
            Ok(wait_for(hasher.finish()))
        });
        Ok(ClosingVolume {
            id: self.id,
            end,
            frames,
            last_frames,
            unstaged,
            planned: self.planned,
            len,
            rows: self.rows,
            attributes: self.attributes.take(),
            staging: self.staging,
            md5_state,
            md5: None,
            syncing: Some(syncing),
        })
    }

    /// Appends the end marker, and where the frames lie; returns what the index keeps of both.
    fn append_end(&mut self, folder: &Folder) -> Result<Vec<Frame>, ArchiveError> {
        let end = self.end();
        let len = usize::try_from(trailer_len(end.offset)).expect("it is less than 12 KiB");
        let trailer = vec![0; len];
        if !self.id.is_compressed() {
            self.append(folder, EncodedBytes::plain(trailer))?;
            return Ok(Vec::new());
        }
        let path = folder.partial(self.id);
        let not_compressed = |source| ArchiveError::NotCompressed {
            path: path.clone(),
            source,
        };
        let frames = self.frames.entries().len() as u64;
        // Zeros are the same frame at every level.
        let mut encoder = FrameEncoder::new(ZstdLevel::default()).map_err(not_compressed)?;
        let mut encoded = EncodedBytes::default();
        push_frame(&mut encoder, &trailer, &mut encoded).map_err(not_compressed)?;
        self.append(folder, encoded)?;
        let table = encode_seek_table(self.frames.entries()).map_err(not_compressed)?;
        self.write(folder, table)?;
        Ok(last_frames(end, frames, self.stored).to_vec())
    }

    pub(crate) fn discard(self, folder: &Folder) -> Result<(), ArchiveError> {
        remove_unfinished(folder, self.id)
    }
}

/// A volume on its way to the disk: complete, not yet durable, not yet in the index.
pub(crate) struct ClosingVolume {
    pub(crate) id: VolumeId,
    /// Where its members end.
    end: Frame,
    /// Of the members that no checkpoint covers yet, if it is compressed.
    frames: Vec<Frame>,
    /// Those behind the members.
    last_frames: Vec<Frame>,
    unstaged: Unstaged,
    planned: u64,
    pub(crate) len: u64,
    pub(crate) rows: Vec<PendingRow>,
    /// Of the same members as `rows`.
    pub(crate) attributes: Vec<NewBlock>,
    pub(crate) staging: Option<Staging>,
    md5_state: Answer<Vec<u8>>,
    /// Of the whole volume, once it is durable, if one is taken.
    md5: Option<[u8; 16]>,
    /// None once it is durable.
    syncing: Option<Task<Result<Option<[u8; 16]>, SysError>>>,
}

impl ClosingVolume {
    /// Returns all frames that no checkpoint covers, with those behind the members.
    pub(crate) fn unstaged_frames(&self) -> Vec<Frame> {
        [&self.frames[..], &self.last_frames].concat()
    }

    /// Returns what a kill would lose now.
    pub(crate) fn unstaged(&self) -> Unstaged {
        self.unstaged
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.syncing.as_ref().is_none_or(Task::is_finished)
    }

    /// Waits until it is durable; returns its MD5 if one is taken.
    pub(crate) fn wait_until_durable(&mut self) -> Result<Option<[u8; 16]>, SysError> {
        if let Some(syncing) = self.syncing.take() {
            self.md5 = syncing.join()?;
        }
        Ok(self.md5)
    }

    /// Keeps its rows beside it, for a later run to finish it: it waits for volumes before it.
    pub(crate) fn checkpoint(&mut self, folder: &Folder, run: RunId) -> Result<(), ArchiveError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.wait_until_durable()?;
        sync_directory(folder.path())?;
        let checkpoint = Checkpoint {
            run,
            volume: self.id,
            offset: self.end.offset,
            stored: self.end.stored,
            planned: self.planned,
            planned_end: self.planned,
            md5_state: wait_for(self.md5_state.take()).unwrap_or_default(),
        };
        let parts = VolumeParts {
            attributes: &self.attributes,
            frames: &self.frames,
        };
        record(folder, &mut self.staging, &checkpoint, &self.rows, parts)?;
        self.attributes.clear();
        self.frames.clear();
        self.rows.clear();
        self.unstaged = Unstaged::default();
        Ok(())
    }
}

fn record(
    folder: &Folder,
    staging: &mut Option<Staging>,
    checkpoint: &Checkpoint,
    rows: &[PendingRow],
    parts: VolumeParts<'_>,
) -> Result<(), ArchiveError> {
    let staging = match staging {
        Some(staging) => staging,
        // Made in the empty marker, so that the volume is never without one.
        None => staging.insert(Staging::create(folder.staging(checkpoint.volume))?),
    };
    staging.record(checkpoint, rows.iter().map(PendingRow::as_new), parts)?;
    Ok(())
}

impl PendingRow {
    pub(crate) fn as_new(&self) -> NewRow<'_> {
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
