//! Results as one page, and as figures in files.
//!
//! ```text
//! results ──> cases (samples with the same labels) ──> a section for each run: sentences, figures, tables ──> page
//! ```
//! The page needs nothing but itself: styles, figures and the raw samples are in it. Scripts only sort tables, switch
//! between light and dark, and hand out the raw samples; without them everything can be read.

mod cache;
mod compare;
mod conditions;
mod fs;
mod page;
mod section;
mod tables;
#[cfg(test)]
mod tests;
mod update;
mod warnings;
mod words;

use crate::figure::Figure;
use crate::record::{Kind, Results};
use section::Section;

pub use page::MARK;

/// Returns the page about some runs.
///
/// # Cost
/// Some milliseconds a run, and twice the size of the raw samples.
pub fn page(all: &[Results]) -> String {
    let sections: Vec<Section> = all.iter().map(section_of).collect();
    page::page(all, &sections)
}

/// Returns the figures about some runs, in the order of the page. Their names differ.
pub fn figures(all: &[Results]) -> Vec<Figure> {
    let compared = compare::compare(all).into_iter();
    let mut figures: Vec<Figure> = compared
        .flat_map(|compared| compared.exhibit.figures)
        .collect();
    for (number, results) in all.iter().enumerate() {
        for exhibit in section_of(results).exhibits {
            figures.extend(exhibit.figures.into_iter().map(|mut figure| {
                if all.len() > 1 {
                    figure.name = format!("{}-{}", number + 1, figure.name);
                }
                figure
            }));
        }
    }
    figures
}

fn section_of(results: &Results) -> Section {
    match results.header.kind {
        Kind::Fs => fs::section(results),
        Kind::Cache => cache::section(results),
        Kind::Update => update::section(results),
    }
}
