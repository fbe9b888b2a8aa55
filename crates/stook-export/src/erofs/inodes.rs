//! One inode: attributes, and where its content is.

use stook_archive::{MemberKind, Stat};

use super::AccessLists;
use super::content::{CHUNK_ENTRY, Content};
use super::format::{BLOCK, INODE};
use super::xattrs::Body;

/// The user nobody: for numbers that are none.
const NOBODY: u32 = 65_534;

/// Bits for the group; with an access control list they are its mask.
const GROUP_BITS: u16 = 0o070;

/// How content is found, in the format of an inode.
const PLAIN: u16 = 0;
const INLINE: u16 = 2;
const CHUNKS: u16 = 4;

/// The inode is one of 64 bytes.
const EXTENDED: u16 = 1;

/// Where in an inode the word is that says where content is.
pub(super) const WORD: u64 = 16;
/// Where in an inode its size is.
pub(super) const SIZE: u64 = 8;

/// What an inode has for content.
#[derive(Debug)]
pub(super) enum Data {
    /// Nothing.
    None,
    /// Of a directory: bytes that lie elsewhere, from this block on.
    Blocks { first: u32, bytes: u64 },
    /// Bytes in the inode: the target of a link, an empty directory.
    Inline(Vec<u8>),
    /// Of a file.
    File(Content),
    /// The number of a device.
    Device(u32),
}

/// An inode before it has a place.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) stat: Stat,
    pub(super) kind: MemberKind,
    pub(super) links: u32,
    pub(super) xattrs: Body,
    /// Whether its extended attributes are not whole.
    pub(super) lacks_xattrs: bool,
    pub(super) data: Data,
}

impl Inode {
    /// Returns true if its content does not fit into a block beside it, and so is written elsewhere.
    pub(super) fn is_outsize(&self) -> bool {
        self.inline_len()
            .is_some_and(|len| INODE + self.xattrs_len() + len > BLOCK)
    }

    /// Returns where it begins, from `free` on, and where it ends.
    pub(super) fn place(&self, free: u64) -> (u64, u64) {
        let len = INODE + self.xattrs_len();
        match (&self.data, self.inline_len()) {
            (Data::File(content), _) if content.chunks > 0 => {
                // A slot is a multiple of what chunks are aligned to.
                (
                    free,
                    free + len.next_multiple_of(CHUNK_ENTRY) + content.chunks * CHUNK_ENTRY,
                )
            }
            (_, Some(inline)) if !self.is_outsize() => {
                let fits = free % BLOCK + len + inline <= BLOCK;
                let begin = if fits {
                    free
                } else {
                    free.next_multiple_of(BLOCK)
                };
                (begin, begin + len + inline)
            }
            _ => (free, free + len),
        }
    }

    fn inline_len(&self) -> Option<u64> {
        match &self.data {
            Data::Inline(bytes) => Some(bytes.len() as u64),
            _ => None,
        }
    }

    fn xattrs_len(&self) -> u64 {
        self.xattrs.bytes.len() as u64
    }

    /// Appends its bytes; `number` tells it from others.
    pub(super) fn put(&self, number: u32, lists: AccessLists, out: &mut Vec<u8>) {
        let begin = out.len();
        let (layout, size, word) = self.content();
        let mut put = |bytes: &[u8]| out.extend_from_slice(bytes);
        put(&(EXTENDED | layout << 1).to_le_bytes());
        put(&self.xattrs.units().to_le_bytes());
        put(&self.mode(lists).to_le_bytes());
        put(&[0; 2]);
        put(&size.to_le_bytes());
        put(&word.to_le_bytes());
        put(&number.to_le_bytes());
        put(&user(self.stat.uid).to_le_bytes());
        put(&user(self.stat.gid).to_le_bytes());
        put(&self.stat.mtime.seconds.to_le_bytes());
        put(&self.stat.mtime.nanoseconds.to_le_bytes());
        put(&self.links.to_le_bytes());
        put(&[0; 16]);
        put(&self.xattrs.bytes);
        match &self.data {
            Data::Inline(bytes) if !self.is_outsize() => out.extend_from_slice(bytes),
            Data::File(content) if content.chunks > 0 => {
                let entry = usize::try_from(CHUNK_ENTRY).expect("it is 8");
                out.resize(begin + (out.len() - begin).next_multiple_of(entry), 0);
                content.put(out);
            }
            _ => {}
        }
    }

    fn content(&self) -> (u16, u64, u32) {
        match &self.data {
            Data::None => (PLAIN, 0, 0),
            Data::Blocks { first, bytes } => (PLAIN, *bytes, *first),
            // The word is filled in when it has its place.
            Data::Inline(bytes) if self.is_outsize() => (PLAIN, bytes.len() as u64, 0),
            Data::Inline(bytes) => (INLINE, bytes.len() as u64, 0),
            Data::File(content) if content.chunks == 0 => (PLAIN, 0, 0),
            Data::File(content) => (CHUNKS, self.stat.size, content.format()),
            Data::Device(number) => (PLAIN, 0, *number),
        }
    }

    fn mode(&self, lists: AccessLists) -> u16 {
        let bits = u16::try_from(self.stat.mode & 0o7777).expect("twelve bits");
        let is_ignored = self.xattrs.has_list && lists == AccessLists::Ignored;
        let is_closed = is_ignored || self.xattrs.has_other_list || self.lacks_xattrs;
        let bits = if is_closed { bits & !GROUP_BITS } else { bits };
        type_bits(self.kind) | bits
    }
}

/// # Source
/// `inode(7)`.
fn type_bits(kind: MemberKind) -> u16 {
    match kind {
        MemberKind::File | MemberKind::HardLink => 0o100_000,
        MemberKind::Directory => 0o040_000,
        MemberKind::Symlink => 0o120_000,
        MemberKind::Fifo => 0o010_000,
        MemberKind::CharDevice => 0o020_000,
        MemberKind::BlockDevice => 0o060_000,
    }
}

/// Returns the kind as entries of directories have it.
pub(super) fn entry_kind(kind: MemberKind) -> u8 {
    match kind {
        MemberKind::File | MemberKind::HardLink => 1,
        MemberKind::Directory => 2,
        MemberKind::CharDevice => 3,
        MemberKind::BlockDevice => 4,
        MemberKind::Fifo => 5,
        MemberKind::Symlink => 7,
    }
}

fn user(number: u64) -> u32 {
    let number = u32::try_from(number).unwrap_or(NOBODY);
    if number == u32::MAX { NOBODY } else { number }
}

/// # Source
/// Linux, `include/linux/kdev_t.h`: `new_encode_dev`.
pub(super) fn device_number((major, minor): (u32, u32)) -> u32 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}
