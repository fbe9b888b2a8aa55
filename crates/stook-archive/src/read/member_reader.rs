//! Reads any bytes of one member, from any thread: what a mounted archive, a file handle and `cat` read through.
//!
//! Each way to read comes twice: one that waits for the disk or for another machine, and one that gives up instead. A mount
//! tries the second on the thread that takes requests, and leaves the first to others.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use stook_index::Row;
use stook_md5::Md5;
use stook_sys::SysError;
use stook_volume::{Header, Member, ReadAt, Segment, decode};

use super::member::{check_row, segments_of};
use super::volume::{VolumeBytes, VolumeVersion, fill_at};
use crate::ArchiveError;
use crate::cause::Cause;

/// The content of one member, holes included. It keeps its volume open.
#[derive(Debug)]
pub struct MemberReader {
    volume: Arc<dyn VolumeBytes>,
    header: Header,
    /// The parts that are stored, in order, and where each begins in the volume. What is between them reads as zeros.
    stored: Vec<(Segment, u64)>,
}

/// Returns a reader of the member that a row stands for.
///
/// # Errors
/// `NotAFile` if it has no content, `Damaged` if the volume has another member there, or none; `Unreadable` if the place of
/// the volume fails; `Sys` if the volume cannot be opened.
pub(crate) fn open_member(
    volume: impl FnOnce() -> Result<Arc<dyn VolumeBytes>, SysError>,
    row: &Row,
) -> Result<MemberReader, ArchiveError> {
    if row.md5.is_none() {
        let name = row.name.clone();
        return Err(ArchiveError::NotAFile { name });
    }
    let volume = volume()?;
    MemberReader::open(volume, row).map_err(|cause| ArchiveError::of_member(&row.name, cause))
}

impl MemberReader {
    /// Opens the member of a row; one without content has none to read.
    ///
    /// # Errors
    /// If there is no such member where the row says.
    ///
    /// # Cost
    /// One read of 4 KiB, more for a longer header.
    pub(crate) fn open(volume: Arc<dyn VolumeBytes>, row: &Row) -> Result<Self, Cause> {
        let member = decode(&*volume, row.offset)?.ok_or(Cause::NoMember)?;
        check_row(row, &member)?;
        Ok(Self::new(volume, member))
    }

    /// As [`MemberReader::open`]; `None` if it would have to wait.
    pub(crate) fn open_cached(
        volume: Arc<dyn VolumeBytes>,
        row: &Row,
    ) -> Result<Option<Self>, Cause> {
        let cached = Cached {
            volume: &*volume,
            would_wait: Cell::new(false),
        };
        let decoded = decode(&cached, row.offset);
        if cached.would_wait.get() {
            return Ok(None);
        }
        let member = decoded?.ok_or(Cause::NoMember)?;
        check_row(row, &member)?;
        Ok(Some(Self::new(volume, member)))
    }

    pub(super) fn new(volume: Arc<dyn VolumeBytes>, member: Member) -> Self {
        let mut position = member.data_offset;
        let place = |segment: &Segment| {
            let placed = (*segment, position);
            position += segment.len;
            placed
        };
        Self {
            stored: segments_of(&member).iter().map(place).collect(),
            header: member.header,
            volume,
        }
    }

    /// Returns what the volume says of the member.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the length of the content with its holes.
    pub fn size(&self) -> u64 {
        if self.header.kind.has_content() {
            self.header.size
        } else {
            0
        }
    }

    /// Returns a stamp that shows whether the volume is still the one that was opened: compare it before and after reading
    /// where others may replace volumes. [`VolumeBytes::version`] says when there is none.
    ///
    /// # Errors
    /// If the volume cannot be looked at.
    pub fn version(&self) -> io::Result<Option<VolumeVersion>> {
        self.volume.version()
    }

    /// Returns true if each read takes a round trip to another machine.
    pub fn is_far(&self) -> bool {
        self.volume.is_far()
    }

    /// Returns the next part that is stored, as its begin and its end in the content: the first that ends behind `offset`.
    /// What is before it is a hole.
    pub fn next_stored(&self, offset: u64) -> Option<(u64, u64)> {
        let (segment, _) = self.stored_from(offset).first()?;
        Some((segment.offset, segment.offset + segment.len))
    }

    /// Says that these bytes of the content will be read soon. Never waits.
    pub fn prefetch(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        for (segment, stored) in self.stored_from(offset) {
            let from = segment.offset.max(offset);
            let to = (segment.offset + segment.len).min(end);
            if from >= to {
                break;
            }
            let stored = stored + (from - segment.offset);
            self.volume.prefetch(stored, to - from);
        }
    }

    /// Takes the MD5 of the whole content.
    ///
    /// # Errors
    /// As [`MemberReader::read_at`].
    ///
    /// # Cost
    /// A read of all of it, in slices of 1 MiB.
    pub fn md5(&self) -> io::Result<[u8; 16]> {
        let mut md5 = Md5::new();
        let len = usize::try_from(self.size()).map_or(SLICE_BYTES, |size| size.min(SLICE_BYTES));
        let mut slice = vec![0; len];
        let mut offset = 0;
        while offset < self.size() {
            let count = self.read_at(offset, &mut slice)?;
            md5.update(&slice[..count]);
            offset += count as u64;
        }
        Ok(md5.finish())
    }

    /// Fills the buffer from `offset` on, and returns how many bytes: fewer than it has room for only at the end.
    ///
    /// # Errors
    /// If the volume cannot be read, or ends before the member does.
    ///
    /// # Cost
    /// One read for each stored part in the range; none for holes.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read_with(offset, buffer, |part, stored| {
            fill_at(&*self.volume, part, stored).map(Some)
        })?;
        Ok(read.unwrap_or(0))
    }

    /// As [`MemberReader::read_at`]; `None` if it would have to wait. What is in the buffer then has no meaning.
    ///
    /// # Errors
    /// As [`MemberReader::read_at`].
    pub fn read_cached_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.read_with(offset, buffer, |part, stored| {
            self.volume.read_cached_at(part, stored)
        })
    }

    fn read_with(
        &self,
        offset: u64,
        buffer: &mut [u8],
        mut fill: impl FnMut(&mut [u8], u64) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        let rest = self.size().saturating_sub(offset);
        let len = usize::try_from(rest).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        let end = offset.saturating_add(len as u64);
        let mut position = offset;
        let at = |position: u64| usize::try_from(position - offset).map_err(io::Error::other);
        for (segment, stored) in self.stored_from(offset) {
            let from = segment.offset.max(position);
            let to = (segment.offset + segment.len).min(end);
            if from >= to {
                break;
            }
            buffer[at(position)?..at(from)?].fill(0);
            let part = &mut buffer[at(from)?..at(to)?];
            let wanted = part.len();
            match fill(part, stored + (from - segment.offset))? {
                None => return Ok(None),
                Some(count) if count < wanted => return Err(ends_early()),
                Some(_) => position = to,
            }
        }
        buffer[at(position)?..len].fill(0);
        Ok(Some(len))
    }

    /// Returns the stored parts that end behind `offset`.
    fn stored_from(&self, offset: u64) -> &[(Segment, u64)] {
        let next = self
            .stored
            .partition_point(|(segment, _)| segment.offset + segment.len <= offset);
        &self.stored[next..]
    }
}

/// Bytes that are hashed at a time.
const SLICE_BYTES: usize = 1 << 20;

pub(super) fn ends_early() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the volume ends before it does",
    )
}

/// A volume of which only those bytes can be read that take no waiting.
struct Cached<'v> {
    volume: &'v dyn VolumeBytes,
    would_wait: Cell<bool>,
}

impl ReadAt for Cached<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.volume.read_cached_at(buffer, offset)?;
        count.ok_or_else(|| {
            self.would_wait.set(true);
            io::ErrorKind::WouldBlock.into()
        })
    }
}
