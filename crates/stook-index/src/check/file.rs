//! The file as a whole: pages, header, tables.

use stook_sys::exists;

use super::{Check, Structure};
use crate::damage::{IndexDamage, IndexFault};
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::scan::is_unreadable;
use crate::schema::{self, ATTRIBUTES, FRAMES};

/// Messages of SQLite's check that are passed on; one damaged page may have hundreds.
const MESSAGES: usize = 100;

/// A column as SQLite describes it: name, type in lower case, and place in the primary key.
type Column = (&'static str, &'static str, i64);

/// The same, of a table that is there.
type FoundColumn = (String, String, i64);

/// The tables, and what each must be.
const TABLES: [(&str, &[Column]); 15] = [
    ("config", &[("arg", "text", 1), ("value", "text", 0)]),
    (
        "files",
        &[
            ("id", "integer", 1),
            ("name", "text", 0),
            ("size", "integer", 0),
            ("mtime", "timestamp", 0),
            ("md5", "text", 0),
            ("tar", "text", 0),
            ("offset", "integer", 0),
        ],
    ),
    (
        "tars",
        &[
            ("id", "integer", 1),
            ("name", "text", 0),
            ("size", "integer", 0),
            ("md5", "text", 0),
        ],
    ),
    ("stook_meta", &[("key", "text", 1), ("value", "", 0)]),
    (
        "stook_runs",
        &[
            ("id", "integer", 1),
            ("command", "text", 0),
            ("started", "text", 0),
            ("finished", "text", 0),
            ("first_file", "integer", 0),
            ("last_file", "integer", 0),
            ("failed", "integer", 0),
        ],
    ),
    (
        "stook_deleted",
        &[
            ("run", "integer", 0),
            ("name", "text", 0),
            ("raw", "blob", 0),
        ],
    ),
    (
        "stook_raw_names",
        &[("file", "integer", 1), ("name", "blob", 0)],
    ),
    (
        "stook_checks",
        &[
            ("volume", "text", 1),
            ("stamp", "text", 0),
            ("checked", "text", 0),
        ],
    ),
    (
        "stook_transfers",
        &[
            ("volume", "text", 1),
            ("size", "integer", 0),
            ("proof", "text", 0),
            ("version", "text", 0),
            ("sent", "text", 0),
        ],
    ),
    (
        "stook_name_segments",
        &[
            ("id", "integer", 1),
            ("source", "text", 0),
            ("first_row", "integer", 0),
            ("last_row", "integer", 0),
            ("entries", "integer", 0),
            ("first_part", "integer", 0),
            ("fences", "blob", 0),
            ("anchor", "integer", 0),
            ("checksum", "integer", 0),
        ],
    ),
    (
        "stook_name_parts",
        &[("id", "integer", 1), ("entries", "blob", 0)],
    ),
    (
        "stook_released",
        &[
            ("file", "integer", 1),
            ("name", "text", 0),
            ("raw", "blob", 0),
            ("volume", "integer", 0),
            ("offset", "integer", 0),
        ],
    ),
    (ATTRIBUTES, &BLOCKS),
    (FRAMES, &BLOCKS),
    (
        "stook_witnesses",
        &[
            ("name", "text", 1),
            ("first", "integer", 2),
            ("rows", "integer", 0),
            ("crc", "integer", 0),
        ],
    ),
];

const BLOCKS: [Column; 6] = [
    ("id", "integer", 1),
    ("volume", "integer", 0),
    ("first", "integer", 0),
    ("entries", "integer", 0),
    ("crc", "integer", 0),
    ("data", "blob", 0),
];

/// Those that the first write of stook makes, and that are all there if one is.
const MADE_TOGETHER: [&str; 5] = [
    "tars",
    "stook_meta",
    "stook_runs",
    "stook_deleted",
    "stook_raw_names",
];

/// Those that an index of format 2 has besides.
const OF_FORMAT_2: [&str; 7] = [
    "stook_checks",
    "stook_name_segments",
    "stook_name_parts",
    "stook_released",
    ATTRIBUTES,
    FRAMES,
    "stook_witnesses",
];

/// The check also prints headings, and `ok` if there is nothing to say.
fn is_fault(line: &&str) -> bool {
    *line != "ok" && !line.starts_with("***") && !line.is_empty()
}

fn integrity_fault(line: &str) -> IndexFault {
    IndexFault::Integrity(line.to_owned())
}

impl Index {
    /// Returns whether the pages of the index fit together: what a copy is asked that may be of two states.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// One pass over the file.
    pub fn structure(&self) -> Result<Structure, IndexError> {
        let query = "PRAGMA quick_check(1)";
        let answer = self
            .connection
            .query_row(query, [], |row| row.get::<_, String>(0));
        match answer {
            Ok(answer) if answer == "ok" => Ok(Structure::Sound),
            Err(error) if !is_unreadable(&error) => Err(self.fault(READ)(error)),
            _ => Ok(Structure::Damaged),
        }
    }
}

impl Check<'_> {
    /// What SQLite finds, and what the header says.
    pub(super) fn file(&mut self) -> Result<Structure, IndexError> {
        let structure = self.integrity()?;
        for (setting, expected) in [
            ("encoding", "UTF-8"),
            ("user_version", "0"),
            ("application_id", "0"),
            ("auto_vacuum", "0"),
        ] {
            let query = format!("SELECT cast({setting} AS text) FROM pragma_{setting}");
            let found = self
                .index
                .connection
                .query_row(&query, [], |row| row.get(0));
            let found: Option<String> = self.value(found, None)?;
            if let Some(found) = found.filter(|found| found != expected) {
                self.tell(IndexDamage::file(IndexFault::Setting {
                    setting,
                    found,
                    expected,
                }));
            }
        }
        self.length()?;
        Ok(structure)
    }

    fn integrity(&mut self) -> Result<Structure, IndexError> {
        let mut messages = Vec::new();
        let asked = self.index.connection.pragma(
            None,
            "integrity_check",
            i64::try_from(MESSAGES).unwrap_or(1),
            |row| {
                let text: String = row.get(0)?;
                messages.extend(text.lines().filter(is_fault).map(integrity_fault));
                Ok(())
            },
        );
        match asked {
            Ok(()) => {}
            Err(error) if is_unreadable(&error) => messages.push(error.into()),
            Err(error) => return Err(self.index.fault(READ)(error)),
        }
        if messages.is_empty() {
            return Ok(Structure::Sound);
        }
        let more = messages.len() >= MESSAGES;
        for message in messages.into_iter().take(MESSAGES) {
            self.tell(IndexDamage::file(message));
        }
        if more {
            self.tell(IndexDamage::file("SQLite's check was broken off here"));
        }
        Ok(Structure::Damaged)
    }

    fn length(&mut self) -> Result<(), IndexError> {
        let query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let expected = self.index.connection.query_row(query, [], |row| row.get(0));
        let Some(expected): Option<i64> = self.value(expected, None)? else {
            return Ok(());
        };
        // A write may have come in between.
        let version = self.index.data_version()?;
        let found = exists(self.index.file())?.map_or(0, |metadata| metadata.size);
        if found != expected.unsigned_abs() && version == self.index.data_version()? {
            self.tell(IndexDamage::file(IndexFault::Length { found, expected }));
        }
        Ok(())
    }

    /// Returns the tables that are there and are what they must be. Other ones are nobody's business.
    pub(super) fn tables(&mut self) -> Result<Vec<&'static str>, IndexError> {
        self.schema_rows()?;
        let has_stooks = self.has_any_of_stook()?;
        let format = schema::format(&self.index.connection, &self.index.path);
        let is_of_format_2 = matches!(format, Ok(Some(2..)));
        let mut sound = Vec::new();
        for (table, expected) in TABLES {
            let Some(columns) = self.columns(table)? else {
                continue;
            };
            let is_same = columns.len() == expected.len()
                && columns.iter().zip(expected).all(|(found, expected)| {
                    (found.0.as_str(), found.1.as_str(), found.2) == *expected
                });
            if is_same {
                sound.push(table);
            } else if !columns.is_empty() {
                let what = "its columns are not those of an archive";
                self.tell(IndexDamage::table(table, what));
            } else if matches!(table, "files" | "config")
                || (has_stooks && MADE_TOGETHER.contains(&table))
                || (is_of_format_2 && OF_FORMAT_2.contains(&table))
            {
                self.tell(IndexDamage::table(table, "it is missing"));
            }
        }
        Ok(sound)
    }

    fn has_any_of_stook(&mut self) -> Result<bool, IndexError> {
        let query = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'stook\\_%' ESCAPE '\\'";
        let found = self.index.connection.query_row(query, [], |row| row.get(0));
        let found: Option<i64> = self.value(found, None)?;
        Ok(found.unwrap_or(0) > 0)
    }

    fn columns(&mut self, table: &'static str) -> Result<Option<Vec<FoundColumn>>, IndexError> {
        let query = "SELECT name, lower(type), pk FROM pragma_table_info(?1) ORDER BY cid";
        let read = || {
            let mut statement = self.index.connection.prepare(query)?;
            let rows =
                statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let columns = read();
        self.value(columns, Some(table))
    }

    /// Each table must be listed under the name that its definition has.
    fn schema_rows(&mut self) -> Result<(), IndexError> {
        self.each(
            "sqlite_master",
            "rowid, type, name, tbl_name",
            |check, id, row| {
                let column = |index| row.get_ref(index).map_err(check.index.fault(READ));
                let (kind, name, table) = (column(1)?, column(2)?, column(3)?);
                let (kind, name, table) =
                    (super::text(kind), super::text(name), super::text(table));
                let is_known = matches!(kind, Some("table" | "index" | "view" | "trigger"));
                let is_defined = match (kind, name) {
                    (Some("table"), Some(name)) => Some(name) == table && check.is_defined(name)?,
                    (_, name) => name.is_some(),
                };
                if !is_known || !is_defined {
                    let what = "it does not fit the definition of its table";
                    check.tell(IndexDamage::value("sqlite_master", id, "name", what));
                }
                Ok(())
            },
        )
    }

    fn is_defined(&mut self, table: &str) -> Result<bool, IndexError> {
        let query = "SELECT count(*) FROM pragma_table_info(?1)";
        let found = self
            .index
            .connection
            .query_row(query, [table], |row| row.get(0));
        let found: Option<i64> = self.value(found, None)?;
        Ok(found.unwrap_or(0) > 0)
    }
}
