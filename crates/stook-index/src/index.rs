//! Opening an index, and its settings.
//!
//! A reader opens the file read-only, so that it works on read-only media and can never change
//! an archive. A writer syncs fully and journals by rollback: `index.db` travels alone, and
//! write-ahead logs fail on the shared file systems that archives live on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};

use crate::access::{Access, FileState, PrivateCopy, has_journal, has_no_locks};
use crate::error::{IndexError, READ, WRITE};
use crate::interrupt::Interrupt;
use crate::origin::require_own_journal;
use crate::types::Config;
use crate::witness::{Change, Touched};
use crate::{schema, trust};

/// How long to wait for another program's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Pages of an index that is read as a whole under one lock: with 4 KiB each, a tenth of a second even where it is slow.
const MOST_LOCKED_PAGES: i64 = 1024;

const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY;
const READ_WRITE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE;

/// An open `index.db`.
#[derive(Debug)]
pub struct Index {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) interrupt: Interrupt,
    touched: Touched,
    access: Access,
}

/// Opens an index again as it was opened before, on any thread.
pub(crate) struct Opener {
    path: PathBuf,
    access: Access,
    interrupt: Interrupt,
}

impl Opener {
    pub(crate) fn open(&self) -> Result<Index, IndexError> {
        Index::open_as(&self.path, self.access.clone(), READ_ONLY, &self.interrupt)
    }
}

/// How to open an index for reading.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Ends all that is done with the index once it is raised.
    pub interrupt: Interrupt,
    /// A folder for a private copy, made if a crashed writer left a transaction that cannot be undone where the index lies;
    /// None: such an index is refused.
    pub scratch: Option<PathBuf>,
}

impl Index {
    /// Opens an index for reading. Undoes the unfinished transaction of a crashed writer first,
    /// if there is one; changes nothing else.
    ///
    /// # Errors
    /// `NotFound`, `ForeignJournal`, `NotSqlite`, `NotAnIndex`, `NotPlain`, `Newer`, `Busy`, or `Sqlite` for the rest.
    pub fn open_read(path: impl AsRef<Path>) -> Result<Self, IndexError> {
        Self::open_read_until(path, &Interrupt::never())
    }

    /// As [`Index::open_read`]; all that is done with it fails with `Interrupted` once `interrupt` is raised.
    ///
    /// # Errors
    /// As [`Index::open_read`], and `Interrupted`.
    pub fn open_read_until(
        path: impl AsRef<Path>,
        interrupt: &Interrupt,
    ) -> Result<Self, IndexError> {
        let interrupt = interrupt.clone();
        let options = ReadOptions {
            interrupt,
            scratch: None,
        };
        Self::open_read_with(path, &options)
    }

    /// As [`Index::open_read`], also where SQLite cannot lock the file, or not undo in place what a crashed writer left.
    ///
    /// # Errors
    /// As [`Index::open_read`]; `Interrupted`; `Changed` if the index changes while it is copied.
    ///
    /// # Cost
    /// A copy of index and journal, where one is needed.
    pub fn open_read_with(
        path: impl AsRef<Path>,
        options: &ReadOptions,
    ) -> Result<Self, IndexError> {
        let path = path.as_ref();
        let open = |access| Self::open_as(path, access, READ_ONLY, &options.interrupt);
        match open(Access::Locked) {
            Err(error) if error.is_unfinished_write() => {
                match Self::open_as(path, Access::Locked, READ_WRITE, &options.interrupt) {
                    Ok(_) => open(Access::Locked),
                    Err(busy @ (IndexError::Busy { .. } | IndexError::Interrupted { .. })) => {
                        Err(busy)
                    }
                    Err(_) => Self::open_copy(path, options).unwrap_or(Err(error)),
                }
            }
            Err(error) if error.is_lock_failure() || is_unlockable(&error) => {
                if has_journal(path) {
                    return Self::open_copy(path, options).unwrap_or(Err(error));
                }
                let state = FileState::of(path)?;
                let index = open(Access::Unlocked(state))?;
                index.require_unchanged()?;
                Ok(index)
            }
            opened => opened,
        }
    }

    /// Copies index and journal, and rolls the copy back. None if there is no folder for that.
    fn open_copy(path: &Path, options: &ReadOptions) -> Option<Result<Self, IndexError>> {
        let scratch = options.scratch.as_ref()?;
        Some(PrivateCopy::make(path, scratch).and_then(|copy| {
            let access = Access::Copied(Arc::new(copy));
            Self::open_as(path, access.clone(), READ_WRITE, &options.interrupt)?;
            Self::open_as(path, access, READ_ONLY, &options.interrupt)
        }))
    }

    /// Returns what other threads open the same index with.
    pub(crate) fn opener(&self) -> Opener {
        Opener {
            path: self.path.clone(),
            access: self.access.clone(),
            interrupt: self.interrupt.clone(),
        }
    }

    /// Requires that what was read is one state of the index. Only where the file cannot be locked may it be
    /// otherwise.
    ///
    /// # Errors
    /// `Changed` if the file changed since it was opened; `System` if that cannot be seen.
    pub fn require_unchanged(&self) -> Result<(), IndexError> {
        self.access.require_unchanged(&self.path)
    }

    /// Opens an index for writing; the caller holds the lock of the archive. Nothing is written yet: tables that are missing are made with
    /// the first change.
    ///
    /// # Errors
    /// As [`Index::open_read`], and `ReadOnly`.
    pub fn open_write(path: impl AsRef<Path>) -> Result<Self, IndexError> {
        Self::open_write_until(path, &Interrupt::never())
    }

    /// As [`Index::open_write`]; all that is done with it fails with `Interrupted` once `interrupt` is raised.
    ///
    /// # Errors
    /// As [`Index::open_write`], and `Interrupted`.
    pub fn open_write_until(
        path: impl AsRef<Path>,
        interrupt: &Interrupt,
    ) -> Result<Self, IndexError> {
        let open = |access| Self::open_as(path.as_ref(), access, READ_WRITE, interrupt);
        let index = match open(Access::Locked) {
            Err(error) if error.is_lock_failure() || is_unlockable(&error) => {
                open(Access::Exclusive)?
            }
            opened => opened?,
        };
        if index
            .connection
            .is_readonly("main")
            .map_err(index.fault(READ))?
        {
            return Err(IndexError::ReadOnly { path: index.path });
        }
        set_durable(&index.connection).map_err(index.fault(WRITE))?;
        Ok(index)
    }

    fn open_as(
        path: &Path,
        access: Access,
        flags: OpenFlags,
        interrupt: &Interrupt,
    ) -> Result<Self, IndexError> {
        require_own_journal(path)?;
        let index = Self::connect(path, access, flags, interrupt)?;
        let locked = index.lock_to_read()?;
        schema::check(&index.connection, path)?;
        drop(locked);
        Ok(index)
    }

    /// Has all statements see one state, and take the lock once, until the transaction is dropped. For short work only: no
    /// other program can commit meanwhile.
    ///
    /// # Cost
    /// Nothing by itself. Without it each statement locks the file and looks for a journal, with eight system calls.
    pub(crate) fn lock_to_read(&self) -> Result<Transaction<'_>, IndexError> {
        let transaction = self.connection.unchecked_transaction();
        transaction.map_err(self.fault(READ))
    }

    /// As [`Index::lock_to_read`], for work that reads the whole index: `None` if that may take longer than a writer waits.
    pub(crate) fn lock_if_small(&self) -> Result<Option<Transaction<'_>>, IndexError> {
        let locked = self.lock_to_read()?;
        let pages = locked.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0));
        // What is wrong with the pages is found by who reads them.
        let is_small = pages.is_ok_and(|pages| pages <= MOST_LOCKED_PAGES);
        Ok(is_small.then_some(locked))
    }

    pub(crate) fn connect(
        path: &Path,
        access: Access,
        flags: OpenFlags,
        interrupt: &Interrupt,
    ) -> Result<Self, IndexError> {
        let mut flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if access.is_uri() {
            flags |= OpenFlags::SQLITE_OPEN_URI;
        }
        let connection = Connection::open_with_flags(access.name(path), flags)
            .map_err(|error| IndexError::sqlite("open", path, error))?;
        let mut index = Self {
            connection,
            path: path.to_owned(),
            interrupt: Interrupt::never(),
            touched: Touched::default(),
            access,
        };
        index
            .touched
            .install(&mut index.connection)
            .map_err(fault_at(READ, path))?;
        index
            .connection
            .busy_timeout(BUSY_TIMEOUT)
            .map_err(index.fault(READ))?;
        trust::harden(&index.connection).map_err(index.fault(READ))?;
        index.set_interrupt(interrupt)?;
        Ok(index)
    }

    /// Has all that is done from now on fail with `Interrupted` once `interrupt` is raised.
    ///
    /// # Errors
    /// `Sqlite`.
    pub fn set_interrupt(&mut self, interrupt: &Interrupt) -> Result<(), IndexError> {
        interrupt
            .install(&mut self.connection)
            .map_err(fault_at(READ, &self.path))?;
        self.interrupt = interrupt.clone();
        Ok(())
    }

    /// Requires that nobody has ended what is done with the index.
    pub(crate) fn require_going_on(&self) -> Result<(), IndexError> {
        if self.interrupt.is_raised() {
            let path = self.path.clone();
            return Err(IndexError::Interrupted { path });
        }
        Ok(())
    }

    /// Returns the file that is read: a copy, where there is one.
    pub(crate) fn file(&self) -> &Path {
        self.access.file(&self.path)
    }

    /// Returns the path it was opened under.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the archive's settings.
    ///
    /// # Errors
    /// `BadConfig` if one is missing or invalid, `Sqlite` if it cannot be read.
    pub fn config(&self) -> Result<Config, IndexError> {
        let maxsize = self.setting("maxsize")?;
        let maxsize = read_maxsize(&maxsize)
            .ok_or_else(|| self.bad_setting("maxsize", "is not a number of bytes"))?;
        let path = match self.raw_config_path()? {
            Some(raw) => raw,
            None => self.setting("path")?.into_bytes(),
        };
        Ok(Config {
            hpss: self.setting("hpss")?,
            maxsize,
            path,
        })
    }

    pub(crate) fn setting(&self, setting: &'static str) -> Result<String, IndexError> {
        let value: Option<Option<String>> = self
            .connection
            .query_row(
                "SELECT cast(value AS text) FROM config WHERE arg = ?1",
                [setting],
                |row| row.get(0),
            )
            .optional()
            .map_err(self.fault(READ))?;
        value
            .flatten()
            .ok_or_else(|| self.bad_setting(setting, "is missing"))
    }

    fn raw_config_path(&self) -> Result<Option<Vec<u8>>, IndexError> {
        if !self.has_table("stook_meta")? {
            return Ok(None);
        }
        self.connection
            .query_row("SELECT cast(value AS blob) FROM stook_meta WHERE key = 'path' AND value IS NOT NULL", [], |row| row.get(0))
            .optional()
            .map_err(self.fault(READ))
    }

    fn bad_setting(&self, setting: &'static str, why: &'static str) -> IndexError {
        IndexError::BadConfig {
            path: self.path.clone(),
            setting,
            why,
        }
    }

    /// Closes the file and reports what that reports.
    pub(crate) fn close(self) -> Result<(), IndexError> {
        self.connection
            .close()
            .map_err(|(_, error)| IndexError::sqlite(WRITE, &self.path, error))
    }

    /// Begins a transaction that holds the write lock from the start and has all tables, of this format. Its end writes the
    /// witnesses of what it has changed.
    ///
    /// Public functions that call this take `&mut self`, so no two transactions meet; a shared
    /// borrow lets them read rows meanwhile.
    pub(crate) fn begin(&self) -> Result<Change<'_>, IndexError> {
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
                .map_err(self.fault(WRITE))?;
        let mut change = Change::new(transaction, &self.touched);
        if schema::add_missing_tables(&change, &self.path)? {
            change.set_upgrade();
        }
        Ok(change)
    }

    pub(crate) fn has_table(&self, table: &str) -> Result<bool, IndexError> {
        schema::has_table(&self.connection, &self.path, table)
    }

    pub(crate) fn fault(
        &self,
        operation: &'static str,
    ) -> impl FnOnce(rusqlite::Error) -> IndexError + '_ {
        fault_at(operation, &self.path)
    }
}

/// Returns true if SQLite waited in vain for a lock that the file system does not give.
fn is_unlockable(error: &IndexError) -> bool {
    matches!(error, IndexError::Busy { path } if has_no_locks(path))
}

/// Names the operation and the file of an SQLite error.
pub(crate) fn fault_at<'p>(
    operation: &'static str,
    path: &'p Path,
) -> impl FnOnce(rusqlite::Error) -> IndexError + 'p {
    move |error| IndexError::sqlite(operation, path, error)
}

pub(crate) fn set_durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// Reads a size in bytes, also where an old zstash wrote it as a floating-point number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range; fractions are dropped"
)]
pub(crate) fn read_maxsize(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| {
        let float: f64 = text.parse().ok()?;
        (0.0..9e18).contains(&float).then_some(float as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtime::Mtime;

    #[test]
    fn a_small_index_is_locked_as_a_whole_and_a_large_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        let config = Config {
            hpss: "none".into(),
            maxsize: 1,
            path: b"/src".into(),
        };
        let index = Index::create(&path, &config).unwrap();
        assert!(index.lock_if_small().unwrap().is_some());
        index
            .connection
            .execute_batch(
                "CREATE TABLE large (bytes blob); INSERT INTO large VALUES (zeroblob(5000000))",
            )
            .unwrap();
        assert!(index.lock_if_small().unwrap().is_none());
        assert!(index.connection.is_autocommit());
    }

    #[test]
    fn a_held_database_is_reported_as_busy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        let config = Config {
            hpss: "none".into(),
            maxsize: 1,
            path: b"/src".into(),
        };
        let holder = Index::create(&path, &config).unwrap();
        let second = Index::open_write(&path).unwrap();
        second.connection.busy_timeout(Duration::ZERO).unwrap();
        let held = holder.begin().unwrap();
        let error = second.begin().err().unwrap();
        assert!(matches!(error, IndexError::Busy { .. }), "{error:?}");
        assert!(
            error.to_string().ends_with("another program is using it"),
            "{error}"
        );
        drop(held);
        second.begin().unwrap();
    }

    #[test]
    fn an_index_that_changes_where_it_cannot_be_locked_is_not_relied_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a?b=c#d %20.db");
        let config = Config {
            hpss: "none".into(),
            maxsize: 1,
            path: b"/src".into(),
        };
        let mut writer = Index::create(&path, &config).unwrap();
        let access = Access::Unlocked(FileState::of(&path).unwrap());
        let index = Index::open_as(&path, access, READ_ONLY, &Interrupt::never()).unwrap();
        // What another program holds does not matter: nothing is locked.
        let held = writer.begin().unwrap();
        assert_eq!(index.config().unwrap().maxsize, 1);
        drop(held);
        index.require_unchanged().unwrap();
        index.opener().open().unwrap().require_unchanged().unwrap();
        writer.begin_run("update", Mtime(0)).unwrap();
        let error = index.require_unchanged().unwrap_err();
        assert!(matches!(error, IndexError::Changed { .. }), "{error}");
    }

    #[test]
    fn sizes_are_read_in_every_spelling_zstash_used() {
        assert_eq!(read_maxsize("274877906944"), Some(274_877_906_944));
        assert_eq!(read_maxsize("1073741.824"), Some(1_073_741));
        for wrong in ["", "-1", "nan", "inf", "1e300", "many"] {
            assert_eq!(read_maxsize(wrong), None, "{wrong}");
        }
    }
}
