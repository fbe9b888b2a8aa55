//! One 512-byte header block: where its fields are, how they are filled, and its sum.

use crate::error::VolumeError;
use crate::header::{Header, Kind};
use crate::{BLOCK_LEN, number};

/// One block of a volume.
pub(crate) type Block = [u8; BLOCK_LEN];

/// A field of the header block, first byte and length.
pub(crate) struct Field(usize, usize);

pub(crate) const NAME: Field = Field(0, 100);
pub(crate) const MODE: Field = Field(100, 8);
pub(crate) const UID: Field = Field(108, 8);
pub(crate) const GID: Field = Field(116, 8);
pub(crate) const SIZE: Field = Field(124, 12);
pub(crate) const MTIME: Field = Field(136, 12);
const CHECKSUM: Field = Field(148, 8);
const TYPEFLAG: usize = 156;
pub(crate) const LINKNAME: Field = Field(157, 100);
const MAGIC: Field = Field(257, 8);
pub(crate) const UNAME: Field = Field(265, 32);
pub(crate) const GNAME: Field = Field(297, 32);
pub(crate) const MAJOR: Field = Field(329, 8);
pub(crate) const MINOR: Field = Field(337, 8);
pub(crate) const PREFIX: Field = Field(345, 155);

/// What stands in a header of any modern tar, and where: salvage looks for it.
pub(crate) const MARK: &[u8] = b"ustar";
pub(crate) const MARK_OFFSET: usize = MAGIC.0;

const POSIX_MAGIC: &[u8; 8] = b"ustar\x0000";
const GNU_MAGIC: &[u8; 8] = b"ustar  \0";

/// Which magic a header block bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Magic {
    Posix,
    Gnu,
    /// No magic: neither owner names nor a prefix.
    V7,
}

impl Field {
    pub(crate) fn len(&self) -> usize {
        self.1
    }

    pub(crate) fn of<'a>(&self, block: &'a Block) -> &'a [u8] {
        &block[self.0..self.0 + self.1]
    }

    /// Returns the field up to its first NUL.
    pub(crate) fn text<'a>(&self, block: &'a Block) -> &'a [u8] {
        let bytes = self.of(block);
        &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
    }

    pub(crate) fn number(
        &self,
        block: &Block,
        offset: u64,
        field: &'static str,
    ) -> Result<i64, VolumeError> {
        number::field(self.of(block)).ok_or(VolumeError::Number { offset, field })
    }

    fn bytes_mut<'a>(&self, block: &'a mut Block) -> &'a mut [u8] {
        &mut block[self.0..self.0 + self.1]
    }

    /// Writes text as Python does: one `?` for each character that is not ASCII, cut to the field.
    /// A byte that is no UTF-8 is a character of its own.
    pub(crate) fn put_text(&self, block: &mut Block, text: &[u8]) {
        let field = self.bytes_mut(block);
        if text.is_ascii() {
            let len = text.len().min(field.len());
            field[..len].copy_from_slice(&text[..len]);
            return;
        }
        let characters = text.utf8_chunks().flat_map(|chunk| {
            let valid = chunk
                .valid()
                .chars()
                .map(|c| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(b'?'));
            valid.chain(chunk.invalid().iter().map(|_| b'?'))
        });
        for (slot, character) in field.iter_mut().zip(characters) {
            *slot = character;
        }
    }

    pub(crate) fn put_number(&self, block: &mut Block, value: u64) {
        number::put_octal(self.bytes_mut(block), value);
    }
}

/// Returns a block with the type, the POSIX magic and zeros in every field of a number but the
/// device's, as Python leaves it.
pub(crate) fn blank(typeflag: u8) -> Block {
    let mut block = [0; BLOCK_LEN];
    for field in [MODE, UID, GID, SIZE, MTIME] {
        field.put_number(&mut block, 0);
    }
    block[TYPEFLAG] = typeflag;
    MAGIC.bytes_mut(&mut block).copy_from_slice(POSIX_MAGIC);
    block
}

/// Writes the sum of the block's bytes into it.
pub(crate) fn set_checksum(block: &mut Block) {
    let (sum, _) = sums(block);
    let field = CHECKSUM.bytes_mut(block);
    number::put_octal(&mut field[..7], u64::from(sum));
    field[7] = b' ';
}

/// Returns the extended header block that stands before records of `len` bytes.
pub(crate) fn extended(len: u64) -> Block {
    let mut block = blank(b'x');
    NAME.put_text(&mut block, b"././@PaxHeader");
    SIZE.put_number(&mut block, len);
    set_checksum(&mut block);
    block
}

/// Returns the type byte of an entry.
pub(crate) fn typeflag_of(kind: Kind) -> u8 {
    match kind {
        Kind::File => b'0',
        Kind::HardLink => b'1',
        Kind::Symlink => b'2',
        Kind::CharDevice => b'3',
        Kind::BlockDevice => b'4',
        Kind::Directory => b'5',
        Kind::Fifo => b'6',
    }
}

/// Returns the kind of a member from its type byte and its name as stored: old writers mark a
/// directory by a trailing slash alone. With a size it is a file whose name was cut at a slash.
pub(crate) fn kind_of(typeflag: u8, stored_name: &[u8], size: u64) -> Option<Kind> {
    Some(match typeflag {
        0 | b'0' | b'7' if size == 0 && stored_name.ends_with(b"/") => Kind::Directory,
        0 | b'0' | b'7' => Kind::File,
        b'1' => Kind::HardLink,
        b'2' => Kind::Symlink,
        b'3' => Kind::CharDevice,
        b'4' => Kind::BlockDevice,
        b'5' => Kind::Directory,
        b'6' => Kind::Fifo,
        _ => return None,
    })
}

pub(crate) fn typeflag(block: &Block) -> u8 {
    block[TYPEFLAG]
}

/// Returns true for a header that only adds to the one after it.
pub(crate) fn is_extension(typeflag: u8) -> bool {
    matches!(typeflag, b'x' | b'X' | b'g' | b'L' | b'K')
}

pub(crate) fn magic(block: &Block) -> Magic {
    let magic = MAGIC.of(block);
    if magic == GNU_MAGIC {
        Magic::Gnu
    } else if magic.starts_with(b"ustar\0") {
        Magic::Posix
    } else {
        Magic::V7
    }
}

pub(crate) fn is_zero(block: &Block) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Returns true if the block states the sum of its own bytes. Old systems added them as signed.
pub(crate) fn has_valid_checksum(block: &Block) -> bool {
    let Some(stated) = number::field(CHECKSUM.of(block)) else {
        return false;
    };
    let (unsigned, signed) = sums(block);
    stated == i64::from(unsigned) || stated == i64::from(signed)
}

/// Returns the sums of the bytes, unsigned and signed, the sum's own field taken as spaces.
fn sums(block: &Block) -> (u32, i32) {
    let Field(start, len) = CHECKSUM;
    let others = || block[..start].iter().chain(&block[start + len..]);
    let spaces = 8 * u32::from(b' ');
    let unsigned = others().map(|byte| u32::from(*byte)).sum::<u32>() + spaces;
    let high = others().filter(|byte| !byte.is_ascii()).count();
    // A byte with the top bit set counts 256 less when it is signed. The sums are below 2^17.
    let signed = i64::from(unsigned) - 256 * i64::try_from(high).unwrap_or(0);
    (unsigned, i32::try_from(signed).unwrap_or(i32::MIN))
}

/// Fills the fields of a header block that say the same in both dialects, all but name and size.
pub(crate) fn of_header(header: &Header) -> Block {
    let mut block = blank(typeflag_of(header.kind));
    MODE.put_number(&mut block, u64::from(header.mode & 0o7777));
    UID.put_number(&mut block, header.uid);
    GID.put_number(&mut block, header.gid);
    MTIME.put_number(&mut block, rounded_seconds(header.mtime.as_float()));
    if header.kind.has_target() {
        LINKNAME.put_text(&mut block, &header.target);
    }
    UNAME.put_text(&mut block, &header.uname);
    GNAME.put_text(&mut block, &header.gname);
    if header.kind.is_device() {
        MAJOR.put_number(&mut block, u64::from(header.device.0));
        MINOR.put_number(&mut block, u64::from(header.device.1));
    }
    block
}

/// Returns the float rounded half to even, or 0 if that is negative or too big for the field.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded by the check before"
)]
fn rounded_seconds(float: f64) -> u64 {
    let rounded = float.round_ties_even();
    let limit = f64::from(1 << 30) * 8.0;
    if (0.0..limit).contains(&rounded) {
        rounded as u64
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_replaced_per_character() {
        let mut block = [0; BLOCK_LEN];
        UNAME.put_text(&mut block, "aé\u{1f33e}b".as_bytes());
        assert_eq!(UNAME.text(&block), b"a??b");
        let mut block = [0; BLOCK_LEN];
        UNAME.put_text(&mut block, b"\xe2\x82x\xff");
        assert_eq!(
            UNAME.text(&block),
            b"??x?",
            "each byte of a broken character is one"
        );
        let mut block = [0; BLOCK_LEN];
        UNAME.put_text(&mut block, "é".repeat(33).as_bytes());
        assert_eq!(UNAME.of(&block), [b'?'; 32]);
        assert_eq!(block[GNAME.0], 0, "nothing spills into the next field");
    }

    #[test]
    fn signed_and_unsigned_sums_are_taken() {
        let mut block = blank(b'0');
        block[0] = 0xe9;
        set_checksum(&mut block);
        assert!(has_valid_checksum(&block));
        let (_, signed) = sums(&block);
        let field = CHECKSUM.bytes_mut(&mut block);
        number::put_octal(&mut field[..7], u64::try_from(signed).unwrap());
        assert!(has_valid_checksum(&block));
        block[1] ^= 1;
        assert!(!has_valid_checksum(&block));
    }

    #[test]
    fn seconds_are_rounded_half_to_even() {
        for (float, expected) in [
            (0.5, 0),
            (1.5, 2),
            (-0.5, 0),
            (-1.0, 0),
            (8_589_934_591.4, 8_589_934_591),
            (8_589_934_591.5, 0),
        ] {
            assert_eq!(rounded_seconds(float), expected, "{float}");
        }
    }
}
