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

use std::ops::ControlFlow;

use rusqlite::types::ValueRef;
use rusqlite::{Statement, Transaction, params};

use crate::error::{IndexError, READ, WRITE};
use crate::index::Index;
use crate::known::Known;
use crate::mtime::Mtime;
use crate::name::escape_name;
use crate::rows::{BAD_MTIME, bytes, last_row, mtime_of};
use crate::types::{RowId, Run, RunId};

/// Which state of the archive is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// All rows, also those zstash added after the last run.
    Now,
    /// The rows there were when this run ended.
    Run(RunId),
}

const RUN_COLUMNS: &str = "SELECT id, command, started, finished, first_file, last_file, failed FROM stook_runs ORDER BY id";

impl Index {
    /// Returns all runs, oldest first. Empty for archives that only zstash wrote.
    ///
    /// # Errors
    /// `BadRow` if a row makes no sense, `Sqlite` if it cannot be read.
    pub fn runs(&self) -> Result<Vec<Run>, IndexError> {
        let mut runs = Vec::new();
        if !self.has_table("stook_runs")? {
            return Ok(runs);
        }
        let mut statement = self
            .connection
            .prepare(RUN_COLUMNS)
            .map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            runs.push(self.decode_run(row)?);
        }
        Ok(runs)
    }

    fn decode_run(&self, row: &rusqlite::Row<'_>) -> Result<Run, IndexError> {
        let column = |index| row.get_ref(index).map_err(self.fault(READ));
        let number = |index| row.get::<_, i64>(index).map_err(self.fault(READ));
        let id = number(0)?;
        let bad = |why| IndexError::bad_row(&self.path, "stook_runs", RowId(id), why);
        let finished = match column(3)? {
            ValueRef::Null => None,
            text => Some(mtime_of(text).ok_or_else(|| bad(BAD_MTIME))?),
        };
        let last_file = row
            .get::<_, Option<i64>>(5)
            .map_err(self.fault(READ))?
            .map(RowId);
        if finished.is_some() != last_file.is_some() {
            return Err(bad("it is both finished and not"));
        }
        let failed = row
            .get::<_, Option<i64>>(6)
            .map_err(self.fault(READ))?
            .unwrap_or(0);
        Ok(Run {
            id: RunId(id),
            command: String::from_utf8_lossy(bytes(column(1)?).unwrap_or_default()).into_owned(),
            started: mtime_of(column(2)?).ok_or_else(|| bad(BAD_MTIME))?,
            finished,
            first_file: RowId(number(4)?),
            last_file,
            failed: u64::try_from(failed).unwrap_or(0),
        })
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
    /// `Busy`, `ReadOnly` or `Sqlite` if it cannot be written.
    pub fn begin_run(&mut self, command: &str, started: Mtime) -> Result<RunId, IndexError> {
        let transaction = self.begin()?;
        let first = last_row(&transaction, &self.path)? + 1;
        transaction
            .execute(
                "INSERT INTO stook_runs (command, started, first_file) VALUES (?1, ?2, ?3)",
                params![command, started.to_string(), first],
            )
            .map_err(self.fault(WRITE))?;
        let run = RunId(transaction.last_insert_rowid());
        transaction.commit().map_err(self.fault(WRITE))?;
        Ok(run)
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
        let mut insert = self
            .connection
            .prepare(INSERT_DELETION)
            .map_err(self.fault(WRITE))?;
        for name in deleted {
            insert_deletion(&mut insert, run, name).map_err(self.fault(WRITE))?;
        }
        drop(insert);
        transaction.commit().map_err(self.fault(WRITE))
    }

    /// As [`Index::finish_run`], for all names that were known and not looked up, if
    /// `is_deleted` agrees; returns their number.
    ///
    /// # Errors
    /// As [`Index::finish_run`], and `BadRow` if a row makes no sense.
    ///
    /// # Cost
    /// One pass over the rows if anything is unseen; names are not gathered.
    pub fn finish_run_with_unseen(
        &mut self,
        run: RunId,
        finished: Mtime,
        failed: u64,
        known: &Known,
        mut is_deleted: impl FnMut(&[u8]) -> bool,
    ) -> Result<u64, IndexError> {
        let transaction = self.begin()?;
        self.mark_finished(&transaction, run, finished, failed)?;
        let mut insert = self
            .connection
            .prepare(INSERT_DELETION)
            .map_err(self.fault(WRITE))?;
        let mut count = 0;
        let mut outcome = Ok(());
        self.visit_unseen(known, &mut |name| {
            if is_deleted(name) {
                outcome = insert_deletion(&mut insert, run, name);
                count += 1;
            }
            if outcome.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        outcome.map_err(self.fault(WRITE))?;
        drop(insert);
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
        let runs = self.runs()?;
        let position = runs
            .iter()
            .position(|run| run.id == id)
            .ok_or_else(|| self.bad_run(id, "it is unknown"))?;
        Ok(last_row_of(&runs, position))
    }

    /// Shows every deletion up to a run: the name, and the last row it hides.
    pub(crate) fn deletions(
        &self,
        up_to: Option<RunId>,
        visit: &mut dyn FnMut(&[u8], i64),
    ) -> Result<(), IndexError> {
        if !self.has_table("stook_deleted")? {
            return Ok(());
        }
        let query = "SELECT coalesce(raw, stook_deleted.name), last_file FROM stook_deleted
            JOIN stook_runs ON stook_runs.id = run WHERE run <= ?1 AND last_file IS NOT NULL";
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        let up_to = up_to.map_or(i64::MAX, |run| run.0);
        let mut rows = statement.query([up_to]).map_err(self.fault(READ))?;
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            if let Some(name) = bytes(row.get_ref(0).map_err(self.fault(READ))?) {
                visit(name, row.get(1).map_err(self.fault(READ))?);
            }
        }
        Ok(())
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

const INSERT_DELETION: &str = "INSERT INTO stook_deleted VALUES (?1, ?2, ?3)";

fn insert_deletion(insert: &mut Statement<'_>, run: RunId, name: &[u8]) -> rusqlite::Result<()> {
    let stored = escape_name(name);
    let raw = (stored.as_bytes() != name).then_some(name);
    insert.execute(params![run.0, &*stored, raw]).map(|_| ())
}
