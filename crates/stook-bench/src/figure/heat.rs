//! Ratios in a grid, coloured by how far they are from 1. Every cell has its figure in it.

use maud::{Markup, html};

use super::Width;
use super::drawing::{Drawing, LINE, fitted, rectangle, text, text_width};
use super::unit::Unit;

/// Ratios in a grid; less than 1 is better.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The ratios, by row; what was not measured has none.
    pub cells: Vec<Vec<Option<f64>>>,
    /// What less than 1 means, such as `stook is faster`.
    pub low: String,
    /// What more than 1 means.
    pub high: String,
}

/// From this ratio on, the next step of the colours. 1.1 is what the archivers' study takes for a difference.
const STEPS: [f64; 6] = [0.25, 0.5, 1.0 / 1.1, 1.1, 2.0, 4.0];
const CELL: f64 = 26.0;

impl Heat {
    pub(super) fn draw(&self, width: Width) -> Drawing {
        let width = width.pixels();
        let widest = self
            .rows
            .iter()
            .map(|row| text_width(row))
            .fold(0.0, f64::max);
        let left = (widest + 10.0).min(width * 0.4);
        let columns = self.columns.len().max(1) as f64;
        let cell = ((width - left) / columns).min(110.0);
        let bottom = LINE + 4.0 + CELL * self.rows.len() as f64;
        let body = html! {
            @for (place, column) in self.columns.iter().enumerate() {
                (text(left + cell * (place as f64 + 0.5), 12.0, "middle", "strong", &fitted(column, cell - 4.0)))
            }
            @for (place, (row, cells)) in self.rows.iter().zip(&self.cells).enumerate() {
                @let top = LINE + 4.0 + CELL * place as f64;
                (text(0.0, top + 17.0, "start", "", &fitted(row, left - 8.0)))
                @for (column, ratio) in cells.iter().enumerate() {
                    (self.cell(*ratio, (row, column), (left + cell * column as f64, top), cell))
                }
            }
            (self.key(bottom + 12.0, width))
        };
        Drawing {
            width,
            height: bottom + 12.0 + 52.0,
            body,
        }
    }

    fn cell(
        &self,
        ratio: Option<f64>,
        (row, column): (&str, usize),
        (x, y): (f64, f64),
        width: f64,
    ) -> Markup {
        let Some(ratio) = ratio else {
            return text(x + width / 2.0, y + 17.0, "middle", "faint", "–");
        };
        let step = step(ratio);
        let column = self.columns.get(column).map_or("", String::as_str);
        let shown = Unit::Ratio.show(ratio);
        html! {
            g {
                title { (super::clean(&format!("{row}, {column}: {shown}"))) }
                (rectangle(&format!("h{step}"), x + 1.0, y + 1.0, width - 2.0, CELL - 2.0))
                (text(x + width / 2.0, y + 17.0, "middle", &format!("t{step}"), &shown))
            }
        }
    }

    fn key(&self, top: f64, width: f64) -> Markup {
        let cell = (width / 7.0).min(60.0);
        let all = cell * 7.0;
        html! {
            @for step in 0..=6_u8 {
                (rectangle(&format!("h{step}"), f64::from(step) * cell, top, cell, 10.0))
            }
            @for (place, bound) in STEPS.iter().enumerate() {
                (text((place as f64 + 1.0) * cell, top + 23.0, "middle", "faint", &format!("{bound:.2}")))
            }
            (text(0.0, top + 40.0, "start", "faint", &fitted(&self.low, all / 2.0 - 4.0)))
            (text(all, top + 40.0, "end", "faint", &fitted(&self.high, all / 2.0 - 4.0)))
        }
    }

    pub(super) fn description(&self) -> String {
        let rows = self.rows.iter().zip(&self.cells).map(|(row, cells)| {
            let cells = cells.iter().zip(&self.columns);
            let cells = cells.filter_map(|(ratio, column)| {
                Some(format!("{column} {}", Unit::Ratio.show((*ratio)?)))
            });
            format!("{row}: {}", cells.collect::<Vec<String>>().join(", "))
        });
        format!(
            "A grid of ratios. {}.",
            rows.collect::<Vec<String>>().join("; ")
        )
    }
}

fn step(ratio: f64) -> usize {
    STEPS.iter().take_while(|bound| ratio >= **bound).count()
}
