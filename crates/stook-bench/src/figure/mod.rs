//! Charts as SVG: pure functions from figures to text.
//!
//! A chart is drawn in two widths, one for a screen and one for a phone, as letters must not shrink with the page. It needs
//! no script, font or picture from elsewhere. Values become places in `scale`, and text in `unit`; axes, legends and marks
//! are in `drawing`; each kind of chart puts them together.

mod bars;
mod curves;
mod drawing;
mod plane;
mod scale;
mod scatter;
mod style;
#[cfg(test)]
mod tests;
mod unit;

use maud::{Markup, PreEscaped, html};

pub(crate) use bars::{Bars, Group, Row};
pub(crate) use curves::{Curve, Curves};
pub(crate) use drawing::clean;
pub(crate) use scatter::{Cloud, Point, Scatter};
pub(crate) use style::page_style;
pub(crate) use unit::{Unit, grouped, three_digits, with_groups};

use drawing::{Drawing, LINE, Width, fitted, number};

/// A chart with its title.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The name of its files, without an ending: letters, digits and dashes.
    pub name: String,
    pub(crate) title: String,
    pub(crate) chart: Chart,
}

/// One of the kinds of charts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Chart {
    /// Bars with their spread, or made of parts, in groups.
    Bars(Bars),
    /// Points in a plane, with the line where both figures are equal.
    Scatter(Scatter),
    /// Shares of operations that took at most so long.
    Curves(Curves),
}

impl Chart {
    fn draw(&self, width: Width) -> Drawing {
        match self {
            Self::Bars(chart) => chart.draw(width),
            Self::Scatter(chart) => chart.draw(width),
            Self::Curves(chart) => chart.draw(width),
        }
    }

    /// Returns in one sentence what is drawn, for those who cannot see it.
    fn description(&self) -> String {
        match self {
            Self::Bars(chart) => chart.description(),
            Self::Scatter(chart) => chart.description(),
            Self::Curves(chart) => chart.description(),
        }
    }
}

impl Figure {
    pub(crate) fn new(name: &str, title: &str, chart: Chart) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            chart,
        }
    }

    /// Returns the chart for a page that has `page_style`, where so many figures stand beside each other: for screens in the
    /// class `wide`, for phones in `narrow`, once in none if that is the same.
    pub(crate) fn for_page(&self, beside_each_other: usize) -> Markup {
        let wide = match beside_each_other {
            0 | 1 => Width::Wide,
            2 => Width::Half,
            _ => return self.inline(Width::Narrow, "figure"),
        };
        html! { (self.inline(wide, "figure wide")) (self.inline(Width::Narrow, "figure narrow")) }
    }

    fn inline(&self, width: Width, class: &str) -> Markup {
        self.element(&self.chart.draw(width), class, [0.0; 2], &html! {})
    }

    /// Returns the chart as a file of its own: with its title, light or dark as the reader's system is.
    pub fn svg(&self) -> String {
        const ABOVE: f64 = 20.0 + LINE;
        const MARGIN: f64 = 16.0;
        let drawing = self.chart.draw(Width::Wide);
        let title = fitted(&self.title, drawing.width * 0.8);
        let (width, height) = (
            drawing.width + 2.0 * MARGIN,
            drawing.height + ABOVE + MARGIN,
        );
        let frame = html! {
            style { (PreEscaped(style::file_style())) }
            (drawing::rectangle("paper", -MARGIN, -ABOVE, width, height))
            (drawing::text(0.0, -LINE, "start", "title", &title))
        };
        let element = self.element(&drawing, "figure", [MARGIN, ABOVE], &frame);
        element.into_string()
    }

    fn element(
        &self,
        drawing: &Drawing,
        class: &str,
        [margin, above]: [f64; 2],
        frame: &Markup,
    ) -> Markup {
        let (width, height) = (
            drawing.width + 2.0 * margin,
            drawing.height + above + margin,
        );
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
