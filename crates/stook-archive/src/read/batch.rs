//! Rows gathered into batches that are read at once, prefetched, and handed to the workers.
//!
//! Rows come from the index in the order they were archived, which is the order of the volumes, so a batch is one long
//! read.

use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{SyncSender, sync_channel};

use stook_index::{Index, IndexError, Row, Selection, VolumeId};
use stook_pool::{Budget, Jobs};

use super::BATCH_BYTES;
use super::volume::VolumeBytes;
use super::volumes::Volumes;
use crate::ArchiveError;
use crate::memory::{budget_bytes, worker_pool};
use crate::observer::{Observer, require_going_on};
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
    /// In a compressed volume: from where the frame begins in which all of them do, to where that ends in which the last
    /// one's content does.
    frames: Option<Range<u64>>,
    /// Where the first of these frames ends.
    first_frame_end: u64,
}

impl RowBatch {
    pub(crate) fn new(volume: VolumeId, rows: Vec<Row>) -> Self {
        Self {
            volume,
            rows,
            frames: None,
            first_frame_end: 0,
        }
    }

    /// Adds a row of a compressed volume.
    fn push_framed(&mut self, row: Row, volume: Option<&dyn VolumeBytes>) {
        let frame_at = |offset| volume.and_then(|volume| volume.frame_at(offset));
        if self.rows.is_empty() {
            self.frames = frame_at(row.offset);
            self.first_frame_end = self.frames.as_ref().map_or(0, |frames| frames.end);
        }
        if let (Some(frames), Some(last)) = (
            &mut self.frames,
            frame_at(row.offset.saturating_add(row.size)),
        ) {
            frames.end = frames.end.max(last.end);
        }
        self.rows.push(row);
    }

    /// Bytes from the first member to the presumed end of the last one.
    fn span(&self) -> u64 {
        match (self.rows.first(), self.rows.last()) {
            (Some(first), Some(last)) => (last.offset - first.offset)
                .saturating_add(last.size)
                .saturating_add(2 * USUAL_HEADER),
            _ => 0,
        }
    }

    /// Returns where the first member begins.
    pub(crate) fn start(&self) -> u64 {
        self.rows.first().map_or(0, |row| row.offset)
    }

    /// Bytes that are read at once: what the batch needs. Of a large member that is the header; its
    /// content is read slice by slice.
    pub(super) fn loaded_len(&self) -> u64 {
        let span = self.span();
        if span > 2 * BATCH_BYTES {
            LARGE_HEADER
        } else {
            // No byte of the next frame is worth its decoding.
            let frames = self.frames.as_ref();
            frames.map_or(span, |frames| frames.end - self.start())
        }
    }

    /// Bytes that work on the batch holds at a time.
    fn held_len(&self) -> usize {
        let held = self.span().min(2 * BATCH_BYTES);
        usize::try_from(held).unwrap_or(0)
    }

    fn takes(&self, volume: VolumeId, offset: u64, size: u64) -> bool {
        let Some((first, last)) = self.rows.first().zip(self.rows.last()) else {
            return true;
        };
        if self.frames.is_some() {
            let is_behind = volume == self.volume && offset > last.offset;
            return is_behind && offset < self.first_frame_end;
        }
        volume == self.volume
            && offset > last.offset
            && offset.saturating_add(size) - first.offset <= BATCH_BYTES
            && self.rows.len() < BATCH_ROWS
    }
}

/// Calls `work` with all selected rows in batches, on several workers, while the index is being read, until the observer
/// is interrupted.
///
/// # Errors
/// `Interrupted`; `Index` if a row cannot be read any more; `NoThread`.
pub(crate) fn for_each_batch(
    (name, jobs): (&'static str, Jobs),
    index: &mut Index,
    selection: &Selection,
    volumes: &Volumes,
    observer: &dyn Observer,
    work: impl Fn(RowBatch) + Sync,
) -> Result<(), ArchiveError> {
    let is_interrupted = || observer.is_interrupted();
    let workers = worker_pool(name, jobs).until(&is_interrupted);
    let budget = Budget::new(budget_bytes());
    let (sender, receiver) = sync_channel(BATCHES_AHEAD);
    let work = |batch: RowBatch| {
        let _reserved = budget.reserve(batch.held_len());
        work(batch);
    };
    if selection.len() <= BATCHES_AHEAD as u64 {
        // There are not more batches than rows, so all find room before anyone takes them.
        send_batches(index, selection, volumes, &sender)?;
        drop(sender);
        let batches: Vec<RowBatch> = receiver.into_iter().collect();
        workers
            .at_most(batches.len())
            .for_each(batches.into_iter(), work);
        return require_going_on(observer);
    }
    let sent = std::thread::scope(|scope| {
        let producer = begin_in(scope, move || {
            send_batches(index, selection, volumes, &sender)
        })?;
        workers.for_each(receiver.into_iter(), work);
        let sent = producer.join();
        Ok::<_, ArchiveError>(sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    require_going_on(observer)?;
    Ok(sent?)
}

fn send_batches(
    index: &Index,
    selection: &Selection,
    volumes: &Volumes,
    sender: &SyncSender<RowBatch>,
) -> Result<(), IndexError> {
    let mut batch = RowBatch::new(VolumeId::plain(0), Vec::new());
    let mut is_wanted = true;
    index.selected(selection, |row| {
        if !batch.takes(row.volume, row.offset, row.size) {
            volumes.prefetch(batch.volume, batch.start(), batch.loaded_len());
            let next = RowBatch::new(row.volume, Vec::new());
            let full = std::mem::replace(&mut batch, next);
            is_wanted = sender.send(full).is_ok();
        }
        batch.volume = row.volume;
        if row.volume.is_compressed() {
            // A volume that cannot be opened is the worker's to report.
            let volume = volumes.get_indexed(row.volume, index).ok();
            batch.push_framed(row.to_row(), volume.as_deref());
        } else {
            batch.rows.push(row.to_row());
        }
        if is_wanted {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    if !batch.rows.is_empty() {
        volumes.prefetch(batch.volume, batch.start(), batch.loaded_len());
        // Nobody left to take it means nobody wants it.
        let _ = sender.send(batch);
    }
    Ok(())
}
