//! Choosing rows: the newest of each name as of some state, or all versions.
//!
//! Computing a selection takes 32 bytes for every matching row; the result is a bitmap over row
//! ids, which a second pass turns into rows in the order they were archived.

use std::ops::ControlFlow;

use crate::error::{IndexError, READ};
use crate::id_set::IdSet;
use crate::index::Index;
use crate::name::{NameHash, NameHasher};
use crate::newest::{DeletedNames, Version, keep_newest};
use crate::rows::{COLUMNS, RealNames};
use crate::runs::AsOf;
use crate::types::{RowId, RowRef, RunId};

/// Whether names deleted by then are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// Leave them out: the state of the tree.
    Hide,
    /// Choose the last version there was.
    Show,
}

/// A set of rows.
#[derive(Debug)]
pub struct Selection {
    ids: IdSet,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    hash: NameHash,
    id: i64,
    size: u64,
}

impl Version for Candidate {
    fn hash(&self) -> NameHash {
        self.hash
    }
    fn id(&self) -> i64 {
        self.id
    }
}

impl Selection {
    /// Chooses, of the rows that match, the newest of each name. `matches` sees whole rows, so
    /// that a choice by volume gives the newest version within those volumes.
    ///
    /// # Errors
    /// `BadRun` if the state is of an unknown run, `BadRow` for a row that makes no sense,
    /// `Sqlite` if the file cannot be read.
    ///
    /// # Cost
    /// One pass over the rows; 32 bytes for every matching row, 24 for every deletion.
    pub fn of(
        index: &Index,
        as_of: AsOf,
        deleted: Deleted,
        matches: &dyn Fn(&RowRef<'_>) -> bool,
    ) -> Result<Self, IndexError> {
        let hasher = NameHasher::new();
        let mut candidates = Vec::new();
        index.scan_matching(as_of, matches, &mut |row| {
            candidates.push(Candidate {
                hash: hasher.hash(row.name),
                id: row.id.0,
                size: row.size,
            });
        })?;
        let hidden = match deleted {
            Deleted::Hide => DeletedNames::load(index, last_run(as_of), &hasher)?,
            Deleted::Show => DeletedNames::default(),
        };
        keep_newest(&mut candidates, &hidden);
        let bytes = candidates
            .iter()
            .fold(0, |sum: u64, candidate| sum.saturating_add(candidate.size));
        Ok(Self {
            ids: IdSet::new(candidates.iter().map(|candidate| candidate.id).collect()),
            bytes,
        })
    }

    /// Chooses all rows that match: every version, deleted or not.
    ///
    /// # Errors
    /// As [`Selection::of`].
    ///
    /// # Cost
    /// One pass over the rows; 8 bytes for every matching row.
    pub fn all_versions(
        index: &Index,
        as_of: AsOf,
        matches: &dyn Fn(&RowRef<'_>) -> bool,
    ) -> Result<Self, IndexError> {
        let mut ids = Vec::new();
        let mut bytes = 0_u64;
        index.scan_matching(as_of, matches, &mut |row| {
            ids.push(row.id.0);
            bytes = bytes.saturating_add(row.size);
        })?;
        Ok(Self {
            ids: IdSet::new(ids),
            bytes,
        })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        self.ids.len()
    }

    /// Returns true if nothing was chosen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sum of the rows' sizes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the row was chosen.
    pub fn contains(&self, id: RowId) -> bool {
        self.ids.contains(id.0)
    }
}

fn last_run(as_of: AsOf) -> Option<RunId> {
    match as_of {
        AsOf::Now => None,
        AsOf::Run(run) => Some(run),
    }
}

/// Looking up one row costs about as much as passing over this many.
const SEEK_ROWS: u64 = 16;

impl Index {
    /// Shows the chosen rows to `visit` in the order they were archived, until it breaks off.
    ///
    /// # Errors
    /// As [`Index::rows`].
    ///
    /// # Cost
    /// A pass over the rows between the first and the last chosen one, or one lookup a row where
    /// few are chosen.
    pub fn selected(
        &self,
        selection: &Selection,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let Some((first, last)) = selection.ids.ends() else {
            return Ok(());
        };
        if selection.len().saturating_mul(SEEK_ROWS) < last.abs_diff(first) {
            return self.seek_selected(selection, &mut visit);
        }
        self.scan(
            &format!("{COLUMNS} WHERE id BETWEEN ?1 AND ?2 ORDER BY id"),
            [first, last],
            &mut |row| {
                if selection.contains(row.id) {
                    visit(row)
                } else {
                    ControlFlow::Continue(())
                }
            },
        )
    }

    fn seek_selected(
        &self,
        selection: &Selection,
        visit: &mut dyn FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let mut lookup = self
            .connection
            .prepare(&format!("{COLUMNS} WHERE id = ?1"))
            .map_err(self.fault(READ))?;
        let mut names = RealNames::open(self)?;
        for id in selection.ids.iter() {
            let mut stopped = false;
            self.scan_prepared(&mut lookup, &mut names, [id], &mut |row| {
                let flow = visit(row);
                stopped = flow.is_break();
                flow
            })?;
            if stopped {
                break;
            }
        }
        Ok(())
    }

    fn scan_matching(
        &self,
        as_of: AsOf,
        matches: &dyn Fn(&RowRef<'_>) -> bool,
        take: &mut dyn FnMut(RowRef<'_>),
    ) -> Result<(), IndexError> {
        let last = self.last_row_as_of(as_of)?;
        self.scan(
            &format!("{COLUMNS} WHERE id <= ?1 ORDER BY id"),
            [last],
            &mut |row| {
                if matches(&row) {
                    take(row);
                }
                ControlFlow::Continue(())
            },
        )
    }
}
