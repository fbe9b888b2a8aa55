//! An open `Data.fs`, and a window over it.
//!
//! Its size is taken once: what a living database appends while it is read is as if it were not there. It is read through a
//! buffer and not mapped: that is faster (no page faults), takes less memory, and a writer that cuts the file off makes a
//! short read, not a signal. Long records are skipped: the next window begins behind them.

use std::fs::File;
use std::path::{Path, PathBuf};

use stook_sys::{Context, look_at, metadata, open_file, read_once, read_up_to_at};

use crate::error::ZodbError;
use crate::format::MAGIC;
use crate::index::GREATEST_POSITION;

/// Bytes of the window of a reader that goes through the file: measured, 256 KiB stays in the cache of the processor.
const WINDOW: usize = 256 << 10;

/// Bytes of the window of a reader that jumps.
const SMALL_WINDOW: usize = 16 << 10;

/// Windows begin at whole pages.
const PAGE: u64 = 4096;

/// A `Data.fs` open for reading.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    path: PathBuf,
    size: u64,
}

impl DataFile {
    /// Opens a file and looks whether it is a `Data.fs`.
    ///
    /// # Errors
    /// [`ZodbError::Sys`] with "open" or "read"; [`ZodbError::NotDataFs`] for an empty file or one of another format.
    pub fn open(path: &Path) -> Result<Self, ZodbError> {
        Self::of(open_file(path)?, path)
    }

    /// As [`DataFile::open`], of a file that is open for reading; the path is for errors, and for the files beside it.
    ///
    /// # Errors
    /// As [`DataFile::open`].
    pub fn of(file: File, path: &Path) -> Result<Self, ZodbError> {
        // An index has 6 bytes for a position: what lies behind cannot be found, by ZODB neither.
        let size = metadata(&file)
            .context("look at", path)?
            .size
            .min(GREATEST_POSITION);
        let mut magic = [0; MAGIC.len()];
        let len = read_up_to_at(&file, &mut magic, 0).context("read", path)?;
        if len < MAGIC.len() || magic != MAGIC {
            let path = path.to_owned();
            return Err(ZodbError::NotDataFs { path, size });
        }
        read_once(&file);
        let path = path.to_owned();
        Ok(Self { file, path, size })
    }

    /// Returns the path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its size in bytes, at the time it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns false if another file has its name by now: the database was packed, say.
    ///
    /// # Errors
    /// [`ZodbError::Sys`] with "look at".
    pub fn is_at_its_path(&self) -> Result<bool, ZodbError> {
        let here = metadata(&self.file).context("look at", &self.path)?;
        Ok(look_at(&self.path)?.is_same_file(&here))
    }
}

/// A window over a file, moved to whatever is asked for.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    data: &'a DataFile,
    buffer: Vec<u8>,
    start: u64,
    filled: u64,
    /// Bytes before what is asked for that are read, too.
    back: u64,
}

impl<'a> Reader<'a> {
    /// Returns a reader for going through the file.
    pub(crate) fn new(data: &'a DataFile) -> Self {
        Self::with_window(data, WINDOW)
    }

    /// Returns a reader for single records here and there.
    pub(crate) fn jumping(data: &'a DataFile) -> Self {
        Self::with_window(data, SMALL_WINDOW)
    }

    fn with_window(data: &'a DataFile, window: usize) -> Self {
        Self {
            data,
            buffer: vec![0; window],
            start: 0,
            filled: 0,
            back: 0,
        }
    }

    /// Keeps so many bytes in front of what is asked for, for a reader that goes back a little now and then.
    pub(crate) fn keep_back(mut self, bytes: u64) -> Self {
        self.back = bytes;
        self
    }

    /// Returns the size of the file.
    pub(crate) fn size(&self) -> u64 {
        self.data.size
    }

    /// Returns the error of a file that says something else than a moment ago.
    pub(crate) fn changed(&self) -> ZodbError {
        let path = self.data.path.clone();
        ZodbError::Changed { path }
    }

    /// Most bytes that [`Reader::bytes`] can be asked for.
    pub(crate) fn window(&self) -> u64 {
        self.buffer.len() as u64 - PAGE
    }

    /// Returns `len` bytes at a position; `None` if the file ends before.
    ///
    /// # Errors
    /// [`ZodbError::Sys`] with "read".
    #[inline]
    pub(crate) fn bytes(&mut self, position: u64, len: u64) -> Result<Option<&[u8]>, ZodbError> {
        if !self.holds(position, len) && !self.fill(position, len)? {
            return Ok(None);
        }
        let at = to_index(position - self.start);
        Ok(Some(&self.buffer[at..at + to_index(len)]))
    }

    /// As [`Reader::bytes`], for a number of bytes that is known before.
    #[inline]
    pub(crate) fn array<const N: usize>(
        &mut self,
        position: u64,
    ) -> Result<Option<[u8; N]>, ZodbError> {
        let bytes = self.bytes(position, N as u64)?;
        Ok(bytes.map(|bytes| bytes.try_into().expect("as many bytes as asked for")))
    }

    /// As [`Reader::array`], for a number.
    #[inline]
    pub(crate) fn number(&mut self, position: u64) -> Result<Option<u64>, ZodbError> {
        Ok(self.array(position)?.map(u64::from_be_bytes))
    }

    #[inline]
    fn holds(&self, position: u64, len: u64) -> bool {
        let at = position.wrapping_sub(self.start);
        at <= self.filled && len <= self.filled - at
    }

    /// Moves the window; returns false if the file does not hold what is asked for.
    #[cold]
    fn fill(&mut self, position: u64, len: u64) -> Result<bool, ZodbError> {
        let is_within = position
            .checked_add(len)
            .is_some_and(|end| end <= self.data.size);
        if !is_within || len > self.window() {
            return Ok(false);
        }
        let _scope = stook_timers::scope!("read");
        // As far as there is room behind it.
        let back = self.back.min(self.window() - len);
        let first = position.saturating_sub(back);
        self.start = first - first % PAGE;
        let room = self.buffer.len().min(to_index(self.data.size - self.start));
        let read = read_up_to_at(&self.data.file, &mut self.buffer[..room], self.start);
        self.filled = 0;
        self.filled = read.context("read", &self.data.path)? as u64;
        Ok(self.holds(position, len))
    }
}

/// Returns an offset within a window as an index.
#[inline]
fn to_index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(bytes: &[u8]) -> (tempfile::TempDir, Result<DataFile, ZodbError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Data.fs");
        std::fs::write(&path, bytes).unwrap();
        let opened = DataFile::open(&path);
        (folder, opened)
    }

    #[test]
    fn any_range_is_read_in_any_order() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((0..600_000_u32).map(|number| u8::try_from(number % 251).unwrap()));
        let (_folder, data) = file_of(&bytes);
        let data = data.unwrap();
        let mut reader = Reader::new(&data);
        for at in [0, 3, 262_100, 262_140, 500_000, 1, 599_996, 300_000] {
            let found = reader.array::<8>(at).unwrap().unwrap();
            let from = usize::try_from(at).unwrap();
            assert_eq!(found, bytes[from..from + 8]);
        }
        let window = reader.window();
        assert!(reader.bytes(4095, window).unwrap().is_some());
        assert!(reader.bytes(4095, window + PAGE).unwrap().is_none());
    }

    #[test]
    fn nothing_is_behind_the_end() {
        let (_folder, data) = file_of(b"FS30abcd");
        let data = data.unwrap();
        let mut reader = Reader::jumping(&data);
        assert_eq!(reader.array::<8>(0).unwrap(), Some(*b"FS30abcd"));
        for at in [1, 8, 9, 1 << 40, u64::MAX - 3, u64::MAX] {
            assert_eq!(reader.array::<8>(at).unwrap(), None);
        }
        assert_eq!(reader.array::<0>(8).unwrap(), Some([]));
    }

    #[test]
    fn what_is_written_or_cut_off_later_is_not_there() {
        let (folder, data) = file_of(b"FS30abcd");
        let data = data.unwrap();
        let path = folder.path().join("Data.fs");
        std::fs::write(&path, b"FS30abcdefgh").unwrap();
        let mut reader = Reader::new(&data);
        assert_eq!(reader.array::<9>(0).unwrap(), None);
        std::fs::write(&path, b"FS30").unwrap();
        assert_eq!(reader.array::<8>(0).unwrap(), None);
        assert!(data.is_at_its_path().unwrap());
        std::fs::rename(&path, folder.path().join("Data.fs.old")).unwrap();
        std::fs::write(&path, b"FS30").unwrap();
        assert!(!data.is_at_its_path().unwrap());
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b""[..], b"FS3", b"FS21....", b"not at all"] {
            let (_folder, opened) = file_of(bytes);
            assert!(
                matches!(opened, Err(ZodbError::NotDataFs { size, .. }) if size == bytes.len() as u64)
            );
        }
    }
}
