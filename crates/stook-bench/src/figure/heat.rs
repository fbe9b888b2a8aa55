//! Ratios in a grid, coloured by how far they are from 1. Every cell has its figure in it.

use maud::{Markup, html};

use super::drawing::{Drawing, LINE, Width, clean, fitted, rectangle, text, widest};
use super::unit::Unit;

/// Ratios in a grid; less than 1 is better.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heat {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<String>,
    /// The ratios, by row; what was not measured has none.
    pub(crate) cells: Vec<Vec<Option<f64>>>,
    /// What less than 1 means, such as `stook is faster`, and what more does.
    pub(crate) means: [String; 2],
}

/// From this ratio on, the next step of the colours. 1.1 is what the archivers' study takes for a difference.
const STEPS: [f64; 6] = [0.25, 0.5, 1.0 / 1.1, 1.1, 2.0, 4.0];
const CELL: f64 = 26.0;
/// Where the first row begins.
const TOP: f64 = LINE + 4.0;

impl Heat {
    pub(super) fn draw(&self, width: Width) -> Drawing {
        let width = width.pixels();
        let left = (widest(self.rows.iter()) + 10.0).min(width * 0.4);
        let cell = ((width - left) / self.columns.len().max(1) as f64).min(110.0);
        let key = TOP + CELL * self.rows.len() as f64 + 12.0;
        let body = html! {
            @for (place, column) in self.columns.iter().enumerate() {
                (text(left + cell * (place as f64 + 0.5), 12.0, "middle", "strong", &fitted(column, cell - 4.0)))
            }
            @for (place, row) in self.rows.iter().enumerate() {
                (text(0.0, TOP + CELL * place as f64 + 17.0, "start", "", &fitted(row, left - 8.0)))
            }
            @for (row, column, ratio) in self.cells() {
                (self.cell(row, column, ratio, (left + cell * column as f64, cell)))
            }
            (self.key(key, width))
        };
        Drawing {
            width,
            height: key + 52.0,
            body,
        }
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize, Option<f64>)> {
        let rows = self.cells.iter().enumerate();
        rows.flat_map(|(row, cells)| {
            let cells = cells.iter().enumerate();
            cells.map(move |(column, ratio)| (row, column, *ratio))
        })
    }

    fn tip(&self, row: usize, column: usize, ratio: f64) -> String {
        let ratio = Unit::Ratio.show(ratio);
        format!("{}, {}: {ratio}", self.rows[row], self.columns[column])
    }

    fn cell(
        &self,
        row: usize,
        column: usize,
        ratio: Option<f64>,
        (x, width): (f64, f64),
    ) -> Markup {
        let (y, middle) = (TOP + CELL * row as f64, x + width / 2.0);
        let Some(ratio) = ratio else {
            return text(middle, y + 17.0, "middle", "faint", "–");
        };
        let step = STEPS.iter().take_while(|bound| ratio >= **bound).count();
        html! {
            g {
                title { (clean(&self.tip(row, column, ratio))) }
                (rectangle(&format!("h{step}"), x + 1.0, y + 1.0, width - 2.0, CELL - 2.0))
                (text(middle, y + 17.0, "middle", &format!("t{step}"), &Unit::Ratio.show(ratio)))
            }
        }
    }

    /// What the colours mean.
    fn key(&self, top: f64, width: f64) -> Markup {
        let cell = (width / 7.0).min(60.0);
        let all = cell * 7.0;
        let [low, high] = self
            .means
            .each_ref()
            .map(|means| fitted(means, all / 2.0 - 4.0));
        html! {
            @for step in 0..=STEPS.len() {
                (rectangle(&format!("h{step}"), step as f64 * cell, top, cell, 10.0))
            }
            @for (place, bound) in STEPS.iter().enumerate() {
                (text((place as f64 + 1.0) * cell, top + 23.0, "middle", "faint", &format!("{bound:.2}")))
            }
            (text(0.0, top + 40.0, "start", "faint", &low))
            (text(all, top + 40.0, "end", "faint", &high))
        }
    }

    pub(super) fn description(&self) -> String {
        let cells = self
            .cells()
            .filter_map(|(row, column, ratio)| Some(self.tip(row, column, ratio?)));
        format!(
            "A grid of ratios. {}.",
            cells.collect::<Vec<String>>().join("; ")
        )
    }
}
