//! Writes an image.
//!
//! ```text
//!   room for directories ──> inodes, in the order of the catalogue ──> what did not fit into inodes ──> directories ──> head
//! ```
//! A directory stands before what is in it, so that whatever cannot be shown takes along what is below it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use stook_archive::{ArchiveError, Catalogue, EntryId, MemberKind, Observer, StatSource};
use stook_sys::Context;

use super::content::{Content, Volumes};
use super::directories::{Named, content, content_len, with_dots};
use super::format::{BLOCK, BLOCK_LEN, LONGEST_NAME, SLOT, SLOT_LEN, SuperBlock, head, head_bytes};
use super::inodes::{Data, Inode, SIZE, WORD, device_number, entry_kind};
use super::record::record_bytes;
use super::xattrs::Body;
use super::{AccessLists, ErofsReport, ImageSource, entries};
use crate::{ExportError, Refusal};

/// There is no inode of this entry's own.
const NO_INODE: u32 = u32::MAX;

/// Entries that are written between two questions whether to go on.
const ENTRIES_BETWEEN: u32 = 1 << 13;

/// Bytes of an empty directory.
const DOTS: usize = 27;

pub(super) struct Writer<'a> {
    source: &'a ImageSource,
    catalogue: &'a Catalogue,
    volumes: Volumes,
    out: &'a mut BufWriter<File>,
    path: &'a Path,
    lists: AccessLists,
    observer: &'a dyn Observer,
    /// Where inodes begin.
    first_inode: u64,
    /// The slot of each entry's inode behind that.
    slots: Vec<u32>,
    /// What has a name that is too long, and what is below that: it has no room in directories.
    left_out: HashSet<u32>,
    /// By the first name of a file with several: its names besides that, and the inode once there is one.
    names: HashMap<EntryId, u32>,
    inode_of: HashMap<EntryId, u32>,
    /// By the first name: why none of them can be shown.
    refused: HashMap<EntryId, Refusal>,
    /// What did not fit into its inode, by the place of that.
    outsize: Vec<(u64, Vec<u8>)>,
    inodes: u64,
    failed: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        source: &'a ImageSource,
        (out, path): (&'a mut BufWriter<File>, &'a Path),
        lists: AccessLists,
        observer: &'a dyn Observer,
    ) -> Self {
        let numbered = (1..).zip(source.volumes());
        Self {
            source,
            catalogue: &source.catalogue,
            volumes: numbered
                .map(|(slot, (&volume, &bytes))| (volume, (slot, bytes)))
                .collect(),
            out,
            path,
            lists,
            observer,
            first_inode: 0,
            slots: vec![NO_INODE; source.catalogue.len()],
            left_out: HashSet::new(),
            names: HashMap::new(),
            inode_of: HashMap::new(),
            refused: HashMap::new(),
            outsize: Vec::new(),
            inodes: 0,
            failed: 0,
        }
    }

    pub(super) fn write(mut self) -> Result<ErofsReport, ExportError> {
        self.leave_out_long_names();
        self.count_names();
        let directories = head_bytes(self.volumes.len());
        self.first_inode = directories + self.directory_bytes();
        let end = self.write_inodes(directories)?;
        let end = self.write_outsize(end)?;
        self.write_directories(directories)?;
        self.write_head(end)?;
        let unfit = self.failed;
        Ok(ErofsReport {
            state: *self.source.state(),
            inodes: self.inodes,
            bytes: end,
            volumes: self.source.volumes().keys().copied().collect(),
            failed: unfit + self.catalogue.failures(),
            unfit,
        })
    }

    fn fail(&mut self, entry: EntryId, refusal: Refusal) {
        self.failed += 1;
        let path = self.catalogue.path(entry);
        self.observer.failed(&refusal.of("show", &path));
    }

    fn leave_out_long_names(&mut self) {
        for entry in entries(self.catalogue) {
            if self.catalogue.name(entry).len() > LONGEST_NAME {
                self.left_out.insert(entry.number());
                self.fail(entry, Refusal::LongName);
            } else if self.is_below_left_out(entry) {
                self.left_out.insert(entry.number());
            }
        }
    }

    fn is_below_left_out(&self, entry: EntryId) -> bool {
        let is_left_out = |parent: EntryId| self.left_out.contains(&parent.number());
        !self.left_out.is_empty() && self.catalogue.parent(entry).is_some_and(is_left_out)
    }

    fn is_left_out(&self, entry: EntryId) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&entry.number())
    }

    /// Counts the names of files that have several.
    fn count_names(&mut self) {
        for entry in entries(self.catalogue) {
            let first = self.catalogue.first_name(entry);
            if first != entry && !self.is_left_out(entry) {
                *self.names.entry(first).or_default() += 1;
            }
        }
    }

    /// Returns the bytes of all directories that something is in, each in blocks of its own.
    fn directory_bytes(&self) -> u64 {
        let directories = entries(self.catalogue).filter(|&entry| self.has_names(entry));
        directories
            .map(|entry| content_len(&self.list(entry, |_| ())).next_multiple_of(BLOCK))
            .sum()
    }

    fn has_names(&self, entry: EntryId) -> bool {
        self.catalogue.children(entry).len() > 0 && !self.is_left_out(entry)
    }

    /// Returns what a directory lists, with something about each.
    fn list<T>(&self, directory: EntryId, what: impl Fn(EntryId) -> T) -> Vec<Named<'a, T>> {
        let catalogue = self.catalogue;
        let shown = catalogue
            .children(directory)
            .filter(|&child| !self.is_left_out(child));
        let named = shown.map(|child| Named {
            name: catalogue.name(child),
            what: what(child),
        });
        let mut list: Vec<Named<'a, T>> = named.collect();
        let above = catalogue.parent(directory).unwrap_or(directory);
        with_dots(&mut list, what(directory), what(above));
        list
    }

    fn write_inodes(&mut self, directories: u64) -> Result<u64, ExportError> {
        // Programs that list a directory take the number 0 for an entry that is gone.
        let mut free = self.first_inode + SLOT;
        let mut next_directory = directories;
        self.seek(self.first_inode)?;
        self.put(&[0; SLOT_LEN])?;
        let mut bytes = Vec::new();
        for entry in entries(self.catalogue) {
            if entry.number().is_multiple_of(ENTRIES_BETWEEN) {
                self.observer.advanced(u64::from(ENTRIES_BETWEEN), 0);
                if self.observer.is_interrupted() {
                    return Err(ArchiveError::Interrupted.into());
                }
            }
            // Before anything else: its room is there.
            let blocks = self.take_room(entry, &mut next_directory);
            if self.is_left_out(entry) || self.is_further_name(entry) {
                continue;
            }
            let Some(mut inode) = self.inode(entry, blocks)? else {
                continue;
            };
            let (begin, end) = inode.place(free);
            let slot = (begin - self.first_inode) / SLOT;
            let slot = u32::try_from(slot).ok().filter(|&slot| slot != NO_INODE);
            let slot = slot.ok_or(ExportError::ImageTooLong)?;
            self.slots[entry.number() as usize] = slot;
            self.add_dots(entry, &mut inode);
            if inode.is_outsize()
                && let Data::Inline(content) = &inode.data
            {
                self.outsize.push((begin, content.clone()));
            }
            bytes.clear();
            bytes.resize(usize::try_from(begin - free).expect("less than a block"), 0);
            inode.put(entry.number() + 1, self.lists, &mut bytes);
            free = end.next_multiple_of(SLOT);
            bytes.resize(
                bytes.len() + usize::try_from(free - end).expect("less than a slot"),
                0,
            );
            self.put(&bytes)?;
            self.inodes += 1;
        }
        Ok(free)
    }

    /// Returns the first block of a directory that something is in, and its bytes.
    fn take_room(&self, entry: EntryId, next: &mut u64) -> Option<(u64, u64)> {
        if !self.has_names(entry) {
            return None;
        }
        let len = content_len(&self.list(entry, |_| ()));
        let first = *next / BLOCK;
        *next += len.next_multiple_of(BLOCK);
        Some((first, len))
    }

    /// Returns true if another name of the file has the inode; else this one will have it.
    fn is_further_name(&mut self, entry: EntryId) -> bool {
        let first = self.catalogue.first_name(entry);
        if !self.names.contains_key(&first) {
            return false;
        }
        if let Some(refusal) = self.refused.get(&first) {
            self.fail(entry, refusal.clone());
            return true;
        }
        let is_further = self.inode_of.contains_key(&first);
        self.inode_of.entry(first).or_insert(entry.number());
        is_further
    }

    /// Returns the inode of an entry; `None` if it cannot be shown.
    fn inode(
        &mut self,
        entry: EntryId,
        blocks: Option<(u64, u64)>,
    ) -> Result<Option<Inode>, ExportError> {
        let first = self.catalogue.first_name(entry);
        let stat = self.catalogue.stat(first);
        let is_read = stat.source != StatSource::Row || stat.kind == Some(MemberKind::Directory);
        let Some(kind) = stat.kind.filter(|_| is_read) else {
            self.refuse(entry, Refusal::Unknown);
            return Ok(None);
        };
        let data = match (kind, blocks) {
            (MemberKind::Directory, Some((first, bytes))) => Data::Blocks {
                first: u32::try_from(first).ok().ok_or(ExportError::ImageTooLong)?,
                bytes,
            },
            (MemberKind::Directory, None) => Data::Inline(vec![0; DOTS]),
            (MemberKind::Symlink, _) => Data::Inline(self.catalogue.target(first).into_owned()),
            (MemberKind::CharDevice | MemberKind::BlockDevice, _) => {
                Data::Device(device_number(stat.device))
            }
            (MemberKind::Fifo, _) => Data::None,
            (MemberKind::File | MemberKind::HardLink, _) => {
                match Content::of(self.catalogue, first, &stat, &self.volumes) {
                    Ok(content) => Data::File(content),
                    Err(refusal) => {
                        self.refuse(entry, refusal);
                        return Ok(None);
                    }
                }
            }
        };
        let (xattrs, lacks_xattrs) = self.xattrs(first);
        Ok(Some(Inode {
            stat,
            kind,
            links: self.links(first),
            xattrs,
            lacks_xattrs,
            data,
        }))
    }

    /// An entry without an inode is in no directory: its room stays empty.
    fn refuse(&mut self, entry: EntryId, refusal: Refusal) {
        let first = self.catalogue.first_name(entry);
        if self.names.contains_key(&first) {
            self.refused.insert(first, refusal.clone());
        }
        self.fail(entry, refusal);
    }

    fn links(&self, first: EntryId) -> u32 {
        match self.names.get(&first) {
            Some(further) => further + u32::from(!self.is_left_out(first)),
            None => 1,
        }
    }

    fn xattrs(&mut self, entry: EntryId) -> (Body, bool) {
        if !self.catalogue.may_have_xattrs(entry) {
            return (Body::default(), false);
        }
        let found = self.catalogue.xattrs(entry).ok_or(Refusal::UnknownXattrs);
        match found.and_then(|xattrs| Body::of(&xattrs)) {
            Ok(body) => (body, false),
            Err(refusal) => {
                self.fail(entry, refusal);
                (Body::default(), true)
            }
        }
    }

    /// Fills in an empty directory, which is known now that it has a place.
    fn add_dots(&self, entry: EntryId, inode: &mut Inode) {
        if inode.kind == MemberKind::Directory
            && let Data::Inline(bytes) = &mut inode.data
        {
            *bytes = self.entries_of(entry);
        }
    }

    fn entries_of(&self, directory: EntryId) -> Vec<u8> {
        let mut list = self.list(directory, |entry| self.number(entry));
        list.retain(|named| named.what != u64::from(NO_INODE));
        let catalogue = self.catalogue;
        let kinds = |name: &[u8]| match name {
            b"." | b".." => entry_kind(MemberKind::Directory),
            name => catalogue
                .child(directory, name)
                .map_or(0, |child| self.entry_kind(child)),
        };
        let list: Vec<_> = list
            .into_iter()
            .map(|Named { name, what }| Named {
                name,
                what: (what, kinds(name)),
            })
            .collect();
        content(&list)
    }

    /// Returns the number of an entry's inode.
    fn number(&self, entry: EntryId) -> u64 {
        let owner = match self.names.is_empty() {
            true => None,
            false => self
                .inode_of
                .get(&self.catalogue.first_name(entry))
                .copied(),
        };
        u64::from(self.slots[owner.unwrap_or(entry.number()) as usize])
    }

    fn entry_kind(&self, entry: EntryId) -> u8 {
        let kind = self.catalogue.kind(entry);
        let kind = kind.or_else(|| self.catalogue.stat(entry).kind);
        kind.map_or(0, entry_kind)
    }

    fn write_outsize(&mut self, end: u64) -> Result<u64, ExportError> {
        let mut free = end.next_multiple_of(BLOCK);
        let outsize = std::mem::take(&mut self.outsize);
        self.put(&vec![
            0;
            usize::try_from(free - end).expect("less than a block")
        ])?;
        let mut words = Vec::with_capacity(outsize.len());
        for (inode, mut content) in outsize {
            let block = u32::try_from(free / BLOCK)
                .ok()
                .ok_or(ExportError::ImageTooLong)?;
            words.push((inode + WORD, block));
            content.resize(content.len().next_multiple_of(BLOCK_LEN), 0);
            self.put(&content)?;
            free += content.len() as u64;
        }
        for (place, block) in words {
            self.put_at(place, &block.to_le_bytes())?;
        }
        Ok(free)
    }

    fn write_directories(&mut self, begin: u64) -> Result<(), ExportError> {
        self.seek(begin)?;
        let mut shorter = Vec::new();
        for entry in entries(self.catalogue) {
            if !self.has_names(entry) {
                continue;
            }
            let mut content = self.entries_of(entry);
            let (len, planned) = (content.len() as u64, content_len(&self.list(entry, |_| ())));
            if len < planned {
                let slot = u64::from(self.slots[entry.number() as usize]);
                shorter.push((self.first_inode + slot * SLOT + SIZE, len));
            }
            let room = usize::try_from(planned.next_multiple_of(BLOCK)).expect("it is in memory");
            content.resize(room, 0);
            self.put(&content)?;
        }
        for (place, len) in shorter {
            self.put_at(place, &len.to_le_bytes())?;
        }
        Ok(())
    }

    fn write_head(&mut self, end: u64) -> Result<(), ExportError> {
        let blocks = u32::try_from(end / BLOCK).ok();
        let first_inode = u32::try_from(self.first_inode / BLOCK).ok();
        let (blocks, first_inode) = blocks.zip(first_inode).ok_or(ExportError::ImageTooLong)?;
        let block = SuperBlock {
            inodes: self.inodes,
            blocks,
            first_inode,
            root: u16::try_from(self.slots[0]).expect("the root is the first"),
        };
        let mut bytes = head(&block, self.source.volumes());
        let record = record_bytes(*self.source.state(), self.volumes.len());
        bytes[..record.len()].copy_from_slice(&record);
        self.put_at(0, &bytes)?;
        self.flush()
    }

    fn seek(&mut self, place: u64) -> Result<(), ExportError> {
        let sought = self.out.seek(SeekFrom::Start(place));
        self.of_image(sought.map(|_| ()))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        let written = self.out.write_all(bytes);
        self.of_image(written)
    }

    /// Overwrites what was written.
    fn put_at(&mut self, place: u64, bytes: &[u8]) -> Result<(), ExportError> {
        self.flush()?;
        let written = self.out.get_ref().write_all_at(bytes, place);
        self.of_image(written)
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        let flushed = self.out.flush();
        self.of_image(flushed)
    }

    fn of_image(&self, result: io::Result<()>) -> Result<(), ExportError> {
        Ok(result.context("write", self.path)?)
    }
}
