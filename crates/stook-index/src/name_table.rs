//! What the archive holds now, in 40 bytes a name, to compare a tree with.
//!
//! One pass over the rows fills a table sorted by the hash of the name; names are not kept. The hash
//! begins with that of the directory: a walk looks up one directory after the other, and finds the
//! names of each in neighbouring cache lines. Many threads look names up at once, and each lookup
//! marks its record, so that what was never looked up is what the tree has lost.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_pool::Jobs;

use crate::attributes::{MetadataDictionary, RecordedMetadata};
use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::id_set::IdSet;
use crate::index::Index;
use crate::load::{Loaded, Loader, Record, load_staged, load_stored};
use crate::mtime::Mtime;
use crate::name::{NameHash, NameHasher};
use crate::newest::{DeletedNames, keep_newest};
use crate::released::Released;
use crate::row::{RealNames, bytes};
use crate::rows::{FIRST_STAGED_ID, RANGE};
use crate::scan::{Step, scan_ids};
use crate::snapshot::Snapshot;
use crate::staging::Staging;
use crate::types::RowId;

/// The newest live row of every name. A name that was released from the tree counts as visited: that it is not found there
/// does not make it deleted.
#[derive(Debug)]
pub struct NameTable {
    hasher: NameHasher,
    table: Table,
    visited: Vec<AtomicU64>,
    released: Released,
    /// The greatest row id when the table was made.
    last_row: i64,
    /// Sizes too large for a record, ascending by row id.
    large_sizes: Vec<(i64, u64)>,
    /// What the metadata numbers of records stand for.
    recorded: Vec<RecordedMetadata>,
    damages: Vec<IndexDamage>,
}

/// Records in order of their hash, cut into buckets by its first bits: a lookup reads one bucket,
/// which is a few neighbouring directories. Costs a quarter of a byte a record.
#[derive(Debug)]
struct Table {
    /// Ascending by hash; one record a name.
    records: Vec<Record>,
    /// Where each bucket starts, and the end of the last.
    starts: Vec<usize>,
}

impl Table {
    const BUCKET_RECORDS: usize = 32;

    fn new(records: Vec<Record>) -> Self {
        let mut starts = vec![0; records.len() / Self::BUCKET_RECORDS + 2];
        for record in &records {
            let bucket = Self::bucket(&starts, record.hash);
            starts[bucket + 1] += 1;
        }
        for bucket in 1..starts.len() {
            starts[bucket] += starts[bucket - 1];
        }
        Self { records, starts }
    }

    fn find(&self, hash: NameHash) -> Option<usize> {
        let bucket = Self::bucket(&self.starts, hash);
        let start = self.starts[bucket];
        let records = &self.records[start..self.starts[bucket + 1]];
        records
            .binary_search_by_key(&hash, |record| record.hash)
            .ok()
            .map(|index| start + index)
    }

    /// Scales the hash to the number of buckets.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the product's upper half is less than the number of buckets"
    )]
    fn bucket(starts: &[usize], hash: NameHash) -> usize {
        ((u128::from(hash.0) * (starts.len() - 1) as u128) >> 64) as usize
    }
}

/// What the index has, all of one state: a deletion of another one would hide the wrong rows.
struct StoredState {
    loaded: Loaded,
    deleted: DeletedNames,
    released: Released,
    last_row: i64,
}

impl StoredState {
    fn read(snapshot: &Snapshot<'_>, loader: Loader<'_>) -> Result<Self, IndexError> {
        let mut loaded = load_stored(snapshot, loader)?;
        let index = snapshot.index();
        let damages = &mut loaded.damages;
        let mut damaged = |damage| damages.push(damage);
        Ok(Self {
            deleted: DeletedNames::load(index, None, loader.hasher, &mut damaged)?,
            released: Released::load(index, loader.hasher)?,
            last_row: index.last_readable_row()?.unwrap_or(FIRST_STAGED_ID - 1),
            loaded,
        })
    }
}

/// The newest row of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewestRow {
    /// Its row; `None` while it is staged for a volume that is not complete.
    pub id: Option<RowId>,
    /// Bytes of data.
    pub size: u64,
    /// Its modification time.
    pub mtime: Mtime,
    /// True if it has an MD5: it is a regular file, not a link, directory or device.
    pub is_file: bool,
    /// Which of [`NameTable::recorded`] is its type, mode and owner; `None` if they were not asked for, or the index has no
    /// attributes of the member.
    pub recorded: Option<usize>,
    /// False if a value of the row makes no sense: then nothing else here can be relied on.
    pub is_readable: bool,
}

impl NameTable {
    /// Reads the current state of the archive, and the rows of interrupted volumes on top, in their order.
    /// A row with a value that makes no sense is found by its name; one without a name that can be read is
    /// not: [`NameTable::damages`] has it.
    ///
    /// # Errors
    /// `Sqlite` if a file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// One pass over the rows and a sort, in parallel; 40 bytes for every row, superseded ones included, while it runs.
    pub fn load<'s>(
        index: &Index,
        stagings: impl IntoIterator<Item = &'s Staging>,
        jobs: Jobs,
    ) -> Result<Self, IndexError> {
        Self::load_as(index, stagings, jobs, None)
    }

    /// As [`NameTable::load`], with type, mode and owner of all members whose attributes are in the index.
    ///
    /// # Errors
    /// As [`NameTable::load`].
    ///
    /// # Cost
    /// As [`NameTable::load`], and all attributes, about 10 bytes a member, are decoded. No more memory for a name.
    pub fn load_with_metadata<'s>(
        index: &Index,
        stagings: impl IntoIterator<Item = &'s Staging>,
        jobs: Jobs,
    ) -> Result<Self, IndexError> {
        Self::load_as(index, stagings, jobs, Some(MetadataDictionary::default()))
    }

    fn load_as<'s>(
        index: &Index,
        stagings: impl IntoIterator<Item = &'s Staging>,
        jobs: Jobs,
        dictionary: Option<MetadataDictionary>,
    ) -> Result<Self, IndexError> {
        let hasher = NameHasher::new();
        let loader = Loader {
            hasher: &hasher,
            metadata: dictionary.as_ref(),
        };
        let StoredState {
            mut loaded,
            deleted,
            released,
            last_row,
        } = index.in_one_state(jobs, |snapshot| StoredState::read(snapshot, loader))?;
        let mut id = FIRST_STAGED_ID;
        for staging in stagings {
            id = load_staged(staging, loader, id, &mut loaded)?;
        }
        let (mut records, mut large_sizes) = (loaded.records, loaded.large_sizes);
        large_sizes.sort_unstable();
        keep_newest(&mut records, &deleted, jobs, index)?;
        let visited = (0..records.len().div_ceil(64))
            .map(|_| AtomicU64::new(0))
            .collect();
        Ok(Self {
            hasher,
            table: Table::new(records),
            visited,
            released,
            last_row,
            large_sizes,
            recorded: dictionary.map_or_else(Vec::new, MetadataDictionary::into_entries),
            damages: loaded.damages,
        })
    }

    /// Returns damage that hides rows: those without a readable name are not in the table.
    pub fn damages(&self) -> &[IndexDamage] {
        &self.damages
    }

    /// Returns all combinations of type, mode and owner that occur.
    pub fn recorded(&self) -> &[RecordedMetadata] {
        &self.recorded
    }

    /// Returns the newest row of a name, and marks it as visited.
    pub fn lookup(&self, name: &[u8]) -> Option<NewestRow> {
        let index = self.table.find(self.hasher.hash(name))?;
        self.visited[index / 64].fetch_or(1 << (index % 64), Ordering::Relaxed);
        let record = &self.table.records[index];
        let id = (!record.is_staged()).then_some(RowId(record.id));
        Some(NewestRow {
            id,
            size: record.size().unwrap_or_else(|| self.large_size(record.id)),
            mtime: record.mtime,
            is_file: record.is_file(),
            recorded: record.metadata(),
            is_readable: record.is_readable(),
        })
    }

    /// The tree has something else than a directory at this path: what was released below it counts as gone.
    pub fn end_releases_below(&self, path: &[u8]) {
        self.released.end_below(path, &self.hasher);
    }

    fn large_size(&self, id: i64) -> u64 {
        let found = self.large_sizes.binary_search_by_key(&id, |entry| entry.0);
        found.map_or(u64::MAX, |at| self.large_sizes[at].1)
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.table.records.len()
    }

    /// Returns true if there is no name.
    pub fn is_empty(&self) -> bool {
        self.table.records.is_empty()
    }

    /// Returns the number of names never looked up, without those that were released from the tree.
    pub fn not_visited(&self) -> usize {
        self.never_visited() - self.released_not_visited()
    }

    /// Returns the number of names never looked up that were released from the tree.
    pub fn released_not_visited(&self) -> usize {
        self.holding_releases().count()
    }

    /// Returns the rows whose release is to be withdrawn: their names were looked up, have a newer row, or are deleted. One
    /// that only ended, below something else than a directory, is not among them before that.
    ///
    /// # Cost
    /// A pass over the records if anything is released.
    pub fn lost_releases(&self) -> Vec<RowId> {
        let kept = IdSet::new(self.released_rows().collect());
        let lost = self.released.all().filter(|row| !kept.contains(row.0));
        lost.collect()
    }

    /// Returns the newest rows that are released from the tree, and were not met in it.
    fn holding_releases(&self) -> impl Iterator<Item = i64> {
        self.released_rows().filter(|&row| self.released.holds(row))
    }

    /// As [`Self::holding_releases`], with those below what the tree has in the place of a directory.
    fn released_rows(&self) -> impl Iterator<Item = i64> {
        let records: &[Record] = if self.released.is_empty() {
            &[]
        } else {
            &self.table.records
        };
        let is_released = |&(index, record): &(usize, &Record)| {
            self.released.contains(record.id) && !self.is_visited(index)
        };
        let released = records.iter().enumerate().filter(is_released);
        released.map(|(_, record)| record.id)
    }

    fn never_visited(&self) -> usize {
        let visited: u32 = self
            .visited
            .iter()
            .map(|word| word.load(Ordering::Relaxed).count_ones())
            .sum();
        self.table.records.len() - visited as usize
    }

    /// Shows every staged name that was never looked up to `visit`, once. `stagings` are those that it was made with, in
    /// the same order.
    ///
    /// # Errors
    /// As [`Staging::rows`].
    ///
    /// # Cost
    /// A pass over the staged rows.
    pub fn not_visited_staged_names<'s>(
        &self,
        stagings: impl IntoIterator<Item = &'s Staging>,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<(), IndexError> {
        let mut id = FIRST_STAGED_ID;
        for staging in stagings {
            staging.rows(|row| {
                let index = self.table.find(self.hasher.hash(row.name));
                let is_newest = |&index: &usize| self.table.records[index].id == id;
                if index
                    .filter(is_newest)
                    .is_some_and(|index| self.is_not_visited(index))
                {
                    visit(row.name);
                }
                id += 1;
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    }

    fn is_not_visited(&self, index: usize) -> bool {
        !self.is_visited(index) && !self.released.holds(self.table.records[index].id)
    }

    fn is_visited(&self, index: usize) -> bool {
        self.visited[index / 64].load(Ordering::Relaxed) & 1 << (index % 64) != 0
    }

    fn is_not_visited_staged(&self, name: &[u8]) -> bool {
        self.table
            .find(self.hasher.hash(name))
            .is_some_and(|index| {
                self.table.records[index].is_staged() && self.is_not_visited(index)
            })
    }

    fn not_visited_records(&self) -> impl Iterator<Item = &Record> {
        self.table
            .records
            .iter()
            .enumerate()
            .filter(|(index, _)| self.is_not_visited(*index))
            .map(|(_, record)| record)
    }
}

impl Index {
    /// Calls `visit` with every name that was never looked up. Names that were staged when `name_table` was
    /// made are found once their rows are committed.
    ///
    /// # Errors
    /// As [`NameTable::load`].
    ///
    /// # Cost
    /// A second pass over the rows if any name was not visited.
    pub fn not_visited_names(
        &self,
        name_table: &NameTable,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<(), IndexError> {
        self.visit_not_visited(name_table, &mut |name| {
            visit(name);
            ControlFlow::Continue(())
        })
    }

    pub(crate) fn visit_not_visited(
        &self,
        name_table: &NameTable,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let stored = name_table
            .not_visited_records()
            .filter(|record| !record.is_staged());
        let stored = IdSet::new(stored.map(|record| record.id).collect());
        let any_staged = name_table.not_visited_records().any(Record::is_staged);
        let after_loaded = any_staged.then(|| name_table.last_row.saturating_add(1));
        let Some(first) = stored.ends().map(|ends| ends.0).or(after_loaded) else {
            return Ok(());
        };
        self.names_from(first, &mut |id, name| {
            let not_visited = if id <= name_table.last_row {
                stored.contains(id)
            } else {
                any_staged && name_table.is_not_visited_staged(name)
            };
            if not_visited {
                visit(name)
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    fn names_from(
        &self,
        first: i64,
        visit: &mut dyn FnMut(i64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let mut names = RealNames::open(self)?;
        let query = format!("SELECT id, name FROM files {RANGE}");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, first..=i64::MAX, |step| {
            let Step::Row(id, row) = step else {
                return Ok(ControlFlow::Continue(()));
            };
            let Some(stored) = bytes(row.get_ref(1).map_err(self.fault(READ))?) else {
                return Ok(ControlFlow::Continue(()));
            };
            Ok(match names.of(RowId(id), stored)? {
                (name, None) => visit(id, name),
                (_, Some(_)) => ControlFlow::Continue(()),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_found_and_nothing_else() {
        for count in [0_u64, 1, 2, 3, 64, 1000] {
            let hash = |i: u64| NameHash(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i);
            let record = |i| Record {
                hash: hash(i),
                id: 1,
                facts: i,
                mtime: Mtime(0),
            };
            let mut records: Vec<Record> = (0..count).map(record).collect();
            records.sort_unstable_by_key(|record| record.hash);
            let table = Table::new(records);
            for i in 0..count {
                assert_eq!(
                    table.find(hash(i)).map(|index| table.records[index].facts),
                    Some(i)
                );
            }
            for i in count..count + 200 {
                assert_eq!(table.find(hash(i)), None);
            }
            assert_eq!(table.find(NameHash(u64::MAX, u64::MAX)), None);
        }
    }

    #[test]
    fn unevenly_spread_hashes_are_found_too() {
        let record = |i| Record {
            hash: NameHash(u64::MAX, i),
            id: 1,
            facts: i,
            mtime: Mtime(0),
        };
        let table = Table::new((0..5000).map(record).collect());
        assert!((0..5000).all(|i| table.find(NameHash(u64::MAX, i)).is_some()));
        assert_eq!(table.find(NameHash(0, 0)), None);
    }
}
