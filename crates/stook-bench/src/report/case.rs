//! Samples that belong together: those whose labels are the same.

use std::collections::BTreeMap;

use crate::figure::clean;
use crate::latency::Latencies;
use crate::record::Sample;
use crate::shares::Shares;
use crate::statistics::Spread;

/// The samples of one command under the same conditions.
pub(super) struct Case<'a> {
    /// The values of the labels that were asked for. What other labels say stands behind the first one.
    pub(super) labels: Vec<String>,
    /// Its samples, in their order.
    pub(super) samples: Vec<&'a Sample>,
}

/// What charts show of every run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Wall time.
    Seconds,
    /// Files a second.
    FileRate,
    /// The most memory, in bytes.
    Peak,
}

impl Measure {
    /// Returns what it is in each sample that has it.
    pub(super) fn all(self, samples: &[&Sample]) -> Vec<f64> {
        let of = |sample: &&Sample| match self {
            Self::Seconds => Some(sample.real_seconds),
            Self::FileRate => per_second(sample.files?, sample),
            Self::Peak => sample.peak_bytes.map(as_float),
        };
        samples.iter().filter_map(of).collect()
    }
}

/// Returns the cases in the order in which they come first, by the labels of these names.
pub(super) fn cases<'a>(samples: &'a [Sample], names: &[&str]) -> Vec<Case<'a>> {
    let mut cases: Vec<Case<'a>> = Vec::new();
    for sample in samples {
        let labels = labels_of(sample, names);
        match cases.iter_mut().find(|case| case.labels == labels) {
            Some(case) => case.samples.push(sample),
            None => cases.push(Case {
                labels,
                samples: vec![sample],
            }),
        }
    }
    cases
}

fn labels_of(sample: &Sample, names: &[&str]) -> Vec<String> {
    let mut labels: Vec<String> = names.iter().map(|name| shown(sample.label(name))).collect();
    let others = sample
        .labels
        .iter()
        .filter(|(name, _)| !names.contains(&name.as_str()));
    let others: Vec<String> = others.map(|(_, value)| clean(value)).collect();
    if let (Some(first), false) = (labels.first_mut(), others.is_empty()) {
        *first = format!("{first} ({})", others.join(", "));
    }
    labels
}

fn shown(label: &str) -> String {
    if label.is_empty() {
        "(no name)".to_owned()
    } else {
        clean(label)
    }
}

/// Returns the different values of one label, in the order in which they come first.
pub(super) fn values(cases: &[Case<'_>], label: usize) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for case in cases {
        if !values.contains(&case.labels[label]) {
            values.push(case.labels[label].clone());
        }
    }
    values
}

/// Returns the case with these labels.
pub(super) fn find<'a, 'b>(cases: &'b [Case<'a>], labels: &[&str]) -> Option<&'b Case<'a>> {
    cases.iter().find(|case| case.labels == labels)
}

impl Case<'_> {
    /// Returns wall times.
    pub(super) fn seconds(&self) -> Vec<f64> {
        self.measure(Measure::Seconds)
    }

    /// Returns what a function finds in the samples that have it.
    pub(super) fn of(&self, value: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        self.samples
            .iter()
            .filter_map(|sample| value(sample))
            .collect()
    }

    pub(super) fn spread(&self) -> Option<Spread> {
        Spread::of(&self.seconds())
    }

    /// Returns the median wall time.
    pub(super) fn median(&self) -> f64 {
        self.spread().map_or(0.0, |spread| spread.median)
    }

    /// Returns where the wall time went; None if no time passed.
    pub(super) fn shares(&self) -> Option<Shares> {
        Shares::of(&self.samples)
    }

    /// Returns what a measure is in each sample that has it.
    pub(super) fn measure(&self, measure: Measure) -> Vec<f64> {
        measure.all(&self.samples)
    }

    /// Returns bytes a second.
    pub(super) fn byte_rates(&self) -> Vec<f64> {
        self.of(|sample| per_second(sample.bytes?, sample))
    }

    /// Returns the times of single operations, of all samples together.
    pub(super) fn latencies(&self) -> BTreeMap<&str, Latencies> {
        let mut all: BTreeMap<&str, Latencies> = BTreeMap::new();
        for (name, latencies) in self.samples.iter().flat_map(|sample| &sample.latencies) {
            all.entry(name).or_default().merge(latencies);
        }
        all
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures are shown with three digits"
)]
pub(super) fn as_float(count: u64) -> f64 {
    count as f64
}

fn per_second(count: u64, sample: &Sample) -> Option<f64> {
    (sample.real_seconds > 0.0).then(|| as_float(count) / sample.real_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(labels: &[(&str, &str)], seconds: f64) -> Sample {
        Sample {
            labels: labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            real_seconds: seconds,
            user_seconds: seconds / 4.0,
            files: Some(100),
            ..Sample::default()
        }
    }

    #[test]
    fn samples_with_the_same_labels_are_one_case() {
        let samples = [
            sample(&[("state", "hot")], 2.0),
            sample(&[("state", "cold")], 3.0),
            sample(&[("state", "hot")], 4.0),
            sample(&[("state", "hot"), ("place", "local")], 1.0),
            sample(&[], 0.0),
        ];
        let cases = cases(&samples, &["state"]);
        assert_eq!(
            values(&cases, 0),
            ["hot", "cold", "hot (local)", "(no name)"]
        );
        let hot = find(&cases, &["hot"]).unwrap();
        assert_eq!(hot.seconds(), [2.0, 4.0]);
        let shares = hot.shares().unwrap();
        assert_eq!((shares.cpu, shares.blocked()), (0.25, None));
        assert_eq!(hot.measure(Measure::FileRate), [50.0, 25.0]);
        // No time passed: there is no rate and no share.
        let none = find(&cases, &["(no name)"]).unwrap();
        assert_eq!(
            (none.measure(Measure::FileRate), none.shares()),
            (vec![], None)
        );
    }
}
