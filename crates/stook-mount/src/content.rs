//! What `read` gives: any bytes of any file.
//!
//! A small file is read as a whole, with its header, and forgotten: the kernel keeps it. A larger one gets a reader that stays
//! for a while.

use std::ops::Range;
use std::sync::Arc;

use stook_archive::{ArchiveError, Catalogue, Cause, EntryId, MemberReader, Patience};
use stook_md5::Md5;
use stook_timers::scope;

use crate::readers::Readers;
use crate::verify::{MOST_AT_ONCE, Verdict, Verified};

/// Read as a whole: what the kernel asks for at once, if it does not know a file yet.
const SMALL_BYTES: u64 = 128 << 10;

#[derive(Debug)]
pub(crate) struct Content {
    catalogue: Arc<Catalogue>,
    readers: Readers,
    /// `None` if nothing is verified.
    verified: Option<Verified>,
}

/// Bytes that were asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Content {
    pub(crate) fn new(catalogue: Arc<Catalogue>, verifies: bool) -> Self {
        Self {
            readers: Readers::default(),
            verified: verifies.then(|| Verified::new(catalogue.len())),
            catalogue,
        }
    }

    /// Returns true if a file is read as a whole.
    pub(crate) fn is_small(&self, entry: EntryId) -> bool {
        self.catalogue.size(entry) <= SMALL_BYTES
    }

    /// Reads into the buffer and returns where the bytes are in it, fewer than wanted only at the end of the file. `None`
    /// without patience, if it would have to wait.
    ///
    /// # Errors
    /// As [`Catalogue::reader`]; `Damaged` also if the content is not what was archived.
    pub(crate) fn read(
        &self,
        entry: EntryId,
        wanted: Wanted,
        (patience, buffer): (Patience, &mut Vec<u8>),
    ) -> Result<Option<Range<usize>>, ArchiveError> {
        let size = self.catalogue.size(entry);
        let len = wanted.len.min(size.saturating_sub(wanted.offset));
        if len == 0 {
            return Ok(Some(0..0));
        }
        let wanted = Wanted { len, ..wanted };
        let is_right = |verified: &Verified| verified.is_right(entry);
        if patience == Patience::None
            && let Some(verified) = self
                .verified
                .as_ref()
                .filter(|verified| !is_right(verified))
        {
            if wanted.offset == 0 && size > MOST_AT_ONCE {
                verified.begin(entry);
            }
            // Taking an MD5 takes its time, too.
            return Ok(None);
        }
        let is_whole = wanted.offset == 0 && len == size;
        if is_whole && size <= SMALL_BYTES {
            let how = (patience, &mut *buffer);
            if let Some(place) = self.catalogue.read_small(entry, SMALL_BYTES, how)? {
                self.verify_small(entry, &buffer[place.clone()])?;
                return Ok(Some(place));
            }
        }
        // What is read at once will not be asked for again.
        let reader = match is_whole {
            true => self.open(entry, patience)?,
            false => self.reader(entry, patience)?,
        };
        let Some(reader) = reader else {
            return Ok(None);
        };
        if let Some(verified) = &self.verified
            && size <= MOST_AT_ONCE
        {
            verified.once(entry, || self.verify_whole(entry, &reader))?;
        }
        self.read_part(entry, &reader, wanted, (patience, buffer))
    }

    /// Returns a reader of an entry; `None` without patience, if it would have to wait for one.
    pub(crate) fn reader(
        &self,
        entry: EntryId,
        patience: Patience,
    ) -> Result<Option<Arc<MemberReader>>, ArchiveError> {
        if let Some(reader) = self.readers.get(entry) {
            return Ok(Some(reader));
        }
        let reader = self.open(entry, patience)?;
        if let Some(reader) = &reader {
            self.readers.keep(entry, reader);
        }
        Ok(reader)
    }

    fn open(
        &self,
        entry: EntryId,
        patience: Patience,
    ) -> Result<Option<Arc<MemberReader>>, ArchiveError> {
        let reader = match patience {
            Patience::None => self.catalogue.reader_if_cached(entry)?,
            Patience::Waits => Some(self.catalogue.reader(entry)?),
        };
        Ok(reader.map(Arc::new))
    }

    fn read_part(
        &self,
        entry: EntryId,
        reader: &MemberReader,
        wanted: Wanted,
        (patience, buffer): (Patience, &mut Vec<u8>),
    ) -> Result<Option<Range<usize>>, ArchiveError> {
        let damaged = |error: std::io::Error| self.damaged(entry, error.into());
        let len =
            usize::try_from(wanted.len).map_err(|error| damaged(std::io::Error::other(error)))?;
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let part = &mut buffer[..len];
        let count = match patience {
            Patience::None => reader.read_cached_at(wanted.offset, part),
            Patience::Waits => reader.read_at(wanted.offset, part).map(Some),
        };
        let Some(count) = count.map_err(damaged)? else {
            return Ok(None);
        };
        self.readers.was_read(entry, wanted.offset, count as u64);
        self.verify_part(entry, wanted.offset, &part[..count])?;
        Ok(Some(0..count))
    }

    fn verify_small(&self, entry: EntryId, content: &[u8]) -> Result<(), ArchiveError> {
        let Some(verified) = &self.verified else {
            return Ok(());
        };
        if verified.is_right(entry) {
            return Ok(());
        }
        let _scope = scope!("verify");
        let mut md5 = Md5::new();
        md5.update(content);
        self.compare(entry, md5.finish())?;
        verified.set_right(entry);
        Ok(())
    }

    fn verify_whole(&self, entry: EntryId, reader: &MemberReader) -> Result<(), ArchiveError> {
        let _scope = scope!("verify");
        let found = reader
            .md5()
            .map_err(|error| self.damaged(entry, error.into()))?;
        self.compare(entry, found)
    }

    /// Of a large member.
    fn verify_part(&self, entry: EntryId, offset: u64, bytes: &[u8]) -> Result<(), ArchiveError> {
        let size = self.catalogue.size(entry);
        let Some(verified) = &self.verified else {
            return Ok(());
        };
        let row = self.catalogue.row_of(entry);
        let (false, Some(expected)) = (verified.is_right(entry), row.and_then(|row| row.md5))
        else {
            return Ok(());
        };
        let _scope = scope!("verify");
        match verified.add(entry, (size, expected), (offset, bytes)) {
            Verdict::Wrong => Err(self.damaged(entry, Cause::WrongMd5)),
            Verdict::Right | Verdict::Unknown => Ok(()),
        }
    }

    fn compare(&self, entry: EntryId, found: [u8; 16]) -> Result<(), ArchiveError> {
        let row = self.catalogue.row_of(entry);
        match row.and_then(|row| row.md5) {
            Some(expected) if expected != found => Err(self.damaged(entry, Cause::WrongMd5)),
            _ => Ok(()),
        }
    }

    fn damaged(&self, entry: EntryId, cause: Cause) -> ArchiveError {
        let name = self.catalogue.path(entry);
        ArchiveError::Damaged { name, cause }
    }
}
