//! What in an index is not as it was written.
//!
//! A damage is no error: whatever else can be read is still delivered. Each names table, row and
//! column as far as they are known, and the entry that the row is about, if its name can be read.

use std::fmt;
use std::ops::RangeInclusive;

use stook_sys::display_bytes;

/// Something in an index that no archive holds, or that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub what: String,
}

impl IndexDamage {
    /// Of the file as a whole.
    pub(crate) fn file(what: impl Into<String>) -> Self {
        Self {
            table: None,
            rows: None,
            column: None,
            name: None,
            what: what.into(),
        }
    }

    /// Of a table as a whole.
    pub(crate) fn table(table: &'static str, what: impl Into<String>) -> Self {
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
        what: impl Into<String>,
    ) -> Self {
        Self {
            rows: Some(row..=row),
            column: Some(column),
            ..Self::table(table, what)
        }
    }

    /// Of rows that SQLite cannot read.
    pub(crate) fn unreadable(table: &'static str, rows: &UnreadableRows) -> Self {
        let is_one = rows.ids.start() == rows.ids.end();
        let subject = if is_one { "it" } else { "they" };
        Self {
            rows: Some(rows.ids.clone()),
            ..Self::table(table, format!("{subject} cannot be read: {}", rows.cause))
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreadableRows {
    /// Where rows may be; ends with the greatest number if nothing behind can be read either.
    pub(crate) ids: RangeInclusive<i64>,
    /// SQLite's own words.
    pub(crate) cause: String,
}
