//! Volumes on their way to the store while others are still being built.
//!
//! ```text
//!   commit queue ──volume──> waiting ──> workers: send ──> sent ──> the thread that has the index: record, then remove
//!                              └────────── spool ─────────────┘      the local volume
//! ```
//! Volumes in the spool take room on the local disk. A new volume begins when there is room for it, or when nothing that is
//! in the spool could leave it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stook_index::{Index, Mtime, StoreFact, Transfer, Volume, VolumeId};
use stook_store::{Stored, StoredFile};
use stook_sys::{remove_file, utc_now};
use stook_timers::scope;

use super::complete::SentReport;
use super::error::TransferError;
use super::send::{LocalVolume, Sender};
use crate::ArchiveError;
use crate::folder::Folder;
use crate::mutex::lock;

/// How often a wait looks whether the observer was interrupted.
const TICK: Duration = Duration::from_millis(100);

/// The transfers of one run.
pub(crate) struct Uploads<'a> {
    folder: &'a Folder,
    pub(super) sender: Sender<'a>,
    /// Volumes that had names in the store when the run began.
    pub(super) in_store: BTreeMap<VolumeId, StoredFile>,
    state: Mutex<State>,
    changed: Condvar,
    has_failed: AtomicBool,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Volume>,
    /// Volumes that workers are sending.
    sending: usize,
    sent: Vec<(Volume, Stored)>,
    /// Bytes of all volumes above.
    spool_bytes: u64,
    /// No more volumes come.
    is_closed: bool,
    /// Since when something is on its way; None if nothing is.
    since: Option<Instant>,
    /// What was recorded.
    report: SentReport,
    /// The first failure; nothing more is sent after it.
    error: Option<TransferError>,
}

impl<'a> Uploads<'a> {
    pub(super) fn new(
        sender: Sender<'a>,
        folder: &'a Folder,
        in_store: BTreeMap<VolumeId, StoredFile>,
    ) -> Self {
        Self {
            folder,
            sender,
            in_store,
            state: Mutex::default(),
            changed: Condvar::new(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Runs `body` beside the workers, which end when it has, or at the first failure.
    pub(super) fn beside<T>(&self, body: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            for _ in 0..self.sender.options.transfers.max(1) {
                scope.spawn(|| self.work());
            }
            let _close = CloseOnDrop(self);
            body()
        })
    }

    /// Returns true once a transfer has failed for good: the run should end early.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Returns the numbers that files in the store have.
    pub(crate) fn taken(&self) -> BTreeSet<VolumeId> {
        self.in_store.keys().copied().collect()
    }

    /// Returns what was sent and recorded.
    pub(super) fn sent(&self) -> SentReport {
        self.state().report
    }

    /// Counts the time that the index was on its way, after all volumes.
    pub(super) fn count_index(&self, elapsed: Duration) {
        self.state().report.elapsed += elapsed;
    }

    /// Takes a volume that the index has.
    pub(crate) fn add(&self, volume: Volume) {
        let mut state = self.state();
        state.spool_bytes += volume.size;
        state.waiting.push_back(volume);
        self.changed.notify_all();
    }

    /// Waits until there is room for so many bytes more, or until nothing is on its way.
    pub(crate) fn wait_for_room(&self, bytes: u64, index: &mut Index) -> Result<(), ArchiveError> {
        self.record_place(index)?;
        let Some(limit) = self.sender.options.spool_bytes else {
            return Ok(());
        };
        let _scope = scope!("wait for the store");
        loop {
            self.record(index)?;
            let state = self.state();
            let is_idle = state.waiting.is_empty() && state.sending == 0;
            let has_room = state.spool_bytes.saturating_add(bytes) <= limit;
            if has_room || is_idle && state.sent.is_empty() {
                return Ok(());
            }
            if self.is_ending() {
                return Err(ArchiveError::Interrupted);
            }
            self.wait(state);
        }
    }

    /// Waits until every volume was sent.
    pub(super) fn drain(&self) -> Result<(), ArchiveError> {
        let _scope = scope!("wait for the store");
        self.sender.shows_progress.store(true, Ordering::Relaxed);
        loop {
            let state = self.state();
            if state.waiting.is_empty() && state.sending == 0 {
                return Ok(());
            }
            if self.is_ending() {
                return Err(ArchiveError::Interrupted);
            }
            self.wait(state);
        }
    }

    /// Records what was sent, and removes the local volumes that need not stay.
    pub(crate) fn record(&self, index: &mut Index) -> Result<(), ArchiveError> {
        let sent = std::mem::take(&mut self.state().sent);
        if sent.is_empty() {
            return Ok(());
        }
        let at = Mtime::from(utc_now());
        let transfers: Vec<(VolumeId, Transfer)> = sent
            .iter()
            .map(|(volume, stored)| (volume.id, transfer(volume.size, stored, at)))
            .collect();
        let removable = sent.iter().filter(|(_, stored)| self.may_remove(stored));
        let leaving: Vec<VolumeId> = removable.map(|(volume, _)| volume.id).collect();
        self.record_place(index)?;
        let arrived = transfers.iter().map(|(id, transfer)| (*id, transfer));
        index.record_transfers(arrived, &leaving)?;
        for id in leaving {
            remove_file(&self.path(id))?;
        }
        for (volume, _) in &sent {
            let mut state = self.state();
            state.spool_bytes -= volume.size;
            state.report.volumes += 1;
            state.report.bytes += volume.size;
        }
        Ok(())
    }

    /// Records where the volumes are, before the first local one is removed.
    pub(super) fn record_place(&self, index: &mut Index) -> Result<(), ArchiveError> {
        if index.store_fact(StoreFact::Place)?.is_none() {
            index.set_store_fact(StoreFact::Place, Some(&self.sender.options.place))?;
        }
        Ok(())
    }

    /// Returns the failure that ended the transfers, once.
    pub(super) fn take_error(&self) -> Option<TransferError> {
        self.state().error.take()
    }

    /// Returns the number and the bytes of volumes that were not sent yet.
    pub(super) fn left(&self) -> (u64, u64) {
        let state = self.state();
        let sent: u64 = state.sent.iter().map(|(volume, _)| volume.size).sum();
        let volumes = state.waiting.len() + state.sending;
        (volumes as u64, state.spool_bytes - sent)
    }

    pub(super) fn path(&self, id: VolumeId) -> PathBuf {
        self.folder.volume(id)
    }

    pub(super) fn may_remove(&self, stored: &Stored) -> bool {
        let options = self.sender.options;
        !options.keeps_volumes && stored.proof >= options.store.abilities().minimum
    }

    fn is_ending(&self) -> bool {
        self.has_failed() || self.sender.observer.is_interrupted()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait(&self, state: MutexGuard<'_, State>) {
        let waited = self.changed.wait_timeout(state, TICK);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// One worker.
    fn work(&self) {
        while let Some(volume) = self.next() {
            let _scope = scope!("send");
            let result = self.sender.send_volume(LocalVolume {
                id: volume.id,
                path: &self.path(volume.id),
                size: volume.size,
                md5: volume.md5,
            });
            self.end(volume, result);
        }
    }

    fn next(&self) -> Option<Volume> {
        loop {
            let mut state = self.state();
            if self.is_ending() {
                return None;
            }
            if let Some(volume) = state.waiting.pop_front() {
                state.sending += 1;
                state.since.get_or_insert_with(Instant::now);
                return Some(volume);
            }
            if state.is_closed {
                return None;
            }
            self.wait(state);
        }
    }

    fn end(&self, volume: Volume, result: Result<Stored, TransferError>) {
        let mut state = self.state();
        state.sending -= 1;
        if let (0, Some(since)) = (state.sending, state.since) {
            state.since = None;
            state.report.elapsed += since.elapsed();
        }
        match result {
            Ok(stored) => state.sent.push((volume, stored)),
            Err(error) => {
                state.waiting.push_front(volume);
                if !self.sender.observer.is_interrupted() {
                    // Of several that end because of the first, the first tells why.
                    state.error.get_or_insert(error);
                    self.has_failed.store(true, Ordering::Relaxed);
                    self.sender.is_ending.store(true, Ordering::Relaxed);
                }
            }
        }
        self.changed.notify_all();
    }
}

/// Lets the workers end, also if the body panics.
struct CloseOnDrop<'u, 'a>(&'u Uploads<'a>);

impl Drop for CloseOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_all();
    }
}

pub(super) fn transfer(size: u64, stored: &Stored, at: Mtime) -> Transfer {
    Transfer {
        size,
        proof: stored.proof.word().to_owned(),
        version: stored.version.as_ref().map(|version| version.0.clone()),
        at,
    }
}
