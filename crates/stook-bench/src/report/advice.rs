//! The one place where what a bench itself says of its figures, in words, comes onto the page.

use crate::cache::CacheTables;
use crate::figure::clean;
use crate::fs::{Advice, Concern, advise};
use crate::record::{Kind, Results};

/// What a bench itself says of a run, a sentence each.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Advice.
    pub(super) advice: Vec<String>,
    /// Whether one of these compares targets.
    pub(super) compares_targets: bool,
    /// Doubts; None if the bench has no words for them.
    pub(super) doubts: Option<Vec<String>>,
}

/// Returns what the bench itself says of a run.
pub(super) fn of(results: &Results) -> Told {
    match results.header.kind {
        Kind::Fs => of_fs(advise(&results.samples)),
        Kind::Cache => {
            let doubts = CacheTables::of(&results.samples).doubts;
            Told {
                doubts: Some(doubts.iter().map(|doubt| sentence(doubt)).collect()),
                ..Told::default()
            }
        }
        Kind::Update => Told::default(),
    }
}

fn of_fs(all: Vec<Advice>) -> Told {
    let is_doubt = |advice: &Advice| advice.concern == Concern::Doubt;
    let compares_targets = all
        .iter()
        .any(|advice| advice.concern == Concern::SlowTarget);
    let (doubts, advice): (Vec<Advice>, Vec<Advice>) = all.into_iter().partition(is_doubt);
    let sentences = |all: Vec<Advice>| all.iter().map(|advice| sentence(&advice.text)).collect();
    Told {
        advice: sentences(advice),
        compares_targets,
        doubts: Some(sentences(doubts)),
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
