//! A CRC for each group of rows of the tables that nothing in the volumes repeats.
//!
//! ```text
//!   stook_deleted     rows 0 .. 1023 | rows 1024 .. 2047 | ...
//!                            │                 │
//!   stook_witnesses   name, first = 0, rows, crc | first = 1024, ...
//! ```
//! SQLite reports every row that a transaction inserts, updates or deletes; before the transaction commits, the groups of
//! those rows are summed again, so a witness is never behind its rows, and a commit costs as much as it writes. `check`
//! compares; nothing else looks at them.
//!
//! What SQLite does not report: rows that `INSERT OR REPLACE` removes under another id, a `DELETE` without `WHERE`, and
//! tables `WITHOUT ROWID`. Statements on these tables use none of that.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

use rusqlite::hooks::Action;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Transaction, params};

/// Ids in one group.
pub(crate) const GROUP: i64 = 1024;

/// A table with witnesses.
pub(crate) struct Witnessed {
    pub(crate) table: &'static str,
    /// The columns that are summed, behind the id of the row.
    columns: &'static str,
    /// Which rows, if not all.
    condition: &'static str,
}

/// Every table with witnesses: a new one needs a line here, and in `docs/format.md`.
pub(crate) const WITNESSED: &[Witnessed] = &[
    // Other settings may be zstash's.
    Witnessed {
        table: "config",
        columns: "arg, value",
        condition: "AND arg IN ('hpss', 'maxsize', 'path')",
    },
    all("stook_meta", "key, value"),
    all(
        "stook_runs",
        "command, started, finished, first_file, last_file, failed",
    ),
    all("stook_deleted", "run, name, raw"),
    all("stook_raw_names", "name"),
    all("stook_checks", "volume, stamp, checked"),
    all("stook_transfers", "volume, size, proof, version, sent"),
    all("stook_released", "name, raw, volume, offset"),
    // Their `crc` covers the data.
    all("stook_attributes", "volume, first, entries, crc"),
    all("stook_frames", "volume, first, entries, crc"),
];

const fn all(table: &'static str, columns: &'static str) -> Witnessed {
    Witnessed {
        table,
        columns,
        condition: "",
    }
}

/// What a group of rows came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) rows: i64,
    pub(crate) crc: u32,
}

/// Sums rows one by one.
#[derive(Debug, Default)]
pub(crate) struct Summing {
    rows: i64,
    crc: crc32fast::Hasher,
}

impl Summing {
    /// Adds a row: every column as a byte for its type and its value, numbers as 8 bytes, the lowest first, texts and
    /// BLOBs behind their length.
    pub(crate) fn add(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.rows += 1;
        for column in 0..row.as_ref().column_count() {
            match row.get_ref(column)? {
                ValueRef::Null => self.crc.update(&[0]),
                ValueRef::Integer(number) => self.number(1, number.to_le_bytes()),
                ValueRef::Real(number) => self.number(2, number.to_le_bytes()),
                ValueRef::Text(bytes) => self.bytes(3, bytes),
                ValueRef::Blob(bytes) => self.bytes(4, bytes),
            }
        }
        Ok(())
    }

    fn number(&mut self, kind: u8, bytes: [u8; 8]) {
        self.crc.update(&[kind]);
        self.crc.update(&bytes);
    }

    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.number(kind, (bytes.len() as u64).to_le_bytes());
        self.crc.update(bytes);
    }

    pub(crate) fn finish(self) -> Sum {
        Sum {
            rows: self.rows,
            crc: self.crc.finalize(),
        }
    }
}

impl Witnessed {
    /// Returns the query for the rows between two ids, ascending.
    pub(crate) fn query(&self) -> String {
        let Self {
            table,
            columns,
            condition,
        } = self;
        format!(
            "SELECT rowid, {columns} FROM {table} NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2 {condition} ORDER BY rowid"
        )
    }

    /// Sums the group anew.
    fn write_group(&self, connection: &Connection, group: i64) -> rusqlite::Result<()> {
        let first = group.saturating_mul(GROUP);
        let mut summing = Summing::default();
        let mut statement = connection.prepare(&self.query())?;
        let mut rows = statement.query([first, first.saturating_add(GROUP - 1)])?;
        while let Some(row) = rows.next()? {
            summing.add(row)?;
        }
        let sum = summing.finish();
        if sum.rows == 0 {
            let query = "DELETE FROM stook_witnesses WHERE name = ?1 AND first = ?2";
            return connection
                .execute(query, params![self.table, first])
                .map(drop);
        }
        let query = "INSERT OR REPLACE INTO stook_witnesses VALUES (?1, ?2, ?3, ?4)";
        let values = params![self.table, first, sum.rows, sum.crc];
        connection.prepare(query)?.execute(values).map(drop)
    }
}

/// Returns true if the rows of `stook_meta` had the CRC that was written of them, were `format` this one. So it can be told
/// whether a program with another format wrote them, or whether `format` is damaged: a later stook writes a CRC of what it
/// writes, or none.
pub(crate) fn was_format(connection: &Connection, format: i64) -> rusqlite::Result<bool> {
    let columns = "key, CASE WHEN key = 'format' THEN ?3 ELSE value END";
    let query = all("stook_meta", columns).query();
    let mut summing = Summing::default();
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([0, GROUP - 1, format])?;
    while let Some(row) = rows.next()? {
        summing.add(row)?;
    }
    let sum = summing.finish();
    let query = "SELECT EXISTS (SELECT 1 FROM stook_witnesses
        WHERE name = 'stook_meta' AND first = 0 AND rows = ?1 AND crc = ?2)";
    connection.query_row(query, params![sum.rows, sum.crc], |row| row.get(0))
}

/// Returns the group of a row.
pub(crate) fn group_of(id: i64) -> i64 {
    id.div_euclid(GROUP)
}

/// Returns the least id of the group of a row.
pub(crate) fn first_of(id: i64) -> i64 {
    group_of(id).saturating_mul(GROUP)
}

/// Sums all rows of all tables.
pub(crate) fn write_all(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM stook_witnesses", [])?;
    for witnessed in WITNESSED {
        let query = format!(
            "SELECT DISTINCT rowid / {GROUP} - (rowid < 0 AND rowid % {GROUP} <> 0) FROM {}",
            witnessed.table
        );
        let groups: Vec<i64> = connection
            .prepare(&query)?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for group in groups {
            witnessed.write_group(connection, group)?;
        }
    }
    Ok(())
}

/// The groups of rows that a transaction has changed, each with the place of its table in [`WITNESSED`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Touched(Arc<Mutex<BTreeSet<(usize, i64)>>>);

impl Touched {
    /// Has the connection note what changes from now on. Called for each row of `files`, too: it must be quick.
    pub(crate) fn install(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let touched = self.clone();
        connection.update_hook(Some(move |_: Action, _: &str, table: &str, id: i64| {
            if !(table.starts_with("stook_") || table == "config") {
                return;
            }
            let place = WITNESSED.iter().position(|other| other.table == table);
            if let Some(place) = place {
                touched.lock().insert((place, group_of(id)));
            }
        }))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(usize, i64)>> {
        stook_sys::lock(&self.0)
    }
}

/// A transaction that writes, and at its end the witnesses of what it wrote.
pub(crate) struct Change<'c> {
    transaction: Transaction<'c>,
    touched: Touched,
    /// The tables were of an older format, or of none: all rows are to be summed.
    is_upgrade: bool,
}

impl<'c> Change<'c> {
    /// Takes a transaction that has changed nothing yet, on a connection that notes what changes.
    pub(crate) fn new(transaction: Transaction<'c>, touched: &Touched) -> Self {
        touched.lock().clear();
        Self {
            transaction,
            touched: touched.clone(),
            is_upgrade: false,
        }
    }

    pub(crate) fn set_upgrade(&mut self) {
        self.is_upgrade = true;
    }

    /// Writes the witnesses and commits.
    pub(crate) fn commit(self) -> rusqlite::Result<()> {
        if self.is_upgrade {
            write_all(&self.transaction)?;
        } else {
            let touched = std::mem::take(&mut *self.touched.lock());
            for (table, group) in touched {
                WITNESSED[table].write_group(&self.transaction, group)?;
            }
        }
        self.transaction.commit()
    }
}

impl<'c> Deref for Change<'c> {
    type Target = Transaction<'c>;

    fn deref(&self) -> &Transaction<'c> {
        &self.transaction
    }
}
