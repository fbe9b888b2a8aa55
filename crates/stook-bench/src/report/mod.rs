//! Results as one page, and as figures in files.
//!
//! ```text
//! results ──> cases: samples with the same labels ──> a part for each run: sentences, figures, tables ──> page
//! ```
//! The page needs nothing but itself: styles, figures and the raw samples are in it. Scripts only sort tables, switch
//! between light and dark, and hand out the raw samples; without them everything can be read.

mod advice;
mod cache;
mod case;
mod compare;
mod facts;
mod fs;
mod measures;
mod page;
mod part;
mod sheet;
#[cfg(test)]
mod tests;
mod update;
mod warnings;

use crate::figure::Figure;
use crate::record::{Kind, Results};
use part::Part;

pub use page::MARK;

/// Returns the page about some runs.
///
/// # Cost
/// Some milliseconds a run, and twice the size of the raw samples.
pub fn page(all: &[Results]) -> String {
    let parts: Vec<Part> = all.iter().map(part_of).collect();
    page::page(all, &parts)
}

/// Returns the figures about some runs, in the order of the page. Their names differ.
pub fn figures(all: &[Results]) -> Vec<Figure> {
    let of_run = |(number, results): (usize, &Results)| {
        let figures = part_of(results)
            .exhibits
            .into_iter()
            .flat_map(|exhibit| exhibit.figures);
        let named = figures.map(move |figure| Figure {
            name: if all.len() > 1 {
                format!("{}-{}", number + 1, figure.name)
            } else {
                figure.name
            },
            ..figure
        });
        named.collect::<Vec<Figure>>()
    };
    let compared = compare::compare(all)
        .into_iter()
        .flat_map(|compared| compared.figures);
    compared
        .chain(all.iter().enumerate().flat_map(of_run))
        .collect()
}

fn part_of(results: &Results) -> Part {
    match results.header.kind {
        Kind::Fs => fs::part(results),
        Kind::Cache => cache::part(results),
        Kind::Update => update::part(results),
    }
}

/// Returns names for files that look like these texts: letters, digits and dashes, no two alike.
fn file_names(texts: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for text in texts {
        let letters = text.chars().map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                '-'
            }
        });
        let letters: String = letters.take(40).collect();
        let name = letters
            .split('-')
            .filter(|word| !word.is_empty())
            .collect::<Vec<&str>>()
            .join("-");
        let name = if name.is_empty() {
            "unnamed".to_owned()
        } else {
            name
        };
        let alike = names
            .iter()
            .filter(|other| **other == name || other.starts_with(&format!("{name}-")))
            .count();
        names.push(if names.contains(&name) {
            format!("{name}-{}", alike + 1)
        } else {
            name
        });
    }
    names
}
