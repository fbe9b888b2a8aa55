//! Reads one member of any writer: PAX with all three sparse versions, GNU, ustar, v7.
//!
//! The decoder works on bytes at hand and says how many it needs; [`decode`] feeds it from a
//! source. What a PAX record says wins over a GNU long name, and that over the header block.

use stook_sys::Timestamp;

use crate::block::{self, Block, Magic};
use crate::error::VolumeError;
use crate::header::{Header, Kind};
use crate::pax::{self, HeaderCrc, Records};
use crate::source::{ReadAt, Window};
use crate::sparse::{self, MapError};
use crate::{BLOCK, BLOCK_LEN, padding};

/// Most bytes that extended headers, header block and sparse map of one member may take together.
///
/// Linux bounds the attributes of a file to less than 1 MiB in practice; a sparse map of this
/// length has some four million segments. The decoder never holds more than a small multiple.
pub const MAX_HEADER: u64 = 64 << 20;

/// Bytes read first for a member: extended header, records and header block of most.
const FIRST_READ: usize = 4 * BLOCK_LEN;

/// A member and where its parts are in the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What it says about its entry.
    pub header: Header,
    /// First block, as `index.db` states it: of the extended header if there is one.
    pub offset: u64,
    /// First byte of the stored data, after the sparse map.
    pub data_offset: u64,
    /// Bytes of stored data, without sparse map and padding.
    pub data_len: u64,
    /// Where the next member begins.
    pub end: u64,
    /// Whether the header is proven to be as written.
    pub checksum: HeaderCheck,
}

/// Whether a header carries the CRC of stook. One that does not fit is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderCheck {
    /// The CRC is there and right: no bit of the header has changed.
    Verified,
    /// Another program wrote the header.
    Absent,
}

/// What [`decode_bytes`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all values are members")]
pub enum Decoded {
    /// A member.
    Member(Member),
    /// The end marker.
    End,
    /// Too few bytes: come again with so many, from the same first byte, or with all there are.
    NeedMore(usize),
}

/// A member, and what stands in front of its header block.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) member: Member,
    /// What a global header says that is left out of account.
    pub(crate) ignored: Option<VolumeError>,
    /// Whether an extended header stands in front of the header block.
    pub(crate) is_extended: bool,
}

/// What the parser made of the bytes at hand.
pub(crate) enum Parsed {
    Found(Box<Found>),
    End,
    NeedMore(usize),
}

/// Reads the member at `offset`; `None` at the end marker, which is two zero blocks, or one with
/// which the source ends.
///
/// What a PAX global header says of this and later members is left out of account, as by [`Scanner`](crate::Scanner),
/// which names it: a member means the same wherever reading begins.
///
/// # Errors
/// [`VolumeError::Io`] if the source fails, else what is wrong with the header.
pub fn decode(source: &(impl ReadAt + ?Sized), offset: u64) -> Result<Option<Member>, VolumeError> {
    let mut window = Window::new(source, 2 * FIRST_READ);
    Ok(decode_in(&mut window, offset)?.map(|found| found.member))
}

/// Reads the member whose first byte is the first of `bytes` and stands at
/// `offset_of_first_byte` of the volume.
///
/// # Errors
/// What is wrong with the header.
pub fn decode_bytes(bytes: &[u8], offset_of_first_byte: u64) -> Result<Decoded, VolumeError> {
    Ok(match parse(bytes, offset_of_first_byte)? {
        Parsed::Found(found) => Decoded::Member(found.member),
        Parsed::End => Decoded::End,
        Parsed::NeedMore(len) => Decoded::NeedMore(len),
    })
}

/// As [`decode`], through a window.
pub(crate) fn decode_in<S: ReadAt + ?Sized>(
    window: &mut Window<'_, S>,
    offset: u64,
) -> Result<Option<Box<Found>>, VolumeError> {
    let mut wanted = FIRST_READ;
    loop {
        let bytes = window.bytes(offset, wanted)?;
        let is_all = bytes.len() < wanted;
        match parse(bytes, offset)? {
            Parsed::Found(found) => return Ok(Some(found)),
            Parsed::End => return Ok(None),
            Parsed::NeedMore(_) if is_all => {
                let is_marker = bytes.len() >= BLOCK_LEN && bytes.iter().all(|byte| *byte == 0);
                let cut = VolumeError::Truncated {
                    offset: offset.saturating_add(bytes.len() as u64),
                };
                return if is_marker { Ok(None) } else { Err(cut) };
            }
            Parsed::NeedMore(len) => wanted = len.max(wanted * 2),
        }
    }
}

/// Reads a member from the bytes at hand.
pub(crate) fn parse(bytes: &[u8], offset: u64) -> Result<Parsed, VolumeError> {
    let mut chain = Chain {
        bytes,
        offset,
        at: 0,
        ignored: None,
        local: None,
        long: Long::default(),
        last: None,
    };
    loop {
        let Some(block) = chain.block(chain.at) else {
            return Ok(Parsed::NeedMore(chain.at + BLOCK_LEN));
        };
        let here = chain.here();
        if block::is_zero(block) {
            return chain.end();
        }
        if !block::has_valid_checksum(block) {
            return Err(VolumeError::Checksum { offset: here });
        }
        if !block::is_extension(block::typeflag(block)) {
            return chain.member(block);
        }
        if let Some(len) = chain.extension(block)? {
            return Ok(Parsed::NeedMore(len));
        }
    }
}

/// GNU long names, each up to its first NUL.
#[derive(Default)]
struct Long {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

/// The blocks in front of a member, as far as they are read.
struct Chain<'a> {
    bytes: &'a [u8],
    /// Of the first byte.
    offset: u64,
    at: usize,
    ignored: Option<VolumeError>,
    local: Option<Records>,
    long: Long,
    /// Start and records of the extended header read last.
    last: Option<(usize, &'a [u8])>,
}

impl<'a> Chain<'a> {
    fn block(&self, at: usize) -> Option<&'a Block> {
        self.bytes.get(at..)?.first_chunk()
    }

    /// Returns where in the volume the next block is.
    fn here(&self) -> u64 {
        self.offset.saturating_add(self.at as u64)
    }

    /// Judges a zero block.
    fn end(&self) -> Result<Parsed, VolumeError> {
        let offset = self.here();
        if self.local.is_some() || self.long.name.is_some() || self.long.target.is_some() {
            return Err(VolumeError::NoMember { offset });
        }
        match self.block(self.at + BLOCK_LEN) {
            None => Ok(Parsed::NeedMore(self.at + 2 * BLOCK_LEN)),
            Some(second) if block::is_zero(second) => Ok(Parsed::End),
            Some(_) => Err(VolumeError::LoneZeroBlock { offset }),
        }
    }

    /// Reads an extended header; returns how many bytes it needs if there are too few.
    fn extension(&mut self, block: &Block) -> Result<Option<usize>, VolumeError> {
        let here = self.here();
        let size = unsigned(&block::SIZE, block, here, "size")?;
        let stated = (self.at as u64 + BLOCK)
            .saturating_add(size)
            .saturating_add(padding(size));
        let too_long = VolumeError::TooLong {
            offset: self.offset,
            len: stated,
        };
        let Some(end) = usize::try_from(stated)
            .ok()
            .filter(|_| stated <= MAX_HEADER)
        else {
            return Err(too_long);
        };
        let start = self.at + BLOCK_LEN;
        let Some(payload) = self.bytes.get(start..end) else {
            return Ok(Some(end + BLOCK_LEN));
        };
        let len = usize::try_from(size).unwrap_or(payload.len());
        let payload_offset = here + BLOCK;
        let value = &payload[..len];
        match block::typeflag(block) {
            b'L' => self.long.name = Some(to_nul(value)),
            b'K' => self.long.target = Some(to_nul(value)),
            b'g' => {
                let mut global = Records::default();
                global.read(value, payload_offset)?;
                let ignored = global.global_keyword().map(|keyword| VolumeError::Global {
                    offset: here,
                    keyword,
                });
                self.ignored = self.ignored.take().or(ignored);
            }
            _ => {
                if pax::header_crc(value) == HeaderCrc::Broken {
                    return Err(VolumeError::Damaged {
                        offset: self.offset,
                        problem: "its CRC record has changed",
                    });
                }
                self.local
                    .get_or_insert_default()
                    .read(value, payload_offset)?;
                self.last = Some((self.at, value));
            }
        }
        self.at = end;
        Ok(None)
    }

    /// Reads the header block and the sparse map, and checks the CRC.
    fn member(mut self, block: &Block) -> Result<Parsed, VolumeError> {
        let is_extended = self.at > 0;
        let mut records = self.local.take().unwrap_or_default();
        let here = self.here();
        let (mut header, stored) = self.header(block, &mut records)?;
        let after_block = self.at + BLOCK_LEN;
        let map_len = match self.sparse_map(&records, &mut header, stored)? {
            Ok(len) => len,
            Err(needed) => return Ok(Parsed::NeedMore(needed)),
        };
        let checksum =
            self.check_header_crc(block, &self.bytes[after_block..after_block + map_len])?;
        let beyond = || VolumeError::Number {
            offset: here,
            field: "size",
        };
        let data_offset = here
            .checked_add(BLOCK + map_len as u64)
            .ok_or_else(beyond)?;
        let data_len = stored - map_len as u64;
        let end = data_offset
            .checked_add(data_len)
            .and_then(|end| end.checked_add(padding(data_len)));
        let end = end.ok_or_else(beyond)?;
        let member = Member {
            header,
            offset: self.offset,
            data_offset,
            data_len,
            end,
            checksum,
        };
        Ok(Parsed::Found(Box::new(Found {
            member,
            ignored: self.ignored,
            is_extended,
        })))
    }

    /// Builds the header, without its segments, and returns the bytes of data after it.
    fn header(
        &mut self,
        block: &Block,
        records: &mut Records,
    ) -> Result<(Header, u64), VolumeError> {
        let here = self.here();
        let magic = block::magic(block);
        let sparse_name = records.sparse.name.take();
        let raw_name = sparse_name
            .or(records.path.take())
            .or(self.long.name.take())
            .unwrap_or_else(|| name(block, magic));
        let size = match records.size {
            Some(size) => size,
            None => unsigned(&block::SIZE, block, here, "size")?,
        };
        if i64::try_from(size).is_err() {
            return Err(VolumeError::Number {
                offset: here,
                field: "size",
            });
        }
        let kind = block::kind_of(block::typeflag(block), &raw_name, size);
        let kind = kind.ok_or(VolumeError::Unsupported {
            offset: here,
            typeflag: block::typeflag(block),
        })?;
        let target = records.linkpath.take().or(self.long.target.take());
        let target = target.unwrap_or_else(|| block::LINKNAME.text(block).to_vec());
        let stored = if kind.has_content() { size } else { 0 };
        let has_owner_names = magic != Magic::V7;
        let owner = |field: &block::Field| {
            if has_owner_names {
                field.text(block).to_vec()
            } else {
                Vec::new()
            }
        };
        let header = Header {
            name: plain_name(&raw_name),
            kind,
            target: match kind {
                Kind::HardLink => plain_name(&target),
                Kind::Symlink => target,
                _ => Vec::new(),
            },
            mode: mode(block, here)?,
            uid: records
                .uid
                .map_or_else(|| unsigned(&block::UID, block, here, "uid"), Ok)?,
            gid: records
                .gid
                .map_or_else(|| unsigned(&block::GID, block, here, "gid"), Ok)?,
            uname: records.uname.take().unwrap_or_else(|| owner(&block::UNAME)),
            gname: records.gname.take().unwrap_or_else(|| owner(&block::GNAME)),
            size: stored,
            mtime: records.mtime.map_or_else(|| mtime(block, here), Ok)?,
            device: if kind.is_device() && has_owner_names {
                device(block, here)?
            } else {
                (0, 0)
            },
            xattrs: records.take_xattrs(),
            sparse: None,
            link: records.link.take(),
        };
        self.check_names(&header)?;
        Ok((header, stored))
    }

    fn check_names(&self, header: &Header) -> Result<(), VolumeError> {
        let has_nul = |text: &[u8]| memchr::memchr(0, text).is_some();
        let names = [
            ("name", &header.name, true),
            ("target", &header.target, header.kind == Kind::HardLink),
            ("uname", &header.uname, false),
            ("gname", &header.gname, false),
        ];
        for (field, text, is_required) in names {
            if has_nul(text) || (is_required && text.is_empty()) {
                return Err(VolumeError::Name {
                    offset: self.offset,
                    field,
                });
            }
        }
        match header
            .xattrs
            .iter()
            .any(|(name, _)| name.is_empty() || has_nul(name))
        {
            true => Err(VolumeError::Name {
                offset: self.offset,
                field: "extended attribute",
            }),
            false => Ok(()),
        }
    }

    /// Puts the segments of a sparse member into the header and returns the length of the map in
    /// front of the data, or how many bytes it needs.
    fn sparse_map(
        &self,
        records: &Records,
        header: &mut Header,
        stored: u64,
    ) -> Result<Result<usize, usize>, VolumeError> {
        let bad = |problem| VolumeError::SparseMap {
            offset: self.offset,
            problem,
        };
        let sparse = &records.sparse;
        let (mut segments, map_len) = match (&sparse.map, sparse.version) {
            _ if header.kind != Kind::File => return Ok(Ok(0)),
            (None, (None, None)) if sparse.size.is_none() => return Ok(Ok(0)),
            (map, (None | Some(0), _)) => (map.clone().unwrap_or_default(), 0),
            (None, (Some(1), Some(0))) => {
                let bytes = &self.bytes[self.at + BLOCK_LEN..];
                match sparse::read_map(bytes, stored) {
                    Ok(map) => (map.segments, map.len),
                    Err(MapError::Bad(problem)) => return Err(bad(problem)),
                    Err(MapError::NeedMore) => return self.more_map().map(Err),
                }
            }
            _ => return Err(bad("an unknown version")),
        };
        let needed = self.at
            + BLOCK_LEN
            + usize::try_from(map_len).unwrap_or(usize::MAX - self.at - BLOCK_LEN);
        if self.bytes.len() < needed {
            return Ok(Err(needed));
        }
        segments.retain(|segment| segment.len > 0);
        let size = sparse
            .size
            .filter(|size| i64::try_from(*size).is_ok())
            .ok_or_else(|| bad("no size of the file"))?;
        sparse::check(&segments, size).map_err(bad)?;
        if sparse::data_len(&segments) != stored - map_len {
            return Err(bad("another number of bytes than stored"));
        }
        header.size = size;
        header.sparse = Some(segments);
        Ok(Ok(needed - self.at - BLOCK_LEN))
    }

    /// Returns how many bytes to try next for a sparse map of unknown length.
    fn more_map(&self) -> Result<usize, VolumeError> {
        let next = (self.bytes.len() * 2).max(self.at + 2 * BLOCK_LEN);
        let limit = usize::try_from(MAX_HEADER).unwrap_or(usize::MAX);
        if self.bytes.len() >= limit {
            return Err(VolumeError::TooLong {
                offset: self.offset,
                len: next as u64,
            });
        }
        Ok(next.min(limit))
    }

    /// Compares the whole header with its CRC.
    fn check_header_crc(&self, block: &Block, map: &[u8]) -> Result<HeaderCheck, VolumeError> {
        let Some((start, records)) = self.last else {
            return Ok(HeaderCheck::Absent);
        };
        let HeaderCrc::Stated(stated) = pax::header_crc(records) else {
            return Ok(HeaderCheck::Absent);
        };
        let damaged = |problem| {
            Err(VolumeError::Damaged {
                offset: self.offset,
                problem,
            })
        };
        let records_start = start + BLOCK_LEN;
        if start != 0 || self.at != records_start + records.len().next_multiple_of(BLOCK_LEN) {
            return damaged("other blocks stand between its parts");
        }
        if self.bytes[..BLOCK_LEN] != block::extended(records.len() as u64) {
            return damaged("its first block has changed");
        }
        if self.bytes[records_start + records.len()..self.at]
            .iter()
            .any(|byte| *byte != 0)
        {
            return damaged("its padding has changed");
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&records[..records.len() - pax::HEADER_CRC_LEN]);
        crc.update(block);
        crc.update(map);
        if crc.finalize() == stated {
            Ok(HeaderCheck::Verified)
        } else {
            damaged("its CRC does not fit")
        }
    }
}

/// Returns the name a header block states, its prefix in front.
fn name(block: &Block, magic: Magic) -> Vec<u8> {
    let name = block::NAME.text(block);
    let prefix = block::PREFIX.text(block);
    if magic == Magic::Posix && !prefix.is_empty() {
        [prefix, b"/", name].concat()
    } else {
        name.to_vec()
    }
}

/// Takes leading `./` and trailing `/` off a name; what is left of the root itself is `.` or `/`.
fn plain_name(raw: &[u8]) -> Vec<u8> {
    let mut name = raw;
    while let Some(rest) = name.strip_prefix(b"./") {
        // Also the slashes: `.//etc` must not become `/etc`.
        name = &rest[rest
            .iter()
            .position(|byte| *byte != b'/')
            .unwrap_or(rest.len())..];
    }
    let len = name
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |last| last + 1);
    match (len, raw.first()) {
        (0, None) => Vec::new(),
        (0, Some(b'.')) => b".".to_vec(),
        (0, Some(_)) => b"/".to_vec(),
        _ => name[..len].to_vec(),
    }
}

fn to_nul(text: &[u8]) -> Vec<u8> {
    text[..memchr::memchr(0, text).unwrap_or(text.len())].to_vec()
}

fn unsigned(
    field: &block::Field,
    block: &Block,
    offset: u64,
    name: &'static str,
) -> Result<u64, VolumeError> {
    let number = field.number(block, offset, name)?;
    u64::try_from(number).or(Err(VolumeError::Number {
        offset,
        field: name,
    }))
}

fn mode(block: &Block, offset: u64) -> Result<u32, VolumeError> {
    let mode = unsigned(&block::MODE, block, offset, "mode")?;
    Ok(u32::try_from(mode & 0o7777).unwrap_or_default())
}

fn mtime(block: &Block, offset: u64) -> Result<Timestamp, VolumeError> {
    Ok(Timestamp {
        seconds: block::MTIME.number(block, offset, "mtime")?,
        nanoseconds: 0,
    })
}

fn device(block: &Block, offset: u64) -> Result<(u32, u32), VolumeError> {
    let number = |field: &block::Field| {
        let number = unsigned(field, block, offset, "device")?;
        u32::try_from(number).or(Err(VolumeError::Number {
            offset,
            field: "device",
        }))
    };
    Ok((number(&block::MAJOR)?, number(&block::MINOR)?))
}
