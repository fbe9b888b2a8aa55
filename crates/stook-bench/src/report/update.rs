//! The part about programs that archive and update a tree: the before/after study of an archiver.

use crate::figure::{Bars, Chart, Cloud, Group, Heat, Point, Scatter, Unit};
use crate::record::Results;
use crate::statistics::{Ratio, median, ratio_of_medians};

use super::advice;
use super::case::{Case, Measure, cases, find, values};
use super::measures::{measure_columns, proof_sheet};
use super::part::{Part, count, geometric, listed};
use super::sheet::Sheet;

const LABELS: [&str; 4] = ["tool", "create", "update", "operation"];
const TOOL: usize = 0;
const OPERATION: usize = 3;
/// The tool that the others are compared with, if it is there; else it is the first.
const SUBJECT: &str = "stook";

/// The cases of a run, and the different values of their labels.
struct View<'a> {
    cases: Vec<Case<'a>>,
    subject: String,
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
    part.findings.extend(advice::of(results));
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
        let caption = "The most memory that one process of the tool held, but at least what the bench itself held when it started it. Less is better.";
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
        let place = others.iter().position(|tool| tool == SUBJECT).unwrap_or(0);
        let subject = if others.is_empty() {
            String::new()
        } else {
            others.remove(place)
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
            subject,
            others,
            pairs,
            cases,
        }
    }

    fn tools(&self) -> Vec<String> {
        std::iter::once(&self.subject)
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

    /// The ratio of the subject's median to that of another tool.
    fn ratio(
        &self,
        other: &str,
        pair: &(String, String),
        operation: &str,
        of: Measure,
    ) -> Option<f64> {
        let (ours, theirs) = (
            self.case(&self.subject, pair, operation)?,
            self.case(other, pair, operation)?,
        );
        let (ours, theirs) = (median(&ours.measure(of))?, median(&theirs.measure(of))?);
        (theirs > 0.0).then(|| ours / theirs)
    }

    /// The mean, least and greatest ratio over all pairs.
    fn ratio_over_pairs(
        &self,
        other: &str,
        operation: &str,
        of: Measure,
    ) -> Option<(f64, f64, f64)> {
        let ratios = self
            .pairs
            .iter()
            .filter_map(|pair| self.ratio(other, pair, operation, of));
        geometric(&ratios.collect::<Vec<f64>>())
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
        let (mean, low, high) = self.ratio_over_pairs(other, operation, Measure::Seconds)?;
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
            "`{operation}`: {} takes {} the time of {other}{over_pairs}.",
            self.subject,
            show(mean)
        ))
    }

    fn memory_in_words(&self, other: &str) -> Option<String> {
        let of_each = self.operations.iter().filter_map(|operation| {
            let (mean, ..) = self.ratio_over_pairs(other, operation, Measure::Peak)?;
            Some(format!("{} to `{operation}`", Unit::Ratio.show(mean)))
        });
        let of_each: Vec<String> = of_each.collect();
        (!of_each.is_empty()).then(|| {
            format!(
                "At its peak {} holds, against the memory of {other}, {}.",
                self.subject,
                listed(&of_each)
            )
        })
    }

    fn bars(&self, axis: &str, unit: Unit, of: Measure) -> Chart {
        let series = self.tools();
        let group = |operation: &String| {
            let of_tool = |tool: &String| {
                let cases = self.cases.iter().filter(|case| {
                    case.labels[TOOL] == *tool && case.labels[OPERATION] == *operation
                });
                cases.flat_map(|case| case.measure(of)).collect()
            };
            Group {
                label: operation.clone(),
                samples: series.iter().map(of_tool).collect(),
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
            let subject = &self.subject;
            let caption = format!(
                "A point for each operation on each pair of directories. Below the dashed line {subject} is faster."
            );
            part.figure(
                &format!("scatter-{name}"),
                &format!("{subject} against {other}"),
                &caption,
                self.scatter(other),
            );
            let caption = format!(
                "The time of {subject} as a multiple of that of {other}, medians. Blue, less than 1: {subject} is faster."
            );
            part.figure(
                &format!("ratios-{name}"),
                &format!("Time of {subject} / time of {other}"),
                &caption,
                self.heat(other),
            );
        }
    }

    fn scatter(&self, other: &str) -> Chart {
        let cloud = |operation: &String| {
            let point = |pair: &(String, String)| {
                let (x, y) = (
                    self.case(other, pair, operation)?,
                    self.case(&self.subject, pair, operation)?,
                );
                Some(Point {
                    x: x.median(),
                    y: y.median(),
                    label: arrow(pair),
                })
            };
            Cloud {
                name: operation.clone(),
                points: self.pairs.iter().filter_map(point).collect(),
            }
        };
        Chart::Scatter(Scatter {
            across: format!("Seconds with {other}"),
            up: format!("Seconds with {}", self.subject),
            unit: Unit::Seconds,
            clouds: self
                .operations
                .iter()
                .map(cloud)
                .filter(|cloud| !cloud.points.is_empty())
                .collect(),
        })
    }

    fn heat(&self, other: &str) -> Chart {
        let row = |pair: &(String, String)| {
            self.operations
                .iter()
                .map(|operation| self.ratio(other, pair, operation, Measure::Seconds))
                .collect()
        };
        Chart::Heat(Heat {
            columns: self.operations.clone(),
            rows: self.pairs.iter().map(arrow).collect(),
            cells: self.pairs.iter().map(row).collect(),
            low: format!("{} is faster", self.subject),
            high: format!("{other} is faster"),
        })
    }

    fn ratios(&self) -> Sheet {
        let title = format!("Time of {} / time of the others", self.subject);
        let mut sheet = Sheet::new(
            &title,
            "Ratios of medians with their 95 % interval by resampling.",
        );
        let mut rows = Vec::new();
        for other in &self.others {
            for operation in &self.operations {
                for pair in &self.pairs {
                    let both = self
                        .case(&self.subject, pair, operation)
                        .zip(self.case(other, pair, operation));
                    let ratio = both.and_then(|(ours, theirs)| {
                        ratio_of_medians(&ours.seconds(), &theirs.seconds())
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
