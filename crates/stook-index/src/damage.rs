//! What in an index is not as it was written.
//!
//! A damage is no error: whatever else can be read is still delivered. Each names table, row and
//! column as far as they are known, and the entry that the row is about, if its name can be read.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use stook_sys::display_bytes;

use crate::types::VolumeId;

/// What is wrong with a part of an index.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IndexFault {
    /// A value, a row or a table is not one of an archive.
    #[error("{0}")]
    Wrong(&'static str),
    /// SQLite cannot read it.
    #[error("{0}")]
    Sqlite(#[source] Arc<rusqlite::Error>),
    /// What SQLite's own check says of the file, word for word.
    #[error("{0}")]
    Integrity(String),
    /// One row lies on a page that cannot be read.
    #[error("it cannot be read: {0}")]
    UnreadableRow(#[source] Box<IndexFault>),
    /// Several rows lie on pages that cannot be read.
    #[error("they cannot be read: {0}")]
    UnreadableRows(#[source] Box<IndexFault>),
    /// A setting of the database is not that of an archive.
    #[error("its `{setting}` is {found} instead of {expected}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// What it is.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
    /// The file is longer or shorter than its pages.
    #[error("it has {found} bytes, its pages take {expected}")]
    Length {
        /// Bytes of the file.
        found: u64,
        /// Bytes of the pages.
        expected: i64,
    },
    /// A setting of the archive is missing.
    #[error("`{0}` is missing")]
    NoSetting(&'static str),
    /// A setting of the archive has an invalid value.
    #[error("its value is none of `{0}`")]
    BadSetting(&'static str),
    /// A volume has members, but no row in `tars`.
    #[error("`{0}` is missing, and `files` has members in it")]
    NoVolume(VolumeId),
    /// The first or the last row of a run is not where one may be.
    #[error("{subject} {what}")]
    RunRange {
        /// Which row.
        subject: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The hashes of names are not those of the rows that they should cover.
    #[error("its entries are not the names of rows {} to {} of `{table}`", rows.start(), rows.end())]
    OtherNames {
        /// Whose rows.
        table: &'static str,
        /// Which of them.
        rows: RangeInclusive<i64>,
    },
    /// So many rows could be read once, and then not.
    #[error("{0} rows that could be read a moment ago cannot be read now")]
    RowsGone(u64),
}

impl From<&'static str> for IndexFault {
    fn from(what: &'static str) -> Self {
        Self::Wrong(what)
    }
}

impl From<rusqlite::Error> for IndexFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

/// Something in an index that no archive holds, or that cannot be read.
#[derive(Debug, Clone)]
pub struct IndexDamage {
    /// The table; `None` if it is about the file as a whole.
    pub table: Option<&'static str>,
    /// First and last id of the rows, the same for a single one; `None` if it is about no row.
    pub rows: Option<RangeInclusive<i64>>,
    /// The column, if it is about one.
    pub column: Option<&'static str>,
    /// Path in the tree of the entry, if the row has a name that can be read.
    pub name: Option<Vec<u8>>,
    /// What is wrong.
    pub what: IndexFault,
}

impl IndexDamage {
    /// Of the file as a whole.
    pub(crate) fn file(what: impl Into<IndexFault>) -> Self {
        Self {
            table: None,
            rows: None,
            column: None,
            name: None,
            what: what.into(),
        }
    }

    /// Of a table as a whole.
    pub(crate) fn table(table: &'static str, what: impl Into<IndexFault>) -> Self {
        Self {
            table: Some(table),
            ..Self::file(what)
        }
    }

    /// Of one value.
    pub(crate) fn value(
        table: &'static str,
        row: i64,
        column: &'static str,
        what: impl Into<IndexFault>,
    ) -> Self {
        Self {
            rows: Some(row..=row),
            column: Some(column),
            ..Self::table(table, what)
        }
    }

    /// Of rows that SQLite cannot read.
    pub(crate) fn unreadable(table: &'static str, rows: &UnreadableRows) -> Self {
        let cause = Box::new(rows.cause.clone());
        let what = if rows.ids.start() == rows.ids.end() {
            IndexFault::UnreadableRow(cause)
        } else {
            IndexFault::UnreadableRows(cause)
        };
        Self {
            rows: Some(rows.ids.clone()),
            ..Self::table(table, what)
        }
    }

    /// Returns true if it is about rows that SQLite cannot read, not about a value in one.
    pub fn is_page(&self) -> bool {
        self.rows.is_some() && self.column.is_none()
    }

    /// Returns where it is, without the name of the file: `row 2 of files`.
    pub fn place(&self) -> Option<String> {
        let table = self.table?;
        let Some(rows) = &self.rows else {
            return Some(format!("table `{table}`"));
        };
        let (first, last) = (rows.start(), rows.end());
        Some(if first == last {
            format!("row {first} of `{table}`")
        } else if *last == i64::MAX {
            format!("rows from {first} of `{table}`")
        } else {
            format!("rows {first} to {last} of `{table}`")
        })
    }
}

impl fmt::Display for IndexDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index.db")?;
        if let Some(place) = self.place() {
            write!(f, ", {place}")?;
        }
        if let Some(name) = &self.name {
            write!(f, ", `{}`", display_bytes(name))?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Rows that lie on a damaged page.
#[derive(Debug, Clone)]
pub(crate) struct UnreadableRows {
    /// Where rows may be; ends with the greatest number if nothing behind can be read either.
    pub(crate) ids: RangeInclusive<i64>,
    /// Why they cannot be read.
    pub(crate) cause: IndexFault,
}
