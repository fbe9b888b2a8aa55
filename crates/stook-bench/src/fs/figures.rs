//! Samples sorted into cells: one for each target, phase and tool.

use crate::latency::Latencies;
use crate::record::Sample;
use crate::shares::Shares;
use crate::statistics::Spread;

/// Stands in the proof of a sample before which the caches were dropped.
pub(super) const DROPPED: &str = "caches_dropped";

/// Targets, phases and tools, each in the order in which they came first.
pub(super) struct Figures<'a> {
    pub(super) targets: Vec<&'a str>,
    pub(super) phases: Vec<&'a str>,
    pub(super) tools: Vec<&'a str>,
    samples: &'a [Sample],
}

/// The samples of one phase on one target with one tool.
pub(super) struct Cell<'a> {
    samples: Vec<&'a Sample>,
}

impl<'a> Figures<'a> {
    pub(super) fn new(samples: &'a [Sample]) -> Self {
        Self {
            targets: labels(samples, "target"),
            phases: labels(samples, "phase"),
            tools: labels(samples, "tool"),
            samples,
        }
    }

    /// Returns the samples with these labels; None if there are none.
    pub(super) fn cell(&self, target: &str, phase: &str, tool: &str) -> Option<Cell<'a>> {
        let is_wanted = |sample: &&Sample| {
            [("target", target), ("phase", phase), ("tool", tool)]
                .iter()
                .all(|(name, value)| sample.label(name) == *value)
        };
        let samples: Vec<&Sample> = self.samples.iter().filter(is_wanted).collect();
        (!samples.is_empty()).then_some(Cell { samples })
    }

    /// Returns how many rounds there are.
    pub(super) fn rounds(&self) -> u32 {
        self.samples
            .iter()
            .map(|sample| sample.round)
            .max()
            .unwrap_or(0)
    }
}

fn labels<'a>(samples: &'a [Sample], name: &str) -> Vec<&'a str> {
    let mut labels = Vec::new();
    for label in samples.iter().map(|sample| sample.label(name)) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

impl Cell<'_> {
    /// Returns the wall times, in seconds.
    pub(super) fn seconds(&self) -> Vec<f64> {
        self.samples
            .iter()
            .map(|sample| sample.real_seconds)
            .collect()
    }

    /// Returns how the wall times lie.
    pub(super) fn spread(&self) -> Spread {
        Spread::of(&self.seconds()).expect("a cell has samples")
    }

    /// Returns how many files were handled a second, by the median.
    pub(super) fn files_per_second(&self) -> Option<f64> {
        self.per_second(self.samples[0].files)
    }

    /// Returns how many bytes were handled a second, by the median.
    pub(super) fn bytes_per_second(&self) -> Option<f64> {
        self.per_second(self.samples[0].bytes)
    }

    #[expect(clippy::cast_precision_loss, reason = "rates have a few digits")]
    fn per_second(&self, handled: Option<u64>) -> Option<f64> {
        let seconds = self.spread().median;
        handled
            .filter(|_| seconds > 0.0)
            .map(|handled| handled as f64 / seconds)
    }

    /// Returns where the wall time went; None if none passed.
    pub(super) fn shares(&self) -> Option<Shares> {
        Shares::of(&self.samples)
    }

    /// Returns true if the caches were dropped before each run.
    pub(super) fn is_cold(&self) -> bool {
        let mut dropped = self.samples.iter().map(|sample| sample.proof.get(DROPPED));
        dropped.all(|dropped| dropped.is_some_and(|dropped| dropped == true))
    }

    /// Returns the operations of all rounds: name, number, and the times of those that were timed.
    pub(super) fn operations(&self) -> Vec<(&str, u64, Latencies)> {
        let mut all: Vec<(&str, u64, Latencies)> = Vec::new();
        for sample in &self.samples {
            for (name, latencies) in &sample.latencies {
                let done = sample
                    .proof
                    .get("operations")
                    .and_then(|done| done.get(name)?.as_u64());
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
