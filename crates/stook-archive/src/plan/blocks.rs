//! The files of a plan: blocks with a checksum each.
//!
//! ```text
//!   "stookplan", version, kind of the file                      11 bytes
//!   length  CRC-32(number of the block, kind, payload)  kind  payload
//!   ...                                                  the last block is an `END`
//! ```
//! A block that is changed, missing, doubled or in another place has a wrong checksum; a file that was cut off has no `END`.
//! No number in a file makes a reader take more memory than one block.

use std::io::{self, Read, Write};

use stook_volume::crc32;

/// Payload of a block at most.
pub(crate) const MAX_BLOCK: usize = 1 << 20;

const MAGIC: &[u8; 9] = b"stookplan";
/// The fuzz target `part` writes it, too.
const VERSION: u8 = 5;
const END: u8 = b'E';

/// Why a file of a plan cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFileError {
    /// The system could not read or write it.
    #[error("{}", stook_sys::cause(.0))]
    Io(#[source] io::Error),
    /// It is something else, or its beginning is damaged.
    #[error("it does not begin like a file of a plan")]
    Foreign,
    /// It is of a plan, and no part.
    #[error("it is a file of a plan, but not a part")]
    NoPart,
    /// Another version of stook made it.
    #[error("it is of version {version}, and this stook knows version {VERSION}")]
    Version {
        /// The version.
        version: u8,
    },
    /// It ends too soon.
    #[error("it is cut off")]
    Truncated,
    /// A block is not as it was written.
    #[error("block {block} is not as it was written")]
    Checksum {
        /// Number of the block, from 0.
        block: u64,
    },
    /// A block is as it was written, and is invalid.
    #[error("block {block} is invalid: {what}")]
    Malformed {
        /// Number of the block, from 0.
        block: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// It is of other deletions than those that were planned.
    #[error("it has {found} names, {planned} were planned")]
    OtherNames {
        /// Names that it has.
        found: u64,
        /// Names that are gone from the source.
        planned: u64,
    },
}

impl PlanFileError {
    /// Returns true if the system could not read a file that is there: it may be sound.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() != io::ErrorKind::NotFound)
    }
}

/// What a file of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileRole {
    Plan,
    Part,
    Sorted,
    Deleted,
    Built,
    Commit,
}

impl FileRole {
    const ALL: [Self; 6] = [
        Self::Plan,
        Self::Part,
        Self::Sorted,
        Self::Deleted,
        Self::Built,
        Self::Commit,
    ];

    fn code(self) -> u8 {
        match self {
            Self::Plan => b'P',
            Self::Part => b'V',
            Self::Sorted => b'S',
            Self::Deleted => b'D',
            Self::Built => b'B',
            Self::Commit => b'C',
        }
    }
}

/// Bytes of the magic that may be damaged: it is in no other file.
const MOST_DAMAGED: usize = 3;

/// Returns true for the beginning of a file of a plan, of any version, also if a few bytes of it are damaged.
pub(crate) fn is_plan_file(beginning: &[u8]) -> bool {
    let alike = beginning.iter().zip(MAGIC).filter(|(a, b)| a == b).count();
    alike + MOST_DAMAGED >= MAGIC.len()
}

fn checksum(number: u64, kind: u8, payload: &[u8]) -> u32 {
    crc32(&[&number.to_le_bytes(), &[kind], payload])
}

/// Writes a file of a plan.
pub(crate) struct BlockWriter<W> {
    output: W,
    number: u64,
}

impl<W: Write> BlockWriter<W> {
    pub(crate) fn new(mut output: W, role: FileRole) -> io::Result<Self> {
        output.write_all(MAGIC)?;
        output.write_all(&[VERSION, role.code()])?;
        Ok(Self { output, number: 0 })
    }

    /// Writes a block of at most [`MAX_BLOCK`] bytes.
    pub(crate) fn write(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        if payload.len() > MAX_BLOCK {
            return Err(io::Error::other("a block of a plan is too long"));
        }
        let len = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let crc = checksum(self.number, kind, payload);
        self.output.write_all(&len.to_le_bytes())?;
        self.output.write_all(&crc.to_le_bytes())?;
        self.output.write_all(&[kind])?;
        self.output.write_all(payload)?;
        self.number += 1;
        Ok(())
    }

    /// Writes the last block and hands back the output, flushed.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write(END, &[])?;
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Reads a file of a plan, block by block.
pub(crate) struct BlockReader<R> {
    input: R,
    /// Number of the next block.
    number: u64,
    payload: Vec<u8>,
}

impl<R: Read> BlockReader<R> {
    pub(crate) fn new(mut input: R, role: FileRole) -> Result<Self, PlanFileError> {
        let mut start = [0; MAGIC.len() + 2];
        read_exact(&mut input, &mut start).map_err(|error| match error {
            PlanFileError::Truncated => PlanFileError::Foreign,
            other => other,
        })?;
        let (magic, rest) = start.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(PlanFileError::Foreign);
        }
        if rest[0] != VERSION {
            return Err(PlanFileError::Version { version: rest[0] });
        }
        if rest[1] != role.code() {
            let is_other = FileRole::ALL.iter().any(|other| other.code() == rest[1]);
            return Err(match role {
                FileRole::Part if is_other => PlanFileError::NoPart,
                _ => PlanFileError::Foreign,
            });
        }
        Ok(Self {
            input,
            number: 0,
            payload: Vec::new(),
        })
    }

    /// Returns kind and payload of the next block; None after the last one.
    pub(crate) fn next_block(&mut self) -> Result<Option<(u8, &[u8])>, PlanFileError> {
        let mut start = [0; 9];
        read_exact(&mut self.input, &mut start)?;
        let number = |at: usize| {
            let bytes = [start[at], start[at + 1], start[at + 2], start[at + 3]];
            u32::from_le_bytes(bytes)
        };
        let (len, crc, kind) = (number(0) as usize, number(4), start[8]);
        let block = self.number;
        if len > MAX_BLOCK {
            return Err(PlanFileError::Checksum { block });
        }
        self.payload.resize(len, 0);
        read_exact(&mut self.input, &mut self.payload)?;
        if checksum(block, kind, &self.payload) != crc {
            return Err(PlanFileError::Checksum { block });
        }
        self.number += 1;
        if kind == END {
            let mut more = [0];
            return match self.input.read(&mut more) {
                Ok(0) => Ok(None),
                Ok(_) => Err(self.malformed("something follows the last block")),
                Err(error) => Err(PlanFileError::Io(error)),
            };
        }
        Ok(Some((kind, &self.payload)))
    }

    /// Says what is wrong with the block that was read last.
    pub(crate) fn malformed(&self, what: &'static str) -> PlanFileError {
        let block = self.number.saturating_sub(1);
        PlanFileError::Malformed { block, what }
    }
}

fn read_exact(input: &mut impl Read, buffer: &mut [u8]) -> Result<(), PlanFileError> {
    input
        .read_exact(buffer)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => PlanFileError::Truncated,
            _ => PlanFileError::Io(error),
        })
}

/// Appends fields to the payload of a block.
pub(crate) trait Encode {
    fn number(&mut self, number: u64);
    fn signed(&mut self, number: i64);
    fn bytes(&mut self, bytes: &[u8]);
}

impl Encode for Vec<u8> {
    /// Seven bits a byte, the low ones first.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.push(number.to_le_bytes()[0]);
    }

    fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Takes fields from the payload of a block; None where there are none, or none of that form.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn number32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn array<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// Returns None unless everything was taken.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = BlockWriter::new(Vec::new(), FileRole::Part).unwrap();
        for payload in [&b"first"[..], b"", b"third"] {
            writer.write(b'x', payload).unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, PlanFileError> {
        let mut reader = BlockReader::new(bytes, FileRole::Part)?;
        let mut blocks = Vec::new();
        while let Some((_, payload)) = reader.next_block()? {
            blocks.push(payload.to_vec());
        }
        Ok(blocks)
    }

    #[test]
    fn blocks_come_back() {
        assert_eq!(read(&sample()).unwrap(), [&b"first"[..], b"", b"third"]);
        let part = sample();
        let other = BlockReader::new(&part[..], FileRole::Plan);
        assert!(matches!(other.err(), Some(PlanFileError::Foreign)));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let good = sample();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bad).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_err(), "{len} bytes");
        }
        let longer = [&good[..], b"x"].concat();
        assert!(matches!(
            read(&longer),
            Err(PlanFileError::Malformed { .. })
        ));
    }

    #[test]
    fn blocks_that_change_places_are_found() {
        let mut writer = BlockWriter::new(Vec::new(), FileRole::Part).unwrap();
        writer.write(b'x', b"aaaa").unwrap();
        writer.write(b'x', b"bbbb").unwrap();
        let good = writer.finish().unwrap();
        let (start, len) = (11, 13);
        let first = &good[start..start + len];
        let second = &good[start + len..start + 2 * len];
        let swapped = [&good[..start], second, first, &good[start + 2 * len..]].concat();
        let error = read(&swapped).unwrap_err();
        assert!(matches!(error, PlanFileError::Checksum { block: 0 }));
    }

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, 1 << 62, u64::MAX] {
            let mut bytes = Vec::new();
            bytes.number(number);
            assert_eq!(Fields(&bytes).number(), Some(number));
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            let mut bytes = Vec::new();
            bytes.signed(number);
            assert_eq!(Fields(&bytes).signed(), Some(number));
        }
        assert_eq!(Fields(&[0xff; 11]).number(), None);
        assert_eq!(Fields(&[5, b'x']).bytes(), None);
    }
}
