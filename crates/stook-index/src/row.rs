//! One row of `files` as it is met: its values, what is wrong with them, and the real bytes of its name.
//!
//! Real names of rows that are not UTF-8 are looked up only where the stored name has a `%` in it.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Statement};

use crate::damage::{IndexDamage, UnreadableRows};
use crate::error::{IndexError, READ};
use crate::index::{Index, fault_at};
use crate::mtime::Mtime;
use crate::name::escape_name;
use crate::rows::FIRST_STAGED_ID;
use crate::scan::is_unreadable;
use crate::types::{RowId, RowRef, VolumeId};

/// A value that no archive holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadValue {
    pub(crate) column: &'static str,
    pub(crate) why: &'static str,
}

impl BadValue {
    pub(crate) const fn new(column: &'static str, why: &'static str) -> Self {
        Self { column, why }
    }
}

/// What a pass over `files` meets.
pub(crate) enum Met<'a> {
    Row(RowRef<'a>),
    /// A row with a bad value: what can be read of it, and nothing or zero for the rest.
    Bad(RowRef<'a>, BadValue),
    /// Rows that cannot be read at all.
    Unreadable(UnreadableRows),
}

impl Met<'_> {
    /// Returns the damage, if it is one.
    pub(crate) fn damage(&self) -> Option<IndexDamage> {
        match self {
            Self::Row(_) => None,
            Self::Bad(row, bad) => Some(IndexDamage {
                name: (!row.name.is_empty()).then(|| row.name.to_vec()),
                ..IndexDamage::value("files", row.id.0, bad.column, bad.why)
            }),
            Self::Unreadable(rows) => Some(IndexDamage::unreadable("files", rows)),
        }
    }
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
            && has_raw_names(&index.connection)
                .or_else(|error| is_unreadable(&error).then_some(true).ok_or(error))
                .map_err(index.fault(READ))?
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
    ) -> Result<(&'a [u8], Option<BadValue>), IndexError> {
        let Some(lookup) = &mut self.lookup else {
            return Ok((stored, None));
        };
        if !stored.contains(&b'%') {
            return Ok((stored, None));
        }
        let found = lookup
            .query_row([id.0], |row| {
                Ok(bytes(row.get_ref(0)?).unwrap_or_default().to_vec())
            })
            .optional();
        match found {
            Ok(Some(raw)) if escape_name(&raw).as_bytes() == stored => {
                self.name = raw;
                Ok((&self.name, None))
            }
            Ok(_) => Ok((stored, None)),
            Err(error) if is_unreadable(&error) => Ok((stored, Some(BAD_RAW_NAME))),
            Err(error) => Err(fault_at(READ, self.path)(error)),
        }
    }
}

const BAD_RAW_NAME: BadValue = BadValue::new(
    "name",
    "its real name cannot be read from `stook_raw_names`",
);

fn has_raw_names(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT EXISTS (SELECT 1 FROM stook_raw_names)", [], |row| {
        row.get(0)
    })
}

/// Reads one row of [`COLUMNS`]; the name is as stored. Returns its first bad value, too.
pub(crate) fn decode<'a>(
    row: &'a rusqlite::Row<'_>,
    id: RowId,
    path: &Path,
) -> Result<(RowRef<'a>, Option<BadValue>), IndexError> {
    let column = |index| row.get_ref(index).map_err(fault_at(READ, path));
    let mut bad = None;
    if id.0 >= FIRST_STAGED_ID {
        bad = Some(BadValue::new("id", BAD_ID));
    }
    let row = RowRef {
        id,
        name: bytes(column(1)?).or_note(&mut bad, "name", "it has no name", b""),
        size: unsigned(column(2)?).or_note(&mut bad, "size", BAD_SIZE, 0),
        mtime: mtime_of(column(3)?).or_note(&mut bad, "mtime", BAD_MTIME, Mtime::MIN),
        md5: md5_of(column(4)?).or_note(&mut bad, "md5", BAD_MD5, None),
        volume: volume_of(column(5)?).or_note(&mut bad, "tar", BAD_VOLUME, VolumeId::plain(0)),
        offset: unsigned(column(6)?).or_note(&mut bad, "offset", BAD_OFFSET, 0),
    };
    Ok((row, bad))
}

/// Reads one row of [`COLUMNS`], with its real name.
pub(crate) fn meet<'a>(
    id: i64,
    row: &'a rusqlite::Row<'_>,
    names: &'a mut RealNames<'_>,
    path: &Path,
) -> Result<Met<'a>, IndexError> {
    let (mut row, bad) = decode(row, RowId(id), path)?;
    let (name, bad_name) = names.of(row.id, row.name)?;
    row.name = name;
    // A bad name first: then the row is not found by it.
    Ok(match bad_name.or(bad) {
        None => Met::Row(row),
        Some(bad) => Met::Bad(row, bad),
    })
}

/// A value that may be invalid.
trait OrNote<T> {
    /// Returns the value, or `instead` if there is none, and notes what is wrong then.
    fn or_note(
        self,
        bad: &mut Option<BadValue>,
        column: &'static str,
        why: &'static str,
        instead: T,
    ) -> T;
}

impl<T> OrNote<T> for Option<T> {
    fn or_note(
        self,
        bad: &mut Option<BadValue>,
        column: &'static str,
        why: &'static str,
        instead: T,
    ) -> T {
        self.unwrap_or_else(|| {
            bad.get_or_insert(BadValue::new(column, why));
            instead
        })
    }
}

pub(crate) const BAD_ID: &str = "its id is out of range";
pub(crate) const BAD_SIZE: &str = "its size is not a number of bytes";
pub(crate) const BAD_MTIME: &str = "its mtime is not a time of the form `YYYY-MM-DD HH:MM:SS`";
pub(crate) const BAD_MD5: &str = "its md5 is not 32 hexadecimal digits";
pub(crate) const BAD_VOLUME: &str = "its tar is not the name of a volume";
pub(crate) const BAD_OFFSET: &str = "its offset is not a number of bytes";

pub(crate) fn bytes(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    }
}

pub(crate) fn signed(number: u64, field: &'static str, path: &Path) -> Result<i64, IndexError> {
    i64::try_from(number).map_err(|_too_large| IndexError::TooLarge {
        path: path.to_owned(),
        field,
    })
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

pub(crate) fn volume_of(value: ValueRef<'_>) -> Option<VolumeId> {
    VolumeId::from_name(bytes(value)?)
}

/// The outer option is whether the value makes sense, the inner one whether there is a sum.
#[expect(
    clippy::option_option,
    reason = "absent and wrong are different answers"
)]
pub(crate) fn md5_of(value: ValueRef<'_>) -> Option<Option<[u8; 16]>> {
    if value == ValueRef::Null {
        return Some(None);
    }
    let digits: &[u8; 32] = bytes(value)?.try_into().ok()?;
    let mut md5 = [0; 16];
    let mut seen = 0;
    for (byte, pair) in md5.iter_mut().zip(digits.as_chunks().0) {
        let [high, low] = pair.map(|digit| HEX_DIGITS[usize::from(digit)]);
        seen |= high | low;
        *byte = high << 4 | low;
    }
    (seen < 16).then_some(Some(md5))
}

/// What each byte is as a hexadecimal digit; more than 15 for those that are none.
const HEX_DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut digit = 0_u8;
    while digit < 16 {
        digits[b"0123456789abcdef"[digit as usize] as usize] = digit;
        digits[b"0123456789ABCDEF"[digit as usize] as usize] = digit;
        digit += 1;
    }
    digits
};
