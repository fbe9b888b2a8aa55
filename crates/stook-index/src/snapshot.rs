//! One state of an index, read by several connections at once.
//!
//! ```text
//!   ids    1 ......... 65,536 | ......... 131,072 | ... | the rest
//!          connection           connection              connection, each on a worker of the pool
//! ```
//! Decoding rows is work for the processor, and waiting where the file is far away: each task opens the index for itself and
//! reads a range of ids. If another program commits meanwhile, the tasks may have seen different states; then one connection
//! reads all again, in one transaction.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Mutex;

use stook_pool::{Jobs, WorkerPool};

use crate::attributes::AttributesTable;
use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::newest::expected_rows;
use crate::row::Met;
use crate::selection::last_run;
use crate::types::AsOf;
use crate::types::{Deletion, RowId, RowRef};

/// Rows that one task reads; making its connection takes as long as reading a few hundred.
pub(crate) const ROWS_A_TASK: usize = 1 << 16;

/// One state of an index.
#[derive(Debug)]
pub struct Snapshot<'i> {
    index: &'i Index,
    /// `None`: everything is read by the one connection that holds the state.
    jobs: Option<Jobs>,
}

/// What a pass over the rows of a snapshot meets.
#[derive(Debug)]
pub enum Passed<'a> {
    /// A row.
    Row(RowRef<'a>),
    /// A row with a value that makes no sense: its id and name can be relied on, nothing else.
    Damaged(RowRef<'a>, IndexDamage),
    /// Rows without a name that can be read.
    Unreadable(IndexDamage),
}

impl Index {
    /// Has `read` read one state of the index: a second time, in one transaction, if another program commits meanwhile. So it
    /// must tell nobody what it found before it returns.
    ///
    /// # Errors
    /// Those of `read`; `Sqlite` if the index cannot be read.
    pub fn in_one_state<R, E: From<IndexError>>(
        &self,
        jobs: Jobs,
        mut read: impl FnMut(&Snapshot<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let before = self.data_version()?;
        let result = read(&Snapshot {
            index: self,
            jobs: Some(jobs),
        });
        if self.interrupt.is_raised() || self.data_version()? == before {
            return result;
        }
        drop(result);
        let transaction = self.connection.unchecked_transaction();
        let transaction = transaction.map_err(self.fault(READ))?;
        let result = read(&Snapshot {
            index: self,
            jobs: None,
        });
        drop(transaction);
        result
    }
}

impl<'i> Snapshot<'i> {
    /// Returns the connection that everything else of the state is read by.
    pub(crate) fn index(&self) -> &'i Index {
        self.index
    }

    /// Shows the rows of a state to `take`, each range of ids with a part of its own that `new_part` makes for about so many
    /// rows; returns the parts in the order of their ids. Within a part, rows come in the order of their ids.
    ///
    /// # Errors
    /// `BadRun` if the state is of an unknown run, `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// One pass over the rows, in parallel.
    pub fn rows<P: Send>(
        &self,
        as_of: AsOf,
        new_part: impl Fn(usize) -> P + Sync,
        take: impl Fn(&mut P, Passed<'_>) + Sync,
    ) -> Result<Vec<P>, IndexError> {
        let last = self.index.last_row_as_of(as_of)?;
        let mut parts = Vec::new();
        let expected = expected_rows(self.index)?;
        let expected = match self.jobs {
            Some(_) => expected.min(ROWS_A_TASK),
            None => expected,
        };
        let read = |index: &Index, ids| {
            let mut part = new_part(expected);
            index.pass(ids, &mut |met| {
                take(&mut part, passed(met));
                ControlFlow::Continue(())
            })?;
            Ok(part)
        };
        self.ranges(last, read, |number, part| parts.push((number, part)))?;
        parts.sort_unstable_by_key(|(number, _)| *number);
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// Calls `read` for ranges of ids up to `last`, and `finish` with what it returned, in any order.
    pub(crate) fn ranges<P: Send>(
        &self,
        last: i64,
        read: impl Fn(&Index, RangeInclusive<i64>) -> Result<P, IndexError> + Sync,
        mut finish: impl FnMut(usize, P) + Send,
    ) -> Result<(), IndexError> {
        let index = self.index;
        let expected = expected_rows(index)?;
        let jobs = match self.jobs {
            Some(jobs) if expected > ROWS_A_TASK => jobs,
            _ => {
                finish(0, read(index, i64::MIN..=last)?);
                return Ok(());
            }
        };
        let (opener, interrupt) = (index.opener(), &index.interrupt);
        let result = Mutex::new(Ok(finish));
        let is_over = || interrupt.is_raised();
        let tasks = ranges(index.last_row()?, expected / ROWS_A_TASK + 1);
        let tasks = tasks.filter(|(_, ids)| *ids.start() <= last);
        WorkerPool::new("load", jobs)
            .until(&is_over)
            .for_each(tasks, |(number, ids)| {
                let ids = *ids.start()..=last.min(*ids.end());
                let part = opener.open().and_then(|own| read(&own, ids));
                let mut result = stook_sys::lock(&result);
                match (&mut *result, part) {
                    (Ok(finish), Ok(part)) => finish(number, part),
                    (Ok(_), Err(error)) => *result = Err(error),
                    (Err(_), _) => {}
                }
            });
        index.require_going_on()?;
        stook_sys::into_inner(result).map(drop)
    }

    /// Returns the attributes of all members, and which blocks are damaged.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// About 10 bytes a member are read and kept; decoded in parallel.
    pub fn attributes(&self) -> Result<(AttributesTable, Vec<IndexDamage>), IndexError> {
        let loaded = AttributesTable::load(self.index, self.jobs.unwrap_or(Jobs::Fixed(1)))?;
        self.index.require_going_on()?;
        Ok(loaded)
    }

    /// Shows names that are deleted in a state, each with the last row that its deletion hides, and what cannot be read of
    /// deletions to `damaged`.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// One pass over the deletions.
    pub fn deletions(
        &self,
        as_of: AsOf,
        mut visit: impl FnMut(&[u8], RowId),
        mut damaged: impl FnMut(IndexDamage),
    ) -> Result<(), IndexError> {
        let mut show = |deletion: Deletion<'_>| visit(deletion.name, RowId(deletion.last_file));
        self.index
            .deletions(last_run(as_of), &mut show, &mut damaged)
    }
}

fn passed(met: Met<'_>) -> Passed<'_> {
    match (met.damage(), met) {
        (Some(damage), Met::Bad(row, bad)) if bad.column != "id" && bad.column != "name" => {
            Passed::Damaged(row, damage)
        }
        (Some(damage), _) => Passed::Unreadable(damage),
        (None, Met::Row(row) | Met::Bad(row, _)) => Passed::Row(row),
        (None, Met::Unreadable(rows)) => {
            Passed::Unreadable(IndexDamage::unreadable("files", &rows))
        }
    }
}

/// Cuts all ids into ranges of like length between 1 and the last, and numbers them.
fn ranges(last: i64, number: usize) -> impl Iterator<Item = (usize, RangeInclusive<i64>)> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let share = last / number + 1;
    let ranges = (0..number).map(move |task| {
        let first = if task == 0 { i64::MIN } else { task * share };
        let end = if task == number - 1 {
            i64::MAX
        } else {
            (task + 1) * share - 1
        };
        first..=end
    });
    ranges.enumerate()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtime::Mtime;
    use crate::types::Config;

    #[test]
    fn a_state_is_read_again_by_one_connection_if_another_program_commits_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        let config = Config {
            hpss: "none".into(),
            maxsize: 1,
            path: b"/src".into(),
        };
        let mut writer = Index::create(&path, &config).unwrap();
        let index = Index::open_read(&path).unwrap();
        let mut reads = Vec::new();
        let runs = index.in_one_state(Jobs::Fixed(2), |snapshot| {
            if reads.is_empty() {
                writer.begin_run("update", Mtime(0)).unwrap();
            }
            reads.push(snapshot.jobs.is_some());
            snapshot.index.runs()
        });
        assert_eq!((runs.unwrap().len(), &reads[..]), (1, &[true, false][..]));
        reads.clear();
        let again = index.in_one_state(Jobs::Fixed(2), |snapshot| {
            reads.push(snapshot.jobs.is_some());
            snapshot.index.runs()
        });
        assert_eq!((again.unwrap().len(), &reads[..]), (1, &[true][..]));
    }

    #[test]
    fn ranges_hold_every_id_once() {
        for (last, number) in [
            (0, 1),
            (5, 1),
            (5, 3),
            (100, 7),
            (3, 9),
            (i64::MAX / 4, 1000),
        ] {
            let ranges: Vec<_> = ranges(last, number).map(|(_, ids)| ids).collect();
            assert_eq!(ranges.len(), number);
            assert_eq!(*ranges[0].start(), i64::MIN);
            assert_eq!(*ranges[number - 1].end(), i64::MAX);
            assert!(
                ranges
                    .windows(2)
                    .all(|pair| pair[0].end() + 1 == *pair[1].start())
            );
        }
    }
}
