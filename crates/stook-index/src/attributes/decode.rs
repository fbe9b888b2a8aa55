//! From a block to its members. Takes any bytes: what is no block is `None`, and no member ever panics.

use std::ops::Range;

use stook_sys::Timestamp;

use super::{
    Attributes, BLOCK, MOST_MEMBERS, MemberKind, RecordedMetadata, SPARSE, XATTRS, unbiased,
};
use crate::column::{Column, Reader};
use crate::types::VolumeId;

/// The attributes of at most 4,096 consecutive members of a volume.
#[derive(Debug, Clone)]
pub struct AttributesBlock {
    volume: VolumeId,
    first: u64,
    data: Vec<u8>,
    members: usize,
    dictionary: Vec<Entry>,
    offsets: Column,
    headers: Column,
    entries: Column,
    seconds: Column,
    nanoseconds: Column,
    bits: Column,
    devices: ListMarks,
    targets: ListMarks,
    links: ListMarks,
}

#[derive(Debug, Clone)]
struct Entry {
    kind: MemberKind,
    mode: u32,
    uid: u64,
    gid: u64,
    uname: Range<usize>,
    gname: Range<usize>,
}

impl AttributesBlock {
    /// Decodes the members of `volume` whose first one lies at `first`; `None` if this is no such block.
    ///
    /// # Cost
    /// One pass over columns and lists, allocations for the dictionary and for every 32nd value of a list.
    pub fn decode(volume: VolumeId, first: u64, data: Vec<u8>) -> Option<Self> {
        let mut reader = Reader::new(&data, 0);
        let members = usize::try_from(reader.varint()?).ok()?;
        if !(1..=MOST_MEMBERS).contains(&members) {
            return None;
        }
        let dictionary = read_dictionary(&mut reader, members)?;
        let mut column = || reader.column(members);
        let (offsets, headers, entries) = (column()?, column()?, column()?);
        let (seconds, nanoseconds, bits) = (column()?, column()?, column()?);
        let (devices, next) = ListMarks::read(&data, reader.at(), members, device)?;
        let (targets, next) = ListMarks::read(&data, next, members, Reader::bytes)?;
        let (links, end) = ListMarks::read(&data, next, members, Reader::bytes)?;
        let block = Self {
            volume,
            first,
            members,
            dictionary,
            offsets,
            headers,
            entries,
            seconds,
            nanoseconds,
            bits,
            devices,
            targets,
            links,
            data,
        };
        (end == block.data.len() && block.is_sound()).then_some(block)
    }

    /// Everything that reading a member relies on.
    fn is_sound(&self) -> bool {
        let mut next = 0;
        first_is_aligned(self.first)
            && (0..self.members).all(|index| {
                let offset = self.offsets.get(&self.data, index);
                let is_behind = if index == 0 {
                    offset == 0
                } else {
                    offset >= next
                };
                next = offset.saturating_add(1);
                let header = self.headers.get(&self.data, index);
                let content = offset
                    .checked_add(header)
                    .and_then(|blocks| blocks.checked_mul(BLOCK))
                    .and_then(|bytes| bytes.checked_add(self.first));
                is_behind
                    && content.is_some()
                    && self.entries.get(&self.data, index) < self.dictionary.len() as u64
                    && self.nanoseconds.get(&self.data, index) < 1_000_000_000
                    && self.bits.get(&self.data, index) <= SPARSE | XATTRS
            })
    }

    /// Returns the volume.
    pub fn volume(&self) -> VolumeId {
        self.volume
    }

    /// Returns the offset of the first member.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the offset of the last member.
    pub fn last(&self) -> u64 {
        self.offset(self.members - 1)
    }

    /// Returns the number of members, which is never 0.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.members
    }

    pub(super) fn offset(&self, index: usize) -> u64 {
        self.first + BLOCK * self.offsets.get(&self.data, index)
    }

    /// Returns the number of the entry of the dictionary of a member.
    pub(super) fn entry(&self, index: usize) -> usize {
        usize::try_from(self.entries.get(&self.data, index)).unwrap_or(usize::MAX)
    }

    /// Returns what each entry of the dictionary says that a tree is compared with.
    pub(super) fn recorded(&self) -> impl Iterator<Item = RecordedMetadata> {
        self.dictionary.iter().map(|entry| RecordedMetadata {
            kind: entry.kind,
            mode: entry.mode,
            uid: entry.uid,
            gid: entry.gid,
            uname: self.data[entry.uname.clone()].into(),
            gname: self.data[entry.gname.clone()].into(),
        })
    }

    pub(super) fn index_of(&self, offset: u64) -> Option<usize> {
        let (mut from, mut end) = (0, self.members);
        while from < end {
            let middle = from.midpoint(end);
            match self.offset(middle).cmp(&offset) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// Returns true if a member begins at this offset of the volume.
    pub fn contains(&self, offset: u64) -> bool {
        self.index_of(offset).is_some()
    }

    /// Returns the member that begins at this offset of the volume.
    ///
    /// # Cost
    /// As [`AttributesBlock::iter_from`].
    pub fn find(&self, offset: u64) -> Option<Attributes<'_>> {
        self.iter_from(offset)?.next()
    }

    /// Returns the members in the order of their offsets.
    pub fn iter(&self) -> Members<'_> {
        self.members_from(0)
    }

    /// Returns the members in the order of their offsets, beginning with the one at this offset of the volume; `None` if
    /// none begins there.
    ///
    /// # Cost
    /// A binary search, and at most 32 steps in each list, however long the lists are.
    pub fn iter_from(&self, offset: u64) -> Option<Members<'_>> {
        Some(self.members_from(self.index_of(offset)?))
    }

    fn members_from(&self, index: usize) -> Members<'_> {
        Members {
            block: self,
            index,
            devices: self.devices.list_from(&self.data, index, device),
            targets: self.targets.list_from(&self.data, index, Reader::bytes),
            links: self.links.list_from(&self.data, index, Reader::bytes),
        }
    }
}

fn first_is_aligned(first: u64) -> bool {
    first.is_multiple_of(BLOCK)
}

impl<'a> IntoIterator for &'a AttributesBlock {
    type Item = Attributes<'a>;
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

fn read_dictionary(reader: &mut Reader<'_>, members: usize) -> Option<Vec<Entry>> {
    let count = usize::try_from(reader.varint()?).ok()?;
    if count > members {
        return None;
    }
    let mut dictionary = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = MemberKind::from_digit(reader.byte()?)?;
        let mode = u32::try_from(reader.varint()?).ok()?;
        let (uid, gid) = (reader.varint()?, reader.varint()?);
        let mut range = || {
            let len = reader.bytes()?.len();
            Some(reader.at() - len..reader.at())
        };
        let (uname, gname) = (range()?, range()?);
        dictionary.push(Entry {
            kind,
            mode,
            uid,
            gid,
            uname,
            gname,
        });
    }
    Some(dictionary)
}

/// The members of a block, one after the other.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    block: &'a AttributesBlock,
    index: usize,
    devices: List<'a, (u32, u32)>,
    targets: List<'a, &'a [u8]>,
    links: List<'a, &'a [u8]>,
}

impl Members<'_> {
    /// Returns how many links are behind the next one.
    #[cfg(test)]
    pub(super) fn links_left(&self) -> u64 {
        self.links.left
    }

    /// Returns the offset of the member that comes next.
    pub fn next_offset(&self) -> Option<u64> {
        (self.index < self.block.members).then(|| self.block.offset(self.index))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Attributes<'a>;

    fn next(&mut self) -> Option<Attributes<'a>> {
        let (block, index) = (self.block, self.index);
        if index >= block.members {
            return None;
        }
        self.index += 1;
        let data = &block.data[..];
        let offset = block.offset(index);
        let entry = usize::try_from(block.entries.get(data, index)).ok()?;
        let entry = block.dictionary.get(entry)?;
        let bits = block.bits.get(data, index);
        let nanoseconds = block.nanoseconds.get(data, index);
        Some(Attributes {
            offset,
            content: offset + BLOCK * block.headers.get(data, index),
            kind: entry.kind,
            mode: entry.mode,
            uid: entry.uid,
            gid: entry.gid,
            uname: &data[entry.uname.clone()],
            gname: &data[entry.gname.clone()],
            mtime: Timestamp {
                seconds: unbiased(block.seconds.get(data, index)),
                nanoseconds: u32::try_from(nanoseconds).ok()?,
            },
            device: self.devices.at(index).unwrap_or_default(),
            target: self.targets.at(index).unwrap_or_default(),
            link: self.links.at(index),
            is_sparse: bits & SPARSE != 0,
            has_xattrs: bits & XATTRS != 0,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.block.members.saturating_sub(self.index);
        (left, Some(left))
    }
}

fn device(reader: &mut Reader<'_>) -> Option<(u32, u32)> {
    let mut number = || u32::try_from(reader.varint()?).ok();
    Some((number()?, number()?))
}

type ReadValue<'a, T> = fn(&mut Reader<'a>) -> Option<T>;

/// What only few members have, read along with the members.
#[derive(Debug, Clone)]
struct List<'a, T> {
    reader: Reader<'a>,
    read: ReadValue<'a, T>,
    left: u64,
    /// The least index that the next one can have.
    index: u64,
    /// The next one that was not asked for yet.
    next: Option<(u64, T)>,
}

/// Where a list lies, and every 32nd of its values: a search begins at one of these.
#[derive(Debug, Clone)]
struct ListMarks {
    marks: Vec<ListMark>,
}

/// What reading a list goes on from.
#[derive(Debug, Clone, Copy)]
struct ListMark {
    /// Where the next value lies.
    at: usize,
    /// The least index that it can have.
    index: u64,
    /// Values from there on.
    left: u64,
}

impl ListMarks {
    const VALUES: u64 = 32;

    /// Reads a whole list for so many members; returns also where it ends. `None` if it is none.
    fn read<'a, T: Copy>(
        data: &'a [u8],
        at: usize,
        members: usize,
        read: ReadValue<'a, T>,
    ) -> Option<(Self, usize)> {
        let mut reader = Reader::new(data, at);
        let count = reader.varint()?;
        let mut mark = ListMark {
            at: reader.at(),
            index: 0,
            left: count,
        };
        let mut marks = vec![mark];
        while mark.left > 0 {
            let (index, _) = next_value(&mut reader, mark.index, read)?;
            mark = ListMark {
                at: reader.at(),
                index: index.checked_add(1)?,
                left: mark.left - 1,
            };
            if mark.index > members as u64 {
                return None;
            }
            if (count - mark.left).is_multiple_of(Self::VALUES) {
                marks.push(mark);
            }
        }
        Some((Self { marks }, reader.at()))
    }

    /// Returns the list, to be asked for members from an index on.
    fn list_from<'a, T: Copy>(
        &self,
        data: &'a [u8],
        index: usize,
        read: ReadValue<'a, T>,
    ) -> List<'a, T> {
        let before = |mark: &ListMark| mark.index <= index as u64;
        let place = self.marks.partition_point(before).saturating_sub(1);
        let mark = self.marks[place];
        let mut list = List {
            reader: Reader::new(data, mark.at),
            read,
            left: mark.left,
            index: mark.index,
            next: None,
        };
        list.advance();
        list
    }
}

/// Reads the gap to the next index, and its value.
fn next_value<'a, T>(
    reader: &mut Reader<'a>,
    least: u64,
    read: ReadValue<'a, T>,
) -> Option<(u64, T)> {
    let gap = reader.varint()?;
    let value = read(reader)?;
    Some((least.checked_add(gap)?, value))
}

impl<T: Copy> List<'_, T> {
    /// Reads the next one; what cannot be read ends the list with some left.
    fn advance(&mut self) {
        self.next = None;
        if self.left == 0 {
            return;
        }
        if let Some((index, value)) = next_value(&mut self.reader, self.index, self.read) {
            self.left -= 1;
            self.index = index.saturating_add(1);
            self.next = Some((index, value));
        }
    }

    /// Returns the value of a member; members must be asked for in ascending order.
    fn at(&mut self, index: usize) -> Option<T> {
        loop {
            let (next, value) = self.next?;
            if next >= index as u64 {
                return (next == index as u64).then_some(value);
            }
            self.advance();
        }
    }
}
