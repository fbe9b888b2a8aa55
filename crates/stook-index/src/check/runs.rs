//! The runs: their rows, and where each begins and ends.

use rusqlite::OptionalExtension;
use rusqlite::types::ValueRef;

use super::{Check, strict_time, text};
use crate::damage::{IndexDamage, IndexFault};
use crate::error::{IndexError, READ};
use crate::row::volume_of;
use crate::runs::{BAD_FINISHED, BAD_STARTED};
use crate::scan::is_unreadable;
use crate::types::{Run, VolumeId};

const TABLE: &str = "stook_runs";

/// A row of `files` next to the end of a run.
enum Neighbour {
    Is(i64, Option<VolumeId>),
    None,
    /// It lies where nothing can be read.
    Unknown,
}

impl Check<'_> {
    /// Returns the runs that can be read.
    pub(super) fn runs(&mut self) -> Result<Vec<Run>, IndexError> {
        let index = self.index;
        let mut runs: Vec<Run> = Vec::new();
        let mut expected_id = 1;
        let mut rows_before = 0;
        let columns = "id, command, started, finished, first_file, last_file, failed";
        self.each(TABLE, columns, |check, id, row| {
            if id != expected_id {
                let what = "the numbers of runs do not follow each other from 1";
                check.tell(IndexDamage::value(TABLE, id, "id", what));
            }
            expected_id = id.saturating_add(1);
            let run = match index.decode_run(id, row)? {
                Ok(run) => run,
                Err(bad) => {
                    check.bad_value(TABLE, id, bad);
                    return Ok(());
                }
            };
            check.run_row(row, &run)?;
            let last = run.last_file.map(|last| last.0);
            let first = run.first_file.0;
            if first <= rows_before || last.is_some_and(|last| last < first - 1) {
                let what = "its rows are not behind those of the run before";
                check.tell(IndexDamage::value(TABLE, id, "first_file", what));
            }
            rows_before = last.unwrap_or(first.saturating_sub(1)).max(rows_before);
            runs.push(run);
            Ok(())
        })?;
        Ok(runs)
    }

    fn run_row(&mut self, row: &rusqlite::Row<'_>, run: &Run) -> Result<(), IndexError> {
        let column = |index| row.get_ref(index).map_err(self.index.fault(READ));
        let finished = column(3)?;
        let is_count = match column(6)? {
            ValueRef::Null => run.finished.is_none(),
            ValueRef::Integer(failed) => run.finished.is_some() && failed >= 0,
            _ => false,
        };
        let is_command = matches!(text(column(1)?), Some("create" | "update"));
        let values = [
            (
                "command",
                (!is_command).then_some("its command is neither `create` nor `update`"),
            ),
            (
                "started",
                strict_time(column(2)?).is_none().then_some(BAD_STARTED),
            ),
            (
                "finished",
                (finished != ValueRef::Null && strict_time(finished).is_none())
                    .then_some(BAD_FINISHED),
            ),
            (
                "failed",
                (!is_count).then_some("its number of failures is invalid"),
            ),
        ];
        for (column, why) in values {
            if let Some(why) = why {
                self.tell(IndexDamage::value(TABLE, run.id.0, column, why));
            }
        }
        Ok(())
    }

    /// A run writes whole volumes: where one begins or ends, a volume does.
    pub(super) fn run_ends(&mut self, runs: &[Run]) -> Result<(), IndexError> {
        for run in runs {
            let first = run.first_file.0;
            self.run_end(run, "first_file", first.saturating_sub(1))?;
            if let Some(last) = run.last_file {
                self.run_end(run, "last_file", last.0)?;
            }
        }
        Ok(())
    }

    fn run_end(&mut self, run: &Run, column: &'static str, last: i64) -> Result<(), IndexError> {
        let before = self.neighbour("id <= ?1 ORDER BY id DESC", last)?;
        let behind = self.neighbour("id > ?1 ORDER BY id", last)?;
        let what = match (before, behind) {
            (Neighbour::Is(id, _), _) if id != last && last != 0 => Some("is missing from `files`"),
            (Neighbour::None, _) if last != 0 => Some("is missing from `files`"),
            (Neighbour::Is(_, Some(before)), Neighbour::Is(_, Some(behind)))
                if before == behind =>
            {
                Some("is in the middle of a volume")
            }
            _ => None,
        };
        if let Some(what) = what.filter(|_| !self.has_unknown_rows) {
            let subject = match column {
                "first_file" => "the row before its first_file",
                _ => "its last_file",
            };
            let what = IndexFault::RunRange { subject, what };
            self.tell(IndexDamage::value(TABLE, run.id.0, column, what));
        }
        Ok(())
    }

    fn neighbour(&self, condition: &str, id: i64) -> Result<Neighbour, IndexError> {
        let query = format!("SELECT id, tar FROM files WHERE {condition} LIMIT 1");
        let found = self.index.connection.query_row(&query, [id], |row| {
            Ok(Neighbour::Is(row.get(0)?, volume_of(row.get_ref(1)?)))
        });
        match found.optional() {
            Ok(found) => Ok(found.unwrap_or(Neighbour::None)),
            Err(error) if is_unreadable(&error) => Ok(Neighbour::Unknown),
            Err(error) => Err(self.index.fault(READ)(error)),
        }
    }
}
