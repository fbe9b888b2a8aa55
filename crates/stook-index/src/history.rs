//! What each run added and deleted, and which rows no run added.

use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::types::Run;

/// Who added rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writer {
    /// A run of stook.
    Run(Run),
    /// Another program, or a run that a `reindex` could not recover.
    Other,
}

/// What a run, or another writer between two runs, did to an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCounts {
    /// Who it was.
    pub writer: Writer,
    /// Rows added, of new names and of new versions.
    pub added: u64,
    /// Names recorded as deleted.
    pub deleted: u64,
}

impl Index {
    /// Returns what each run did, oldest first, and between them the rows that belong to no run. Shows runs that cannot be
    /// read to `damaged`; what they added counts as that of no run.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    ///
    /// # Cost
    /// One pass over the deletions. Rows are counted by their ids, which ascend by one; where another program has
    /// removed rows, the number is too great.
    pub fn run_counts(
        &self,
        damaged: impl FnMut(IndexDamage),
    ) -> Result<Vec<RunCounts>, IndexError> {
        let deleted = self.deletions_of_runs()?;
        let last_row = self.last_row()?;
        let mut counts = Vec::new();
        let mut next_row = 1;
        let runs = self.readable_runs(damaged)?;
        for (position, run) in runs.iter().enumerate() {
            counts.extend(other(next_row, run.first_file.0));
            let next_run = runs.get(position + 1).map(|next| next.first_file.0);
            let end = match (run.last_file, next_run) {
                (Some(last), _) => last.0.saturating_add(1),
                (None, Some(next)) => next,
                (None, None) => last_row.saturating_add(1),
            };
            let number = deleted.binary_search_by_key(&run.id.0, |deleted| deleted.0);
            counts.push(RunCounts {
                writer: Writer::Run(run.clone()),
                added: row_count(run.first_file.0, end),
                deleted: number.map_or(0, |index| deleted[index].1),
            });
            next_row = next_row.max(end);
        }
        counts.extend(other(next_row, last_row.saturating_add(1)));
        Ok(counts)
    }

    /// Returns the number of deletions of each run that has any, ascending by run.
    fn deletions_of_runs(&self) -> Result<Vec<(i64, u64)>, IndexError> {
        if !self.has_table("stook_deleted")? {
            return Ok(Vec::new());
        }
        let query = "SELECT run, count(*) FROM stook_deleted WHERE run IS NOT NULL GROUP BY run ORDER BY run";
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        let mut deleted = Vec::new();
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let number = |column| row.get::<_, i64>(column).map_err(self.fault(READ));
            deleted.push((number(0)?, number(1)?.unsigned_abs()));
        }
        Ok(deleted)
    }
}

fn other(first: i64, end: i64) -> Option<RunCounts> {
    let added = row_count(first, end);
    (added > 0).then_some(RunCounts {
        writer: Writer::Other,
        added,
        deleted: 0,
    })
}

fn row_count(first: i64, end: i64) -> u64 {
    u64::try_from(end.saturating_sub(first)).unwrap_or(0)
}
