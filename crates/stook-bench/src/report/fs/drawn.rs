//! The figures about file systems.

use super::super::case::{Case, as_float};
use super::super::file_names;
use super::super::part::{Part, figure};
use super::{PHASE, TARGET, TOOL, View};
use crate::figure::{Bars, Chart, Cloud, Curve, Curves, Figure, Group, Point, Scatter, Unit};
use crate::latency::Latencies;

/// How a bar is to be read.
const SPREAD: &str = "Bars end at the median. The box spans the quartiles, the thin line the least and the greatest, and every dot is a run.";

/// What the bars of an exhibit show.
struct Shown {
    name: &'static str,
    axis: &'static str,
    unit: Unit,
    of: fn(&Case<'_>) -> Vec<f64>,
}

impl View<'_> {
    pub(super) fn times(&self, part: &mut Part) {
        let caption = format!("{SPREAD} Shorter is better.");
        let shown = Shown {
            name: "time",
            axis: "Seconds",
            unit: Unit::Seconds,
            of: |case| case.seconds(),
        };
        part.exhibit("Time by phase and target", &caption, self.panels(&shown));
    }

    pub(super) fn rates(&self, part: &mut Part) {
        let caption = "The same runs seen from the other side: longer is better.";
        let shown = Shown {
            name: "rate",
            axis: "Files a second",
            unit: Unit::Rate("/s"),
            of: |case| case.file_rates(),
        };
        part.exhibit("Files a second", caption, self.panels(&shown));
    }

    /// One figure for each tool, all with the same axis.
    fn panels(&self, shown: &Shown) -> Vec<Figure> {
        let values: Vec<f64> = self.cases.iter().flat_map(shown.of).collect();
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
                let title = if self.tools.len() > 1 {
                    format!("{}, {tool}", shown.axis)
                } else {
                    shown.axis.to_owned()
                };
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
                    .map(shown.of)
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
            clouds: self.targets.iter().map(cloud).collect(),
        }
    }

    /// One figure for each operation of each phase.
    pub(super) fn latencies(&self, part: &mut Part) {
        let figures = self.phases.iter().flat_map(|phase| {
            let of_phase: Vec<&Case<'_>> = self
                .cases
                .iter()
                .filter(|case| case.labels[PHASE] == *phase)
                .collect();
            let mut operations: Vec<&str> = of_phase
                .iter()
                .flat_map(|case| case.latencies().into_keys())
                .collect();
            operations.sort_unstable();
            operations.dedup();
            let draw = |operation| {
                curves(&of_phase, operation).map(|curves| {
                    let name = file_names(&[format!("latency-{phase}-{operation}")]).remove(0);
                    figure(
                        &name,
                        &format!("Latency in {phase}: {operation}"),
                        Chart::Curves(curves),
                    )
                })
            };
            operations
                .into_iter()
                .filter_map(draw)
                .collect::<Vec<Figure>>()
        });
        let caption = "Each line is the share of operations that took at most so long: the further to the left it rises, the better, and a long way from there to 100 % is a tail of slow ones.";
        part.exhibit("Latency of single operations", caption, figures.collect());
    }
}

fn curves(cases: &[&Case<'_>], operation: &str) -> Option<Curves> {
    let measured: Vec<(&Case<'_>, Latencies)> = cases
        .iter()
        .filter_map(|case| Some((*case, case.latencies().remove(operation)?)))
        .filter(|(_, latencies)| latencies.bins().next().is_some())
        .collect();
    let (first, _) = measured.first()?;
    let is_one_tool = measured
        .iter()
        .all(|(case, _)| case.labels[TOOL] == first.labels[TOOL]);
    let name = |case: &Case<'_>| match is_one_tool {
        true => case.labels[TARGET].clone(),
        false => format!("{}, {}", case.labels[TARGET], case.labels[TOOL]),
    };
    let curves = measured.iter().map(|(case, latencies)| Curve {
        name: name(case),
        points: rising(latencies),
    });
    Some(Curves {
        axis: "Time of one operation".to_owned(),
        unit: Unit::Seconds,
        curves: curves.collect(),
    })
}

/// The share of operations that took at most so many seconds.
fn rising(latencies: &Latencies) -> Vec<(f64, f64)> {
    let all: u64 = latencies.bins().map(|(_, count)| count).sum();
    let mut seen = 0;
    let points = latencies.bins().map(|(nanoseconds, count)| {
        seen += count;
        // The upper end of the last bin may lie above the longest time.
        let nanoseconds = nanoseconds.min(latencies.max().max(1));
        (as_float(nanoseconds) / 1e9, as_float(seen) / as_float(all))
    });
    points.collect()
}
