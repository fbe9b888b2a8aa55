//! Adding a finished volume: its rows and its `tars` row, in one transaction.
//!
//! zstash commits the `tars` row first and the rows later, so that a crash leaves a volume
//! without rows. Here both appear together or not at all.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, Statement, params};

use crate::blocks::{self, NewBlock};
use crate::error::{IndexError, StagingFault, WRITE};
use crate::frames::{Frame, encode_frames};
use crate::index::{Index, fault_at};
use crate::name::escape_name;
use crate::names::{NameWriter, Source};
use crate::row::signed;
use crate::schema::{ATTRIBUTES, FRAMES};
use crate::staging::Staging;
use crate::types::{NewRow, Volume, VolumeId};

/// What the index knows of a volume besides its rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct VolumeParts<'a> {
    /// What headers say of members.
    pub attributes: &'a [NewBlock],
    /// Where the frames lie, if it is compressed; the last one has no content and says where the others end.
    pub frames: &'a [Frame],
}

impl Index {
    /// Adds a volume: first the staged rows, then `rows`, then the volume itself. Returns the
    /// number of rows added. The volume's file must be durable and in place by now.
    ///
    /// # Errors
    /// `VolumeExists` if the index has this volume; `BadStaging` if the staged rows are of
    /// another one; `TooLarge`, `Busy`, `ReadOnly` or `Sqlite` if it cannot be written. Nothing
    /// is changed then.
    pub fn commit_volume<'r>(
        &mut self,
        volume: &Volume,
        rows: impl IntoIterator<Item = NewRow<'r>>,
        staging: Option<&Staging>,
    ) -> Result<u64, IndexError> {
        let parts = VolumeParts::default();
        self.commit_volume_when(volume.id, rows, parts, staging, || Ok(vec![*volume]))
    }

    /// As [`Index::commit_volume`], while the volume is still on its way to the disk: when all
    /// rows are in the transaction, `make_durable` waits for that, and returns what is put on record of the volume: one record,
    /// but in tests of who reads several.
    ///
    /// `parts` are those of `rows`; those of the staged rows are staged with them. A volume whose attributes are not
    /// known of every row gets none here, and so is met by [`Index::volumes_without_attributes`].
    ///
    /// # Errors
    /// Those of [`Index::commit_volume`] and of `make_durable`; nothing is changed then.
    pub fn commit_volume_when<'r, E: From<IndexError>>(
        &mut self,
        id: VolumeId,
        rows: impl IntoIterator<Item = NewRow<'r>>,
        parts: VolumeParts<'_>,
        staging: Option<&Staging>,
        make_durable: impl FnOnce() -> Result<Vec<Volume>, E>,
    ) -> Result<u64, E> {
        let transaction = self.begin()?;
        refuse_second(&transaction, &self.path, id)?;
        let mut inserter = Inserter::new(self, id)?;
        if let Some(staging) = staging {
            insert_staged(&mut inserter, staging, id)?;
        }
        for row in rows {
            inserter.insert(&row)?;
        }
        let count = inserter.finish()?;
        let mut blocks = staging.map_or(Ok(Vec::new()), Staging::attributes)?;
        blocks.extend_from_slice(parts.attributes);
        insert_attributes(&transaction, &self.path, id, &blocks, count)?;
        let mut frames = staging.map_or(Ok(Vec::new()), Staging::frames)?;
        frames.extend_from_slice(parts.frames);
        blocks::insert(
            &transaction,
            &self.path,
            FRAMES,
            id,
            &encode_frames(&frames),
        )?;
        for volume in make_durable()? {
            insert_volume(&transaction, &self.path, &volume)?;
        }
        transaction.commit().map_err(self.fault(WRITE))?;
        Ok(count)
    }
}

impl Index {
    /// Drops all records of volumes, as archives have none that zstash made before version 1.1. The next write makes the table
    /// anew.
    ///
    /// # Errors
    /// As [`Index::commit_volume`].
    pub fn drop_volume_records(&mut self) -> Result<(), IndexError> {
        self.connection
            .execute_batch("DROP TABLE IF EXISTS tars")
            .map_err(self.fault(WRITE))
    }
}

/// Adds the attributes of a volume, if they are those of all its rows.
pub(crate) fn insert_attributes(
    connection: &Connection,
    path: &Path,
    volume: VolumeId,
    members: &[NewBlock],
    rows: u64,
) -> Result<(), IndexError> {
    if members.iter().map(NewBlock::entries).sum::<u64>() == rows {
        blocks::insert(connection, path, ATTRIBUTES, volume, members)?;
    }
    Ok(())
}

fn refuse_second(connection: &Connection, path: &Path, volume: VolumeId) -> Result<(), IndexError> {
    let found: bool = connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM tars WHERE name = ?1)",
            [volume.to_string()],
            |row| row.get(0),
        )
        .map_err(fault_at(WRITE, path))?;
    if found {
        Err(IndexError::VolumeExists {
            path: path.to_owned(),
            volume,
        })
    } else {
        Ok(())
    }
}

fn insert_staged(
    inserter: &mut Inserter<'_>,
    staging: &Staging,
    volume: VolumeId,
) -> Result<(), IndexError> {
    match staging.checkpoint()? {
        None => return Ok(()),
        Some(checkpoint) if checkpoint.volume == volume => {}
        Some(checkpoint) => {
            return Err(staging.bad(StagingFault::OtherVolume(checkpoint.volume)));
        }
    }
    let mut outcome = Ok(());
    staging.rows(|row| {
        outcome = inserter.insert(&row);
        if outcome.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    outcome
}

/// Adds rows of one volume, and indexes their names.
pub(crate) struct Inserter<'c> {
    names: NameWriter<'c>,
    rows: Statement<'c>,
    raw_names: Statement<'c>,
    path: &'c Path,
    volume: String,
    mtime: String,
    md5: String,
    pub(crate) last_id: i64,
    count: u64,
}

impl<'c> Inserter<'c> {
    pub(crate) fn new(index: &'c Index, volume: VolumeId) -> Result<Self, IndexError> {
        let (connection, path) = (&index.connection, &index.path);
        let rows = connection
            .prepare("INSERT INTO files (name, size, mtime, md5, tar, offset) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
        let raw_names =
            connection.prepare("INSERT OR REPLACE INTO stook_raw_names VALUES (?1, ?2)");
        Ok(Self {
            names: NameWriter::begin(index, Source::Files)?,
            rows: rows.map_err(fault_at(WRITE, path))?,
            raw_names: raw_names.map_err(fault_at(WRITE, path))?,
            path,
            volume: volume.to_string(),
            mtime: String::new(),
            md5: String::new(),
            last_id: 0,
            count: 0,
        })
    }

    pub(crate) fn insert(&mut self, row: &NewRow<'_>) -> Result<(), IndexError> {
        let size = signed(row.size, "size", self.path)?;
        let offset = signed(row.offset, "offset", self.path)?;
        self.mtime.clear();
        write!(self.mtime, "{}", row.mtime).expect("a String takes all");
        self.md5.clear();
        let md5 = row.md5.map(|md5| {
            write_hex(&mut self.md5, md5);
            &self.md5
        });
        let name = escape_name(row.name);
        self.last_id = self
            .rows
            .insert(params![&*name, size, self.mtime, md5, self.volume, offset])
            .map_err(fault_at(WRITE, self.path))?;
        if name.as_bytes() != row.name {
            self.raw_names
                .execute(params![self.last_id, row.name])
                .map_err(fault_at(WRITE, self.path))?;
        }
        self.count += 1;
        self.names.add(self.last_id, row.name)
    }

    /// Writes the index of the names; returns the number of rows.
    pub(crate) fn finish(self) -> Result<u64, IndexError> {
        self.names.finish()?;
        Ok(self.count)
    }
}

/// Adds the `tars` row of a volume.
pub(crate) fn insert_volume(
    connection: &Connection,
    path: &Path,
    volume: &Volume,
) -> Result<(), IndexError> {
    let size = signed(volume.size, "size", path)?;
    let md5 = volume.md5.map(|md5| {
        let mut text = String::new();
        write_hex(&mut text, md5);
        text
    });
    connection
        .execute(
            "INSERT INTO tars (name, size, md5) VALUES (?1, ?2, ?3)",
            params![volume.id.to_string(), size, md5],
        )
        .map_err(fault_at(WRITE, path))?;
    Ok(())
}

fn write_hex(text: &mut String, md5: [u8; 16]) {
    write!(text, "{:032x}", u128::from_be_bytes(md5)).expect("a String takes all");
}
