//! A compressed volume as the bytes of the uncompressed one, so that every reader just sees those.
//!
//! ```text
//!   append_at   | frame 3 | frame 4 | frame 5 |      whole frames: decoded into the reader's buffer
//!                   ^^^^^^^^^^^^^^^^^^^^^^            parts of one: from the frames that are kept decoded
//! ```
//! A frame is decoded by the thread that asks for it. One that cannot be is an error that names its place; the others can be
//! read.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use stook_index::{Frame, VolumeId};
use stook_sys::SysError;
use stook_timers::scope;
use stook_volume::{FrameError, ReadAt};

use super::frame_cache::{Decoding, FrameCache};
use super::frame_table::{FramePlace, FrameTable};
use super::volume::{VolumeBytes, VolumeStore, VolumeVersion};
use crate::cause::Cause;

/// A compressed volume: reads as the uncompressed one.
#[derive(Debug)]
pub struct FramedVolume {
    id: VolumeId,
    file: Arc<dyn VolumeBytes>,
    table: FrameTable,
    cache: Arc<FrameCache>,
}

/// Opens a volume of a store, compressed or not; of a compressed one the frames may be known from the index.
///
/// # Errors
/// As [`VolumeStore::open`]; or if it has no frames.
pub(crate) fn open_volume(
    store: &dyn VolumeStore,
    id: VolumeId,
    frames: Option<Vec<Frame>>,
    cache: &Arc<FrameCache>,
) -> Result<Arc<dyn VolumeBytes>, SysError> {
    let file = store.open(&id.to_string())?;
    if !id.is_compressed() {
        return Ok(file);
    }
    let volume = FramedVolume::open(file, id, frames, cache)?;
    Ok(Arc::new(volume))
}

impl FramedVolume {
    /// Returns the volume in a file; its frames are looked up there, unless the index knows them.
    ///
    /// # Errors
    /// If it has none, or cannot be read.
    pub(crate) fn open(
        file: Arc<dyn VolumeBytes>,
        id: VolumeId,
        frames: Option<Vec<Frame>>,
        cache: &Arc<FrameCache>,
    ) -> Result<Self, SysError> {
        let table = FrameTable::read(&*file, frames).map_err(|error| SysError {
            operation: "open",
            path: id.to_string().into(),
            source: Cause::from(error).into(),
        })?;
        Ok(Self {
            id,
            file,
            table,
            cache: Arc::clone(cache),
        })
    }

    /// Returns where its frames lie, and the end of the last one.
    pub(crate) fn frames(&self) -> &[Frame] {
        self.table.frames()
    }

    /// Returns the file as it is stored.
    pub fn file(&self) -> &Arc<dyn VolumeBytes> {
        &self.file
    }

    /// Returns where the frames lie in the file that have a range; an empty range if there are none.
    pub(crate) fn stored_range(&self, range: &Range<u64>) -> Range<u64> {
        let end = range.end.min(self.table.len());
        let last = end.checked_sub(1).and_then(|last| self.table.find(last));
        match (self.table.find(range.start), last) {
            (Some(first), Some(last)) if first.number <= last.number => {
                first.stored.start..last.stored.end
            }
            _ => 0..0,
        }
    }

    /// Returns the content of a frame, which stays for the next reader of it.
    fn content(&self, frame: &FramePlace) -> io::Result<Arc<Vec<u8>>> {
        let key = (self.id.0, frame.number);
        self.cache.get(key, |content| self.decode(frame, content))
    }

    /// Appends the content of a frame.
    fn decode(&self, frame: &FramePlace, content: &mut Vec<u8>) -> io::Result<()> {
        let damaged = |source| Cause::BadFrame {
            volume: self.id,
            stored: frame.stored.start,
            end: frame.content.end,
            source: Arc::new(source),
        };
        let decoded = self
            .cache
            .with_decoder(|decoding| self.decode_with(decoding, frame, content));
        match decoded {
            // What the system says of it is more than that a frame is damaged.
            Err(FrameError::Io { source, .. }) => Err(source),
            other => other.map_err(|error| damaged(error).into()),
        }
    }

    fn decode_with(
        &self,
        decoding: &mut Decoding,
        frame: &FramePlace,
        content: &mut Vec<u8>,
    ) -> Result<(), FrameError> {
        let (stored_len, len) = (len_of(&frame.stored), len_of(&frame.content));
        let Decoding { decoder, stored } = decoding;
        stored.clear();
        {
            let _scope = scope!("read frame");
            let offset = frame.stored.start;
            let read = self.file.append_at(stored, stored_len, offset);
            read.map_err(|source| FrameError::Io { offset, source })?;
        }
        let _scope = scope!("decompress");
        let start = content.len();
        content.resize(start + len, 0);
        decoder.decode(stored, &mut content[start..])
    }

    /// Appends what one frame has of a range: decoded in place if that is all of it, and nobody has it yet.
    fn append_frame(
        &self,
        frame: &FramePlace,
        range: &Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        let kept = self.cache.peek((self.id.0, frame.number));
        if kept.is_none() && range == &frame.content {
            return self.decode(frame, buffer);
        }
        let content = kept.map_or_else(|| self.content(frame), Ok)?;
        let start = len_of(&(frame.content.start..range.start));
        buffer.extend_from_slice(&content[start..start + len_of(range)]);
        Ok(())
    }
}

/// A frame is at most 1 MiB long.
fn len_of(range: &Range<u64>) -> usize {
    usize::try_from(range.end - range.start).unwrap_or(usize::MAX)
}

impl ReadAt for FramedVolume {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(frame) = self.table.find(offset).filter(|_| !buffer.is_empty()) else {
            return Ok(0);
        };
        let content = self.content(&frame)?;
        let rest = &content[len_of(&(frame.content.start..offset))..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

impl VolumeBytes for FramedVolume {
    fn len(&self) -> io::Result<u64> {
        Ok(self.table.len())
    }

    fn append_at(&self, buffer: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<usize> {
        let start = buffer.len();
        let end = offset.saturating_add(len as u64).min(self.table.len());
        let mut at = offset;
        while at < end {
            let Some(frame) = self.table.find(at) else {
                break;
            };
            let range = at..end.min(frame.content.end);
            if let Err(error) = self.append_frame(&frame, &range, buffer) {
                buffer.truncate(start);
                return Err(error);
            }
            at = range.end;
        }
        Ok(buffer.len() - start)
    }

    fn prefetch(&self, offset: u64, len: u64) {
        let stored = self.stored_range(&(offset..offset.saturating_add(len)));
        if !stored.is_empty() {
            self.file.prefetch(stored.start, stored.end - stored.start);
        }
    }

    fn is_far(&self) -> bool {
        self.file.is_far()
    }

    fn version(&self) -> io::Result<Option<VolumeVersion>> {
        self.file.version()
    }

    fn frame_at(&self, offset: u64) -> Option<Range<u64>> {
        self.table.find(offset).map(|frame| frame.content)
    }

    fn as_framed(&self) -> Option<&FramedVolume> {
        Some(self)
    }
}

impl FramedVolume {
    /// Returns what is wrong with the seek table of the volume.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn seek_table_fault(&self) -> io::Result<Option<FrameError>> {
        self.table.seek_table_fault(&*self.file)
    }
}
