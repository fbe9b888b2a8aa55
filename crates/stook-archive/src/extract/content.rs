//! From the bytes of a volume to a member, and from there to a file.

use std::fs::File;
use std::io;

use stook_index::{Mtime, Row};
use stook_sys::Timestamp;
use stook_timers::scope;
use stook_volume::Member;

use crate::cause::Cause;
use crate::observer::{Failure, Observer};
use crate::read::{ContentMd5, Interrupted, LoadedRange, check_row};

/// Decodes the member of a row and makes sure that it is the one.
pub(crate) fn read_member(row: &Row, loaded: &LoadedRange<'_>) -> Result<Member, Failure> {
    let wrong = |cause: Cause| {
        let cause = Cause::At {
            cause: Box::new(cause),
            offset: row.offset,
            volume: row.volume,
        };
        Failure::new("read", &row.name, cause)
    };
    let mut member = loaded.member(row.offset).map_err(wrong)?;
    check_row(row, &member).map_err(wrong)?;
    // Headers of old writers have whole seconds only; the index has the time to the microsecond.
    if Mtime::from(member.header.mtime) != row.mtime {
        member.header.mtime = timestamp(row.mtime);
    }
    Ok(member)
}

fn timestamp(mtime: Mtime) -> Timestamp {
    let microseconds = mtime.0.rem_euclid(1_000_000);
    Timestamp {
        seconds: mtime.0.div_euclid(1_000_000),
        nanoseconds: u32::try_from(microseconds * 1000).expect("less than a second"),
    }
}

/// Writes the content of a member that is in memory, and whose MD5 is right.
pub(super) fn write_small(
    file: &File,
    member: &Member,
    loaded: &LoadedRange<'_>,
) -> Result<(), ContentError> {
    let _scope = scope!("write");
    loaded.content(member, |offset, bytes| {
        stook_sys::write_all_at(file, bytes, offset).map_err(ContentError::Write)
    })
}

/// Writes the content of a member, holes left out; an error of its MD5 is an error of the file.
pub(super) fn write_content(
    file: &File,
    row: &Row,
    member: &Member,
    loaded: &LoadedRange<'_>,
    observer: &dyn Observer,
) -> Result<(), ContentError> {
    let mut md5 = ContentMd5::new(&row.name, member.header.size, observer);
    loaded.content(member, |offset, bytes| {
        if observer.is_interrupted() {
            return Err(ContentError::Interrupted);
        }
        md5.update(offset, bytes)?;
        let _scope = scope!("write");
        stook_sys::write_all_at(file, bytes, offset).map_err(ContentError::Write)
    })?;
    if member.header.sparse.is_some() {
        file.set_len(member.header.size)
            .map_err(ContentError::Write)?;
    }
    match row.md5 {
        Some(expected) if md5.finish()? != expected => Err(ContentError::WrongMd5),
        _ => Ok(()),
    }
}

/// Why the content of a member did not get into its file.
#[derive(Debug)]
pub(super) enum ContentError {
    Read(io::Error),
    Write(io::Error),
    Interrupted,
    WrongMd5,
}

impl From<Interrupted> for ContentError {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<io::Error> for ContentError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}
