//! `cat`: the content of one member.

use std::io::Write;

use stook_index::{AsOf, IndexDamage};
use stook_timers::scope;

use crate::ArchiveError;
use crate::archive::{Archive, Found};
use crate::cause::Cause;
use crate::deleted::explain_missing_name;
use crate::mutex::lock;
use crate::observer::{Observer, Silent, note_scan};
use crate::read::{BATCH_BYTES, ContentMd5, MemberReader};

/// Writes the content of the member `name` to `output`. A long search for the name is noted to the observer.
///
/// # Errors
/// `NotInState` if only other states have the name, `NoSuchMember` if none has; `NotAFile` for a link, directory or
/// device; `Damaged` if the index does not say where it is, or if the content, all of which has been written by then,
/// does not have its MD5 or may not be the newest; `Unreadable` if the place of its volume fails; `Output` if the output
/// fails.
pub fn cat(
    archive: &Archive,
    name: &[u8],
    as_of: AsOf,
    output: &mut dyn Write,
    observer: &dyn Observer,
) -> Result<(), ArchiveError> {
    let _scope = scope!("cat");
    let damaged = |cause: Cause| ArchiveError::of_member(name, cause);
    let Found {
        row,
        damage,
        scanned,
    } = archive.find(name, as_of)?;
    note_scan(scanned, observer);
    let damage = damage.map(|damage| damaged(in_place_of_newest(damage)));
    let Some(row) = row else {
        return Err(match damage {
            Some(damage) => damage,
            None => missing(archive, name, as_of)?,
        });
    };
    let reader = archive.reader(&row)?;
    let found = write_content(&reader, name, output)?;
    if Some(found) != row.md5 {
        return Err(damaged(Cause::WrongMd5));
    }
    damage.map_or(Ok(()), Err)
}

/// Writes all content; returns its MD5.
fn write_content(
    reader: &MemberReader,
    name: &[u8],
    output: &mut dyn Write,
) -> Result<[u8; 16], ArchiveError> {
    let damaged = |error: std::io::Error| ArchiveError::of_member(name, error.into());
    let mut md5 = ContentMd5::new(name, reader.size(), &Silent);
    let len = reader.size().min(BATCH_BYTES);
    let mut buffer = vec![0; usize::try_from(len).unwrap_or(0)];
    let mut position = 0;
    while position < reader.size() {
        let count = reader.read_at(position, &mut buffer).map_err(damaged)?;
        let bytes = &buffer[..count];
        let hashed = md5.update(position, bytes);
        hashed.map_err(|error| damaged(error.into()))?;
        output.write_all(bytes).map_err(ArchiveError::Output)?;
        position += count as u64;
    }
    output.flush().map_err(ArchiveError::Output)?;
    md5.finish().map_err(|error| damaged(error.into()))
}

fn missing(archive: &Archive, name: &[u8], as_of: AsOf) -> Result<ArchiveError, ArchiveError> {
    let index = lock(archive.shared_index());
    let missing = explain_missing_name(archive.folder(), &index, name, as_of)?;
    Ok(missing.unwrap_or_else(|| ArchiveError::NoSuchMember {
        name: name.to_vec(),
        archive: archive.folder().name().to_owned(),
    }))
}

/// Says where the newest row may be that cannot be read.
fn in_place_of_newest(damage: IndexDamage) -> Cause {
    if damage.name.is_some() {
        Cause::Index(Box::new(damage))
    } else {
        Cause::MayBeNewer(Box::new(damage))
    }
}
