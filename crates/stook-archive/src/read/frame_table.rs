//! Where the frames of a compressed volume lie: from the index, or from the volume itself.

use std::io;
use std::ops::Range;

use stook_index::Frame;
use stook_volume::{
    FrameError, MAX_FRAME, SeekEntry, longest_frame, read_seek_table, scan_frames, seek_table_len,
};

use super::volume::VolumeBytes;

/// The frames of a volume, and a last one without content, which says where they end.
#[derive(Debug)]
pub(super) struct FrameTable(Box<[Frame]>);

/// One frame: its bytes in the uncompressed volume, and in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FramePlace {
    pub(super) number: usize,
    pub(super) content: Range<u64>,
    pub(super) stored: Range<u64>,
}

impl FrameTable {
    /// Returns the table that the index has of a volume; None if no volume can be so.
    fn of_index(frames: Vec<Frame>) -> Option<Self> {
        let begins = frames.first()?;
        let is_whole = begins.offset == 0 && begins.stored == 0 && frames.len() > 1;
        let fits = |pair: &[Frame]| {
            let len = pair[1].offset.checked_sub(pair[0].offset);
            let stored = pair[1].stored.checked_sub(pair[0].stored);
            len.is_some_and(|len| (1..=MAX_FRAME as u64).contains(&len))
                && stored.is_some_and(|len| len > 0 && len <= longest_frame(MAX_FRAME) as u64)
        };
        let is_sound = is_whole && frames.windows(2).all(fits);
        is_sound.then(|| Self(frames.into_boxed_slice()))
    }

    fn of_entries(entries: &[SeekEntry]) -> Self {
        let mut frames = vec![Frame {
            offset: 0,
            stored: 0,
        }];
        let mut end = frames[0];
        for entry in entries {
            end.offset += u64::from(entry.len);
            end.stored += u64::from(entry.stored);
            frames.push(end);
        }
        Self(frames.into_boxed_slice())
    }

    /// Returns the table of a volume: that of the index if it is as long as the volume, else that at the end of the volume.
    /// If both are gone, the index has the frames in front of what is cut off; else they are looked for.
    pub(super) fn read(
        file: &dyn VolumeBytes,
        from_index: Option<Vec<Frame>>,
    ) -> Result<Self, FrameError> {
        let source_len = file
            .len()
            .map_err(|source| FrameError::Io { offset: 0, source })?;
        let from_index = match from_index.and_then(Self::of_index) {
            Some(table) if table.file_len() == source_len => return Ok(table),
            other => other,
        };
        let missing = match read_seek_table(file, source_len) {
            Ok(entries) => return Ok(Self::of_entries(&entries)),
            Err(error @ FrameError::Io { .. }) => return Err(error),
            Err(error) => error,
        };
        if let Some(table) = from_index {
            return Ok(table);
        }
        let mut entries = Vec::new();
        scan_frames(file, |_, entry| entries.push(entry))?;
        if entries.is_empty() {
            return Err(missing);
        }
        Ok(Self::of_entries(&entries))
    }

    /// Returns the frames, and the end of the last one.
    pub(super) fn frames(&self) -> &[Frame] {
        &self.0
    }

    fn end(&self) -> Frame {
        self.0[self.0.len() - 1]
    }

    /// Returns the length of the uncompressed volume.
    pub(super) fn len(&self) -> u64 {
        self.end().offset
    }

    /// Returns the length that the file must have.
    fn file_len(&self) -> u64 {
        let frames = self.0.len() as u64 - 1;
        self.end().stored.saturating_add(seek_table_len(frames))
    }

    /// Returns the frame that has a byte of the uncompressed volume; None past its end.
    pub(super) fn find(&self, offset: u64) -> Option<FramePlace> {
        let behind = self.0.partition_point(|frame| frame.offset <= offset);
        self.get(behind.checked_sub(1)?)
    }

    /// Returns a frame by its number; None past the last one.
    pub(super) fn get(&self, number: usize) -> Option<FramePlace> {
        let (frame, next) = (self.0.get(number)?, self.0.get(number + 1)?);
        Some(FramePlace {
            number,
            content: frame.offset..next.offset,
            stored: frame.stored..next.stored,
        })
    }

    /// Returns what is wrong with the table at the end of the volume; None if it says what this one does, and has the
    /// checksums of the frames.
    pub(super) fn seek_table_fault(
        &self,
        file: &dyn VolumeBytes,
    ) -> io::Result<Option<FrameError>> {
        let entries = match read_seek_table(file, file.len()?) {
            Ok(entries) => entries,
            Err(FrameError::Io { source, .. }) => return Err(source),
            Err(error) => return Ok(Some(error)),
        };
        let fault = |problem| Ok(Some(FrameError::NoSeekTable { problem }));
        if Self::of_entries(&entries).0 != self.0 {
            return fault("it does not say of the frames what the index does");
        }
        for (entry, end) in entries.iter().zip(&self.0[1..]) {
            let mut checksum = [0; 4];
            super::volume::fill_at(file, &mut checksum, end.stored.saturating_sub(4))?;
            if u32::from_le_bytes(checksum) != entry.checksum {
                return fault("it does not have the checksum of each frame");
            }
        }
        Ok(None)
    }
}
