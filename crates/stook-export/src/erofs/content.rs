//! Where in which volume the parts of a file are: one chunk for most, and chunks that a hole does not divide for the sparse.

use std::collections::BTreeMap;

use stook_archive::{Catalogue, EntryId, Stat, VolumeId};

use super::format::{BLOCK, BLOCK_BITS, CHUNK_BITS, MOST_CHUNKS};
use crate::Refusal;

/// The chunk is a hole.
const HOLE: u32 = u32::MAX;

/// In the word of an inode that says how long chunks are: each has a volume beside its block.
const WITH_VOLUME: u32 = 0x20;

/// Bytes of what is said of a chunk.
pub(super) const CHUNK_ENTRY: u64 = 8;

/// Where a file's content is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    bits: u32,
    /// How many chunks there are; 0 of an empty file.
    pub(super) chunks: u64,
    /// The slot of the volume, from 1 on.
    slot: u16,
    pieces: Vec<Piece>,
}

/// A part of a file that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    begin: u64,
    end: u64,
    /// Where it begins in the volume, in bytes.
    stored: u64,
}

/// The volumes in their order, with their bytes.
pub(super) type Volumes = BTreeMap<VolumeId, (u16, u64)>;

impl Content {
    /// Finds the content of a file.
    pub(super) fn of(
        catalogue: &Catalogue,
        entry: EntryId,
        stat: &Stat,
        volumes: &Volumes,
    ) -> Result<Self, Refusal> {
        if stat.size == 0 {
            return Ok(Self::of_pieces(0, 0, Vec::new()).expect("an empty file has no chunks"));
        }
        let (volume, begin) = catalogue.find_content(entry).ok_or(Refusal::Unknown)?;
        let &(slot, bytes) = volumes.get(&volume).ok_or(Refusal::Unknown)?;
        let pieces = match stat.is_sparse {
            false => vec![Piece {
                begin: 0,
                end: stat.size,
                stored: begin,
            }],
            true => pieces_of(catalogue, entry, begin)?,
        };
        let is_behind = |piece: &Piece| {
            let end = piece.stored.checked_add(piece.end - piece.begin);
            end.is_none_or(|end| end > bytes)
        };
        if pieces.iter().any(is_behind) {
            return Err(Refusal::BehindVolume(volume));
        }
        Self::of_pieces(stat.size, slot, pieces)
    }

    fn of_pieces(size: u64, slot: u16, pieces: Vec<Piece>) -> Result<Self, Refusal> {
        let mut bits = CHUNK_BITS;
        for piece in &pieces {
            bits = bits.min(piece.begin.trailing_zeros());
            if piece.end != size {
                bits = bits.min(piece.end.trailing_zeros());
            }
            if !piece.stored.is_multiple_of(BLOCK) {
                return Err(Refusal::Unaligned);
            }
        }
        if bits < BLOCK_BITS {
            return Err(Refusal::Unaligned);
        }
        let chunks = size.div_ceil(1 << bits);
        if chunks > MOST_CHUNKS {
            return Err(Refusal::TooManyChunks(chunks));
        }
        Ok(Self {
            bits,
            chunks,
            slot,
            pieces,
        })
    }

    /// Returns the word of the inode that says how long chunks are.
    pub(super) fn format(&self) -> u32 {
        WITH_VOLUME | (self.bits - BLOCK_BITS)
    }

    /// Appends what is said of each chunk.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut pieces = self.pieces.iter().peekable();
        for chunk in 0..self.chunks {
            let offset = chunk << self.bits;
            while pieces.next_if(|piece| piece.end <= offset).is_some() {}
            let stored = pieces.peek().filter(|piece| piece.begin <= offset);
            let (slot, block) = match stored {
                Some(piece) => {
                    let block = (piece.stored + (offset - piece.begin)) / BLOCK;
                    let block = u32::try_from(block).expect("the volume's length was looked at");
                    (self.slot, block)
                }
                None => (0, HOLE),
            };
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&slot.to_le_bytes());
            out.extend_from_slice(&block.to_le_bytes());
        }
    }
}

/// Returns the parts of a sparse file that are stored.
fn pieces_of(catalogue: &Catalogue, entry: EntryId, begin: u64) -> Result<Vec<Piece>, Refusal> {
    let reader = catalogue.reader(entry);
    let reader = reader.ok().ok_or(Refusal::Unknown)?;
    let (mut pieces, mut offset, mut stored) = (Vec::new(), 0, begin);
    while let Some((begin, end)) = reader.next_stored(offset) {
        if begin < end {
            pieces.push(Piece { begin, end, stored });
        }
        stored = stored.checked_add(end - begin).ok_or(Refusal::Unknown)?;
        // An empty one at the end of the file marks a hole there.
        offset = end.max(offset.saturating_add(1));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(begin: u64, end: u64, stored: u64) -> Piece {
        Piece { begin, end, stored }
    }

    fn chunks(content: &Content) -> Vec<(u16, u32)> {
        let mut bytes = Vec::new();
        content.put(&mut bytes);
        let chunks = bytes.chunks_exact(8);
        let read = chunks.map(|chunk| {
            let slot = u16::from_le_bytes([chunk[2], chunk[3]]);
            (slot, u32::from_le_bytes(chunk[4..].try_into().unwrap()))
        });
        read.collect()
    }

    #[test]
    fn a_whole_file_is_one_chunk() {
        let content = Content::of_pieces(5000, 2, vec![piece(0, 5000, 1024)]).unwrap();
        assert_eq!((content.bits, chunks(&content)), (40, vec![(2, 2)]));
        let long = (1 << 40) + 4096;
        let content = Content::of_pieces(long, 1, vec![piece(0, long, 512)]).unwrap();
        assert_eq!(chunks(&content), [(1, 1), (1, 1 + (1 << 31))]);
    }

    #[test]
    fn holes_divide_a_file_into_chunks() {
        let pieces = vec![piece(4096, 8192, 512), piece(16384, 20000, 4608)];
        let content = Content::of_pieces(20000, 1, pieces).unwrap();
        assert_eq!(content.bits, 12);
        let hole = (0, HOLE);
        assert_eq!(chunks(&content), [hole, (1, 1), hole, hole, (1, 9)]);
        let only_holes = Content::of_pieces(1 << 30, 1, Vec::new()).unwrap();
        assert_eq!(chunks(&only_holes), [hole]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let unaligned = Content::of_pieces(4096, 1, vec![piece(0, 4096, 100)]);
        assert_eq!(unaligned, Err(Refusal::Unaligned));
        let within = Content::of_pieces(4096, 1, vec![piece(100, 4096, 512)]);
        assert_eq!(within, Err(Refusal::Unaligned));
        let scattered = vec![piece(512, 1024, 512)];
        let many = Content::of_pieces(1 << 40, 1, scattered);
        assert_eq!(many, Err(Refusal::TooManyChunks(1 << 31)));
    }
}
