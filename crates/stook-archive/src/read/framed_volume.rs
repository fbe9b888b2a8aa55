//! A compressed volume as the bytes of the uncompressed one, so that every reader just sees those.
//!
//! ```text
//!   append_at   | frame 3 | frame 4 | frame 5 |      whole frames: decoded into the reader's buffer
//!                   ^^^^^^^^^^^^^^^^^^^^^^            parts of one: from the frames that are kept decoded
//! ```
//! A frame is decoded by the thread that asks for it; where readers come one request after another, as in a mount, those that
//! follow are decoded ahead by others (decoders.rs). One that cannot be decoded is an error that names its place; the others can
//! be read.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use stook_index::{Frame, VolumeId};
use stook_sys::SysError;
use stook_timers::scope;
use stook_volume::{FrameError, MAX_FRAME, ReadAt};

use super::frame_cache::{Decoding, Found, FrameCache, Key};
use super::frame_table::{FramePlace, FrameTable};
use super::volume::{VolumeBytes, VolumeStore, VolumeVersion};
use crate::cause::Cause;

/// A compressed volume: reads as the uncompressed one.
#[derive(Debug)]
pub struct FramedVolume {
    frames: Arc<Frames>,
}

/// The frames of a volume, shared with those who decode ahead.
#[derive(Debug)]
struct Frames {
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
        let cache = Arc::clone(cache);
        Ok(Self {
            frames: Arc::new(Frames {
                id,
                file,
                table,
                cache,
            }),
        })
    }

    /// Returns where its frames lie, and the end of the last one.
    pub(crate) fn frames(&self) -> &[Frame] {
        self.frames.table.frames()
    }

    /// Returns the file as it is stored.
    pub fn file(&self) -> &Arc<dyn VolumeBytes> {
        &self.frames.file
    }

    /// Returns where the frames lie in the file that have a range; an empty range if there are none.
    pub(crate) fn stored_range(&self, range: &Range<u64>) -> Range<u64> {
        self.frames.stored_range(range)
    }

    /// Returns what is wrong with the seek table of the volume.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn seek_table_fault(&self) -> io::Result<Option<FrameError>> {
        self.frames.table.seek_table_fault(&*self.frames.file)
    }
}

impl Frames {
    fn key(&self, number: usize) -> Key {
        (self.id.0, number)
    }

    fn stored_range(&self, range: &Range<u64>) -> Range<u64> {
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
    fn content(self: &Arc<Self>, frame: &FramePlace) -> io::Result<Arc<Vec<u8>>> {
        if let Some(content) = self.content_here(frame) {
            return Ok(content);
        }
        // Who has read the frame before it probably reads on.
        if frame.number > 0 && self.cache.is_known(self.key(frame.number - 1)) {
            self.decode_ahead(frame.number + 1);
        }
        let key = self.key(frame.number);
        let (content, found) = self.cache.get(key, |content| self.decode(frame, content))?;
        self.go_on_behind(frame, found);
        Ok(content)
    }

    /// As [`Self::content`]; `None` if it would have to be decoded.
    fn content_here(self: &Arc<Self>, frame: &FramePlace) -> Option<Arc<Vec<u8>>> {
        let (content, found) = self.cache.peek(self.key(frame.number))?;
        self.go_on_behind(frame, found);
        Some(content)
    }

    /// Has more decoded once somebody reads what was decoded ahead.
    fn go_on_behind(self: &Arc<Self>, frame: &FramePlace, found: Found) {
        if found == Found::First {
            self.decode_ahead(frame.number + 1);
        }
    }

    /// Has helpers decode frames from a number on, as far as there is room.
    fn decode_ahead(self: &Arc<Self>, first: usize) {
        let Some(decoders) = &self.cache.decoders else {
            return;
        };
        let room = self.cache.room_ahead() / MAX_FRAME;
        let frames = (first..first + decoders.frames_ahead().min(room))
            .filter(|number| !self.cache.is_known(self.key(*number)))
            .map_while(|number| self.table.get(number));
        for frame in frames {
            let frames = Arc::clone(self);
            decoders.submit(move || {
                let decode = |content: &mut Vec<u8>| frames.decode(&frame, content);
                // The reader that needs it tries again, and gets the error.
                let _ = frames.cache.get_ahead(frames.key(frame.number), decode);
            });
        }
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
        let mut decompress = || {
            let _scope = scope!("decompress");
            let start = content.len();
            content.resize(start + len, 0);
            decoder.decode(stored, &mut content[start..])
        };
        match &self.cache.decoders {
            Some(decoders) => decoders.in_turn(decompress),
            None => decompress(),
        }
    }

    /// Appends what one frame has of a range: decoded in place if that is all of it, and nobody has it yet.
    fn append_frame(
        self: &Arc<Self>,
        frame: &FramePlace,
        range: &Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        let kept = self.content_here(frame);
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

/// Copies what a frame has behind the bytes that are passed over, as far as there is room; returns how many bytes.
fn copy_from(content: &[u8], passed: &Range<u64>, buffer: &mut [u8]) -> usize {
    let rest = &content[len_of(passed)..];
    let len = rest.len().min(buffer.len());
    buffer[..len].copy_from_slice(&rest[..len]);
    len
}

impl ReadAt for FramedVolume {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(frame) = self
            .frames
            .table
            .find(offset)
            .filter(|_| !buffer.is_empty())
        else {
            return Ok(0);
        };
        let content = self.frames.content(&frame)?;
        Ok(copy_from(&content, &(frame.content.start..offset), buffer))
    }
}

impl VolumeBytes for FramedVolume {
    fn len(&self) -> io::Result<u64> {
        Ok(self.frames.table.len())
    }

    fn append_at(&self, buffer: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<usize> {
        let start = buffer.len();
        let end = offset
            .saturating_add(len as u64)
            .min(self.frames.table.len());
        let mut at = offset;
        while at < end {
            let Some(frame) = self.frames.table.find(at) else {
                break;
            };
            let range = at..end.min(frame.content.end);
            if let Err(error) = self.frames.append_frame(&frame, &range, buffer) {
                buffer.truncate(start);
                return Err(error);
            }
            at = range.end;
        }
        Ok(buffer.len() - start)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.saturating_add(done as u64);
            let Some(frame) = self.frames.table.find(at) else {
                break;
            };
            let Some(content) = self.frames.content_here(&frame) else {
                return Ok(None);
            };
            done += copy_from(&content, &(frame.content.start..at), &mut buffer[done..]);
        }
        Ok(Some(done))
    }

    fn prefetch(&self, offset: u64, len: u64) {
        let stored = self
            .frames
            .stored_range(&(offset..offset.saturating_add(len)));
        if !stored.is_empty() {
            let len = stored.end - stored.start;
            self.frames.file.prefetch(stored.start, len);
        }
    }

    fn is_far(&self) -> bool {
        self.frames.file.is_far()
    }

    fn version(&self) -> io::Result<Option<VolumeVersion>> {
        self.frames.file.version()
    }

    fn frame_at(&self, offset: u64) -> Option<Range<u64>> {
        self.frames.table.find(offset).map(|frame| frame.content)
    }

    fn as_framed(&self) -> Option<&FramedVolume> {
        Some(self)
    }
}
