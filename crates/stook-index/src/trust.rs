//! What a database may not do to its reader: an archive may come from anybody.
//!
//! A view may pose as a table and compute rows for ever, a trigger may run with every insert, a generated column with
//! every row. SQLite is configured to run none of them, and a database whose tables are not plain ones is refused. Views,
//! triggers and indexes of other tables are nobody's concern.
//!
//! # Source
//! <https://sqlite.org/security.html>, "Untrusted SQLite Database Files".

use std::collections::BTreeMap;
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

/// The columns of tables, by their names in small letters.
pub(crate) type Columns = BTreeMap<String, Vec<String>>;

/// Checks that each of our tables that is there is a plain one, without triggers and generated columns, and returns them.
///
/// # Errors
/// `NotPlain`; `Sqlite` if the schema cannot be read.
pub(crate) fn require_plain_tables(
    connection: &Connection,
    path: &Path,
    is_ours: impl Fn(&str) -> bool,
) -> Result<Columns, IndexError> {
    let fault = |error| IndexError::sqlite(READ, path, error);
    let not_plain = |table: &str, what| IndexError::NotPlain {
        path: path.to_owned(),
        table: table.to_owned(),
        what,
    };
    let mut tables = Columns::new();
    let mut generated = None;
    // As SQLite has understood it; the column `type` of `sqlite_schema` may lie.
    for Column {
        table,
        kind,
        name,
        hidden,
    } in columns(connection).map_err(fault)?
    {
        match &kind[..] {
            _ if !is_ours(&table) => continue,
            "table" => {}
            "view" => return Err(not_plain(&table, "is a view")),
            _ => return Err(not_plain(&table, "is a virtual table")),
        }
        if hidden > 1 {
            generated.get_or_insert_with(|| table.clone());
        }
        tables.entry(table).or_default().extend(name);
    }
    let with_trigger = tables_with_trigger(connection).map_err(fault)?;
    if let Some(table) = with_trigger.iter().find(|table| is_ours(table)) {
        return Err(not_plain(table, "has a trigger"));
    }
    match generated {
        Some(table) => Err(not_plain(&table, "has a generated column")),
        None => Ok(tables),
    }
}

/// All tables and views with the columns of the tables, in one statement: to prepare one takes longer than to run it. Those of
/// views are not asked for, as SQLite would look into their queries.
const COLUMNS: &str =
    "SELECT lower(tables.name), tables.type, columns.name, ifnull(columns.hidden, 0)
    FROM pragma_table_list AS tables
    LEFT JOIN pragma_table_xinfo(iif(tables.type = 'table', tables.name, NULL)) AS columns
    WHERE tables.schema = 'main'";
const TRIGGERS: &str = "SELECT lower(tbl_name) FROM sqlite_schema WHERE type = 'trigger'";

/// A column of a table; without a name what is no table.
struct Column {
    table: String,
    kind: String,
    name: Option<String>,
    /// 2 or 3 if it is generated.
    hidden: i64,
}

fn columns(connection: &Connection) -> rusqlite::Result<Vec<Column>> {
    let mut statement = connection.prepare(COLUMNS)?;
    let rows = statement.query_map([], |row| {
        Ok(Column {
            table: row.get(0)?,
            kind: row.get(1)?,
            name: row.get(2)?,
            hidden: row.get(3)?,
        })
    })?;
    rows.collect()
}

fn tables_with_trigger(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(TRIGGERS)?;
    statement.query_map([], |row| row.get(0))?.collect()
}
