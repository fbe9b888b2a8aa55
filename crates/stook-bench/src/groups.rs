//! Samples that belong together because their labels are the same: the one grouping from which tables, advice and
//! warnings of all benches come.

use serde_json::Value;

use crate::latency::Latencies;
use crate::record::Sample;
use crate::shares::Shares;
use crate::statistics::Spread;

/// The samples of one piece of work under the same conditions, in the order of their rounds; there is one at least.
#[derive(Debug, Clone)]
pub(crate) struct Group<'a> {
    pub(crate) samples: Vec<&'a Sample>,
}

/// Returns the different values of a label, in the order in which they come first.
pub(crate) fn values<'a>(samples: &'a [Sample], label: &str) -> Vec<&'a str> {
    unique(samples.iter().map(|sample| sample.label(label)))
}

/// Returns each item once, in the order in which they come first.
pub(crate) fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}

impl<'a> Group<'a> {
    /// Returns the samples that have all of these labels; None if there are none.
    pub(crate) fn of(samples: &'a [Sample], labels: &[(&str, &str)]) -> Option<Self> {
        let has_all = |sample: &&Sample| {
            let mut labels = labels.iter();
            labels.all(|(name, value)| sample.label(name) == *value)
        };
        let samples: Vec<&Sample> = samples.iter().filter(has_all).collect();
        (!samples.is_empty()).then_some(Self { samples })
    }

    /// Returns a figure of each sample.
    pub(crate) fn each(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(|sample| figure(sample)).collect()
    }

    /// Returns the wall times.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        self.each(|sample| sample.real_seconds)
    }

    /// Returns how a figure lies.
    pub(crate) fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(&self.each(figure)).expect("a group has samples")
    }

    /// Returns the median wall time.
    pub(crate) fn median(&self) -> f64 {
        self.spread(|sample| sample.real_seconds).median
    }

    /// Returns how many of what a sample handles were handled a second, by the median.
    #[expect(clippy::cast_precision_loss, reason = "rates have a few digits")]
    pub(crate) fn per_second(&self, handled: impl Fn(&Sample) -> Option<u64>) -> Option<f64> {
        let seconds = self.median();
        let handled = handled(self.samples[0]).filter(|_| seconds > 0.0)?;
        Some(handled as f64 / seconds)
    }

    /// Returns where the wall time went; None if none passed.
    pub(crate) fn shares(&self) -> Option<Shares> {
        Shares::of(&self.samples)
    }

    /// Returns the most memory of all runs.
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        let peaks = self.samples.iter().filter_map(|sample| sample.peak_bytes);
        peaks.max()
    }

    /// Returns what the proofs of those samples that have it say.
    pub(crate) fn proofs<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a Value> + 's {
        let samples = self.samples.iter();
        samples.filter_map(move |sample| sample.proof.get(name))
    }

    /// Returns the operations of all rounds: name, number, and the times of those that were timed.
    pub(crate) fn operations(&self) -> Vec<(&'a str, u64, Latencies)> {
        let mut all: Vec<(&str, u64, Latencies)> = Vec::new();
        for sample in &self.samples {
            let counts = sample.proof.get("operations");
            for (name, latencies) in &sample.latencies {
                let done = counts.and_then(|counts| counts.get(name)?.as_u64());
                let done = done.unwrap_or(latencies.count());
                match all.iter_mut().find(|(known, ..)| known == name) {
                    Some((_, number, merged)) => {
                        *number += done;
                        merged.merge(latencies);
                    }
                    None => all.push((name, done, latencies.clone())),
                }
            }
        }
        all
    }
}
