//! What a run comes to: sentences, figures and tables, before they are put on a page.

use crate::figure::{Chart, Figure, grouped};

use super::sheet::Sheet;

/// Figures that are read together.
pub(super) struct Exhibit {
    /// What they show.
    pub(super) title: String,
    /// How they are to be read.
    pub(super) caption: String,
    /// The figures: one, or several beside each other.
    pub(super) figures: Vec<Figure>,
}

/// All that is said about one run.
pub(super) struct Part {
    /// What was compared, in a few words.
    pub(super) title: String,
    /// What was measured, in one sentence.
    pub(super) measured: String,
    /// What the figures say, the most important first.
    pub(super) findings: Vec<String>,
    /// Figures, those that are compared together.
    pub(super) exhibits: Vec<Exhibit>,
    /// Tables.
    pub(super) sheets: Vec<Sheet>,
}

impl Part {
    /// Adds a figure that stands alone.
    pub(super) fn figure(&mut self, name: &str, title: &str, caption: &str, chart: Chart) {
        self.exhibit(title, caption, vec![figure(name, title, chart)]);
    }

    /// Adds figures that are read together, unless there are none.
    pub(super) fn exhibit(&mut self, title: &str, caption: &str, figures: Vec<Figure>) {
        if !figures.is_empty() {
            self.exhibits.push(Exhibit {
                title: title.to_owned(),
                caption: caption.to_owned(),
                figures,
            });
        }
    }

    /// Adds a table, unless it is empty.
    pub(super) fn sheet(&mut self, sheet: Sheet) {
        if !sheet.is_empty() {
            self.sheets.push(sheet);
        }
    }
}

pub(super) fn figure(name: &str, title: &str, chart: Chart) -> Figure {
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        chart,
    }
}

/// Returns a number and its noun.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    let figure = grouped(number as u64);
    format!("{figure} {}", if number == 1 { one } else { many })
}

/// Returns names as a sentence has them: `a, b and c`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Returns a text of at most so many letters: the beginning of a longer one, with an ellipsis.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Returns the geometric mean of ratios, their least and their greatest; None of none.
pub(super) fn geometric(ratios: &[f64]) -> Option<(f64, f64, f64)> {
    let usable: Vec<f64> = ratios
        .iter()
        .copied()
        .filter(|ratio| *ratio > 0.0 && ratio.is_finite())
        .collect();
    let logarithms = usable.iter().map(|ratio| ratio.ln()).sum::<f64>();
    let ends = (
        usable.iter().copied().fold(f64::INFINITY, f64::min),
        usable.iter().copied().fold(0.0, f64::max),
    );
    let count = super::case::as_float(usable.len() as u64);
    (!usable.is_empty()).then(|| ((logarithms / count).exp(), ends.0, ends.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_make_a_sentence() {
        let names: Vec<String> = ["a", "b", "c"].map(ToOwned::to_owned).to_vec();
        assert_eq!(
            (listed(&names), listed(&names[..1])),
            ("a, b and c".to_owned(), "a".to_owned())
        );
        assert_eq!(count(1, "round", "rounds"), "1 round");
        assert_eq!(count(12_000, "file", "files"), "12,000 files");
        assert_eq!(
            (shortened("añc", 3), shortened("añcd", 3)),
            ("añc".to_owned(), "añ…".to_owned())
        );
    }

    #[test]
    fn twice_and_half_are_equal_in_the_mean() {
        let (mean, low, high) = geometric(&[2.0, 0.5, 0.0]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!((low, high), (0.5, 2.0));
        assert_eq!(geometric(&[0.0]), None);
    }
}
