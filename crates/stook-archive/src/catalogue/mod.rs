//! The catalogue: a state of an archive in memory, as a tree that is looked up by path, for a mount and for Python.
//!
//! ```text
//!   entry            0 (root) | 1  2  3 | 4  5 | 6  7  8 | ...     level by level: the children of an entry lie together,
//!                                                                   sorted by name
//!   parents          0          0  0  0   1  1   3  3  3           4 bytes
//!   first_children   1          4  6  6   9  9   9 ...             4 bytes; an entry's children end where the next one's begin
//!   name_ends                                                      8 bytes; where each name ends in `names`, one after the other
//!   facts            row, size, time, MD5, volume and offset       64 bytes, a cache line
//!                    and which of the `shared` attributes ──────>  kind, mode, owner, group: each combination once
//!   extras, links    targets, devices, hard links                  of those that have them, sorted by entry
//! ```
//! 80 bytes an entry beyond its name. Nothing here changes, and no SQLite is open: any number of threads read it, and the
//! archive may grow meanwhile. It is read again to see that.
//!
//! What a name is that makes trouble: a name that `extract` would refuse is left out, one that it would put elsewhere (`a//b`)
//! is there. A file whose name is that of a directory, too, is left out: all that is below stays reachable. A name whose newest
//! row is damaged is left out, never an older version shown. All of these are failures, reported to the observer.
//!
//! Attributes that the index does not have are read from headers when they are asked for, and not before: an archive of zstash
//! of a million members would take minutes to open where reads take time.

mod arrange;
mod directories;
mod extras;
mod facts;
mod links;
mod load;
mod part;
mod shared;
mod stat;
mod stored;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use stook_index::{Row, VolumeId};
use stook_volume::Member;

use crate::ArchiveError;
use crate::read::{MemberReader, Patience, VolumeBytes, Volumes, open_member, read_small};
use extras::Extras;
use facts::{Facts, HAS_MD5, HAS_ROW};
use links::Links;
pub use load::{CatalogueOptions, Versions};
pub use part::clean_path;
use shared::Shared;
pub use stat::{Stat, StatSource};
pub use stored::StoredFiles;

/// An entry of a [`Catalogue`]: its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(u32);

impl EntryId {
    /// The tree as a whole.
    pub const ROOT: Self = Self(0);

    /// Returns its number: from 0 to less than [`Catalogue::len`]. It has a meaning in one catalogue only.
    pub fn number(self) -> u32 {
        self.0
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A state of an archive in memory.
#[derive(Debug)]
pub struct Catalogue {
    names: Vec<u8>,
    name_ends: Vec<usize>,
    parents: Vec<u32>,
    first_children: Vec<u32>,
    facts: Vec<Facts>,
    shared: Vec<Shared>,
    extras: Extras,
    links: Links,
    volume_ids: Vec<VolumeId>,
    /// What readers and headers keep open.
    volumes: Volumes,
    /// Headers of rows without attributes; `None` for one that cannot be read.
    headers: Mutex<HashMap<EntryId, Arc<Member>>>,
    failures: u64,
    damages: u64,
}

impl Catalogue {
    /// Returns the number of entries, the root included.
    #[expect(clippy::len_without_is_empty, reason = "it always has a root")]
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// Returns the entry with a number; `None` if there is none.
    pub fn entry(&self, number: u32) -> Option<EntryId> {
        ((number as usize) < self.len()).then_some(EntryId(number))
    }

    /// Returns how much was left out, each reported to the observer.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns how much of the index is damaged beyond that, each reported to the observer: headers are read instead.
    pub fn damages(&self) -> u64 {
        self.damages
    }

    /// Finds the entry at a path below the root; an empty path is the root. Components that are empty or `.` are passed over;
    /// `..` finds nothing.
    ///
    /// # Cost
    /// A binary search among its siblings for each component.
    pub fn find(&self, path: &[u8]) -> Option<EntryId> {
        let mut components = path
            .split(|&byte| byte == b'/')
            .filter(|&name| name != b"" && name != b".");
        components.try_fold(EntryId::ROOT, |entry, name| self.child(entry, name))
    }

    /// Finds the child of an entry by its name.
    ///
    /// # Cost
    /// A binary search among the children.
    pub fn child(&self, entry: EntryId, name: &[u8]) -> Option<EntryId> {
        let range = self.child_range(entry);
        let (mut from, mut end) = (range.start, range.end);
        while from < end {
            let middle = from.midpoint(end);
            match self.name(EntryId(middle)).cmp(name) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Some(EntryId(middle)),
                std::cmp::Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// Returns the children of an entry, sorted by name.
    ///
    /// # Cost
    /// None; nothing is gathered.
    pub fn children(
        &self,
        entry: EntryId,
    ) -> impl DoubleEndedIterator<Item = EntryId> + ExactSizeIterator + use<> {
        self.children_from(entry, 0)
    }

    /// As [`Catalogue::children`], without the first `cursor` of them.
    ///
    /// # Cost
    /// None, wherever the cursor is.
    pub fn children_from(
        &self,
        entry: EntryId,
        cursor: usize,
    ) -> impl DoubleEndedIterator<Item = EntryId> + ExactSizeIterator + use<> {
        let range = self.child_range(entry);
        let skipped = u32::try_from(cursor).unwrap_or(u32::MAX);
        let start = range.start.saturating_add(skipped).min(range.end);
        (start..range.end).map(EntryId)
    }

    fn child_range(&self, entry: EntryId) -> std::ops::Range<u32> {
        self.first_children[entry.index()]..self.first_children[entry.index() + 1]
    }

    fn has_children(&self, entry: EntryId) -> bool {
        !self.child_range(entry).is_empty()
    }

    fn has_row(&self, entry: EntryId) -> bool {
        self.facts[entry.index()].has(HAS_ROW)
    }

    /// Returns an entry's own name; that of the root is empty.
    ///
    /// # Cost
    /// Two cache lines.
    pub fn name(&self, entry: EntryId) -> &[u8] {
        let start = match entry.index() {
            0 => 0,
            index => self.name_ends[index - 1],
        };
        &self.names[start..self.name_ends[entry.index()]]
    }

    /// Returns the directory that an entry is in; `None` for the root.
    pub fn parent(&self, entry: EntryId) -> Option<EntryId> {
        (entry != EntryId::ROOT).then(|| EntryId(self.parents[entry.index()]))
    }

    /// Returns the path of an entry below the root.
    ///
    /// # Cost
    /// An allocation, and two cache lines for each component.
    pub fn path(&self, entry: EntryId) -> Vec<u8> {
        let mut names = Vec::new();
        let mut next = entry;
        while let Some(parent) = self.parent(next) {
            names.push(self.name(next));
            next = parent;
        }
        names.reverse();
        names.join(&b'/')
    }

    /// Returns the bytes of content that the index says an entry has; 0 without a row.
    ///
    /// # Cost
    /// A cache line.
    pub fn size(&self, entry: EntryId) -> u64 {
        self.facts[entry.index()].size
    }

    /// Returns the first name of the file of an entry: mostly the entry itself.
    pub fn first_name(&self, entry: EntryId) -> EntryId {
        self.links.first(entry)
    }

    /// Returns the row that an entry is of, as the index has it; `None` for a directory without one.
    ///
    /// # Cost
    /// As [`Catalogue::path`].
    pub fn row_of(&self, entry: EntryId) -> Option<Row> {
        let facts = &self.facts[entry.index()];
        let id = self.row_id(entry)?;
        let name = match self.extras.raw_name(entry) {
            Some(name) => name.to_vec(),
            None => self.path(entry),
        };
        Some(Row {
            id,
            name,
            size: facts.size,
            mtime: facts.mtime,
            md5: facts.has(HAS_MD5).then_some(facts.md5),
            volume: self.volume_ids[facts.volume as usize],
            offset: facts.offset,
        })
    }

    /// Returns the volume that the content of an entry is in; `None` if it has none.
    ///
    /// # Cost
    /// A cache line.
    pub fn volume_of(&self, entry: EntryId) -> Option<VolumeId> {
        let facts = &self.facts[entry.index()];
        let volume = || self.volume_ids[facts.volume as usize];
        facts.has(HAS_MD5).then(volume)
    }

    /// Returns the volume of an entry and where in it the content begins; `None` if it has no row, or the index does not say.
    ///
    /// # Cost
    /// A cache line.
    pub fn content_at(&self, entry: EntryId) -> Option<(VolumeId, u64)> {
        let facts = &self.facts[entry.index()];
        let content = facts.content().filter(|_| facts.has(HAS_MD5))?;
        Some((self.volume_ids[facts.volume as usize], content))
    }

    /// Returns a reader of the content of an entry. It works while the archive grows: volumes do not change.
    ///
    /// # Errors
    /// `NotAFile` if it has no content, `Damaged` if the volume has another member there, or none; `Sys` if the volume
    /// cannot be opened.
    pub fn reader(&self, entry: EntryId) -> Result<MemberReader, ArchiveError> {
        match self.row_of(entry) {
            Some(row) => open_member(|| self.volumes.get(row.volume), &row),
            None => Err(ArchiveError::NotAFile {
                name: self.path(entry),
            }),
        }
    }

    /// As [`Catalogue::reader`]; `None` if it would have to wait.
    ///
    /// # Errors
    /// As [`Catalogue::reader`], but `Sys`: opening a volume may take a while.
    pub fn reader_if_cached(&self, entry: EntryId) -> Result<Option<MemberReader>, ArchiveError> {
        let Some((row, volume)) = self.open_volume_of(entry) else {
            return Ok(None);
        };
        MemberReader::open_cached(volume, &row).map_err(|cause| ArchiveError::Damaged {
            name: row.name,
            cause,
        })
    }

    /// Reads a whole member into the buffer, its header before it; returns where the content is in the buffer. `None` if it
    /// has no content, has more than `most` bytes of it, is sparse, or is of an index that does not say where contents begin;
    /// without patience also if it would have to wait.
    ///
    /// # Errors
    /// As [`Catalogue::reader`].
    ///
    /// # Cost
    /// One read.
    pub fn read_small(
        &self,
        entry: EntryId,
        most: u64,
        (patience, buffer): (Patience, &mut Vec<u8>),
    ) -> Result<Option<Range<usize>>, ArchiveError> {
        let Some((_, content)) = self.content_at(entry) else {
            return Ok(None);
        };
        let facts = &self.facts[entry.index()];
        let shared = self.shared.get(facts.shared as usize);
        if facts.size > most || shared.is_none_or(|shared| shared.is_sparse) {
            return Ok(None);
        }
        let opened = match patience {
            Patience::None => self.open_volume_of(entry),
            Patience::Waits => match self.row_of(entry) {
                Some(row) => {
                    let volume = self.volumes.get(row.volume)?;
                    Some((row, volume))
                }
                None => None,
            },
        };
        let Some((row, volume)) = opened else {
            return Ok(None);
        };
        read_small(&*volume, &row, content, (patience, buffer)).map_err(|cause| {
            ArchiveError::Damaged {
                name: row.name,
                cause,
            }
        })
    }

    /// The row of a file and its volume, if that is open.
    fn open_volume_of(&self, entry: EntryId) -> Option<(Row, Arc<dyn VolumeBytes>)> {
        let facts = &self.facts[entry.index()];
        let volume = facts.has(HAS_MD5).then(|| {
            let id = self.volume_ids[facts.volume as usize];
            self.volumes.get_open(id)
        });
        self.row_of(entry).zip(volume.flatten())
    }

    /// Returns the bytes that it takes, without the headers that it remembers.
    pub fn heap_bytes(&self) -> usize {
        self.names.capacity()
            + self.name_ends.capacity() * size_of::<usize>()
            + (self.parents.capacity() + self.first_children.capacity()) * size_of::<u32>()
            + self.facts.capacity() * size_of::<Facts>()
            + shared::heap_bytes(&self.shared)
            + self.extras.heap_bytes()
            + self.links.heap_bytes()
            + self.volume_ids.capacity() * size_of::<VolumeId>()
    }

    /// Returns the bytes of all names, and of the targets of symbolic links.
    pub fn name_bytes(&self) -> usize {
        self.names.len() + self.extras.target_bytes()
    }
}
