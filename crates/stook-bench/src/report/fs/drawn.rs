//! The figures about file systems.

use std::collections::{BTreeMap, BTreeSet};

use super::super::case::{Case, Measure, as_float};
use super::super::file_names;
use super::super::part::{Part, figure};
use super::{PHASE, TARGET, TOOL, View};
use crate::figure::{Bars, Chart, Cloud, Curve, Curves, Figure, Group, Point, Scatter, Unit};
use crate::latency::Latencies;

/// How a bar is to be read.
const SPREAD: &str = "Bars end at the median. The box spans the quartiles, the thin line the least and the greatest, and every dot is a run.";

/// Operations that were done less often have no curve.
const OFTEN: u64 = 100;
/// Nor have those that took less of the time of all operations.
const GOOD_PART: f64 = 0.05;

/// What the bars of an exhibit show.
struct Shown {
    title: &'static str,
    name: &'static str,
    axis: &'static str,
    unit: Unit,
    of: Measure,
}

impl View<'_> {
    pub(super) fn times(&self, part: &mut Part) {
        let caption = format!("{SPREAD} Shorter is better.");
        let shown = Shown {
            title: "Time by phase and target",
            name: "time",
            axis: "Seconds",
            unit: Unit::Seconds,
            of: Measure::Seconds,
        };
        part.exhibit(shown.title, &caption, self.panels(&shown));
    }

    pub(super) fn rates(&self, part: &mut Part) {
        let caption = "The same runs seen from the other side: longer is better.";
        let shown = Shown {
            title: "Files a second",
            name: "rate",
            axis: "Files/s",
            unit: Unit::Rate("/s"),
            of: Measure::FileRate,
        };
        part.exhibit(shown.title, caption, self.panels(&shown));
    }

    /// One figure for each tool, all with the same axis.
    fn panels(&self, shown: &Shown) -> Vec<Figure> {
        let values: Vec<f64> = self
            .cases
            .iter()
            .flat_map(|case| case.measure(shown.of))
            .collect();
        let least = values
            .iter()
            .copied()
            .filter(|value| *value > 0.0)
            .fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let panels = self
            .tools
            .iter()
            .zip(file_names(&self.tools))
            .filter_map(|(tool, name)| {
                let bars = self.bars(shown, tool);
                let title = format!("{}, {tool}", shown.title);
                (!bars.groups.is_empty()).then(|| {
                    figure(
                        &format!("{}-{name}", shown.name),
                        &title,
                        Chart::BarsWithin(bars, (least, most)),
                    )
                })
            });
        panels.collect()
    }

    fn bars(&self, shown: &Shown, tool: &str) -> Bars {
        let group = |phase: &String| {
            let of_target = |target: &String| {
                self.case(target, phase, tool)
                    .map(|case| case.measure(shown.of))
                    .unwrap_or_default()
            };
            Group {
                label: phase.clone(),
                samples: self.targets.iter().map(of_target).collect(),
            }
        };
        let groups = self.phases.iter().map(group);
        let groups = groups.filter(|group| group.samples.iter().any(|samples| !samples.is_empty()));
        Bars {
            axis: shown.axis.to_owned(),
            unit: shown.unit,
            series: self.targets.clone(),
            groups: groups.collect(),
        }
    }

    pub(super) fn tools_against_each_other(&self, part: &mut Part) {
        let Some((usual, others)) = self.tools.split_first() else {
            return;
        };
        for (tool, name) in others
            .iter()
            .zip(file_names(&self.tools).into_iter().skip(1))
        {
            let title = format!("{tool} against {usual}");
            let caption = format!(
                "A point for each phase on each target, medians. Below the dashed line {tool} is faster."
            );
            part.figure(
                &format!("scatter-{name}"),
                &title,
                &caption,
                Chart::Scatter(self.scatter(usual, tool)),
            );
        }
    }

    fn scatter(&self, usual: &str, tool: &str) -> Scatter {
        let cloud = |target: &String| {
            let point = |phase: &String| {
                let (x, y) = (
                    self.case(target, phase, usual)?,
                    self.case(target, phase, tool)?,
                );
                Some(Point {
                    x: x.median(),
                    y: y.median(),
                    label: phase.clone(),
                })
            };
            Cloud {
                name: target.clone(),
                points: self.phases.iter().filter_map(point).collect(),
            }
        };
        Scatter {
            across: format!("Seconds, {usual}"),
            up: format!("Seconds, {tool}"),
            unit: Unit::Seconds,
            clouds: self
                .targets
                .iter()
                .map(cloud)
                .filter(|cloud| !cloud.points.is_empty())
                .collect(),
        }
    }

    /// One figure for each operation of each phase that matters.
    pub(super) fn latencies(&self, part: &mut Part) {
        let figures = self.phases.iter().flat_map(|phase| {
            let of_phase = self
                .cases
                .iter()
                .filter(|case| case.labels[PHASE] == *phase);
            let measured: Vec<Measured<'_>> =
                of_phase.map(|case| (case, case.latencies())).collect();
            let draw = |operation| {
                let name = file_names(&[format!("latency-{phase}-{operation}")]).remove(0);
                figure(
                    &name,
                    &format!("Latency in {phase}: {operation}"),
                    Chart::Curves(curves(&measured, operation)),
                )
            };
            telling(&measured)
                .into_iter()
                .map(draw)
                .collect::<Vec<Figure>>()
        });
        let caption = "Each line is the share of operations that took at most so long: the further to the left it rises, the better, and a long way from there to 100 % is a tail of slow ones. Operations that took less than 5 % of their phase, or were done less than 100 times, are in the table only.";
        part.exhibit("Latency of single operations", caption, figures.collect());
    }
}

/// A case and the times of its operations.
type Measured<'a> = (&'a Case<'a>, BTreeMap<&'a str, Latencies>);

/// The operations that were done often, and took a good part of the time, in one case at least.
fn telling<'a>(measured: &[Measured<'a>]) -> BTreeSet<&'a str> {
    let of_case = |(_, operations): &Measured<'a>| {
        let all: f64 = operations
            .values()
            .map(|latencies| as_float(latencies.sum()))
            .sum();
        let is_telling = move |latencies: &Latencies| {
            latencies.count() >= OFTEN && as_float(latencies.sum()) >= GOOD_PART * all
        };
        let names = operations
            .iter()
            .filter(|(_, latencies)| is_telling(latencies))
            .map(|(name, _)| *name);
        names.collect::<Vec<&str>>()
    };
    measured.iter().flat_map(of_case).collect()
}

fn curves(measured: &[Measured<'_>], operation: &str) -> Curves {
    let measured: Vec<(&Case<'_>, &Latencies)> = measured
        .iter()
        .filter_map(|(case, operations)| Some((*case, operations.get(operation)?)))
        .filter(|(_, latencies)| latencies.bins().next().is_some())
        .collect();
    let tools: BTreeSet<&str> = measured
        .iter()
        .map(|(case, _)| case.labels[TOOL].as_str())
        .collect();
    let name = |case: &Case<'_>| {
        if tools.len() > 1 {
            format!("{}, {}", case.labels[TARGET], case.labels[TOOL])
        } else {
            case.labels[TARGET].clone()
        }
    };
    let curves = measured.iter().map(|(case, latencies)| Curve {
        name: name(case),
        points: rising(latencies),
    });
    Curves {
        axis: "Time of one operation".to_owned(),
        unit: Unit::Seconds,
        curves: curves.collect(),
    }
}

/// The share of operations that took at most so many seconds.
fn rising(latencies: &Latencies) -> Vec<(f64, f64)> {
    let all: u64 = latencies.bins().map(|(_, count)| count).sum();
    let mut seen = 0;
    let points = latencies.bins().map(|(nanoseconds, count)| {
        seen = count.saturating_add(seen);
        // The upper end of the last bin may lie above the longest time.
        let nanoseconds = nanoseconds.min(latencies.max().max(1));
        (as_float(nanoseconds) / 1e9, as_float(seen) / as_float(all))
    });
    points.collect()
}
