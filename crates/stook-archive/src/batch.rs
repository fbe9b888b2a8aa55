//! Reading members: rows gathered into runs of one volume, read in one piece.
//!
//! Rows come from the index in the order they were archived, which is the order of the volumes, so a
//! batch is one long read. Every reader goes through [`Window`]: small members are
//! slices of the window, large ones are read in pieces.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use stook_index::{Index, IndexError, Row, Selection, VolumeId};
use stook_md5::md5_many;
use stook_pool::{Budget, Jobs};
use stook_sys::{append_at, most_open_files, open_file, read_ahead};
use stook_timers::scope;
use stook_volume::{Decoded, HeaderCheck, Member, Segment, decode, decode_bytes};

use crate::ArchiveError;
use crate::buffers::Buffers;
use crate::cause::Cause;
use crate::folder::Folder;
use crate::memory::{budget_bytes, worker_pool};
use crate::mutex::lock;
use crate::plan::BATCH_BYTES;
use crate::task::begin_in;

/// Header blocks of a usual member: extended header, records, header block.
const USUAL_HEADER: u64 = 3 * 512;

/// What is read of a large member before its content.
const LARGE_HEADER: u64 = 64 << 10;

/// Rows in a batch at most: many workers share even a small extraction.
const BATCH_ROWS: usize = 64;

/// Batches that the index is read ahead.
const BATCHES_AHEAD: usize = 16;

/// Rows of one volume in ascending order, close enough to be read at once.
#[derive(Debug)]
pub(crate) struct RowBatch {
    pub(crate) volume: VolumeId,
    pub(crate) rows: Vec<Row>,
}

impl RowBatch {
    /// Bytes from the first member to the presumed end of the last one.
    fn span(&self) -> u64 {
        match (self.rows.first(), self.rows.last()) {
            (Some(first), Some(last)) => (last.offset - first.offset)
                .saturating_add(last.size)
                .saturating_add(2 * USUAL_HEADER),
            _ => 0,
        }
    }

    /// Bytes that are read at once: what the batch needs. Of a large member that is the header; its
    /// content is read in pieces.
    fn window_len(&self) -> usize {
        let span = self.span();
        let len = if span > 2 * BATCH_BYTES {
            LARGE_HEADER
        } else {
            span
        };
        usize::try_from(len).unwrap_or(0)
    }

    /// Bytes that work on the batch holds at a time.
    fn held_len(&self) -> usize {
        let piece = self.span().min(2 * BATCH_BYTES);
        usize::try_from(piece).unwrap_or(0)
    }

    fn takes(&self, volume: VolumeId, offset: u64, size: u64) -> bool {
        let Some((first, last)) = self.rows.first().zip(self.rows.last()) else {
            return true;
        };
        volume == self.volume
            && offset > last.offset
            && offset.saturating_add(size) - first.offset <= BATCH_BYTES
            && self.rows.len() < BATCH_ROWS
    }
}

/// Calls `work` with all selected rows in batches, on several workers, while the index is being read.
pub(crate) fn for_each_batch(
    name: &'static str,
    index: &mut Index,
    selection: &Selection,
    volumes: &Volumes<'_>,
    jobs: Jobs,
    work: impl Fn(RowBatch) + Sync,
) -> Result<(), ArchiveError> {
    let pool = worker_pool(name, jobs);
    let budget = Budget::new(budget_bytes());
    let (sender, receiver) = sync_channel(BATCHES_AHEAD);
    std::thread::scope(|scope| {
        let producer = begin_in(scope, move || {
            send_batches(index, selection, volumes, &sender)
        })?;
        pool.for_each(receiver.into_iter(), |batch: RowBatch| {
            let _reserved = budget.reserve(batch.held_len());
            work(batch);
        });
        let sent = producer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(sent?)
    })
}

fn send_batches(
    index: &Index,
    selection: &Selection,
    volumes: &Volumes<'_>,
    sender: &SyncSender<RowBatch>,
) -> Result<(), IndexError> {
    let mut batch = RowBatch {
        volume: VolumeId(0),
        rows: Vec::new(),
    };
    let mut is_wanted = true;
    index.selected(selection, |row| {
        if !batch.takes(row.volume, row.offset, row.size) {
            volumes.read_ahead(&batch);
            let full = std::mem::replace(
                &mut batch,
                RowBatch {
                    volume: row.volume,
                    rows: Vec::new(),
                },
            );
            is_wanted = sender.send(full).is_ok();
        }
        batch.volume = row.volume;
        batch.rows.push(row.to_row());
        if is_wanted {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    if !batch.rows.is_empty() {
        volumes.read_ahead(&batch);
        // Nobody left to take it means nobody wants it.
        let _ = sender.send(batch);
    }
    Ok(())
}

/// Volumes held open, shared by the workers.
#[derive(Debug)]
pub(crate) struct Volumes<'a> {
    folder: &'a Folder,
    open: Mutex<HashMap<VolumeId, Arc<File>>>,
    /// What is read of them goes into these.
    pub(crate) buffers: Arc<Buffers>,
}

/// Volumes kept open at a time, where so many descriptors are to be had; reads move through them in order.
const MOST_OPEN: usize = 64;

impl<'a> Volumes<'a> {
    pub(crate) fn new(folder: &'a Folder) -> Self {
        Self {
            folder,
            open: Mutex::default(),
            buffers: Arc::default(),
        }
    }

    pub(crate) fn get(&self, id: VolumeId) -> Result<Arc<File>, stook_sys::SysError> {
        let mut open = lock(&self.open);
        if let Some(file) = open.get(&id) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(open_file(&self.folder.volume(id))?);
        if open.len() >= MOST_OPEN.min(most_open_files() / 8) {
            open.clear();
        }
        open.insert(id, Arc::clone(&file));
        Ok(file)
    }

    /// Has the bytes of a batch read before a worker asks for them. A volume that cannot be opened is the
    /// worker's to tell.
    fn read_ahead(&self, batch: &RowBatch) {
        if let (Some(first), Ok(file)) = (batch.rows.first(), self.get(batch.volume)) {
            read_ahead(&file, first.offset, batch.window_len() as u64);
        }
    }
}

/// A piece of a volume in memory, which grows when a member asks for more.
pub(crate) struct Window<'a> {
    file: &'a File,
    start: u64,
    bytes: Vec<u8>,
    /// Where its memory goes in the end.
    buffers: &'a Buffers,
}

impl<'a> Window<'a> {
    /// Reads `len` bytes from `start`, or as many as there are.
    pub(crate) fn read(
        file: &'a File,
        buffers: &'a Buffers,
        start: u64,
        len: u64,
    ) -> io::Result<Self> {
        let _scope = scope!("read");
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut bytes = buffers.take(len);
        append_at(file, &mut bytes, len, start)?;
        Ok(Self {
            file,
            start,
            bytes,
            buffers,
        })
    }

    /// Reads a batch in one call.
    pub(crate) fn of(batch: &RowBatch, file: &'a File, buffers: &'a Buffers) -> io::Result<Self> {
        let start = batch.rows.first().map_or(0, |row| row.offset);
        Self::read(file, buffers, start, batch.window_len() as u64)
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the member at `offset`.
    pub(crate) fn member(&self, offset: u64) -> Result<Member, Cause> {
        let _scope = scope!("decode");
        let at = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let bytes = self.bytes().get(at..).unwrap_or_default();
        match decode_bytes(bytes, offset) {
            Ok(Decoded::Member(member)) => Ok(member),
            Ok(Decoded::End) => Err(Cause::NoMember),
            Ok(Decoded::NeedMore(_)) => match decode(self.file, offset)? {
                Some(member) => Ok(member),
                None => Err(Cause::NoMember),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the MD5s of members side by side, which is several times faster than one by one. None for those
    /// with holes, or with content past the window.
    pub(crate) fn md5s<'m>(
        &self,
        members: impl Iterator<Item = Option<&'m Member>>,
    ) -> Vec<Option<[u8; 16]>> {
        let _scope = scope!("md5");
        let contents: Vec<Option<&[u8]>> = members
            .map(|member| {
                let member = member.filter(|member| member.header.sparse.is_none())?;
                self.slice(member.data_offset, usize::try_from(member.data_len).ok()?)
            })
            .collect();
        let messages: Vec<&[u8]> = contents.iter().flatten().copied().collect();
        let mut md5s = md5_many(&messages).into_iter();
        let digest = |content: &Option<&[u8]>| content.and_then(|_| md5s.next());
        contents.iter().map(digest).collect()
    }

    fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes().get(at..at.checked_add(len)?)
    }

    /// Shows the stored data of a member, piece by piece, with the place of each piece in the file.
    pub(crate) fn content<E: From<io::Error>>(
        &self,
        member: &Member,
        mut visit: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stored = member.data_offset;
        for segment in segments_of(member) {
            let mut done = 0;
            while done < segment.len {
                let len = (segment.len - done).min(BATCH_BYTES);
                self.piece(stored, len, |bytes| visit(segment.offset + done, bytes))?;
                stored += len;
                done += len;
            }
        }
        Ok(())
    }

    /// Shows the bytes of the volume from `start` to `end`, piece by piece.
    pub(crate) fn slices(
        &self,
        start: u64,
        end: u64,
        mut visit: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut position = start;
        while position < end {
            let len = (end - position).min(BATCH_BYTES);
            self.piece(position, len, |bytes| visit(position, bytes))?;
            position += len;
        }
        Ok(())
    }

    fn piece<E: From<io::Error>>(
        &self,
        offset: u64,
        len: u64,
        visit: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        if let Some(bytes) = self.slice(offset, len) {
            return visit(bytes);
        }
        let mut bytes = self.buffers.take(len);
        {
            let _scope = scope!("read");
            if append_at(self.file, &mut bytes, len, offset)? < len {
                return Err(io::Error::other("the volume ends before it does").into());
            }
        }
        let result = visit(&bytes);
        self.buffers.give(bytes);
        result
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        self.buffers.give(std::mem::take(&mut self.bytes));
    }
}

/// Returns true if a volume begins in stook's dialect; then all of it is.
pub(crate) fn is_stooks(file: &File) -> bool {
    decode(file, 0)
        .is_ok_and(|first| first.is_some_and(|first| first.checksum == HeaderCheck::Verified))
}

fn segments_of(member: &Member) -> Vec<Segment> {
    member.header.sparse.clone().unwrap_or_else(|| {
        vec![Segment {
            offset: 0,
            len: member.data_len,
        }]
    })
}

/// Returns in what a member differs from its row, if it does.
pub(crate) fn disagreement(row: &Row, member: &Member) -> Option<Cause> {
    let header = &member.header;
    if header.name != row.name {
        return Some(Cause::OtherMember(header.name.clone()));
    }
    let size = if header.kind.has_content() {
        header.size
    } else {
        0
    };
    if size != row.size {
        return Some(Cause::OtherSize {
            header: size,
            index: row.size,
        });
    }
    let is_file = header.kind.has_content();
    if is_file != row.md5.is_some() {
        return Some(Cause::OtherKind);
    }
    let difference = i128::from(stook_index::Mtime::from(header.mtime).0) - i128::from(row.mtime.0);
    // Archives of others: Python's floats lose a microsecond, and old headers have whole seconds.
    let tolerance = match (member.checksum, header.mtime.nanoseconds) {
        (HeaderCheck::Verified, _) => 0,
        (HeaderCheck::Absent, 0) => 1_000_000,
        (HeaderCheck::Absent, _) => 1,
    };
    (difference.abs() > tolerance).then(|| Cause::OtherTime {
        header: header.mtime.into(),
        index: row.mtime,
    })
}
