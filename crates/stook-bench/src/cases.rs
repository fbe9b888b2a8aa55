//! Samples that belong together because their labels are the same: the one grouping from which tables, figures, advice and
//! warnings of all benches come.

use serde_json::Value;

use crate::figure::clean;
use crate::latency::Latencies;
use crate::record::{Kind, Results, Sample};
use crate::shares::Shares;
use crate::statistics::{Ratio, Spread, median, ratio_of_medians};

/// The samples of one command under the same conditions, in the order of their rounds; there is one at least.
#[derive(Debug, Clone)]
pub(crate) struct Case<'a> {
    /// The values of the labels of its kind of bench. What other labels say stands behind the first one.
    pub(crate) labels: Vec<String>,
    pub(crate) samples: Vec<&'a Sample>,
}

/// All cases of some samples.
#[derive(Debug)]
pub(crate) struct Cases<'a> {
    pub(crate) labels: &'static [&'static str],
    /// In the order in which they come first.
    pub(crate) all: Vec<Case<'a>>,
    pub(crate) rounds: u32,
}

/// Returns the labels of a kind of bench.
pub(crate) fn labels(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Fs => &["target", "phase", "tool"],
        Kind::Cache => &["state"],
        Kind::Update => &["tool", "create", "update", "operation"],
    }
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

impl<'a> Cases<'a> {
    pub(crate) fn of(results: &'a Results) -> Self {
        Self::of_samples(results.header.kind, &results.samples)
    }

    pub(crate) fn of_samples(kind: Kind, samples: &'a [Sample]) -> Self {
        let names = labels(kind);
        let mut all: Vec<Case<'a>> = Vec::new();
        for sample in samples {
            let labels = labels_of(sample, names);
            match all.iter_mut().find(|case| case.labels == labels) {
                Some(case) => case.samples.push(sample),
                None => all.push(Case {
                    labels,
                    samples: vec![sample],
                }),
            }
        }
        let rounds = samples.iter().map(|sample| sample.round);
        Self {
            labels: names,
            all,
            rounds: rounds.max().unwrap_or(0),
        }
    }

    /// Returns the different values of a label, in the order in which they come first.
    pub(crate) fn values(&self, label: usize) -> Vec<String> {
        unique(self.all.iter().map(|case| case.labels[label].clone()))
    }

    /// Returns the case with these labels.
    pub(crate) fn find(&self, labels: &[impl AsRef<str>]) -> Option<&Case<'a>> {
        let is_it = |case: &&Case<'a>| {
            let own = case.labels.iter().map(String::as_str);
            own.eq(labels.iter().map(AsRef::as_ref))
        };
        self.all.iter().find(is_it)
    }
}

fn labels_of(sample: &Sample, names: &[&str]) -> Vec<String> {
    let shown = |name: &&str| match sample.label(name) {
        "" => "(no name)".to_owned(),
        label => clean(label),
    };
    let mut labels: Vec<String> = names.iter().map(shown).collect();
    let is_other = |(name, _): &(&String, &String)| !names.contains(&name.as_str());
    let others = sample.labels.iter().filter(is_other);
    let others: Vec<String> = others.map(|(_, value)| clean(value)).collect();
    if !others.is_empty() {
        labels[0] = format!("{} ({})", labels[0], others.join(", "));
    }
    labels
}

impl<'a> Case<'a> {
    /// Returns the samples that have all of these labels; None if there are none.
    pub(crate) fn with(samples: &'a [Sample], labels: &[(&str, &str)]) -> Option<Self> {
        let has_all = |sample: &&Sample| {
            let mut labels = labels.iter();
            labels.all(|(name, value)| sample.label(name) == *value)
        };
        let samples: Vec<&Sample> = samples.iter().filter(has_all).collect();
        let labels = labels.iter().map(|(_, value)| (*value).to_owned());
        (!samples.is_empty()).then(|| Self {
            labels: labels.collect(),
            samples,
        })
    }

    /// Returns a figure of each sample.
    pub(crate) fn each(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(|sample| figure(sample)).collect()
    }

    /// Returns a figure of those samples that have it.
    pub(crate) fn known(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        let samples = self.samples.iter();
        samples.filter_map(|sample| figure(sample)).collect()
    }

    /// Returns the wall times.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        self.each(|sample| sample.real_seconds)
    }

    /// Returns how a figure lies.
    pub(crate) fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(&self.each(figure)).expect("a case has samples")
    }

    /// Returns the median wall time.
    pub(crate) fn median(&self) -> f64 {
        self.spread(|sample| sample.real_seconds).median
    }

    /// Returns what was handled, by the median, per second of the median wall time; None if no time passed.
    pub(crate) fn rate(&self, handled: impl Fn(&Sample) -> Option<u64>) -> Option<f64> {
        let handled = median(&self.known(|sample| handled(sample).map(as_float)))?;
        let seconds = self.median();
        (seconds > 0.0).then_some(handled / seconds)
    }

    /// Returns how much longer it took than another one.
    pub(crate) fn ratio_to(&self, other: &Case<'_>) -> Option<Ratio> {
        ratio_of_medians(&self.seconds(), &other.seconds())
    }

    /// Returns where the wall time went; None if none passed.
    pub(crate) fn shares(&self) -> Option<Shares> {
        Shares::of(&self.samples)
    }

    /// Returns the most memory held, in bytes, of each sample that has it.
    pub(crate) fn peaks(&self) -> Vec<f64> {
        self.known(|sample| sample.peak_bytes.map(as_float))
    }

    /// Returns the medians of the phases that the command told, in the order in which they come first.
    pub(crate) fn phases(&self) -> Vec<(String, f64)> {
        let all = || self.samples.iter().flat_map(|sample| &sample.phases);
        let of_name = |name: &String| {
            let own = all().filter(|phase| phase.name == *name);
            median(&own.map(|phase| phase.seconds).collect::<Vec<f64>>())
        };
        let names = unique(all().map(|phase| phase.name.clone())).into_iter();
        names
            .filter_map(|name| Some((name.clone(), of_name(&name)?)))
            .collect()
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

#[expect(
    clippy::cast_precision_loss,
    reason = "figures are shown with three digits"
)]
pub(crate) fn as_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Header;

    fn sample(labels: &[(&str, &str)], seconds: f64) -> Sample {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Sample {
            labels: labels.collect(),
            real_seconds: seconds,
            user_seconds: seconds / 4.0,
            files: Some(100),
            ..Sample::default()
        }
    }

    #[test]
    fn samples_with_the_same_labels_are_one_case() {
        let results = Results {
            header: Header::new(Kind::Cache, ""),
            samples: vec![
                sample(&[("state", "hot")], 2.0),
                sample(&[("state", "cold")], 3.0),
                sample(&[("state", "hot")], 4.0),
                sample(&[("state", "hot"), ("place", "local")], 1.0),
                sample(&[], 0.0),
            ],
        };
        let cases = Cases::of(&results);
        assert_eq!(cases.values(0), ["hot", "cold", "hot (local)", "(no name)"]);
        let rate = |case: &Case<'_>| case.rate(|sample| sample.files);
        let hot = cases.find(&["hot"]).unwrap();
        let shares = hot.shares().unwrap();
        assert_eq!(
            (hot.seconds(), hot.median(), rate(hot)),
            (vec![2.0, 4.0], 3.0, Some(100.0 / 3.0))
        );
        assert_eq!((shares.cpu, shares.blocked()), (0.25, None));
        // No time passed: there is no rate and no share.
        let none = cases.find(&["(no name)"]).unwrap();
        assert_eq!((rate(none), none.shares()), (None, None));
    }
}
