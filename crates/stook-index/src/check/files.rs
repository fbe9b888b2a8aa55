//! The rows of `files`, and the real names that belong to them.

use std::ops::ControlFlow;

use rusqlite::OptionalExtension;
use rusqlite::types::ValueRef;

use super::deletions::Deletions;
use super::{Check, bad_name, is_strict_md5, strict_time};
use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::name::escape_name;
use crate::names::Source;
use crate::row::{
    BAD_ID, BAD_MD5, BAD_MTIME, BAD_OFFSET, BAD_SIZE, BAD_VOLUME, BadValue, RealNames, bytes,
    decode, unsigned, volume_of,
};
use crate::rows::{COLUMNS, FIRST_STAGED_ID, RANGE};
use crate::scan::{Step, is_unreadable, scan_ids};
use crate::types::{RowId, RowRef};

impl Check<'_> {
    /// Marks the deletions whose names are found, and shows the rows that can be read.
    pub(super) fn files(
        &mut self,
        deletions: &mut Deletions,
        visit: &mut dyn FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, IndexError> {
        let index = self.index;
        let query = format!("{COLUMNS} {RANGE}");
        let prepared = index.connection.prepare(&query);
        let Some(mut statement) = self.value(prepared, Some("files"))? else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut names = RealNames::open(index)?;
        let mut flow = ControlFlow::Continue(());
        scan_ids(&index.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            let (id, row) = match step {
                Step::Row(id, row) => (id, row),
                Step::Unreadable(rows) => {
                    self.has_unknown_rows = true;
                    self.tell(IndexDamage::unreadable("files", &rows));
                    return Ok(ControlFlow::Continue(()));
                }
            };
            let (mut decoded, bad) = decode(row, RowId(id), &index.path)?;
            let (name, bad_real_name) = names.of(decoded.id, decoded.name)?;
            decoded.name = name;
            if let Some(bad) = bad_real_name {
                self.bad_value("files", id, bad);
            }
            let has_damage = self.file_row(id, row, decoded.name)?;
            deletions.mark(decoded.name, id);
            self.has_bad_rows |= bad.is_some();
            let name = (!decoded.name.is_empty()).then_some(decoded.name);
            self.names.note(Source::Files, id, name);
            if bad.or(bad_real_name).is_none() {
                self.volumes.entry(decoded.volume).or_insert(id);
                flow = visit(decoded);
            } else if !has_damage {
                // Nothing that the strict reading takes may be refused elsewhere.
                self.bad_value("files", id, bad.unwrap_or(UNKNOWN));
            }
            Ok(flow)
        })?;
        Ok(flow)
    }

    /// Tells every bad value of a row; returns whether there is one.
    fn file_row(
        &mut self,
        id: i64,
        row: &rusqlite::Row<'_>,
        real_name: &[u8],
    ) -> Result<bool, IndexError> {
        let column = |index| row.get_ref(index).map_err(self.index.fault(READ));
        let stored = column(1)?;
        let name = match stored {
            ValueRef::Text(name) if std::str::from_utf8(name).is_ok() => bad_name(name),
            ValueRef::Text(_) => Some("its name is not valid UTF-8"),
            _ => Some("it has no name"),
        };
        self.has_unknown_rows |= bytes(stored).is_none();
        let offset = unsigned(column(6)?);
        let values = [
            (
                "id",
                (!(1..FIRST_STAGED_ID).contains(&id)).then_some(BAD_ID),
            ),
            ("name", name),
            ("size", unsigned(column(2)?).is_none().then_some(BAD_SIZE)),
            (
                "mtime",
                strict_time(column(3)?).is_none().then_some(BAD_MTIME),
            ),
            ("md5", (!is_strict_md5(column(4)?)).then_some(BAD_MD5)),
            ("tar", volume_of(column(5)?).is_none().then_some(BAD_VOLUME)),
            ("offset", offset.is_none().then_some(BAD_OFFSET)),
            (
                "offset",
                offset
                    .is_some_and(|offset| !offset.is_multiple_of(512))
                    .then_some("its offset is not a multiple of 512"),
            ),
        ];
        let mut has_damage = false;
        for (column, why) in values {
            let Some(why) = why else { continue };
            has_damage = true;
            let name = (!real_name.is_empty()).then(|| real_name.to_vec());
            self.tell(IndexDamage {
                name,
                ..IndexDamage::value("files", id, column, why)
            });
        }
        Ok(has_damage)
    }

    /// Each real name must escape to the stored one.
    pub(super) fn raw_names(&mut self) -> Result<(), IndexError> {
        const TABLE: &str = "stook_raw_names";
        let lookup = self
            .index
            .connection
            .prepare("SELECT name FROM files WHERE id = ?1");
        let Some(mut lookup) = self.value(lookup, Some("files"))? else {
            return Ok(());
        };
        self.each(TABLE, "file, name", |check, id, row| {
            let raw = match row.get_ref(1).map_err(check.index.fault(READ))? {
                ValueRef::Blob(raw) if std::str::from_utf8(raw).is_err() => raw,
                _ => {
                    check.bad_value(TABLE, id, BAD_RAW);
                    return Ok(());
                }
            };
            let stored =
                lookup.query_row([id], |row| Ok(bytes(row.get_ref(0)?).map(<[u8]>::to_vec)));
            match stored.optional() {
                Ok(Some(Some(stored))) if stored == escape_name(raw).as_bytes() => {}
                Ok(Some(Some(_))) => check.bad_value(TABLE, id, OTHER_RAW),
                // A damage of `files`, which has been told.
                Ok(Some(None)) => {}
                Ok(None) if check.has_unknown_rows => {}
                Ok(None) => check.bad_value(TABLE, id, NO_FILE),
                Err(error) if is_unreadable(&error) => {}
                Err(error) => return Err(check.index.fault(READ)(error)),
            }
            Ok(())
        })
    }
}

const UNKNOWN: BadValue = BadValue::new("name", "it is invalid");
const BAD_RAW: BadValue = BadValue::new("name", "its name is not one outside UTF-8, in bytes");
const OTHER_RAW: BadValue =
    BadValue::new("name", "its name is not what the one in `files` stands for");
const NO_FILE: BadValue = BadValue::new("file", "there is no such row of `files`");
