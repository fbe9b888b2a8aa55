//! Rows whose attributes are not in the index yet: written by zstash, by a stook before format 2, or damaged since.
//!
//! zstash always begins a volume of its own, so a write looks for volumes without any block: those that `tars` names, and
//! those of rows that belong to no run. Only when asked to (`reindex --attributes`) every row is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};

use super::AttributesBlock;
use super::store::StoredAttributes;
use crate::blocks::{self, NewBlock};
use crate::error::{IndexError, READ, WRITE};
use crate::index::Index;
use crate::row::volume_of;
use crate::rows::RANGE;
use crate::scan::{Step, scan_ids};
use crate::schema::ATTRIBUTES;
use crate::types::{RowId, RowRef, VolumeId};

/// Volumes, each with the least and the greatest id of its rows.
pub type VolumeRows = BTreeMap<VolumeId, RangeInclusive<RowId>>;

/// What a volume lacks.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// Rows without attributes.
    pub members: u64,
    /// Blocks to be replaced, by their ids: damaged, or between whose members others lie.
    stale: Vec<i64>,
}

impl Gaps {
    /// Returns true if nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.members == 0 && self.stale.is_empty()
    }
}

impl Index {
    /// Returns the volumes without any attributes that another program, or an older stook, has written.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// A pass over the rows that belong to no run; over all rows if a volume in `tars` has no attributes.
    pub fn volumes_without_attributes(&self) -> Result<VolumeRows, IndexError> {
        let covered = self.volumes_with_attributes()?;
        let in_tars = self.volume_records()?;
        let is_all = in_tars.iter().any(|volume| !covered.contains(&volume.id));
        let mut found = VolumeRows::new();
        if is_all {
            self.add_volume_rows(i64::MIN..=i64::MAX, &mut found)?;
        } else {
            for ids in self.rows_of_no_run()? {
                self.add_volume_rows(ids, &mut found)?;
            }
        }
        found.retain(|volume, _| !covered.contains(volume));
        Ok(found)
    }

    /// Returns all volumes that rows name.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// A pass over all rows.
    pub fn rows_by_volume(&self) -> Result<VolumeRows, IndexError> {
        let mut found = VolumeRows::new();
        self.add_volume_rows(i64::MIN..=i64::MAX, &mut found)?;
        Ok(found)
    }

    fn volumes_with_attributes(&self) -> Result<BTreeSet<VolumeId>, IndexError> {
        let mut covered = BTreeSet::new();
        if !self.has_table(ATTRIBUTES)? {
            return Ok(covered);
        }
        let query = format!(
            "SELECT id, volume FROM {ATTRIBUTES} NOT INDEXED WHERE id BETWEEN ?1 AND ?2 ORDER BY id"
        );
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            if let Step::Row(_, row) = step {
                let number = row.get::<_, i64>(1).map(u64::try_from);
                covered.extend(number.ok().and_then(Result::ok).map(VolumeId::plain));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(covered)
    }

    /// Returns the ids between and behind the runs.
    fn rows_of_no_run(&self) -> Result<Vec<RangeInclusive<i64>>, IndexError> {
        let mut next = i64::MIN;
        let mut between = Vec::new();
        for run in self.readable_runs(|_| {})? {
            let first = run.first_file.0;
            if next < first {
                between.push(next..=first - 1);
            }
            // A run that has not finished may own all that follows.
            let last = run.last_file.map_or(first.saturating_sub(1), |last| last.0);
            next = next.max(last.saturating_add(1));
        }
        between.push(next..=i64::MAX);
        Ok(between)
    }

    fn add_volume_rows(
        &self,
        ids: RangeInclusive<i64>,
        found: &mut VolumeRows,
    ) -> Result<(), IndexError> {
        let query = format!("SELECT id, tar FROM files {RANGE}");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, ids, |step| {
            let Step::Row(id, row) = step else {
                return Ok(ControlFlow::Continue(()));
            };
            if let Some(volume) = volume_of(row.get_ref(1).map_err(self.fault(READ))?) {
                found
                    .entry(volume)
                    .and_modify(|ids| *ids = *ids.start()..=RowId(id))
                    .or_insert(RowId(id)..=RowId(id));
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Shows the rows of a volume without attributes, by offset, until `visit` breaks off. Its second argument is true if
    /// other members with attributes lie between this row and the one before: a new block begins here.
    ///
    /// # Errors
    /// As [`Index::rows_of_volume`].
    ///
    /// # Cost
    /// Twice that of [`Index::rows_of_volume`] if the volume has any attributes.
    pub fn rows_without_attributes(
        &self,
        volume: VolumeId,
        ids: &RangeInclusive<RowId>,
        mut visit: impl FnMut(RowRef<'_>, bool) -> ControlFlow<()>,
    ) -> Result<Gaps, IndexError> {
        let mut held = Held::of(self, volume)?;
        if !held.blocks.is_empty() {
            self.rows_of_volume(volume, ids.clone(), |row| {
                held.mark(row.offset);
                ControlFlow::Continue(())
            })?;
        }
        let mut gaps = held.without_stale();
        let mut last_behind = None;
        self.rows_of_volume(volume, ids.clone(), |row| {
            let behind = held.before(row.offset);
            if behind
                .checked_sub(1)
                .is_some_and(|at| held.blocks[at].1.contains(row.offset))
            {
                return ControlFlow::Continue(());
            }
            gaps.members += 1;
            let is_apart = last_behind.is_some_and(|last| last != behind);
            last_behind = Some(behind);
            visit(row, is_apart)
        })?;
        Ok(gaps)
    }

    /// Adds attributes of a volume, and removes the blocks that they replace, in one transaction.
    ///
    /// # Errors
    /// `Busy`, `ReadOnly` or `Sqlite`; nothing is changed then.
    pub fn fill_attributes(
        &mut self,
        volume: VolumeId,
        gaps: &Gaps,
        blocks: &[NewBlock],
    ) -> Result<(), IndexError> {
        let change = self.begin()?;
        let query = format!("DELETE FROM {ATTRIBUTES} WHERE id = ?1");
        for id in &gaps.stale {
            change.execute(&query, [id]).map_err(self.fault(WRITE))?;
        }
        blocks::insert(&change, &self.path, ATTRIBUTES, volume, blocks)?;
        change.commit().map_err(self.fault(WRITE))
    }
}

/// The blocks of a volume, ascending.
struct Held {
    blocks: Vec<(i64, AttributesBlock)>,
    stale: BTreeSet<i64>,
}

impl Held {
    fn of(index: &Index, volume: VolumeId) -> Result<Self, IndexError> {
        let mut held = Self {
            blocks: Vec::new(),
            stale: BTreeSet::new(),
        };
        index.blocks_of_volume(ATTRIBUTES, volume, &mut |block| {
            let id = block.id;
            let last = held.blocks.last().map(|(_, block)| block.last());
            match StoredAttributes(block).decode() {
                Some(block) if last.is_none_or(|last| last < block.first()) => {
                    held.blocks.push((id, block));
                }
                _ => {
                    held.stale.insert(id);
                }
            }
            ControlFlow::Continue(())
        })?;
        held.stale.extend(unusable(index, volume)?);
        Ok(held)
    }

    /// Returns the number of blocks that begin at or before an offset.
    fn before(&self, offset: u64) -> usize {
        let is_before = |(_, block): &(i64, AttributesBlock)| block.first() <= offset;
        self.blocks.partition_point(is_before)
    }

    /// There is a row at this offset. A block that has others on both sides of it, but not it, would hide it.
    fn mark(&mut self, offset: u64) {
        let block = self.before(offset).checked_sub(1);
        if let Some((id, block)) = block.map(|at| &self.blocks[at])
            && offset < block.last()
            && !block.contains(offset)
        {
            self.stale.insert(*id);
        }
    }

    fn without_stale(&mut self) -> Gaps {
        self.blocks.retain(|(id, _)| !self.stale.contains(id));
        Gaps {
            members: 0,
            stale: self.stale.iter().copied().collect(),
        }
    }
}

/// Returns the rows of a volume whose values are of no use at all.
fn unusable(index: &Index, volume: VolumeId) -> Result<Vec<i64>, IndexError> {
    if !index.has_table(ATTRIBUTES)? {
        return Ok(Vec::new());
    }
    let query = format!(
        "SELECT id FROM {ATTRIBUTES} WHERE volume = ?1 AND (typeof(first) <> 'integer' OR first < 0
            OR typeof(entries) <> 'integer' OR entries < 0 OR typeof(data) <> 'blob'
            OR typeof(crc) <> 'integer' OR crc NOT BETWEEN 0 AND 4294967295)"
    );
    let read = || {
        let mut statement = index.connection.prepare(&query)?;
        let number = i64::try_from(volume.0).unwrap_or(i64::MAX);
        statement
            .query_map([number], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<i64>>>()
    };
    match read() {
        Err(error) if crate::scan::is_unreadable(&error) => Ok(Vec::new()),
        other => other.map_err(index.fault(READ)),
    }
}
