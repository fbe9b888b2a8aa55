//! A part: the members of one volume, in a file that can be built from on any machine that sees the tree.
//!
//! ```text
//!   header    the plan, the number of the part, how members are written
//!   owners    names of users and groups, each before the first member that needs it
//!   members   a piece of a directory: its path, and its entries in archive order, about 30 bytes and the name each
//!   totals    members, bytes of content, length of the volume
//! ```
//! A part is streamed in both directions: neither side holds more than a few pieces. A reader trusts nothing in it:
//! names are single names below the tree, in ascending order, and every number is in the range that a walk can give.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use stook_sys::{FileKind, Links, Metadata, Owners, Timestamp};
use stook_tree::{Listing, join};
use stook_volume::Dialect;

use super::blocks::{BlockReader, BlockWriter, Encode, Fields, FileRole, PlanFileError};
use super::member::{Group, GroupPiece, LinkNames, Member, PlannedMember, content_len};
use crate::survey::LONGEST_PATH;

/// What tells a plan from all others of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlanId {
    pub(crate) run: i64,
    /// When it was made, in nanoseconds.
    pub(crate) made: i64,
}

/// How the members of a part are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartHeader {
    pub(crate) plan: PlanId,
    pub(crate) number: u32,
    pub(crate) dialect: Dialect,
    pub(crate) links: Links,
    pub(crate) xattrs: bool,
    pub(crate) takes_md5: bool,
    pub(crate) read_only: bool,
    /// Largest length of a volume.
    pub(crate) limit: u64,
    /// Of the root of the tree, on the machine that made the plan.
    pub(crate) filesystem: (u32, u32),
}

/// What is in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PartTotals {
    pub(crate) members: u64,
    /// Bytes of content.
    pub(crate) bytes: u64,
    /// Length of the volume without its trailer, as far as metadata tells it.
    pub(crate) len: u64,
}

const HEADER: u8 = b'H';
const OWNERS: u8 = b'O';
const MEMBERS: u8 = b'M';
const TOTALS: u8 = b'T';

/// Encoded members of a piece after which it is written.
const PIECE_BYTES: usize = 64 << 10;

/// Names of users and groups are not longer than this.
const LONGEST_OWNER: usize = 4096;

/// No file is larger: sums of 256 such do not overflow, and more are refused.
const LARGEST_FILE: u64 = 1 << 55;
const MOST_CONTENT: u64 = 1 << 62;

impl PlanId {
    pub(crate) fn encode(self, block: &mut Vec<u8>) {
        block.signed(self.run);
        block.signed(self.made);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        let (run, made) = (fields.signed()?, fields.signed()?);
        Some(Self { run, made })
    }
}

impl PartHeader {
    pub(crate) fn encode(&self, block: &mut Vec<u8>) {
        self.plan.encode(block);
        block.number(self.number.into());
        block.extend([
            u8::from(self.dialect == Dialect::Zstash),
            u8::from(self.links == Links::Follow),
            u8::from(self.xattrs),
            u8::from(self.takes_md5),
            u8::from(self.read_only),
        ]);
        block.number(self.limit);
        block.number(self.filesystem.0.into());
        block.number(self.filesystem.1.into());
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            plan: PlanId::decode(fields)?,
            number: fields.number32()?,
            dialect: match fields.flag()? {
                true => Dialect::Zstash,
                false => Dialect::Stook,
            },
            links: match fields.flag()? {
                true => Links::Follow,
                false => Links::Refuse,
            },
            xattrs: fields.flag()?,
            takes_md5: fields.flag()?,
            read_only: fields.flag()?,
            limit: fields.number()?,
            filesystem: (fields.number32()?, fields.number32()?),
        })
    }
}

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

/// Writes a part.
pub(crate) struct PartWriter<'o, W> {
    blocks: BlockWriter<W>,
    encoder: PieceEncoder,
    owners: &'o Owners,
    users: HashSet<u32>,
    groups: HashSet<u32>,
    pub(crate) totals: PartTotals,
}

impl<'o, W: Write> PartWriter<'o, W> {
    pub(crate) fn new(output: W, header: &PartHeader, owners: &'o Owners) -> io::Result<Self> {
        let mut blocks = BlockWriter::new(output, FileRole::Part)?;
        let mut block = Vec::new();
        header.encode(&mut block);
        blocks.write(HEADER, &block)?;
        Ok(Self {
            blocks,
            encoder: PieceEncoder::default(),
            owners,
            users: HashSet::new(),
            groups: HashSet::new(),
            totals: PartTotals::default(),
        })
    }

    /// Adds the next member, which takes `len` bytes of the volume.
    pub(crate) fn add(
        &mut self,
        member: &Member<'_>,
        planned: &PlannedMember<'_>,
        len: u64,
    ) -> io::Result<()> {
        let metadata = &planned.metadata;
        self.define_owners(metadata)?;
        let (directory, name) = member.directory_and_name();
        let blocks = &mut self.blocks;
        self.encoder.add(
            directory,
            name,
            metadata,
            planned.first_name,
            &mut |block| blocks.write(MEMBERS, block),
        )?;
        self.totals.members += 1;
        self.totals.bytes += content_len(metadata);
        self.totals.len += len;
        Ok(())
    }

    fn define_owners(&mut self, metadata: &Metadata) -> io::Result<()> {
        let (uid, gid) = (metadata.uid, metadata.gid);
        let is_new = (self.users.insert(uid), self.groups.insert(gid));
        if is_new == (false, false) {
            return Ok(());
        }
        let mut block = Vec::new();
        let defined = [
            (is_new.0, b'u', uid, self.owners.user_name(uid)),
            (is_new.1, b'g', gid, self.owners.group_name(gid)),
        ];
        for (_, which, id, name) in defined.into_iter().filter(|(is_new, ..)| *is_new) {
            block.push(which);
            block.number(id.into());
            block.bytes(&name[..name.len().min(LONGEST_OWNER)]);
        }
        self.blocks.write(OWNERS, &block)
    }

    /// Writes what is left and hands back the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        let blocks = &mut self.blocks;
        self.encoder
            .finish(&mut |block| blocks.write(MEMBERS, block))?;
        let mut block = Vec::new();
        let PartTotals {
            members,
            bytes,
            len,
        } = self.totals;
        for number in [members, bytes, len] {
            block.number(number);
        }
        self.blocks.write(TOTALS, &block)?;
        self.blocks.finish()
    }
}

/// Reads a part, piece by piece.
pub(crate) struct PartReader<R> {
    blocks: BlockReader<R>,
    pub(crate) header: PartHeader,
    users: HashSet<u32>,
    groups: HashSet<u32>,
    /// Directory and last name so far.
    last: Option<(Vec<u8>, Option<Vec<u8>>)>,
    found: PartTotals,
    stated: Option<PartTotals>,
}

impl<R: Read> PartReader<R> {
    pub(crate) fn new(input: R) -> Result<Self, PlanFileError> {
        let mut blocks = BlockReader::new(input, FileRole::Part)?;
        let header = match blocks.next_block()? {
            Some((HEADER, payload)) => {
                let mut fields = Fields(payload);
                let header = PartHeader::decode(&mut fields);
                header.filter(|_| fields.end().is_some())
            }
            _ => None,
        };
        let header = header.ok_or_else(|| blocks.malformed("it is no header"))?;
        Ok(Self {
            blocks,
            header,
            users: HashSet::new(),
            groups: HashSet::new(),
            last: None,
            found: PartTotals::default(),
            stated: None,
        })
    }

    /// Returns the next piece of a directory, None after the last one. Names of owners before it go to `owners`.
    pub(crate) fn next_piece(
        &mut self,
        owners: &Owners,
    ) -> Result<Option<GroupPiece>, PlanFileError> {
        loop {
            let Some((kind, payload)) = self.blocks.next_block()? else {
                return match self.stated {
                    Some(_) => Ok(None),
                    None => Err(self.blocks.malformed("there are no totals")),
                };
            };
            let taken = match (kind, self.stated) {
                (_, Some(_)) => Err("something follows the totals"),
                (OWNERS, None) => take_owners(payload, owners, &mut self.users, &mut self.groups)
                    .ok_or("it is no list of owners")
                    .map(|()| None),
                (MEMBERS, None) => decode_piece(payload).map(Some),
                (TOTALS, None) => take_totals(payload)
                    .filter(|stated| {
                        stated.members == self.found.members && stated.bytes == self.found.bytes
                    })
                    .ok_or("its totals are not those of its members")
                    .map(|totals| {
                        self.stated = Some(totals);
                        None
                    }),
                _ => Err("it is of no known kind"),
            };
            match taken {
                Ok(None) => {}
                Ok(Some(piece)) => {
                    return match self.admit(&piece) {
                        Ok(()) => Ok(Some(piece)),
                        Err(what) => Err(self.blocks.malformed(what)),
                    };
                }
                Err(what) => return Err(self.blocks.malformed(what)),
            }
        }
    }

    /// Compares a piece with those before it.
    fn admit(&mut self, piece: &GroupPiece) -> Result<(), &'static str> {
        let group = &piece.group;
        let first = group.listing.as_ref().and_then(|listing| {
            let entry = listing.entries.first()?;
            Some(listing.name(entry))
        });
        let first = if group.own.is_some() { None } else { first };
        if let Some((directory, name)) = &self.last
            && (&directory[..], name.as_deref()) >= (&group.path[..], first)
        {
            return Err("directories are not in order");
        }
        for entry in group.entries() {
            let metadata = group.metadata(entry);
            if !self.users.contains(&metadata.uid) || !self.groups.contains(&metadata.gid) {
                return Err("an owner has no name");
            }
            self.found.members += 1;
            self.found.bytes += content_len(&metadata);
            if self.found.bytes > MOST_CONTENT {
                return Err("its content is larger than a volume can be");
            }
        }
        let last = group.listing.as_ref().and_then(|listing| {
            let entry = listing.entries.last()?;
            Some(listing.name(entry).to_vec())
        });
        self.last = Some((group.path.clone(), last));
        Ok(())
    }

    /// Returns what the part holds, once all of it was read.
    pub(crate) fn totals(&self) -> Option<PartTotals> {
        self.stated
    }
}

fn take_totals(payload: &[u8]) -> Option<PartTotals> {
    let mut fields = Fields(payload);
    let totals = PartTotals {
        members: fields.number()?,
        bytes: fields.number()?,
        len: fields.number()?,
    };
    fields.end().map(|()| totals)
}

fn take_owners(
    payload: &[u8],
    owners: &Owners,
    users: &mut HashSet<u32>,
    groups: &mut HashSet<u32>,
) -> Option<()> {
    let mut fields = Fields(payload);
    while !fields.0.is_empty() {
        let (which, id, name) = (fields.byte()?, fields.number32()?, fields.bytes()?);
        if name.len() > LONGEST_OWNER || name.contains(&0) {
            return None;
        }
        match which {
            b'u' if users.insert(id) => owners.define_user(id, name.to_vec()),
            b'g' if groups.insert(id) => owners.define_group(id, name.to_vec()),
            _ => return None,
        }
    }
    Some(())
}

/// Reads a part to its end and checks it, without looking at the tree: for those who get one from elsewhere, and for the
/// fuzzer. Returns the number of members.
///
/// # Errors
/// Anything that no stook writes: a wrong checksum, a name that leads out of the tree, members out of order.
///
/// # Cost
/// One pass; memory for one block of at most 1 MiB.
pub fn check_part(input: impl Read) -> Result<u64, PlanFileError> {
    let mut reader = PartReader::new(input)?;
    let owners = Owners::default();
    while reader.next_piece(&owners)?.is_some() {}
    Ok(reader.found.members)
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

/// Names the file that an error is about.
pub(crate) fn bad_file(path: &Path) -> impl FnOnce(PlanFileError) -> crate::ArchiveError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| crate::ArchiveError::BadPlanFile { path, source }
}
