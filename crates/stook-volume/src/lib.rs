//! Tar members: encode, decode, scan, salvage. Frames of compressed volumes.
//!
//! A volume is a PAX tar file. [`encode`] writes the header of one member, either byte for byte
//! as zstash does or with the additions of stook; [`decode`] reads one member at a known offset,
//! of any writer; [`Scanner`] walks a whole volume and finds its way past damage. A compressed volume is the same file in
//! frames of zstd ([`FrameEncoder`], [`FrameDecoder`]) with a table of them at its end ([`read_seek_table`]).
//!
//! Nothing here opens a file: callers hand in bytes or something that implements [`ReadAt`].
//! Nothing here judges whether a name is safe to extract to.
#![forbid(unsafe_code)]

mod block;
mod decode;
mod encode;
mod error;
mod frames;
mod header;
mod number;
mod pax;
mod salvage;
mod scan;
mod seek_table;
mod source;
mod sparse;

pub use decode::{Decoded, HeaderCheck, MAX_HEADER, Member, decode, decode_bytes};
pub use encode::{Dialect, encode, header_len, member_len, stored_len};
pub use error::{FrameError, VolumeError};
pub use frames::{
    BadZstdLevel, FrameDecoder, FrameEncoder, MAX_FRAME, ZstdLevel, frame_checksum, longest_frame,
};
pub use header::{Header, Kind, Segment};
pub use scan::{Depth, Event, Scanner};
pub use seek_table::{SeekEntry, encode_seek_table, read_seek_table, scan_frames, seek_table_len};
pub use source::ReadAt;
pub use sparse::align_segments;

/// Bytes of one tar block: headers are one block, data is padded to whole blocks.
pub const BLOCK: u64 = 512;

/// Bytes of one tar record: a volume's length is a multiple of it.
pub const RECORD: u64 = 10_240;

/// Bytes of [`BLOCK`], as the length of a slice.
pub(crate) const BLOCK_LEN: usize = 512;

/// Returns the CRC-32 of pieces of bytes, one after the other: that of zlib, as in the headers of members.
pub fn crc32(pieces: &[&[u8]]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for piece in pieces {
        crc.update(piece);
    }
    crc.finalize()
}

/// Returns how many zero bytes follow `len` bytes to fill the last block.
pub fn padding(len: u64) -> u64 {
    len.wrapping_neg() % BLOCK
}

/// Returns the bytes from the end of the last member, at `offset`, to the end of the volume:
/// two zero blocks, then zeros up to a whole record.
pub fn trailer_len(offset: u64) -> u64 {
    let marker = 2 * BLOCK;
    marker + (RECORD - (offset % RECORD + marker) % RECORD) % RECORD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_that_of_zlib() {
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xcbf4_3926);
    }

    #[test]
    fn padding_fills_the_block() {
        for (len, expected) in [
            (0, 0),
            (1, 511),
            (511, 1),
            (512, 0),
            (513, 511),
            (u64::MAX, 1),
        ] {
            assert_eq!(padding(len), expected, "{len}");
        }
    }

    #[test]
    fn the_trailer_fills_the_record() {
        for (offset, expected) in [
            (0, 10_240),
            (512, 9_728),
            (9_216, 1_024),
            (9_728, 10_752),
            (10_240, 10_240),
        ] {
            assert_eq!(trailer_len(offset), expected, "{offset}");
        }
    }
}
