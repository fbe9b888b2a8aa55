//! Samples that belong together: those whose labels are the same, and what was measured of them.

use crate::figure::{Chart, Cloud, Point, Scatter, Unit, clean};
use crate::groups::{Group, unique};
use crate::record::{Kind, Results, Sample};
use crate::statistics::{Ratio, ratio_of_medians};

/// The samples of one command under the same conditions.
pub(super) struct Case<'a> {
    /// The values of the labels of its kind of bench. What other labels say stands behind the first one.
    pub(super) labels: Vec<String>,
    pub(super) group: Group<'a>,
}

/// The cases of a run.
pub(super) struct Cases<'a> {
    pub(super) labels: &'static [&'static str],
    /// In the order in which they come first.
    pub(super) all: Vec<Case<'a>>,
    pub(super) rounds: u32,
}

/// Returns the labels of a kind of bench.
pub(super) fn labels(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Fs => &["target", "phase", "tool"],
        Kind::Cache => &["state"],
        Kind::Update => &["tool", "create", "update", "operation"],
    }
}

/// Returns what a kind of bench is about.
pub(super) fn subject(kind: Kind) -> &'static str {
    match kind {
        Kind::Fs => "File systems",
        Kind::Cache => "Caches",
        Kind::Update => "Archivers",
    }
}

impl<'a> Cases<'a> {
    pub(super) fn of(results: &'a Results) -> Self {
        let names = labels(results.header.kind);
        let mut all: Vec<Case<'a>> = Vec::new();
        for sample in &results.samples {
            let labels = labels_of(sample, names);
            match all.iter_mut().find(|case| case.labels == labels) {
                Some(case) => case.group.samples.push(sample),
                None => all.push(Case {
                    labels,
                    group: Group {
                        samples: vec![sample],
                    },
                }),
            }
        }
        let rounds = results.samples.iter().map(|sample| sample.round);
        Self {
            labels: names,
            all,
            rounds: rounds.max().unwrap_or(0),
        }
    }

    /// Returns the different values of a label, in the order in which they come first.
    pub(super) fn values(&self, label: usize) -> Vec<String> {
        unique(self.all.iter().map(|case| case.labels[label].clone()))
    }

    /// Returns the case with these labels.
    pub(super) fn find(&self, labels: &[impl AsRef<str>]) -> Option<&Case<'a>> {
        let is_it = |case: &&Case<'a>| {
            let pairs = case.labels.iter().zip(labels);
            case.labels.len() == labels.len() && pairs.into_iter().all(|(a, b)| a == b.as_ref())
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

impl Case<'_> {
    /// Returns what a function finds in the samples that have it.
    pub(super) fn of(&self, value: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        let samples = self.group.samples.iter();
        samples.filter_map(|sample| value(sample)).collect()
    }

    /// Returns how much longer it took than another one.
    pub(super) fn ratio_to(&self, other: &Case<'_>) -> Option<Ratio> {
        ratio_of_medians(&self.group.seconds(), &other.group.seconds())
    }

    /// Returns the most memory held, in bytes, of each sample that has it.
    pub(super) fn peaks(&self) -> Vec<f64> {
        self.of(|sample| sample.peak_bytes.map(as_float))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures are shown with three digits"
)]
pub(super) fn as_float(count: u64) -> f64 {
    count as f64
}

/// Returns something handled per second.
pub(super) fn per_second(count: Option<u64>, sample: &Sample) -> Option<f64> {
    let rate = as_float(count?) / sample.real_seconds;
    (sample.real_seconds > 0.0).then_some(rate)
}

/// Two cases of the same that are drawn against each other: the series, the name of the point, and the cases.
pub(super) type Against<'a> = (String, String, &'a Case<'a>, &'a Case<'a>);

/// Returns median times against each other; below the line of equality, `up` takes less.
pub(super) fn scatter<'a>(across: &str, up: &str, all: impl Iterator<Item = Against<'a>>) -> Chart {
    let mut clouds: Vec<Cloud> = Vec::new();
    for (name, label, x, y) in all {
        let (x, y) = (x.group.median(), y.group.median());
        let point = Point { x, y, label };
        match clouds.iter_mut().find(|cloud| cloud.name == name) {
            Some(cloud) => cloud.points.push(point),
            None => clouds.push(Cloud {
                name,
                points: vec![point],
            }),
        }
    }
    Chart::Scatter(Scatter {
        across: format!("Seconds, {across}"),
        up: format!("Seconds, {up}"),
        unit: Unit::Seconds,
        clouds,
    })
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
        let rates = |case: &Case<'_>| case.of(|sample| per_second(sample.files, sample));
        let hot = cases.find(&["hot"]).unwrap();
        let shares = hot.group.shares().unwrap();
        assert_eq!(
            (hot.group.seconds(), rates(hot)),
            (vec![2.0, 4.0], vec![50.0, 25.0])
        );
        assert_eq!((shares.cpu, shares.blocked()), (0.25, None));
        // No time passed: there is no rate and no share.
        let none = cases.find(&["(no name)"]).unwrap();
        assert_eq!((rates(none), none.group.shares()), (vec![], None));
    }
}
