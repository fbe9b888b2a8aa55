//! The section about file systems: phases of work on small files, on several targets, by several tools.

use super::section::{Against, Section, scatter};
use super::tables::{measures, operations};
use super::words::{count, file_names, geometric, listed, sentence};
use crate::cases::{Case, as_float};
use crate::figure::{Bars, Chart, Curve, Curves, Figure, Group, Row, Unit};
use crate::fs::{Advice, Concern, Figures, advise};
use crate::latency::Latencies;
use crate::record::Results;

const TARGET: usize = 0;
const PHASE: usize = 1;
const TOOL: usize = 2;
/// The tool that findings are about.
const OURS: &str = "stook";
/// More targets than these are counted in the title, not named.
const NAMED: usize = 3;
/// Of findings of one sort only the greatest are reported.
const REPORTED: usize = 3;
/// Ratios below this are not worth a sentence.
const WORTH_REPORTING: f64 = 1.5;
/// Operations that have curves; the table has all.
const DRAWN: [&str; 4] = ["create", "stat", "read", "unlink"];
/// Operations that were done less often have no curve.
const OFTEN: u64 = 100;

/// Returns what is to be said about a run of `stook bench fs`.
pub(super) fn section(results: &Results) -> Section {
    let view = Figures::of(&results.samples);
    let mut section = Section {
        title: match view.targets.len() {
            0..=NAMED => format!("File systems: {}", listed(&view.targets)),
            more => format!("File systems: {more} targets"),
        },
        measured: view.measured(results),
        findings: view.findings(&advise(&results.samples)),
        ..Section::default()
    };
    let caption = "Bars end at the median. The box spans the quartiles, the thin line the least and the greatest, and every dot is a run. Shorter is better.";
    section.exhibit("Time by phase and target", caption, view.times());
    view.tools_against_each_other(&mut section);
    let caption = "Each line is the share of operations that took at most so long: the further to the left it rises, the better, and a long way from there to 100 % is a tail of slow ones. All other operations, and those that were done less than 100 times, are in the table.";
    section.exhibit("Latency of single operations", caption, view.latencies());
    let note = "A dash stands for what was not measured.";
    section.table("Median seconds by phase", note, view.overview());
    section.table("Every phase", "", measures(&view.cases));
    let note = "Percentiles are at most 6.25 % above the true ones; the count and the longest time are exact.";
    section.table("Times of single operations", note, operations(&view.cases));
    section
}

impl Figures<'_> {
    fn measured(&self, results: &Results) -> String {
        let files = results
            .samples
            .iter()
            .filter_map(|sample| sample.files)
            .max();
        let files = files.map(|files| format!(" on {}", count(files, "file", "files")));
        format!(
            "{} ({}){}, done by {}, on {}, in {}.",
            count(self.phases.len() as u64, "phase", "phases"),
            listed(&self.phases),
            files.unwrap_or_default(),
            listed(&self.tools),
            count(self.targets.len() as u64, "target", "targets"),
            count(u64::from(self.cases.rounds), "round", "rounds"),
        )
    }

    /// Returns the findings behind the advice, which says more about targets than a ratio can if it compares them.
    fn findings(&self, advice: &[Advice]) -> Vec<String> {
        let compares_targets = advice.iter().any(|one| one.concern == Concern::SlowTarget);
        let advice = advice.iter().filter(|one| one.concern != Concern::Warning);
        let mut findings: Vec<String> = advice.map(|one| sentence(&one.text)).collect();
        if !compares_targets {
            findings.extend(self.targets_apart());
        }
        findings.extend(self.tools_apart());
        findings
    }

    /// Where one target takes much longer than another.
    fn targets_apart(&self) -> Vec<String> {
        let tool = self.tools.first().map_or("", String::as_str);
        let of_phase = |phase: &String| {
            let cases = self
                .targets
                .iter()
                .filter_map(|target| self.case(target, phase, tool));
            let mut cases: Vec<&Case<'_>> = cases.collect();
            cases.sort_by(|a, b| a.median().total_cmp(&b.median()));
            let [fastest, .., slowest] = cases.as_slice() else {
                return None;
            };
            let ratio = slowest.ratio_to(fastest)?.value;
            let text = format!(
                "`{phase}` takes {} as long on `{}` as on `{}`: {} against {}, done by {tool}.",
                Unit::Ratio.show(ratio),
                slowest.labels[TARGET],
                fastest.labels[TARGET],
                Unit::Seconds.show(slowest.median()),
                Unit::Seconds.show(fastest.median()),
            );
            (ratio >= WORTH_REPORTING).then_some((ratio, text))
        };
        let mut found: Vec<(f64, String)> = self.phases.iter().filter_map(of_phase).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let found = found.into_iter().take(REPORTED);
        found.map(|(_, text)| text).collect()
    }

    /// How long stook takes, or every tool if it was not measured, against the first tool.
    fn tools_apart(&self) -> Vec<String> {
        let Some((usual, others)) = self.tools.split_first() else {
            return Vec::new();
        };
        let has_ours = others.iter().any(|tool| tool == OURS);
        let reported = others.iter().filter(|tool| *tool == OURS || !has_ours);
        reported
            .filter_map(|tool| self.tool_apart(usual, tool))
            .collect()
    }

    fn tool_apart(&self, usual: &str, tool: &str) -> Option<String> {
        let ratios = |target: &String| {
            let ratio = |phase: &String| {
                let own = self.case(target, phase, tool)?;
                Some(own.ratio_to(self.case(target, phase, usual)?)?.value)
            };
            self.phases.iter().filter_map(ratio).collect::<Vec<f64>>()
        };
        let by_target = self.targets.iter().filter_map(|target| {
            let (mean, ..) = geometric(ratios(target))?;
            Some(format!("{} on `{target}`", Unit::Ratio.show(mean)))
        });
        let (_, least, most) = geometric(self.targets.iter().flat_map(ratios))?;
        Some(format!(
            "As a multiple of the time of {usual}, {tool} takes {}: geometric means over the phases, which go from {} to {}.",
            listed(&by_target.collect::<Vec<String>>()),
            Unit::Ratio.show(least),
            Unit::Ratio.show(most),
        ))
    }

    /// One figure for each tool, all with the same axis.
    fn times(&self) -> Vec<Figure> {
        let seconds = self.cases.all.iter().flat_map(Case::seconds);
        let ends = seconds.filter(|value| *value > 0.0);
        let ends = ends.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| {
            (least.min(value), most.max(value))
        });
        let tools = self.tools.iter().zip(file_names(&self.tools));
        tools
            .map(|(tool, name)| {
                let title = format!("Time by phase and target, {tool}");
                let bars = Chart::Bars(self.bars(tool, ends));
                Figure::new(&format!("time-{name}"), &title, bars)
            })
            .collect()
    }

    fn bars(&self, tool: &str, ends: (f64, f64)) -> Bars {
        let row = |target: &String, phase: &str| Row {
            name: target.clone(),
            samples: self
                .case(target, phase, tool)
                .map(Case::seconds)
                .unwrap_or_default(),
            parts: Vec::new(),
        };
        let group = |phase: &String| Group {
            label: phase.clone(),
            rows: self
                .targets
                .iter()
                .map(|target| row(target, phase))
                .collect(),
        };
        let groups = self.phases.iter().map(group);
        let is_measured = |group: &Group| group.rows.iter().any(|row| !row.samples.is_empty());
        Bars {
            axis: "Seconds".to_owned(),
            unit: Unit::Seconds,
            parts: Vec::new(),
            groups: groups.filter(is_measured).collect(),
            span: Some(ends),
        }
    }

    fn tools_against_each_other(&self, section: &mut Section) {
        let names = file_names(&self.tools);
        for (tool, name) in self.tools.iter().zip(names).skip(1) {
            let usual = &self.tools[0];
            let points = self.targets.iter().flat_map(|target| {
                let of_phase = move |phase: &String| -> Option<Against<'_>> {
                    let (x, y) = (
                        self.case(target, phase, usual)?,
                        self.case(target, phase, tool)?,
                    );
                    Some((target.clone(), phase.clone(), x, y))
                };
                self.phases.iter().filter_map(of_phase)
            });
            let caption = format!(
                "A point for each phase on each target, medians. Below the dashed line {tool} is faster."
            );
            if let Some(chart) = scatter(usual, tool, points) {
                let (name, title) = (format!("scatter-{name}"), format!("{tool} against {usual}"));
                section.figure(&name, &title, &caption, chart);
            }
        }
    }

    /// One figure for each phase of each operation that is drawn.
    fn latencies(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for phase in &self.phases {
            for operation in DRAWN {
                let curves = self.curves(phase, operation);
                if !curves.is_empty() {
                    let name = file_names(&[format!("latency-{phase}-{operation}")]).remove(0);
                    let title = format!("Latency in {phase}: {operation}");
                    let chart = Chart::Curves(Curves {
                        axis: "Time of one operation".to_owned(),
                        unit: Unit::Seconds,
                        curves,
                    });
                    figures.push(Figure::new(&name, &title, chart));
                }
            }
        }
        figures
    }

    fn curves(&self, phase: &str, operation: &str) -> Vec<Curve> {
        let cases = self
            .cases
            .all
            .iter()
            .filter(|case| case.labels[PHASE] == phase);
        let curves = cases.filter_map(|case| {
            let mut operations = case.operations().into_iter();
            let (.., latencies) = operations.find(|(name, ..)| *name == operation)?;
            (latencies.count() >= OFTEN).then(|| Curve {
                name: format!("{}, {}", case.labels[TARGET], case.labels[TOOL]),
                points: rising(&latencies),
            })
        });
        curves.collect()
    }
}

/// The share of operations that took at most so many seconds.
fn rising(latencies: &Latencies) -> Vec<(f64, f64)> {
    let mut below = 0;
    let points = latencies.bins().map(|(nanoseconds, count)| {
        below += count;
        // The upper end of the last bin may lie above the longest time.
        let nanoseconds = nanoseconds.min(latencies.max().max(1));
        (
            as_float(nanoseconds) / 1e9,
            as_float(below) / as_float(latencies.count()),
        )
    });
    points.collect()
}
