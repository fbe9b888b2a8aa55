//! Fetching an archive from its store: the index if it is newer, then volumes.
//!
//! ```text
//!   index.db   ──a temporary name, compared with the one here──> index.db
//!   volumes    ──a folder of this process──> length and MD5 as in the index ──> 000000.tar
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use stook_index::{StoreFact, Volume, VolumeId};
use stook_md5::Md5;
use stook_store::{Advice, Download, StoreCause, StoreError, TransferObserver};
use stook_sys::{
    Context, SysError, create_directory, exists, install, install_new, open_file, read_up_to_at,
    remove_file,
};

use super::arrivals::{Arrivals, remove_empty_directory, sweep};
use super::attach::{FetchedIndex, is_state_of, record_sent_index};
use super::error::TransferError;
use super::options::StoreOptions;
use super::send::Sender;
use crate::ArchiveError;
use crate::cause::Cause;
use crate::folder::{Folder, INDEX};
use crate::observer::{Failure, Observer};

/// How to fetch an archive.
#[derive(Debug, Clone, Default)]
pub struct PullOptions {
    /// Only these volumes; None: all.
    pub volumes: Option<Vec<VolumeId>>,
    /// Only the index.
    pub only_index: bool,
}

/// What was fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PullReport {
    /// Whether the index was.
    pub index: bool,
    /// Volumes that were.
    pub volumes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Volumes that could not be, each reported to the observer.
    pub failed: u64,
}

/// Fetches the index, if the store has a later state of it, and the volumes that are not here.
///
/// # Errors
/// `Transfer`: `NoIndex`, or `Diverged` if neither index is a state of the other; `Locked`; `Sys`.
pub fn pull(
    archive: &Path,
    options: &StoreOptions,
    pull: &PullOptions,
    observer: &dyn Observer,
) -> Result<PullReport, ArchiveError> {
    let is_new = exists(archive)?.is_none();
    create_directory(archive)?;
    let pulled = pull_into(archive, options, pull, observer);
    if pulled.is_err() && is_new {
        // What has arrived keeps it.
        let _ = remove_empty_directory(archive);
    }
    match pulled {
        Err(_) if observer.is_interrupted() => Err(ArchiveError::Interrupted),
        pulled => pulled,
    }
}

fn pull_into(
    archive: &Path,
    options: &StoreOptions,
    pull: &PullOptions,
    observer: &dyn Observer,
) -> Result<PullReport, ArchiveError> {
    let folder = Folder::until(archive, observer.interrupt());
    let _lock = folder.lock()?;
    let sender = Sender::new(options, observer);
    let mut report = PullReport {
        index: pull_index(&sender, &folder)?,
        ..PullReport::default()
    };
    if pull.only_index {
        return Ok(report);
    }
    let index = folder.open_index()?;
    let mut wanted = Vec::new();
    for volume in index.volumes()? {
        let is_wanted = pull
            .volumes
            .as_ref()
            .is_none_or(|ids| ids.contains(&volume.id));
        if is_wanted && exists(&folder.volume(volume.id))?.is_none() {
            wanted.push(volume);
        }
    }
    let bytes = wanted.iter().map(|volume| volume.size).sum();
    observer.phase("fetch", Some(wanted.len() as u64), Some(bytes));
    sender.shows_progress.store(true, Ordering::Relaxed);
    fetch_volumes(&sender, &folder, &wanted, |volume, fetched| match fetched {
        Ok(()) => {
            report.volumes += 1;
            report.bytes += volume.size;
        }
        Err(failure) => {
            report.failed += 1;
            observer.failed(&failure);
        }
    })?;
    Ok(report)
}

/// Fetches the index if there is none here, or an earlier state of it.
fn pull_index(sender: &Sender<'_>, folder: &Folder) -> Result<bool, ArchiveError> {
    let store = sender.store();
    let name = || store.name().to_owned();
    let Some(file) = sender.with_retries(|| Ok(store.stat(INDEX)?))? else {
        return Err(TransferError::NoIndex { store: name() }.into());
    };
    let fetched = FetchedIndex::get(sender, folder)?;
    let there = fetched.open(folder)?;
    if folder.has_index()? {
        let here = folder.open_index()?;
        if is_state_of(&there, &here)? {
            return Ok(false);
        }
        if !is_state_of(&here, &there)? {
            return Err(TransferError::Diverged { store: name() }.into());
        }
    }
    drop(there);
    let mut index = folder.open_fetched_index_to_write(fetched.path())?;
    index.set_store_fact(StoreFact::Place, Some(&sender.options.place))?;
    record_sent_index(&mut index, file.version)?;
    drop(index);
    install(fetched.path(), &folder.index())?;
    Ok(true)
}

/// Fetches volumes that are not here, in one request, and again for a while what did not come; `arrived` gets the result of
/// each.
pub(super) fn fetch_volumes(
    sender: &Sender<'_>,
    folder: &Folder,
    volumes: &[Volume],
    mut arrived: impl FnMut(&Volume, Result<(), Failure>),
) -> Result<(), ArchiveError> {
    let mut left = volumes.to_vec();
    take_what_has_arrived(folder, &mut left, &mut arrived)?;
    if left.is_empty() {
        return Ok(());
    }
    let arrivals = Arrivals::begin(folder)?;
    let mut is_of_volume = false;
    let fetched = sender.with_retries(|| {
        is_of_volume = false;
        let error = fetch_once(sender, folder, &arrivals, &mut left, &mut arrived)?;
        is_of_volume = error.is_some();
        error.map_or(Ok(()), |error| Err(error.into()))
    });
    if sender.is_interrupted() {
        return Err(ArchiveError::Interrupted);
    }
    match fetched {
        Err(TransferError::Store(error)) if is_of_volume => {
            report_left(&left, *error, &mut arrived);
            Ok(())
        }
        fetched => Ok(fetched?),
    }
}

/// Says of volumes that did not come in time why one of them did not.
fn report_left(
    left: &[Volume],
    error: StoreError,
    arrived: &mut impl FnMut(&Volume, Result<(), Failure>),
) {
    let error = Arc::new(error);
    for volume in left {
        let name = volume.id.to_string();
        let cause = Cause::Store(Arc::clone(&error));
        arrived(volume, Err(Failure::new("fetch", name.as_bytes(), cause)));
    }
}

/// Installs volumes that a killed process had fetched as a whole, and removes what else it left.
fn take_what_has_arrived(
    folder: &Folder,
    wanted: &mut Vec<Volume>,
    arrived: &mut impl FnMut(&Volume, Result<(), Failure>),
) -> Result<(), ArchiveError> {
    sweep(folder, &mut |id, path| {
        let place = wanted.iter().position(|volume| volume.id == id);
        let Some(place) = place.filter(|place| wanted[*place].md5.is_some()) else {
            return;
        };
        let has_size = matches!(exists(path), Ok(Some(it)) if it.size == wanted[place].size);
        if has_size && install_volume(folder, &wanted[place], path).is_ok() {
            arrived(&wanted.remove(place), Ok(()));
        }
    })
}

/// Makes one request for what is left; what has come, or never will, leaves `left`. Returns a failure that may pass.
fn fetch_once(
    sender: &Sender<'_>,
    folder: &Folder,
    arrivals: &Arrivals,
    left: &mut Vec<Volume>,
    arrived: &mut impl FnMut(&Volume, Result<(), Failure>),
) -> Result<Option<StoreError>, TransferError> {
    let volumes = std::mem::take(left);
    let names: Vec<String> = volumes.iter().map(|volume| volume.id.to_string()).collect();
    let paths: Vec<PathBuf> = volumes
        .iter()
        .map(|volume| arrivals.volume(volume.id))
        .collect();
    let downloads: Vec<Download<'_>> = volumes
        .iter()
        .zip(names.iter().zip(&paths))
        .map(|(volume, (name, path))| Download {
            name,
            path,
            size: Some(volume.size),
        })
        .collect();
    let (mut is_done, mut passing) = (vec![false; volumes.len()], None);
    let got = sender.store().get(&downloads, sender, &mut |place, got| {
        let volume = &volumes[place];
        let fetched = match got {
            Ok(()) => install_volume(folder, volume, &paths[place]),
            Err(error) if may_pass(&error, sender) => {
                passing = Some(error);
                return;
            }
            Err(error) => Err(Failure::new("fetch", names[place].as_bytes(), error)),
        };
        is_done[place] = true;
        if fetched.is_err() {
            // Of what is wrong nothing stays.
            let _ = remove_file(&paths[place]);
        }
        arrived(volume, fetched);
    });
    let undone = volumes
        .into_iter()
        .zip(is_done)
        .filter(|(_, is_done)| !is_done);
    left.extend(undone.map(|(volume, _)| volume));
    got?;
    Ok(passing)
}

/// Returns true if the same request may succeed later. A file of another size is not what was sent, however often it comes.
fn may_pass(error: &StoreError, sender: &Sender<'_>) -> bool {
    let is_other = matches!(error.cause, StoreCause::Different(_));
    sender.is_interrupted() || error.advice() == Advice::Retry && !is_other
}

/// Gives a volume that was fetched its name, if it is what the index says.
fn install_volume(folder: &Folder, volume: &Volume, path: &Path) -> Result<(), Failure> {
    let name = volume.id.to_string();
    let failed = |cause: Cause| Failure::new("fetch", name.as_bytes(), cause);
    if let Some(md5) = volume.md5 {
        let found = file_md5(path).map_err(|error| failed(Cause::from(&error)))?;
        if found != md5 {
            return Err(failed(Cause::WrongVolumeMd5));
        }
    }
    install_new(path, &folder.volume(volume.id)).map_err(|error| failed(Cause::from(&error)))
}

/// Bytes read at once.
const PIECE_BYTES: usize = 1 << 20;

pub(super) fn file_md5(path: &Path) -> Result<[u8; 16], SysError> {
    let file = open_file(path)?;
    let (mut md5, mut offset) = (Md5::new(), 0);
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let read = read_up_to_at(&file, &mut buffer, offset).context("read", path)?;
        if read == 0 {
            return Ok(md5.finish());
        }
        md5.update(&buffer[..read]);
        offset += read as u64;
    }
}
