//! The samples of a bench, by target, phase and tool.

use crate::groups::{Group, values};
use crate::record::Sample;

/// Stands in the proof of a sample before which the caches were dropped.
pub(super) const DROPPED: &str = "caches_dropped";

/// Targets, phases and tools, each in the order in which they came first.
pub(super) struct Figures<'a> {
    pub(super) targets: Vec<&'a str>,
    pub(super) phases: Vec<&'a str>,
    pub(super) tools: Vec<&'a str>,
    samples: &'a [Sample],
}

impl<'a> Figures<'a> {
    pub(super) fn new(samples: &'a [Sample]) -> Self {
        Self {
            targets: values(samples, "target"),
            phases: values(samples, "phase"),
            tools: values(samples, "tool"),
            samples,
        }
    }

    /// Returns the samples of one phase on one target with one tool; None if there are none.
    pub(super) fn group(&self, target: &str, phase: &str, tool: &str) -> Option<Group<'a>> {
        let labels = [("target", target), ("phase", phase), ("tool", tool)];
        Group::of(self.samples, &labels)
    }

    /// Returns how many rounds there are.
    pub(super) fn rounds(&self) -> u32 {
        let rounds = self.samples.iter().map(|sample| sample.round);
        rounds.max().unwrap_or(0)
    }
}
