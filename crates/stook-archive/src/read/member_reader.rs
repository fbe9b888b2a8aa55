//! Reads any bytes of one member, from any thread: what a mounted archive, a file handle and `cat` read through.

use std::io;
use std::sync::Arc;

use stook_index::Row;
use stook_sys::SysError;
use stook_volume::{Header, Member, Segment, decode};

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
/// `NotAFile` if it has no content, `Damaged` if the volume has another member there, or none; `Sys` if the volume cannot be
/// opened.
pub(crate) fn open_member(
    volume: impl FnOnce() -> Result<Arc<dyn VolumeBytes>, SysError>,
    row: &Row,
) -> Result<MemberReader, ArchiveError> {
    let name = || row.name.clone();
    if row.md5.is_none() {
        return Err(ArchiveError::NotAFile { name: name() });
    }
    let volume = volume()?;
    MemberReader::open(volume, row).map_err(|cause| ArchiveError::Damaged {
        name: name(),
        cause,
    })
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

    /// Fills the buffer from `offset` on, and returns how many bytes: fewer than it has room for only at the end.
    ///
    /// # Errors
    /// If the volume cannot be read, or ends before the member does.
    ///
    /// # Cost
    /// One read for each stored part in the range; none for holes.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.size().saturating_sub(offset);
        let len = usize::try_from(rest).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        let end = offset.saturating_add(len as u64);
        let mut position = offset;
        let next = self
            .stored
            .partition_point(|(segment, _)| segment.offset + segment.len <= offset);
        let at = |position: u64| usize::try_from(position - offset).map_err(io::Error::other);
        for (segment, stored) in &self.stored[next..] {
            let from = segment.offset.max(position);
            let to = (segment.offset + segment.len).min(end);
            if from >= to {
                break;
            }
            buffer[at(position)?..at(from)?].fill(0);
            let part = &mut buffer[at(from)?..at(to)?];
            if fill_at(&*self.volume, part, stored + (from - segment.offset))? < part.len() {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the volume ends before it does",
                ));
            }
            position = to;
        }
        buffer[at(position)?..len].fill(0);
        Ok(len)
    }
}
