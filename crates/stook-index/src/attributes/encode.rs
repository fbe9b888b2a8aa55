//! From members to blocks, as they are written.

use std::collections::HashMap;

use super::{Attributes, BLOCK, MOST_MEMBERS, SPARSE, XATTRS, biased};
use crate::blocks::NewBlock;
use crate::column::{put_bytes, put_column, put_varint};

/// Gathers the attributes of consecutive members of one volume in blocks.
///
/// # Cost
/// A member takes 56 bytes until its block is full, then about 10. Nothing is allocated for a member by itself.
#[derive(Debug, Default)]
pub struct AttributesEncoder {
    block: OpenBlock,
    blocks: Vec<NewBlock>,
}

impl AttributesEncoder {
    /// Adds the next member. One that does not lie behind the member before, or at no multiple of 512, is passed over: its
    /// header will have to be read.
    pub fn push(&mut self, member: &Attributes<'_>) {
        let is_behind = self.block.last.is_none_or(|last| last < member.offset);
        let header = member.content.checked_sub(member.offset);
        let is_aligned = |number: u64| number.is_multiple_of(BLOCK);
        let (true, true, Some(header)) = (is_behind, is_aligned(member.offset), header) else {
            return;
        };
        if !is_aligned(header) {
            return;
        }
        self.block.push(member, header / BLOCK);
        if self.block.offsets.len() >= MOST_MEMBERS {
            self.end_block();
        }
    }

    /// Ends a block here: the next member is not the one that follows in the volume.
    pub fn end_block(&mut self) {
        let last = self.block.last;
        self.blocks.extend(self.block.take());
        self.block.last = last;
    }

    /// Returns the number of members in all blocks since the last [`AttributesEncoder::take`].
    pub fn members(&self) -> u64 {
        let ended: u64 = self.blocks.iter().map(NewBlock::entries).sum();
        ended + self.block.offsets.len() as u64
    }

    /// Returns all blocks since the last call, the one that was open included.
    pub fn take(&mut self) -> Vec<NewBlock> {
        self.end_block();
        std::mem::take(&mut self.blocks)
    }
}

/// The members of a block, column by column.
#[derive(Debug, Default)]
struct OpenBlock {
    /// The offset of the last member, of the block before if this one is empty.
    last: Option<u64>,
    first: u64,
    /// The entries of the dictionary, encoded, and which is which.
    dictionary: Vec<u8>,
    entries: HashMap<Vec<u8>, u64>,
    /// The entry that was used last, encoded: mostly the next one is the same.
    entry: Vec<u8>,
    entry_number: u64,
    scratch: Vec<u8>,
    offsets: Vec<u64>,
    headers: Vec<u64>,
    entry_numbers: Vec<u64>,
    seconds: Vec<u64>,
    nanoseconds: Vec<u64>,
    bits: Vec<u64>,
    devices: List,
    targets: List,
    links: List,
}

impl OpenBlock {
    fn push(&mut self, member: &Attributes<'_>, header: u64) {
        let index = self.offsets.len() as u64;
        if index == 0 {
            self.first = member.offset;
        }
        self.last = Some(member.offset);
        let entry = self.entry_of(member);
        self.offsets.push((member.offset - self.first) / BLOCK);
        self.headers.push(header);
        self.entry_numbers.push(entry);
        self.seconds.push(biased(member.mtime.seconds));
        self.nanoseconds.push(member.mtime.nanoseconds.into());
        let sparse = if member.is_sparse { SPARSE } else { 0 };
        let xattrs = if member.has_xattrs { XATTRS } else { 0 };
        self.bits.push(sparse | xattrs);
        if member.device != (0, 0) {
            let (major, minor) = member.device;
            let bytes = self.devices.add(index);
            put_varint(bytes, major.into());
            put_varint(bytes, minor.into());
        }
        if !member.target.is_empty() {
            put_bytes(self.targets.add(index), member.target);
        }
        if let Some(link) = member.link {
            put_bytes(self.links.add(index), link);
        }
    }

    /// Returns the number of the entry of the dictionary for a member.
    fn entry_of(&mut self, member: &Attributes<'_>) -> u64 {
        let entry = &mut self.scratch;
        entry.clear();
        entry.push(member.kind.digit());
        put_varint(entry, member.mode.into());
        put_varint(entry, member.uid);
        put_varint(entry, member.gid);
        put_bytes(entry, member.uname);
        put_bytes(entry, member.gname);
        if *entry == self.entry && !self.entries.is_empty() {
            return self.entry_number;
        }
        let number = match self.entries.get(entry) {
            Some(number) => *number,
            None => {
                let number = self.entries.len() as u64;
                self.dictionary.extend_from_slice(entry);
                self.entries.insert(entry.clone(), number);
                number
            }
        };
        std::mem::swap(&mut self.entry, &mut self.scratch);
        self.entry_number = number;
        number
    }

    /// Returns the block, and is empty then; `None` if it was.
    fn take(&mut self) -> Option<NewBlock> {
        if self.offsets.is_empty() {
            return None;
        }
        let block = std::mem::take(self);
        let mut data = Vec::with_capacity(12 * block.offsets.len());
        put_varint(&mut data, block.offsets.len() as u64);
        put_varint(&mut data, block.entries.len() as u64);
        data.extend_from_slice(&block.dictionary);
        for column in [
            &block.offsets,
            &block.headers,
            &block.entry_numbers,
            &block.seconds,
            &block.nanoseconds,
            &block.bits,
        ] {
            put_column(&mut data, column);
        }
        for list in [&block.devices, &block.targets, &block.links] {
            put_varint(&mut data, list.count);
            data.extend_from_slice(&list.bytes);
        }
        let entries = block.offsets.len() as u64;
        Some(NewBlock::new(block.first, entries, data))
    }
}

/// What only few members have: the index of each, as its distance from the one before, and the value.
#[derive(Debug, Default)]
struct List {
    count: u64,
    next: u64,
    bytes: Vec<u8>,
}

impl List {
    /// Adds a member, whose value the caller appends.
    fn add(&mut self, index: u64) -> &mut Vec<u8> {
        put_varint(&mut self.bytes, index - self.next);
        self.next = index + 1;
        self.count += 1;
        &mut self.bytes
    }
}
