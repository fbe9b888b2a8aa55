//! What the figures about file systems say, in words.

use super::super::advice::Said;
use super::super::part::{count, geometric, listed};
use super::{Case, OURS, TARGET, View};
use crate::figure::Unit;
use crate::record::Results;
use crate::statistics::ratio_of_medians;

/// Of findings of one sort only the greatest are reported.
const REPORTED: usize = 3;
/// Ratios below this are not worth a sentence.
const WORTH_REPORTING: f64 = 1.5;

impl View<'_> {
    pub(super) fn measured(&self, results: &Results) -> String {
        let rounds = results
            .samples
            .iter()
            .map(|sample| sample.round)
            .max()
            .unwrap_or(0);
        let files = results
            .samples
            .iter()
            .filter_map(|sample| sample.files)
            .max();
        let on_files = files.map_or_else(String::new, |files| {
            format!(
                " on {}",
                count(
                    usize::try_from(files).unwrap_or(usize::MAX),
                    "file",
                    "files"
                )
            )
        });
        format!(
            "{} ({}){on_files}, done by {}, on {}, in {}.",
            count(self.phases.len(), "phase", "phases"),
            listed(&self.phases),
            listed(&self.tools),
            count(self.targets.len(), "target", "targets"),
            count(rounds as usize, "round", "rounds"),
        )
    }

    /// Returns the findings behind the advice, which says more about targets than a ratio can if it compares them.
    pub(super) fn findings(&self, said: Said) -> Vec<String> {
        let mut findings = said.advice;
        if !said.compares_targets {
            findings.extend(self.targets_apart());
        }
        findings.extend(self.tools_apart());
        findings
    }

    /// Where one target takes much longer than another.
    fn targets_apart(&self) -> Vec<String> {
        let mut found: Vec<(f64, String)> = Vec::new();
        let tool = self.tools.first().map_or("", String::as_str);
        for phase in &self.phases {
            let mut measured: Vec<&Case<'_>> = self
                .targets
                .iter()
                .filter_map(|target| self.case(target, phase, tool))
                .collect();
            measured.sort_by(|a, b| a.median().total_cmp(&b.median()));
            let [fastest, .., slowest] = measured.as_slice() else {
                continue;
            };
            let Some(ratio) = ratio_of_medians(&slowest.seconds(), &fastest.seconds()) else {
                continue;
            };
            let text = format!(
                "`{phase}` takes {} as long on `{}` as on `{}`: {} against {}, done by {tool}.",
                Unit::Ratio.show(ratio.value),
                slowest.labels[TARGET],
                fastest.labels[TARGET],
                Unit::Seconds.show(slowest.median()),
                Unit::Seconds.show(fastest.median()),
            );
            found.push((ratio.value, text));
        }
        found.retain(|(ratio, _)| *ratio >= WORTH_REPORTING);
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
            .into_iter()
            .take(REPORTED)
            .map(|(_, text)| text)
            .collect()
    }

    /// How long stook takes, or every tool if it was not measured, against the first tool.
    fn tools_apart(&self) -> Vec<String> {
        let Some((usual, others)) = self.tools.split_first() else {
            return Vec::new();
        };
        let is_told = |tool: &&String| *tool == OURS || !others.iter().any(|other| other == OURS);
        others
            .iter()
            .filter(is_told)
            .filter_map(|tool| self.tool_apart(usual, tool))
            .collect()
    }

    fn tool_apart(&self, usual: &str, tool: &str) -> Option<String> {
        let mut all = Vec::new();
        let by_target = self.targets.iter().filter_map(|target| {
            let ratios: Vec<f64> = self
                .phases
                .iter()
                .filter_map(|phase| {
                    let (own, others) = (
                        self.seconds(target, phase, tool),
                        self.seconds(target, phase, usual),
                    );
                    Some(ratio_of_medians(&own, &others)?.value)
                })
                .collect();
            let (mean, ..) = geometric(&ratios)?;
            all.extend(ratios);
            Some(format!("{} on `{target}`", Unit::Ratio.show(mean)))
        });
        let by_target: Vec<String> = by_target.collect();
        let (_, least, most) = geometric(&all)?;
        Some(format!(
            "As a multiple of the time of {usual}, {tool} takes {}: geometric means over the phases, which go from {} to {}.",
            listed(&by_target),
            Unit::Ratio.show(least),
            Unit::Ratio.show(most),
        ))
    }
}
