//! A small member read with its header at once: what most files of a mount cost.
//!
//! A reader of its own would read the header first, then the content. Here both come with one read, and the header is compared
//! with the row all the same.

use std::io;
use std::ops::Range;

use stook_index::Row;
use stook_volume::{Decoded, decode_bytes};

use super::member::check_row;
use super::member_reader::ends_early;
use super::volume::{VolumeBytes, fill_at};
use crate::cause::Cause;

/// Whether a read may wait for a disk or another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// It may.
    Waits,
    /// It gives up instead.
    None,
}

/// Longer headers are read by themselves.
const MOST_HEADER_BYTES: u64 = 64 << 10;

/// Reads header and content of a member into the buffer, and returns where the content is in it; `None` if it would have to
/// wait, or the member is not stored in one piece where `content` says.
///
/// # Errors
/// If there is no such member where the row says.
pub(crate) fn read_small(
    volume: &dyn VolumeBytes,
    row: &Row,
    content: u64,
    (patience, buffer): (Patience, &mut Vec<u8>),
) -> Result<Option<Range<usize>>, Cause> {
    if content.saturating_sub(row.offset) > MOST_HEADER_BYTES {
        return Ok(None);
    }
    let len = content.saturating_add(row.size).saturating_sub(row.offset);
    let len = usize::try_from(len).map_err(io::Error::other)?;
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let bytes = &mut buffer[..len];
    let count = match patience {
        Patience::Waits => Some(fill_at(volume, bytes, row.offset)?),
        Patience::None => volume.read_cached_at(bytes, row.offset)?,
    };
    let Some(count) = count else {
        return Ok(None);
    };
    let Decoded::Member(member) = decode_bytes(&bytes[..count], row.offset)? else {
        return Ok(None);
    };
    check_row(row, &member)?;
    if member.header.sparse.is_some() || member.data_offset != content {
        return Ok(None);
    }
    if count < len {
        return Err(ends_early().into());
    }
    let start = usize::try_from(content - row.offset).map_err(io::Error::other)?;
    Ok(Some(start..len))
}
