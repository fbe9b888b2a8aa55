//! Choosing rows: the newest of each name as of some state, or all versions.
//!
//! Computing a selection takes 32 bytes for every matching row; the result is a bitmap over row
//! ids, which a second pass turns into rows in the order they were archived.
//!
//! A row with an invalid value takes part by its name: where it is the newest, its name
//! has no row, and never an older one.

use std::ops::ControlFlow;

use stook_pool::Jobs;

use crate::damage::{IndexDamage, IndexFault, UnreadableRows};
use crate::error::{IndexError, READ};
use crate::id_set::IdSet;
use crate::index::Index;
use crate::name::{NameHash, NameHasher};
use crate::newest::{DeletedNames, Version, keep_newest};
use crate::row::{Met, RealNames};
use crate::rows::{COLUMNS, RANGE};
use crate::types::AsOf;
use crate::types::{Row, RowId, RowRef, RunId};

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
    damaged: Damaged,
}

/// What would be chosen, or might be, and cannot be read.
#[derive(Debug, Default)]
struct Damaged {
    /// Rows with an invalid value.
    ids: IdSet,
    /// Of these, how many have no name that can be read.
    nameless: u64,
    unreadable: Vec<UnreadableRows>,
    /// Deletions that cannot be read.
    deletions: Vec<IndexDamage>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    hash: NameHash,
    id: i64,
    /// Sizes in SQLite have 63 bits.
    size: u64,
}

/// Instead of a size: the row has an invalid value.
const BAD: u64 = u64::MAX;

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
    /// A row that cannot be read shows its name to `matches`, and nothing or zero for the rest.
    ///
    /// # Errors
    /// `BadRun` if the state is of an unknown run, `Sqlite` if the file cannot be read for another reason
    /// than damage.
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
        let mut damaged = Damaged::default();
        let nameless = index.scan_matching(as_of, matches, &mut damaged, &mut |row, is_bad| {
            candidates.push(Candidate {
                hash: hasher.hash(row.name),
                id: row.id.0,
                size: if is_bad { BAD } else { row.size },
            });
        })?;
        let hidden = match deleted {
            Deleted::Hide => {
                let mut note = |damage| damaged.deletions.push(damage);
                DeletedNames::load(index, last_run(as_of), &hasher, &mut note)?
            }
            Deleted::Show => DeletedNames::default(),
        };
        keep_newest(&mut candidates, &hidden, Jobs::default(), index)?;
        let mut bad = nameless;
        candidates.retain(|candidate| {
            let is_bad = candidate.size == BAD;
            bad.extend(is_bad.then_some(candidate.id));
            !is_bad
        });
        let bytes = candidates
            .iter()
            .fold(0, |sum: u64, candidate| sum.saturating_add(candidate.size));
        damaged.ids = IdSet::new(bad);
        Ok(Self {
            ids: IdSet::new(candidates.iter().map(|candidate| candidate.id).collect()),
            bytes,
            damaged,
        })
    }

    /// Chooses these rows.
    pub fn of_rows(rows: &[Row]) -> Self {
        let ids = IdSet::new(rows.iter().map(|row| row.id.0).collect());
        let mut chosen: Vec<&Row> = rows.iter().collect();
        chosen.sort_unstable_by_key(|row| row.id);
        chosen.dedup_by_key(|row| row.id);
        Self {
            ids,
            bytes: chosen
                .iter()
                .fold(0, |sum: u64, row| sum.saturating_add(row.size)),
            damaged: Damaged::default(),
        }
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
        let (mut ids, mut bad) = (Vec::new(), Vec::new());
        let mut bytes = 0_u64;
        let mut damaged = Damaged::default();
        let nameless = index.scan_matching(as_of, matches, &mut damaged, &mut |row, is_bad| {
            if is_bad {
                bad.push(row.id.0);
            } else {
                ids.push(row.id.0);
                bytes = bytes.saturating_add(row.size);
            }
        })?;
        bad.extend(nameless);
        damaged.ids = IdSet::new(bad);
        Ok(Self {
            ids: IdSet::new(ids),
            bytes,
            damaged,
        })
    }

    /// Returns true if there are rows whose names cannot be read: any name may be among them.
    pub fn has_unknown_names(&self) -> bool {
        self.damaged.nameless > 0 || !self.damaged.unreadable.is_empty()
    }

    /// Returns true if anything that matches, or might match, cannot be read.
    pub fn is_damaged(&self) -> bool {
        let damaged = &self.damaged;
        damaged.ids.len() > 0 || !damaged.unreadable.is_empty() || !damaged.deletions.is_empty()
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

pub(crate) fn last_run(as_of: AsOf) -> Option<RunId> {
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
    /// `Sqlite` if the file cannot be read, `Damaged` if a row that was chosen no longer can be.
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
        let (mut shown, mut is_stopped) = (0, false);
        let mut show = |row: RowRef<'_>| {
            shown += 1;
            let flow = visit(row);
            is_stopped |= flow.is_break();
            flow
        };
        if selection.len().saturating_mul(SEEK_ROWS) < last.abs_diff(first) {
            self.seek(&selection.ids, &mut |met| match met {
                Met::Row(row) => show(row),
                Met::Bad(..) | Met::Unreadable(_) => ControlFlow::Continue(()),
            })?;
        } else {
            self.pass(first..=last, &mut |met| match met {
                Met::Row(row) if selection.contains(row.id) => show(row),
                _ => ControlFlow::Continue(()),
            })?;
        }
        if is_stopped || shown == selection.len() {
            return Ok(());
        }
        let missing = selection.len() - shown;
        let damage = IndexDamage::table("files", IndexFault::RowsGone(missing));
        Err(IndexError::damaged(&self.path, &damage))
    }

    /// Shows what would be in the selection, or might be, and cannot be read.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    pub fn selection_damages(
        &self,
        selection: &Selection,
        mut damaged: impl FnMut(IndexDamage),
    ) -> Result<(), IndexError> {
        let Damaged {
            ids,
            unreadable,
            deletions,
            ..
        } = &selection.damaged;
        self.seek(ids, &mut |met| {
            met.damage().into_iter().for_each(&mut damaged);
            ControlFlow::Continue(())
        })?;
        for rows in unreadable {
            damaged(IndexDamage::unreadable("files", rows));
        }
        deletions.iter().cloned().for_each(damaged);
        Ok(())
    }

    fn seek(
        &self,
        ids: &IdSet,
        visit: &mut impl FnMut(Met<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let query = format!("{COLUMNS} {RANGE}");
        let mut lookup = self.connection.prepare(&query).map_err(self.fault(READ))?;
        let mut names = RealNames::open(self)?;
        let mut flow = ControlFlow::Continue(());
        for id in ids.iter() {
            self.pass_prepared(&mut lookup, &mut names, id..=id, &mut |met| {
                flow = visit(met);
                flow
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Shows rows that match to `take`, with whether they have a bad value; returns those without a name.
    fn scan_matching(
        &self,
        as_of: AsOf,
        matches: &dyn Fn(&RowRef<'_>) -> bool,
        damaged: &mut Damaged,
        take: &mut dyn FnMut(RowRef<'_>, bool),
    ) -> Result<Vec<i64>, IndexError> {
        let last = self.last_row_as_of(as_of)?;
        let mut nameless = Vec::new();
        self.pass(i64::MIN..=last, &mut |met| {
            match met {
                Met::Row(row) if matches(&row) => take(row, false),
                Met::Bad(row, bad) if bad.column == "name" => nameless.push(row.id.0),
                Met::Bad(row, _) if matches(&row) => take(row, true),
                Met::Row(_) | Met::Bad(..) => {}
                Met::Unreadable(rows) => damaged.unreadable.push(rows),
            }
            ControlFlow::Continue(())
        })?;
        damaged.nameless = nameless.len() as u64;
        Ok(nameless)
    }
}
