//! One name: its newest row, or all that is on record of it.

use std::ops::ControlFlow;

use super::{NameSegments, Source, hash_of};
use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::row::{Met, RealNames};
use crate::rows::{COLUMNS, RANGE};
use crate::selection::{Deleted, Selection, last_run};
use crate::types::AsOf;
use crate::types::Deletion;
use crate::types::Row;

/// What the index says of one name.
#[derive(Debug, Clone)]
pub struct NameLookup {
    /// The newest row of the name, unless the name was deleted by then.
    pub row: Option<Row>,
    /// Rows that had to be read one after the other: those that no segment of hashes covers.
    pub scanned: u64,
    /// What cannot be read, and may be, or may have deleted, a newer version.
    pub damage: Option<IndexDamage>,
}

/// Which rows of a name are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Newest,
    All,
}

/// What is on record of one name.
#[derive(Debug, Default)]
pub(crate) struct NameRecords {
    /// Ids of its rows, the newest first.
    pub(crate) rows: Vec<i64>,
    /// Its deletions: the run, and the last row that it hides.
    pub(crate) deletions: Vec<(i64, i64)>,
}

impl Index {
    /// Returns the newest row of a name as of a state, unless the name had been deleted by then.
    ///
    /// # Errors
    /// `BadRun` if the state is of an unknown run, `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// A few pages for each segment of hashes, and a pass over the rows that were added behind them, by another program
    /// than stook or by an older one. If the segments do not fit the rows, or what they lead to cannot be read: a pass
    /// over all rows and deletions.
    pub fn find(&self, name: &[u8], as_of: AsOf) -> Result<NameLookup, IndexError> {
        let last_row = self.last_row_as_of(as_of)?;
        let mut scanned = 0;
        let Some(rows) = self.rows_named(name, last_row, Wanted::Newest, &mut scanned)? else {
            return self.find_by_scan(name, as_of);
        };
        let Some(row) = rows.into_iter().next() else {
            return Ok(NameLookup {
                row: None,
                scanned,
                damage: None,
            });
        };
        let Some(deletions) = self.deletions_named(name, &mut scanned)? else {
            return self.find_by_scan(name, as_of);
        };
        let last_run = last_run(as_of).map_or(i64::MAX, |run| run.0);
        let is_deleted = deletions
            .iter()
            .any(|&(run, last_file)| run <= last_run && last_file >= row.id.0);
        Ok(NameLookup {
            row: (!is_deleted).then_some(row),
            scanned,
            damage: None,
        })
    }

    /// Returns true if there are segments of hashes, and they can be used: then most names are found without a scan.
    ///
    /// # Errors
    /// As [`Index::find`].
    pub fn has_name_segments(&self) -> Result<bool, IndexError> {
        let segments = NameSegments::load(self, Source::Files)?;
        Ok(segments.is_ok_and(|segments| segments.covered().is_some()))
    }

    /// Returns what is on record of a name; `None` if that takes a scan.
    pub(crate) fn records_named(&self, name: &[u8]) -> Result<Option<NameRecords>, IndexError> {
        let mut scanned = 0;
        let rows = self.rows_named(name, i64::MAX, Wanted::All, &mut scanned)?;
        let deletions = self.deletions_named(name, &mut scanned)?;
        Ok(rows.zip(deletions).map(|(rows, deletions)| NameRecords {
            rows: rows.iter().map(|row| row.id.0).collect(),
            deletions,
        }))
    }

    fn find_by_scan(&self, name: &[u8], as_of: AsOf) -> Result<NameLookup, IndexError> {
        let selection = Selection::of(self, as_of, Deleted::Hide, &|row| row.name == name)?;
        let mut found: Option<Row> = None;
        self.selected(&selection, |row| {
            found = Some(row.to_row());
            ControlFlow::Break(())
        })?;
        let may_be_newer = |damage: &IndexDamage| {
            let rows = damage.rows.as_ref();
            rows.is_none_or(|rows| found.as_ref().is_none_or(|row| *rows.end() > row.id.0))
        };
        let mut damage = None;
        self.selection_damages(&selection, |met| {
            if damage.is_none() && may_be_newer(&met) {
                damage = Some(met);
            }
        })?;
        Ok(NameLookup {
            row: found,
            scanned: self.last_readable_row()?.unwrap_or(0).unsigned_abs(),
            damage,
        })
    }

    /// Returns the rows of a name up to one, the newest first; `None` if that takes a scan of all rows.
    pub(super) fn rows_named(
        &self,
        name: &[u8],
        last_row: i64,
        wanted: Wanted,
        scanned: &mut u64,
    ) -> Result<Option<Vec<Row>>, IndexError> {
        let Ok(segments) = NameSegments::load(self, Source::Files)? else {
            return Ok(None);
        };
        let first = segments
            .covered()
            .map_or(i64::MIN, |covered| covered.saturating_add(1));
        let mut rows = Vec::new();
        let mut is_sound = true;
        self.pass(first..=last_row, &mut |met| {
            *scanned += 1;
            take_named(&met, name, &mut rows, &mut is_sound)
        })?;
        rows.reverse();
        if !is_sound {
            return Ok(None);
        }
        if wanted == Wanted::Newest && !rows.is_empty() {
            return Ok(Some(rows));
        }
        let Some(candidates) = segments.rows_with(self, hash_of(name), last_row)? else {
            return Ok(None);
        };
        let query = format!("{COLUMNS} {RANGE}");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        let mut names = RealNames::open(self)?;
        for id in candidates {
            self.pass_prepared(&mut statement, &mut names, id..=id, &mut |met| {
                take_named(&met, name, &mut rows, &mut is_sound)
            })?;
            if !is_sound {
                return Ok(None);
            }
            if wanted == Wanted::Newest && !rows.is_empty() {
                break;
            }
        }
        Ok(Some(rows))
    }

    /// Returns the deletions of a name, each the run and the last row that it hides; `None` if they cannot all be read.
    fn deletions_named(
        &self,
        name: &[u8],
        scanned: &mut u64,
    ) -> Result<Option<Vec<(i64, i64)>>, IndexError> {
        if !self.has_table("stook_deleted")? {
            return Ok(Some(Vec::new()));
        }
        let segments = NameSegments::load(self, Source::Deleted)?.ok();
        let Some(candidates) = (match &segments {
            Some(segments) => segments.rows_with(self, hash_of(name), i64::MAX)?,
            None => None,
        }) else {
            return Ok(None);
        };
        let first = segments
            .and_then(|segments| segments.covered())
            .map_or(i64::MIN, |covered| covered.saturating_add(1));
        let mut deletions = Vec::new();
        let mut is_sound = true;
        let ranges = candidates.into_iter().map(|row| row..=row);
        for rows in ranges.chain([first..=i64::MAX]) {
            let is_tail = *rows.end() == i64::MAX;
            let mut visit = |deletion: Deletion<'_>| {
                *scanned += u64::from(is_tail);
                if deletion.name == name {
                    deletions.push((deletion.run, deletion.last_file));
                }
            };
            self.deletions_in(rows, None, &mut visit, &mut |_| is_sound = false)?;
        }
        Ok(is_sound.then_some(deletions))
    }
}

/// Takes the row if it has the name; notes if it cannot be told, or is invalid.
fn take_named(
    met: &Met<'_>,
    name: &[u8],
    rows: &mut Vec<Row>,
    is_sound: &mut bool,
) -> ControlFlow<()> {
    match met {
        Met::Row(row) if row.name == name => rows.push(row.to_row()),
        Met::Row(_) => {}
        Met::Bad(row, bad) if bad.column != "name" && row.name != name => {}
        Met::Bad(..) | Met::Unreadable(_) => {
            *is_sound = false;
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}
