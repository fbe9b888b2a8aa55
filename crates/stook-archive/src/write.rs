//! `create` and `update`: one run over an archive that holds nothing yet, or something; see `session.rs`.
//!
//! A run that was interrupted goes on when either is called again: its rows up to the last checkpoint count as archived, so
//! the survey finds just what is left to do.

use std::path::Path;
use std::sync::Mutex;

use stook_sys::create_directory;

use crate::ArchiveError;
use crate::archive::Archive;
use crate::create::{WriteOptions, WriteReport};
use crate::observer::Observer;
use crate::session::Session;
use crate::transfer::{is_unsent, push};

/// Archives the tree `source` into the folder `archive`, which is made.
///
/// # Errors
/// `Exists` if a finished archive is there; `OtherFiles` if something else is, unless that is allowed; `NameTaken` if that
/// has a name that the archive needs; `Sys` if the source cannot be opened or the archive not
/// written; `Locked` if another process writes it; `Planned` if it is reserved for a plan; `UnlikelyDeletions` if it goes on with an interrupted run, and
/// [`Deletions`](crate::Deletions) do not allow what it would record; `Interrupted` if the observer asked to end.
pub fn create(
    source: &Path,
    archive: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<WriteReport, ArchiveError> {
    let session = Session::new(source, archive, options, observer)?;
    let index = match session.creatable() {
        Err(ArchiveError::Exists { path }) => {
            // A run that was killed after its last commit left it; if not, the refusal is the same.
            let _ = session.folder.remove_stale_lock();
            return go_on_sending(&session)?.ok_or(ArchiveError::Exists { path });
        }
        other => other?,
    };
    if options.is_dry_run {
        return session.dry_run(index.map(Mutex::new).as_ref());
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
    session.run_and_send(index, "create")
}

/// Archives what has changed in the tree `source` since the archive was written.
///
/// # Errors
/// As [`create`], but the archive is there. After `UnlikelyDeletions` it is as it was.
pub fn update(
    source: &Path,
    archive: &mut Archive,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<WriteReport, ArchiveError> {
    archive.set_interrupt(observer)?;
    let session = Session::new(source, archive.path(), options, observer)?;
    if options.is_dry_run {
        let report = session.dry_run(Some(archive.shared_index()))?;
        archive.index().require_unchanged()?;
        return Ok(report);
    }
    // Asked before the lock is made: what is refused leaves no trace.
    session.refuse_planned(Some(archive.index()))?;
    let _lock = session.folder.lock()?;
    let index = session.folder.open_index_to_write()?;
    session.refuse_planned(Some(&index))?;
    session.run_and_send(Some(index), "update")
}

/// Sends the rest of an archive that is finished here, and not yet in its store; None if there is no such rest.
fn go_on_sending(session: &Session<'_>) -> Result<Option<WriteReport>, ArchiveError> {
    let Some(store) = &session.options.store else {
        return Ok(None);
    };
    if session.options.is_dry_run || !is_unsent(&session.folder.open_index()?)? {
        return Ok(None);
    }
    let sent = push(session.folder.path(), store, &session.observer)?;
    Ok(Some(WriteReport {
        sent: Some(sent),
        failed: session.observer.failures(),
        ..WriteReport::default()
    }))
}
