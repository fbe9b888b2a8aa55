//! One member as it stands in a volume: whether it is the one that a row promises, and where its data lies.

use std::borrow::Cow;

use stook_index::{Mtime, Row};
use stook_volume::{HeaderCheck, Member, ReadAt, Segment, decode};

use crate::cause::Cause;

/// Returns true if a volume begins in stook's dialect; then all of it is.
pub(crate) fn is_stooks(volume: &(impl ReadAt + ?Sized)) -> bool {
    decode(volume, 0)
        .is_ok_and(|first| first.is_some_and(|first| first.checksum == HeaderCheck::Verified))
}

/// Returns the parts of the content that are stored, in order: all of it, unless the file has holes.
pub(crate) fn segments_of(member: &Member) -> Cow<'_, [Segment]> {
    match &member.header.sparse {
        Some(segments) => Cow::Borrowed(segments),
        None => Cow::Owned(vec![Segment {
            offset: 0,
            len: member.data_len,
        }]),
    }
}

/// Returns the size of a member as the index has it.
fn size_of(member: &Member) -> u64 {
    let header = &member.header;
    if header.kind.has_content() {
        header.size
    } else {
        0
    }
}

/// Requires that a member is the one of its row.
///
/// # Errors
/// In what they differ.
pub(crate) fn check_row(row: &Row, member: &Member) -> Result<(), Cause> {
    let header = &member.header;
    if header.name != row.name {
        return Err(Cause::OtherMember(header.name.clone()));
    }
    let size = size_of(member);
    if size != row.size {
        return Err(Cause::OtherSize {
            header: size,
            index: row.size,
        });
    }
    if header.kind.has_content() != row.md5.is_some() {
        return Err(Cause::OtherKind);
    }
    let (header_time, index_time) = (Mtime::from(header.mtime), row.mtime);
    let difference = i128::from(header_time.0) - i128::from(index_time.0);
    // Archives of others: Python's floats lose a microsecond, and old headers have whole seconds.
    let tolerance = match (member.checksum, header.mtime.nanoseconds) {
        (HeaderCheck::Verified, _) => 0,
        (HeaderCheck::Absent, 0) => 1_000_000,
        (HeaderCheck::Absent, _) => 1,
    };
    if difference.abs() > tolerance {
        return Err(Cause::OtherTime {
            header: header_time,
            index: index_time,
        });
    }
    Ok(())
}
