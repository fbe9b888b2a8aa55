//! All that can be told about an index without its volumes.
//!
//! ```text
//!   the file      SQLite's own check, size, settings of the header, tables and their columns
//!   each row      its types and forms, as docs/format.md has them
//!   rows against  a run ends where a volume ends; what was deleted had been archived; an escaped
//!   each other    name is that of its real bytes; a volume that a run wrote is in `tars`
//!   CRCs          of groups of rows of the tables of stook, and of `config`
//! ```
//! Everything is read once, in bounded memory: 48 bytes for each deletion, and a few for each volume
//! and each run. A flipped bit of `files` or `tars` that leaves a well-formed value which nothing else repeats is not
//! seen here: the volumes tell most of these, docs/format.md lists the rest.

mod blocks;
pub(crate) mod deletions;
mod file;
mod files;
mod names;
mod records;
mod releases;
mod runs;
mod witnesses;

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use rusqlite::types::ValueRef;

use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::mtime::Mtime;
use crate::row::{BadValue, md5_of, mtime_of};
use crate::scan::{Step, is_unreadable, scan_ids};
use crate::schema::{ATTRIBUTES, FRAMES};
use crate::types::{RowRef, VolumeId};
use names::ExpectedNames;

/// Whether the pages of an index fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structure {
    /// SQLite finds nothing wrong with them.
    Sound,
    /// They do not: a write might make it worse.
    Damaged,
}

impl Index {
    /// Checks the whole index, tells what is damaged, and shows every row of `files` that can be read, in the
    /// order they were archived, until `visit` breaks off.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// Two passes over the file, one of them SQLite's; 48 bytes for every deletion.
    pub fn check(
        &self,
        visit: &mut dyn FnMut(RowRef<'_>) -> ControlFlow<()>,
        damaged: &mut dyn FnMut(IndexDamage),
    ) -> Result<Structure, IndexError> {
        let _locked = self.lock_if_small()?;
        let mut check = Check {
            index: self,
            damaged,
            volumes: BTreeMap::new(),
            has_unknown_rows: false,
            names: ExpectedNames::default(),
            has_bad_rows: false,
            told: Vec::new(),
        };
        let structure = check.file()?;
        let tables = check.tables()?;
        if !tables.contains(&"files") {
            return Ok(Structure::Damaged);
        }
        let has_names = NAME_TABLES.iter().all(|table| tables.contains(table));
        if has_names {
            check.names = check.name_segments()?;
        }
        if tables.contains(&"config") {
            check.config()?;
        }
        let runs = if tables.contains(&"stook_runs") {
            check.runs()?
        } else {
            Vec::new()
        };
        let mut deletions = if tables.contains(&"stook_deleted") {
            check.deletions(&runs)?
        } else {
            deletions::Deletions::default()
        };
        if check.files(&mut deletions, visit)?.is_break() {
            return Ok(structure);
        }
        check.unmatched(&deletions);
        check.run_ends(&runs)?;
        if tables.contains(&"tars") {
            check.tars(&runs)?;
        }
        if tables.contains(&"stook_meta") {
            check.meta()?;
        }
        if tables.contains(&"stook_raw_names") {
            check.raw_names()?;
        }
        if tables.contains(&"stook_checks") {
            check.checks()?;
        }
        if tables.contains(&"stook_transfers") {
            check.transfers()?;
        }
        if tables.contains(&"stook_released") {
            check.releases()?;
        }
        if has_names {
            let expected = std::mem::take(&mut check.names);
            check.names(&expected)?;
        }
        if tables.contains(&ATTRIBUTES) {
            check.attributes()?;
        }
        if tables.contains(&FRAMES) {
            check.frames()?;
        }
        // Last, so that a more precise finding about a row is reported instead.
        if tables.contains(&"stook_witnesses") {
            check.witnesses(&tables)?;
        }
        Ok(structure)
    }
}

/// Damages that are remembered; past them, a group may be told beside its rows.
const MOST_TOLD: usize = 10_000;

/// A check that is under way.
struct Check<'a> {
    index: &'a Index,
    damaged: &'a mut dyn FnMut(IndexDamage),
    /// The volumes that rows of `files` name, with the first id in each.
    volumes: BTreeMap<VolumeId, i64>,
    /// Rows of `files` were unreadable, or had no name: what seems missing may be among them.
    has_unknown_rows: bool,
    /// What the segments of name lookup should have.
    names: ExpectedNames,
    /// Rows of `files` had a value that made no sense: `volumes` may lack theirs.
    has_bad_rows: bool,
    /// Rows of which a damage was told, of the tables that have witnesses.
    told: Vec<(&'static str, RangeInclusive<i64>)>,
}

const NAME_TABLES: [&str; 2] = ["stook_name_segments", "stook_name_parts"];

impl Check<'_> {
    fn tell(&mut self, damage: IndexDamage) {
        if let (Some(table), Some(rows)) = (damage.table, &damage.rows)
            && self.told.len() < MOST_TOLD
            && table != "files"
        {
            self.told.push((table, rows.clone()));
        }
        (self.damaged)(damage);
    }

    fn bad_value(&mut self, table: &'static str, row: i64, bad: BadValue) {
        self.tell(IndexDamage::value(table, row, bad.column, bad.why));
    }

    /// Shows the rows of a table by their row ids. The first of the columns must be that.
    fn each(
        &mut self,
        table: &'static str,
        columns: &str,
        mut visit: impl FnMut(&mut Self, i64, &rusqlite::Row<'_>) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let index = self.index;
        let query = format!(
            "SELECT {columns} FROM {table} NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid"
        );
        let mut statement = match index.connection.prepare(&query) {
            Ok(statement) => statement,
            Err(error) if is_unreadable(&error) => {
                self.tell(IndexDamage::table(table, error));
                return Ok(());
            }
            Err(error) => return Err(index.fault(READ)(error)),
        };
        scan_ids(&index.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            match step {
                Step::Row(id, row) => visit(self, id, row)?,
                Step::Unreadable(rows) => self.tell(IndexDamage::unreadable(table, &rows)),
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Returns the value of a query for one; `None`, and a damage, if it lies where nothing can be read.
    fn value<T>(
        &mut self,
        result: rusqlite::Result<T>,
        table: Option<&'static str>,
    ) -> Result<Option<T>, IndexError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_unreadable(&error) => {
                let damage = IndexDamage {
                    table,
                    ..IndexDamage::file(error)
                };
                self.tell(damage);
                Ok(None)
            }
            Err(error) => Err(self.index.fault(READ)(error)),
        }
    }
}

/// Returns the text of a value that is text, and valid UTF-8.
fn text(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// Returns the time, if it is spelled as Python and stook spell it.
fn strict_time(value: ValueRef<'_>) -> Option<Mtime> {
    let ValueRef::Text(bytes) = value else {
        return None;
    };
    let time = mtime_of(value)?;
    let is_usual = match bytes.get(19..) {
        Some([]) => true,
        Some(fraction) => fraction.len() == 7 && fraction != b".000000",
        None => false,
    };
    is_usual.then_some(time)
}

/// Returns true for an MD5 spelled with lower-case digits, and for none.
fn is_strict_md5(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Null => true,
        ValueRef::Text(digits) => {
            md5_of(value).is_some() && !digits.iter().any(u8::is_ascii_uppercase)
        }
        _ => false,
    }
}

/// Returns what is wrong with a path in the tree.
fn bad_name(name: &[u8]) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it has no name");
    }
    if name.contains(&0) {
        return Some("its name has a zero byte");
    }
    let is_odd = |part: &[u8]| matches!(part, b"" | b"." | b"..");
    name.split(|&byte| byte == b'/')
        .any(is_odd)
        .then_some("its name is no plain path below the tree")
}
