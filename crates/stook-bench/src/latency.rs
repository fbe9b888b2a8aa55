//! How long single operations took: a histogram in which a time is off by at most a sixteenth.
//!
//! Its bins are those of `hdrhistogram` with one significant digit: sixteen for each power of two, all that fits into 64
//! bits of nanoseconds, so that no tail is cut off. Count, sum, least and greatest are exact.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Times of operations of one kind, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    times: Histogram<u64>,
    sum: u64,
    min: u64,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            times: Histogram::new_with_bounds(1, u64::MAX, 1).expect("the bounds are in order"),
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
    /// Some nanoseconds; no allocation.
    pub fn add(&mut self, nanoseconds: u64) {
        self.times.saturating_record(nanoseconds);
        self.sum = self.sum.saturating_add(nanoseconds);
        self.min = self.min.min(nanoseconds);
        self.max = self.max.max(nanoseconds);
    }

    /// Adds all operations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let added = self.times.add(&other.times);
        added.expect("both have the same bounds");
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns how many operations were counted.
    pub fn count(&self) -> u64 {
        self.times.len()
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
        self.times.value_at_quantile(share).min(self.max)
    }

    /// Returns the bins that hold anything: the greatest time that falls into it, in nanoseconds, and its count.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        let bins = self.times.iter_recorded();
        bins.map(|bin| (bin.value_iterated_to(), bin.count_at_value()))
    }
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
            count: self.count(),
            sum_ns: self.sum,
            min_ns: if self.count() == 0 { 0 } else { self.min },
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
        let mut counts = written.bins.iter().map(|(_, count)| *count);
        let counted = counts.try_fold(0_u64, u64::checked_add);
        if counted != Some(written.count) {
            let why = "the bins do not hold as many operations as were counted";
            return Err(serde::de::Error::custom(why));
        }
        let mut latencies = Self {
            sum: written.sum_ns,
            max: written.max_ns,
            ..Self::default()
        };
        for (nanoseconds, count) in written.bins {
            latencies.times.saturating_record_n(nanoseconds, count);
        }
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
        let powers = (0..64).map(|power| 1_u64 << power);
        let around = powers.flat_map(|power| [power - 1, power, power + 1]);
        for time in (0..10_000).chain(around).chain([u64::MAX - 1]) {
            let mut one = Latencies::default();
            one.add(time);
            let [(upper, 1)] = one.bins().collect::<Vec<_>>()[..] else {
                panic!("{time} is in one bin");
            };
            assert!(
                upper >= time && upper - time <= time / 16,
                "{time}: {upper}"
            );
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
        for latencies in [low, Latencies::default()] {
            let text = serde_json::to_string(&latencies).unwrap();
            let read: Latencies = serde_json::from_str(&text).unwrap();
            assert_eq!(read, latencies);
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }

    #[test]
    fn bins_that_do_not_hold_what_was_counted_are_refused() {
        let mut one = Latencies::default();
        one.add(5);
        let text = serde_json::to_string(&one).unwrap();
        for bins in ["[]", "[[5,2]]", "[[5,18446744073709551615],[6,2]]"] {
            let text = text.replace("[[5,1]]", bins);
            let error = serde_json::from_str::<Latencies>(&text)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("the bins do not hold"), "{error}");
        }
    }
}
