//! Frames of a compressed volume: a part of the tar file each, compressed for itself, so that any one is read alone.
//!
//! A frame is one of zstd with the length of its content in its header and a checksum at its end. Both are required when
//! it is read: the length bounds the memory before anything is decompressed, and the checksum is what a seek table repeats.

use std::fmt;
use std::str::FromStr;

use zstd_safe::{CCtx, CParameter, DCtx};

use crate::error::FrameError;

/// Bytes of content in one frame at most.
pub const MAX_FRAME: usize = 1 << 20;

/// Bytes of a frame behind which its checksum lies.
const CHECKSUM: usize = 4;

/// The bits of a frame's descriptor that say that a checksum follows, and those that mean nothing and are zero.
const HAS_CHECKSUM: u8 = 0x04;
const NO_MEANING: u8 = 0x18;

/// How hard zstd tries: a greater level takes more time and less room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZstdLevel(u8);

impl ZstdLevel {
    /// The greatest level that zstd has.
    const MOST: u8 = 22;

    /// Returns the level; `None` unless zstd has it: from 1 to 22.
    pub fn new(level: u8) -> Option<Self> {
        (1..=Self::MOST).contains(&level).then_some(Self(level))
    }

    /// Returns its number.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// The level of the program `zstd` where none is given.
impl Default for ZstdLevel {
    fn default() -> Self {
        Self(3)
    }
}

impl fmt::Display for ZstdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is not the number of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a level of zstd is a number from 1 to 22")]
pub struct BadZstdLevel;

impl FromStr for ZstdLevel {
    type Err = BadZstdLevel;

    fn from_str(text: &str) -> Result<Self, BadZstdLevel> {
        let level = text.parse().ok().and_then(Self::new);
        // Only in one spelling: it is a value in the index, too.
        level
            .filter(|level| level.to_string() == text)
            .ok_or(BadZstdLevel)
    }
}

/// Compresses frames at one level, one after the other, in the same memory.
pub struct FrameEncoder {
    context: CCtx<'static>,
}

impl fmt::Debug for FrameEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameEncoder").finish_non_exhaustive()
    }
}

impl FrameEncoder {
    /// Returns an encoder.
    ///
    /// # Errors
    /// `Zstd` if there is no memory for it.
    pub fn new(level: ZstdLevel) -> Result<Self, FrameError> {
        let mut context = CCtx::try_create().ok_or(FrameError::NoMemory)?;
        for parameter in [
            CParameter::CompressionLevel(level.0.into()),
            CParameter::ChecksumFlag(true),
            CParameter::ContentSizeFlag(true),
        ] {
            context.set_parameter(parameter).map_err(FrameError::of)?;
        }
        Ok(Self { context })
    }

    /// Appends the frame of some content to the buffer; returns its length.
    ///
    /// # Errors
    /// `TooLong` past [`MAX_FRAME`]; `Zstd`.
    pub fn encode(&mut self, content: &[u8], buffer: &mut Vec<u8>) -> Result<usize, FrameError> {
        if content.len() > MAX_FRAME {
            let len = content.len() as u64;
            return Err(FrameError::TooLong { len });
        }
        let start = buffer.len();
        buffer.resize(start + longest_frame(content.len()), 0);
        let encoded = self.context.compress2(&mut buffer[start..], content);
        buffer.truncate(start + *encoded.as_ref().unwrap_or(&0));
        encoded.map_err(FrameError::of)
    }
}

/// Decompresses frames, one after the other, in the same memory.
pub struct FrameDecoder {
    context: DCtx<'static>,
}

impl fmt::Debug for FrameDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameDecoder").finish_non_exhaustive()
    }
}

impl FrameDecoder {
    /// Returns a decoder.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn new() -> Result<Self, FrameError> {
        let context = DCtx::try_create().ok_or(FrameError::NoMemory)?;
        Ok(Self { context })
    }

    /// Fills `content` with that of a frame, which must be exactly as long.
    ///
    /// # Errors
    /// `Zstd` if it is damaged: its checksum is verified. `WrongLength`, `NoChecksum`, `NotOneFrame` if it is none of
    /// ours.
    pub fn decode(&mut self, frame: &[u8], content: &mut [u8]) -> Result<(), FrameError> {
        let stated = content_len(frame)?;
        if stated != content.len() as u64 {
            return Err(FrameError::WrongLength {
                found: stated,
                expected: content.len() as u64,
            });
        }
        if frame_len(frame)? != frame.len() {
            return Err(FrameError::NotOneFrame);
        }
        let len = content.len();
        let decoded = self.context.decompress(content, frame);
        match decoded.map_err(FrameError::of)? {
            found if found == len => Ok(()),
            found => Err(FrameError::WrongLength {
                found: found as u64,
                expected: len as u64,
            }),
        }
    }
}

/// Returns how long a frame with so much content can be.
pub fn longest_frame(content: usize) -> usize {
    zstd_safe::compress_bound(content)
}

/// Returns the checksum at the end of a frame: the lower half of the XXH64 of its content.
pub fn frame_checksum(frame: &[u8]) -> Option<u32> {
    frame
        .last_chunk::<CHECKSUM>()
        .copied()
        .map(u32::from_le_bytes)
}

/// Returns the length of the content, as the header of a frame of ours states it.
pub(crate) fn content_len(frame: &[u8]) -> Result<u64, FrameError> {
    let stated = zstd_safe::get_frame_content_size(frame);
    let len = stated.ok().flatten().ok_or(FrameError::NoFrame)?;
    // Behind the four bytes that say that a frame begins.
    let descriptor = frame.get(4).copied().unwrap_or(0);
    if descriptor & HAS_CHECKSUM == 0 || descriptor & NO_MEANING != 0 {
        Err(FrameError::NoChecksum)
    } else if len > MAX_FRAME as u64 {
        Err(FrameError::TooLong { len })
    } else {
        Ok(len)
    }
}

/// Returns the length of the frame that these bytes begin with.
pub(crate) fn frame_len(bytes: &[u8]) -> Result<usize, FrameError> {
    zstd_safe::find_frame_compressed_size(bytes).map_err(FrameError::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(len: usize) -> Vec<u8> {
        (0..len)
            .map(|at| (at * at / 977 % 251).to_le_bytes()[0])
            .collect()
    }

    fn frame_of(content: &[u8]) -> Vec<u8> {
        let mut frame = b"before".to_vec();
        let mut encoder = FrameEncoder::new(ZstdLevel::default()).unwrap();
        let len = encoder.encode(content, &mut frame).unwrap();
        assert_eq!(len + 6, frame.len());
        frame.split_off(6)
    }

    #[test]
    fn content_comes_back_and_memory_is_used_again() {
        let mut decoder = FrameDecoder::new().unwrap();
        for len in [1, 512, 100_000, MAX_FRAME] {
            let content = content(len);
            let frame = frame_of(&content);
            assert_eq!(content_len(&frame).unwrap(), len as u64);
            let mut found = vec![0; len];
            decoder.decode(&frame, &mut found).unwrap();
            assert!(found == content, "{len}");
        }
        let long = vec![0; MAX_FRAME + 1];
        let mut encoder = FrameEncoder::new(ZstdLevel::default()).unwrap();
        let refused = encoder.encode(&long, &mut Vec::new());
        assert!(matches!(refused, Err(FrameError::TooLong { .. })));
    }

    #[test]
    fn the_checksum_is_that_of_the_content_whatever_the_level() {
        let content = content(5000);
        let frame = frame_of(&content);
        let mut encoder = FrameEncoder::new(ZstdLevel::new(19).unwrap()).unwrap();
        let mut other = Vec::new();
        encoder.encode(&content, &mut other).unwrap();
        assert_eq!(frame_checksum(&frame), frame_checksum(&other));
        assert_ne!(frame_checksum(&frame), frame_checksum(&frame_of(b"x")));
    }

    #[test]
    fn no_flipped_bit_gives_other_content() {
        let content = content(3000);
        let frame = frame_of(&content);
        let mut decoder = FrameDecoder::new().unwrap();
        for bit in 0..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let mut found = vec![0; content.len()];
            if decoder.decode(&damaged, &mut found).is_ok() {
                assert!(found == content, "bit {bit}");
            }
        }
    }

    #[test]
    fn what_is_not_exactly_one_frame_of_ours_is_refused() {
        let content = content(3000);
        let frame = frame_of(&content);
        let mut decoder = FrameDecoder::new().unwrap();
        let mut decode = |bytes: &[u8], len: usize| decoder.decode(bytes, &mut vec![0; len]);
        let twice = [&frame[..], &frame[..]].concat();
        assert!(matches!(decode(&twice, 3000), Err(FrameError::NotOneFrame)));
        for len in [0, 2999, 3001, 6000] {
            let refused = decode(&frame, len);
            assert!(matches!(refused, Err(FrameError::WrongLength { .. })));
        }
        for len in 0..frame.len() {
            assert!(decode(&frame[..len], 3000).is_err(), "{len}");
        }
        let mut plain = CCtx::create();
        let mut without = vec![0; 4000];
        let len = plain.compress2(&mut without[..], &content).unwrap();
        let refused = decode(&without[..len], 3000);
        assert!(matches!(refused, Err(FrameError::NoChecksum)));
    }

    #[test]
    fn levels_are_numbers_in_one_spelling() {
        assert_eq!("19".parse(), Ok(ZstdLevel(19)));
        for wrong in ["", "0", "23", "-1", "+3", "03", "fast"] {
            assert_eq!(wrong.parse::<ZstdLevel>(), Err(BadZstdLevel), "{wrong}");
        }
    }
}
