//! Reading rows of `files` and `tars`: streaming, by volume, by id, by name.
//!
//! All passes share one decoder. A value that no archive holds (an unknown time, a tar that is
//! no volume) ends the pass with `BadRow`: half-read facts are worse than none, and `reindex`
//! mends the index. Real names of rows that are not UTF-8 are looked up only where the stored
//! name has a `%` in it.

use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params, Statement, params};

use crate::error::{IndexError, READ};
use crate::index::{Index, fault_at};
use crate::mtime::Mtime;
use crate::name::escape_name;
use crate::types::{Row, RowId, RowRef, Volume, VolumeId};

/// Ids from here on stand for staged rows in memory, so no stored row may have one.
pub(crate) const FIRST_STAGED_ID: i64 = 1 << 62;

/// The columns in the order [`decode`] takes them.
pub(crate) const COLUMNS: &str = "SELECT id, name, size, mtime, md5, tar, offset FROM files ";

impl Index {
    /// Shows every row to `visit` in the order they were archived, until it breaks off.
    ///
    /// # Errors
    /// `BadRow` for a row that makes no sense, `Sqlite` if the file cannot be read.
    ///
    /// # Cost
    /// One pass over the file, no allocation per row.
    pub fn rows(
        &self,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        self.scan(&format!("{COLUMNS} ORDER BY id"), [], &mut visit)
    }

    /// Shows the rows of one volume to `visit`, by offset; only those with ids in `ids`.
    ///
    /// # Errors
    /// As [`Index::rows`].
    ///
    /// # Cost
    /// One pass over the rows with these ids, and a sort of the volume's rows inside SQLite.
    pub fn rows_of_volume(
        &self,
        volume: VolumeId,
        ids: RangeInclusive<RowId>,
        mut visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let query =
            format!("{COLUMNS} WHERE id BETWEEN ?2 AND ?3 AND tar = ?1 ORDER BY offset, id");
        let params = params![volume.to_string(), ids.start().0, ids.end().0];
        self.scan(&query, params, &mut visit)
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

    /// Returns the newest row of a name, unless the name has been deleted since.
    ///
    /// # Errors
    /// As [`Index::rows`].
    ///
    /// # Cost
    /// A pass over the file, newest rows first, as zstash keeps no index on names. For many
    /// names use a [`Selection`](crate::Selection).
    pub fn find(&self, name: &[u8]) -> Result<Option<Row>, IndexError> {
        let mut found = None;
        let query = format!("{COLUMNS} WHERE name = ?1 ORDER BY id DESC");
        self.scan(&query, [&*escape_name(name)], &mut |row| {
            if row.name != name {
                return ControlFlow::Continue(());
            }
            found = Some(row.to_row());
            ControlFlow::Break(())
        })?;
        let Some(row) = found else {
            return Ok(None);
        };
        let mut is_deleted = false;
        self.deletions(None, &mut |deleted, last_file| {
            is_deleted |= deleted == name && last_file >= row.id.0;
        })?;
        Ok((!is_deleted).then_some(row))
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

    /// Returns the number a new volume gets: one more than the greatest in `files` and `tars`.
    /// The caller looks at the archive's folder, too.
    ///
    /// # Errors
    /// `BadRow` if a volume's name makes no sense.
    ///
    /// # Cost
    /// One pass over the file.
    pub fn next_volume(&self) -> Result<VolumeId, IndexError> {
        let mut next = self.next_volume_in("files", "SELECT id, tar FROM files")?;
        if self.has_table("tars")? {
            next = next.max(self.next_volume_in("tars", "SELECT id, name FROM tars")?);
        }
        Ok(VolumeId(next))
    }

    /// Reads a name only where it differs from the row before: rows of a volume lie together.
    fn next_volume_in(&self, table: &'static str, query: &str) -> Result<u64, IndexError> {
        let mut next = 0;
        let mut last = Vec::new();
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let name = bytes(row.get_ref(1).map_err(self.fault(READ))?).unwrap_or_default();
            if name == last && next > 0 {
                continue;
            }
            let id = RowId(row.get(0).map_err(self.fault(READ))?);
            let volume = VolumeId::from_name(name)
                .ok_or_else(|| IndexError::bad_row(&self.path, table, id, BAD_VOLUME))?;
            next = next.max(volume.0 + 1);
            last.clear();
            last.extend_from_slice(name);
        }
        Ok(next)
    }

    /// Returns the volumes in ascending order; of several rows for one volume, the newest.
    /// Empty for archives that recorded none.
    ///
    /// # Errors
    /// `BadRow` if a row makes no sense.
    pub fn volumes(&self) -> Result<Vec<Volume>, IndexError> {
        let mut volumes = self.volume_records()?;
        volumes.reverse();
        volumes.sort_by_key(|volume| volume.id);
        volumes.dedup_by_key(|volume| volume.id);
        Ok(volumes)
    }

    /// Returns every row about a volume, oldest first: zstash may have left several for one.
    ///
    /// # Errors
    /// `BadRow` if a row makes no sense.
    pub fn volume_records(&self) -> Result<Vec<Volume>, IndexError> {
        if !self.has_table("tars")? {
            return Ok(Vec::new());
        }
        let mut volumes = Vec::new();
        let mut statement = self
            .connection
            .prepare("SELECT id, name, size, md5 FROM tars ORDER BY id")
            .map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            volumes.push(decode_volume(row, &self.path)?);
        }
        Ok(volumes)
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
            let mut row = decode(row, &self.path)?;
            row.name = names.of(row.id, row.name)?;
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
    pub(crate) fn last_row(&self) -> Result<i64, IndexError> {
        last_row(&self.connection, &self.path)
    }
}

pub(crate) fn last_row(connection: &Connection, path: &Path) -> Result<i64, IndexError> {
    connection
        .query_row("SELECT coalesce(max(id), 0) FROM files", [], |row| {
            row.get(0)
        })
        .map_err(fault_at(READ, path))
}

/// Finds the real bytes of names that are stored escaped.
pub(crate) struct RealNames<'i> {
    lookup: Option<Statement<'i>>,
    path: &'i Path,
    name: Vec<u8>,
}

impl<'i> RealNames<'i> {
    pub(crate) fn open(index: &'i Index) -> Result<Self, IndexError> {
        let lookup = if index.has_table("stook_raw_names")?
            && has_raw_names(&index.connection).map_err(index.fault(READ))?
        {
            let lookup = index
                .connection
                .prepare("SELECT name FROM stook_raw_names WHERE file = ?1");
            Some(lookup.map_err(index.fault(READ))?)
        } else {
            None
        };
        Ok(Self {
            lookup,
            path: &index.path,
            name: Vec::new(),
        })
    }

    /// Returns the real name of a row. Raw bytes that do not escape to the stored name belong
    /// to a row that another program removed, and are passed over.
    pub(crate) fn of<'a>(
        &'a mut self,
        id: RowId,
        stored: &'a [u8],
    ) -> Result<&'a [u8], IndexError> {
        let Some(lookup) = &mut self.lookup else {
            return Ok(stored);
        };
        if !stored.contains(&b'%') {
            return Ok(stored);
        }
        let found = lookup
            .query_row([id.0], |row| row.get::<_, Vec<u8>>(0))
            .optional()
            .map_err(fault_at(READ, self.path))?;
        match found {
            Some(raw) if escape_name(&raw).as_bytes() == stored => {
                self.name = raw;
                Ok(&self.name)
            }
            _ => Ok(stored),
        }
    }
}

fn has_raw_names(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT EXISTS (SELECT 1 FROM stook_raw_names)", [], |row| {
        row.get(0)
    })
}

const BAD_VOLUME: &str = "its tar is not the name of a volume";

/// Reads one row of [`COLUMNS`]; the name is as stored.
fn decode<'a>(row: &'a rusqlite::Row<'_>, path: &Path) -> Result<RowRef<'a>, IndexError> {
    let column = |index| row.get_ref(index).map_err(fault_at(READ, path));
    let id = RowId(row.get(0).map_err(fault_at(READ, path))?);
    let bad = |why| IndexError::bad_row(path, "files", id, why);
    if id.0 >= FIRST_STAGED_ID {
        return Err(bad("its id is out of range"));
    }
    Ok(RowRef {
        id,
        name: bytes(column(1)?).ok_or_else(|| bad("it has no name"))?,
        size: unsigned(column(2)?).ok_or_else(|| bad("its size is not a number of bytes"))?,
        mtime: mtime_of(column(3)?).ok_or_else(|| bad(BAD_MTIME))?,
        md5: md5_of(column(4)?).ok_or_else(|| bad(BAD_MD5))?,
        volume: volume_of(column(5)?).ok_or_else(|| bad(BAD_VOLUME))?,
        offset: unsigned(column(6)?).ok_or_else(|| bad("its offset is not a number of bytes"))?,
    })
}

pub(crate) const BAD_MTIME: &str = "its mtime is not a time of the form `YYYY-MM-DD HH:MM:SS`";
const BAD_MD5: &str = "its md5 is not 32 hexadecimal digits";

fn decode_volume(row: &rusqlite::Row<'_>, path: &Path) -> Result<Volume, IndexError> {
    let column = |index| row.get_ref(index).map_err(fault_at(READ, path));
    let id = RowId(row.get(0).map_err(fault_at(READ, path))?);
    let bad = |why| IndexError::bad_row(path, "tars", id, why);
    Ok(Volume {
        id: volume_of(column(1)?).ok_or_else(|| bad("its name is not the name of a volume"))?,
        size: unsigned(column(2)?).ok_or_else(|| bad("its size is not a number of bytes"))?,
        md5: md5_of(column(3)?).ok_or_else(|| bad(BAD_MD5))?,
    })
}

pub(crate) fn bytes(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    }
}

pub(crate) fn unsigned(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

pub(crate) fn mtime_of(value: ValueRef<'_>) -> Option<Mtime> {
    Mtime::from_text(bytes(value)?)
}

fn volume_of(value: ValueRef<'_>) -> Option<VolumeId> {
    VolumeId::from_name(bytes(value)?)
}

/// The outer option is whether the value makes sense, the inner one whether there is a sum.
#[expect(
    clippy::option_option,
    reason = "absent and wrong are different answers"
)]
fn md5_of(value: ValueRef<'_>) -> Option<Option<[u8; 16]>> {
    if value == ValueRef::Null {
        return Some(None);
    }
    let digits: &[u8; 32] = bytes(value)?.try_into().ok()?;
    let mut md5 = [0; 16];
    for (byte, pair) in md5.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(Some(md5))
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
