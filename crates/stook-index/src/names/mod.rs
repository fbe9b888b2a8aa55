//! Name lookup: sorted segments of name hashes, so that one name is found without a pass over all rows.
//!
//! ```text
//!   rows of `files`   1 .................. 1,048,576 | .......... 1,290,284 | ....
//!                     segment                         segment                rows behind the last segment are scanned
//!   segment           fences: first hash of each part ──> one part of 4,096 entries is read
//!   entry             hash of the name (32 bits) · id of the row, counted from the first row of the segment (32 bits)
//! ```
//! A hit is a candidate: its row is read and its whole name compared. Segments of `stook_deleted` work in the same way.
//! They are log-structured: a commit adds one, and merges it with the segments before it as long as those are not longer
//! than what is merged, so an entry is written at most log2(n) times, and there are at most log2(n) segments.
//!
//! Nothing here is trusted. A checksum covers each segment and each part; an anchor tells whether the first and the last
//! row are still those that were indexed, since a row that was removed from the end of `files` gives its id to the next one.
//! What does not fit is not used: a lookup scans then, and the next write builds all segments anew.

mod find;
mod lookup;
mod segment;
mod versions;
mod write;

pub use find::NameLookup;
pub(crate) use lookup::{NameSegments, Unusable};
pub(crate) use segment::{Segment, entry_of, hash_of, part_statement, read_part};
pub use versions::{NameVersions, Version};
pub(crate) use write::NameWriter;

/// Entries of a part: 32 KiB, which SQLite reads in about the time of two random pages.
pub(crate) const PART_ENTRIES: usize = 4096;

/// Whose names are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Files,
    Deleted,
}

impl Source {
    pub(crate) const ALL: [Self; 2] = [Self::Files, Self::Deleted];

    /// Returns the name of the table.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Deleted => "stook_deleted",
        }
    }

    /// Returns the query for what the anchor is made of; its condition and order follow.
    fn anchor_query(self) -> &'static str {
        match self {
            Self::Files => "SELECT id, name, tar, offset FROM files WHERE id",
            Self::Deleted => "SELECT rowid, name, raw, run FROM stook_deleted WHERE rowid",
        }
    }
}
