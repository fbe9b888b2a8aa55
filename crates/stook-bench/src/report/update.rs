//! The section about programs that archive and update a tree: the before/after study of an archiver.

use super::section::{Against, Section, scatter};
use super::tables::{measures, phases, proofs};
use super::words::{count, file_names, geometric, listed};
use crate::cases::Case;
use crate::figure::{Bars, Chart, Group, Row, Unit};
use crate::record::{Results, Sample};
use crate::statistics::{Ratio, median};
use crate::table::Table;
use crate::update::{Numbers, Pair};

const TOOL: usize = 0;
const OPERATION: usize = 3;

/// Returns what is to be said about a run of `stook bench update`.
pub(super) fn section(results: &Results) -> Section {
    let view = Numbers::of(results);
    let mut section = Section {
        title: format!("Archivers: {}", listed(&view.tools)),
        measured: format!(
            "{} with {}, over {} of directories, in {}.",
            listed(&view.operations),
            listed(&view.tools),
            count(view.pairs.len() as u64, "ordered pair", "ordered pairs"),
            count(u64::from(view.cases.rounds), "round", "rounds"),
        ),
        findings: view.findings(),
        ..Section::default()
    };
    let caption = "Medians over all pairs of directories; every dot is a run, so the spread is mostly that of the directories. Shorter is better.";
    let times = view.bars("Seconds", Unit::Seconds, Case::seconds);
    section.figure("time", "Time by phase", caption, times);
    if let Some(chart) = view.sending() {
        let caption = "Medians of all pairs. Sending goes on beside building, so all should take as long as the slower one.";
        section.figure("sending", "Building and sending", caption, chart);
    }
    view.against_each_other(&mut section);
    if view.cases.all.iter().any(|case| !case.peaks().is_empty()) {
        let caption = "The most memory that one process of the tool held. Less is better.";
        let peaks = view.bars("Memory", Unit::Bytes, Case::peaks);
        section.figure("memory", "Peak memory by phase", caption, peaks);
    }
    if let Some(first) = view.tools.first() {
        let title = format!("Time of the other tools / time of {first}, with the same store");
        let note = "Ratios of medians with their 95 % interval by resampling.";
        section.table(&title, note, view.ratio_table());
    }
    section.table("Every operation", "", measures(&view.cases));
    let note = "As the programs said themselves: medians over the rounds, and their share of the whole time.";
    section.table("Phases", note, phases(&view.cases));
    let note = "Over all rounds: numbers from the least to the greatest.";
    section.table("What was found beside the times", note, proofs(&view.cases));
    section
}

impl<'a> Numbers<'a> {
    /// Returns what another tool and the one it is compared with took for an operation on a pair.
    fn both(&self, other: &str, pair: &Pair, operation: &str) -> Option<[&Case<'a>; 2]> {
        let case = |tool| self.case(tool, pair, operation);
        Some([case(other)?, case(self.first_of(other))?])
    }

    /// The ratio of another tool's median time to the first one's.
    fn ratio(&self, other: &str, pair: &Pair, operation: &str) -> Option<f64> {
        let [own, first] = self.both(other, pair, operation)?.map(Case::median);
        (first > 0.0).then(|| own / first)
    }

    fn findings(&self) -> Vec<String> {
        let of_tool = |other: &String| {
            let operations = self.operations.iter();
            let times = operations.filter_map(|operation| self.time_in_words(other, operation));
            times
                .chain(self.memory_in_words(other))
                .collect::<Vec<String>>()
        };
        self.others().flat_map(of_tool).collect()
    }

    fn time_in_words(&self, other: &str, operation: &str) -> Option<String> {
        let pairs = self.pairs.iter();
        let ratios = pairs.filter_map(|pair| self.ratio(other, pair, operation));
        let (mean, low, high) = geometric(ratios)?;
        let [mean, low, high] = [mean, low, high].map(|ratio| Unit::Ratio.show(ratio));
        let over_pairs = match self.pairs.len() {
            1 => String::new(),
            many => format!(", the geometric mean over {many} pairs, from {low} to {high}"),
        };
        let first = self.first_of(other);
        Some(format!(
            "`{operation}`: {other} takes {mean} the time of {first}{over_pairs}."
        ))
    }

    /// How much memory another tool takes, as a multiple of the first one's; None if it is not known of either.
    fn memory_in_words(&self, other: &str) -> Option<String> {
        let of_operation = |operation: &String| {
            let ratio = |pair| {
                let [own, first] = self.both(other, pair, operation)?;
                let (own, first) = (median(&own.peaks())?, median(&first.peaks())?);
                (first > 0.0).then(|| own / first)
            };
            let (mean, ..) = geometric(self.pairs.iter().filter_map(ratio))?;
            Some(format!("{} to `{operation}`", Unit::Ratio.show(mean)))
        };
        let ratios: Vec<String> = self.operations.iter().filter_map(of_operation).collect();
        let (first, listed) = (self.first_of(other), listed(&ratios));
        (!ratios.is_empty()).then(|| {
            format!("At its peak {other} holds, as a multiple of the memory of {first}, {listed}.")
        })
    }

    fn bars(&self, axis: &str, unit: Unit, of: impl Fn(&Case<'a>) -> Vec<f64>) -> Chart {
        let row = |tool: &String, operation: &String| {
            let is_it = |case: &&Case<'_>| {
                case.labels[TOOL] == *tool && case.labels[OPERATION] == *operation
            };
            Row {
                name: tool.clone(),
                samples: self.cases.all.iter().filter(is_it).flat_map(&of).collect(),
                parts: Vec::new(),
            }
        };
        let group = |operation: &String| Group {
            label: operation.clone(),
            rows: self.tools.iter().map(|tool| row(tool, operation)).collect(),
        };
        Chart::Bars(Bars {
            axis: axis.to_owned(),
            unit,
            parts: Vec::new(),
            groups: self.operations.iter().map(group).collect(),
            span: None,
        })
    }

    /// What was sent to a store: all, building and sending beside each other.
    fn sending(&self) -> Option<Chart> {
        type Time = fn(&Sample) -> Option<f64>;
        let times: [(&str, Time); 3] = [
            ("all", |sample| Some(sample.real_seconds)),
            ("building", |sample| sample.building_seconds),
            ("sending", |sample| sample.sending_seconds),
        ];
        let row = |tool: &String, operation: &String, (name, time): (&str, Time)| {
            let case = self.of_pairs(tool, operation, None)?;
            let was_sent = !case.known(|sample| sample.sending_seconds).is_empty();
            was_sent.then(|| Row {
                name: format!("{tool}: {name}"),
                samples: case.known(time),
                parts: Vec::new(),
            })
        };
        let group = |operation: &String| Group {
            label: operation.clone(),
            rows: self
                .tools
                .iter()
                .flat_map(|tool| times.map(|time| row(tool, operation, time)))
                .flatten()
                .collect(),
        };
        let groups = self.operations.iter().map(group);
        let groups: Vec<Group> = groups.filter(|group| !group.rows.is_empty()).collect();
        (!groups.is_empty()).then(|| {
            Chart::Bars(Bars {
                axis: "Seconds".to_owned(),
                unit: Unit::Seconds,
                parts: Vec::new(),
                groups,
                span: None,
            })
        })
    }

    fn against_each_other(&self, section: &mut Section) {
        let names = file_names(&self.tools);
        for (other, name) in self.tools.iter().zip(names) {
            let first = self.first_of(other);
            if first == other {
                continue;
            }
            let points = self.operations.iter().flat_map(|operation| {
                let of_pair = move |pair: &Pair| -> Option<Against<'_>> {
                    let [own, first] = self.both(other, pair, operation)?;
                    Some((operation.clone(), arrow(pair), first, own))
                };
                self.pairs.iter().filter_map(of_pair)
            });
            let caption = format!(
                "A point for each operation on each pair of directories, medians. Below the dashed line {other} is faster."
            );
            if let Some(chart) = scatter(first, other, points) {
                let (name, title) = (
                    format!("scatter-{name}"),
                    format!("{other} against {first}"),
                );
                section.figure(&name, &title, &caption, chart);
            }
        }
    }

    fn ratio_table(&self) -> Table {
        let mut rows: Vec<([String; 3], Option<Ratio>)> = Vec::new();
        for other in self.others() {
            for operation in &self.operations {
                for pair in &self.pairs {
                    if let Some([own, first]) = self.both(other, pair, operation) {
                        let names = [other.clone(), operation.clone(), arrow(pair)];
                        rows.push((names, own.ratio_to(first)));
                    }
                }
            }
        }
        rows.retain(|(_, ratio)| ratio.is_some());
        let mut table = Table::default();
        for (place, title) in ["other tool", "operation", "directories"]
            .into_iter()
            .enumerate()
        {
            table.texts(title, rows.iter().map(|(names, _)| names[place].clone()));
        }
        let ratios: Vec<Option<Ratio>> = rows.into_iter().map(|(_, ratio)| ratio).collect();
        table.ratios(&ratios);
        table
    }
}

fn arrow(pair: &Pair) -> String {
    format!("{} to {}", pair.0, pair.1)
}
