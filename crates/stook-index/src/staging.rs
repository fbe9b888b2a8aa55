//! The rows of a volume that is still being written, in a file of its own.
//!
//! ```text
//! 000003.tar.partial    bytes | complete up to the checkpoint's offset | not yet
//! 000003.rows.partial   one row for each complete member, and the checkpoint
//! ```
//! A checkpoint and its rows are one durable transaction, so that after a crash the file says
//! exactly which bytes of the partial volume count. `index.db` is not touched until the volume
//! is complete. It is an SQLite file because that survives a kill at any point; its tables are
//! private to this program and carry no promise between versions.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::access::exclusive_name;
use crate::blocks::NewBlock;
use crate::commit::VolumeParts;
use crate::error::{IndexError, READ, StagingFault, WRITE};
use crate::frames::Frame;
use crate::index::{fault_at, set_durable};
use crate::interrupt::Interrupt;
use crate::mtime::Mtime;
use crate::origin::{Origin, origin};
use crate::row::{bytes, signed, unsigned};
use crate::types::{NewRow, RunId, VolumeId};
use crate::{place, schema, trust};

const TABLES: &str = "
CREATE TABLE rows (id integer primary key, name blob, size integer, mtime integer, md5 blob, offset integer);
CREATE TABLE checkpoint (
  id integer primary key check (id = 1),
  run integer,
  volume text,
  offset integer,
  stored integer,
  planned integer,
  planned_end integer,
  md5_state blob
);
CREATE TABLE attributes (id integer primary key, first integer, entries integer, data blob);
CREATE TABLE frames (offset integer primary key, stored integer);
";

/// How far a partial volume is known to be complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The run that writes it.
    pub run: RunId,
    /// The volume being written.
    pub volume: VolumeId,
    /// Bytes of the uncompressed volume that hold complete members.
    pub offset: u64,
    /// Bytes of the partial file that hold them, and are durable; as many, unless it is compressed.
    pub stored: u64,
    /// Bytes that the plan gave to these members: a file with holes, say, takes fewer.
    pub planned: u64,
    /// What that comes to when all members planned for the volume are in it; 0 if there is no such plan.
    pub planned_end: u64,
    /// The MD5 over those bytes so far, in the caller's own form; empty if none is taken.
    pub md5_state: Vec<u8>,
}

/// An open staging file.
#[derive(Debug)]
pub struct Staging {
    connection: Connection,
    path: PathBuf,
}

impl Staging {
    /// Returns whose the file is that has the name of a staging file.
    pub fn origin(path: impl AsRef<Path>) -> Origin {
        origin(path.as_ref(), &["rows", "checkpoint"])
    }

    /// Makes an empty staging file; an empty file may be there already.
    ///
    /// # Errors
    /// `Exists` if there is one; `System` or `Sqlite` if it cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, IndexError> {
        let path = path.as_ref();
        if stook_sys::exists(path)?.is_some_and(|there| there.size > 0) {
            return Err(IndexError::Exists {
                path: path.to_owned(),
            });
        }
        place::remove_journals(path)?;
        let staging = Self::connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        set_durable(&staging.connection).map_err(staging.fault(WRITE))?;
        staging
            .connection
            .execute_batch(&format!("BEGIN;{TABLES}COMMIT;"))
            .map_err(staging.fault(WRITE))?;
        Ok(staging)
    }

    /// Opens the staging file of an interrupted run and checks all of it.
    ///
    /// # Errors
    /// `NotFound`; `BadStaging` if it is damaged or was cut off while being made: the caller may
    /// remove it and treat this as no checkpoint; `Busy`, `System` or `Sqlite` if it cannot be read.
    ///
    /// # Cost
    /// Reads the whole file once.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, IndexError> {
        Self::open_until(path, &Interrupt::never())
    }

    /// As [`Staging::open`]; all that is done with it fails with `Interrupted` once `interrupt` is raised.
    ///
    /// # Errors
    /// As [`Staging::open`], and `Interrupted`.
    pub fn open_until(path: impl AsRef<Path>, interrupt: &Interrupt) -> Result<Self, IndexError> {
        let path = path.as_ref();
        let opened = Self::connect(path, OpenFlags::empty()).and_then(|mut staging| {
            let installed = interrupt.install(&mut staging.connection);
            installed.map_err(staging.fault(READ))?;
            staging.check()?;
            Ok(staging)
        });
        opened.map_err(|error| match error {
            IndexError::BadStaging { .. } => error,
            damage if damage.is_damage() => IndexError::BadStaging {
                path: path.to_owned(),
                why: StagingFault::Unusable(Box::new(damage)),
            },
            other => other,
        })
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, IndexError> {
        let flags = flags
            | OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        // Nobody but the one writer of the archive opens it.
        let connection = Connection::open_with_flags(exclusive_name(path), flags)
            .map_err(fault_at("open", path))?;
        let staging = Self {
            connection,
            path: path.to_owned(),
        };
        staging
            .connection
            .busy_timeout(Duration::from_secs(10))
            .map_err(staging.fault(READ))?;
        trust::harden(&staging.connection).map_err(staging.fault(READ))?;
        staging
            .connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(staging.fault(READ))?;
        Ok(staging)
    }

    fn check(&self) -> Result<(), IndexError> {
        let tables = trust::require_plain_tables(&self.connection, &self.path, |_| true)?;
        let answer: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(self.fault(READ))?;
        if answer != "ok" {
            return Err(self.bad(StagingFault::Integrity(answer)));
        }
        schema::require_columns(
            &tables,
            &self.path,
            "rows",
            &["id", "name", "size", "mtime", "md5", "offset"],
        )?;
        schema::require_columns(
            &tables,
            &self.path,
            "checkpoint",
            &[
                "run",
                "volume",
                "offset",
                "stored",
                "planned",
                "planned_end",
                "md5_state",
            ],
        )?;
        schema::require_columns(&tables, &self.path, "frames", &["offset", "stored"])?;
        self.checkpoint()?;
        self.frames()?;
        self.rows(|_| ControlFlow::Continue(()))
    }

    /// Returns the path it was opened under.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds rows with their parts and moves the checkpoint, in one durable transaction. The partial volume must
    /// be durable up to the checkpoint's offset by now.
    ///
    /// # Errors
    /// `TooLarge`, `Busy` or `Sqlite`; the checkpoint before stays then.
    pub fn record<'r>(
        &mut self,
        checkpoint: &Checkpoint,
        rows: impl IntoIterator<Item = NewRow<'r>>,
        parts: VolumeParts<'_>,
    ) -> Result<(), IndexError> {
        let fault = || fault_at(WRITE, &self.path);
        let transaction = self.connection.transaction().map_err(fault())?;
        {
            let mut insert = transaction
                .prepare(
                    "INSERT INTO rows (name, size, mtime, md5, offset) VALUES (?1, ?2, ?3, ?4, ?5)",
                )
                .map_err(fault())?;
            for row in rows {
                let size = signed(row.size, "size", &self.path)?;
                let offset = signed(row.offset, "offset", &self.path)?;
                let md5 = row.md5.as_ref().map(|md5| &md5[..]);
                insert
                    .execute(params![row.name, size, row.mtime.0, md5, offset])
                    .map_err(fault())?;
            }
        }
        stage_attributes(&transaction, &self.path, parts.attributes)?;
        stage_frames(&transaction, &self.path, parts.frames)?;
        transaction
            .execute(
                "INSERT OR REPLACE INTO checkpoint VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    checkpoint.run.0,
                    checkpoint.volume.to_string(),
                    signed(checkpoint.offset, "offset", &self.path)?,
                    signed(checkpoint.stored, "offset", &self.path)?,
                    signed(checkpoint.planned, "planned length", &self.path)?,
                    signed(checkpoint.planned_end, "planned length", &self.path)?,
                    checkpoint.md5_state
                ],
            )
            .map_err(fault())?;
        transaction.commit().map_err(fault())
    }

    /// Returns the last checkpoint; `None` if none was recorded yet.
    ///
    /// # Errors
    /// `BadStaging` if it is invalid, `Sqlite` if it cannot be read.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>, IndexError> {
        let decoded = self
            .connection
            .query_row(
                "SELECT run, volume, offset, stored, planned, planned_end, md5_state FROM checkpoint",
                [],
                |row| Ok(decode_checkpoint(row)),
            )
            .optional()
            .map_err(self.fault(READ))?;
        match decoded {
            None => Ok(None),
            Some(Some(checkpoint)) => Ok(Some(checkpoint)),
            Some(None) => Err(self.bad(StagingFault::Wrong("its checkpoint is invalid"))),
        }
    }

    /// Returns the attributes that were recorded; none if another stook made the file.
    pub(crate) fn attributes(&self) -> Result<Vec<NewBlock>, IndexError> {
        if !schema::has_table(&self.connection, &self.path, "attributes")? {
            return Ok(Vec::new());
        }
        let mut statement = self
            .connection
            .prepare("SELECT first, entries, data FROM attributes ORDER BY id")
            .map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        let mut blocks = Vec::new();
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let number = |column| row.get_ref(column).map(unsigned).map_err(self.fault(READ));
            let (first, entries) = (number(0)?, number(1)?);
            let data = row.get(2).map_err(self.fault(READ))?;
            let (Some(first), Some(entries)) = (first, entries) else {
                return Err(self.bad(StagingFault::Wrong("its attributes are invalid")));
            };
            blocks.push(NewBlock::new(first, entries, data));
        }
        Ok(blocks)
    }

    /// Returns where the frames lie that were recorded, ascending; none if the volume is not compressed.
    ///
    /// # Errors
    /// `BadStaging` if one is invalid, `Sqlite` if the file cannot be read.
    pub fn frames(&self) -> Result<Vec<Frame>, IndexError> {
        let query = "SELECT offset, stored FROM frames ORDER BY offset";
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        let mut frames: Vec<Frame> = Vec::new();
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let number = |column| row.get_ref(column).map(unsigned).map_err(self.fault(READ));
            let frame = number(0)?.zip(number(1)?);
            let frame = frame.map(|(offset, stored)| Frame { offset, stored });
            match frame {
                Some(frame) if frames.last().is_none_or(|last| last.stored < frame.stored) => {
                    frames.push(frame);
                }
                _ => return Err(self.bad(StagingFault::Wrong("its frames are invalid"))),
            }
        }
        Ok(frames)
    }

    /// Shows the staged rows to `visit` in the order they were recorded, until it breaks off.
    ///
    /// # Errors
    /// `BadStaging` if a row is invalid, `Sqlite` if the file cannot be read.
    pub fn rows(
        &self,
        mut visit: impl FnMut(NewRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let mut statement = self
            .connection
            .prepare("SELECT name, size, mtime, md5, offset FROM rows ORDER BY id")
            .map_err(self.fault(READ))?;
        let mut rows = statement.query([]).map_err(self.fault(READ))?;
        while let Some(row) = rows.next().map_err(self.fault(READ))? {
            let row =
                decode_row(row).ok_or_else(|| self.bad(StagingFault::Wrong("a row is invalid")))?;
            if visit(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Removes a staging file, which need not be readable; one that is not there is fine.
    ///
    /// # Errors
    /// `System` if it cannot be removed.
    pub fn discard(path: impl AsRef<Path>) -> Result<(), IndexError> {
        place::remove_database(path.as_ref())
    }

    pub(crate) fn bad(&self, why: StagingFault) -> IndexError {
        IndexError::BadStaging {
            path: self.path.clone(),
            why,
        }
    }

    /// Begins a transaction that changes something, and leaves it open.
    #[cfg(test)]
    pub(crate) fn begin_and_hold(&self) {
        let text = "BEGIN; INSERT INTO rows (name) VALUES (zeroblob(20000000));";
        self.connection.execute_batch(text).expect("a row fits");
    }

    fn fault(&self, operation: &'static str) -> impl FnOnce(rusqlite::Error) -> IndexError + '_ {
        fault_at(operation, &self.path)
    }
}

fn stage_attributes(
    connection: &Connection,
    path: &Path,
    attributes: &[NewBlock],
) -> Result<(), IndexError> {
    if attributes.is_empty() || !schema::has_table(connection, path, "attributes")? {
        return Ok(());
    }
    let mut insert = connection
        .prepare("INSERT INTO attributes (first, entries, data) VALUES (?1, ?2, ?3)")
        .map_err(fault_at(WRITE, path))?;
    for block in attributes {
        let first = signed(block.first(), "offset", path)?;
        let entries = signed(block.entries(), "number of members", path)?;
        insert
            .execute(params![first, entries, block.data()])
            .map_err(fault_at(WRITE, path))?;
    }
    Ok(())
}

fn stage_frames(connection: &Connection, path: &Path, frames: &[Frame]) -> Result<(), IndexError> {
    let mut insert = connection
        .prepare("INSERT INTO frames VALUES (?1, ?2)")
        .map_err(fault_at(WRITE, path))?;
    for frame in frames {
        let offset = signed(frame.offset, "offset", path)?;
        let stored = signed(frame.stored, "offset", path)?;
        insert
            .execute([offset, stored])
            .map_err(fault_at(WRITE, path))?;
    }
    Ok(())
}

fn decode_checkpoint(row: &rusqlite::Row<'_>) -> Option<Checkpoint> {
    Some(Checkpoint {
        run: RunId(row.get(0).ok()?),
        volume: VolumeId::from_name(bytes(row.get_ref(1).ok()?)?)?,
        offset: unsigned(row.get_ref(2).ok()?)?,
        stored: unsigned(row.get_ref(3).ok()?)?,
        planned: unsigned(row.get_ref(4).ok()?)?,
        planned_end: unsigned(row.get_ref(5).ok()?)?,
        md5_state: row.get(6).ok()?,
    })
}

fn decode_row<'a>(row: &'a rusqlite::Row<'_>) -> Option<NewRow<'a>> {
    let md5 = match row.get_ref(3).ok()? {
        ValueRef::Null => None,
        value => Some(bytes(value)?.try_into().ok()?),
    };
    Some(NewRow {
        name: bytes(row.get_ref(0).ok()?)?,
        size: unsigned(row.get_ref(1).ok()?)?,
        mtime: Mtime(row.get(2).ok()?),
        md5,
        offset: unsigned(row.get_ref(4).ok()?)?,
    })
}
