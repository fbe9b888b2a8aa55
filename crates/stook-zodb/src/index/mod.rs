//! Where the current record of every object is, in about 8 bytes an object.
//!
//! ```text
//!   object number   54 bits: which chunk | 10 bits: suffix, within the chunk
//!
//!   near   a vector of chunks, by number      the first 65,536, and on as long as they follow each other
//!   far    a map of chunks                    numbers that lie apart
//! ```
//! Objects are numbered from 0 upwards, so nearly all lie near, where a look-up is two array accesses.

mod chunk;
mod numbering;

use std::collections::BTreeMap;

use crate::id::Oid;
use chunk::{CHUNK, Chunk};
pub(crate) use numbering::Numbering;

/// Chunks that may always lie near: a vector of so many takes 2 MiB when they are empty.
const ALWAYS_NEAR: u64 = 65_536;

/// Chunks that may be left out where chunks follow each other.
const GAP: u64 = 1024;

/// Positions are numbers of 6 bytes in a saved index.
pub(crate) const GREATEST_POSITION: u64 = (1 << 48) - 1;

/// Positions of records, by object.
#[derive(Debug, Default, Clone)]
pub struct Index {
    near: Vec<Chunk>,
    far: BTreeMap<u64, Chunk>,
    len: usize,
}

impl Index {
    /// Returns an index without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns where the current record of an object begins.
    pub fn get(&self, oid: Oid) -> Option<u64> {
        let (chunk, suffix) = split(oid);
        let found = self.chunk(chunk).map_or(0, |chunk| chunk.get(suffix));
        (found != 0).then_some(found)
    }

    /// Sets where the current record of an object begins.
    ///
    /// # Panics
    /// If the position is 0 or beyond 2^48.
    pub fn insert(&mut self, oid: Oid, position: u64) {
        assert!(
            (1..=GREATEST_POSITION).contains(&position),
            "{position} is no position"
        );
        self.replace(oid, position);
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all objects and positions, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Oid, u64)> + '_ {
        self.chunks().flat_map(|(number, chunk)| {
            let entries = (0..chunk.slots()).filter_map(|slot| chunk.entry(slot));
            entries.map(move |(suffix, position)| (join(number, suffix), position))
        })
    }

    /// Returns the greatest number of an object.
    pub fn greatest(&self) -> Option<Oid> {
        let last_of = |(number, chunk): (u64, &Chunk)| {
            let mut entries = (0..chunk.slots())
                .rev()
                .filter_map(|slot| chunk.entry(slot));
            entries.next().map(|(suffix, _)| join(number, suffix))
        };
        let mut far = self
            .far
            .iter()
            .rev()
            .map(|(number, chunk)| (*number, chunk));
        let mut near = (0..self.near.len())
            .rev()
            .map(|at| (at as u64, &self.near[at]));
        far.find_map(last_of).or_else(|| near.find_map(last_of))
    }

    /// Sets a position of at most 48 bits, or with 0 takes the object out; returns what it was, 0 for none.
    #[inline]
    pub(crate) fn replace(&mut self, oid: Oid, position: u64) -> u64 {
        let (number, suffix) = split(oid);
        let chunk = match usize::try_from(number) {
            Ok(at) if at < self.near.len() => &mut self.near[at],
            _ => self.make_chunk(number),
        };
        let old = chunk.replace(suffix, position);
        match (old, position) {
            (0, 0) => {}
            (0, _) => self.len += 1,
            (_, 0) => self.len -= 1,
            _ => {}
        }
        old
    }

    #[cold]
    fn make_chunk(&mut self, number: u64) -> &mut Chunk {
        let near = self.near.len() as u64;
        if number >= ALWAYS_NEAR && number > near.saturating_add(GAP) {
            return self.far.entry(number).or_default();
        }
        let at = usize::try_from(number).expect("a vector has no more chunks than memory");
        self.near.resize_with(at + 1, Chunk::default);
        let far = self.far.split_off(&(number + 1));
        for (number, chunk) in std::mem::replace(&mut self.far, far) {
            if let Ok(at) = usize::try_from(number) {
                self.near[at] = chunk;
            }
        }
        &mut self.near[at]
    }

    fn chunk(&self, number: u64) -> Option<&Chunk> {
        let near = usize::try_from(number)
            .ok()
            .and_then(|at| self.near.get(at));
        near.or_else(|| self.far.get(&number))
    }

    fn chunks(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        let far = self.far.iter().map(|(number, chunk)| (*number, chunk));
        (0..).zip(&self.near).chain(far)
    }
}

fn split(oid: Oid) -> (u64, u16) {
    let size = CHUNK as u64;
    let suffix = u16::try_from(oid.0 % size).expect("a remainder of 1,024");
    (oid.0 / size, suffix)
}

fn join(chunk: u64, suffix: u16) -> Oid {
    Oid(chunk * CHUNK as u64 + u64::from(suffix))
}

#[cfg(test)]
mod tests;
