//! The frames of a compressed volume while it is written: for its seek table, and for the index.

use std::fs::File;
use std::io;

use stook_index::Frame;
use stook_volume::{MAX_FRAME, ReadAt, SeekEntry, seek_table_len, trailer_len};

/// Bytes of the checksum at the end of a frame.
const CHECKSUM: u64 = 4;

/// Frames so far.
#[derive(Debug, Default)]
pub(crate) struct FrameLog {
    entries: Vec<SeekEntry>,
    /// Those that no checkpoint has recorded: the last ones.
    unstaged: Vec<Frame>,
}

impl FrameLog {
    /// Goes on behind frames that were recorded, which end at `end`. Their checksums are read from the volume.
    ///
    /// # Errors
    /// If the volume cannot be read, or frames have lengths that none can have.
    pub(crate) fn resume(staged: &[Frame], end: Frame, file: &File) -> io::Result<Self> {
        let mut entries = Vec::with_capacity(staged.len());
        for (at, frame) in staged.iter().enumerate() {
            let next = staged.get(at + 1).copied().unwrap_or(end);
            let mut checksum = [0; 4];
            let (Some(stored), Some(len)) = lens(*frame, next) else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            let read = ReadAt::read_at(file, &mut checksum, next.stored - CHECKSUM)?;
            if read < checksum.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            entries.push(SeekEntry {
                stored,
                len,
                checksum: u32::from_le_bytes(checksum),
            });
        }
        let unstaged = Vec::new();
        Ok(Self { entries, unstaged })
    }

    /// Adds a frame that lies at `place`.
    pub(crate) fn push(&mut self, place: Frame, entry: SeekEntry) {
        self.entries.push(entry);
        self.unstaged.push(place);
    }

    /// Takes back the frames from `end` on.
    pub(crate) fn truncate(&mut self, end: Frame) {
        while self
            .unstaged
            .pop_if(|frame| frame.stored >= end.stored)
            .is_some()
        {
            self.entries.pop();
        }
    }

    pub(crate) fn entries(&self) -> &[SeekEntry] {
        &self.entries
    }

    /// Returns the frames that no checkpoint has recorded.
    pub(crate) fn unstaged(&self) -> &[Frame] {
        &self.unstaged
    }

    /// They are recorded now.
    pub(crate) fn have_staged(&mut self) {
        self.unstaged.clear();
    }
}

/// Returns true if frames that were recorded can be gone on with.
pub(crate) fn are_usable(staged: &[Frame], end: Frame) -> bool {
    let begins = staged.first().copied().unwrap_or(end);
    let next = staged.iter().skip(1).chain([&end]);
    let fits = |(frame, next): (&Frame, &Frame)| matches!(lens(*frame, *next), (Some(_), Some(_)));
    begins.offset == 0 && begins.stored == 0 && staged.iter().zip(next).all(fits)
}

/// Returns the lengths of a frame that ends where the next one begins, stored and of its content.
fn lens(frame: Frame, next: Frame) -> (Option<u32>, Option<u32>) {
    let difference = |from: u64, to: u64| u32::try_from(to.checked_sub(from)?).ok();
    let stored = difference(frame.stored, next.stored);
    let len = difference(frame.offset, next.offset);
    (
        stored.filter(|stored| u64::from(*stored) > CHECKSUM),
        len.filter(|len| (1..=MAX_FRAME as u64).contains(&u64::from(*len))),
    )
}

/// Returns what follows the members of a volume whose file has `file_len` bytes and so many frames up to there: the frame of
/// its end marker, and the place behind it, where the seek table begins.
pub(crate) fn last_frames(members_end: Frame, frames: u64, file_len: u64) -> [Frame; 2] {
    let end = Frame {
        offset: members_end.offset + trailer_len(members_end.offset),
        stored: file_len.saturating_sub(seek_table_len(frames + 1)),
    };
    [members_end, end]
}
