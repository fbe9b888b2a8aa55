//! What is known of members beyond their rows: from the index, and where that says nothing, from their headers.

use stook_index::{Attributes, AttributesBlock, Index, RowRef};
use stook_volume::{Member, decode};

use crate::ArchiveError;
use crate::attributes::attributes_of_member;
use crate::read::Volumes;

/// Finds attributes of one row after the other. Rows in the order they were archived cost least: those of a block
/// follow each other.
pub(crate) struct MemberAttributes<'a> {
    index: &'a Index,
    volumes: Volumes,
    /// The block of the last row; None if the index has none for it.
    block: Option<AttributesBlock>,
    /// The member of the last row, where there was no block.
    member: Option<Member>,
}

impl<'a> MemberAttributes<'a> {
    pub(crate) fn new(index: &'a Index, volumes: Volumes) -> Self {
        Self {
            index,
            volumes,
            block: None,
            member: None,
        }
    }

    /// Returns the attributes of the member of a row; `None` if neither the index nor a volume has them. Not an error:
    /// zstash moves volumes to tape.
    ///
    /// # Errors
    /// `Index` if the index cannot be read.
    ///
    /// # Cost
    /// A lookup for each block of up to 4,096 rows. Without a block, a lookup and a read of 4 KiB for each row.
    pub(crate) fn of(&mut self, row: &RowRef<'_>) -> Result<Option<Attributes<'_>>, ArchiveError> {
        let is_held = self
            .block
            .as_ref()
            .is_some_and(|block| block.volume() == row.volume && block.contains(row.offset));
        if !is_held {
            self.block = self.index.attributes_at(row.volume, row.offset)?;
        }
        Ok(match &self.block {
            Some(block) => block.find(row.offset),
            None => {
                self.member = read_header(&self.volumes, row);
                self.member.as_ref().map(attributes_of_member)
            }
        })
    }
}

/// Reads the header of the member of a row; `None` if its volume is not here, or has another member there.
pub(crate) fn read_header(volumes: &Volumes, row: &RowRef<'_>) -> Option<Member> {
    let volume = volumes.get(row.volume).ok()?;
    let member = decode(&*volume, row.offset).ok().flatten()?;
    (member.header.name == row.name).then_some(member)
}
