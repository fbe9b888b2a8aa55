//! A set of row ids as a bitmap in pieces.
//!
//! One bit an id where ids are dense, as they are in archives; a piece is kept only where there
//! is an id, so that a few wild ids in a foreign database cannot ask for gigabytes.

const PIECE_BITS: i64 = 512;

/// A set of row ids.
#[derive(Debug, Default)]
pub(crate) struct IdSet {
    /// Ids `number * 512` to `number * 512 + 511`, ascending by number.
    pieces: Vec<(i64, [u64; 8])>,
    length: u64,
    ends: Option<(i64, i64)>,
}

impl IdSet {
    pub(crate) fn new(mut ids: Vec<i64>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        let mut set = Self {
            length: ids.len() as u64,
            ends: ids.first().copied().zip(ids.last().copied()),
            pieces: Vec::new(),
        };
        for id in ids {
            let (number, word, bit) = place(id);
            if set.pieces.last().is_none_or(|piece| piece.0 != number) {
                set.pieces.push((number, [0; 8]));
            }
            if let Some(piece) = set.pieces.last_mut() {
                piece.1[word] |= bit;
            }
        }
        set
    }

    pub(crate) fn contains(&self, id: i64) -> bool {
        let (number, word, bit) = place(id);
        match self.pieces.binary_search_by_key(&number, |piece| piece.0) {
            Ok(index) => self.pieces[index].1[word] & bit != 0,
            Err(_) => false,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Returns the smallest and the greatest id.
    pub(crate) fn ends(&self) -> Option<(i64, i64)> {
        self.ends
    }

    /// Returns the ids in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.pieces.iter().flat_map(|(number, words)| {
            let bits = (0..PIECE_BITS).filter(move |&bit| {
                let (_, word, mask) = place(bit);
                words[word] & mask != 0
            });
            bits.map(move |bit| number * PIECE_BITS + bit)
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the remainder is 0 to 511")]
fn place(id: i64) -> (i64, usize, u64) {
    let bit = id.rem_euclid(PIECE_BITS) as usize;
    (id.div_euclid(PIECE_BITS), bit / 64, 1 << (bit % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_sorted_set(
            ids in proptest::collection::vec(prop_oneof![-2000_i64..2000, any::<i64>(), Just(i64::MAX), Just(i64::MIN)], 0..80),
            others in proptest::collection::vec(-2000_i64..2000, 0..40),
        ) {
            let model: BTreeSet<i64> = ids.iter().copied().collect();
            let set = IdSet::new(ids);
            prop_assert_eq!(set.len(), model.len() as u64);
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.ends(), model.first().copied().zip(model.last().copied()));
            for id in others.iter().chain(&model) {
                prop_assert_eq!(set.contains(*id), model.contains(id));
            }
        }
    }
}
