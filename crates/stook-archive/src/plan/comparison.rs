//! The members of a part beside the rows of the volume that was built of it.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use stook_index::NewRow;
use stook_sys::{Owners, open_file};

use super::block_file::{READ_BYTES, bad_file};
use super::commit_options::FailedMembers;
use super::directory::PlanDirectory;
use super::member::{GroupPiece, Member, content_len};
use super::part::{PartHeader, PartReader};
use super::parts_writer::{PartNumbers, PartsWriter};
use super::piece::path_of;
use crate::ArchiveError;

/// Members that were not written: they go into other parts, those that failed apart from those that only did not fit.
pub(crate) struct Remainder<'o> {
    overflowed: PartsWriter<'o>,
    retries: PartsWriter<'o>,
    failures: FailedMembers,
    /// Members that are given up.
    failed: u64,
}

impl<'o> Remainder<'o> {
    /// Parts get the next numbers, and are written as `header` says.
    pub(crate) fn new(
        directory: &PlanDirectory,
        header: PartHeader,
        numbers: &PartNumbers,
        owners: &'o Owners,
        failures: FailedMembers,
    ) -> Self {
        let parts = |is_retry| {
            let header = PartHeader { is_retry, ..header };
            PartsWriter::new(directory, header, numbers.clone(), owners)
        };
        Self {
            overflowed: parts(false),
            retries: parts(true),
            failures,
            failed: 0,
        }
    }

    fn add(&mut self, member: &Member<'_>, has_overflowed: bool) -> Result<(), ArchiveError> {
        if has_overflowed {
            return self.overflowed.add(member);
        }
        match self.failures {
            FailedMembers::Retry => return self.retries.add(member),
            FailedMembers::Record => self.failed += 1,
        }
        Ok(())
    }

    /// Makes the parts durable; returns the number of members that are given up.
    pub(crate) fn finish(self) -> Result<u64, ArchiveError> {
        self.overflowed.finish()?;
        self.retries.finish()?;
        Ok(self.failed)
    }
}

/// The members of a part beside the rows of its volume, which are the same in the same order, but for those that were not
/// written.
pub(crate) struct Comparison<'a, 'o> {
    path: &'a Path,
    reader: PartReader<BufReader<File>>,
    owners: &'a Owners,
    piece: Option<(Arc<GroupPiece>, usize)>,
    overflowed: HashSet<&'a [u8]>,
    rest: &'a mut Remainder<'o>,
    /// Where the next row may begin.
    end: u64,
    members: u64,
    bytes: u64,
}

/// A member: the piece that it was read with, and its place there.
type PlannedEntry = (Arc<GroupPiece>, Option<u32>);

impl<'a, 'o> Comparison<'a, 'o> {
    /// Begins with the first member of a part.
    pub(crate) fn new(
        path: &'a Path,
        overflowed: &'a [Vec<u8>],
        owners: &'a Owners,
        rest: &'a mut Remainder<'o>,
    ) -> Result<Self, ArchiveError> {
        let file = BufReader::with_capacity(READ_BYTES, open_file(path)?);
        Ok(Self {
            path,
            reader: PartReader::new(file).map_err(bad_file(path))?,
            owners,
            piece: None,
            overflowed: overflowed.iter().map(Vec::as_slice).collect(),
            rest,
            end: 0,
            members: 0,
            bytes: 0,
        })
    }

    /// Goes on to the member of a row; false if there is none.
    pub(crate) fn pass(&mut self, row: &NewRow<'_>) -> Result<bool, ArchiveError> {
        while let Some((piece, entry)) = self.next()? {
            if path_of(&piece.group, entry) != row.name {
                self.add_missing(&piece, entry)?;
                continue;
            }
            let metadata = piece.group.metadata(entry);
            let is_planned = row.size == content_len(&metadata)
                && row.mtime == metadata.mtime.into()
                && row.offset >= self.end;
            self.end = row.offset.saturating_add(1);
            self.members += 1;
            self.bytes += row.size;
            return Ok(is_planned);
        }
        Ok(false)
    }

    fn next(&mut self) -> Result<Option<PlannedEntry>, ArchiveError> {
        loop {
            if let Some((piece, done)) = &mut self.piece
                && let Some(entry) = piece.group.entry(*done)
            {
                *done += 1;
                return Ok(Some((piece.clone(), entry)));
            }
            let piece = self.reader.next_piece(self.owners);
            match piece.map_err(bad_file(self.path))? {
                Some(piece) => self.piece = Some((Arc::new(piece), 0)),
                None => return Ok(None),
            }
        }
    }

    fn add_missing(
        &mut self,
        piece: &Arc<GroupPiece>,
        entry: Option<u32>,
    ) -> Result<(), ArchiveError> {
        let has_overflowed = self.overflowed.contains(&path_of(&piece.group, entry)[..]);
        let member = Member::of_part(piece.clone(), entry);
        self.rest.add(&member, has_overflowed)
    }

    /// Takes the members behind the last row; returns the number of all that were written, and their bytes.
    pub(crate) fn finish(mut self) -> Result<(u64, u64), ArchiveError> {
        while let Some((piece, entry)) = self.next()? {
            self.add_missing(&piece, entry)?;
        }
        Ok((self.members, self.bytes))
    }
}
