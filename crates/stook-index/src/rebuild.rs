//! Writing an index anew from the contents of its volumes.
//!
//! The new database is made beside the old one and put in its place at the end, so that a
//! failed rebuild leaves the old index as it was. Row ids start again at 1 in the order of the
//! volumes, which is the order they were archived in.
//!
//! Runs and deletions are facts no volume holds; they are carried over from the old index if it
//! can be read. A run ends where a volume ends, so its last row becomes the last new row of the
//! same volume. Rows of volumes the old index did not know count as added after the last run.

use std::collections::HashSet;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};

use rusqlite::params;
use rusqlite::types::Value;

use crate::blocks::{self, NewBlock};
use crate::check::deletions::Deletions;
use crate::commit::{Inserter, VolumeParts, insert_attributes, insert_volume};
use crate::compression::insert_level;
use crate::error::{IndexError, READ, WRITE};
use crate::frames::encode_frames;
use crate::index::Index;
use crate::interrupt::Interrupt;
use crate::names::{NameWriter, Source};
use crate::origin::require_own_journal;
use crate::place;
use crate::releases::copy_releases;
use crate::schema::{ATTRIBUTES, FRAMES};
use crate::transfers::StoreFact;
use crate::types::Deletion;
use crate::types::{Config, NewRow, RowId, Run, Volume, VolumeId};

/// An index in the making. Dropped before [`Rebuild::finish`], it leaves nothing behind.
#[derive(Debug)]
pub struct Rebuild {
    index: Option<Index>,
    target: PathBuf,
    /// The last row id of each volume, ascending.
    ends: Vec<(VolumeId, i64)>,
}

impl Rebuild {
    /// Begins a new index for `path`, made as `PATH.partial`.
    ///
    /// # Errors
    /// `ForeignJournal`, `Foreign`; `System` or `Sqlite` if it cannot be written.
    pub fn new(path: impl AsRef<Path>, config: &Config) -> Result<Self, IndexError> {
        let target = path.as_ref().to_owned();
        require_own_journal(&target)?;
        let index = Index::create_at(&place::partial_path(&target), config, |_| Ok(()))?;
        Ok(Self {
            index: Some(index),
            target,
            ends: Vec::new(),
        })
    }

    /// Has the archive's next volumes compressed.
    ///
    /// # Errors
    /// `Sqlite`.
    pub fn set_zstd_level(&mut self, level: u8) -> Result<(), IndexError> {
        let index = self.index();
        let transaction = index.begin()?;
        insert_level(&transaction, level).map_err(index.fault(WRITE))?;
        transaction.commit().map_err(index.fault(WRITE))
    }

    /// Has everything but [`Rebuild::finish`] fail with `Interrupted` once `interrupt` is raised.
    ///
    /// # Errors
    /// `Sqlite`.
    pub fn set_interrupt(&mut self, interrupt: &Interrupt) -> Result<(), IndexError> {
        match &mut self.index {
            Some(index) => index.set_interrupt(interrupt),
            None => Ok(()),
        }
    }

    fn index(&self) -> &Index {
        self.index
            .as_ref()
            .expect("taken only by finish, which consumes self")
    }

    /// Adds a volume, its rows in the order given, and its parts; attributes only if they are known of all rows. Returns the
    /// number of rows.
    ///
    /// # Errors
    /// `VolumeOrder` unless its number is greater than the last; `TooLarge` or `Sqlite`.
    pub fn add_volume<'r>(
        &mut self,
        volume: &Volume,
        rows: impl IntoIterator<Item = NewRow<'r>>,
        parts: VolumeParts<'_>,
    ) -> Result<u64, IndexError> {
        self.insert(volume.id, rows, parts, &[*volume])
    }

    fn insert<'r>(
        &mut self,
        id: VolumeId,
        rows: impl IntoIterator<Item = NewRow<'r>>,
        parts: VolumeParts<'_>,
        records: &[Volume],
    ) -> Result<u64, IndexError> {
        let (last_volume, last_id) = self
            .ends
            .last()
            .map_or((None, 0), |end| (Some(end.0), end.1));
        let index = self.index();
        if last_volume.is_some_and(|last| last >= id) {
            return Err(IndexError::VolumeOrder {
                path: self.target.clone(),
                volume: id,
            });
        }
        let transaction = index.begin()?;
        let mut inserter = Inserter::new(index, id)?;
        for row in rows {
            inserter.insert(&row)?;
        }
        let end = inserter.last_id.max(last_id);
        let count = inserter.finish()?;
        insert_attributes(&transaction, &index.path, id, parts.attributes, count)?;
        let frames = encode_frames(parts.frames);
        blocks::insert(&transaction, &index.path, FRAMES, id, &frames)?;
        for volume in records {
            insert_volume(&transaction, &index.path, volume)?;
        }
        transaction.commit().map_err(index.fault(WRITE))?;
        self.ends.push((id, end));
        Ok(count)
    }

    /// Takes over a volume that is not read, after those of smaller numbers: its rows with ids in `ids`, all that is on record of
    /// it, and its attributes and frames if they are known. Returns the number of rows.
    ///
    /// # Errors
    /// As [`Rebuild::add_volume`], and `Sqlite` if the old index cannot be read for another reason than damage.
    ///
    /// # Cost
    /// Holds the rows of one volume.
    pub fn keep_volume(
        &mut self,
        old: &Index,
        id: VolumeId,
        ids: RangeInclusive<RowId>,
    ) -> Result<u64, IndexError> {
        let mut rows = Vec::new();
        old.rows_of_volume(id, ids, |row| {
            rows.push(row.to_row());
            ControlFlow::Continue(())
        })?;
        rows.sort_unstable_by_key(|row| row.id);
        let mut attributes = Vec::new();
        old.blocks_of_volume(ATTRIBUTES, id, &mut |block| {
            if block.is_as_written() {
                attributes.push(NewBlock::new(block.first, block.entries, block.data));
            }
            ControlFlow::Continue(())
        })?;
        let frames = old.frames_of_volume(id)?.unwrap_or_default();
        let mut records = old.volume_records()?;
        records.retain(|volume| volume.id == id);
        let rows = rows.iter().map(|row| NewRow {
            name: &row.name,
            size: row.size,
            mtime: row.mtime,
            md5: row.md5,
            offset: row.offset,
        });
        let parts = VolumeParts {
            attributes: &attributes,
            frames: &frames,
        };
        self.insert(id, rows, parts, &records)
    }

    /// Takes over where the volumes were sent, and the facts about the store; `index_version` replaces that of the index there.
    ///
    /// # Errors
    /// `Sqlite` if the old index cannot be read, or the new one not written.
    pub fn keep_store(
        &mut self,
        old: &Index,
        index_version: Option<&str>,
    ) -> Result<(), IndexError> {
        let (mut transfers, leaving) = (old.transfers()?, old.leaving()?);
        transfers.retain(|volume, _| self.ends.iter().any(|(known, _)| known == volume));
        let leaving: Vec<VolumeId> = leaving.into_iter().collect();
        let place = old.store_fact(StoreFact::Place)?;
        let Some(index) = &mut self.index else {
            return Ok(());
        };
        let sent = transfers.iter().map(|(volume, sent)| (*volume, sent));
        index.record_transfers(sent, &leaving)?;
        index.set_store_fact(StoreFact::Place, place.as_deref())?;
        index.set_store_fact(StoreFact::IndexVersion, index_version)
    }

    /// Takes over runs and deletions from the old index, after all volumes were added; returns
    /// the number of runs.
    ///
    /// # Errors
    /// `BadRow` or `Sqlite` if the old index cannot be read: nothing is taken over then, and the
    /// rebuild can go on without.
    pub fn carry_over(&mut self, old: &Index) -> Result<usize, IndexError> {
        let index = self.index();
        let transaction = index.begin()?;
        let runs = old.runs()?;
        for run in &runs {
            self.insert_run(old, run)?;
        }
        if old.has_table("stook_deleted")? {
            copy_deletions(old, index)?;
            NameWriter::begin(index, Source::Deleted)?.finish()?;
        }
        copy_releases(old, index)?;
        transaction.commit().map_err(index.fault(WRITE))?;
        Ok(runs.len())
    }

    fn insert_run(&self, old: &Index, run: &Run) -> Result<(), IndexError> {
        let index = self.index();
        let first = self
            .translate(old, run.first_file.0.saturating_sub(1))?
            .saturating_add(1);
        let last = run
            .last_file
            .map(|last| self.translate(old, last.0))
            .transpose()?;
        let finished = run.finished.map(|time| time.to_string());
        let failed = finished
            .is_some()
            .then(|| i64::try_from(run.failed).unwrap_or(i64::MAX));
        index
            .connection
            .execute(
                "INSERT INTO stook_runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    run.id.0,
                    run.command,
                    run.started.to_string(),
                    finished,
                    first,
                    last,
                    failed
                ],
            )
            .map_err(index.fault(WRITE))?;
        Ok(())
    }

    /// Returns the last new row of the volume that an old row lies in.
    fn translate(&self, old: &Index, id: i64) -> Result<i64, IndexError> {
        let volume = old.volume_up_to(id)?;
        let Some(volume) = volume else {
            return Ok(0);
        };
        let upto = self.ends.partition_point(|end| end.0 <= volume);
        Ok(upto.checked_sub(1).map_or(0, |last| self.ends[last].1))
    }

    /// Makes the new index durable and puts it in the place of the old one.
    ///
    /// # Errors
    /// `System` or `Sqlite`; the old index stays then.
    pub fn finish(mut self) -> Result<(), IndexError> {
        let Some(index) = self.index.take() else {
            return Ok(());
        };
        let partial = index.path.clone();
        let installed = index.close().and_then(|()| {
            use stook_sys::Context;
            stook_sys::open_file(&partial)?
                .sync_all()
                .context("sync", &partial)?;
            place::install(&partial, &self.target)
        });
        if installed.is_err() {
            // The first error is reported; the partial file is replaced by the next rebuild.
            let _ = place::remove_database(&partial);
        }
        installed
    }
}

impl Drop for Rebuild {
    fn drop(&mut self) {
        if let Some(index) = self.index.take() {
            let partial = index.path.clone();
            drop(index);
            // No caller is left; the partial file is replaced by the next rebuild.
            let _ = place::remove_database(&partial);
        }
    }
}

/// Deletions of names that no volume holds any more hide nothing, and stay behind.
fn copy_deletions(old: &Index, new: &Index) -> Result<(), IndexError> {
    let mut deletions = Deletions::default();
    let mut visit = |deletion: Deletion<'_>| {
        deletions.add(deletion.row, deletion.name, i64::MAX);
    };
    old.deletions(None, &mut visit, &mut |_| {})?;
    deletions.sort();
    new.rows(|row| {
        deletions.mark(row.name, row.id.0);
        ControlFlow::Continue(())
    })?;
    let met: HashSet<i64> = deletions.met().collect();
    let mut select = old
        .connection
        .prepare("SELECT rowid, run, name, raw FROM stook_deleted")
        .map_err(old.fault(READ))?;
    let mut insert = new
        .connection
        .prepare("INSERT INTO stook_deleted VALUES (?1, ?2, ?3)")
        .map_err(new.fault(WRITE))?;
    let mut rows = select.query([]).map_err(old.fault(READ))?;
    while let Some(row) = rows.next().map_err(old.fault(READ))? {
        let value = |column| row.get::<_, Value>(column).map_err(old.fault(READ));
        if met.contains(&row.get(0).map_err(old.fault(READ))?) {
            insert
                .execute(params![value(1)?, value(2)?, value(3)?])
                .map_err(new.fault(WRITE))?;
        }
    }
    Ok(())
}
