//! Makes the saved index of a database good: from the old one where that is sane, else from nothing.

use std::path::Path;

use crate::data_file::DataFile;
use crate::error::{SavedIndexError, ZodbError};
use crate::id::Tid;
use crate::observer::Observer;
use crate::sanity::is_sane;
use crate::saved::{DatabaseLock, SavedIndex, index_path, read_index, save_index};
use crate::scan::{Scan, ScanEnd, Start, scan};

/// What is done with an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Write {
    /// It is saved.
    #[default]
    Save,
    /// Nothing is written, and no lock is taken.
    DryRun,
}

/// Whether a good index is believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// An index that passes ZODB's test is gone on from.
    #[default]
    Sane,
    /// All is read anew.
    Nothing,
}

/// What was wrong with the index that was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// There was none.
    Missing,
    /// It could not be read.
    Unreadable(SavedIndexError),
    /// It is not the index of this file.
    Insane,
    /// It ends before the file does.
    Stale {
        /// Where it ends.
        position: u64,
    },
    /// Nothing, as far as ZODB's test goes.
    Current,
}

/// What was found and done.
#[derive(Debug)]
pub struct Reindexed {
    /// The index that was there.
    pub before: IndexState,
    /// Where reading began: the end of what was believed.
    pub from: u64,
    /// What was read, and the index; an index that was current is in it, too.
    pub scan: Scan,
    /// Bytes of the index that was saved; `None` if there was no need, in a dry run, and after an interruption.
    pub written: Option<u64>,
}

/// Rebuilds the index of a database, or brings it up to date, and saves it; what lies before an imperfect transaction is
/// indexed. The database itself is never written.
///
/// # Errors
/// As [`DataFile::open`], [`scan`] and [`save_index`]; [`ZodbError::Locked`] if the database is open in another process.
pub fn reindex(
    path: &Path,
    write: Write,
    trust: Trust,
    observer: &dyn Observer,
) -> Result<Reindexed, ZodbError> {
    // Before the file is opened: its owner may exchange it as long as he has the lock.
    let _lock = match write {
        Write::Save => {
            DataFile::open(path)?;
            Some(DatabaseLock::acquire(path)?)
        }
        Write::DryRun => None,
    };
    let data = DataFile::open(path)?;
    let (before, sane) = look_at_index(&data)?;
    let start = match trust {
        Trust::Sane => sane.unwrap_or_default(),
        Trust::Nothing => Start::default(),
    };
    let from = start.position;
    observer.phase("scan", data.size().saturating_sub(from));
    let scan = scan(&data, start, None, observer)?;
    let is_needed = before != IndexState::Current || trust == Trust::Nothing;
    let mut written = None;
    if is_needed && write == Write::Save && scan.end != ScanEnd::Interrupted {
        written = Some(save_index(path, &scan.index, scan.position)?);
    }
    Ok(Reindexed {
        before,
        from,
        scan,
        written,
    })
}

/// Reads the saved index of a database; what may be gone on from comes with it.
///
/// # Errors
/// [`ZodbError::Sys`] with "open" or "read".
pub fn look_at_index(data: &DataFile) -> Result<(IndexState, Option<Start>), ZodbError> {
    let saved = match read_index(&index_path(data.path())) {
        Ok(saved) => saved,
        Err(ZodbError::Sys(error)) if error.is_not_found() => {
            return Ok((IndexState::Missing, None));
        }
        Err(ZodbError::SavedIndex { cause, .. }) => {
            return Ok((IndexState::Unreadable(cause), None));
        }
        Err(error) => return Err(error),
    };
    let Some(last_tid) = is_sane(data, &saved.index, saved.position)? else {
        return Ok((IndexState::Insane, None));
    };
    let state = match saved.position < data.size() {
        true => IndexState::Stale {
            position: saved.position,
        },
        false => IndexState::Current,
    };
    Ok((state, Some(start_of(saved, last_tid))))
}

fn start_of(saved: SavedIndex, last_tid: Tid) -> Start {
    let SavedIndex { index, position } = saved;
    Start {
        position,
        last_tid,
        index,
    }
}
