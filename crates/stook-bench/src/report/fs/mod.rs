//! The part about file systems: phases of work on small files, on several targets, by several tools.

mod drawn;
mod words;

use super::advice;
use super::case::{Case, cases, find, values};
use super::measures::{latency_columns, measure_columns};
use super::part::{Part, listed};
use super::sheet::Sheet;
use crate::record::Results;

const LABELS: [&str; 3] = ["target", "phase", "tool"];
const TARGET: usize = 0;
const PHASE: usize = 1;
const TOOL: usize = 2;
/// The tool that others are compared with, if it was measured.
const USUAL: &str = "system";
/// More targets than these are counted in the title, not named.
const NAMED: usize = 3;
/// The tool that findings are about.
const OURS: &str = "stook";

/// The cases of a run, and the different values of their labels.
struct View<'a> {
    cases: Vec<Case<'a>>,
    targets: Vec<String>,
    phases: Vec<String>,
    /// The one that the others are compared with first.
    tools: Vec<String>,
}

/// Returns what is to be said about a run of `stook bench fs`.
pub(super) fn part(results: &Results) -> Part {
    let view = View::of(cases(&results.samples, &LABELS));
    let said = advice::of(results);
    let mut part = Part {
        title: view.title(),
        measured: view.measured(results),
        findings: view.findings(said),
        exhibits: Vec::new(),
        sheets: Vec::new(),
    };
    view.times(&mut part);
    view.rates(&mut part);
    view.tools_against_each_other(&mut part);
    view.latencies(&mut part);
    part.sheet(view.overview());
    part.sheet(view.everything());
    part.sheet(view.percentiles());
    part
}

impl<'a> View<'a> {
    fn of(cases: Vec<Case<'a>>) -> Self {
        let mut tools = values(&cases, TOOL);
        // The system's tools are what all are compared with. Stable: others keep their order.
        tools.sort_by_key(|tool| tool != USUAL);
        Self {
            targets: values(&cases, TARGET),
            phases: values(&cases, PHASE),
            tools,
            cases,
        }
    }

    fn title(&self) -> String {
        match self.targets.len() {
            0..=NAMED => format!("File systems: {}", listed(&self.targets)),
            more => format!("File systems: {more} targets"),
        }
    }

    fn case(&self, target: &str, phase: &str, tool: &str) -> Option<&Case<'a>> {
        find(&self.cases, &[target, phase, tool])
    }

    fn seconds(&self, target: &str, phase: &str, tool: &str) -> Vec<f64> {
        self.case(target, phase, tool)
            .map(Case::seconds)
            .unwrap_or_default()
    }

    /// The table of targets by phases.
    fn overview(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Median seconds by phase",
            "A dash stands for what was not measured.",
        );
        let tools = |target| self.tools.iter().map(move |tool| (target, tool));
        let rows: Vec<(&String, &String)> = self.targets.iter().flat_map(tools).collect();
        sheet.texts("target", rows.iter().map(|(target, _)| (*target).clone()));
        sheet.texts("tool", rows.iter().map(|(_, tool)| (*tool).clone()));
        for phase in &self.phases {
            let cells = rows
                .iter()
                .map(|(target, tool)| self.case(target, phase, tool).map(Case::median));
            sheet.figures(phase, cells);
        }
        sheet
    }

    fn everything(&self) -> Sheet {
        let mut sheet = Sheet::new("Every phase", "");
        for (place, name) in LABELS.into_iter().enumerate() {
            sheet.texts(
                name,
                self.cases.iter().map(|case| case.labels[place].clone()),
            );
        }
        measure_columns(&mut sheet, &self.cases);
        sheet
    }

    fn percentiles(&self) -> Sheet {
        let note = "Percentiles are at most 6.25 % above the true ones; the count and the longest time are exact.";
        let mut sheet = Sheet::new("Times of single operations", note);
        latency_columns(&mut sheet, &self.cases, &LABELS);
        sheet
    }
}
