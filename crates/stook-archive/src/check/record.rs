//! What is on record of checks: which volumes passed their last one, and are as they were then, with their rows.
//!
//! A mere check writes nothing, unless it finds a volume damaged that is on record.

use std::collections::{BTreeMap, BTreeSet};

use stook_index::{Index, Interrupt, Mtime, Structure, VolumeId};
use stook_pool::Jobs;
use stook_sys::utc_now;

use super::{CheckOptions, CheckedVolumes, Checker};
use crate::ArchiveError;
use crate::archive::Parts;
use crate::folder::Folder;
use crate::mutex::lock;
use crate::observer::Observer;
use crate::read::{DEFAULT_MAX_HOLE_BYTES, VolumeStore};

/// What was noted of volumes: their state if they passed a check, None if they are damaged.
pub(super) type Checked = BTreeMap<VolumeId, Option<String>>;

/// Returns those of the volumes that passed their last check and have not changed since, nor have their rows, whose MD5
/// `wanted` has; and those that a store is proved to hold. Where none is on record, they are checked now.
///
/// # Errors
/// `Index` if the index cannot be read, `Interrupted`. Damage is reported to the observer.
pub(crate) fn passed_volumes(
    Parts {
        folder,
        index,
        store,
        read_back,
    }: Parts<'_>,
    wanted: &BTreeMap<VolumeId, String>,
    jobs: Jobs,
    observer: &dyn Observer,
) -> Result<BTreeSet<VolumeId>, ArchiveError> {
    let on_record = index.passed_checks()?;
    let state_of = |id: VolumeId| {
        let version = version_of(&**store, id)?;
        Some(format!("{version} {}", wanted.get(&id)?))
    };
    let is_on_record = |id: &VolumeId| {
        let is_checked = |state| Some(state) == state_of(*id).as_ref();
        read_back.contains(id) || on_record.get(id).is_some_and(is_checked)
    };
    let (mut passed, unknown): (BTreeSet<_>, BTreeSet<_>) =
        wanted.keys().copied().partition(is_on_record);
    if unknown.is_empty() {
        return Ok(passed);
    }
    let volumes = CheckedVolumes::read(folder, index)?;
    let volumes = || {
        volumes
            .volumes
            .values()
            .filter(|volume| unknown.contains(&volume.id))
    };
    observer.phase(
        "check",
        None,
        Some(volumes().map(|volume| volume.bytes).sum()),
    );
    let checker = Checker::new(folder, store, DEFAULT_MAX_HOLE_BYTES, observer);
    let options = CheckOptions {
        jobs,
        ..CheckOptions::default()
    };
    for volume in volumes() {
        let before = state_of(volume.id);
        checker.check_volume(index, volume, &options)?;
        let mut checked = lock(&checker.checked);
        // Damage is noted already.
        let is_unverified = lock(&checker.unverified).contains(&volume.id);
        if is_unverified || checked.contains_key(&volume.id) || observer.is_interrupted() {
            continue;
        }
        if before.is_some() && before == state_of(volume.id) {
            checked.insert(volume.id, before);
        } else {
            observer.noted(&format!(
                "{} is not relied on: it changed while it was checked, or its time is ahead of the clock",
                volume.id
            ));
        }
    }
    let checked = checker.record(index, Structure::Sound)?;
    if observer.is_interrupted() {
        return Err(ArchiveError::Interrupted);
    }
    let found = checked.into_iter().filter(|(_, stamp)| stamp.is_some());
    passed.extend(found.map(|(id, _)| id));
    Ok(passed)
}

/// Returns a stamp of the state of the volume that has the name now. None if there can be none.
fn version_of(store: &dyn VolumeStore, id: VolumeId) -> Option<String> {
    let version = store.open(&id.to_string()).ok()?.version().ok()??;
    Some(version.text().to_owned())
}

/// Writes down what was noted, if anything is new in it. Of an archive that stook never wrote to nothing is
/// written: a reader does not change it.
///
/// # Errors
/// `Index` if the index cannot be read. If it cannot be written, that is only reported, and only if a record is wrong now.
pub(super) fn record(
    folder: &Folder,
    index: &mut Index,
    structure: Structure,
    checked: &Checked,
    observer: &dyn Observer,
) -> Result<(), ArchiveError> {
    if folder.is_copy() {
        return Ok(());
    }
    // A few rows, which an interrupted check need not lose.
    index.set_interrupt(&Interrupt::never())?;
    let on_record = index.passed_checks()?;
    let is_news = checked
        .iter()
        .any(|(id, stamp)| on_record.get(id) != stamp.as_ref());
    let is_stooks = index.is_stooks()?;
    if !is_news || !is_stooks {
        return Ok(());
    }
    let written = match structure {
        Structure::Sound => write(folder, checked).map_err(NotRecorded::Failed),
        Structure::Damaged => Err(NotRecorded::DamagedIndex),
    };
    let is_wrong = checked
        .iter()
        .any(|(id, stamp)| stamp.is_none() && on_record.contains_key(id));
    match written {
        Err(error) if is_wrong => observer.noted(&format!(
            "that volumes are damaged could not be recorded: {error}"
        )),
        _ => {}
    }
    Ok(())
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
enum NotRecorded {
    #[error("a write might make the damage of index.db worse")]
    DamagedIndex,
    #[error(transparent)]
    Failed(ArchiveError),
}

/// Not under the writer's lock: an update that begins just now need not fail, and touches none of these rows.
fn write(folder: &Folder, checked: &Checked) -> Result<(), ArchiveError> {
    // Not interrupted either.
    let mut index = Folder::new(folder.path()).open_index_to_write()?;
    Ok(index.record_checks(checked, Mtime::from(utc_now()))?)
}
