//! The content of a file on its way: shared, copied by the system, or read and written.
//!
//! ```text
//!   share (FICLONE) ──refused──> large: copy_file_range ──refused──> read, write
//!                                small: one read, one write
//! ```
//! What is refused between two file systems is not tried again. A small file is read before its copy is made, one
//! byte more than it has: so it is whole, and has not grown. `copy_file_range` is slower for it, and some
//! file systems return wrong lengths to it.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use stook_pool::advance;
use stook_sys::{
    Metadata, Refusal, Segment, append_some_at, copy_range, next_data_segment, refusal, set_len,
    share_content, write_all_at,
};

use super::fault::{At, Fault, Side};
use crate::Reason;
use crate::metadata::RefusedAttributes;

/// Files up to this length are read and written at once.
pub(super) const SMALL: u64 = 128 << 10;

/// What is read and written at a time of larger ones.
const BUFFER: usize = 256 << 10;

/// What the system is asked to copy at a time. Between two pieces the user may end it.
const PIECE: u64 = 16 << 20;

/// Refusals that may have been about certain files only, after which a way is not tried any more.
const CHANCES: u8 = 16;

/// What works between a file system and another one, or itself.
#[derive(Debug)]
pub(super) struct Methods {
    share: Way,
    range: Way,
    /// Attributes that the copy's file system refused.
    pub(super) refused: RefusedAttributes,
    /// The file systems that do not know attributes at all.
    pub(super) source_has_none: AtomicBool,
    pub(super) copy_has_none: AtomicBool,
}

impl Default for Methods {
    fn default() -> Self {
        Self {
            share: Way(AtomicU8::new(CHANCES)),
            range: Way(AtomicU8::new(CHANCES)),
            refused: RefusedAttributes::default(),
            source_has_none: AtomicBool::new(false),
            copy_has_none: AtomicBool::new(false),
        }
    }
}

/// One way, with the number of refusals after which it is closed.
#[derive(Debug)]
struct Way(AtomicU8);

impl Way {
    fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Takes what came of it; false if another way must be found.
    fn take<T>(&self, result: io::Result<T>) -> io::Result<Option<T>> {
        let error = match result {
            Ok(done) => {
                self.0.store(CHANCES, Ordering::Relaxed);
                return Ok(Some(done));
            }
            Err(error) => error,
        };
        let left = match refusal(&error) {
            None => return Err(error),
            Some(Refusal::Always) => 0,
            Some(Refusal::ThisTime) => self.0.load(Ordering::Relaxed).saturating_sub(1),
        };
        self.0.store(left, Ordering::Relaxed);
        Ok(None)
    }
}

impl Methods {
    /// Returns true if a file of this size is best read before its copy is made.
    pub(super) fn are_read_first(&self, size: u64) -> bool {
        size == 0 || size <= SMALL && !self.share.is_open()
    }
}

/// A file whose content is to be copied.
pub(super) struct Content<'c> {
    pub(super) file: &'c File,
    pub(super) metadata: &'c Metadata,
    pub(super) methods: &'c Methods,
    /// Called with bytes copied; true to stop.
    pub(super) went_on: &'c dyn Fn(u64) -> bool,
}

const READ: &str = "read";
const WRITE: &str = "write";

impl Content<'_> {
    /// Copies all of it into a new file.
    pub(super) fn copy(&self, to: &File) -> Result<u64, Fault> {
        let size = self.metadata.size;
        if size > 0 && self.methods.share.is_open() {
            let shared = self.methods.share.take(share_content(self.file, to));
            if shared.at(Side::Copy, "copy")?.is_some() {
                self.require_unchanged()?;
                (self.went_on)(size);
                return Ok(size);
            }
        }
        let copied = if self.has_holes() {
            set_len(to, size).at(Side::Copy, WRITE)?;
            self.copy_data(to)?
        } else {
            self.copy_segment(
                to,
                Segment {
                    offset: 0,
                    len: size,
                },
            )?
        };
        self.require_unchanged()?;
        if copied == size && size > 0 {
            return Ok(size);
        }
        // A file system that makes its files up as they are read.
        let copied = self.copy_to_the_end(to, copied)?;
        if copied < size {
            set_len(to, copied).at(Side::Copy, WRITE)?;
        }
        Ok(copied)
    }

    /// Fails if the file is not what it was when the copy began.
    pub(super) fn require_unchanged(&self) -> Result<(), Fault> {
        let now = stook_sys::metadata(self.file).at(Side::Source, "look at")?;
        if now.size == self.metadata.size && now.mtime == self.metadata.mtime {
            return Ok(());
        }
        Err(Fault::because("copy", Reason::Changed))
    }

    /// Copies what is not a hole; returns where the data end, or the size if all were there.
    fn copy_data(&self, to: &File) -> Result<u64, Fault> {
        let size = self.metadata.size;
        let mut position = 0;
        while let Some(segment) =
            next_data_segment(self.file, position, size).at(Side::Source, READ)?
        {
            let end = segment.offset + segment.len;
            self.tell(segment.offset - position)?;
            position = self.copy_segment(to, segment)?;
            if position < end {
                return Ok(position);
            }
        }
        self.tell(size - position)?;
        Ok(size)
    }

    /// Copies one range; returns where it ended.
    fn copy_segment(&self, to: &File, segment: Segment) -> Result<u64, Fault> {
        let Segment { mut offset, len } = segment;
        let end = offset + len;
        while offset < end && len > SMALL && self.methods.range.is_open() {
            let piece = usize::try_from(PIECE.min(end - offset)).unwrap_or(usize::MAX);
            let copied = copy_range(self.file, to, offset, piece);
            match self.methods.range.take(copied).at(Side::Copy, "copy")? {
                Some(0) | None => break,
                Some(count) => offset += self.tell(count as u64)?,
            }
        }
        self.read_and_write(to, offset, end)
    }

    fn copy_to_the_end(&self, to: &File, offset: u64) -> Result<u64, Fault> {
        self.read_and_write(to, offset, u64::MAX)
    }

    fn read_and_write(&self, to: &File, mut offset: u64, end: u64) -> Result<u64, Fault> {
        with_buffer(|buffer| {
            while offset < end {
                buffer.clear();
                let most = usize::try_from(end - offset).unwrap_or(BUFFER).min(BUFFER);
                let count = append_some_at(self.file, buffer, most, most, offset);
                if count.at(Side::Source, READ)? == 0 {
                    break;
                }
                write_all_at(to, buffer, offset).at(Side::Copy, WRITE)?;
                offset += self.tell(buffer.len() as u64)?;
            }
            Ok(offset)
        })
    }

    fn tell(&self, count: u64) -> Result<u64, Fault> {
        advance(1);
        if (self.went_on)(count) {
            return Err(Fault::Stopped);
        }
        Ok(count)
    }

    /// Reads a small file at once; false if that is not the way to copy it.
    pub(super) fn is_read_whole(&self, buffer: &mut Vec<u8>) -> Result<bool, Fault> {
        buffer.clear();
        let size = usize::try_from(self.metadata.size).unwrap_or(usize::MAX);
        let count = append_some_at(self.file, buffer, size, size + 1, 0).at(Side::Source, READ)?;
        if count != size {
            // By a change, or because it is made up as it is read.
            self.require_unchanged()?;
            return Ok(false);
        }
        Ok(!self.has_holes() || !has_empty_page(buffer))
    }

    /// Returns true if it has fewer blocks than bytes: it has holes, or is compressed.
    fn has_holes(&self) -> bool {
        self.metadata.blocks.saturating_mul(512) < self.metadata.size
    }
}

/// The least hole worth keeping.
const PAGE: usize = 4096;

/// Returns true if there is nothing in one of the pages. Where none is empty, the kernel is not asked for holes.
fn has_empty_page(bytes: &[u8]) -> bool {
    let mut pages = bytes.chunks_exact(PAGE);
    pages.any(|page| page.iter().all(|&byte| byte == 0))
}

thread_local! {
    static KEPT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with the worker's own memory for content.
pub(super) fn with_buffer<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = KEPT.take();
    let result = work(&mut buffer);
    KEPT.set(buffer);
    result
}
