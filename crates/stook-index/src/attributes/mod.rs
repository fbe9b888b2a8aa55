//! What a header says of a member beyond its row in `files`: so that `stat` needs no volume.
//!
//! ```text
//!   stook_attributes    one row for at most 4,096 consecutive members of one volume
//!     volume, first     key: the volume's number, the offset of the first of the members
//!     data              number of members | dictionary | columns | devices | targets | links
//!                         dictionary   each kind, mode, owner and group that occurs, once
//!                         columns      offset, header, entry of the dictionary, seconds, nanoseconds, bits
//! ```
//! Rows of `files` are matched by volume and offset, never by their ids, which a rebuild gives anew. A row without a match
//! was written by zstash, or its block is damaged: its header has the answer. Nothing here reads volumes.
//!
//! # Cost
//! About 10 bytes a member without targets; 13 MB for 1.29 million members. A block is decoded without an allocation
//! for each member; blocks are independent, so that many are decoded side by side.

mod decode;
mod encode;
mod missing;
mod recorded;
mod store;
mod table;

use stook_sys::Timestamp;

pub use decode::{AttributesBlock, Members};
pub use encode::AttributesEncoder;
pub use missing::{Gaps, VolumeRows};
pub use recorded::RecordedMetadata;
pub(crate) use recorded::{MetadataCursor, MetadataDictionary, MetadataNumber, StagedMetadata};
pub use store::StoredAttributes;
pub use table::AttributesTable;

/// Members in one block at most. Larger ones compress no better, and smaller ones are found no faster.
pub(crate) const MOST_MEMBERS: usize = 4096;

/// Offsets and lengths of headers are multiples of it.
const BLOCK: u64 = 512;

/// Set for a sparse member: a map comes before its content.
const SPARSE: u64 = 1;
/// Set for a member with extended attributes.
const XATTRS: u64 = 2;

/// The type of a member, as its header has it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberKind {
    /// A regular file.
    #[default]
    File,
    /// A further name of a file before it in the same volume, as zstash stores it: with the content once more.
    HardLink,
    /// A symbolic link.
    Symlink,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
}

impl MemberKind {
    const ALL: [Self; 7] = [
        Self::File,
        Self::HardLink,
        Self::Symlink,
        Self::CharDevice,
        Self::BlockDevice,
        Self::Directory,
        Self::Fifo,
    ];

    /// Returns the digit that stands for it in a tar header.
    fn digit(self) -> u8 {
        match self {
            Self::File => b'0',
            Self::HardLink => b'1',
            Self::Symlink => b'2',
            Self::CharDevice => b'3',
            Self::BlockDevice => b'4',
            Self::Directory => b'5',
            Self::Fifo => b'6',
        }
    }

    fn from_digit(digit: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.digit() == digit)
    }
}

/// What is known of one member besides its row.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Where its first header block lies in the volume, a multiple of 512.
    pub offset: u64,
    /// Where its content begins, behind headers and sparse map; of one without content, where that would be.
    pub content: u64,
    /// Its type.
    pub kind: MemberKind,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Number of the owner.
    pub uid: u64,
    /// Number of the group.
    pub gid: u64,
    /// Name of the owner, may be empty.
    pub uname: &'a [u8],
    /// Name of the group, may be empty.
    pub gname: &'a [u8],
    /// Time of the last change of the content, exactly.
    pub mtime: Timestamp,
    /// Major and minor number of a device; else zeros.
    pub device: (u32, u32),
    /// Where a symbolic link points, or the name before it that a hard link shares its content with; else empty.
    pub target: &'a [u8],
    /// The first name, in archive order, of a file with several; `None` for the first one itself.
    pub link: Option<&'a [u8]>,
    /// Whether it is stored without its holes; the map in its header tells where they are.
    pub is_sparse: bool,
    /// Whether its header has extended attributes.
    pub has_xattrs: bool,
}

/// Seconds, so that their order is that of unsigned numbers.
fn biased(seconds: i64) -> u64 {
    seconds.cast_unsigned() ^ (1 << 63)
}

fn unbiased(number: u64) -> i64 {
    (number ^ (1 << 63)).cast_signed()
}

#[cfg(test)]
mod tests;
