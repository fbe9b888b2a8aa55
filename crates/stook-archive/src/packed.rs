//! What packers hand to the writer: members, whole or in slices, each piece with the stream that it belongs to.

use stook_index::Mtime;
use stook_pool::Weight;
use stook_sys::FileId;
use stook_volume::Header;

use crate::attributes::HeaderFacts;
use crate::compress::EncodedBytes;
use crate::plan::OutputStream;

/// What the writer needs to know of a member besides its bytes.
pub(crate) struct Packed {
    pub(crate) name: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) mtime: Mtime,
    pub(crate) md5: Option<[u8; 16]>,
    /// All its bytes in the volume.
    pub(crate) len: u64,
    /// Those that the plan gave it.
    pub(crate) planned: u64,
    /// Only in zstash's dialect, for a file with several names.
    pub(crate) several_names: Option<Box<SeveralNames>>,
    /// What the index keeps of its header.
    pub(crate) facts: HeaderFacts,
}

/// The header of a member that becomes a hard link if its file is in the same volume already.
pub(crate) struct SeveralNames {
    pub(crate) identity: FileId,
    pub(crate) header: Header,
    pub(crate) header_len: usize,
}

/// A piece of the volume, in order.
pub(crate) enum Piece {
    /// Whole members.
    Members {
        bytes: Vec<u8>,
        members: Vec<Packed>,
    },
    /// Whole members in a frame, or one in several.
    Frames {
        encoded: EncodedBytes,
        members: Vec<Packed>,
    },
    /// The header of a large member; its content follows in slices. The MD5 is still missing.
    Begin {
        encoded: EncodedBytes,
        member: Box<Packed>,
    },
    /// A slice of it.
    Slice(EncodedBytes),
    /// Its end: the padding, and the MD5.
    End {
        encoded: EncodedBytes,
        md5: [u8; 16],
    },
    /// It failed: everything since `Begin` is void.
    Abort,
    /// Nothing more comes in this stream.
    EndOfStream,
}

/// A piece and where it goes.
pub(crate) struct DirectedPiece {
    pub(crate) stream: OutputStream,
    pub(crate) piece: Piece,
}

impl Piece {
    pub(crate) fn of(self, stream: OutputStream) -> DirectedPiece {
        DirectedPiece {
            stream,
            piece: self,
        }
    }
}

impl Weight for DirectedPiece {
    fn weight(&self) -> usize {
        match &self.piece {
            Piece::Members { bytes, .. } => bytes.len(),
            Piece::Frames { encoded, .. }
            | Piece::Begin { encoded, .. }
            | Piece::End { encoded, .. }
            | Piece::Slice(encoded) => encoded.bytes.len(),
            Piece::Abort | Piece::EndOfStream => 0,
        }
    }
}
