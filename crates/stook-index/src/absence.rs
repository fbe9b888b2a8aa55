//! Why names that match are not in a state, and which states have them.
//!
//! ```text
//! run         1     2     3     4          of one name: rows `o`, deletions `x`
//! rows        o           o
//! deletions         x           x
//! there       yes   no    yes   no         as of 4: deleted by 4, and 3 has it; as of 2: deleted by 2, and 1 has it
//! ```
//! For messages only: it looks at every matching row and every matching deletion, and keeps 24 and 32 bytes of each. What
//! cannot be read is passed over; the selection has reported it.

use std::ops::ControlFlow;

use crate::error::IndexError;
use crate::index::Index;
use crate::name::{NameHash, NameHasher};
use crate::runs::last_row_of;
use crate::types::AsOf;
use crate::types::Deletion;
use crate::types::Run;

/// Names that a state does not have, but the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// How many names match.
    pub names: u64,
    /// The last run up to the state that recorded one of them as deleted; None if all of them came later.
    pub deleted_by: Option<Run>,
    /// The nearest state that has any: before this one, or after it if none before has; and how many it has. None if
    /// what was archived was deleted before its run ended.
    pub found_in: Option<(AsOf, u64)>,
}

/// A state: the rows up to one, less what the runs up to one found deleted.
#[derive(Debug, Clone, Copy)]
struct State {
    as_of: AsOf,
    last_row: i64,
    last_run: i64,
}

/// What is on record of the names that match.
#[derive(Default)]
struct Records {
    /// Rows, ascending by hash and id.
    rows: Vec<(NameHash, i64)>,
    /// Run and last hidden row, ascending by hash and run.
    deletions: Vec<(NameHash, i64, i64)>,
}

/// What is on record of one name.
#[derive(Clone, Copy)]
struct History<'r> {
    rows: &'r [(NameHash, i64)],
    deletions: &'r [(NameHash, i64, i64)],
}

impl Index {
    /// Explains why a state has none of the names that match; None if no state has one. The state must have none.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// A pass over rows and deletions; 24 bytes for every matching row, 32 for every matching deletion.
    pub fn absence(
        &self,
        as_of: AsOf,
        matches: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<Absence>, IndexError> {
        let records = self.records(matches)?;
        self.absence_in(as_of, &records)
    }

    /// As [`Index::absence`], of one name.
    ///
    /// # Errors
    /// As [`Index::absence`].
    ///
    /// # Cost
    /// As [`Index::find`].
    pub fn absence_of(&self, as_of: AsOf, name: &[u8]) -> Result<Option<Absence>, IndexError> {
        let Some(found) = self.records_named(name)? else {
            return self.absence(as_of, &|other| other == name);
        };
        // Of one name only, so any hash will do.
        let hash = NameHash(0, 0);
        let mut records = Records {
            rows: found.rows.iter().map(|&row| (hash, row)).collect(),
            deletions: found
                .deletions
                .iter()
                .map(|&(run, last_file)| (hash, run, last_file))
                .collect(),
        };
        records.sort();
        self.absence_in(as_of, &records)
    }

    fn absence_in(&self, as_of: AsOf, records: &Records) -> Result<Option<Absence>, IndexError> {
        let runs = self.readable_runs(|_| {})?;
        let states = states(&runs);
        let Some(here) = states.iter().position(|state| state.as_of == as_of) else {
            return Ok(None);
        };
        let names: Vec<History<'_>> = records.histories().collect();
        if names.is_empty() {
            return Ok(None);
        }
        let last_deleting = names
            .iter()
            .filter_map(|name| name.deleted_by(states[here]))
            .max();
        let deleted_by = |run: &Run| Some(run.id.0) == last_deleting;
        // None of them is in the states from their deletion to this one, nor in those before the first later row.
        let before = states[..here].iter().rev();
        let before = before.filter(|state| Some(state.last_run) < last_deleting);
        let later = names
            .iter()
            .filter_map(|name| name.first_after(states[here]))
            .min();
        let after = states[here + 1..].iter();
        let after = after.filter(|state| later.is_some_and(|first| state.last_row >= first));
        Ok(Some(Absence {
            names: names.len() as u64,
            deleted_by: runs.into_iter().find(deleted_by),
            found_in: before
                .chain(after)
                .find_map(|&state| count_in(&names, state)),
        }))
    }

    fn records(&self, matches: &dyn Fn(&[u8]) -> bool) -> Result<Records, IndexError> {
        let hasher = NameHasher::new();
        let mut records = Records::default();
        self.readable_rows(|row| {
            if matches(row.name) {
                records.rows.push((hasher.hash(row.name), row.id.0));
            }
            ControlFlow::Continue(())
        })?;
        let mut delete = |found: Deletion<'_>| {
            if matches(found.name) {
                let hash = hasher.hash(found.name);
                records.deletions.push((hash, found.run, found.last_file));
            }
        };
        self.deletions(None, &mut delete, &mut |_| {})?;
        records.sort();
        Ok(records)
    }
}

/// Returns the states after each run, oldest first, and then the newest one.
fn states(runs: &[Run]) -> Vec<State> {
    let after_run = |(position, run): (usize, &Run)| State {
        as_of: AsOf::Run(run.id),
        last_row: last_row_of(runs, position),
        last_run: run.id.0,
    };
    let now = State {
        as_of: AsOf::Now,
        last_row: i64::MAX,
        last_run: i64::MAX,
    };
    let after_runs = runs.iter().enumerate().map(after_run);
    after_runs.chain([now]).collect()
}

/// Returns the state and how many of the names it has, if it has any.
fn count_in(names: &[History<'_>], state: State) -> Option<(AsOf, u64)> {
    let count = names.iter().filter(|name| name.is_in(state)).count() as u64;
    (count > 0).then_some((state.as_of, count))
}

impl Records {
    fn sort(&mut self) {
        self.rows.sort_unstable();
        self.deletions.sort_unstable();
    }

    fn histories(&self) -> impl Iterator<Item = History<'_>> {
        let names = self.rows.chunk_by(|a, b| a.0 == b.0);
        names.map(|rows| {
            let hash = rows[0].0;
            let start = self.deletions.partition_point(|deletion| deletion.0 < hash);
            let end = self
                .deletions
                .partition_point(|deletion| deletion.0 <= hash);
            History {
                rows,
                deletions: &self.deletions[start..end],
            }
        })
    }
}

impl History<'_> {
    /// Returns the newest row up to a state, deleted or not.
    fn newest(self, state: State) -> Option<i64> {
        let count = self.rows.partition_point(|row| row.1 <= state.last_row);
        count.checked_sub(1).map(|last| self.rows[last].1)
    }

    fn first_after(self, state: State) -> Option<i64> {
        let count = self.rows.partition_point(|row| row.1 <= state.last_row);
        self.rows.get(count).map(|row| row.1)
    }

    /// Returns the first run that found the newest row deleted.
    fn deleted_by(self, state: State) -> Option<i64> {
        let newest = self.newest(state)?;
        let up_to = self
            .deletions
            .iter()
            .take_while(|deletion| deletion.1 <= state.last_run);
        up_to
            .filter(|deletion| deletion.2 >= newest)
            .map(|deletion| deletion.1)
            .next()
    }

    fn is_in(self, state: State) -> bool {
        self.newest(state).is_some() && self.deleted_by(state).is_none()
    }
}
