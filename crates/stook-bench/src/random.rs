//! A small deterministic random number generator: the same numbers for a seed on every machine and in every version.
//!
//! Libraries promise that only until their next major version, and file sets must stay the same bit for bit. Not for
//! secrets.
//!
//! The test support has the same generator, and one each is on purpose: a product does not depend on a test crate, nor that on
//! a product that it judges. Both are held to the published sequence.

/// SplitMix64: 64 bits of state, passes BigCrush.
///
/// # Source
/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// Starts the sequence of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0..bound`, or 0 when `bound` is 0. The bias is below `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns an index into a slice of `length` items, or 0 when it is empty.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the number is below a usize"
    )]
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Returns a number in `[0, 1)` with 53 random bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns so many of the items at most, each equally likely, in their order.
    ///
    /// # Source
    /// Knuth, The Art of Computer Programming, volume 2, algorithm S.
    pub(crate) fn sample<'a, T>(&mut self, items: &'a [T], most: usize) -> Vec<&'a T> {
        let mut sample = Vec::new();
        for (at, item) in items.iter().enumerate() {
            if self.index(items.len() - at) < most.saturating_sub(sample.len()) {
                sample.push(item);
            }
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn yields_the_published_sequence() {
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| random.below(99) < 99 && random.unit() < 1.0));
    }

    #[test]
    fn a_sample_is_bounded_and_spread_over_all() {
        let items: Vec<u32> = (0..5000).collect();
        let chosen = Random::new(1).sample(&items, 500);
        assert!(chosen.len() == 500 && chosen.is_sorted());
        let in_first_half = chosen.iter().filter(|item| ***item < 2500).count();
        assert!((200..300).contains(&in_first_half), "{in_first_half}");
        assert_eq!(Random::new(1).sample(&items[..7], 500).len(), 7);
    }
}
