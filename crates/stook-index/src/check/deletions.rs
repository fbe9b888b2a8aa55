//! What runs found gone: each had been archived before.

use std::collections::HashMap;

use rusqlite::types::ValueRef;

use super::{Check, bad_name, text};
use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::name::{NameHash, NameHasher, escape_name};
use crate::names::Source;
use crate::row::BadValue;
use crate::runs::BAD_RUN;
use crate::types::{RowId, Run};

const TABLE: &str = "stook_deleted";

/// The names that runs found gone, by their hashes, until they are met in `files`.
pub(crate) struct Deletions {
    hasher: NameHasher,
    /// Ascending by hash.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: NameHash,
    row: i64,
    last_file: i64,
    is_met: bool,
}

impl Default for Deletions {
    fn default() -> Self {
        Self {
            hasher: NameHasher::new(),
            entries: Vec::new(),
        }
    }
}

impl Deletions {
    pub(crate) fn add(&mut self, row: i64, name: &[u8], last_file: i64) {
        self.entries.push(Entry {
            hash: self.hasher.hash(name),
            row,
            last_file,
            is_met: false,
        });
    }

    /// Must follow the last [`Deletions::add`].
    pub(crate) fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|entry| entry.hash);
    }

    /// A row of `files` has this name.
    pub(crate) fn mark(&mut self, name: &[u8], id: i64) {
        if self.entries.is_empty() {
            return;
        }
        let hash = self.hasher.hash(name);
        let first = self.entries.partition_point(|entry| entry.hash < hash);
        for entry in &mut self.entries[first..] {
            if entry.hash != hash {
                break;
            }
            entry.is_met |= id <= entry.last_file;
        }
    }

    /// Returns the rows of `stook_deleted` whose name a row of `files` has.
    pub(crate) fn met(&self) -> impl Iterator<Item = i64> + '_ {
        let met = self.entries.iter().filter(|entry| entry.is_met);
        met.map(|entry| entry.row)
    }

    /// Returns the rows of `stook_deleted` whose name no row of `files` has.
    pub(crate) fn unmet(&self) -> impl Iterator<Item = i64> + '_ {
        let unmet = self.entries.iter().filter(|entry| !entry.is_met);
        unmet.map(|entry| entry.row)
    }
}

impl Check<'_> {
    pub(super) fn deletions(&mut self, runs: &[Run]) -> Result<Deletions, IndexError> {
        let mut deletions = Deletions::default();
        let last_files: HashMap<i64, Option<RowId>> =
            runs.iter().map(|run| (run.id.0, run.last_file)).collect();
        self.each(TABLE, "rowid, run, name, raw", |check, id, row| {
            let column = |index| row.get_ref(index).map_err(check.index.fault(READ));
            let (run, name, raw) = (column(1)?, column(2)?, column(3)?);
            let last_file = match run {
                ValueRef::Integer(number) => last_files.get(&number),
                _ => None,
            };
            let real = real_name(name, raw);
            check.names.note(Source::Deleted, id, real.ok());
            if let Err(bad) = real {
                check.bad_value(TABLE, id, bad);
            }
            let Some(last_file) = last_file else {
                check.bad_value(TABLE, id, BadValue::new("run", BAD_RUN));
                return Ok(());
            };
            match (real, last_file) {
                (Ok(real), Some(last)) => deletions.add(id, real, last.0),
                (Ok(_), None) => {
                    let what = "its run has not finished";
                    check.tell(IndexDamage::value(TABLE, id, "run", what));
                }
                (Err(_), _) => {}
            }
            Ok(())
        })?;
        deletions.sort();
        Ok(deletions)
    }

    /// Tells deletions of names that had never been archived.
    pub(super) fn unmatched(&mut self, deletions: &Deletions) {
        if self.has_unknown_rows {
            return;
        }
        for row in deletions.unmet() {
            let what = "no row of `files` up to the end of its run has its name";
            self.tell(IndexDamage::value(TABLE, row, "name", what));
        }
    }
}

/// Returns the real bytes of a deleted name.
pub(super) fn real_name<'a>(name: ValueRef<'a>, raw: ValueRef<'a>) -> Result<&'a [u8], BadValue> {
    let bad = |column, why| Err(BadValue::new(column, why));
    let Some(name) = text(name) else {
        return bad("name", "its name is not text in UTF-8");
    };
    if let Some(why) = bad_name(name.as_bytes()) {
        return bad("name", why);
    }
    match raw {
        ValueRef::Null => Ok(name.as_bytes()),
        ValueRef::Blob(raw) if std::str::from_utf8(raw).is_err() && escape_name(raw) == name => {
            Ok(raw)
        }
        _ => bad("raw", "its raw is not what its name stands for"),
    }
}
