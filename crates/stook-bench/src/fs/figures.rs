//! The samples of a bench, by target, phase and tool.

use crate::cases::{Case, Cases};
use crate::record::{Kind, Sample};
use crate::table::Table;

/// Stands in the proof of a sample before which the caches were dropped.
pub(super) const DROPPED: &str = "caches_dropped";

/// The tool that others are compared with, if it was measured.
const USUAL: &str = "system";

/// Targets, phases and tools, each in the order in which they came first.
pub(crate) struct Figures<'a> {
    pub(crate) cases: Cases<'a>,
    pub(crate) targets: Vec<String>,
    pub(crate) phases: Vec<String>,
    /// The one that the others are compared with first.
    pub(crate) tools: Vec<String>,
}

impl<'a> Figures<'a> {
    pub(crate) fn of(samples: &'a [Sample]) -> Self {
        let cases = Cases::of_samples(Kind::Fs, samples);
        let [targets, phases, mut tools] = [0, 1, 2].map(|label| cases.values(label));
        // Stable: others keep their order.
        tools.sort_by_key(|tool| tool != USUAL);
        Self {
            cases,
            targets,
            phases,
            tools,
        }
    }

    /// Returns the samples of one phase on one target with one tool; None if there are none.
    pub(crate) fn case(&self, target: &str, phase: &str, tool: &str) -> Option<&Case<'a>> {
        self.cases.find(&[target, phase, tool])
    }

    /// Returns the medians: rows are targets and tools, columns phases.
    pub(crate) fn overview(&self) -> Table {
        let tools = |target| self.tools.iter().map(move |tool| (target, tool));
        let rows: Vec<(&String, &String)> = self.targets.iter().flat_map(tools).collect();
        let mut table = Table::default();
        table.texts("target", rows.iter().map(|(target, _)| (*target).clone()));
        table.texts("tool", rows.iter().map(|(_, tool)| (*tool).clone()));
        for phase in &self.phases {
            let cases = rows
                .iter()
                .map(|(target, tool)| self.case(target, phase, tool));
            table.figures(phase, cases.map(|case| case.map(Case::median)));
        }
        table
    }
}
