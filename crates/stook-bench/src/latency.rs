//! How long single operations took: a histogram with a resolution of 1/16 of a power of two.
//!
//! A bin is at most 6.25 % wide, so that a percentile is off by at most that; count, sum, least and greatest are exact.
//! One thousand bins hold all that fits into 64 bits of nanoseconds, so no tail is cut off.

use serde::{Deserialize, Serialize};

/// Bins for each power of two: 2^4.
const FINE_BITS: u32 = 4;
const FINE: u64 = 1 << FINE_BITS;
const BINS: usize = (64 - FINE_BITS as usize + 1) << FINE_BITS;

/// Times of operations of one kind, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    bins: Vec<u64>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            bins: vec![0; BINS],
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Latencies {
    /// Counts one operation.
    ///
    /// # Cost
    /// Some 2 ns; no allocation.
    pub fn add(&mut self, nanoseconds: u64) {
        self.bins[bin_of(nanoseconds)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(nanoseconds);
        self.min = self.min.min(nanoseconds);
        self.max = self.max.max(nanoseconds);
    }

    /// Adds all operations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bin, count) in self.bins.iter_mut().zip(&other.bins) {
            *bin = bin.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns how many operations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the time of all operations, in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the longest time, in nanoseconds; 0 if there are none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the time that this share of the operations did not exceed, in nanoseconds: the upper end of its bin, at
    /// most 6.25 % above the true one; never more than the longest. 0 if there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bin, count) in self.bins.iter().enumerate() {
            seen = count.saturating_add(seen);
            if seen >= rank {
                return upper_end(bin).min(self.max);
            }
        }
        self.max
    }

    /// Returns the bins that hold anything: the greatest time that falls into it, in nanoseconds, and its count.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        let bins = self.bins.iter().enumerate();
        bins.filter(|(_, count)| **count > 0)
            .map(|(bin, count)| (upper_end(bin), *count))
    }
}

/// Times below 16 ns have a bin each; above, the highest bit and the four behind it say which.
#[expect(clippy::cast_possible_truncation, reason = "there are 976 bins")]
fn bin_of(nanoseconds: u64) -> usize {
    if nanoseconds < FINE {
        return nanoseconds as usize;
    }
    let power = nanoseconds.ilog2() - FINE_BITS;
    (u64::from(power) * FINE + (nanoseconds >> power)) as usize
}

/// The greatest time that falls into a bin.
fn upper_end(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < 2 * FINE {
        return bin;
    }
    let power = bin / FINE - 1;
    let next = u128::from(bin % FINE + FINE + 1) << power;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

/// What is written: exact figures, percentiles to read, and the bins that hold anything.
#[derive(Serialize, Deserialize)]
struct Written {
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    /// Upper end in nanoseconds, and count.
    bins: Vec<(u64, u64)>,
}

impl Serialize for Latencies {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Written {
            count: self.count,
            sum_ns: self.sum,
            min_ns: if self.count == 0 { 0 } else { self.min },
            p50_ns: self.quantile(0.5),
            p90_ns: self.quantile(0.9),
            p99_ns: self.quantile(0.99),
            max_ns: self.max,
            bins: self.bins().collect(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let mut latencies = Self::default();
        let mut counted = Some(0_u64);
        for (nanoseconds, count) in written.bins {
            counted = counted.and_then(|counted| counted.checked_add(count));
            latencies.bins[bin_of(nanoseconds)] =
                latencies.bins[bin_of(nanoseconds)].saturating_add(count);
        }
        if counted != Some(written.count) {
            let why = "the bins do not hold as many operations as were counted";
            return Err(serde::de::Error::custom(why));
        }
        latencies.count = written.count;
        latencies.sum = written.sum_ns;
        latencies.max = written.max_ns;
        if written.count > 0 {
            latencies.min = written.min_ns;
        }
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bin_that_is_at_most_a_sixteenth_wide() {
        let mut times: Vec<u64> = (0..100_000).collect();
        times
            .extend((0..64).flat_map(|power| [1_u64 << power, (1 << power) - 1, (1 << power) + 1]));
        times.push(u64::MAX);
        for time in times {
            let upper = upper_end(bin_of(time));
            assert!(
                upper >= time && upper - time <= time / 16,
                "{time}: {upper}"
            );
            assert_eq!(bin_of(upper), bin_of(time), "{time}");
        }
    }

    #[test]
    fn percentiles_are_near_and_the_ends_exact() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.quantile(0.5), latencies.max()), (0, 0));
        for time in 1..=1000 {
            latencies.add(time * 1000);
        }
        for (share, exact) in [(0.5, 500_000), (0.99, 990_000)] {
            let found = latencies.quantile(share);
            assert!((exact..=exact + exact / 16).contains(&found), "{found}");
        }
        assert_eq!(latencies.quantile(1.0), 1_000_000);
        assert_eq!((latencies.count(), latencies.sum()), (1000, 500_500_000));
    }

    #[test]
    fn halves_merge_and_come_back_from_json() {
        let (mut low, mut high) = (Latencies::default(), Latencies::default());
        (0..500).for_each(|time| low.add(time));
        (500..9000).for_each(|time| high.add(time * 37));
        low.merge(&high);
        let text = serde_json::to_string(&low).unwrap();
        assert_eq!(serde_json::from_str::<Latencies>(&text).unwrap(), low);
        let none = serde_json::to_string(&Latencies::default()).unwrap();
        assert_eq!(
            serde_json::from_str::<Latencies>(&none).unwrap(),
            Latencies::default()
        );
    }

    #[test]
    fn bins_that_do_not_hold_what_was_counted_are_refused() {
        let mut one = Latencies::default();
        one.add(5);
        let text = serde_json::to_string(&one).unwrap();
        for bins in ["[]", "[[5,2]]", "[[5,18446744073709551615],[6,2]]"] {
            let text = text.replace("[[5,1]]", bins);
            let error = serde_json::from_str::<Latencies>(&text).unwrap_err();
            assert!(
                error.to_string().starts_with("the bins do not hold"),
                "{error}"
            );
        }
    }
}
