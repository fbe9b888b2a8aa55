//! What makes a run's own figures doubtful, as sentences of the page.

use crate::figure::Unit;
use crate::record::{Kind, Results};
use crate::warnings::{TOO_SHORT_SECONDS, Warning, of_times};

use super::advice;
use super::case::{Case, as_float, cases};
use super::part::listed;

/// So many names are listed.
const LISTED: usize = 4;

/// Returns the warnings about a run, a sentence each.
pub(super) fn of(results: &Results) -> Vec<String> {
    let cases = cases(&results.samples, labels(results.header.kind));
    let mut warnings = Vec::new();
    if results.samples.is_empty() {
        return vec!["There are no samples: the run was broken off before the first.".to_owned()];
    }
    let of_bench = advice::of(results).warnings;
    // A bench of caches says itself that its rounds are few.
    let is_once = cases.iter().all(|case| case.samples.len() == 1);
    if is_once && results.header.kind != Kind::Cache {
        warnings.push("Everything was run once: nothing is known of the spread.".to_owned());
    }
    let machine = &results.header.machine;
    if let Some(load) = machine
        .load_average
        .filter(|load| *load > 0.5 * as_float(machine.processors as u64))
    {
        warnings.push(format!(
            "The machine was busy before the run: load {load:.1} on {} processors.",
            machine.processors
        ));
    }
    warnings.extend(of_bench.unwrap_or_else(|| usual(&cases)));
    warnings
}

/// Warnings about samples of any kind.
fn usual(cases: &[Case<'_>]) -> Vec<String> {
    let shorter = format!(
        "took less than {}: starting the program weighs in",
        Unit::Seconds.show(TOO_SHORT_SECONDS)
    );
    let unsteady = "spread by more than 20 % of their median between the quartiles";
    let wide = grouped(
        cases,
        |warning| matches!(warning, Warning::Wide(_)),
        unsteady,
    );
    let short = grouped(
        cases,
        |warning| matches!(warning, Warning::TooShort(_)),
        &shorter,
    );
    wide.into_iter().chain(short).collect()
}

fn labels(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Fs => &["target", "phase", "tool"],
        Kind::Cache => &["state"],
        Kind::Update => &["tool", "create", "update", "operation"],
    }
}

fn grouped(cases: &[Case<'_>], is_it: impl Fn(&Warning) -> bool, what: &str) -> Option<String> {
    let names: Vec<String> = cases
        .iter()
        .filter(|case| of_times(&case.seconds()).iter().any(&is_it))
        .map(|case| case.labels.join(" "))
        .collect();
    if names.is_empty() {
        return None;
    }
    let mut shown: Vec<String> = names.iter().take(LISTED).cloned().collect();
    if names.len() > LISTED {
        shown.push(format!("{} more", names.len() - LISTED));
    }
    Some(format!(
        "{} of {} {what}: {}.",
        names.len(),
        cases.len(),
        listed(&shown)
    ))
}
