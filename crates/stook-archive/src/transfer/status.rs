//! What is where: what the index, the folder and the store say of each volume.

use std::collections::{BTreeMap, BTreeSet};

use stook_index::{Index, Transfer, VolumeId};
use stook_store::{Proof, Store, StoredFile};
use stook_sys::exists;

use super::attach::{last_run, recorded_store, sent_index};
use super::error::TransferError;
use crate::ArchiveError;
use crate::archive::Archive;

/// What is known of one volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeStatus {
    /// Its number.
    pub volume: VolumeId,
    /// Its length by the index; None if that has no record of it, as in archives of early versions of zstash.
    pub size: Option<u64>,
    /// The length of the local file; None if it is not here.
    pub local: Option<u64>,
    /// What was recorded when it was sent.
    pub transfer: Option<Transfer>,
    /// Its length in the store; None if it is not there, or the store was not asked.
    pub stored: Option<u64>,
    /// Whether a local file of the right length is proved to be in the store, and the store, if it was asked, has that many
    /// bytes.
    pub is_safe_to_delete: bool,
}

impl VolumeStatus {
    /// Returns true if it is neither here nor, as far as that is known, in the store.
    pub fn is_missing(&self, was_asked: bool) -> bool {
        let is_there = match was_asked {
            true => self.stored.is_some(),
            false => self.transfer.is_some(),
        };
        self.local.is_none() && !is_there
    }
}

/// What is known of the volumes of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusReport {
    /// The store of the archive, as it was recorded.
    pub place: Option<String>,
    /// Whether the store was asked.
    pub was_asked: bool,
    /// All volumes of the index, in order.
    pub volumes: Vec<VolumeStatus>,
    /// Numbers between the first and the last volume that no volume has.
    pub gaps: Vec<VolumeId>,
    /// Volumes that a run is writing now, or left unfinished.
    pub unfinished: Vec<VolumeId>,
    /// Whether the index in the store has the last run; None if none was put there.
    pub is_index_current: Option<bool>,
}

/// Says which volume is where. With a store, that is asked, too; while a run works, this is the state of this moment.
///
/// # Errors
/// `Index` if the index cannot be read; `Transfer` if the store cannot be asked.
pub fn status(archive: &Archive, store: Option<&dyn Store>) -> Result<StatusReport, ArchiveError> {
    let files = match store {
        Some(store) => Some(store.list().map_err(TransferError::from)?),
        None => None,
    };
    let index = crate::mutex::lock(archive.shared_index());
    let transfers = index.transfers()?;
    let sizes = sizes(&index)?;
    let minimum = store.map_or(Proof::HashedInTransfer, |store| store.abilities().minimum);
    let stored = files.as_deref().map(stored_sizes);
    let mut volumes = Vec::new();
    for (volume, size) in sizes {
        let local = exists(&archive.folder().volume(volume))?;
        let transfer = transfers.get(&volume).cloned();
        let mut status = VolumeStatus {
            volume,
            size,
            local: local.map(|metadata| metadata.size),
            transfer,
            stored: stored
                .as_ref()
                .and_then(|stored| stored.get(&volume).copied()),
            is_safe_to_delete: false,
        };
        status.is_safe_to_delete = is_safe(&status, stored.is_some(), minimum);
        volumes.push(status);
    }
    let last = last_run(&index)?;
    Ok(StatusReport {
        place: recorded_store(&index)?,
        was_asked: files.is_some(),
        gaps: gaps(&volumes),
        volumes,
        unfinished: archive.folder().unfinished()?,
        is_index_current: sent_index(&index)?.map(|(run, _)| run == last),
    })
}

/// Returns all volumes that have members or a record, with the lengths on record.
fn sizes(index: &Index) -> Result<BTreeMap<VolumeId, Option<u64>>, ArchiveError> {
    let volumes = index.volumes()?;
    Ok(volumes
        .into_iter()
        .map(|volume| (volume.id, Some(volume.size)))
        .collect())
}

fn stored_sizes(files: &[StoredFile]) -> BTreeMap<VolumeId, u64> {
    let volumes = files.iter();
    volumes
        .filter_map(|file| Some((file.name.parse().ok()?, file.size)))
        .collect()
}

fn is_safe(status: &VolumeStatus, was_asked: bool, minimum: Proof) -> bool {
    let proof = status
        .transfer
        .as_ref()
        .and_then(|sent| Proof::from_word(&sent.proof));
    let is_proved = proof.is_some_and(|proof| proof >= minimum);
    let has_size = |size: Option<u64>| size.is_some() && size == status.local;
    let is_there = !was_asked || has_size(status.stored);
    is_proved && has_size(status.size) && is_there
}

fn gaps(volumes: &[VolumeStatus]) -> Vec<VolumeId> {
    let known: BTreeSet<VolumeId> = volumes.iter().map(|status| status.volume).collect();
    let (Some(first), Some(last)) = (known.first(), known.last()) else {
        return Vec::new();
    };
    let encoding = first.encoding();
    let all = (first.0..last.0).map(|number| VolumeId::plain(number).stored_as(encoding));
    all.filter(|volume| !known.contains(volume)).collect()
}
