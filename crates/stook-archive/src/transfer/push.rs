//! Runs beside transfers, and `push`, which is such a run without anything to archive.

use std::path::Path;

use stook_index::Index;

use super::attach::attach;
use super::complete::SentReport;
use super::error::TransferError;
use super::options::StoreOptions;
use super::send::Sender;
use super::uploads::Uploads;
use crate::ArchiveError;
use crate::folder::Folder;
use crate::observer::Observer;

/// Sends the volumes that the store lacks, then the index.
///
/// # Errors
/// `Transfer`; `Locked` if another process writes to the archive; `Interrupted`; as [`update`](crate::update) if the archive
/// cannot be read. What arrived is on record in any case, and is not sent again.
pub fn push(
    archive: &Path,
    options: &StoreOptions,
    observer: &dyn Observer,
) -> Result<SentReport, ArchiveError> {
    let folder = Folder::until(archive, observer.interrupt());
    folder.require_index()?;
    let _lock = folder.lock()?;
    let index = folder.open_index_to_write()?;
    let write = |index, _: &Uploads<'_>| {
        drop::<Option<Index>>(index);
        Ok(())
    };
    with_store(&folder, options, observer, Some(index), write).map(|((), sent)| sent)
}

/// Runs `write` beside the transfers to the store, and sends the rest after it. The caller has the writer's lock.
///
/// # Errors
/// Those of `write`, but for one that came of a failed transfer: `Transfer` then.
pub(crate) fn with_store<T>(
    folder: &Folder,
    options: &StoreOptions,
    observer: &dyn Observer,
    mut index: Option<Index>,
    write: impl FnOnce(Option<Index>, &Uploads<'_>) -> Result<T, ArchiveError>,
) -> Result<(T, SentReport), ArchiveError> {
    let sender = Sender::new(options, observer);
    let attached = attach(&sender, folder, index.as_ref())?;
    let uploads = Uploads::new(sender, folder, attached.volumes.clone());
    let missing = match &mut index {
        Some(index) => {
            uploads.change_store(index)?;
            uploads.add_lacking(index)?
        }
        None => 0,
    };
    uploads.beside(|| {
        let written = write(index, &uploads);
        let ended = written.and_then(|written| {
            uploads.complete(folder, &attached)?;
            Ok(written)
        });
        let written = ended.map_err(|error| uploads.explain(error, folder))?;
        let sent = uploads.sent();
        Ok((written, SentReport { missing, ..sent }))
    })
}

/// Refuses a limit that is smaller than a volume, before anything is done.
///
/// # Errors
/// `SmallSpool`.
pub(crate) fn require_spool(options: &StoreOptions, volume_bytes: u64) -> Result<(), ArchiveError> {
    match options.spool_bytes {
        Some(spool) if spool < volume_bytes => Err(TransferError::SmallSpool {
            spool,
            needed: volume_bytes,
        }
        .into()),
        _ => Ok(()),
    }
}
