//! Tables of the page: built column by column, so that the figures of a column have the same digits behind the point.

use maud::{Markup, html};

use crate::figure::{clean, with_groups};

/// Longer tables are folded.
const LONG: usize = 24;

/// A table.
pub(super) struct Sheet {
    /// What it shows.
    pub(super) title: String,
    /// How it is to be read, if that must be said.
    pub(super) note: String,
    /// Whether it is folded if it is long.
    pub(super) folds: bool,
    columns: Vec<Column>,
}

struct Column {
    title: String,
    is_figures: bool,
    cells: Vec<Cell>,
}

struct Cell {
    text: String,
    /// By what the rows are sorted; the text, if there is none.
    value: Option<f64>,
}

impl Sheet {
    pub(super) fn new(title: &str, note: &str) -> Self {
        Self {
            title: title.to_owned(),
            note: note.to_owned(),
            folds: true,
            columns: Vec::new(),
        }
    }

    /// Returns true if it has no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.columns
            .first()
            .is_none_or(|column| column.cells.is_empty())
    }

    /// Adds a column of texts.
    pub(super) fn texts(&mut self, title: &str, cells: impl IntoIterator<Item = String>) {
        let cells = cells
            .into_iter()
            .map(|text| Cell {
                text: clean(&text),
                value: None,
            })
            .collect();
        self.columns.push(Column {
            title: title.to_owned(),
            is_figures: false,
            cells,
        });
    }

    /// Adds a column of figures; it is left out if there are none at all.
    pub(super) fn figures(&mut self, title: &str, cells: impl IntoIterator<Item = Option<f64>>) {
        self.figures_alike(vec![(title, cells.into_iter().collect())]);
    }

    /// Adds columns of figures that are compared with each other, and so have the same digits behind the point.
    pub(super) fn figures_alike(&mut self, columns: Vec<(&str, Vec<Option<f64>>)>) {
        let all: Vec<f64> = columns
            .iter()
            .flat_map(|(_, cells)| cells.iter().flatten())
            .copied()
            .collect();
        let decimals = decimals(&all);
        for (title, cells) in columns {
            if cells.iter().all(Option::is_none) {
                continue;
            }
            let show = |value: f64| with_groups(&format!("{value:.decimals$}"));
            let cell = |value: Option<f64>| Cell {
                text: value.map_or_else(|| "–".to_owned(), show),
                value,
            };
            let cells = cells.into_iter().map(cell).collect();
            self.columns.push(Column {
                title: title.to_owned(),
                is_figures: true,
                cells,
            });
        }
    }

    /// Adds a column of figures that have their text already.
    pub(super) fn shown(
        &mut self,
        title: &str,
        cells: impl IntoIterator<Item = (String, Option<f64>)>,
    ) {
        let cells = cells
            .into_iter()
            .map(|(text, value)| Cell { text, value })
            .collect();
        self.columns.push(Column {
            title: title.to_owned(),
            is_figures: true,
            cells,
        });
    }

    pub(super) fn html(&self) -> Markup {
        let rows = self
            .columns
            .iter()
            .map(|column| column.cells.len())
            .max()
            .unwrap_or(0);
        html! {
            div.sheet {
                h4 { (self.title) }
                @if !self.note.is_empty() { p.note { (self.note) } }
                @if self.folds && rows > LONG {
                    details { summary { "Show " (rows) " rows" } (self.table(rows)) }
                } @else {
                    (self.table(rows))
                }
            }
        }
    }

    fn table(&self, rows: usize) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label=(self.title) {
                table {
                    thead { tr { @for column in &self.columns {
                        th scope="col" class=[column.is_figures.then_some("n")] { (column.title) }
                    } } }
                    tbody { @for row in 0..rows { tr { @for column in &self.columns { (column.cell(row)) } } } }
                }
            }
        }
    }
}

impl Column {
    fn cell(&self, row: usize) -> Markup {
        let Some(cell) = self.cells.get(row) else {
            return html! { td {} };
        };
        let value = cell.value.map(|value| format!("{value:.9}"));
        html! { td class=[self.is_figures.then_some("n")] data-value=[value] { (cell.text) } }
    }
}

/// As many digits behind the point as show two of the least figure, four at most.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 4"
)]
fn decimals(values: &[f64]) -> usize {
    if values.iter().all(|value| value.fract() == 0.0) {
        return 0;
    }
    let sizes = values
        .iter()
        .filter(|value| **value != 0.0)
        .map(|value| value.abs());
    let least = sizes.fold(f64::INFINITY, f64::min);
    (1.0 - least.log10().floor()).clamp(0.0, 4.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(cells: &[f64]) -> Vec<String> {
        let mut sheet = Sheet::new("", "");
        sheet.figures("s", cells.iter().copied().map(Some));
        sheet.columns[0]
            .cells
            .iter()
            .map(|cell| cell.text.clone())
            .collect()
    }

    #[test]
    fn figures_of_a_column_have_the_same_digits() {
        assert_eq!(shown(&[12.5, 0.012, 3.0]), ["12.500", "0.012", "3.000"]);
        assert_eq!(shown(&[12_345.6, 99.0]), ["12,346", "99"]);
        assert_eq!(shown(&[0.0, 5.0]), ["0", "5"]);
        assert_eq!(shown(&[1e-9]), ["0.0000"]);
    }

    #[test]
    fn columns_that_are_compared_have_the_same_digits() {
        let mut sheet = Sheet::new("", "");
        sheet.figures_alike(vec![
            ("min", vec![Some(0.25)]),
            ("max", vec![Some(7.0)]),
            ("none", vec![None]),
        ]);
        let texts: Vec<&str> = sheet
            .columns
            .iter()
            .map(|column| column.cells[0].text.as_str())
            .collect();
        assert_eq!(texts, ["0.25", "7.00"]);
    }

    #[test]
    fn a_column_without_figures_is_left_out_and_texts_are_escaped() {
        let mut sheet = Sheet::new("a & b", "");
        sheet.texts("target", ["<b>".to_owned()]);
        sheet.figures("peak", [None]);
        let html = sheet.html().into_string();
        assert!(
            html.contains("&lt;b&gt;") && !html.contains("peak"),
            "{html}"
        );
        assert!(!sheet.is_empty() && Sheet::new("", "").is_empty());
    }
}
