//! What a walk returns: a directory with its entries, 64 bytes each besides the name.
//!
//! A caller may keep all listings, a million entries for a million files; so they hold what
//! [`Metadata`] tells in half of its size, and give it back by value.

use std::cmp::Ordering;

use stook_sys::{FileKind, Metadata, Timestamp};
use stook_timers::scope;

use crate::names::NamePlace;

/// One directory with what is in it.
#[derive(Debug)]
pub struct Listing {
    /// Path below the root; empty for the root.
    pub path: Vec<u8>,
    /// The directory's own facts.
    pub metadata: Metadata,
    /// All entries that are not walked into: with links refused, everything but directories. Sorted by name, unless
    /// [`WalkOptions::sorted`](super::WalkOptions::sorted) is off.
    pub entries: Vec<Entry>,
    /// True if nothing at all was found in the directory, but for what was left out.
    pub is_empty: bool,
    pub(super) names: Vec<u8>,
}

/// One entry of a [`Listing`].
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    name_start: u32,
    name_len: u16,
    /// Permission bits; above them the place in [`KINDS`], or [`TO_DIRECTORY`].
    kind_and_mode: u16,
    uid: u32,
    gid: u32,
    links: u32,
    filesystem: u32,
    device: u32,
    nanoseconds: u32,
    seconds: i64,
    size: u64,
    blocks: u64,
    inode: u64,
}

const KINDS: [FileKind; 8] = [
    FileKind::File,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
    FileKind::Symlink,
];

/// A symbolic link that leads to a directory.
const TO_DIRECTORY: u16 = 7;

const MODE_BITS: u32 = 12;

/// Linux holds a device number in 32 bits: 12 of the major number, 20 of the minor one.
const MINOR_BITS: u32 = 20;

impl Entry {
    pub(super) fn new(name: NamePlace, metadata: &Metadata, leads_to_directory: bool) -> Self {
        let kind = if leads_to_directory {
            TO_DIRECTORY
        } else {
            code_of(metadata.kind)
        };
        // The permission bits are the low twelve by definition.
        let mode = u16::try_from(metadata.mode & 0o7777).unwrap_or(0);
        Self {
            name_start: name.start,
            name_len: name.len,
            kind_and_mode: kind << MODE_BITS | mode,
            uid: metadata.uid,
            gid: metadata.gid,
            links: metadata.links,
            filesystem: pack(metadata.filesystem),
            device: pack(metadata.device),
            nanoseconds: metadata.mtime.nanoseconds,
            seconds: metadata.mtime.seconds,
            size: metadata.size,
            blocks: metadata.blocks,
            inode: metadata.inode,
        }
    }

    fn name(&self) -> NamePlace {
        NamePlace {
            start: self.name_start,
            len: self.name_len,
        }
    }

    /// Returns what it is.
    pub fn kind(&self) -> FileKind {
        KINDS[usize::from(self.kind_and_mode >> MODE_BITS) % KINDS.len()]
    }

    /// Returns true for a symbolic link that leads to a directory, if that was looked for.
    pub fn leads_to_directory(&self) -> bool {
        self.kind_and_mode >> MODE_BITS == TO_DIRECTORY
    }

    /// Returns its facts: of the link itself, or of what it leads to when links are followed.
    pub fn metadata(&self) -> Metadata {
        Metadata {
            kind: self.kind(),
            mode: u32::from(self.kind_and_mode) & 0o7777,
            uid: self.uid,
            gid: self.gid,
            links: self.links,
            size: self.size,
            blocks: self.blocks,
            mtime: Timestamp {
                seconds: self.seconds,
                nanoseconds: self.nanoseconds,
            },
            inode: self.inode,
            filesystem: unpack(self.filesystem),
            device: unpack(self.device),
        }
    }
}

fn code_of(kind: FileKind) -> u16 {
    match kind {
        FileKind::File => 0,
        FileKind::Directory => 1,
        FileKind::Symlink => 2,
        FileKind::Fifo => 3,
        FileKind::Socket => 4,
        FileKind::CharDevice => 5,
        FileKind::BlockDevice => 6,
    }
}

fn pack((major, minor): (u32, u32)) -> u32 {
    major << MINOR_BITS | minor
}

fn unpack(number: u32) -> (u32, u32) {
    (number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1))
}

impl Listing {
    /// A directory that was not looked into.
    pub(super) fn unread(path: Vec<u8>, metadata: Metadata) -> Self {
        Self {
            path,
            metadata,
            entries: Vec::new(),
            is_empty: false,
            names: Vec::new(),
        }
    }

    /// Returns a listing to be filled with [`Listing::push`], in the order of the names.
    pub fn new(path: Vec<u8>, metadata: Metadata) -> Self {
        Self {
            is_empty: true,
            ..Self::unread(path, metadata)
        }
    }

    /// Adds an entry; false, and nothing is added, if its name or all names together are too long.
    pub fn push(&mut self, name: &[u8], metadata: &Metadata) -> bool {
        let (Ok(start), Ok(len)) = (u32::try_from(self.names.len()), u16::try_from(name.len()))
        else {
            return false;
        };
        self.names.extend_from_slice(name);
        let place = NamePlace { start, len };
        self.entries.push(Entry::new(place, metadata, false));
        self.is_empty = false;
        true
    }

    /// Returns the name of one of the entries.
    pub fn name(&self, entry: &Entry) -> &[u8] {
        entry.name().of(&self.names)
    }

    /// Keeps those entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &Entry) -> bool) {
        let names = &self.names;
        self.entries
            .retain(|entry| keep(entry.name().of(names), entry));
    }

    /// Sorts the entries by name.
    pub(super) fn sort(&mut self) {
        let _scope = scope!("sort");
        let names = &self.names;
        let by_name =
            |a: &Entry, b: &Entry| -> Ordering { a.name().of(names).cmp(b.name().of(names)) };
        self.entries.sort_unstable_by(by_name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_gives_back_what_was_pushed() {
        let mut listing = Listing::new(b"d".to_vec(), Metadata::of_kind(FileKind::Directory));
        assert!(listing.is_empty);
        for name in [&b"a"[..], b"longer"] {
            let metadata = Metadata::of_kind(FileKind::Fifo);
            assert!(listing.push(name, &metadata));
        }
        let too_long = vec![b'x'; 70_000];
        assert!(!listing.push(&too_long, &Metadata::of_kind(FileKind::File)));
        let names: Vec<_> = listing
            .entries
            .iter()
            .map(|entry| listing.name(entry))
            .collect();
        assert_eq!(names, [&b"a"[..], b"longer"]);
        assert_eq!(listing.entries[1].kind(), FileKind::Fifo);
        assert!(!listing.is_empty);
    }

    #[test]
    fn an_entry_is_small_and_gives_back_every_fact() {
        assert_eq!(size_of::<Entry>(), 64);
        let name = NamePlace { start: 7, len: 3 };
        let whole = |kind| Metadata {
            kind,
            mode: 0o7777,
            uid: u32::MAX,
            gid: u32::MAX - 1,
            links: 65_000,
            size: u64::MAX,
            blocks: u64::MAX - 1,
            mtime: Timestamp {
                seconds: i64::MIN,
                nanoseconds: 999_999_999,
            },
            inode: u64::MAX - 2,
            filesystem: (0xfff, 0xf_ffff),
            device: (0, 0xf_ffff),
        };
        for kind in KINDS {
            for metadata in [whole(kind), Metadata::of_kind(kind)] {
                let entry = Entry::new(name, &metadata, false);
                assert_eq!(entry.metadata(), metadata);
                assert_eq!(entry.name().of(b"before name"), b"nam");
                assert!(!entry.leads_to_directory());
            }
        }
        let link = Entry::new(name, &whole(FileKind::Symlink), true);
        assert!(link.leads_to_directory());
        assert_eq!(link.metadata(), whole(FileKind::Symlink));
    }
}
