//! Fetching an archive from its store: the index if it is newer, then volumes.
//!
//! ```text
//!   index.db   ──a temporary name, compared with the one here──> index.db
//!   volumes    ──temporary names──> length and MD5 as in the index ──> 000000.tar
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use stook_index::{StoreFact, Volume, VolumeId};
use stook_md5::Md5;
use stook_store::Download;
use stook_sys::{
    Context, SysError, create_directory, exists, install, install_new, open_file, read_up_to_at,
    remove_file,
};

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
    create_directory(archive)?;
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

/// Fetches volumes that are not here, in one request; `arrived` gets the result of each.
pub(super) fn fetch_volumes(
    sender: &Sender<'_>,
    folder: &Folder,
    volumes: &[Volume],
    mut arrived: impl FnMut(&Volume, Result<(), Failure>),
) -> Result<(), ArchiveError> {
    let names: Vec<String> = volumes.iter().map(|volume| volume.id.to_string()).collect();
    let paths: Vec<PathBuf> = volumes
        .iter()
        .map(|_| folder.temporary())
        .collect::<Result<_, _>>()?;
    let downloads: Vec<Download<'_>> = volumes
        .iter()
        .zip(names.iter().zip(&paths))
        .map(|(volume, (name, path))| Download {
            name,
            path,
            size: Some(volume.size),
        })
        .collect();
    let fetched = sender.store().get(&downloads, sender, &mut |place, got| {
        let (volume, path) = (&volumes[place], &paths[place]);
        let fetched = got
            .map_err(|error| Failure::new("fetch", names[place].as_bytes(), error))
            .and_then(|()| install_volume(folder, volume, path));
        if fetched.is_err() {
            // Of what is wrong nothing stays.
            let _ = remove_file(path);
        }
        arrived(volume, fetched);
    });
    Ok(fetched.map_err(TransferError::from)?)
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
