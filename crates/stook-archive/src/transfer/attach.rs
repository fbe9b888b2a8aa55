//! Whether a store belongs to an archive, asked before anything is written.
//!
//! ```text
//!   index in the store   recorded version?  ──the same──────────> ours
//!                        else fetched: are its rows the first rows of ours? ──yes──> ours, an earlier state
//!                                                                           ──no───> somebody else's: refused
//! ```
//! A store without versions is asked again before the index is put. What another machine does between that answer and the
//! end of the put is not seen: `docs/stores.md` names this window.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stook_index::{Index, StoreFact, Volume, VolumeId};
use stook_store::{
    Condition, Download, FileVersion, Location, Store, StoredFile, TransferObserver,
};
use stook_sys::{FileId, create_new_file, remove_file};

use super::error::TransferError;
use super::options::StoreOptions;
use super::send::Sender;
use crate::ArchiveError;
use crate::folder::{Folder, INDEX, folder_id};

/// What a store held when it was asked.
#[derive(Debug, Clone)]
pub(super) struct Attached {
    /// What must still hold for the index to be put.
    pub(super) condition: Condition,
    /// Volumes by name, those that others put included.
    pub(super) volumes: BTreeMap<VolumeId, StoredFile>,
}

/// Makes sure that the store can be written, and that what it holds is a state of the archive, or nothing. `index` is that of
/// the folder, None if there is none yet.
pub(super) fn attach(
    sender: &Sender<'_>,
    folder: &Folder,
    index: Option<&Index>,
) -> Result<Attached, ArchiveError> {
    let store = sender.store();
    if let Some(index) = index {
        require_same_store(sender.options, index)?;
        require_still_there(sender, index)?;
    }
    sender.with_retries(|| Ok(store.prepare()?))?;
    require_elsewhere(sender, folder)?;
    let condition = condition(sender, folder, index)?;
    let files = sender.with_retries(|| Ok(store.list()?))?;
    let volumes = files.into_iter();
    let volumes = volumes.filter_map(|file| Some((file.name.parse().ok()?, file)));
    Ok(Attached {
        condition,
        volumes: volumes.collect(),
    })
}

/// Refuses a store that has lost the archive, before a place is made there that hides it. To send everything again is what
/// [`StoreOptions::changes_store`] is for.
fn require_still_there(sender: &Sender<'_>, index: &Index) -> Result<(), ArchiveError> {
    if sender.options.changes_store || sent_index(index)?.is_none() {
        return Ok(());
    }
    let store = sender.store();
    match sender.with_retries(|| Ok(store.stat(INDEX)?))? {
        Some(_) => Ok(()),
        None => Err(TransferError::Gone {
            store: store.name().to_owned(),
        }
        .into()),
    }
}

/// Refuses a store that is the folder of the archive, by whatever way: what is there would be taken for a copy. A file that has
/// a new name in the folder may not show up in the store.
fn require_elsewhere(sender: &Sender<'_>, folder: &Folder) -> Result<(), ArchiveError> {
    let store = sender.store();
    let path = folder.temporary()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    drop(create_new_file(&path)?);
    let found = sender.with_retries(|| Ok(store.stat(&name)?));
    remove_file(&path)?;
    match found? {
        None => Ok(()),
        Some(_) => Err(TransferError::OwnFolder {
            store: store.name().to_owned(),
        }
        .into()),
    }
}

/// Returns the store that an archive remembers: its own record, or that of zstash.
pub(crate) fn recorded_store(index: &Index) -> Result<Option<String>, ArchiveError> {
    let (place, hpss) = index.store_places()?;
    if place.is_some() {
        return Ok(place);
    }
    let is_place = |hpss: &String| !hpss.is_empty() && !hpss.eq_ignore_ascii_case("none");
    Ok(hpss
        .filter(is_place)
        .map(|hpss| match hpss.starts_with("globus://") {
            true => hpss,
            false => format!("hpss:{hpss}"),
        }))
}

/// Returns the folder of a store that is a directory of this machine, if it is there.
pub(crate) fn store_folder(place: Option<&str>) -> Result<Option<FileId>, ArchiveError> {
    match place.map(Location::parse) {
        Some(Ok(Location::Directory(path))) => folder_id(&path),
        _ => Ok(None),
    }
}

fn require_same_store(options: &StoreOptions, index: &Index) -> Result<(), ArchiveError> {
    match recorded_store(index)? {
        Some(recorded) if recorded != options.place && !options.changes_store => {
            let given = options.place.clone();
            Err(TransferError::OtherStore { recorded, given }.into())
        }
        _ => Ok(()),
    }
}

/// Returns what must hold of the index in the store until ours is put there.
pub(super) fn condition(
    sender: &Sender<'_>,
    folder: &Folder,
    index: Option<&Index>,
) -> Result<Condition, ArchiveError> {
    let store = sender.store();
    let name = || store.name().to_owned();
    let Some(there) = sender.with_retries(|| Ok(store.stat(INDEX)?))? else {
        return Ok(Condition::New.where_possible(store));
    };
    let Some(index) = index else {
        return Err(TransferError::HoldsArchive { store: name() }.into());
    };
    let recorded = sent_index(index)?.and_then(|(_, version)| version);
    let is_recorded = there.version.is_some() && recorded == there.version;
    if !is_recorded {
        let fetched = FetchedIndex::get(sender, folder)?;
        if !is_state_of(&fetched.open(folder)?, index)? {
            return Err(TransferError::Diverged { store: name() }.into());
        }
    }
    let unchanged = there
        .version
        .map_or(Condition::Always, Condition::Unchanged);
    Ok(unchanged.where_possible(store))
}

/// Returns the last run that the index in the store has, and the version of that file, if the store has versions.
pub(super) fn sent_index(
    index: &Index,
) -> Result<Option<(i64, Option<FileVersion>)>, ArchiveError> {
    let fact = index.store_fact(StoreFact::IndexVersion)?;
    Ok(fact.and_then(|text| {
        let (run, version) = text.split_once(' ')?;
        let version = Some(version).filter(|version| !version.is_empty());
        Some((
            run.parse().ok()?,
            version.map(|text| FileVersion(text.to_owned())),
        ))
    }))
}

/// Records that the store has the index with its last run, in this version.
pub(super) fn record_sent_index(
    index: &mut Index,
    version: Option<FileVersion>,
) -> Result<(), ArchiveError> {
    let version = version.map_or(String::new(), |version| version.0);
    let fact = format!("{} {version}", last_run(index)?);
    Ok(index.set_store_fact(StoreFact::IndexVersion, Some(&fact))?)
}

/// Returns true if the store lacks something of the archive.
pub(crate) fn is_unsent(index: &Index) -> Result<bool, ArchiveError> {
    let transfers = index.transfers()?;
    let lacks = |volume: &Volume| !transfers.contains_key(&volume.id);
    let sent_run = sent_index(index)?.map(|(run, _)| run);
    Ok(sent_run != Some(last_run(index)?) || index.volumes()?.iter().any(lacks))
}

/// Returns the number of the last run; 0 if stook has not written to the archive.
pub(super) fn last_run(index: &Index) -> Result<i64, ArchiveError> {
    Ok(index.runs()?.last().map_or(0, |run| run.id.0))
}

/// Returns true if an index is an earlier state of another, or the same: its volumes are volumes of the other, by length and
/// MD5, and so are its first and its last row.
pub(super) fn is_state_of(earlier: &Index, later: &Index) -> Result<bool, ArchiveError> {
    let last = earlier.last_row()?;
    for id in [1, last] {
        let id = stook_index::RowId(id);
        if earlier.row(id)? != later.row(id)? {
            return Ok(false);
        }
    }
    let there = later.volumes()?;
    let is_there = |volume: &Volume| {
        let place = there.binary_search_by_key(&volume.id, |other| other.id);
        place.is_ok_and(|place| is_same_volume(volume, &there[place]))
    };
    Ok(last <= later.last_row()? && earlier.volumes()?.iter().all(is_there))
}

/// Of volumes with the same number: one without an MD5 on record is compared by length.
fn is_same_volume(one: &Volume, other: &Volume) -> bool {
    let md5s = one.md5.zip(other.md5);
    one.size == other.size && md5s.is_none_or(|(one, other)| one == other)
}

/// A copy of the store's index beside the one in the folder, until it is dropped.
pub(super) struct FetchedIndex {
    path: PathBuf,
}

impl FetchedIndex {
    pub(super) fn get(sender: &Sender<'_>, folder: &Folder) -> Result<Self, ArchiveError> {
        let path = folder.temporary()?;
        let fetched = Self { path };
        sender.with_retries(|| {
            Ok(get_file(
                sender.store(),
                INDEX,
                &fetched.path,
                None,
                sender,
            )?)
        })?;
        Ok(fetched)
    }

    pub(super) fn open(&self, folder: &Folder) -> Result<Index, ArchiveError> {
        folder.open_fetched_index(&self.path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FetchedIndex {
    fn drop(&mut self) {
        // It may have got another name.
        let _ = remove_file(&self.path);
    }
}

/// Gets one file.
pub(super) fn get_file(
    store: &dyn Store,
    name: &str,
    path: &Path,
    size: Option<u64>,
    observer: &dyn TransferObserver,
) -> Result<(), stook_store::StoreError> {
    let mut result = Ok(());
    let download = Download { name, path, size };
    store.get(&[download], observer, &mut |_, got| result = got)?;
    result
}
