//! Type, mode and owner of members, found along with their rows: what a tree is compared with beyond size and time.
//!
//! ```text
//!   rows by id ──(volume, offset)──> block of that place ──> entry of its dictionary ──> number in one dictionary for all
//! ```
//! A tree has few combinations, so that a name needs no more than a number of 20 bits. Rows are read in the order they
//! were archived: the next one is mostly the next member of the same block.

use std::collections::HashMap;
use std::sync::Mutex;

use rusqlite::{OptionalExtension, Statement, params};

use super::{AttributesBlock, MemberKind, StoredAttributes};
use crate::blocks::{self, NewBlock, StoredBlock};
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::scan::is_unreadable;
use crate::schema::ATTRIBUTES;
use crate::types::VolumeId;

/// What the attributes of a member say that can be compared with a file without opening it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordedMetadata {
    /// Its type.
    pub kind: MemberKind,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Number of the owner.
    pub uid: u64,
    /// Number of the group.
    pub gid: u64,
    /// Name of the owner, may be empty.
    pub uname: Box<[u8]>,
    /// Name of the group, may be empty.
    pub gname: Box<[u8]>,
}

/// Stands for metadata in a [`MetadataDictionary`]; the default stands for unknown metadata.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MetadataNumber(pub(crate) u32);

impl MetadataNumber {
    /// Bits of a number.
    pub(crate) const BITS: u32 = 20;

    const GREATEST: usize = (1 << Self::BITS) - 1;
}

/// All metadata that occurs, each once. Several threads add to it.
#[derive(Debug, Default)]
pub(crate) struct MetadataDictionary(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    numbers: HashMap<RecordedMetadata, MetadataNumber>,
    all: Vec<RecordedMetadata>,
}

impl MetadataDictionary {
    /// Returns the numbers of metadata. What comes after the first 1,048,575 stays unknown.
    fn numbers(&self, wanted: impl Iterator<Item = RecordedMetadata>) -> Vec<MetadataNumber> {
        let mut entries = stook_sys::lock(&self.0);
        wanted.map(|metadata| entries.number(metadata)).collect()
    }

    /// Returns the metadata that each number stands for, from 1 on.
    pub(crate) fn into_entries(self) -> Vec<RecordedMetadata> {
        stook_sys::into_inner(self.0).all
    }
}

impl Entries {
    fn number(&mut self, metadata: RecordedMetadata) -> MetadataNumber {
        if let Some(number) = self.numbers.get(&metadata) {
            return *number;
        }
        if self.all.len() >= MetadataNumber::GREATEST {
            return MetadataNumber::default();
        }
        self.all.push(metadata.clone());
        let number = u32::try_from(self.all.len())
            .map_or_else(|_| MetadataNumber::default(), MetadataNumber);
        self.numbers.insert(metadata, number);
        number
    }
}

/// A block, and the numbers of the entries of its dictionary.
struct NumberedBlock {
    block: AttributesBlock,
    numbers: Vec<MetadataNumber>,
    /// The member that is probably asked for next.
    next: usize,
}

impl NumberedBlock {
    fn new(block: AttributesBlock, dictionary: &MetadataDictionary) -> Self {
        Self {
            numbers: dictionary.numbers(block.recorded()),
            block,
            next: 0,
        }
    }

    fn at(&mut self, offset: u64) -> MetadataNumber {
        let is_next = self.next < self.block.len() && self.block.offset(self.next) == offset;
        let found = if is_next {
            Some(self.next)
        } else {
            self.block.index_of(offset)
        };
        let Some(index) = found else {
            return MetadataNumber::default();
        };
        self.next = index + 1;
        let entry = self.block.entry(index);
        self.numbers.get(entry).copied().unwrap_or_default()
    }
}

/// What is known of a range of offsets of a volume.
struct BlockRange {
    volume: VolumeId,
    first: u64,
    /// The first offset behind it that another block may have.
    end: u64,
    /// None if there is no block, or it is not as it was written.
    block: Option<NumberedBlock>,
}

impl BlockRange {
    fn has(&self, volume: VolumeId, offset: u64) -> bool {
        self.volume == volume && (self.first..self.end).contains(&offset)
    }
}

/// Finds the metadata of one row of `files` after the other.
///
/// # Cost
/// Two queries for each block while rows come in the order of their volumes, also if those of a few volumes alternate.
pub(crate) struct MetadataCursor<'a> {
    index: &'a Index,
    dictionary: &'a MetadataDictionary,
    /// None if the index has no attributes at all.
    queries: Option<Queries<'a>>,
    ranges: Vec<BlockRange>,
    /// The range of the last row.
    current: usize,
}

struct Queries<'a> {
    block: Statement<'a>,
    next: Statement<'a>,
}

impl<'a> MetadataCursor<'a> {
    /// Most blocks that are kept: rows of so many volumes may alternate, as another program's workers may write them.
    const MOST_RANGES: usize = 8;

    pub(crate) fn open(
        index: &'a Index,
        dictionary: &'a MetadataDictionary,
    ) -> Result<Self, IndexError> {
        let queries = if index.has_table(ATTRIBUTES)? {
            Some(Queries::prepare(index)?)
        } else {
            None
        };
        Ok(Self {
            index,
            dictionary,
            queries,
            ranges: Vec::new(),
            current: 0,
        })
    }

    /// Returns the number of the metadata of the member at this offset of a volume.
    pub(crate) fn at(
        &mut self,
        volume: VolumeId,
        offset: u64,
    ) -> Result<MetadataNumber, IndexError> {
        let has = |range: &BlockRange| range.has(volume, offset);
        if !self.ranges.get(self.current).is_some_and(has) {
            let Some(found) = self.range(volume, offset)? else {
                return Ok(MetadataNumber::default());
            };
            self.current = found;
        }
        let block = self.ranges[self.current].block.as_mut();
        Ok(block.map_or_else(MetadataNumber::default, |block| block.at(offset)))
    }

    /// Returns the place of a range that has this offset; None if there are no attributes.
    fn range(&mut self, volume: VolumeId, offset: u64) -> Result<Option<usize>, IndexError> {
        let has = |range: &BlockRange| range.has(volume, offset);
        if let Some(held) = self.ranges.iter().position(has) {
            return Ok(Some(held));
        }
        let Some(queries) = &mut self.queries else {
            return Ok(None);
        };
        let range = queries.range(self.index, self.dictionary, volume, offset)?;
        if self.ranges.len() < Self::MOST_RANGES {
            self.ranges.push(range);
            return Ok(Some(self.ranges.len() - 1));
        }
        let replaced = (self.current + 1) % Self::MOST_RANGES;
        self.ranges[replaced] = range;
        Ok(Some(replaced))
    }
}

impl<'a> Queries<'a> {
    fn prepare(index: &'a Index) -> Result<Self, IndexError> {
        let prepare = |query: &str| index.connection.prepare(query).map_err(index.fault(READ));
        let columns = blocks::COLUMNS;
        Ok(Self {
            block: prepare(&format!(
                "SELECT {columns} FROM {ATTRIBUTES} WHERE volume = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1"
            ))?,
            next: prepare(&format!(
                "SELECT first FROM {ATTRIBUTES} WHERE volume = ?1 AND first > ?2 ORDER BY first LIMIT 1"
            ))?,
        })
    }

    fn range(
        &mut self,
        index: &Index,
        dictionary: &MetadataDictionary,
        volume: VolumeId,
        offset: u64,
    ) -> Result<BlockRange, IndexError> {
        match self.read(volume, offset) {
            Ok((stored, end)) => {
                let first = match &stored {
                    None => 0,
                    Some(Some(stored)) => stored.first,
                    // A damaged row says nothing of the blocks before it.
                    Some(None) => offset,
                };
                let block = stored
                    .flatten()
                    .and_then(|stored| StoredAttributes(stored).decode());
                Ok(BlockRange {
                    volume,
                    first,
                    end: end.max(offset.saturating_add(1)),
                    block: block.map(|block| NumberedBlock::new(block, dictionary)),
                })
            }
            // Not asked again for every row: the rest of the volume counts as unknown.
            Err(error) if is_unreadable(&error) => Ok(BlockRange {
                volume,
                first: offset,
                end: u64::MAX,
                block: None,
            }),
            Err(error) => Err(index.fault(READ)(error)),
        }
    }

    /// Returns the block before an offset, which holds none if its row is damaged, and where the next one begins.
    fn read(
        &mut self,
        volume: VolumeId,
        offset: u64,
    ) -> rusqlite::Result<(Option<Option<StoredBlock>>, u64)> {
        let (Ok(volume), Ok(offset)) = (i64::try_from(volume.0), i64::try_from(offset)) else {
            return Ok((None, u64::MAX));
        };
        let block = self
            .block
            .query_row(params![volume, offset], StoredBlock::of_row)
            .optional()?;
        let next = |row: &rusqlite::Row<'_>| Ok(row.get_ref(0)?.as_i64().ok());
        let next = self
            .next
            .query_row(params![volume, offset], next)
            .optional()?;
        let end = next.flatten().and_then(|next| u64::try_from(next).ok());
        Ok((block, end.unwrap_or(u64::MAX)))
    }
}

/// Finds the metadata of staged rows, which come in the order of their volume.
pub(crate) struct StagedMetadata<'a> {
    dictionary: &'a MetadataDictionary,
    volume: VolumeId,
    blocks: std::iter::Peekable<std::vec::IntoIter<NewBlock>>,
    current: Option<NumberedBlock>,
}

impl<'a> StagedMetadata<'a> {
    pub(crate) fn new(
        dictionary: &'a MetadataDictionary,
        volume: VolumeId,
        blocks: Vec<NewBlock>,
    ) -> Self {
        Self {
            dictionary,
            volume,
            blocks: blocks.into_iter().peekable(),
            current: None,
        }
    }

    pub(crate) fn at(&mut self, offset: u64) -> MetadataNumber {
        while let Some(block) = self.blocks.next_if(|block| block.first() <= offset) {
            let block = AttributesBlock::decode(self.volume, block.first(), block.into_data());
            self.current = block.map(|block| NumberedBlock::new(block, self.dictionary));
        }
        let current = self.current.as_mut();
        current.map_or_else(MetadataNumber::default, |block| block.at(offset))
    }
}
