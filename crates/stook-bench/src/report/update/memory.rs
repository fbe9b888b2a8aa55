//! What is known of the memory of tools, in words.

use super::View;
use crate::figure::Unit;
use crate::report::case::{Case, Measure};
use crate::report::part::{geometric, listed};
use crate::statistics::median;

impl View<'_> {
    /// How much memory another tool takes, as a multiple of the first one's; None if it is not known of either.
    pub(super) fn memory_in_words(&self, other: &str) -> Option<String> {
        let of_operation = |operation: &String| {
            let ratio = |pair| {
                peaks(
                    self.case(other, pair, operation)?,
                    self.case(&self.first, pair, operation)?,
                )
            };
            let ratios: Vec<f64> = self.pairs.iter().filter_map(ratio).collect();
            let (mean, ..) = geometric(&ratios)?;
            Some(format!("{} to `{operation}`", Unit::Ratio.show(mean)))
        };
        let ratios: Vec<String> = self.operations.iter().filter_map(of_operation).collect();
        (!ratios.is_empty()).then(|| {
            format!(
                "At its peak {other} holds, as a multiple of the memory of {}, {}.",
                self.first,
                listed(&ratios)
            )
        })
    }
}

/// The ratio of the medians of two peaks.
fn peaks(over: &Case<'_>, under: &Case<'_>) -> Option<f64> {
    let of = |case: &Case<'_>| median(&case.measure(Measure::Peak));
    let (above, below) = (of(over)?, of(under)?);
    (below > 0.0).then(|| above / below)
}
