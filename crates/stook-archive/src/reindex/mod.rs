//! `reindex`: a new index.db from the volumes alone.
//!
//! Every volume is scanned for members, also past damage, and the MD5 of every file is taken from its
//! bytes. If the old index can still be read, it gives what volumes cannot (runs, deletions, settings),
//! and it is a witness: an MD5 that it has and the bytes have not is kept, so that `check` goes on
//! calling the damage by its name. Volumes that are in the store alone stay in it as they are (`away.rs`).

mod away;
mod options;
mod volume;

use std::path::Path;
use std::sync::Arc;

use stook_index::{Config, Index, IndexError, Rebuild, VolumeId, VolumeParts};
use stook_sys::exists;
use stook_timers::scope;
use stook_volume::ZstdLevel;

pub use options::ReindexOptions;

use crate::ArchiveError;
use crate::folder::Folder;
use crate::observer::{CountingObserver, Observer};
use crate::plan::{DEFAULT_VOLUME_BYTES, refuse_planned};
use crate::read::LocalFolder;
use away::{Away, keep_store};
use volume::{Found, ReadVolume, VolumeReader, require_going_on};

/// What a `reindex` did.
#[derive(Debug, Clone, Default)]
pub struct ReindexReport {
    /// Volumes read.
    pub volumes: u64,
    /// Members found.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Runs taken over from the old index.
    pub runs: u64,
    /// Damages and losses, each reported to the observer.
    pub damages: u64,
    /// Members whose MD5 was not taken, each reported to the observer.
    pub failed: u64,
}

impl ReindexReport {
    /// Counts a volume in which these members were found.
    fn add(&mut self, found: &[Found]) {
        self.volumes += 1;
        self.members += found.len() as u64;
        for found in found {
            self.bytes = self.bytes.saturating_add(found.size);
        }
    }
}

/// Rebuilds the index of an archive.
///
/// # Errors
/// `NoVolumes` if there is nothing to read, `Index` if the old index is from a newer stook, `Locked` if
/// another process writes, `Sys` if no volume can be opened, `Interrupted`. A volume that cannot be read is damage, and the
/// others are indexed. The old index stays in place until the new one is complete.
pub fn reindex(
    archive: &Path,
    options: impl Into<ReindexOptions>,
    observer: &dyn Observer,
) -> Result<ReindexReport, ArchiveError> {
    let options = options.into();
    let folder = Folder::until(archive, observer.interrupt());
    let observer = CountingObserver::new(observer);
    // Looked at before the lock is made: what is refused changes nothing.
    require_volumes(&folder)?;
    let old = open_old(&folder, &observer)?;
    if let Some(old) = &old {
        // Rows get new numbers.
        refuse_planned(archive, old)?;
    }
    let _lock = folder.lock()?;
    let (volumes, level) = volumes_to_read(&folder, old.as_ref())?;
    let config = old
        .as_ref()
        .and_then(|old| old.config().ok())
        .unwrap_or_else(unknown_config);
    let mut rebuild = Rebuild::new(folder.index(), &config)?;
    rebuild.set_interrupt(&folder.interrupt)?;
    if let Some(level) = level {
        rebuild.set_zstd_level(level.number())?;
    }
    let mut report = ReindexReport::default();
    observer.phase("reindex", None, Some(total_len(&folder, &volumes)));
    let _scope = scope!("reindex");
    let store = LocalFolder::new(archive);
    let mut unopened = None;
    let away = find_away(old.as_ref(), &volumes, &observer)?;
    let mut ids: Vec<VolumeId> = volumes.iter().copied().chain(away.volumes()).collect();
    ids.sort_unstable();
    let mut kept = 0;
    for id in ids {
        if let Some(old) = &old
            && let Some(members) = away.keep(id, old, &mut rebuild)?
        {
            kept += members;
            continue;
        }
        let reader = VolumeReader {
            store: &store,
            id,
            options: &options,
            buffers: Arc::default(),
            observer: &observer,
            frames: Arc::default(),
        };
        let read = reader.read(old.as_ref());
        require_going_on(&observer)?;
        let ReadVolume {
            volume,
            found,
            attributes,
            frames,
        } = match read {
            Err(ArchiveError::Sys(error)) => {
                reader.out_of_reach(&error);
                unopened = unopened.or(Some(error));
                continue;
            }
            other => other?,
        };
        report.add(&found);
        let rows = found.iter().map(Found::as_row);
        let (attributes, frames) = (&attributes[..], &frames[..]);
        rebuild.add_volume(&volume, rows, VolumeParts { attributes, frames })?;
    }
    match unopened {
        Some(error) if report.volumes == 0 => return Err(error.into()),
        _ => {}
    }
    away.note(kept, &observer);
    if let Some(old) = &old {
        report.runs = carry_over(old, &mut rebuild, &observer);
    }
    drop(old);
    require_going_on(&observer)?;
    rebuild.finish()?;
    report.damages = observer.damages();
    report.failed = observer.failures();
    Ok(report)
}

/// Returns at which level new volumes will be compressed: as before, or, if the old index is gone, the usual one where there
/// are compressed volumes.
fn zstd_level(old: Option<&Index>, volumes: &[VolumeId]) -> Option<ZstdLevel> {
    let usual = || {
        let are_compressed = volumes.iter().any(|volume| volume.is_compressed());
        are_compressed.then(ZstdLevel::default)
    };
    match old.map(Index::zstd_level) {
        Some(Ok(level)) => level.and_then(ZstdLevel::new),
        Some(Err(_)) | None => usual(),
    }
}

/// Returns the volumes, and at which level new ones will be compressed.
fn volumes_to_read(
    folder: &Folder,
    old: Option<&Index>,
) -> Result<(Vec<VolumeId>, Option<ZstdLevel>), ArchiveError> {
    let mut volumes = require_volumes(folder)?;
    let level = zstd_level(old, &volumes);
    if level.is_none() {
        // Files of the user that are called so.
        volumes.retain(|volume| !volume.is_compressed());
    }
    Ok((volumes, level))
}

fn require_volumes(folder: &Folder) -> Result<Vec<VolumeId>, ArchiveError> {
    let volumes = folder.volumes()?;
    if volumes.is_empty() {
        return Err(ArchiveError::NoVolumes {
            path: folder.path().to_owned(),
        });
    }
    Ok(volumes)
}

/// Opens the old index if it can be read. That of a newer stook is not replaced: it may hold what
/// this program does not know of.
fn open_old(
    folder: &Folder,
    observer: &CountingObserver<'_>,
) -> Result<Option<Index>, ArchiveError> {
    let why = match exists(&folder.index()) {
        Ok(None) => "there is no index.db".to_owned(),
        _ => match folder.open_old_index() {
            Ok(index) => return Ok(Some(index)),
            Err(error @ (IndexError::Newer { .. } | IndexError::Interrupted { .. })) => {
                return Err(error.into());
            }
            Err(error) => error.to_string(),
        },
    };
    observer.noted(&format!(
        "{why}: runs and deletions cannot be recovered, so files that an update found deleted are members again, \
         and contents cannot be compared with what was archived"
    ));
    Ok(None)
}

fn unknown_config() -> Config {
    Config {
        hpss: "none".to_owned(),
        maxsize: DEFAULT_VOLUME_BYTES,
        path: b"unknown".to_vec(),
    }
}

/// A volume that cannot be looked at is named when its turn comes.
fn total_len(folder: &Folder, volumes: &[VolumeId]) -> u64 {
    let found = |&id: &VolumeId| exists(&folder.volume(id)).ok().flatten();
    let lens = volumes.iter().filter_map(found);
    lens.fold(0, |sum: u64, metadata| sum.saturating_add(metadata.size))
}

/// What cannot be told of volumes in a store ends the rebuild: their rows would be lost without a word.
fn find_away(
    old: Option<&Index>,
    here: &[VolumeId],
    observer: &CountingObserver<'_>,
) -> Result<Away, IndexError> {
    let found = old.map(|old| Away::find(old, here, observer));
    found.transpose().map(Option::unwrap_or_default)
}

/// Takes over what no volume holds; returns the number of runs.
fn carry_over(old: &Index, rebuild: &mut Rebuild, observer: &CountingObserver<'_>) -> u64 {
    if let Err(error) = keep_store(old, rebuild) {
        observer.noted(&format!(
            "what the store holds cannot be recovered: {error}"
        ));
    }
    match rebuild.carry_over(old) {
        Ok(runs) => runs as u64,
        Err(error) => {
            observer.noted(&format!("runs and deletions cannot be recovered: {error}"));
            0
        }
    }
}
