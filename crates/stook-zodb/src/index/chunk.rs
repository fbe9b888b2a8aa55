//! Positions of up to 1,024 objects whose numbers follow each other.
//!
//! ```text
//!   sparse   sorted: suffix 10 bits << 48 | position 48 bits      8 bytes an object, and up to a quarter of room
//!   dense    position 6 bytes for each suffix, 0 for none        6,144 bytes, at most 8 an object
//! ```

/// Objects of one chunk.
pub(crate) const CHUNK: usize = 1024;

/// From so many objects on a chunk is dense: then both forms take the same.
const DENSE: usize = 768;

/// Bytes of a position.
const WIDTH: usize = 6;

const POSITION_BITS: u32 = 48;

const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;

#[derive(Debug, Clone)]
pub(super) enum Chunk {
    Sparse(Vec<u64>),
    Dense(Box<[u8; CHUNK * WIDTH]>),
}

impl Default for Chunk {
    fn default() -> Self {
        Self::Sparse(Vec::new())
    }
}

impl Chunk {
    /// Returns the position of a suffix, 0 for none.
    #[inline]
    pub(super) fn get(&self, suffix: u16) -> u64 {
        match self {
            Self::Sparse(entries) => match find(entries, suffix) {
                Ok(at) => entries[at] & POSITION_MASK,
                Err(_) => 0,
            },
            Self::Dense(positions) => dense_get(positions, usize::from(suffix)),
        }
    }

    /// Gives a suffix a position of at most 48 bits, or takes it out with 0; returns the one that it had, 0 for none.
    #[inline]
    pub(super) fn replace(&mut self, suffix: u16, position: u64) -> u64 {
        match self {
            Self::Sparse(entries) if entries.len() < DENSE => {
                sparse_replace(entries, suffix, position)
            }
            Self::Sparse(entries) => {
                *self = dense_of(entries);
                self.replace(suffix, position)
            }
            Self::Dense(positions) => dense_replace(positions, usize::from(suffix), position),
        }
    }

    /// Returns the number of its slots: numbers that [`Chunk::entry`] takes.
    pub(super) fn slots(&self) -> usize {
        match self {
            Self::Sparse(entries) => entries.len(),
            Self::Dense(_) => CHUNK,
        }
    }

    /// Returns suffix and position of a slot; slots are in the order of suffixes, and some of a dense chunk are empty.
    pub(super) fn entry(&self, slot: usize) -> Option<(u16, u64)> {
        match self {
            Self::Sparse(entries) => entries
                .get(slot)
                .map(|entry| (suffix_of(*entry), entry & POSITION_MASK)),
            Self::Dense(positions) => {
                let position = dense_get(positions, slot);
                let suffix = u16::try_from(slot).ok()?;
                (position != 0).then_some((suffix, position))
            }
        }
    }

    /// Returns the slot of a suffix.
    pub(super) fn slot(&self, suffix: u16) -> Option<usize> {
        match self {
            Self::Sparse(entries) => find(entries, suffix).ok(),
            Self::Dense(_) => (self.get(suffix) != 0).then_some(usize::from(suffix)),
        }
    }
}

fn suffix_of(entry: u64) -> u16 {
    u16::try_from(entry >> POSITION_BITS).expect("48 bits are shifted out of 64")
}

fn find(entries: &[u64], suffix: u16) -> Result<usize, usize> {
    match entries.last() {
        // Objects are mostly numbered in the order of their first records.
        Some(last) if suffix_of(*last) < suffix => Err(entries.len()),
        _ => entries.binary_search_by_key(&suffix, |entry| suffix_of(*entry)),
    }
}

fn sparse_replace(entries: &mut Vec<u64>, suffix: u16, position: u64) -> u64 {
    let entry = u64::from(suffix) << POSITION_BITS | position;
    match find(entries, suffix) {
        Ok(at) if position == 0 => entries.remove(at) & POSITION_MASK,
        Ok(at) => std::mem::replace(&mut entries[at], entry) & POSITION_MASK,
        Err(_) if position == 0 => 0,
        Err(at) => {
            if entries.len() == entries.capacity() {
                entries.reserve_exact((entries.len() / 4).max(4));
            }
            entries.insert(at, entry);
            0
        }
    }
}

fn dense_of(entries: &[u64]) -> Chunk {
    let mut positions: Box<[u8; CHUNK * WIDTH]> = vec![0; CHUNK * WIDTH]
        .into_boxed_slice()
        .try_into()
        .expect("the slice has as many bytes as the array");
    for entry in entries {
        dense_replace(
            &mut positions,
            usize::from(suffix_of(*entry)),
            entry & POSITION_MASK,
        );
    }
    Chunk::Dense(positions)
}

#[inline]
fn dense_get(positions: &[u8; CHUNK * WIDTH], slot: usize) -> u64 {
    let at = slot * WIDTH;
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&positions[at..at + WIDTH]);
    u64::from_be_bytes(bytes)
}

#[inline]
fn dense_replace(positions: &mut [u8; CHUNK * WIDTH], slot: usize, position: u64) -> u64 {
    let old = dense_get(positions, slot);
    let at = slot * WIDTH;
    positions[at..at + WIDTH].copy_from_slice(&position.to_be_bytes()[2..]);
    old
}
