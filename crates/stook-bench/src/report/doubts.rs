//! Reasons to doubt a run's own figures: few rounds, a busy machine, much spread, times too short.

use crate::figure::Unit;
use crate::record::{Kind, Results};

use super::advice;
use super::case::{Case, as_float, cases};
use super::part::listed;

/// The quartiles may be this far apart, as a share of the median.
const STEADY: f64 = 0.2;
/// Starting a program takes about a millisecond: shorter times say little about its work.
const TOO_SHORT: f64 = 0.01;
/// So many names are told.
const TOLD: usize = 4;

/// Returns the doubts about a run, a sentence each.
pub(super) fn of(results: &Results) -> Vec<String> {
    let cases = cases(&results.samples, labels(results.header.kind));
    let mut doubts = Vec::new();
    if results.samples.is_empty() {
        return vec!["There are no samples: the run was broken off before the first.".to_owned()];
    }
    let told_by_bench = advice::of(results).doubts;
    // A bench of caches says itself that its rounds are few.
    let is_once = cases.iter().all(|case| case.samples.len() == 1);
    if is_once && results.header.kind != Kind::Cache {
        doubts.push("Everything was run once: nothing is known of the spread.".to_owned());
    }
    let machine = &results.header.machine;
    if let Some(load) = machine
        .load_average
        .filter(|load| *load > 0.5 * as_float(machine.processors as u64))
    {
        doubts.push(format!(
            "The machine was busy before the run: load {load:.1} on {} processors.",
            machine.processors
        ));
    }
    doubts.extend(told_by_bench.unwrap_or_else(|| usual(&cases)));
    doubts
}

/// Doubts that may be had of samples of any kind.
fn usual(cases: &[Case<'_>]) -> Vec<String> {
    let unsteady = told(
        cases,
        is_unsteady,
        "spread by more than 20 % of their median between the quartiles",
    );
    let shorter = format!(
        "took less than {}: starting the program weighs in",
        Unit::Seconds.show(TOO_SHORT)
    );
    let short = told(cases, |case| case.median() < TOO_SHORT, &shorter);
    unsteady.into_iter().chain(short).collect()
}

fn labels(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Fs => &["target", "phase", "tool"],
        Kind::Cache => &["state"],
        Kind::Update => &["tool", "create", "update", "operation"],
    }
}

fn is_unsteady(case: &Case<'_>) -> bool {
    let spread = case.spread();
    spread.is_some_and(|spread| {
        spread.upper_quartile - spread.lower_quartile > STEADY * spread.median
    })
}

fn told(cases: &[Case<'_>], is_doubtful: impl Fn(&Case<'_>) -> bool, what: &str) -> Option<String> {
    let names: Vec<String> = cases
        .iter()
        .filter(|case| is_doubtful(case))
        .map(|case| case.labels.join(" "))
        .collect();
    if names.is_empty() {
        return None;
    }
    let mut shown: Vec<String> = names.iter().take(TOLD).cloned().collect();
    if names.len() > TOLD {
        shown.push(format!("{} more", names.len() - TOLD));
    }
    Some(format!(
        "{} of {} {what}: {}.",
        names.len(),
        cases.len(),
        listed(&shown)
    ))
}
