//! Where the bytes of volumes come from: two traits, and the local folder as their first implementation.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stook_index::VolumeId;
use stook_sys::{Stamp, SysError, append_at, metadata, open_file, read_ahead, read_cached_at};
use stook_volume::ReadAt;

use super::framed_volume::FramedVolume;

/// The bytes of one volume, wherever it lies; many threads read them at once.
#[expect(
    clippy::len_without_is_empty,
    reason = "a volume has a member at least, or is damaged"
)]
pub trait VolumeBytes: ReadAt + fmt::Debug + Send + Sync {
    /// Returns its length in bytes.
    ///
    /// # Errors
    /// If the volume cannot be looked at.
    fn len(&self) -> io::Result<u64>;

    /// Appends `len` bytes from `offset` to the buffer, or what there is up to the end of the volume; returns their
    /// number.
    ///
    /// # Errors
    /// As [`ReadAt::read_at`]; an interrupted call is repeated.
    fn append_at(&self, buffer: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<usize> {
        let start = buffer.len();
        buffer.resize(start + len, 0);
        let filled = fill_at(self, &mut buffer[start..], offset);
        buffer.truncate(start + *filled.as_ref().unwrap_or(&0));
        filled
    }

    /// Fills the buffer from `offset` on if that takes no waiting, for a disk or for another machine; returns how many bytes,
    /// fewer only at the end of the volume. `None` if it would have to wait, or cannot tell.
    ///
    /// # Errors
    /// As [`ReadAt::read_at`].
    fn read_cached_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<Option<usize>> {
        Ok(None)
    }

    /// Says that bytes will be read soon, so that fetching them begins now. Never waits; what fails shows when they are
    /// read.
    fn prefetch(&self, _offset: u64, _len: u64) {}

    /// Returns true if each read takes a round trip to another machine: what comes next is worth fetching meanwhile.
    fn is_far(&self) -> bool {
        false
    }

    /// Returns the frame in which a byte of a compressed volume lies, as offsets of the uncompressed one: reading it whole
    /// costs as much as reading a part of it. None if the volume is not compressed, and past its end.
    fn frame_at(&self, _offset: u64) -> Option<Range<u64>> {
        None
    }

    /// Returns the volume as a compressed one; None if it is none.
    fn as_framed(&self) -> Option<&FramedVolume> {
        None
    }

    /// Returns a stamp of the state of the volume; any change from now on gives it another. None if there
    /// can be none.
    ///
    /// # Errors
    /// If the volume cannot be looked at.
    fn version(&self) -> io::Result<Option<VolumeVersion>>;
}

/// State of a volume: as long as it has the same version, it has the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeVersion(String);

impl VolumeVersion {
    /// Returns the version that this text of the store stands for.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A place that holds the volumes of an archive.
pub trait VolumeStore: fmt::Debug + Send + Sync {
    /// Opens the volume of this name.
    ///
    /// # Errors
    /// If it is not there, or cannot be opened: with the place as the path.
    fn open(&self, name: &str) -> Result<Arc<dyn VolumeBytes>, SysError>;

    /// Says which volumes will be read, in this order.
    fn expect(&self, _volumes: &[VolumeId]) {}

    /// Returns true if that helps: if several volumes can be asked for at once.
    fn wants_order(&self) -> bool {
        false
    }

    /// Returns how many volumes may be kept open at most.
    fn most_open(&self) -> usize {
        usize::MAX
    }
}

/// A folder on a file system.
#[derive(Debug, Clone)]
pub struct LocalFolder {
    path: PathBuf,
}

impl LocalFolder {
    /// Returns the folder at a path; it is looked at when a volume is opened.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path }
    }
}

impl VolumeStore for LocalFolder {
    fn open(&self, name: &str) -> Result<Arc<dyn VolumeBytes>, SysError> {
        let file = open_file(&self.path.join(name))?;
        Ok(Arc::new(LocalVolume { file }))
    }
}

/// A folder, and a store for the volumes that are not in it.
#[derive(Debug)]
pub(crate) struct LocalFirst {
    local: LocalFolder,
    store: Arc<dyn VolumeStore>,
}

impl LocalFirst {
    pub(crate) fn new(folder: &Path, store: Arc<dyn VolumeStore>) -> Self {
        let local = LocalFolder::new(folder);
        Self { local, store }
    }
}

impl VolumeStore for LocalFirst {
    fn open(&self, name: &str) -> Result<Arc<dyn VolumeBytes>, SysError> {
        match self.local.open(name) {
            Err(error) if error.is_not_found() => self.store.open(name),
            opened => opened,
        }
    }

    fn expect(&self, volumes: &[VolumeId]) {
        self.store.expect(volumes);
    }

    fn wants_order(&self) -> bool {
        self.store.wants_order()
    }

    fn most_open(&self) -> usize {
        self.store.most_open()
    }
}

/// An open file of the local system.
#[derive(Debug)]
struct LocalVolume {
    file: File,
}

impl ReadAt for LocalVolume {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        ReadAt::read_at(&self.file, buffer, offset)
    }
}

impl VolumeBytes for LocalVolume {
    fn len(&self) -> io::Result<u64> {
        Ok(metadata(&self.file)?.size)
    }

    /// The buffer is not filled with zeros first.
    fn append_at(&self, buffer: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<usize> {
        append_at(&self.file, buffer, len, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        read_cached_at(&self.file, buffer, offset)
    }

    fn prefetch(&self, offset: u64, len: u64) {
        read_ahead(&self.file, offset, len);
    }

    fn version(&self) -> io::Result<Option<VolumeVersion>> {
        let stamp = Stamp::of(&self.file)?;
        Ok(stamp.settle().then(|| VolumeVersion::new(stamp.text())))
    }
}

/// Reads until the buffer is full or the volume ends; returns the number of bytes.
///
/// # Errors
/// As [`ReadAt::read_at`]; an interrupted call is repeated.
pub(super) fn fill_at(
    volume: &(impl ReadAt + ?Sized),
    buffer: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        let wanted = rest.len();
        match volume.read_at(rest, offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(count) if count > wanted => {
                return Err(io::Error::other("more bytes came than were asked for"));
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
