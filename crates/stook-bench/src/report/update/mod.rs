//! The part about programs that archive and update a tree: the before/after study of an archiver.

mod memory;

use crate::figure::{Bars, Chart, Cloud, Group, Heat, Point, Scatter, Unit};
use crate::record::{Results, Sample};
use crate::statistics::{Ratio, ratio_of_medians};

use super::case::{Case, Measure, cases, find, values};
use super::measures::{measure_columns, proof_sheet};
use super::part::{Part, count, geometric, listed};
use super::sheet::Sheet;

const LABELS: [&str; 4] = ["tool", "create", "update", "operation"];
const TOOL: usize = 0;
const OPERATION: usize = 3;

/// The cases of a run, and the different values of their labels.
struct View<'a> {
    cases: Vec<Case<'a>>,
    /// The tool that was named first, as in the tables of the bench: ratios are of another one to it.
    first: String,
    others: Vec<String>,
    operations: Vec<String>,
    /// What was archived first, and what it was updated to.
    pairs: Vec<(String, String)>,
}

/// Returns what is to be said about a run of `stook bench update`.
pub(super) fn part(results: &Results) -> Part {
    let view = View::of(cases(&results.samples, &LABELS));
    let mut part = Part {
        title: format!("Archivers: {}", listed(&view.tools())),
        measured: view.measured(results),
        findings: view.findings(),
        exhibits: Vec::new(),
        sheets: Vec::new(),
    };
    let caption = "Medians over all pairs of directories; every dot is a run, so the spread is mostly that of the directories. Shorter is better.";
    part.figure(
        "time",
        "Time by phase",
        caption,
        view.bars("Seconds", Unit::Seconds, Measure::Seconds),
    );
    view.against_each_other(&mut part);
    if view
        .cases
        .iter()
        .any(|case| !case.measure(Measure::Peak).is_empty())
    {
        let caption = "The most memory that one process of the tool held. Less is better.";
        part.figure(
            "memory",
            "Peak memory by phase",
            caption,
            view.bars("Memory", Unit::Bytes, Measure::Peak),
        );
    }
    part.sheet(view.ratios());
    part.sheet(view.everything());
    part.sheet(proof_sheet(&view.cases, &LABELS));
    part
}

impl<'a> View<'a> {
    fn of(cases: Vec<Case<'a>>) -> Self {
        let mut others = values(&cases, TOOL);
        let first = if others.is_empty() {
            String::new()
        } else {
            others.remove(0)
        };
        let mut pairs = Vec::new();
        for case in &cases {
            let pair = (case.labels[1].clone(), case.labels[2].clone());
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        Self {
            operations: values(&cases, OPERATION),
            first,
            others,
            pairs,
            cases,
        }
    }

    fn tools(&self) -> Vec<String> {
        std::iter::once(&self.first)
            .chain(&self.others)
            .filter(|tool| !tool.is_empty())
            .cloned()
            .collect()
    }

    fn measured(&self, results: &Results) -> String {
        let rounds = results
            .samples
            .iter()
            .map(|sample| sample.round)
            .max()
            .unwrap_or(0);
        format!(
            "{} with {}, over {} of directories, in {}.",
            listed(&self.operations),
            listed(&self.tools()),
            count(self.pairs.len(), "ordered pair", "ordered pairs"),
            count(rounds as usize, "round", "rounds"),
        )
    }

    fn case(&self, tool: &str, pair: &(String, String), operation: &str) -> Option<&Case<'a>> {
        find(&self.cases, &[tool, &pair.0, &pair.1, operation])
    }

    /// The ratio of another tool's median time to the first one's.
    fn ratio(&self, other: &str, pair: &(String, String), operation: &str) -> Option<f64> {
        let own = self.case(other, pair, operation)?.median();
        let first = self.case(&self.first, pair, operation)?.median();
        (first > 0.0).then(|| own / first)
    }

    /// The operations that both another tool and the first one have.
    fn shared_operations(&self, other: &str) -> Vec<&String> {
        let is_shared = |operation: &&String| {
            self.pairs
                .iter()
                .any(|pair| self.ratio(other, pair, operation).is_some())
        };
        self.operations.iter().filter(is_shared).collect()
    }

    fn findings(&self) -> Vec<String> {
        let all = self.others.iter().flat_map(|other| {
            let times = self
                .operations
                .iter()
                .filter_map(|operation| self.time_in_words(other, operation));
            times
                .chain(self.memory_in_words(other))
                .collect::<Vec<String>>()
        });
        all.collect()
    }

    fn time_in_words(&self, other: &str, operation: &str) -> Option<String> {
        let ratios = self
            .pairs
            .iter()
            .filter_map(|pair| self.ratio(other, pair, operation));
        let (mean, low, high) = geometric(&ratios.collect::<Vec<f64>>())?;
        let show = |ratio| Unit::Ratio.show(ratio);
        let over_pairs = if self.pairs.len() > 1 {
            format!(
                ", the geometric mean over {} pairs, from {} to {}",
                self.pairs.len(),
                show(low),
                show(high)
            )
        } else {
            String::new()
        };
        Some(format!(
            "`{operation}`: {other} takes {} the time of {}{over_pairs}.",
            show(mean),
            self.first
        ))
    }

    fn bars(&self, axis: &str, unit: Unit, of: Measure) -> Chart {
        let series = self.tools();
        let group = |operation: &String| {
            let of_tool = |tool: &String| -> Vec<&Sample> {
                let cases = self.cases.iter().filter(|case| {
                    case.labels[TOOL] == *tool && case.labels[OPERATION] == *operation
                });
                cases.flat_map(|case| case.samples.clone()).collect()
            };
            let samples: Vec<Vec<&Sample>> = series.iter().map(of_tool).collect();
            Group {
                label: operation.clone(),
                samples: samples.iter().map(|samples| of.all(samples)).collect(),
            }
        };
        let groups = self.operations.iter().map(group).collect();
        Chart::Bars(Bars {
            axis: axis.to_owned(),
            unit,
            series,
            groups,
        })
    }

    fn against_each_other(&self, part: &mut Part) {
        for (other, name) in self.others.iter().zip(super::file_names(&self.others)) {
            let first = &self.first;
            if self.shared_operations(other).is_empty() {
                continue;
            }
            let caption = format!(
                "A point for each operation on each pair of directories, medians. Below the dashed line {other} is faster."
            );
            part.figure(
                &format!("scatter-{name}"),
                &format!("{other} against {first}"),
                &caption,
                self.scatter(other),
            );
            let caption = format!(
                "The time of {other} as a multiple of that of {first}, medians. Blue, less than 1: {other} is faster."
            );
            part.figure(
                &format!("ratios-{name}"),
                &format!("Time of {other} / time of {first}"),
                &caption,
                self.heat(other),
            );
        }
    }

    fn scatter(&self, other: &str) -> Chart {
        let cloud = |operation: &String| {
            let point = |pair: &(String, String)| {
                Some(Point {
                    x: self.case(&self.first, pair, operation)?.median(),
                    y: self.case(other, pair, operation)?.median(),
                    label: arrow(pair),
                })
            };
            Cloud {
                name: operation.clone(),
                points: self.pairs.iter().filter_map(point).collect(),
            }
        };
        let clouds = self.operations.iter().map(cloud);
        Chart::Scatter(Scatter {
            across: format!("Seconds with {}", self.first),
            up: format!("Seconds with {other}"),
            unit: Unit::Seconds,
            clouds: clouds.filter(|cloud| !cloud.points.is_empty()).collect(),
        })
    }

    fn heat(&self, other: &str) -> Chart {
        let operations = self.shared_operations(other);
        let row = |pair: &(String, String)| {
            let ratio = |operation: &&String| self.ratio(other, pair, operation);
            operations.iter().map(ratio).collect()
        };
        Chart::Heat(Heat {
            rows: self.pairs.iter().map(arrow).collect(),
            cells: self.pairs.iter().map(row).collect(),
            columns: operations.iter().copied().cloned().collect(),
            low: format!("{other} is faster"),
            high: format!("{} is faster", self.first),
        })
    }

    fn ratios(&self) -> Sheet {
        let title = format!("Time of the other tools / time of {}", self.first);
        let mut sheet = Sheet::new(
            &title,
            "Ratios of medians with their 95 % interval by resampling.",
        );
        let mut rows = Vec::new();
        for other in &self.others {
            for operation in &self.operations {
                for pair in &self.pairs {
                    let both = self.case(other, pair, operation).zip(self.case(
                        &self.first,
                        pair,
                        operation,
                    ));
                    let ratio = both.and_then(|(own, first)| {
                        ratio_of_medians(&own.seconds(), &first.seconds())
                    });
                    rows.extend(ratio.map(|ratio| (other, operation, pair, ratio)));
                }
            }
        }
        sheet.texts(
            "other tool",
            rows.iter().map(|(other, ..)| (*other).clone()),
        );
        sheet.texts(
            "operation",
            rows.iter().map(|(_, operation, ..)| (*operation).clone()),
        );
        sheet.texts(
            "directories",
            rows.iter().map(|(_, _, pair, _)| arrow(pair)),
        );
        let of =
            |value: fn(&Ratio) -> f64| rows.iter().map(|(.., ratio)| Some(value(ratio))).collect();
        sheet.figures_alike(vec![
            ("ratio", of(|ratio| ratio.value)),
            ("from", of(|ratio| ratio.low)),
            ("to", of(|ratio| ratio.high)),
        ]);
        sheet
    }

    fn everything(&self) -> Sheet {
        let mut sheet = Sheet::new("Every operation", "");
        for (place, name) in LABELS.into_iter().enumerate() {
            sheet.texts(
                name,
                self.cases.iter().map(|case| case.labels[place].clone()),
            );
        }
        measure_columns(&mut sheet, &self.cases);
        sheet
    }
}

fn arrow(pair: &(String, String)) -> String {
    format!("{} to {}", pair.0, pair.1)
}
