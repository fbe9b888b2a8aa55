//! Reading all rows into records of 40 bytes, by several connections at once: see `snapshot.rs`.

use std::ops::{ControlFlow, RangeInclusive};

use rusqlite::types::ValueRef;

use crate::attributes::{MetadataCursor, MetadataDictionary, MetadataNumber, StagedMetadata};
use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::mtime::Mtime;
use crate::name::{NameHash, NameHasher};
use crate::newest::{Version, expected_rows};
use crate::row::{Met, RealNames, bytes, meet, mtime_of, unsigned};
use crate::rows::{COLUMNS, FIRST_STAGED_ID, RANGE};
use crate::scan::{Step, scan_ids};
use crate::snapshot::{ROWS_A_TASK, Snapshot};
use crate::staging::Staging;
use crate::types::{RowId, VolumeId};

/// A row without its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) hash: NameHash,
    pub(crate) id: i64,
    /// From the top: a bit that says that there is an MD5, the number of the metadata, the size.
    pub(crate) facts: u64,
    pub(crate) mtime: Mtime,
}

const _: () = assert!(size_of::<Record>() == 40);

const FILE_BIT: u64 = 1 << 63;
const SIZE_BITS: u32 = 63 - MetadataNumber::BITS;

/// Stands for this size, 8 TiB, and all above it: they are kept beside the records.
const LARGE: u64 = (1 << SIZE_BITS) - 1;

impl Record {
    fn facts(size: u64, is_file: bool, metadata: MetadataNumber) -> u64 {
        let file = if is_file { FILE_BIT } else { 0 };
        file | u64::from(metadata.0) << SIZE_BITS | size.min(LARGE)
    }

    /// Returns the size; `None` if it is too large for a record.
    pub(crate) fn size(&self) -> Option<u64> {
        let size = self.facts & LARGE;
        (size != LARGE).then_some(size)
    }

    /// Returns the index of the metadata in what [`MetadataDictionary::into_entries`] returns; `None` if it is unknown.
    pub(crate) fn metadata(&self) -> Option<usize> {
        let number = (self.facts & !FILE_BIT) >> SIZE_BITS;
        usize::try_from(number).ok()?.checked_sub(1)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.facts & FILE_BIT != 0
    }

    pub(crate) fn is_staged(&self) -> bool {
        self.id >= FIRST_STAGED_ID
    }

    /// Returns false if the row has a value that makes no sense: it is a version of its name all the same.
    pub(crate) fn is_readable(&self) -> bool {
        self.mtime != UNREADABLE
    }
}

/// Stands for the time of a row with a value that makes no sense; no file has it.
const UNREADABLE: Mtime = Mtime(i64::MIN);

impl Version for Record {
    fn hash(&self) -> NameHash {
        self.hash
    }
    fn id(&self) -> i64 {
        self.id
    }
}

/// The rows of a part of the index.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) records: Vec<Record>,
    /// Ids of rows with sizes that are too large for a record, and these sizes.
    pub(crate) large_sizes: Vec<(i64, u64)>,
    /// Rows whose name cannot be read.
    pub(crate) damages: Vec<IndexDamage>,
}

impl Loaded {
    fn with_capacity(rows: usize) -> Self {
        Self {
            records: Vec::with_capacity(rows),
            ..Self::default()
        }
    }

    fn append(&mut self, part: &mut Self) {
        self.records.append(&mut part.records);
        self.large_sizes.append(&mut part.large_sizes);
        self.damages.append(&mut part.damages);
    }

    fn take(&mut self, met: &Met<'_>, hasher: &NameHasher) {
        let (row, mtime) = match met {
            Met::Row(row) => (row, row.mtime),
            Met::Bad(row, bad) if bad.column != "id" && bad.column != "name" => (row, UNREADABLE),
            Met::Bad(..) | Met::Unreadable(_) => {
                self.damages.extend(met.damage());
                return;
            }
        };
        self.push(FoundRow {
            hash: hasher.hash(row.name),
            id: row.id.0,
            size: row.size,
            is_file: row.md5.is_some(),
            metadata: MetadataNumber::default(),
            mtime,
        });
    }

    fn push(&mut self, row: FoundRow) {
        if row.size >= LARGE {
            self.large_sizes.push((row.id, row.size));
        }
        self.records.push(Record {
            hash: row.hash,
            id: row.id,
            facts: Record::facts(row.size, row.is_file, row.metadata),
            mtime: row.mtime,
        });
    }
}

/// What a record is made of.
#[derive(Clone, Copy)]
struct FoundRow {
    hash: NameHash,
    id: i64,
    size: u64,
    is_file: bool,
    metadata: MetadataNumber,
    mtime: Mtime,
}

/// What rows are read with.
#[derive(Clone, Copy)]
pub(crate) struct Loader<'a> {
    pub(crate) hasher: &'a NameHasher,
    /// Takes type, mode and owner of all members; `None`: they are not looked for.
    pub(crate) metadata: Option<&'a MetadataDictionary>,
}

/// Reads the rows of all volumes, in any order.
pub(crate) fn load_stored(
    snapshot: &Snapshot<'_>,
    loader: Loader<'_>,
) -> Result<Loaded, IndexError> {
    let expected = expected_rows(snapshot.index())?;
    // Filled as tasks end: the records of all tasks beside it would take the memory twice.
    let mut loaded = Loaded::with_capacity(expected);
    let read = |index: &Index, ids| {
        let mut part = Loaded::with_capacity(expected.min(ROWS_A_TASK));
        load_range(index, loader, ids, &mut part)?;
        Ok(part)
    };
    snapshot.ranges(i64::MAX, read, |_, mut part| loaded.append(&mut part))?;
    Ok(loaded)
}

fn load_range(
    index: &Index,
    loader: Loader<'_>,
    ids: RangeInclusive<i64>,
    part: &mut Loaded,
) -> Result<(), IndexError> {
    let query = format!("{COLUMNS} {RANGE}");
    let mut statement = index
        .connection
        .prepare(&query)
        .map_err(index.fault(READ))?;
    let mut reader = RowReader::open(index, loader)?;
    scan_ids(&index.path, &mut statement, ids, |step| {
        match step {
            Step::Row(id, row) => match reader.sound_row(id, row)? {
                Some(row) => part.push(row),
                None => {
                    let met = meet(id, row, &mut reader.names, &index.path)?;
                    part.take(&met, loader.hasher);
                }
            },
            Step::Unreadable(rows) => part.take(&Met::Unreadable(rows), loader.hasher),
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Reads rows that make sense.
struct RowReader<'a> {
    index: &'a Index,
    hasher: &'a NameHasher,
    names: RealNames<'a>,
    metadata: Option<MetadataCursor<'a>>,
    /// The volume of the last row, as it is written there. Rows of a volume lie together.
    volume: (Vec<u8>, VolumeId),
}

impl<'a> RowReader<'a> {
    fn open(index: &'a Index, loader: Loader<'a>) -> Result<Self, IndexError> {
        let open = |dictionary| MetadataCursor::open(index, dictionary);
        Ok(Self {
            index,
            hasher: loader.hasher,
            names: RealNames::open(index)?,
            metadata: loader.metadata.map(open).transpose()?,
            volume: (Vec::new(), VolumeId::plain(0)),
        })
    }

    /// Returns a row that makes sense. Looks no closer at MD5 and volume than needed for that: this is
    /// the longest part of an update of a tree that has not changed.
    fn sound_row(
        &mut self,
        id: i64,
        row: &rusqlite::Row<'_>,
    ) -> Result<Option<FoundRow>, IndexError> {
        let column = |number| row.get_ref(number).map_err(self.index.fault(READ));
        let (Some(stored), Some(size), Some(mtime), Some(offset)) = (
            bytes(column(1)?),
            unsigned(column(2)?),
            mtime_of(column(3)?),
            unsigned(column(6)?),
        ) else {
            return Ok(None);
        };
        let md5 = column(4)?;
        let is_file = md5 != ValueRef::Null;
        let (md5, Some(tar)) = (bytes(md5), bytes(column(5)?)) else {
            return Ok(None);
        };
        // The first row of a range has no volume before it: an empty name must be looked at, too.
        if tar != self.volume.0 || tar.is_empty() {
            let Some(volume) = VolumeId::from_name(tar) else {
                return Ok(None);
            };
            self.volume.0.clear();
            self.volume.0.extend_from_slice(tar);
            self.volume.1 = volume;
        }
        if id >= FIRST_STAGED_ID || (is_file && !md5.is_some_and(is_md5)) {
            return Ok(None);
        }
        let (name, bad_name) = self.names.of(RowId(id), stored)?;
        if bad_name.is_some() {
            return Ok(None);
        }
        let metadata = match &mut self.metadata {
            Some(cursor) => cursor.at(self.volume.1, offset)?,
            None => MetadataNumber::default(),
        };
        Ok(Some(FoundRow {
            hash: self.hasher.hash(name),
            id,
            size,
            is_file,
            metadata,
            mtime,
        }))
    }
}

/// Without a branch for each digit.
fn is_md5(digits: &[u8]) -> bool {
    let is_digit =
        |byte: u8| (byte.wrapping_sub(b'0') < 10) | ((byte | 0x20).wrapping_sub(b'a') < 6);
    digits.len() == 32 && digits.iter().fold(true, |all, &byte| all & is_digit(byte))
}

/// Returns the next free id.
pub(crate) fn load_staged(
    staging: &Staging,
    loader: Loader<'_>,
    mut id: i64,
    loaded: &mut Loaded,
) -> Result<i64, IndexError> {
    let mut metadata = match (loader.metadata, staging.checkpoint()?) {
        (Some(dictionary), Some(checkpoint)) => {
            let blocks = staging.attributes()?;
            Some(StagedMetadata::new(dictionary, checkpoint.volume, blocks))
        }
        _ => None,
    };
    staging.rows(|row| {
        let metadata = metadata.as_mut().map(|staged| staged.at(row.offset));
        loaded.push(FoundRow {
            hash: loader.hasher.hash(row.name),
            id,
            size: row.size,
            is_file: row.md5.is_some(),
            metadata: metadata.unwrap_or_default(),
            mtime: row.mtime,
        });
        id += 1;
        ControlFlow::Continue(())
    })?;
    Ok(id)
}
