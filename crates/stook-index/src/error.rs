//! Errors of the index: one enum, printed on one line.
//!
//! Kinds a caller treats differently (missing, busy, newer, damaged) are variants of their own;
//! whatever else SQLite reports keeps its text under the operation and the path.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use stook_sys::{SysError, display_path};

use crate::damage::IndexDamage;
use crate::types::{RowId, RunId, VolumeId};

/// Why an index or a staging file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// There is no such file.
    #[error("cannot open `{}`: no such index", display_path(path))]
    NotFound {
        /// Where the file was looked for.
        path: PathBuf,
    },
    /// A new database was to be made where one stands already.
    #[error("cannot create `{}`: it exists already", display_path(path))]
    Exists {
        /// The file in the way.
        path: PathBuf,
    },
    /// A file that stook did not make has a name that stook needs.
    #[error(
        "cannot write `{}`: a file of this name, or a journal of it, is there that stook did not make",
        display_path(path)
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// What has the name of the index's journal is none: SQLite would remove it.
    #[error(
        "cannot open the index: `{}` is there, and is not a journal of it",
        display_path(path)
    )]
    ForeignJournal {
        /// The journal.
        path: PathBuf,
    },
    /// The file is not an SQLite database.
    #[error("cannot read `{}`: it is not an SQLite database", display_path(path))]
    NotSqlite {
        /// The file.
        path: PathBuf,
    },
    /// The file is an SQLite database, but not an index.
    #[error(
        "cannot read `{}`: it is not an archive's index: it has no {missing}",
        display_path(path)
    )]
    NotAnIndex {
        /// The file.
        path: PathBuf,
        /// The table or column that an index has and this file has not.
        missing: Missing,
    },
    /// One of the tables is not a plain one: reading it would run what somebody put there.
    #[error(
        "cannot read `{}`: it is not an archive's index: its `{table}` {what}",
        display_path(path)
    )]
    NotPlain {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
        /// What it is or has instead.
        what: &'static str,
    },
    /// The user ended the operation; an unfinished transaction is undone.
    #[error("cannot finish with `{}`: interrupted", display_path(path))]
    Interrupted {
        /// The file.
        path: PathBuf,
    },
    /// The index was written by a later stook.
    #[error(
        "cannot read `{}`: its format is {format}, this program knows formats up to {}",
        display_path(path),
        crate::types::FORMAT
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format it says it has.
        format: i64,
    },
    /// Another program holds the database, and still did after the waiting time.
    #[error("cannot use `{}`: another program is using it", display_path(path))]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The database is to be written, and the file or its folder does not allow it.
    #[error("cannot write `{}`: it is read-only", display_path(path))]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// SQLite reported an error.
    #[error("cannot {operation} `{}`: {source}", display_path(path))]
    Sqlite {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The database.
        path: PathBuf,
        /// SQLite's own words.
        source: rusqlite::Error,
    },
    /// A row holds a value that no archive has.
    #[error("cannot read `{}`: row {id} of `{table}`: {why}", display_path(path))]
    BadRow {
        /// The database.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The row's id.
        id: i64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A part of the database that is needed cannot be read, or is invalid.
    #[error(
        "cannot use `{}`: {}: {}",
        display_path(path),
        damage.place().unwrap_or_else(|| "the file".to_owned()),
        damage.what
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// Which part, and what is wrong with it.
        damage: Box<IndexDamage>,
    },
    /// A line of `config` is missing or invalid.
    #[error("cannot read `{}`: its setting `{setting}` {why}", display_path(path))]
    BadConfig {
        /// The database.
        path: PathBuf,
        /// The setting's name.
        setting: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A row to be stored has a number that SQLite cannot hold.
    #[error(
        "cannot store a row in `{}`: its {field} does not fit in 63 bits",
        display_path(path)
    )]
    TooLarge {
        /// The database.
        path: PathBuf,
        /// Size or offset.
        field: &'static str,
    },
    /// A volume was committed a second time.
    #[error(
        "cannot commit `{volume}` to `{}`: the index has it already",
        display_path(path)
    )]
    VolumeExists {
        /// The database.
        path: PathBuf,
        /// The volume.
        volume: VolumeId,
    },
    /// A rebuild was given its volumes out of order.
    #[error(
        "cannot add `{volume}` to `{}`: volumes must come in ascending order",
        display_path(path)
    )]
    VolumeOrder {
        /// The database.
        path: PathBuf,
        /// The volume.
        volume: VolumeId,
    },
    /// The index knows no such run, or the run has finished already.
    #[error("cannot use run {run} of `{}`: {why}", display_path(path))]
    BadRun {
        /// The database.
        path: PathBuf,
        /// The run.
        run: RunId,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A staging file is damaged or incomplete: there is no checkpoint to go on from.
    #[error("cannot use the checkpoint `{}`: {why}", display_path(path))]
    BadStaging {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        why: StagingFault,
    },
    /// The index changed while it was read, where nothing can be locked.
    #[error(
        "cannot rely on `{}`: it changed while it was read, and cannot be locked where it lies",
        display_path(path)
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SysError),
}

/// What is wrong with a staging file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StagingFault {
    /// Something in it is invalid.
    #[error("{0}")]
    Wrong(&'static str),
    /// What SQLite's own check says of it, word for word.
    #[error("it is damaged: {0}")]
    Integrity(String),
    /// It is that of another volume.
    #[error("it belongs to `{0}`")]
    OtherVolume(VolumeId),
    /// It cannot be opened or read as a database.
    #[error("{}", without_path(.0))]
    Unusable(#[source] Box<IndexError>),
}

/// The path stands in front of it already.
fn without_path(error: &IndexError) -> String {
    match error {
        IndexError::NotSqlite { .. } => "it is not an SQLite database".to_owned(),
        IndexError::NotAnIndex { missing, .. } => format!("it has no {missing}"),
        IndexError::NotPlain { table, what, .. } => format!("its `{table}` {what}"),
        IndexError::Sqlite { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// What an index has and another database has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// A table.
    #[error("table `{0}`")]
    Table(&'static str),
    /// A column of a table.
    #[error("column `{column}` in its table `{table}`")]
    Column {
        /// Its name.
        column: &'static str,
        /// The table.
        table: &'static str,
    },
}

impl IndexError {
    /// Returns true if the file's content is at fault, so that writing it anew helps.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::NotSqlite { .. }
            | Self::NotAnIndex { .. }
            | Self::NotPlain { .. }
            | Self::BadRow { .. }
            | Self::Damaged { .. }
            | Self::BadConfig { .. }
            | Self::BadStaging { .. } => true,
            Self::Sqlite { source, .. } => {
                source.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
            }
            _ => false,
        }
    }

    /// Returns true if the file system has no room left.
    pub fn is_no_space(&self) -> bool {
        match self {
            Self::Sqlite { source, .. } => source.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::System(error) => error.is_no_space(),
            _ => false,
        }
    }

    /// Returns true if an interrupted write must be undone before anything can be read, and that is not allowed here.
    pub fn is_waiting_for_rollback(&self) -> bool {
        match self {
            Self::Sqlite { source, .. } => source.sqlite_error_code() == Some(ErrorCode::ReadOnly),
            _ => false,
        }
    }

    /// Returns true if a crashed writer left a journal that a read-only connection may not apply.
    pub(crate) fn is_unfinished_write(&self) -> bool {
        let Self::Sqlite {
            source: rusqlite::Error::SqliteFailure(error, _),
            ..
        } = self
        else {
            return false;
        };
        error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK
    }

    /// Returns true if the file system refused to lock the file.
    pub(crate) fn is_lock_failure(&self) -> bool {
        use rusqlite::ffi::{
            SQLITE_IOERR_CHECKRESERVEDLOCK, SQLITE_IOERR_LOCK, SQLITE_IOERR_RDLOCK,
            SQLITE_IOERR_UNLOCK,
        };
        const CODES: [std::ffi::c_int; 4] = [
            SQLITE_IOERR_LOCK,
            SQLITE_IOERR_RDLOCK,
            SQLITE_IOERR_CHECKRESERVEDLOCK,
            SQLITE_IOERR_UNLOCK,
        ];
        matches!(
            self,
            Self::Sqlite {
                source: rusqlite::Error::SqliteFailure(error, _),
                ..
            } if CODES.contains(&error.extended_code)
        )
    }

    /// Sorts an error of SQLite into the variants above.
    pub(crate) fn sqlite(operation: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotSqlite { path },
            Some(ErrorCode::OperationInterrupted) => Self::Interrupted { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::CannotOpen) if matches!(stook_sys::exists(&path), Ok(None)) => {
                Self::NotFound { path }
            }
            Some(ErrorCode::ReadOnly) if operation != READ => Self::ReadOnly { path },
            _ => Self::Sqlite {
                operation,
                path,
                source,
            },
        }
    }

    /// What a damage is where its part of the index cannot be done without.
    pub fn damaged(path: &Path, damage: &IndexDamage) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            damage: Box::new(damage.clone()),
        }
    }

    pub(crate) fn bad_row(path: &Path, table: &'static str, id: RowId, why: &'static str) -> Self {
        Self::BadRow {
            path: path.to_owned(),
            table,
            id: id.0,
            why,
        }
    }
}

/// The operation of every query that changes nothing.
pub(crate) const READ: &str = "read";
/// The operation of every statement that changes the database.
pub(crate) const WRITE: &str = "write";
