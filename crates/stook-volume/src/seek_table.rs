//! The table at the end of a compressed volume that says where its frames lie: zstd's seekable format.
//!
//! ```text
//!   | frame | frame | ... | frame | 184D2A5E | length | entry | ... | entry | number of frames | 0x80 | 8F92EAB1 |
//!                                 '------------ a skippable frame: zstd reads over it ------------------------'
//!   entry: length of the frame in the file, length of its content, checksum; 4 bytes each, the lowest first
//! ```
//! Nothing in it is trusted: lengths must add up to what lies in front of it, and each is bounded.
//!
//! # Source
//! `zstd_seekable_compression_format.md` of zstd.

use std::io;

use crate::error::{FrameError, VolumeError};
use crate::frames::{MAX_FRAME, content_len, frame_checksum, frame_len, longest_frame};
use crate::source::{ReadAt, Window};

const SKIPPABLE: u32 = 0x184D_2A5E;
const SEEKABLE: u32 = 0x8F92_EAB1;
const CHECKSUMS: u8 = 0x80;
const HEAD: u64 = 8;
const ENTRY: u64 = 12;
const FOOT: u64 = 9;

/// The frames that a table has at most, as zstd has it.
const MOST_FRAMES: u64 = 0x0800_0000;

/// Entries that are read at once.
const ENTRIES_AT_ONCE: usize = 8192;

/// One frame of a compressed volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeekEntry {
    /// Bytes of it in the file.
    pub stored: u32,
    /// Bytes of its content.
    pub len: u32,
    /// The checksum at its end.
    pub checksum: u32,
}

/// Returns the length of the table of so many frames.
pub fn seek_table_len(frames: u64) -> u64 {
    frames.saturating_mul(ENTRY).saturating_add(HEAD + FOOT)
}

/// Encodes the table of some frames.
///
/// # Errors
/// `TooManyFrames`, past 2^27: 128 TiB of content.
pub fn encode_seek_table(entries: &[SeekEntry]) -> Result<Vec<u8>, FrameError> {
    let frames = entries.len() as u64;
    let too_many = || FrameError::TooManyFrames { frames };
    if frames > MOST_FRAMES {
        return Err(too_many());
    }
    let number = u32::try_from(frames).map_err(|_error| too_many())?;
    let len = u32::try_from(seek_table_len(frames) - HEAD).map_err(|_error| too_many())?;
    let mut table = Vec::with_capacity(entries.len() * 12 + 17);
    table.extend(SKIPPABLE.to_le_bytes());
    table.extend(len.to_le_bytes());
    for entry in entries {
        for number in [entry.stored, entry.len, entry.checksum] {
            table.extend(number.to_le_bytes());
        }
    }
    table.extend(number.to_le_bytes());
    table.push(CHECKSUMS);
    table.extend(SEEKABLE.to_le_bytes());
    Ok(table)
}

/// Reads the table at the end of a volume of `file_len` bytes.
///
/// # Errors
/// `NoSeekTable` if there is none, or one that does not describe what lies in front of it; `Io`.
///
/// # Cost
/// Three reads for a table of up to 8,192 frames. 12 bytes a frame, and never more than the file has.
pub fn read_seek_table(
    source: &(impl ReadAt + ?Sized),
    file_len: u64,
) -> Result<Vec<SeekEntry>, FrameError> {
    let bad = |problem| FrameError::NoSeekTable { problem };
    let foot_at = file_len
        .checked_sub(HEAD + FOOT)
        .ok_or(bad("the volume is too short"))?
        + HEAD;
    let foot: [u8; 9] = read_array(source, foot_at)?;
    let frames = u64::from(number_at(&foot, 0));
    if number_at(&foot, 5) != SEEKABLE {
        return Err(bad("the volume does not end with one"));
    }
    if foot[4] != CHECKSUMS {
        return Err(bad("it has no checksums"));
    }
    let start = file_len
        .checked_sub(seek_table_len(frames))
        .filter(|_| frames <= MOST_FRAMES)
        .ok_or(bad("it names more frames than there is room for"))?;
    let head: [u8; 8] = read_array(source, start)?;
    let len = u64::from(number_at(&head, 4));
    if number_at(&head, 0) != SKIPPABLE || len + HEAD != seek_table_len(frames) {
        return Err(bad("it does not begin where its number of frames says"));
    }
    read_entries(source, start, frames)
}

/// Reads entries, and stops at the first that cannot be true.
fn read_entries(
    source: &(impl ReadAt + ?Sized),
    start: u64,
    frames: u64,
) -> Result<Vec<SeekEntry>, FrameError> {
    let bad = |problem| FrameError::NoSeekTable { problem };
    let (mut entries, mut stored) = (Vec::new(), 0_u64);
    let mut bytes = Vec::new();
    while (entries.len() as u64) < frames {
        let rest = usize::try_from(frames).unwrap_or(usize::MAX) - entries.len();
        let count = rest.min(ENTRIES_AT_ONCE);
        bytes.resize(count * 12, 0);
        read_exactly(
            source,
            &mut bytes,
            start + HEAD + ENTRY * entries.len() as u64,
        )?;
        for entry in bytes.chunks_exact(12) {
            let entry = SeekEntry {
                stored: number_at(entry, 0),
                len: number_at(entry, 4),
                checksum: number_at(entry, 8),
            };
            let is_frame = entry.stored > 0 && (1..=MAX_FRAME as u64).contains(&entry.len.into());
            stored += u64::from(entry.stored);
            if !is_frame || entry.stored as usize > longest_frame(MAX_FRAME) || stored > start {
                return Err(bad("a frame in it has an impossible length"));
            }
            entries.push(entry);
        }
    }
    if stored == start {
        Ok(entries)
    } else {
        Err(bad("its frames are not all that lies in front of it"))
    }
}

/// Finds the frames of a volume without a table, from its first byte up to the first that is no whole frame of ours; shows
/// each, and its place in the file.
///
/// # Errors
/// `Io`.
///
/// # Cost
/// Every byte is read once.
pub fn scan_frames(
    source: &(impl ReadAt + ?Sized),
    mut visit: impl FnMut(u64, SeekEntry),
) -> Result<(), FrameError> {
    let longest = longest_frame(MAX_FRAME);
    let (mut window, mut at) = (Window::new(source, 4 * longest), 0);
    loop {
        let bytes = match window.bytes(at, longest) {
            Err(VolumeError::Io { offset, source }) => {
                return Err(FrameError::Io { offset, source });
            }
            other => other.unwrap_or_default(),
        };
        let Some(entry) = entry_of(bytes) else {
            return Ok(());
        };
        visit(at, entry);
        at += u64::from(entry.stored);
    }
}

fn entry_of(bytes: &[u8]) -> Option<SeekEntry> {
    let len = content_len(bytes).ok().filter(|len| *len > 0)?;
    let stored = frame_len(bytes).ok()?;
    Some(SeekEntry {
        stored: u32::try_from(stored).ok()?,
        len: u32::try_from(len).ok()?,
        checksum: frame_checksum(bytes.get(..stored)?)?,
    })
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn read_array<const N: usize>(
    source: &(impl ReadAt + ?Sized),
    offset: u64,
) -> Result<[u8; N], FrameError> {
    let mut bytes = [0; N];
    read_exactly(source, &mut bytes, offset)?;
    Ok(bytes)
}

fn read_exactly(
    source: &(impl ReadAt + ?Sized),
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), FrameError> {
    if fill(source, buffer, offset)? < buffer.len() {
        let problem = "the volume ends before it does";
        return Err(FrameError::NoSeekTable { problem });
    }
    Ok(())
}

fn fill(
    source: &(impl ReadAt + ?Sized),
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize, FrameError> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read_at(&mut buffer[done..], offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(count) => done += count.min(buffer.len() - done),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(FrameError::Io { offset, source }),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{FrameEncoder, ZstdLevel};

    /// A volume of some frames, with its table.
    fn volume(lens: &[usize]) -> (Vec<u8>, Vec<SeekEntry>) {
        let mut encoder = FrameEncoder::new(ZstdLevel::default()).unwrap();
        let (mut volume, mut entries) = (Vec::new(), Vec::new());
        for &len in lens {
            let content: Vec<u8> = (0..len).map(|at| (at % 7 * len).to_le_bytes()[0]).collect();
            let stored = encoder.encode(&content, &mut volume).unwrap();
            entries.push(SeekEntry {
                stored: u32::try_from(stored).unwrap(),
                len: u32::try_from(len).unwrap(),
                checksum: frame_checksum(&volume).unwrap(),
            });
        }
        volume.extend(encode_seek_table(&entries).unwrap());
        (volume, entries)
    }

    #[test]
    fn frames_come_back_from_the_table_and_without_it() {
        for lens in [&[1][..], &[MAX_FRAME, 5, 512], &[100; 9000]] {
            let (volume, entries) = volume(lens);
            let found = read_seek_table(&volume, volume.len() as u64).unwrap();
            assert_eq!(found, entries);
            let (mut scanned, mut end) = (Vec::new(), 0);
            scan_frames(&volume, |at, entry| {
                assert_eq!(at, end);
                end += u64::from(entry.stored);
                scanned.push(entry);
            })
            .unwrap();
            assert_eq!(scanned, entries);
            let table = volume.len() as u64 - end;
            assert_eq!(table, seek_table_len(entries.len() as u64));
        }
    }

    #[test]
    fn a_scan_ends_at_the_first_frame_that_is_not_whole() {
        let (volume, entries) = volume(&[300, 400, 500]);
        let two = (entries[0].stored + entries[1].stored) as usize;
        let mut scanned = Vec::new();
        scan_frames(&volume[..two + 10], |_, entry| scanned.push(entry)).unwrap();
        assert_eq!(scanned, entries[..2]);
    }

    #[test]
    fn every_flipped_bit_but_those_of_checksums_is_seen() {
        let (volume, entries) = volume(&[300, 400]);
        let table = volume.len() - usize::try_from(seek_table_len(2)).unwrap();
        for bit in table * 8..volume.len() * 8 {
            let mut damaged = volume.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let Ok(found) = read_seek_table(&damaged, damaged.len() as u64) else {
                continue;
            };
            let same = |(found, entry): (&SeekEntry, &SeekEntry)| found.stored == entry.stored;
            assert!(found.iter().zip(&entries).all(same), "bit {bit}");
            assert_ne!(found, entries, "bit {bit}");
        }
    }

    #[test]
    fn a_table_that_lies_takes_no_memory() {
        for (frames, len) in [(u32::MAX, 100_u64), (0x0800_0000, 1 << 40), (3, 40)] {
            let mut volume = vec![0; 64];
            let foot = volume.len() - 9;
            volume[foot..foot + 4].copy_from_slice(&frames.to_le_bytes());
            volume[foot + 4] = CHECKSUMS;
            volume[foot + 5..].copy_from_slice(&SEEKABLE.to_le_bytes());
            let sparse = Sparse { end: volume, len };
            assert!(read_seek_table(&sparse, len).is_err(), "{frames}");
        }
        for len in 0..17 {
            assert!(read_seek_table(&vec![0; len], len as u64).is_err());
        }
    }

    /// A file of any length that ends with some bytes.
    struct Sparse {
        end: Vec<u8>,
        len: u64,
    }

    impl ReadAt for Sparse {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let start = self.len.saturating_sub(self.end.len() as u64);
            let count = buffer
                .len()
                .min(usize::try_from(self.len.saturating_sub(offset)).unwrap());
            for (at, byte) in (offset..).zip(&mut buffer[..count]) {
                let at = at
                    .checked_sub(start)
                    .and_then(|at| usize::try_from(at).ok());
                *byte = at.map_or(0, |at| self.end[at]);
            }
            Ok(count)
        }
    }
}
