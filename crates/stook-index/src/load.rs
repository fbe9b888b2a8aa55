//! Reading all rows into records of 40 bytes.
//!
//! Decoding rows is work for the processor, and waiting where the file is far away: several connections
//! read a part each. If another program commits meanwhile, they may have seen different states, and
//! one connection reads all again.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::{Mutex, PoisonError};

use stook_pool::{Crew, Jobs};

use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::mtime::Mtime;
use crate::name::{NameHash, NameHasher};
use crate::newest::{Version, expected_rows};
use crate::rows::{BAD_MTIME, FIRST_STAGED_ID, RealNames, bytes, mtime_of, unsigned};
use crate::staging::Staging;
use crate::types::RowId;

/// A row without its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) hash: NameHash,
    pub(crate) id: i64,
    /// The top bit says that there is an MD5: sizes in SQLite have 63 bits.
    pub(crate) size_and_kind: u64,
    pub(crate) mtime: Mtime,
}

const _: () = assert!(size_of::<Record>() == 40);

const FILE_BIT: u64 = 1 << 63;

impl Record {
    fn size_and_kind(size: u64, is_file: bool) -> u64 {
        size & !FILE_BIT | if is_file { FILE_BIT } else { 0 }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size_and_kind & !FILE_BIT
    }

    pub(crate) fn is_file(&self) -> bool {
        self.size_and_kind & FILE_BIT != 0
    }

    pub(crate) fn is_staged(&self) -> bool {
        self.id >= FIRST_STAGED_ID
    }
}

impl Version for Record {
    fn hash(&self) -> NameHash {
        self.hash
    }
    fn id(&self) -> i64 {
        self.id
    }
}

/// Rows that one task reads; making its connection takes as long as reading a few hundred.
const ROWS_A_TASK: usize = 1 << 16;

/// Reads the rows of all volumes, in any order.
pub(crate) fn load_stored(
    index: &Index,
    hasher: &NameHasher,
    jobs: Jobs,
) -> Result<Vec<Record>, IndexError> {
    let expected = expected_rows(index)?;
    let mut records = Vec::with_capacity(expected);
    if expected > ROWS_A_TASK {
        let version = index.data_version()?;
        load_in_parallel(
            index,
            hasher,
            jobs,
            expected / ROWS_A_TASK + 1,
            &mut records,
        )?;
        if index.data_version()? == version {
            return Ok(records);
        }
        records.clear();
    }
    load_range(index, hasher, i64::MIN..=i64::MAX, &mut records)?;
    Ok(records)
}

fn load_in_parallel(
    index: &Index,
    hasher: &NameHasher,
    jobs: Jobs,
    tasks: usize,
    records: &mut Vec<Record>,
) -> Result<(), IndexError> {
    let (path, interrupt) = (index.path(), index.interrupt.clone());
    let result = Mutex::new(Ok(records));
    Crew::new("load", jobs).for_each(ranges(index.last_row()?, tasks), |range| {
        let mut part = Vec::with_capacity(ROWS_A_TASK);
        let loaded = Index::open_read_until(path, &interrupt)
            .and_then(|own| load_range(&own, hasher, range, &mut part));
        let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *result, loaded) {
            (Ok(records), Ok(())) => records.append(&mut part),
            (Ok(_), Err(error)) => *result = Err(error),
            (Err(_), _) => {}
        }
    });
    result
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .map(|_| ())
}

/// Cuts all ids into ranges of like length between 1 and the last.
fn ranges(last: i64, number: usize) -> impl Iterator<Item = RangeInclusive<i64>> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let share = last / number + 1;
    (0..number).map(move |task| {
        let first = if task == 0 { i64::MIN } else { task * share };
        let end = if task == number - 1 {
            i64::MAX
        } else {
            (task + 1) * share - 1
        };
        first..=end
    })
}

fn load_range(
    index: &Index,
    hasher: &NameHasher,
    ids: RangeInclusive<i64>,
    records: &mut Vec<Record>,
) -> Result<(), IndexError> {
    let mut names = RealNames::open(index)?;
    let query =
        "SELECT id, name, size, mtime, md5 IS NOT NULL FROM files WHERE id BETWEEN ?1 AND ?2";
    let mut statement = index.connection.prepare(query).map_err(index.fault(READ))?;
    let mut rows = statement
        .query([ids.start(), ids.end()])
        .map_err(index.fault(READ))?;
    while let Some(row) = rows.next().map_err(index.fault(READ))? {
        let column = |number| row.get_ref(number).map_err(index.fault(READ));
        let id: i64 = row.get(0).map_err(index.fault(READ))?;
        let bad = |why| IndexError::bad_row(&index.path, "files", RowId(id), why);
        if id >= FIRST_STAGED_ID {
            return Err(bad("its id is out of range"));
        }
        let stored = bytes(column(1)?).ok_or_else(|| bad("it has no name"))?;
        let size = unsigned(column(2)?).ok_or_else(|| bad("its size is not a number of bytes"))?;
        let mtime = mtime_of(column(3)?).ok_or_else(|| bad(BAD_MTIME))?;
        let hash = hasher.hash(names.of(RowId(id), stored)?);
        let is_file: bool = row.get(4).map_err(index.fault(READ))?;
        records.push(Record {
            hash,
            id,
            size_and_kind: Record::size_and_kind(size, is_file),
            mtime,
        });
    }
    Ok(())
}

/// Returns the next free id.
pub(crate) fn load_staged(
    staging: &Staging,
    hasher: &NameHasher,
    mut id: i64,
    records: &mut Vec<Record>,
) -> Result<i64, IndexError> {
    staging.rows(|row| {
        records.push(Record {
            hash: hasher.hash(row.name),
            id,
            size_and_kind: Record::size_and_kind(row.size, row.md5.is_some()),
            mtime: row.mtime,
        });
        id += 1;
        ControlFlow::Continue(())
    })?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let ranges: Vec<_> = ranges(last, number).collect();
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
