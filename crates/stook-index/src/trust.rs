//! What a database may not do to its reader: an archive may come from anybody.
//!
//! A view may pose as a table and compute rows for ever, a trigger may run with every insert, a generated column with
//! every row. SQLite is configured to run none of them, and a database whose tables are not plain ones is refused. Views,
//! triggers and indexes of other tables are nobody's concern.
//!
//! # Source
//! <https://sqlite.org/security.html>, "Untrusted SQLite Database Files".

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::error::{IndexError, READ};

/// Turns off what an index does not need and a hostile one would use. Before the first statement.
pub(crate) fn harden(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Checks that each of our tables that is there is a plain one, without triggers and generated columns.
///
/// # Errors
/// `NotPlain`; `Sqlite` if the schema cannot be read.
pub(crate) fn require_plain_tables(
    connection: &Connection,
    path: &Path,
    is_ours: impl Fn(&str) -> bool,
) -> Result<(), IndexError> {
    let fault = |error| IndexError::sqlite(READ, path, error);
    let not_plain = |table: &str, what| IndexError::NotPlain {
        path: path.to_owned(),
        table: table.to_owned(),
        what,
    };
    // As SQLite has understood it; the column `type` of `sqlite_schema` may lie.
    for (table, kind) in pairs(connection, KINDS).map_err(fault)? {
        match &kind[..] {
            _ if !is_ours(&table) => {}
            "table" => {}
            "view" => return Err(not_plain(&table, "is a view")),
            _ => return Err(not_plain(&table, "is a virtual table")),
        }
    }
    let with_trigger = pairs(connection, TRIGGERS).map_err(fault)?;
    if let Some((table, _)) = with_trigger.iter().find(|(table, _)| is_ours(table)) {
        return Err(not_plain(table, "has a trigger"));
    }
    let generated = pairs(connection, GENERATED).map_err(fault)?;
    match generated.iter().find(|(table, _)| is_ours(table)) {
        Some((table, _)) => Err(not_plain(table, "has a generated column")),
        None => Ok(()),
    }
}

const KINDS: &str = "SELECT lower(name), type FROM pragma_table_list WHERE schema = 'main'";
const TRIGGERS: &str = "SELECT lower(tbl_name), type FROM sqlite_schema WHERE type = 'trigger'";
/// Of a column, `hidden` is 2 or 3 if it is generated.
const GENERATED: &str = "SELECT lower(tables.name), columns.name
    FROM pragma_table_list AS tables JOIN pragma_table_xinfo(tables.name) AS columns
    WHERE tables.schema = 'main' AND tables.type = 'table' AND columns.hidden > 1";

fn pairs(connection: &Connection, query: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
