//! The one place where what a bench itself says of its figures, in words, comes onto the page.

use crate::cache::CacheTables;
use crate::figure::clean;
use crate::fs::{Advice, Concern, advise};
use crate::record::{Kind, Results};

/// What a bench itself says of a run, a sentence each.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Advice.
    pub(super) advice: Vec<String>,
    /// Whether one of these compares targets.
    pub(super) compares_targets: bool,
    /// Warnings; None if the bench has none of its own.
    pub(super) warnings: Option<Vec<String>>,
}

/// Returns what the bench itself says of a run.
pub(super) fn of(results: &Results) -> Said {
    match results.header.kind {
        Kind::Fs => of_fs(advise(&results.samples)),
        Kind::Cache => {
            let warnings = CacheTables::of(&results.samples).warnings;
            Said {
                warnings: Some(warnings.iter().map(|warning| sentence(warning)).collect()),
                ..Said::default()
            }
        }
        Kind::Update => Said::default(),
    }
}

fn of_fs(all: Vec<Advice>) -> Said {
    let is_warning = |advice: &Advice| advice.concern == Concern::Warning;
    let compares_targets = all
        .iter()
        .any(|advice| advice.concern == Concern::SlowTarget);
    let (warnings, advice): (Vec<Advice>, Vec<Advice>) = all.into_iter().partition(is_warning);
    let sentences = |all: Vec<Advice>| all.iter().map(|advice| sentence(&advice.text)).collect();
    Said {
        advice: sentences(advice),
        compares_targets,
        warnings: Some(sentences(warnings)),
    }
}

/// With a capital letter in front and a full stop behind.
fn sentence(text: &str) -> String {
    let text = clean(text);
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    let first: String = first.into_iter().flatten().collect();
    format!("{first}{}.", letters.as_str())
}
