//! Warnings about the figures of a run, as sentences of the page.

use super::words::{listed, sentence};
use crate::cache::CacheTables;
use crate::cases::{Cases, as_float};
use crate::figure::Unit;
use crate::fs::{Concern, advise};
use crate::record::{Kind, Results};
use crate::warnings::{TOO_SHORT_SECONDS, Warning, of_times};

/// So many names are listed.
const LISTED: usize = 4;

/// Returns the warnings about a run, a sentence each.
pub(super) fn of(results: &Results) -> Vec<String> {
    if results.samples.is_empty() {
        return vec!["There are no samples: the run was broken off before the first.".to_owned()];
    }
    let kind = results.header.kind;
    let cases = Cases::of(results);
    let mut warnings = Vec::new();
    // A bench of caches says itself that its rounds are few.
    if kind != Kind::Cache && cases.all.iter().all(|case| case.samples.len() == 1) {
        warnings.push("Everything was run once: nothing is known of the spread.".to_owned());
    }
    let machine = &results.header.machine;
    let (load, processors) = (machine.load_average.unwrap_or(0.0), machine.processors);
    if load > 0.5 * as_float(processors as u64) {
        warnings.push(format!(
            "The machine was busy before the run: load {load:.1} on {processors} processors."
        ));
    }
    match kind {
        Kind::Fs => {
            let advice = advise(&results.samples).into_iter();
            let own = advice.filter(|advice| advice.concern == Concern::Warning);
            warnings.extend(own.map(|advice| sentence(&advice.text)));
        }
        Kind::Cache => {
            let own = CacheTables::of(&results.samples).warnings;
            warnings.extend(own.iter().map(|warning| sentence(warning)));
        }
        Kind::Update => warnings.extend(of_cases(&cases)),
    }
    warnings
}

fn of_cases(cases: &Cases<'_>) -> Vec<String> {
    let shortest = Unit::Seconds.show(TOO_SHORT_SECONDS);
    let short = format!("took less than {shortest}: starting the program weighs in");
    let unsteady = "spread by more than 20 % of their median between the quartiles";
    let all = [
        of_sort(
            cases,
            |warning| matches!(warning, Warning::Wide(_)),
            unsteady,
        ),
        of_sort(
            cases,
            |warning| matches!(warning, Warning::TooShort(_)),
            &short,
        ),
    ];
    all.into_iter().flatten().collect()
}

/// One sentence about all cases that have a warning of one sort.
fn of_sort(cases: &Cases<'_>, is_it: impl Fn(&Warning) -> bool, what: &str) -> Option<String> {
    let all = cases.all.iter();
    let found = all.filter(|case| of_times(&case.seconds()).iter().any(&is_it));
    let mut names: Vec<String> = found.map(|case| case.labels.join(" ")).collect();
    let count = names.len();
    if count > LISTED {
        names.truncate(LISTED);
        names.push(format!("{} more", count - LISTED));
    }
    let (all, names) = (cases.all.len(), listed(&names));
    (count > 0).then(|| format!("{count} of {all} {what}: {names}."))
}
