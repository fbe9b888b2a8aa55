//! What is known of the memory of tools, in words.
//!
//! Of a peak that may be the bench's own it is only known that the tool held no more. So a ratio of two peaks may be
//! known from one side, or not at all.

use super::View;
use crate::figure::Unit;
use crate::report::case::{Case, Measure};
use crate::report::part::{geometric, listed};
use crate::statistics::median;

/// From which side a ratio is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Exactly,
    AtMost,
    AtLeast,
}

impl Known {
    /// Of a ratio whose parts may be bounds; None if nothing is known.
    fn of(is_over_a_bound: bool, is_under_a_bound: bool) -> Option<Self> {
        match (is_over_a_bound, is_under_a_bound) {
            (false, false) => Some(Self::Exactly),
            (true, false) => Some(Self::AtMost),
            (false, true) => Some(Self::AtLeast),
            (true, true) => None,
        }
    }

    /// Of the mean of two ratios; None if nothing is known.
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (known, Self::Exactly) | (Self::Exactly, known) => Some(known),
            (known, other) => (known == other).then_some(known),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Exactly => "",
            Self::AtMost => "at most ",
            Self::AtLeast => "at least ",
        }
    }
}

impl View<'_> {
    /// How much memory another tool takes, as a multiple of the first one's; nothing if either was not measured.
    pub(super) fn memory_in_words(&self, other: &str) -> Vec<String> {
        let (mut told, mut unknown) = (Vec::new(), Vec::new());
        for operation in &self.operations {
            let ratios: Vec<(f64, Option<Known>)> = self
                .pairs
                .iter()
                .filter_map(|pair| {
                    peaks(
                        self.case(other, pair, operation)?,
                        self.case(&self.first, pair, operation)?,
                    )
                })
                .collect();
            let values: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
            let Some((mean, ..)) = geometric(&values) else {
                continue;
            };
            let known = ratios
                .iter()
                .try_fold(Known::Exactly, |all, (_, known)| all.and((*known)?));
            match known {
                Some(known) => told.push(format!(
                    "{}{} to `{operation}`",
                    known.words(),
                    Unit::Ratio.show(mean)
                )),
                None => unknown.push(format!("`{operation}`")),
            }
        }
        let first = &self.first;
        let mut sentences = Vec::new();
        if !told.is_empty() {
            sentences.push(format!(
                "At its peak {other} holds, as a multiple of the memory of {first}, {}.",
                listed(&told)
            ));
        }
        if !unknown.is_empty() {
            sentences.push(format!(
                "How much memory {other} takes as a multiple of that of {first} is not known of {}: the bench itself held as much.",
                listed(&unknown)
            ));
        }
        sentences
    }
}

/// The ratio of the medians of two peaks, and how it is known.
fn peaks(over: &Case<'_>, under: &Case<'_>) -> Option<(f64, Option<Known>)> {
    let of = |case: &Case<'_>| median(&case.measure(Measure::Peak));
    let (above, below) = (of(over)?, of(under)?);
    let known = Known::of(over.is_peak_a_bound(), under.is_peak_a_bound());
    (below > 0.0).then(|| (above / below, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_known_from_the_side_from_which_all_its_ratios_are() {
        let (exactly, at_most, at_least) = (
            Known::of(false, false).unwrap(),
            Known::of(true, false).unwrap(),
            Known::of(false, true).unwrap(),
        );
        assert_eq!(exactly.and(at_most), Some(Known::AtMost));
        assert_eq!(at_least.and(exactly), Some(Known::AtLeast));
        assert_eq!(at_least.and(at_least), Some(Known::AtLeast));
        assert_eq!(at_least.and(at_most), None);
        assert_eq!(Known::of(true, true), None);
    }
}
