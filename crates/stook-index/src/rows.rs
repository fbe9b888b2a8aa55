//! Reading rows of `files` and `tars`: streaming, by volume, by id, by name.
//!
//! All passes share one decoder, `row.rs`. A row with a value that no archive holds (an unknown time, a tar
//! that is no volume) is met as a damage, and so are rows on a page that SQLite cannot read; the
//! pass goes on behind them. Where a single row was asked for, it is an error.

use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;

use rusqlite::{Connection, Params, Statement, params};

use crate::error::{IndexError, READ};
use crate::index::{Index, fault_at};
use crate::row::{Met, RealNames, bytes, decode, md5_of, meet, unsigned, volume_of};
use crate::scan::{Step, is_unreadable, scan_ids};
use crate::types::{Row, RowId, RowRef, Volume, VolumeId};

/// Ids from here on stand for staged rows in memory, so no stored row may have one.
pub(crate) const FIRST_STAGED_ID: i64 = 1 << 62;

/// The columns in the order [`decode`] takes them.
pub(crate) const COLUMNS: &str = "SELECT id, name, size, mtime, md5, tar, offset FROM files ";

/// Rows between two ids, for [`scan_ids`].
pub(crate) const RANGE: &str = "WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

impl Index {
    /// Shows every row to `visit` in the order they were archived, until it breaks off.
    ///
    /// # Errors
    /// `BadRow` for an invalid row, `Sqlite` if the file cannot be read.
    ///
    /// # Cost
    /// One pass over the file, no allocation per row.
    pub fn rows(
        &self,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        self.scan(&format!("{COLUMNS} ORDER BY id"), [], &mut visit)
    }

    /// Shows every row to `visit` in the order of the volumes and of the places in them, until it breaks off.
    ///
    /// # Errors
    /// As [`Index::rows`].
    ///
    /// # Cost
    /// Two passes over the file, no allocation per row. If the rows were not archived in that order, 24 bytes a row, a sort, and a
    /// look-up for each.
    pub fn rows_by_place(
        &self,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        if self.is_in_order_of_places()? {
            return self.rows(visit);
        }
        let mut places = Vec::new();
        self.rows(|row| {
            places.push((row.volume, row.offset, row.id.0));
            ControlFlow::Continue(())
        })?;
        places.sort_unstable();
        let query = format!("{COLUMNS} WHERE id = ?1");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        let mut names = RealNames::open(self)?;
        for (_, _, id) in places {
            let mut flow = ControlFlow::Continue(());
            self.scan_prepared(&mut statement, &mut names, [id], &mut |row| {
                flow = visit(row);
                flow
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Names of volumes are compared as numbers are: longer ones are greater.
    fn is_in_order_of_places(&self) -> Result<bool, IndexError> {
        let query = "SELECT tar, offset FROM files ORDER BY id";
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        let (mut last_volume, mut last_offset) = (Vec::new(), i64::MIN);
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let volume = row.get_ref(0).map_err(self.fault(READ))?;
            let volume = bytes(volume).unwrap_or_default();
            let offset: i64 = row.get(1).unwrap_or(i64::MIN);
            if volume == last_volume {
                if offset < last_offset {
                    return Ok(false);
                }
            } else {
                if (volume.len(), volume) < (last_volume.len(), last_volume.as_slice()) {
                    return Ok(false);
                }
                last_volume.clear();
                last_volume.extend_from_slice(volume);
            }
            last_offset = offset;
        }
        Ok(true)
    }

    /// Shows every row that can be read to `visit`, in the order they were archived, until it breaks off.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// As [`Index::rows`].
    pub fn readable_rows(
        &self,
        visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        self.readable_rows_in(i64::MIN..=i64::MAX, visit)
    }

    /// As [`Index::readable_rows`], of the rows with these ids.
    pub(crate) fn readable_rows_in(
        &self,
        ids: RangeInclusive<i64>,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        self.pass(ids, &mut |met| match met {
            Met::Row(row) => visit(row),
            Met::Bad(..) | Met::Unreadable(_) => ControlFlow::Continue(()),
        })
    }

    /// Shows the rows with these ids, and what is damaged among them, to `visit`.
    pub(crate) fn pass(
        &self,
        ids: RangeInclusive<i64>,
        visit: &mut impl FnMut(Met<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let query = format!("{COLUMNS} {RANGE}");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        self.pass_prepared(&mut statement, &mut RealNames::open(self)?, ids, visit)
    }

    /// As [`Index::pass`], with a statement made of [`COLUMNS`] and [`RANGE`].
    pub(crate) fn pass_prepared(
        &self,
        statement: &mut Statement<'_>,
        names: &mut RealNames<'_>,
        ids: RangeInclusive<i64>,
        visit: &mut impl FnMut(Met<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        scan_ids(&self.path, statement, ids, |step| {
            let (id, row) = match step {
                Step::Row(id, row) => (id, row),
                Step::Unreadable(rows) => return Ok(visit(Met::Unreadable(rows))),
            };
            Ok(visit(meet(id, row, names, &self.path)?))
        })
    }

    /// Shows the rows of one volume that can be read to `visit`, by offset; only those with ids in `ids`.
    ///
    /// # Errors
    /// As [`Index::readable_rows`].
    ///
    /// # Cost
    /// One pass over the rows with these ids, and a sort of the volume's rows inside SQLite. If some cannot be
    /// read, 16 bytes a row of the volume, and a lookup for each.
    pub fn rows_of_volume(
        &self,
        volume: VolumeId,
        ids: RangeInclusive<RowId>,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let query =
            format!("{COLUMNS} WHERE id BETWEEN ?2 AND ?3 AND tar = ?1 ORDER BY offset, id");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        let mut names = RealNames::open(self)?;
        let mut rows = statement
            .query(params![volume.to_string(), ids.start().0, ids.end().0])
            .map_err(self.fault(READ))?;
        loop {
            // The sort reads all rows before the first one comes.
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(()),
                Err(error) if is_unreadable(&error) => break,
                Err(error) => return Err(self.fault(READ)(error)),
            };
            let id = RowId(row.get(0).map_err(self.fault(READ))?);
            let (mut row, bad) = decode(row, id, &self.path)?;
            let (name, bad_name) = names.of(row.id, row.name)?;
            row.name = name;
            if bad.or(bad_name).is_none() && visit(row).is_break() {
                return Ok(());
            }
        }
        drop(rows);
        self.readable_rows_of_volume(volume, ids.start().0..=ids.end().0, &mut visit)
    }

    /// Does without a sort by SQLite, which fails as a whole.
    fn readable_rows_of_volume(
        &self,
        volume: VolumeId,
        ids: RangeInclusive<i64>,
        visit: &mut dyn FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let mut places = Vec::new();
        self.pass(ids, &mut |met| {
            if let Met::Row(row) = met
                && row.volume == volume
            {
                places.push((row.offset, row.id.0));
            }
            ControlFlow::Continue(())
        })?;
        places.sort_unstable();
        let query = format!("{COLUMNS} {RANGE}");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        let mut names = RealNames::open(self)?;
        for (_, id) in places {
            let mut flow = ControlFlow::Continue(());
            self.pass_prepared(&mut statement, &mut names, id..=id, &mut |met| {
                if let Met::Row(row) = met {
                    flow = visit(row);
                }
                flow
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Returns one row.
    ///
    /// # Errors
    /// As [`Index::rows`].
    pub fn row(&self, id: RowId) -> Result<Option<Row>, IndexError> {
        let mut found = None;
        self.scan(&format!("{COLUMNS} WHERE id = ?1"), [id.0], &mut |row| {
            found = Some(row.to_row());
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Returns the number of rows of all versions.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    pub fn row_count(&self) -> Result<u64, IndexError> {
        self.connection
            .query_row("SELECT count(*) FROM files", [], |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(self.fault(READ))
    }

    /// Returns the number a new volume gets: one more than the greatest in `files` and `tars`, names that make
    /// no sense left out. The caller looks at the archive's folder, too.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    ///
    /// # Cost
    /// One pass over the file.
    pub fn next_volume(&self) -> Result<VolumeId, IndexError> {
        let mut next = self.next_volume_in("SELECT tar FROM files")?;
        if self.has_table("tars")? {
            next = next.max(self.next_volume_in("SELECT name FROM tars")?);
        }
        Ok(VolumeId::plain(next))
    }

    /// Reads a name only where it differs from the row before: rows of a volume lie together.
    fn next_volume_in(&self, query: &str) -> Result<u64, IndexError> {
        let mut next = 0;
        let mut last = Vec::new();
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let name = bytes(row.get_ref(0).map_err(self.fault(READ))?).unwrap_or_default();
            if name == last {
                continue;
            }
            if let Some(volume) = VolumeId::from_name(name) {
                next = next.max(volume.0 + 1);
            }
            last.clear();
            last.extend_from_slice(name);
        }
        Ok(next)
    }

    /// Returns the volume of the last row up to an id that names one.
    pub(crate) fn volume_up_to(&self, id: i64) -> Result<Option<VolumeId>, IndexError> {
        let query = "SELECT tar FROM files WHERE id <= ?1 ORDER BY id DESC";
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        let mut rows = statement.query([id]).map_err(self.fault(READ))?;
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let volume = volume_of(row.get_ref(0).map_err(self.fault(READ))?);
            if volume.is_some() {
                return Ok(volume);
            }
        }
        Ok(None)
    }

    /// Returns the volumes in ascending order; of several rows for one volume, the newest.
    /// Empty for archives that recorded none.
    ///
    /// # Errors
    /// As [`Index::volume_records`].
    pub fn volumes(&self) -> Result<Vec<Volume>, IndexError> {
        let mut volumes = self.volume_records()?;
        volumes.reverse();
        volumes.sort_by_key(|volume| volume.id);
        volumes.dedup_by_key(|volume| volume.id);
        Ok(volumes)
    }

    /// Returns every row about a volume that can be read, oldest first: zstash may have left several for one.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    pub fn volume_records(&self) -> Result<Vec<Volume>, IndexError> {
        let records = self.numbered_volume_records()?.unwrap_or_default();
        Ok(records.into_iter().map(|(_, volume)| volume).collect())
    }

    /// As [`Index::volume_records`], each with the id of its row. None if the archive has no such table.
    ///
    /// # Errors
    /// As [`Index::volume_records`].
    pub fn numbered_volume_records(&self) -> Result<Option<Vec<(i64, Volume)>>, IndexError> {
        if !self.has_table("tars")? {
            return Ok(None);
        }
        let mut volumes = Vec::new();
        let query = format!("SELECT id, name, size, md5 FROM tars {RANGE}");
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            if let Step::Row(id, row) = step {
                let volume = decode_volume(row, &self.path)?;
                volumes.extend(volume.map(|volume| (id, volume)));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Some(volumes))
    }

    /// Runs a query over [`COLUMNS`] and shows its rows.
    pub(crate) fn scan(
        &self,
        query: &str,
        params: impl Params,
        visit: &mut dyn FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        self.scan_prepared(&mut statement, &mut RealNames::open(self)?, params, visit)
    }

    pub(crate) fn scan_prepared(
        &self,
        statement: &mut Statement<'_>,
        names: &mut RealNames<'_>,
        params: impl Params,
        visit: &mut dyn FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let mut rows = statement.query(params).map_err(self.fault(READ))?;
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let id = RowId(row.get(0).map_err(self.fault(READ))?);
            let (mut row, bad) = decode(row, id, &self.path)?;
            let (name, bad_name) = names.of(row.id, row.name)?;
            row.name = name;
            if let Some(bad) = bad.or(bad_name) {
                return Err(IndexError::bad_row(&self.path, "files", id, bad.why));
            }
            if visit(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Returns a number that changes when another connection commits.
    pub(crate) fn data_version(&self) -> Result<i64, IndexError> {
        self.connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(self.fault(READ))
    }

    /// Returns the greatest row id, 0 if there is no row.
    ///
    /// # Errors
    /// `Sqlite` if it cannot be read.
    pub fn last_row(&self) -> Result<i64, IndexError> {
        last_row(&self.connection, &self.path)
    }

    /// As [`Index::last_row`]; `None` if the last page is damaged.
    ///
    /// # Errors
    /// As [`Index::last_row`], unless it is damage.
    pub fn last_readable_row(&self) -> Result<Option<i64>, IndexError> {
        match self.last_row() {
            Err(IndexError::Sqlite { source, .. }) if is_unreadable(&source) => Ok(None),
            other => other.map(Some),
        }
    }
}

pub(crate) fn last_row(connection: &Connection, path: &Path) -> Result<i64, IndexError> {
    connection
        .query_row("SELECT coalesce(max(id), 0) FROM files", [], |row| {
            row.get(0)
        })
        .map_err(fault_at(READ, path))
}

/// Reads one row of `tars`; `None` if it is invalid.
fn decode_volume(row: &rusqlite::Row<'_>, path: &Path) -> Result<Option<Volume>, IndexError> {
    let column = |index| row.get_ref(index).map_err(fault_at(READ, path));
    let (id, size, md5) = (
        volume_of(column(1)?),
        unsigned(column(2)?),
        md5_of(column(3)?),
    );
    Ok(id
        .zip(size)
        .zip(md5)
        .map(|((id, size), md5)| Volume { id, size, md5 }))
}
