//! Runs and deletions: which rows a `create` or `update` left behind, and what was gone by then.
//!
//! ```text
//! ids        1 ......... 40 | 41 ........ 55 | 56 .. 60
//!            run 1            run 2            zstash update: rows, but no run
//! as of 1    rows 1-40, minus deletions of run 1
//! as of 2    rows 1-55, minus what run 1 hides in 1-40 and run 2 hides in 1-55
//! now        all rows,  minus the same
//! ```
//! A deletion hides the rows of its name up to the last row of its run; a name archived again
//! later is back.

use std::collections::HashMap;
use std::ops::{ControlFlow, RangeInclusive};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement, Transaction, params};

use crate::damage::IndexDamage;
use crate::error::{IndexError, READ, WRITE};
use crate::index::Index;
use crate::mtime::Mtime;
use crate::name::escape_name;
use crate::name_table::NameTable;
use crate::names::{NameWriter, Source};
use crate::row::{BAD_ID, BadValue, bytes, mtime_of};
use crate::rows::{FIRST_STAGED_ID, RANGE, last_row};
use crate::scan::{Step, scan_ids};
use crate::types::{AsOf, Deletion, RowId, Run, RunId};

const RUN_COLUMNS: &str =
    "SELECT id, command, started, finished, first_file, last_file, failed FROM stook_runs ";

/// Writes that a run begins whose first row will have this id.
pub(crate) fn insert_begun_run(
    connection: &Connection,
    command: &str,
    started: Mtime,
    first_file: i64,
) -> rusqlite::Result<RunId> {
    connection.execute(
        "INSERT INTO stook_runs (command, started, first_file) VALUES (?1, ?2, ?3)",
        params![command, started.to_string(), first_file],
    )?;
    Ok(RunId(connection.last_insert_rowid()))
}

impl Index {
    /// Returns all runs, oldest first. Empty for archives that only zstash wrote.
    ///
    /// # Errors
    /// `BadRow` if a row is invalid, `Sqlite` if it cannot be read.
    pub fn runs(&self) -> Result<Vec<Run>, IndexError> {
        let mut first = None;
        let runs = self.readable_runs(|damage| {
            first.get_or_insert(damage);
        })?;
        first.map_or(Ok(runs), |damage| {
            Err(IndexError::damaged(&self.path, &damage))
        })
    }

    /// Returns all runs that can be read, oldest first; what cannot goes to `damaged`.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    pub fn readable_runs(
        &self,
        mut damaged: impl FnMut(IndexDamage),
    ) -> Result<Vec<Run>, IndexError> {
        let mut runs = Vec::new();
        if !self.has_table("stook_runs")? {
            return Ok(runs);
        }
        let query = format!("{RUN_COLUMNS} {RANGE}");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            match step {
                Step::Row(id, row) => match self.decode_run(id, row)? {
                    Ok(run) => runs.push(run),
                    Err(BadValue { column, why }) => {
                        damaged(IndexDamage::value("stook_runs", id, column, why));
                    }
                },
                Step::Unreadable(rows) => damaged(IndexDamage::unreadable("stook_runs", &rows)),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(runs)
    }

    pub(crate) fn decode_run(
        &self,
        id: i64,
        row: &rusqlite::Row<'_>,
    ) -> Result<Result<Run, BadValue>, IndexError> {
        let column = |index| row.get_ref(index).map_err(self.fault(READ));
        let (command, started, finished) = (column(1)?, column(2)?, column(3)?);
        let (first_file, last_file, failed) = (column(4)?, column(5)?, column(6)?);
        let decode = || {
            let finished = match finished {
                ValueRef::Null => None,
                text => Some(mtime_of(text).ok_or(BadValue::new("finished", BAD_FINISHED))?),
            };
            let last_file = match last_file {
                ValueRef::Null => None,
                ValueRef::Integer(id) => Some(RowId(id)),
                _ => {
                    return Err(BadValue::new(
                        "last_file",
                        "its last_file is not the id of a row",
                    ));
                }
            };
            if finished.is_some() != last_file.is_some() {
                return Err(BadValue::new("finished", "it is both finished and not"));
            }
            let ValueRef::Integer(first_file) = first_file else {
                return Err(BadValue::new(
                    "first_file",
                    "its first_file is not the id of a row",
                ));
            };
            let failed = match failed {
                ValueRef::Integer(failed) => u64::try_from(failed).unwrap_or(0),
                _ => 0,
            };
            Ok(Run {
                id: RunId(id),
                command: String::from_utf8_lossy(bytes(command).unwrap_or_default()).into_owned(),
                started: mtime_of(started).ok_or(BadValue::new("started", BAD_STARTED))?,
                finished,
                first_file: RowId(first_file),
                last_file,
                failed,
            })
        };
        Ok(decode())
    }

    /// Returns the last run if it has not finished: an interrupted one to go on with.
    ///
    /// # Errors
    /// As [`Index::runs`].
    pub fn unfinished_run(&self) -> Result<Option<Run>, IndexError> {
        Ok(self.runs()?.pop().filter(|run| run.finished.is_none()))
    }

    /// Returns the last of the runs that finished at or before a time.
    ///
    /// # Errors
    /// As [`Index::runs`].
    pub fn run_at(&self, time: Mtime) -> Result<Option<RunId>, IndexError> {
        let runs = self.runs()?;
        let finished_by_then = |run: &&Run| run.finished.is_some_and(|finished| finished <= time);
        Ok(runs.iter().rev().find(finished_by_then).map(|run| run.id))
    }

    /// Records, durably, that a run begins.
    ///
    /// # Errors
    /// `BadRow` if the greatest id is out of range: rows behind it would be, too. `Busy`, `ReadOnly` or `Sqlite` if it
    /// cannot be written.
    pub fn begin_run(&mut self, command: &str, started: Mtime) -> Result<RunId, IndexError> {
        let transaction = self.begin()?;
        let last = last_row(&transaction, &self.path)?;
        if last >= FIRST_STAGED_ID {
            return Err(IndexError::bad_row(
                &self.path,
                "files",
                RowId(last),
                BAD_ID,
            ));
        }
        let first = last + 1;
        let run = insert_begun_run(&transaction, command, started, first);
        let run = run.map_err(self.fault(WRITE))?;
        transaction.commit().map_err(self.fault(WRITE))?;
        Ok(run)
    }

    /// Takes back that a run has begun: only the last one, while it is unfinished and has no rows. Returns false, and changes
    /// nothing, for any other.
    ///
    /// # Errors
    /// `Busy`, `ReadOnly` or `Sqlite` if it cannot be written.
    pub fn take_back_run(&mut self, run: RunId) -> Result<bool, IndexError> {
        let transaction = self.begin()?;
        let last = last_row(&transaction, &self.path)?;
        let removed = transaction
            .execute(
                "DELETE FROM stook_runs WHERE id = ?1 AND finished IS NULL AND first_file > ?2
                   AND id = (SELECT max(id) FROM stook_runs)",
                params![run.0, last],
            )
            .map_err(self.fault(WRITE))?;
        transaction.commit().map_err(self.fault(WRITE))?;
        Ok(removed > 0)
    }

    /// Records, in one transaction, that a run has ended, and which names were gone by then.
    ///
    /// # Errors
    /// `BadRun` if there is no such run or it has finished; `Busy`, `ReadOnly` or `Sqlite` if it
    /// cannot be written. Nothing is changed then.
    pub fn finish_run<'n>(
        &mut self,
        run: RunId,
        finished: Mtime,
        failed: u64,
        deleted: impl IntoIterator<Item = &'n [u8]>,
    ) -> Result<(), IndexError> {
        let transaction = self.begin()?;
        self.mark_finished(&transaction, run, finished, failed)?;
        let mut recorder = DeletionRecorder::begin(self, run)?;
        for name in deleted {
            recorder.record(name)?;
        }
        recorder.finish()?;
        transaction.commit().map_err(self.fault(WRITE))
    }

    /// As [`Index::finish_run`], for names that are read meanwhile; returns their number. An error among them ends the
    /// transaction.
    ///
    /// # Errors
    /// As [`Index::finish_run`], and those of `deleted`.
    pub fn finish_run_with<E: From<IndexError>>(
        &mut self,
        run: RunId,
        finished: Mtime,
        failed: u64,
        deleted: impl IntoIterator<Item = Result<Vec<u8>, E>>,
    ) -> Result<u64, E> {
        let transaction = self.begin()?;
        self.mark_finished(&transaction, run, finished, failed)?;
        let mut recorder = DeletionRecorder::begin(self, run)?;
        let mut count = 0;
        for name in deleted {
            recorder.record(&name?)?;
            count += 1;
        }
        recorder.finish()?;
        transaction.commit().map_err(self.fault(WRITE))?;
        Ok(count)
    }

    /// As [`Index::finish_run`], for all names that were known and not looked up, if
    /// `is_deleted` agrees; returns their number.
    ///
    /// # Errors
    /// As [`Index::finish_run`], and `BadRow` if a row is invalid.
    ///
    /// # Cost
    /// One pass over the rows if any name was not visited; names are not gathered.
    pub fn finish_run_with_not_visited(
        &mut self,
        run: RunId,
        finished: Mtime,
        failed: u64,
        name_table: &NameTable,
        mut is_deleted: impl FnMut(&[u8]) -> bool,
    ) -> Result<u64, IndexError> {
        let transaction = self.begin()?;
        self.mark_finished(&transaction, run, finished, failed)?;
        let mut recorder = DeletionRecorder::begin(self, run)?;
        let mut count = 0;
        let mut outcome = Ok(());
        self.visit_not_visited(name_table, &mut |name| {
            if is_deleted(name) {
                outcome = recorder.record(name);
                count += 1;
            }
            if outcome.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        outcome?;
        recorder.finish()?;
        transaction.commit().map_err(self.fault(WRITE))?;
        Ok(count)
    }

    fn mark_finished(
        &self,
        transaction: &Transaction<'_>,
        run: RunId,
        finished: Mtime,
        failed: u64,
    ) -> Result<(), IndexError> {
        let last = last_row(transaction, &self.path)?;
        let changed = transaction
            .execute(
                "UPDATE stook_runs SET finished = ?2, last_file = ?3, failed = ?4 WHERE id = ?1 AND finished IS NULL",
                params![run.0, finished.to_string(), last, i64::try_from(failed).unwrap_or(i64::MAX)],
            )
            .map_err(self.fault(WRITE))?;
        if changed == 0 {
            return Err(self.bad_run(run, "it is unknown or has finished already"));
        }
        Ok(())
    }

    /// Returns the greatest row id that belongs to a state.
    pub(crate) fn last_row_as_of(&self, as_of: AsOf) -> Result<i64, IndexError> {
        let AsOf::Run(id) = as_of else {
            return Ok(i64::MAX);
        };
        let mut damage = None;
        let runs = self.readable_runs(|found| {
            if found.rows.as_ref().is_some_and(|rows| rows.contains(&id.0)) {
                damage = Some(found);
            }
        })?;
        let position = runs.iter().position(|run| run.id == id);
        let Some(position) = position else {
            return Err(match damage {
                Some(damage) => IndexError::damaged(&self.path, &damage),
                None => self.bad_run(id, "it is unknown"),
            });
        };
        Ok(last_row_of(&runs, position))
    }

    /// Shows every deletion of a finished run up to `up_to`, and what cannot be read of them to `damaged`.
    pub(crate) fn deletions(
        &self,
        up_to: Option<RunId>,
        visit: &mut dyn FnMut(Deletion<'_>),
        damaged: &mut dyn FnMut(IndexDamage),
    ) -> Result<(), IndexError> {
        self.deletions_in(i64::MIN..=i64::MAX, up_to, visit, damaged)
    }

    /// As [`Index::deletions`], of these rows of `stook_deleted`.
    pub(crate) fn deletions_in(
        &self,
        rows: RangeInclusive<i64>,
        up_to: Option<RunId>,
        visit: &mut dyn FnMut(Deletion<'_>),
        damaged: &mut dyn FnMut(IndexDamage),
    ) -> Result<(), IndexError> {
        if !self.has_table("stook_deleted")? {
            return Ok(());
        }
        let up_to = up_to.map_or(i64::MAX, |run| run.0);
        let last_files = self.last_files(damaged)?;
        let query = "SELECT rowid, run, name, raw FROM stook_deleted WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid";
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, rows, |step| {
            let (id, row) = match step {
                Step::Row(id, row) => (id, row),
                Step::Unreadable(rows) => {
                    damaged(IndexDamage::unreadable("stook_deleted", &rows));
                    return Ok(ControlFlow::Continue(()));
                }
            };
            let column = |index| row.get_ref(index).map_err(self.fault(READ));
            let (run, name, raw) = (column(1)?, column(2)?, column(3)?);
            let ValueRef::Integer(run) = run else {
                damaged(IndexDamage::value("stook_deleted", id, "run", BAD_RUN));
                return Ok(ControlFlow::Continue(()));
            };
            let real = if raw == ValueRef::Null { name } else { raw };
            match (last_files.get(&run), bytes(real)) {
                (Some(Some(last_file)), Some(name)) if run <= up_to => visit(Deletion {
                    row: id,
                    run,
                    name,
                    last_file: *last_file,
                }),
                (Some(_), Some(_)) => {}
                (None, _) => damaged(IndexDamage::value("stook_deleted", id, "run", BAD_RUN)),
                (_, None) => {
                    damaged(IndexDamage::value(
                        "stook_deleted",
                        id,
                        "name",
                        "it has no name",
                    ));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Returns the last row of each run, `None` for one that has not finished.
    fn last_files(
        &self,
        damaged: &mut dyn FnMut(IndexDamage),
    ) -> Result<HashMap<i64, Option<i64>>, IndexError> {
        let runs = self.readable_runs(damaged)?;
        let last_file = |run: Run| (run.id.0, run.last_file.map(|last| last.0));
        Ok(runs.into_iter().map(last_file).collect())
    }

    fn bad_run(&self, run: RunId, why: &'static str) -> IndexError {
        IndexError::BadRun {
            path: self.path.clone(),
            run,
            why,
        }
    }
}

/// Returns the greatest row id that belongs to the state after a run.
pub(crate) fn last_row_of(runs: &[Run], position: usize) -> i64 {
    let next = runs
        .get(position + 1)
        .map_or(i64::MAX, |next| next.first_file.0.saturating_sub(1));
    runs[position].last_file.map_or(next, |last| last.0)
}

pub(crate) const BAD_RUN: &str = "its run is not in `stook_runs`, or cannot be read there";
pub(crate) const BAD_STARTED: &str = "its started is not a time of the form `YYYY-MM-DD HH:MM:SS`";
pub(crate) const BAD_FINISHED: &str =
    "its finished is not a time of the form `YYYY-MM-DD HH:MM:SS`";

/// Records deletions in the transaction that ends a run, and indexes all names that are not indexed yet.
struct DeletionRecorder<'i> {
    index: &'i Index,
    run: RunId,
    insert: Statement<'i>,
    names: NameWriter<'i>,
}

impl<'i> DeletionRecorder<'i> {
    fn begin(index: &'i Index, run: RunId) -> Result<Self, IndexError> {
        NameWriter::begin(index, Source::Files)?.finish()?;
        let insert = index
            .connection
            .prepare("INSERT INTO stook_deleted VALUES (?1, ?2, ?3)");
        Ok(Self {
            index,
            run,
            insert: insert.map_err(index.fault(WRITE))?,
            names: NameWriter::begin(index, Source::Deleted)?,
        })
    }

    fn record(&mut self, name: &[u8]) -> Result<(), IndexError> {
        let stored = escape_name(name);
        let raw = (stored.as_bytes() != name).then_some(name);
        let row = self
            .insert
            .insert(params![self.run.0, &*stored, raw])
            .map_err(self.index.fault(WRITE))?;
        self.names.add(row, name)
    }

    fn finish(self) -> Result<(), IndexError> {
        self.names.finish().map(drop)
    }
}
