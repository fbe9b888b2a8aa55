//! Where the frames of a compressed volume lie.
//!
//! ```text
//!   uncompressed   | member | member | member .......... | member | end |     files.offset, stook_attributes
//!                  ^ offset          ^ offset
//!   the file       | frame           | frame ................. | table |     tars.size, tars.md5
//!                  ^ stored          ^ stored
//! ```
//! A table of blocks, as that of the attributes: at most 4,096 consecutive frames each, two columns, a CRC. The file has a
//! seek table of its own at its end; this one spares a remote reader the way there.

use std::ops::ControlFlow;

use crate::blocks::NewBlock;
use crate::column::{Column, Reader, put_column, put_varint};
use crate::error::IndexError;
use crate::index::Index;
use crate::schema::FRAMES;
use crate::types::VolumeId;

/// Frames in one block at most.
const MOST_FRAMES: usize = 4096;

/// One frame of a compressed volume; it ends where the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// Its first byte in the uncompressed volume.
    pub offset: u64,
    /// Its first byte in the file.
    pub stored: u64,
}

/// Encodes the frames of a volume, ascending by both offsets; a last one without content says where the others end.
pub fn encode_frames(frames: &[Frame]) -> Vec<NewBlock> {
    let encode = |frames: &[Frame]| {
        let (first, mut data) = (frames[0].offset, Vec::new());
        put_varint(&mut data, frames.len() as u64);
        let offsets: Vec<u64> = frames.iter().map(|frame| frame.offset).collect();
        let stored: Vec<u64> = frames.iter().map(|frame| frame.stored).collect();
        put_column(&mut data, &offsets);
        put_column(&mut data, &stored);
        NewBlock::new(first, frames.len() as u64, data)
    };
    frames.chunks(MOST_FRAMES).map(encode).collect()
}

/// At most 4,096 consecutive frames.
#[derive(Debug, Clone)]
pub struct FramesBlock {
    data: Vec<u8>,
    frames: usize,
    offsets: Column,
    stored: Column,
}

impl FramesBlock {
    /// Decodes the block whose first frame begins at `first`; `None` if this is none.
    pub fn decode(first: u64, data: Vec<u8>) -> Option<Self> {
        let mut reader = Reader::new(&data, 0);
        let frames = usize::try_from(reader.varint()?).ok()?;
        if !(1..=MOST_FRAMES).contains(&frames) {
            return None;
        }
        let (offsets, stored) = (reader.column(frames)?, reader.column(frames)?);
        let is_whole = reader.is_at_end();
        let block = Self {
            data,
            frames,
            offsets,
            stored,
        };
        let ascends = (1..frames).all(|at| {
            let (before, frame) = (block.frame(at - 1), block.frame(at));
            before.offset < frame.offset && before.stored < frame.stored
        });
        (is_whole && ascends && block.frame(0).offset == first).then_some(block)
    }

    fn frame(&self, index: usize) -> Frame {
        Frame {
            offset: self.offsets.get(&self.data, index),
            stored: self.stored.get(&self.data, index),
        }
    }

    fn is_behind(&self, last: Frame) -> bool {
        let first = self.frame(0);
        first.offset > last.offset && first.stored > last.stored
    }

    /// Returns the frames, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame> + '_ {
        (0..self.frames).map(|index| self.frame(index))
    }
}

impl Index {
    /// Returns where the frames of a volume lie, ascending by both offsets; the last one has no content and says where the
    /// others end. `None` if that is not known, or a block of it is not as it was written.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read for another reason than damage.
    ///
    /// # Cost
    /// Reads about 6 bytes a frame; 16 bytes a frame in memory.
    pub fn frames_of_volume(&self, volume: VolumeId) -> Result<Option<Vec<Frame>>, IndexError> {
        let (mut frames, mut is_sound) = (Vec::<Frame>::new(), true);
        self.blocks_of_volume(FRAMES, volume, &mut |block| {
            let decoded = block.is_as_written().then_some(block);
            let decoded = decoded.and_then(|block| FramesBlock::decode(block.first, block.data));
            let last = frames.last().copied();
            match decoded {
                Some(block) if last.is_none_or(|last| block.is_behind(last)) => {
                    frames.extend(block.iter());
                    ControlFlow::Continue(())
                }
                _ => {
                    is_sound = false;
                    ControlFlow::Break(())
                }
            }
        })?;
        let begins = frames
            .first()
            .is_some_and(|first| first.offset == 0 && first.stored == 0);
        Ok((is_sound && begins).then_some(frames))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 1 MiB that shrink to a third, more or less.
    fn frames(count: u64) -> Vec<Frame> {
        let stored = |at: u64| at * 350_000 + at * at % 1000;
        (0..count)
            .map(|at| Frame {
                offset: at << 20,
                stored: stored(at),
            })
            .collect()
    }

    #[test]
    fn frames_come_back() {
        let all = frames(10_000);
        let blocks = encode_frames(&all);
        assert_eq!(blocks.len(), 3);
        let mut found = Vec::new();
        for block in &blocks {
            assert!(
                block.data().len() as u64 <= 9 * block.entries(),
                "{}",
                block.data().len()
            );
            let decoded = FramesBlock::decode(block.first(), block.data().to_vec()).unwrap();
            found.extend(decoded.iter());
        }
        assert_eq!(found, all);
    }

    #[test]
    fn what_is_no_block_of_frames_is_none() {
        let block = &encode_frames(&frames(5))[0];
        let data = block.data();
        for len in 0..data.len() {
            assert!(FramesBlock::decode(0, data[..len].to_vec()).is_none());
        }
        assert!(FramesBlock::decode(1, data.to_vec()).is_none());
        let mut longer = data.to_vec();
        longer.push(0);
        assert!(FramesBlock::decode(0, longer).is_none());
        let backwards: Vec<Frame> = frames(5).into_iter().rev().collect();
        let block = &encode_frames(&backwards)[0];
        assert!(FramesBlock::decode(block.first(), block.data().to_vec()).is_none());
    }
}
