//! Charts as SVG: pure functions from figures to text.
//!
//! A chart is drawn in two widths, one for a screen and one for a phone, as letters must not shrink with the page. It needs
//! no script, font or picture from elsewhere.
//!
//! ```
//! use stook_bench::figure::{Bars, Chart, Figure, Group, Unit};
//! let bars = Bars {
//!     axis: "Time".to_owned(),
//!     unit: Unit::Seconds,
//!     series: vec!["stook".to_owned(), "tar".to_owned()],
//!     groups: vec![Group { label: "create".to_owned(), samples: vec![vec![1.2, 1.3], vec![2.0, 2.1]] }],
//! };
//! let figure = Figure { name: "time".to_owned(), title: "Time by phase".to_owned(), chart: Chart::Bars(bars) };
//! assert!(figure.svg().starts_with("<svg"));
//! ```

mod bars;
mod curves;
mod drawing;
mod heat;
mod scale;
mod scatter;
mod stacks;
mod style;
#[cfg(test)]
mod tests;
mod unit;

use maud::{Markup, PreEscaped, html};

pub use bars::{Bars, Group};
pub use curves::{Curve, Curves};
pub(crate) use drawing::clean;
pub use heat::Heat;
pub use scatter::{Cloud, Point, Scatter};
pub use stacks::{Stack, Stacks};
pub(crate) use style::page_style;
pub use unit::Unit;
pub(crate) use unit::{grouped, three_digits, with_groups};

use drawing::{Drawing, LINE, fitted, number};

/// A chart with its title.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The name of its files, without an ending: letters, digits and dashes.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The chart.
    pub chart: Chart,
}

/// One of the kinds of charts.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Bars with their spread, in groups.
    Bars(Bars),
    /// Bars on an axis that also spans these two values: for charts that are compared with each other.
    BarsWithin(Bars, (f64, f64)),
    /// Bars made of parts.
    Stacks(Stacks),
    /// Points in a plane, with the line where both figures are equal.
    Scatter(Scatter),
    /// Shares of operations that took at most so long.
    Curves(Curves),
    /// Ratios in a grid.
    Heat(Heat),
}

/// How wide a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    /// A figure alone on a screen.
    Wide,
    /// One of two beside each other.
    Half,
    /// On a phone, or one of three beside each other.
    Narrow,
}

impl Width {
    fn pixels(self) -> f64 {
        match self {
            Self::Wide => 680.0,
            Self::Half => 480.0,
            Self::Narrow => 340.0,
        }
    }
}

impl Chart {
    fn draw(&self, width: Width) -> Drawing {
        match self {
            Self::Bars(chart) => chart.draw(width, None),
            Self::BarsWithin(chart, span) => chart.draw(width, Some(*span)),
            Self::Stacks(chart) => chart.draw(width),
            Self::Scatter(chart) => chart.draw(width),
            Self::Curves(chart) => chart.draw(width),
            Self::Heat(chart) => chart.draw(width),
        }
    }

    /// Returns in one sentence what is drawn, for those who cannot see it.
    fn description(&self) -> String {
        match self {
            Self::Bars(chart) | Self::BarsWithin(chart, _) => chart.description(),
            Self::Stacks(chart) => chart.description(),
            Self::Scatter(chart) => chart.description(),
            Self::Curves(chart) => chart.description(),
            Self::Heat(chart) => chart.description(),
        }
    }
}

impl Figure {
    /// Returns the chart for a page that has `page_style`, where so many figures stand beside each other: for screens in the
    /// class `wide`, for phones in `narrow`, once in none if that is the same.
    pub(crate) fn for_page(&self, beside_each_other: usize) -> Markup {
        let wide = match beside_each_other {
            0 | 1 => Width::Wide,
            2 => Width::Half,
            _ => return self.inline(Width::Narrow, ""),
        };
        html! { (self.inline(wide, " wide")) (self.inline(Width::Narrow, " narrow")) }
    }

    fn inline(&self, width: Width, class: &str) -> Markup {
        let drawing = self.chart.draw(width);
        let class = format!("figure{class}");
        self.element(&drawing, &class, 0.0, &html! {})
    }

    /// Returns the chart as a file of its own: with its title, light or dark as the reader's system is.
    pub fn svg(&self) -> String {
        const ABOVE: f64 = 20.0;
        let drawing = self.chart.draw(Width::Wide);
        let title = fitted(&self.title, drawing.width * 0.8);
        let frame = html! {
            style { (PreEscaped(style::file_style())) }
            (drawing::rectangle("paper", -16.0, -ABOVE - LINE, drawing.width + 32.0, drawing.height + ABOVE + LINE + 16.0))
            (drawing::text(0.0, -LINE, "start", "title", &title))
        };
        self.element(&drawing, "figure", ABOVE + LINE, &frame)
            .into_string()
    }

    fn element(&self, drawing: &Drawing, class: &str, above: f64, frame: &Markup) -> Markup {
        let margin = if above > 0.0 { 16.0 } else { 0.0 };
        let width = drawing.width + 2.0 * margin;
        let height = drawing.height + above + margin;
        let view = [-margin, -above, width, height].map(number).join(" ");
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class=(class) role="img" viewBox=(view)
                width=(number(width)) height=(number(height)) {
                title { (clean(&self.title)) }
                desc { (clean(&self.chart.description())) }
                (frame)
                (drawing.body)
            }
        }
    }
}
