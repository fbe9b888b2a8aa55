//! The begin and the end of a run with a store: volumes that it lacks are sent beside the run, the index last.
//!
//! ```text
//!   volumes of earlier runs that the store lacks ──┐
//!   volumes of this run ───────────────────────────┴─sent─> recorded ──all──> index.db put ──> its version recorded
//! ```

use std::time::{Duration, Instant};

use stook_index::{Index, StoreFact, Transfer, Volume};
use stook_store::{Condition, Proof, Stored, Upload};
use stook_sys::{Context, Stamp, exists, open_file, remove_file};
use stook_timers::scope;

use super::attach::{Attached, condition, record_sent_index, recorded_store};
use super::error::TransferError;
use super::recorded::is_as_sent;
use super::uploads::Uploads;
use crate::ArchiveError;
use crate::cause::Cause;
use crate::folder::{Folder, INDEX};
use crate::observer::Failure;

/// What a run sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentReport {
    /// Volumes that the store holds now, and was not known to hold before.
    pub volumes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Volumes that are neither here nor in the store, each reported to the observer.
    pub missing: u64,
    /// How long volumes or the index were on their way, several at once counted once.
    pub elapsed: Duration,
}

impl Uploads<'_> {
    /// Moves an archive to another store, if it has one, or to the same that has lost all of it; that needs all volumes here.
    pub(super) fn change_store(&self, index: &mut Index) -> Result<(), ArchiveError> {
        let options = self.sender.options;
        let Some(recorded) = recorded_store(index)? else {
            return Ok(());
        };
        if recorded == options.place && !(options.changes_store && self.in_store.is_empty()) {
            return Ok(());
        }
        for volume in index.volumes()? {
            if exists(&self.path(volume.id))?.is_none() {
                let (volume, store) = (volume.id, options.store.name().to_owned());
                return Err(TransferError::Missing { volume, store }.into());
            }
        }
        index.forget_transfers()?;
        index.set_store_fact(StoreFact::IndexVersion, None)?;
        Ok(index.set_store_fact(StoreFact::Place, Some(&options.place))?)
    }

    /// Begins to send the volumes of earlier runs that the store lacks. Returns the number of those that are not here.
    pub(super) fn add_lacking(&self, index: &Index) -> Result<u64, ArchiveError> {
        let (transfers, leaving) = (index.transfers()?, index.leaving()?);
        let mut missing = 0;
        for volume in index.volumes()? {
            let file = self.in_store.get(&volume.id);
            let sent = file.zip(transfers.get(&volume.id));
            let is_sent = sent.is_some_and(|(file, sent)| is_as_sent(file, sent));
            if exists(&self.path(volume.id))?.is_none() {
                if file.is_none_or(|file| file.size != volume.size) {
                    missing += 1;
                    self.report_missing(&volume);
                }
            } else if !is_sent || self.lacks_proof(transfers.get(&volume.id)) {
                self.add(volume);
            } else if leaving.contains(&volume.id) && !self.sender.options.keeps_volumes {
                remove_file(&self.path(volume.id))?;
            }
        }
        Ok(missing)
    }

    /// Returns true if more proof is asked for than is on record.
    fn lacks_proof(&self, sent: Option<&Transfer>) -> bool {
        let proof = sent.and_then(|sent| Proof::from_word(&sent.proof));
        self.sender.options.proof.is_some() && proof < self.sender.options.proof
    }

    /// Returns what ended a run: the transfer that failed, if one did. What arrived is put on record.
    pub(super) fn explain(&self, error: ArchiveError, folder: &Folder) -> ArchiveError {
        // The error that led here is the one to report.
        let _ = folder
            .open_index_to_write()
            .and_then(|mut index| self.record(&mut index));
        match (error, self.take_error()) {
            (ArchiveError::Interrupted, Some(cause)) => cause.into(),
            (error, _) => error,
        }
    }

    fn report_missing(&self, volume: &Volume) {
        let name = volume.id.to_string();
        let failure = Failure::new("send", name.as_bytes(), Cause::NotInStore);
        self.sender.observer.failed(&failure);
    }

    /// Waits until all is sent, and puts the index.
    ///
    /// What arrived is on record, whatever else fails.
    pub(super) fn complete(
        &self,
        folder: &Folder,
        attached: &Attached,
    ) -> Result<(), ArchiveError> {
        let (volumes, bytes) = self.left();
        let observer = self.sender.observer;
        observer.phase("send", Some(volumes), Some(bytes));
        let drained = self.drain();
        let mut index = folder.open_index_to_write()?;
        self.record(&mut index)?;
        drained?;
        self.put_index(folder, index, attached)
    }

    fn put_index(
        &self,
        folder: &Folder,
        mut index: Index,
        attached: &Attached,
    ) -> Result<(), ArchiveError> {
        let _scope = scope!("send index");
        let options = self.sender.options;
        self.record_place(&mut index)?;
        if !index.leaving()?.is_empty() {
            index.set_store_fact(StoreFact::Leaving, None)?;
        }
        let condition = match options.store.abilities().is_conditional {
            true => attached.condition.clone(),
            // Somebody may have put another one since.
            false => condition(&self.sender, folder, Some(&index))?,
        };
        // SQLite drops its locks when another descriptor of the file is closed: none may be open here.
        drop(index);
        let begun = Instant::now();
        let stored = self.put_unchanged(folder, &condition)?;
        self.count_index(begun.elapsed());
        let mut index = folder.open_index_to_write()?;
        record_sent_index(&mut index, stored.version)
    }

    /// Puts the index as it is; again if another program, zstash say, wrote to it meanwhile.
    fn put_unchanged(
        &self,
        folder: &Folder,
        condition: &Condition,
    ) -> Result<Stored, ArchiveError> {
        let path = folder.index();
        let mut condition = condition.clone();
        loop {
            let stamp = || -> Result<Stamp, ArchiveError> {
                let file = open_file(&path)?;
                Ok(Stamp::of(&file).context("look at", &path)?)
            };
            let before = stamp()?;
            let upload = Upload {
                name: INDEX,
                path: &path,
                size: before.size,
                md5: None,
                condition: &condition,
                proof: self.sender.options.wanted_proof(),
            };
            let store = self.sender.store();
            let stored = self
                .sender
                .with_retries(|| Ok(store.put(&upload, &self.sender)?));
            let stored = stored.map_err(|error| diverged(error, store.name()))?;
            if stamp()? == before {
                return Ok(stored);
            }
            let version = stored
                .version
                .map_or(Condition::Always, Condition::Unchanged);
            condition = version.where_possible(store);
        }
    }
}

/// A condition that does not hold means that somebody else has put an index.
fn diverged(error: TransferError, store: &str) -> TransferError {
    match error {
        TransferError::Store(error) if matches!(error.cause, stook_store::StoreCause::Exists) => {
            TransferError::Diverged {
                store: store.to_owned(),
            }
        }
        other => other,
    }
}
