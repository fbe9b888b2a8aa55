//! What is where: what the index, the folder and the store say of each volume.

use std::collections::{BTreeMap, BTreeSet};

use stook_index::{Index, Transfer, VolumeId};
use stook_store::{Proof, Store, StoreCause, StoreError, StoredFile};
use stook_sys::exists;

use super::attach::{last_run, recorded_store, sent_index};
use super::error::TransferError;
use super::recorded::is_as_sent;
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
    /// Whether what was recorded still holds, as far as the store was asked.
    pub is_proved: bool,
    /// Whether a local file of the right length is proved to be in the store, and the store, if it was asked, has that many
    /// bytes.
    pub is_safe_to_delete: bool,
    /// Whether the store has it now in the length and version that were read back there, with the MD5 of the index.
    pub is_read_back: bool,
}

impl VolumeStatus {
    /// Returns true if it is neither here as a whole nor, as far as that is known, in the store.
    pub fn is_missing(&self, was_asked: bool) -> bool {
        let is_whole =
            |len: Option<u64>| len.is_some() && self.size.is_none_or(|size| Some(size) == len);
        let is_there = match was_asked {
            true => is_whole(self.stored),
            false => self.transfer.is_some(),
        };
        !is_whole(self.local) && !is_there
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
    let index = crate::mutex::lock(archive.shared_index());
    let sizes = sizes(&index)?;
    let files = match store {
        Some(store) => Some(files(store, sizes.keys()).map_err(TransferError::from)?),
        None => None,
    };
    let transfers = index.transfers()?;
    let minimum = store.map_or(Proof::HashedInTransfer, |store| store.abilities().minimum);
    let stored = files.as_deref().map(stored_volumes);
    let mut volumes = Vec::new();
    for (volume, size) in sizes {
        let local = exists(&archive.folder().volume(volume))?;
        let transfer = transfers.get(&volume).cloned();
        let file = stored
            .as_ref()
            .and_then(|stored| stored.get(&volume).copied());
        let mut status = VolumeStatus {
            volume,
            size,
            local: local.map(|metadata| metadata.size),
            transfer,
            stored: file.map(|file| file.size),
            is_proved: false,
            is_safe_to_delete: false,
            is_read_back: false,
        };
        status.is_proved = is_proved(&status, stored.is_some(), file);
        let proof = proof_of(&status).filter(|_| status.is_proved);
        status.is_read_back = file.is_some() && proof == Some(Proof::ReadBack);
        let is_whole_here = status.local.is_some() && status.local == status.size;
        status.is_safe_to_delete = is_whole_here && proof.is_some_and(|proof| proof >= minimum);
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

fn stored_volumes(files: &[StoredFile]) -> BTreeMap<VolumeId, &StoredFile> {
    let volumes = files.iter();
    volumes
        .filter_map(|file| Some((file.name.parse().ok()?, file)))
        .collect()
}

fn proof_of(status: &VolumeStatus) -> Option<Proof> {
    let transfer = status.transfer.as_ref()?;
    Proof::from_word(&transfer.proof)
}

/// Returns true if what is on record of a volume says that the store has it, and the store, if it was asked, does not say
/// otherwise.
fn is_proved(status: &VolumeStatus, was_asked: bool, file: Option<&StoredFile>) -> bool {
    let Some(sent) = &status.transfer else {
        return false;
    };
    let is_there = match file {
        Some(file) => is_as_sent(file, sent),
        None => !was_asked,
    };
    is_there && status.size == Some(sent.size)
}

/// Asks for each volume by itself where there are no listings.
fn files<'v>(
    store: &dyn Store,
    volumes: impl Iterator<Item = &'v VolumeId>,
) -> Result<Vec<StoredFile>, StoreError> {
    match store.list() {
        Err(error) if matches!(error.cause, StoreCause::NoList) => {
            let found = volumes.map(|volume| store.stat(&volume.to_string()));
            found.filter_map(Result::transpose).collect()
        }
        listed => listed,
    }
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
