//! Tables of BLOBs that say something of consecutive parts of a volume: attributes of members, frames.
//!
//! ```text
//!   id | volume | first | entries | crc | data
//! ```
//! `volume` is the number of a volume, which no other has, compressed or not. `first` is an offset in the uncompressed
//! volume: what lies there and behind it, up to the `first` of the next block, is to be found in `data`. The CRC covers
//! the other columns, so that a block that is not as it was written counts as missing.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::damage::IndexDamage;
use crate::error::{IndexError, READ, WRITE};
use crate::index::{Index, fault_at};
use crate::row::{BadValue, signed, unsigned};
use crate::scan::{Step, is_unreadable, scan_ids};
use crate::types::VolumeId;

pub(crate) const COLUMNS: &str = "id, volume, first, entries, crc, data";

/// A block to be stored; its volume is named once, when the volume is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBlock {
    first: u64,
    entries: u64,
    data: Vec<u8>,
}

impl NewBlock {
    pub(crate) fn new(first: u64, entries: u64, data: Vec<u8>) -> Self {
        Self {
            first,
            entries,
            data,
        }
    }

    /// Returns where in the volume it begins.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of members or frames in it.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns its bytes.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    pub(crate) fn into_data(self) -> Vec<u8> {
        self.data
    }
}

/// A block as it was found; not yet compared with its CRC.
#[derive(Debug)]
pub(crate) struct StoredBlock {
    pub(crate) id: i64,
    pub(crate) volume: VolumeId,
    pub(crate) first: u64,
    pub(crate) entries: u64,
    pub(crate) crc: u32,
    pub(crate) data: Vec<u8>,
}

impl StoredBlock {
    pub(crate) fn is_as_written(&self) -> bool {
        crc(self.volume, self.first, self.entries, &self.data) == self.crc
    }

    /// Reads a row of [`COLUMNS`]; `None` if a value is of no use.
    pub(crate) fn of_row(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let number = |index| row.get_ref(index).map(unsigned);
        let (volume, first, entries) = (number(1)?, number(2)?, number(3)?);
        let crc = number(4)?.and_then(|crc| u32::try_from(crc).ok());
        let id = row.get_ref(0)?.as_i64().unwrap_or_default();
        let value = row.get_ref(5)?;
        let decode = || {
            Some(Self {
                id,
                volume: VolumeId::plain(volume?),
                first: first?,
                entries: entries?,
                crc: crc?,
                data: value.as_blob().ok()?.to_vec(),
            })
        };
        Ok(decode())
    }
}

pub(crate) const BAD_ROW: BadValue = BadValue::new("data", "its values are not those of a block");
pub(crate) const BAD_CRC: BadValue = BadValue::new("crc", "it does not have its CRC");
pub(crate) const BAD_DATA: BadValue = BadValue::new("data", "its data is invalid");

/// Returns the CRC-32 of a block: volume, first and entries as 8 bytes each, the lowest first, then the data.
fn crc(volume: VolumeId, first: u64, entries: u64, data: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for number in [volume.0, first, entries] {
        crc.update(&number.to_le_bytes());
    }
    crc.update(data);
    crc.finalize()
}

/// Adds blocks of a volume to a table.
pub(crate) fn insert(
    connection: &Connection,
    path: &Path,
    table: &str,
    volume: VolumeId,
    blocks: &[NewBlock],
) -> Result<(), IndexError> {
    let query = format!(
        "INSERT INTO {table} (volume, first, entries, crc, data) VALUES (?1, ?2, ?3, ?4, ?5)"
    );
    let mut insert = connection.prepare(&query).map_err(fault_at(WRITE, path))?;
    for block in blocks {
        let values = params![
            signed(volume.0, "volume", path)?,
            signed(block.first, "offset", path)?,
            signed(block.entries, "number of members", path)?,
            crc(volume, block.first, block.entries, &block.data),
            block.data
        ];
        insert.execute(values).map_err(fault_at(WRITE, path))?;
    }
    Ok(())
}

impl Index {
    /// Returns the block of a table in which an offset of a volume is to be looked for; `None` if there is none that can
    /// be read.
    pub(crate) fn block_at(
        &self,
        table: &str,
        volume: VolumeId,
        offset: u64,
    ) -> Result<Option<StoredBlock>, IndexError> {
        let (Ok(number), Ok(offset)) = (i64::try_from(volume.0), i64::try_from(offset)) else {
            return Ok(None);
        };
        if !self.has_table(table)? {
            return Ok(None);
        }
        let query = format!(
            "SELECT {COLUMNS} FROM {table} WHERE volume = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1"
        );
        let found = self.connection.prepare(&query).and_then(|mut query| {
            query
                .query_row([number, offset], StoredBlock::of_row)
                .optional()
        });
        match found {
            Ok(block) => Ok(block.flatten()),
            Err(error) if is_unreadable(&error) => Ok(None),
            Err(error) => Err(self.fault(READ)(error)),
        }
    }

    /// Shows the blocks of a volume in a table that can be read, ascending, until `visit` breaks off.
    pub(crate) fn blocks_of_volume(
        &self,
        table: &str,
        volume: VolumeId,
        visit: &mut dyn FnMut(StoredBlock) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let Ok(number) = i64::try_from(volume.0) else {
            return Ok(());
        };
        if !self.has_table(table)? {
            return Ok(());
        }
        let query = format!(
            "SELECT {COLUMNS} FROM {table} WHERE volume = ?1 AND first >= ?2 ORDER BY first"
        );
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        let mut rows = statement.query([number, 0]).map_err(self.fault(READ))?;
        loop {
            let block = match rows.next() {
                Ok(None) => return Ok(()),
                Ok(Some(row)) => StoredBlock::of_row(row).map_err(self.fault(READ))?,
                Err(error) if is_unreadable(&error) => return Ok(()),
                Err(error) => return Err(self.fault(READ)(error)),
            };
            if let Some(block) = block
                && visit(block).is_break()
            {
                return Ok(());
            }
        }
    }

    /// Shows all blocks of a table, and what is damaged among them, until `visit` breaks off.
    pub(crate) fn blocks(
        &self,
        table: &'static str,
        visit: &mut dyn FnMut(Result<StoredBlock, IndexDamage>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        if !self.has_table(table)? {
            return Ok(());
        }
        let query = format!(
            "SELECT {COLUMNS} FROM {table} NOT INDEXED WHERE id BETWEEN ?1 AND ?2 ORDER BY id"
        );
        let mut statement = self.connection.prepare(&query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            Ok(visit(match step {
                Step::Row(id, row) => {
                    let block = StoredBlock::of_row(row).map_err(self.fault(READ))?;
                    block.ok_or_else(|| IndexDamage::value(table, id, BAD_ROW.column, BAD_ROW.why))
                }
                Step::Unreadable(rows) => Err(IndexDamage::unreadable(table, &rows)),
            }))
        })
    }
}
