//! The tables: zstash's three, word for word, and stook's own.
//!
//! ```text
//! config files tars        zstash's; never another column, zstash inserts by position
//! stook_meta               format = 2; path = real bytes of config.path where not UTF-8; store = where the volumes lie,
//!                          store_index = version of the index there; zstd = level at which new volumes are compressed
//! stook_runs               one row a run; the row ids it began and ended at
//! stook_deleted            names found gone by a run; hides rows up to that run's last_file
//! stook_checks             volumes that passed their last check, with what told their state then
//! stook_transfers          volumes that the store holds, and how that is known
//! stook_name_segments      sorted hashes of names: `names` has their form
//! stook_name_parts         pieces of these
//! stook_released           members removed from the tree because the archive holds them
//! stook_raw_names          files.id -> real bytes, for names that are not UTF-8
//! stook_attributes         what headers say of members: blocks by volume and offset
//! stook_frames             where the frames of compressed volumes lie: blocks by volume and offset
//! stook_witnesses          a CRC for each group of rows of the tables of stook, and of `config`
//! ```
//! Tables of stook are made with the first write to an archive, so that reading one changes
//! nothing. `tars` is missing from archives older than zstash 1.1.0 and made then, too.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::damage::IndexDamage;
use crate::error::{IndexError, Missing, READ, WRITE};
use crate::trust::Columns;
use crate::types::FORMAT;
use crate::{trust, witness};

/// Blocks of what headers say of members.
pub(crate) const ATTRIBUTES: &str = "stook_attributes";

/// Blocks of where the frames of compressed volumes lie.
pub(crate) const FRAMES: &str = "stook_frames";

const ZSTASH_TABLES: &str = "
CREATE TABLE config (
  arg text primary key,
  value text
);
CREATE TABLE files (
  id integer primary key,
  name text,
  size integer,
  mtime timestamp,
  md5 text,
  tar text,
  offset integer
);
";

const ADDED_TABLES: &str = "
CREATE TABLE IF NOT EXISTS tars (
id integer primary key,
name text,
size integer,
md5 text
);
CREATE TABLE IF NOT EXISTS stook_meta (key text primary key, value);
CREATE TABLE IF NOT EXISTS stook_runs (
  id integer primary key,
  command text,
  started text,
  finished text,
  first_file integer,
  last_file integer,
  failed integer
);
CREATE TABLE IF NOT EXISTS stook_deleted (run integer, name text, raw blob);
CREATE TABLE IF NOT EXISTS stook_raw_names (file integer primary key, name blob);
CREATE TABLE IF NOT EXISTS stook_checks (volume text primary key, stamp text, checked text);
CREATE TABLE IF NOT EXISTS stook_name_segments (
  id integer primary key,
  source text,
  first_row integer,
  last_row integer,
  entries integer,
  first_part integer,
  fences blob,
  anchor integer,
  checksum integer
);
CREATE TABLE IF NOT EXISTS stook_name_parts (id integer primary key, entries blob);
CREATE TABLE IF NOT EXISTS stook_released (
  file integer primary key,
  name text,
  raw blob,
  volume integer,
  offset integer
);
CREATE TABLE IF NOT EXISTS stook_witnesses (
  name text,
  first integer,
  rows integer,
  crc integer,
  primary key (name, first)
) without rowid;
CREATE TABLE IF NOT EXISTS stook_transfers (
  volume text primary key,
  size integer,
  proof text,
  version text,
  sent text
);
INSERT OR IGNORE INTO stook_meta VALUES ('format', 2);
UPDATE stook_meta SET value = 2 WHERE key = 'format' AND value = 1;
";

/// The columns of the tables of blocks.
pub(crate) const BLOCK_TABLE: &str = "(
  id integer primary key,
  volume integer,
  first integer,
  entries integer,
  crc integer,
  data blob,
  unique (volume, first)
)";

/// Makes all tables in an empty database.
pub(crate) fn create_tables(connection: &Connection, path: &Path) -> Result<(), IndexError> {
    connection
        .execute_batch(ZSTASH_TABLES)
        .map_err(|error| IndexError::sqlite(WRITE, path, error))?;
    add_missing_tables(connection, path).map(drop)
}

/// Makes the tables that an archive of zstash or of an older stook may lack, and says that it has them. Returns true if it
/// was one of those: what is there has no witnesses then.
pub(crate) fn add_missing_tables(connection: &Connection, path: &Path) -> Result<bool, IndexError> {
    let format = format(connection, path)?;
    require_sound_format(connection, path, format)?;
    let blocks = [ATTRIBUTES, FRAMES]
        .map(|table| format!("CREATE TABLE IF NOT EXISTS {table} {BLOCK_TABLE};"))
        .concat();
    connection
        .execute_batch(&format!("{ADDED_TABLES}{blocks}"))
        .map_err(|error| IndexError::sqlite(WRITE, path, error))?;
    Ok(format.is_none_or(|format| format < FORMAT))
}

/// Returns the format that an index says it has; `None` if stook has never written to it.
pub(crate) fn format(connection: &Connection, path: &Path) -> Result<Option<i64>, IndexError> {
    if !has_table(connection, path, "stook_meta")? {
        return Ok(None);
    }
    written_format(connection, path)
}

fn written_format(connection: &Connection, path: &Path) -> Result<Option<i64>, IndexError> {
    connection
        .query_row(
            "SELECT cast(value AS integer) FROM stook_meta WHERE key = 'format' AND value IS NOT NULL",
            [],
            |row| row.get(0),
        )
        .optional()
        .map_err(|error| IndexError::sqlite(READ, path, error))
}

/// Returns whether the database has a table of this name.
pub(crate) fn has_table(
    connection: &Connection,
    path: &Path,
    table: &str,
) -> Result<bool, IndexError> {
    connection
        .query_row(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1",
            [table],
            |_| Ok(()),
        )
        .optional()
        .map(|found| found.is_some())
        .map_err(|error| IndexError::sqlite(READ, path, error))
}

/// Returns true for the tables of zstash and of stook; names in small letters, as SQLite does not tell them apart.
fn is_ours(table: &str) -> bool {
    matches!(table, "config" | "files" | "tars") || table.starts_with("stook_")
}

/// Checks that this is an index, of a format this program knows.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), IndexError> {
    // First: nothing of a table that is none may be read.
    let tables = trust::require_plain_tables(connection, path, is_ours)?;
    let require = |table, columns| require_columns(&tables, path, table, columns);
    require(
        "files",
        &["id", "name", "size", "mtime", "md5", "tar", "offset"],
    )?;
    require("config", &["arg", "value"])?;
    if tables.contains_key("tars") {
        require("tars", &["id", "name", "size", "md5"])?;
    }
    if !tables.contains_key("stook_meta") {
        return Ok(());
    }
    let format = written_format(connection, path)?.unwrap_or(FORMAT);
    if format > FORMAT && !is_damaged_format(connection, path)? {
        return Err(IndexError::Newer {
            path: path.to_owned(),
            format,
        });
    }
    require(
        "stook_runs",
        &[
            "id",
            "command",
            "started",
            "finished",
            "first_file",
            "last_file",
            "failed",
        ],
    )?;
    require("stook_deleted", &["run", "name", "raw"])?;
    require("stook_raw_names", &["file", "name"])
}

/// Returns true if the CRC of `stook_meta` says that its rows were written with the format of this program, whatever they say
/// now. What can be read is read then, and `check` tells of the damage.
fn is_damaged_format(connection: &Connection, path: &Path) -> Result<bool, IndexError> {
    let fault = |error| IndexError::sqlite(READ, path, error);
    let columns = column_names(connection, "stook_witnesses").map_err(fault)?;
    if columns != ["name", "first", "rows", "crc"] {
        return Ok(false);
    }
    witness::was_format(connection, FORMAT).map_err(fault)
}

/// Requires that nothing is written to an index whose format is damaged: one that seems older would get new witnesses, for
/// damaged rows as well.
fn require_sound_format(
    connection: &Connection,
    path: &Path,
    format: Option<i64>,
) -> Result<(), IndexError> {
    let is_sound = match format {
        Some(FORMAT) => true,
        Some(format) if format > FORMAT => false,
        _ => !has_table(connection, path, "stook_meta")? || !is_damaged_format(connection, path)?,
    };
    if is_sound {
        return Ok(());
    }
    let damage = IndexDamage::table("stook_meta", "its `format` is not what was written");
    Err(IndexError::damaged(path, &damage))
}

/// Requires that a table is there, with these columns.
pub(crate) fn require_columns(
    tables: &Columns,
    path: &Path,
    table: &'static str,
    columns: &[&'static str],
) -> Result<(), IndexError> {
    let found = tables.get(table).map_or(&[][..], Vec::as_slice);
    let missing = match columns
        .iter()
        .find(|column| !found.iter().any(|name| name == *column))
    {
        None => return Ok(()),
        Some(_) if found.is_empty() => Missing::Table(table),
        Some(&column) => Missing::Column { column, table },
    };
    Err(IndexError::NotAnIndex {
        path: path.to_owned(),
        missing,
    })
}

fn column_names(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}
