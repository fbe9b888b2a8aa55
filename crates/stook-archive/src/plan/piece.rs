//! A piece of a directory: its path, its own entry if that is a member, and entries in archive order, in one block.
//!
//! Parts and sorted files are made of these. A reader trusts nothing: names are single names below the tree, in
//! ascending order, and every number is in the range that a walk can give.

use std::io;

use stook_sys::{FileKind, Metadata, Timestamp};
use stook_tree::{Listing, join};

use super::blocks::{Encode, Fields};
use super::member::{Group, GroupPiece, LinkNames};
use crate::survey::LONGEST_PATH;

/// Encoded members of a piece after which it is written.
const PIECE_BYTES: usize = 64 << 10;

/// No file is larger: sums of 256 such do not overflow, and more are refused.
const LARGEST_FILE: u64 = 1 << 55;

/// Members on their way into blocks of a piece of a directory each.
#[derive(Default)]
pub(crate) struct PieceEncoder {
    directory: Option<Vec<u8>>,
    entries: Vec<u8>,
    block: Vec<u8>,
}

impl PieceEncoder {
    /// Adds a member; None is the directory's own entry. Writes the piece before it, if that is complete.
    pub(crate) fn add(
        &mut self,
        directory: &[u8],
        name: Option<&[u8]>,
        metadata: &Metadata,
        first_name: Option<&[u8]>,
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let is_same = self.directory.as_deref() == Some(directory);
        if !is_same || self.entries.len() >= PIECE_BYTES {
            self.finish(write)?;
            let kept = self.directory.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(directory);
        }
        encode_member(name, metadata, first_name, &mut self.entries);
        Ok(())
    }

    /// Writes the piece that is not complete.
    pub(crate) fn finish(
        &mut self,
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(directory) = self.directory.take() {
            self.block.clear();
            self.block.bytes(&directory);
            self.block.extend_from_slice(&self.entries);
            self.entries.clear();
            write(&self.block)?;
        }
        Ok(())
    }
}

const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];
const IS_OWN: u8 = 0x10;
const HAS_FIRST_NAME: u8 = 0x20;

fn encode_member(
    name: Option<&[u8]>,
    metadata: &Metadata,
    first_name: Option<&[u8]>,
    block: &mut Vec<u8>,
) {
    let kind = KINDS.iter().position(|kind| *kind == metadata.kind);
    let mut flags = u8::try_from(kind.unwrap_or(0)).unwrap_or(0);
    flags |= if name.is_none() { IS_OWN } else { 0 };
    flags |= if first_name.is_some() {
        HAS_FIRST_NAME
    } else {
        0
    };
    block.push(flags);
    block.bytes(name.unwrap_or_default());
    for number in [metadata.mode, metadata.uid, metadata.gid, metadata.links] {
        block.number(number.into());
    }
    // A symbolic link says how long its target is, and some file systems do not know.
    let size = match metadata.kind {
        FileKind::Symlink => metadata.size.min(LONGEST_PATH as u64),
        _ => metadata.size,
    };
    block.number(size);
    block.number(metadata.blocks);
    block.signed(metadata.mtime.seconds);
    block.number(metadata.mtime.nanoseconds.into());
    block.number(metadata.inode);
    let devices = [metadata.filesystem, metadata.device];
    for (major, minor) in devices {
        block.number(major.into());
        block.number(minor.into());
    }
    if let Some(first_name) = first_name {
        block.bytes(first_name);
    }
}

type DecodedMember<'a> = (Option<&'a [u8]>, Metadata, Option<&'a [u8]>);

fn decode_member<'a>(fields: &mut Fields<'a>) -> Option<DecodedMember<'a>> {
    let flags = fields.byte()?;
    if flags & !(0xf | IS_OWN | HAS_FIRST_NAME) != 0 {
        return None;
    }
    let kind = *KINDS.get(usize::from(flags & 0xf))?;
    let name = fields.bytes()?;
    let is_own = flags & IS_OWN != 0;
    if is_own && !name.is_empty() {
        return None;
    }
    let metadata = Metadata {
        kind,
        mode: fields.number32()?,
        uid: fields.number32()?,
        gid: fields.number32()?,
        links: fields.number32()?,
        size: fields.number()?,
        blocks: fields.number()?,
        mtime: Timestamp {
            seconds: fields.signed()?,
            nanoseconds: fields.number32()?,
        },
        inode: fields.number()?,
        filesystem: (fields.number32()?, fields.number32()?),
        device: (fields.number32()?, fields.number32()?),
    };
    let first_name = match flags & HAS_FIRST_NAME {
        0 => None,
        _ => Some(fields.bytes()?),
    };
    Some(((!is_own).then_some(name), metadata, first_name))
}

/// Returns what no walk can have found, if that is what a member says of itself.
fn implausible(metadata: &Metadata) -> Option<&'static str> {
    let is_device = |(major, minor): (u32, u32)| major < 1 << 12 && minor < 1 << 20;
    let largest = match metadata.kind {
        FileKind::Symlink => LONGEST_PATH as u64,
        _ => LARGEST_FILE,
    };
    if metadata.kind == FileKind::Socket {
        Some("a socket is no member")
    } else if metadata.mode > 0o7777 || metadata.mtime.nanoseconds >= 1_000_000_000 {
        Some("a mode or a time is out of range")
    } else if metadata.size > largest {
        Some("a size is out of range")
    } else if !is_device(metadata.filesystem) || !is_device(metadata.device) {
        Some("a device number is out of range")
    } else {
        None
    }
}

/// Returns true for a path that stays below the tree whatever is there, but for symbolic links.
pub(crate) fn is_path_below(path: &[u8]) -> bool {
    path.len() <= LONGEST_PATH && path.split(|&byte| byte == b'/').all(is_name)
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

/// Decodes a piece: one directory, its own entry if that is a member, and entries in it.
pub(crate) fn decode_piece(payload: &[u8]) -> Result<GroupPiece, &'static str> {
    const CUT_OFF: &str = "it ends in the middle of a member";
    let mut fields = Fields(payload);
    let path = fields.bytes().ok_or(CUT_OFF)?;
    if !path.is_empty() && !is_path_below(path) {
        return Err("a directory is not below the tree");
    }
    let mut own = None;
    let mut listing = Listing::new(path.to_vec(), Metadata::of_kind(FileKind::Directory));
    let mut link_names = LinkNames::new();
    let mut last: Option<&[u8]> = None;
    while !fields.0.is_empty() {
        let (name, metadata, first_name) = decode_member(&mut fields).ok_or(CUT_OFF)?;
        if let Some(what) = implausible(&metadata) {
            return Err(what);
        }
        match name {
            None if path.is_empty() || own.is_some() || last.is_some() => {
                return Err("a directory has an entry of its own where there can be none");
            }
            None if !matches!(metadata.kind, FileKind::Directory | FileKind::Symlink) => {
                return Err("a directory is none");
            }
            None => own = Some(metadata),
            Some(name) => {
                if !is_name(name) || path.len() + 1 + name.len() > LONGEST_PATH {
                    return Err("a name is not one of an entry in its directory");
                }
                if last.is_some_and(|last| last >= name) || !listing.push(name, &metadata) {
                    return Err("names are not in order");
                }
                last = Some(name);
            }
        }
        if let Some(first_name) = first_name {
            if metadata.kind != FileKind::File || !is_path_below(first_name) {
                return Err("the other name of a file is not below the tree");
            }
            link_names.insert(metadata.identity(), first_name.to_vec());
        }
    }
    if own.is_none() && last.is_none() {
        return Err("a directory has no members");
    }
    let group = Group {
        path: path.to_vec(),
        own,
        listing: last.map(|_| listing),
    };
    Ok(GroupPiece { group, link_names })
}

/// Returns the path of a member as its row has it.
pub(crate) fn path_of(group: &Group, entry: Option<u32>) -> Vec<u8> {
    match (entry, &group.listing) {
        (Some(index), Some(listing)) => {
            join(&group.path, listing.name(&listing.entries[index as usize]))
        }
        _ => group.path.clone(),
    }
}
