//! All versions of one name, and which run added each.

use std::ops::ControlFlow;

use stook_pool::Jobs;

use super::find::Wanted;
use crate::damage::IndexDamage;
use crate::error::IndexError;
use crate::index::Index;
use crate::row::Met;
use crate::runs::last_row_of;
use crate::types::{Row, Run};

/// A row of a name, deleted since or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The row.
    pub row: Row,
    /// The run that added it; `None` if another program did, or the run cannot be read.
    pub run: Option<Run>,
}

/// What the index has of one name.
#[derive(Debug, Clone, Default)]
pub struct NameVersions {
    /// All rows of the name that can be read, the newest first.
    pub versions: Vec<Version>,
    /// Rows that had to be read one after the other: those that no segment of hashes covers.
    pub scanned: u64,
    /// What cannot be read, and is another version, or may be one.
    pub damages: Vec<IndexDamage>,
}

impl Index {
    /// Returns all versions of a name, those before it was deleted included.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// As [`Index::find`], and a page for each version.
    pub fn versions(&self, name: &[u8]) -> Result<NameVersions, IndexError> {
        self.in_one_state(Jobs::Fixed(1), |_| {
            let mut found = NameVersions::default();
            let rows = self.rows_named(name, i64::MAX, Wanted::All, &mut found.scanned)?;
            let rows = match rows {
                Some(rows) => rows,
                None => self.scan_for_versions(name, &mut found)?,
            };
            // Of a run that cannot be read, the rows have none.
            let runs = self.readable_runs(|_| {})?;
            found.versions = rows
                .into_iter()
                .map(|row| Version {
                    run: run_of(&runs, row.id.0).cloned(),
                    row,
                })
                .collect();
            Ok(found)
        })
    }

    fn scan_for_versions(
        &self,
        name: &[u8],
        found: &mut NameVersions,
    ) -> Result<Vec<Row>, IndexError> {
        let mut rows = Vec::new();
        found.scanned = self.last_readable_row()?.unwrap_or(0).unsigned_abs();
        self.pass(i64::MIN..=i64::MAX, &mut |met| {
            match &met {
                Met::Row(row) if row.name == name => rows.push(row.to_row()),
                Met::Row(_) => {}
                Met::Bad(row, bad) if bad.column != "name" && row.name != name => {}
                Met::Bad(..) | Met::Unreadable(_) => found.damages.extend(met.damage()),
            }
            ControlFlow::Continue(())
        })?;
        rows.reverse();
        Ok(rows)
    }
}

/// Returns the run that added a row. Rows between two runs are those of another program.
fn run_of(runs: &[Run], row: i64) -> Option<&Run> {
    let mut newest_first = runs.iter().enumerate().rev();
    let (position, run) = newest_first.find(|(_, run)| run.first_file.0 <= row)?;
    (row <= last_row_of(runs, position)).then_some(run)
}
