//! Rows against the CRCs of their groups.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::{Check, text};
use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::row::unsigned;
use crate::scan::{Step, is_unreadable, scan_ids};
use crate::witness::{Sum, Summing, WITNESSED, Witnessed, first_of};

const TABLE: &str = "stook_witnesses";

/// What the index says of each group, by table and first id; nothing for a row that is invalid.
type Witnesses = BTreeMap<(String, i64), Option<Sum>>;

impl Check<'_> {
    /// Compares every table that is there and has the right columns.
    pub(super) fn witnesses(&mut self, tables: &[&str]) -> Result<(), IndexError> {
        let read = self.read_witnesses();
        let Some(mut witnesses) = self.value(read, Some(TABLE))? else {
            return Ok(());
        };
        for witnessed in WITNESSED {
            if tables.contains(&witnessed.table) {
                self.compare(witnessed, &mut witnesses)?;
            }
            witnesses.retain(|(table, _), _| table != witnessed.table);
        }
        if !witnesses.is_empty() {
            let what = "it has a CRC of rows that are in no table";
            self.tell(IndexDamage::table(TABLE, what));
        }
        Ok(())
    }

    fn read_witnesses(&self) -> rusqlite::Result<Witnesses> {
        let query = "SELECT name, first, rows, crc FROM stook_witnesses";
        let mut statement = self.index.connection.prepare(query)?;
        let rows = statement.query_map([], |row| {
            let name = text(row.get_ref(0)?).unwrap_or_default().to_owned();
            let rows = row.get_ref(2)?.as_i64().ok();
            let crc = unsigned(row.get_ref(3)?).and_then(|crc| u32::try_from(crc).ok());
            let sum = rows.zip(crc).map(|(rows, crc)| Sum { rows, crc });
            Ok(((name, row.get(1).unwrap_or(i64::MIN)), sum))
        })?;
        rows.collect()
    }

    fn compare(
        &mut self,
        witnessed: &Witnessed,
        witnesses: &mut Witnesses,
    ) -> Result<(), IndexError> {
        let index = self.index;
        let mut statement = match index.connection.prepare(&witnessed.query()) {
            Err(error) if is_unreadable(&error) => return Ok(()),
            other => other.map_err(index.fault(READ))?,
        };
        let mut open: Option<(i64, Summing)> = None;
        scan_ids(&index.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            // Rows that cannot be read have been told.
            if let Step::Row(id, row) = step {
                let first = first_of(id);
                if open.as_ref().is_some_and(|(group, _)| *group != first) {
                    self.end_group(witnessed.table, open.take(), witnesses);
                }
                let (_, summing) = open.get_or_insert_with(|| (first, Summing::default()));
                summing.add(row).map_err(index.fault(READ))?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.end_group(witnessed.table, open, witnesses);
        let left =
            |((table, first), _): (&(String, i64), _)| (table == witnessed.table).then_some(*first);
        let without_rows: Vec<i64> = witnesses.iter().filter_map(left).collect();
        for first in without_rows {
            self.tell_group(witnessed.table, first, "they are missing, and have a CRC");
        }
        Ok(())
    }

    fn end_group(
        &mut self,
        table: &'static str,
        group: Option<(i64, Summing)>,
        witnesses: &mut Witnesses,
    ) {
        let Some((first, summing)) = group else {
            return;
        };
        match witnesses.remove(&(table.to_owned(), first)) {
            Some(Some(sum)) if sum == summing.finish() => {}
            Some(_) => self.tell_group(table, first, "they are not as they were written"),
            None => self.tell_group(table, first, "they have no CRC in `stook_witnesses`"),
        }
    }

    /// Tells it of a group, unless more is known of a row in it.
    fn tell_group(&mut self, table: &'static str, first: i64, what: &'static str) {
        let last = first.saturating_add(crate::witness::GROUP - 1);
        let is_told = self
            .told
            .iter()
            .any(|(other, rows)| *other == table && *rows.start() <= last && first <= *rows.end());
        if !is_told {
            self.tell(IndexDamage {
                rows: Some(first.max(1)..=last),
                column: Some("crc"),
                ..IndexDamage::table(table, what)
            });
        }
    }
}
