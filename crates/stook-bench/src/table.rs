//! Tables: one type for terminals and pages.
//!
//! Columns hold texts or figures. Figures stand to the right, and a page sorts them by their values.

use crate::figure::{clean, with_groups};
use crate::statistics::Ratio;

/// A table that is printed when it is full.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<Column>,
}

/// A column of texts or of figures.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) is_figures: bool,
    pub(crate) cells: Vec<Cell>,
}

/// A cell: its text, and by what a page sorts it if not by that.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) value: Option<f64>,
}

impl Table {
    /// Begins a table with the titles of its columns: texts in the first one, figures in the others.
    pub fn new<S: Into<String>>(titles: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self::default();
        for title in titles {
            let is_figures = !table.columns.is_empty();
            table.add(&title.into(), is_figures, Vec::new());
        }
        table
    }

    /// Begins a table with figures in front and texts, which may be long, in the last column.
    pub fn name_last<S: Into<String>>(titles: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self::new(titles);
        let last = table.columns.len().saturating_sub(1);
        for (number, column) in table.columns.iter_mut().enumerate() {
            column.is_figures = number < last;
        }
        table
    }

    /// Adds a row; cells that it does not have stay empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            let text = cells.next().map(Into::into).unwrap_or_default();
            column.cells.push(Cell { text, value: None });
        }
    }

    /// Returns true if it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    pub(crate) fn rows(&self) -> usize {
        let lengths = self.columns.iter().map(|column| column.cells.len());
        lengths.max().unwrap_or(0)
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn add(&mut self, title: &str, is_figures: bool, cells: Vec<Cell>) {
        self.columns.push(Column {
            title: title.to_owned(),
            is_figures,
            cells,
        });
    }

    /// Adds a column of texts.
    pub(crate) fn texts(&mut self, title: &str, cells: impl IntoIterator<Item = String>) {
        let cell = |text: String| Cell {
            text: clean(&text),
            value: None,
        };
        self.add(title, false, cells.into_iter().map(cell).collect());
    }

    /// Adds a column of figures with the same digits behind the point; it is left out if there are none at all.
    pub(crate) fn figures(&mut self, title: &str, cells: impl IntoIterator<Item = Option<f64>>) {
        self.figures_alike(vec![(title, cells.into_iter().collect())]);
    }

    /// Adds columns of figures that are compared with each other, and so have the same digits behind the point.
    pub(crate) fn figures_alike(&mut self, columns: Vec<(&str, Vec<Option<f64>>)>) {
        let all = columns.iter().flat_map(|(_, cells)| cells);
        let decimals = decimals(&all.copied().flatten().collect::<Vec<f64>>());
        let show = |value: f64| with_groups(&format!("{value:.decimals$}"));
        for (title, cells) in columns {
            if cells.iter().any(Option::is_some) {
                self.shown(title, cells.into_iter().map(|value| (value, show)));
            }
        }
    }

    /// Adds ratios with their intervals.
    pub(crate) fn ratios(&mut self, ratios: &[Option<Ratio>]) {
        let of = |value: fn(&Ratio) -> f64| {
            let values = ratios.iter().map(|ratio| ratio.as_ref().map(value));
            values.collect()
        };
        self.figures_alike(vec![
            ("ratio", of(|ratio| ratio.value)),
            ("from", of(|ratio| ratio.low)),
            ("to", of(|ratio| ratio.high)),
        ]);
    }

    /// Adds a column of figures, each with how it is shown.
    pub(crate) fn shown(
        &mut self,
        title: &str,
        cells: impl IntoIterator<Item = (Option<f64>, impl Fn(f64) -> String)>,
    ) {
        let cell = |(value, show): (Option<f64>, _)| Cell {
            text: value.map_or_else(|| "–".to_owned(), show),
            value,
        };
        self.add(title, true, cells.into_iter().map(cell).collect());
    }

    /// Adds a column of figures that have their text already.
    pub(crate) fn written(
        &mut self,
        title: &str,
        cells: impl IntoIterator<Item = (String, Option<f64>)>,
    ) {
        let cell = |(text, value)| Cell { text, value };
        self.add(title, true, cells.into_iter().map(cell).collect());
    }

    /// Returns the lines, each with its end: columns two blanks apart, a rule below the titles.
    pub fn text(&self) -> String {
        let widths: Vec<usize> = self.columns.iter().map(Column::width).collect();
        let of_columns = |text: &dyn Fn(&Column) -> String| {
            let texts = self.columns.iter().map(text).collect::<Vec<String>>();
            self.line(&texts, &widths)
        };
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut text = of_columns(&|column| column.title.clone()) + &self.line(&rule, &widths);
        for row in 0..self.rows() {
            text += &of_columns(&|column| {
                let cell = column.cells.get(row);
                cell.map(|cell| cell.text.clone()).unwrap_or_default()
            });
        }
        text
    }

    fn line(&self, texts: &[String], widths: &[usize]) -> String {
        let cells = self.columns.iter().zip(texts.iter().zip(widths));
        let cells = cells.map(|(column, (text, &width))| match column.is_figures {
            true => format!("{text:>width$}"),
            false => format!("{text:<width$}"),
        });
        let line = cells.collect::<Vec<String>>().join("  ");
        format!("{}\n", line.trim_end())
    }
}

impl Column {
    fn width(&self) -> usize {
        let texts = self.cells.iter().map(|cell| &cell.text);
        let widths = texts.chain([&self.title]).map(|text| text.chars().count());
        widths.max().unwrap_or(0)
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
    let sizes = values.iter().map(|value| value.abs());
    let least = sizes.filter(|size| *size > 0.0).fold(f64::MAX, f64::min);
    (1.0 - least.log10().floor()).clamp(0.0, 4.0) as usize
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn shown(columns: &[&[Option<f64>]]) -> Vec<Vec<String>> {
        let mut table = Table::default();
        table.figures_alike(columns.iter().map(|cells| ("s", cells.to_vec())).collect());
        let texts = table.columns().iter().map(|column| &column.cells);
        texts
            .map(|cells| cells.iter().map(|cell| cell.text.clone()).collect())
            .collect()
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["state", "s", "share"]);
        table.row(["cold", "12.345", "0.9"]);
        table.row(["h", "1.0"]);
        let expected =
            "state       s  share\n-----  ------  -----\ncold   12.345    0.9\nh         1.0\n";
        assert_eq!(table.text(), expected);
        let mut table = Table::name_last(["s", "in"]);
        table.row(["12.5", "a long name"]);
        assert_eq!(
            table.text(),
            "   s  in\n----  -----------\n12.5  a long name\n"
        );
    }

    #[test]
    fn figures_of_a_column_and_of_columns_alike_have_the_same_digits() {
        let of = |cells: &[f64]| {
            let cells: Vec<_> = cells.iter().copied().map(Some).collect();
            shown(&[&cells]).concat()
        };
        assert_eq!(of(&[12.5, 0.012, 3.0]), ["12.500", "0.012", "3.000"]);
        assert_eq!(of(&[12_345.6, 99.0]), ["12,346", "99"]);
        assert_eq!(of(&[0.0, 5.0]), ["0", "5"]);
        assert_eq!(of(&[1e-9]), ["0.0000"]);
        let alike = shown(&[&[Some(0.25)], &[Some(7.0)], &[None]]);
        assert_eq!(alike, [["0.25"], ["7.00"]], "an empty column is left out");
    }
}
