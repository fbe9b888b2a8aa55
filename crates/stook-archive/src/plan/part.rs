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
use std::path::Path;

use stook_sys::{Links, Metadata, Owners, open_file};
use stook_volume::{Dialect, ZstdLevel};

use super::block_file::bad_file;
use super::blocks::{BlockReader, BlockWriter, Encode, Fields, FileRole, PlanFileError};
use super::member::{GroupPiece, Member, PlannedMember, content_len};
use super::piece::{PieceEncoder, decode_piece};
use crate::ArchiveError;

/// What no two plans of an archive have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlanId {
    pub(crate) run: i64,
    /// When it was made, in nanoseconds.
    pub(crate) made: i64,
}

/// How the members of a part are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one independent fact of the file"
)]
pub(crate) struct PartHeader {
    pub(crate) plan: PlanId,
    pub(crate) number: u32,
    pub(crate) dialect: Dialect,
    pub(crate) links: Links,
    pub(crate) xattrs: bool,
    pub(crate) takes_md5: bool,
    pub(crate) read_only: bool,
    /// At which level volumes are compressed, if they are.
    pub(crate) zstd: Option<ZstdLevel>,
    /// Largest length of a volume.
    pub(crate) limit: u64,
    /// Its members failed in a part before.
    pub(crate) is_retry: bool,
    /// Of the root of the tree, on the machine that made the plan.
    pub(crate) filesystem: (u32, u32),
}

/// What is in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PartTotals {
    pub(crate) members: u64,
    /// Bytes of content.
    pub(crate) bytes: u64,
    /// Length of the volume without its trailer, as far as metadata shows it.
    pub(crate) len: u64,
}

const HEADER: u8 = b'H';
const OWNERS: u8 = b'O';
const MEMBERS: u8 = b'M';
const TOTALS: u8 = b'T';

/// Names of users and groups are not longer than this.
const LONGEST_OWNER: usize = 4096;

/// Bytes of content past which no volume can go.
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
            u8::from(self.is_retry),
            self.zstd.map_or(0, ZstdLevel::number),
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
            is_retry: fields.flag()?,
            zstd: match fields.byte()? {
                0 => None,
                level => Some(ZstdLevel::new(level)?),
            },
            limit: fields.number()?,
            filesystem: (fields.number32()?, fields.number32()?),
        })
    }
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

/// Returns whether all members of a part failed in a part before.
pub(crate) fn is_retry(path: &Path) -> Result<bool, ArchiveError> {
    let reader = PartReader::new(open_file(path)?).map_err(bad_file(path))?;
    Ok(reader.header.is_retry)
}
