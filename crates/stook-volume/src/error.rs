//! What can be wrong with a volume, and where.

use std::io;

use stook_sys::display_bytes;

/// Why a member cannot be read or written. Offsets count from the start of the volume.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// The source of the bytes failed.
    #[error("cannot read the volume at offset {offset}")]
    Io {
        /// Where it was read.
        offset: u64,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The volume ends where a header, the content of a member or the end marker should go on.
    #[error("the volume ends early, there is nothing at byte {offset}")]
    Truncated {
        /// First byte of what is cut off.
        offset: u64,
    },
    /// The block is no tar header: its sum of bytes is not the one it states.
    #[error("no valid tar header at offset {offset}")]
    Checksum {
        /// First byte of the block.
        offset: u64,
    },
    /// One zero block, where two mark the end of the volume.
    #[error("a lone zero block at offset {offset}")]
    LoneZeroBlock {
        /// First byte of the block.
        offset: u64,
    },
    /// Zero blocks as at the end of a volume, but more members follow.
    #[error("an end marker at offset {offset}, but members follow it")]
    EarlyEnd {
        /// First byte of the marker.
        offset: u64,
    },
    /// Bytes that are not zero, and no member, after the end marker.
    #[error("bytes that belong to no member at offset {offset}")]
    AfterEnd {
        /// First of these bytes.
        offset: u64,
    },
    /// An extended header that no member follows.
    #[error("an extended header without a member at offset {offset}")]
    NoMember {
        /// Where the header of the member should be.
        offset: u64,
    },
    /// A global extended header says something of all members behind it. None of them is read so, wherever reading begins.
    #[error(
        "the global header at offset {offset} sets `{keyword}` for the members behind it; they are read without that"
    )]
    Global {
        /// First byte of its header block.
        offset: u64,
        /// The first keyword that would matter.
        keyword: &'static str,
    },
    /// A number in a header is malformed, negative or out of range.
    #[error("the field `{field}` of the tar header at offset {offset} is not a valid number")]
    Number {
        /// First byte of the header block.
        offset: u64,
        /// Which number.
        field: &'static str,
    },
    /// A record of a PAX extended header is malformed.
    #[error("{problem} in the extended header at offset {offset}")]
    Record {
        /// First byte of the records.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// Extended headers and sparse map are longer than [`MAX_HEADER`](crate::MAX_HEADER).
    #[error(
        "the headers of the member at offset {offset} take at least {len} bytes, more than any reasonable member"
    )]
    TooLong {
        /// First byte of the member.
        offset: u64,
        /// Bytes stated so far.
        len: u64,
    },
    /// A name is empty or has a NUL byte.
    #[error("the `{field}` of the member at offset {offset} is empty or has a NUL byte")]
    Name {
        /// First byte of the member.
        offset: u64,
        /// Which name.
        field: &'static str,
    },
    /// The map of a sparse member is malformed or does not fit its sizes.
    #[error("{problem} in the sparse map of the member at offset {offset}")]
    SparseMap {
        /// First byte of the member.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// A valid header of a type no archive of ours holds.
    #[error("the member at offset {offset} is of the unsupported type `{}`", display_bytes(&[*typeflag]))]
    Unsupported {
        /// First byte of the header block.
        offset: u64,
        /// Its type byte.
        typeflag: u8,
    },
    /// A header written by stook was changed since.
    #[error("the header of the member at offset {offset} is damaged: {problem}")]
    Damaged {
        /// First byte of the member.
        offset: u64,
        /// What does not fit.
        problem: &'static str,
    },
    /// The content of a member ends before the size its header states.
    #[error(
        "the content of `{}` is cut short: the next member begins at offset {next}",
        display_bytes(name)
    )]
    CutShort {
        /// Name of the member.
        name: Vec<u8>,
        /// Where the next member begins.
        next: u64,
    },
    /// A header cannot be written as a tar member.
    #[error("cannot store `{}`: {problem}", display_bytes(name))]
    Unstorable {
        /// Name of the entry.
        name: Vec<u8>,
        /// What stands in the way.
        problem: &'static str,
    },
}

/// Why a frame of a compressed volume, or the table of its frames, cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The source of the bytes failed.
    #[error("cannot read the volume at byte {offset} of its file")]
    Io {
        /// Where it was read.
        offset: u64,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// There is no memory for zstd.
    #[error("there is no memory for zstd")]
    NoMemory,
    /// zstd refused: the frame is damaged, mostly.
    #[error("zstd says: {problem}")]
    Zstd {
        /// In its words.
        problem: &'static str,
    },
    /// No frame begins here, or one that does not state the length of its content.
    #[error("no frame of a compressed volume begins here")]
    NoFrame,
    /// A frame as stook writes none, without a checksum of its content.
    #[error("the frame has no checksum")]
    NoChecksum,
    /// The bytes are a frame, and more, or less.
    #[error("the frame does not end where the next one begins")]
    NotOneFrame,
    /// The content is longer than that of any frame.
    #[error("a frame with {len} bytes of content is too long")]
    TooLong {
        /// Its length.
        len: u64,
    },
    /// The content is not as long as the table of frames says.
    #[error("the frame has {found} bytes of content, the table of frames says {expected}")]
    WrongLength {
        /// What the frame says.
        found: u64,
        /// What the table says.
        expected: u64,
    },
    /// The volume has no table of its frames, or not its own.
    #[error("the volume has no valid seek table: {problem}")]
    NoSeekTable {
        /// What does not fit.
        problem: &'static str,
    },
    /// More frames than a table can have.
    #[error("a volume of {frames} frames is too long to be compressed")]
    TooManyFrames {
        /// Their number.
        frames: u64,
    },
}

impl FrameError {
    pub(crate) fn of(code: usize) -> Self {
        Self::Zstd {
            problem: zstd_safe::get_error_name(code),
        }
    }
}
