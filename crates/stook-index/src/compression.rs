//! Whether new volumes of an archive are compressed, and how hard: one row of `stook_meta`, written when the archive is made.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};

use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::index::Index;

/// The key of the level.
const KEY: &str = "zstd";

/// What zstd knows.
const LEVELS: std::ops::RangeInclusive<i64> = 1..=22;

/// Returns true for the key of the level.
pub(crate) fn is_key(key: &str) -> bool {
    key == KEY
}

/// Returns the level that a value stands for.
pub(crate) fn level_of(value: ValueRef<'_>) -> Option<u8> {
    match value {
        ValueRef::Integer(level) if LEVELS.contains(&level) => u8::try_from(level).ok(),
        _ => None,
    }
}

/// Has new volumes compressed.
pub(crate) fn insert_level(connection: &Connection, level: u8) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO stook_meta VALUES (?1, ?2)", (KEY, level))?;
    Ok(())
}

impl Index {
    /// Returns the level of zstd at which new volumes are compressed; `None` if they are plain tar files.
    ///
    /// # Errors
    /// `Damaged` if there is no such level; `Sqlite` if the file cannot be read.
    pub fn zstd_level(&self) -> Result<Option<u8>, IndexError> {
        if !self.has_table("stook_meta")? {
            return Ok(None);
        }
        let query = "SELECT value FROM stook_meta WHERE key = ?1";
        let found = self
            .connection
            .query_row(query, [KEY], |row| Ok(level_of(row.get_ref(0)?)))
            .optional()
            .map_err(self.fault(READ))?;
        match found {
            Some(None) => {
                let damage = IndexDamage::table("stook_meta", BAD_LEVEL);
                Err(IndexError::damaged(&self.path, &damage))
            }
            level => Ok(level.flatten()),
        }
    }
}

pub(crate) const BAD_LEVEL: &str = "its `zstd` is not a level from 1 to 22";
