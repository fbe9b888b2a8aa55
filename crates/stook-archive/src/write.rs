//! `create` and `update`: one run over an archive that holds nothing yet, or something; see `session.rs`.
//!
//! A run that was interrupted goes on when either is called again: its rows up to the last checkpoint count as archived, so
//! the survey finds just what is left to do.

use std::path::Path;

use stook_sys::create_directory;

use crate::ArchiveError;
use crate::create::{WriteOptions, WriteReport};
use crate::observer::Observer;
use crate::session::Session;

/// Archives the tree `source` into the folder `archive`, which is made.
///
/// # Errors
/// `Exists` if a finished archive is there; `OtherFiles` if something else is, unless that is allowed; `NameTaken` if that
/// has a name that the archive needs; `Sys` if the source cannot be opened or the archive not
/// written; `Locked` if another process writes it; `Planned` if it is reserved for a plan; `UnlikelyDeletions` if it goes on with an interrupted run, and
/// [`Deletions`] do not allow what it would record; `Interrupted` if the observer asked to end.
pub fn create(
    source: &Path,
    archive: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<WriteReport, ArchiveError> {
    let session = Session::new(source, archive, options, observer)?;
    let index = session.creatable().inspect_err(|error| {
        if matches!(error, ArchiveError::Exists { .. }) {
            // A run that was killed after its last commit left it; if not, the refusal is the same.
            let _ = session.folder.remove_stale_lock();
        }
    })?;
    if options.is_dry_run {
        return session.dry_run(index);
    }
    session.refuse_planned(index.as_ref())?;
    create_directory(archive)?;
    let _lock = session.folder.lock()?;
    // Looked at again: another process may have made the archive meanwhile.
    let index = match session.creatable()? {
        Some(index) => {
            session.refuse_planned(Some(&index))?;
            Some(session.folder.open_index_to_write()?)
        }
        None => None,
    };
    session.run(index, "create")
}

/// Archives what has changed in the tree `source` since the archive was written.
///
/// # Errors
/// As [`create`], but the archive must be there. After `UnlikelyDeletions` it is as it was.
pub fn update(
    source: &Path,
    archive: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<WriteReport, ArchiveError> {
    let session = Session::new(source, archive, options, observer)?;
    // Opened for reading first: an index that cannot be used leaves no trace of the lock.
    let index = session.folder.open_index()?;
    if options.is_dry_run {
        return session.dry_run(Some(index));
    }
    session.refuse_planned(Some(&index))?;
    drop(index);
    let _lock = session.folder.lock()?;
    let index = session.folder.open_index_to_write()?;
    session.refuse_planned(Some(&index))?;
    session.run(Some(index), "update")
}
