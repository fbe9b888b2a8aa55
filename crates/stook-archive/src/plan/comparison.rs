//! The members of a part beside the rows of the volume that was built of it.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use stook_index::NewRow;
use stook_sys::Owners;

use super::block_file::bad_file;
use super::member::{GroupPiece, Member, content_len};
use super::part::PartReader;
use super::parts_writer::PartsWriter;
use super::piece::path_of;
use crate::ArchiveError;

/// What becomes of members that failed while their part was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailedMembers {
    /// They go into another part, to be built again: a file that has changed since fails again.
    #[default]
    Retry,
    /// They count as failed, as in `create`; the next update archives them.
    Record,
}

/// Members that were not written.
pub(crate) struct Remainder<'o> {
    pub(crate) parts: PartsWriter<'o>,
    pub(crate) failures: FailedMembers,
    /// Members that are given up.
    pub(crate) failed: u64,
}

/// The members of a part beside the rows of its volume, which are the same in the same order, but for those that were not
/// written.
pub(crate) struct Comparison<'a, 'o> {
    pub(crate) path: &'a Path,
    pub(crate) reader: PartReader<BufReader<File>>,
    pub(crate) owners: &'a Owners,
    pub(crate) piece: Option<(Arc<GroupPiece>, usize)>,
    pub(crate) overflowed: HashSet<&'a [u8]>,
    pub(crate) rest: &'a mut Remainder<'o>,
    /// Where the next row may begin.
    pub(crate) end: u64,
    pub(crate) members: u64,
    pub(crate) bytes: u64,
}

/// A member: the piece that it was read with, and its place there.
type PlannedEntry = (Arc<GroupPiece>, Option<u32>);

impl Comparison<'_, '_> {
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
        if has_overflowed || self.rest.failures == FailedMembers::Retry {
            let member = Member::of_part(piece.clone(), entry);
            return self.rest.parts.add(&member);
        }
        self.rest.failed += 1;
        Ok(())
    }

    /// Takes the members behind the last row; returns the number of all that were written, and their bytes.
    pub(crate) fn finish(mut self) -> Result<(u64, u64), ArchiveError> {
        while let Some((piece, entry)) = self.next()? {
            self.add_missing(&piece, entry)?;
        }
        Ok((self.members, self.bytes))
    }
}
