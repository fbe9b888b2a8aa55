//! The section about a command run with cold, warm and hot caches.

use super::section::Section;
use super::tables::{measures, proofs};
use super::words::{count, listed, plain, shortened};
use crate::cache::{pairs, place, ratios};
use crate::cases::{Case, Cases};
use crate::figure::{Bars, Chart, Group, Row, Unit, three_digits};
use crate::record::{Results, Sample};
use crate::shares::Waited;
use crate::statistics::cpu_share;

/// So much of a command is shown in the sentence about it; all of it is among the options.
const SHOWN: usize = 160;
/// The parts of the real time, with their class; the last one is what CPU time leaves.
const PARTS: [(&str, &str); 4] = [
    ("user", "user"),
    ("system", "system"),
    ("served (CPU of the mount)", "served"),
    ("off the CPU: BLOCKED, or waiting for one", "blocked"),
];

/// Returns what is to be said about a run of `stook bench cache`.
pub(super) fn section(results: &Results) -> Section {
    let mut cases = Cases::of(results);
    cases.all.sort_by_key(place);
    let names = listed(&cases.values(0));
    let command = results.header.options.get("command").map(plain);
    let command = command.map(|command| format!("`{}`", shortened(&command, SHOWN)));
    let command = command.unwrap_or_else(|| "One command".to_owned());
    let rounds = count(u64::from(cases.rounds), "round", "rounds");
    let mut section = Section {
        title: format!("Caches: {names}"),
        measured: format!("{command}, {names}, in {rounds}."),
        findings: findings(&cases),
        ..Section::default()
    };
    let caption = "Bars are as long as the median real time, with its share of CPU time; what is left is BLOCKED, or waiting for a processor. Every dot is the real time of a run; the box spans the quartiles.";
    section.figure(
        "states",
        "Real time cold, warm and hot",
        caption,
        bars(&cases),
    );
    let note = "Ratios of medians with their 95 % interval by resampling; beside them the slope through the origin, the estimator of CernVM-FS's tables.";
    section.table("Ratios", note, ratios(&cases));
    section.table("Every state", "", measures(&cases));
    let note = "Over all rounds: numbers from the least to the greatest.";
    section.table("What was found beside the times", note, proofs(&cases));
    section
}

fn findings(cases: &Cases<'_>) -> Vec<String> {
    let apart = |(a, b): (&Case<'_>, &Case<'_>)| {
        let ratio = a.ratio_to(b)?;
        Some(format!(
            "{} takes {} as long as {} ({} against {}; 95 % interval {} to {}).",
            a.labels[0],
            Unit::Ratio.show(ratio.value),
            b.labels[0],
            Unit::Seconds.show(a.median()),
            Unit::Seconds.show(b.median()),
            three_digits(ratio.low),
            three_digits(ratio.high),
        ))
    };
    let mut found: Vec<String> = pairs(cases).into_iter().filter_map(apart).collect();
    let blocked = cases.all.iter().filter_map(|case| {
        let shares = case.shares()?;
        let least = match shares.waited? {
            Waited::Exactly(_) => "",
            Waited::AtMost(_) => "at least ",
        };
        let blocked = Unit::Share.show(shares.blocked()?);
        Some(format!("{least}{blocked} of the {} time", case.labels[0]))
    });
    let blocked: Vec<String> = blocked.collect();
    if !blocked.is_empty() {
        found.push(format!(
            "BLOCKED is {}: neither the command nor what serves it computes, or waits for a processor.",
            listed(&blocked)
        ));
    }
    found
}

/// The parts are the shares as the tables have them, of the median real time.
fn bars(cases: &Cases<'_>) -> Chart {
    let mut samples = cases.all.iter().flat_map(|case| &case.samples);
    let is_served = samples.any(|sample| sample.served_seconds.is_some());
    let parts = PARTS
        .iter()
        .filter(|(_, class)| is_served || *class != "served");
    let parts: Vec<(String, &'static str)> = parts
        .map(|(name, class)| ((*name).to_owned(), *class))
        .collect();
    let group = |case: &Case<'_>| {
        let real = case.seconds();
        let share = |value: fn(&Sample) -> f64| {
            let seconds = case.known(|sample| Some(value(sample)));
            cpu_share(&seconds, &real).unwrap_or(0.0)
        };
        let share_of = |class: &str| match class {
            "user" => share(|sample| sample.user_seconds),
            "system" => share(|sample| sample.system_seconds),
            "served" => share(|sample| sample.served_seconds.unwrap_or(0.0)),
            _ => (1.0 - share(Sample::cpu_seconds)).max(0.0),
        };
        let parts = parts
            .iter()
            .map(|(_, class)| share_of(class) * case.median());
        let row = Row {
            name: case.labels[0].clone(),
            parts: parts.collect(),
            samples: real.clone(),
        };
        Group {
            label: case.labels[0].clone(),
            rows: vec![row],
        }
    };
    Chart::Bars(Bars {
        axis: "Seconds".to_owned(),
        unit: Unit::Seconds,
        groups: cases.all.iter().map(group).collect(),
        parts,
        span: None,
    })
}
