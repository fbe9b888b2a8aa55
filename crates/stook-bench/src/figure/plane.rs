//! A plot with two axes and a legend above it: what points and curves lie in.

use maud::{Markup, html};

use super::drawing::{
    AXIS_HEIGHT, Drawing, LINE, Legend, Width, axis_below, axis_left, fitted, text, widest,
};
use super::scale::Scale;

/// Where the plot lies.
pub(super) struct Plane {
    pub(super) across: Scale,
    pub(super) up: Scale,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    legend: Legend,
    width: f64,
}

impl Plane {
    /// Returns a plot of this height for these series. `up` and `across` make a scale between two places; `across` also gets
    /// the scale upwards.
    pub(super) fn new<'a>(
        width: Width,
        height: f64,
        series: impl Iterator<Item = &'a String>,
        up: impl Fn(f64, f64) -> Scale,
        across: impl Fn(f64, f64, Scale) -> Scale,
    ) -> Self {
        let width = width.pixels();
        let legend = Legend::new(series, width);
        let top = legend.height + LINE + 4.0;
        let bottom = top + height;
        let up = up(bottom, top);
        let (left, right) = (
            widest(up.ticks().iter().map(|(_, shown)| shown)).max(20.0) + 8.0,
            width - 24.0,
        );
        Self {
            across: across(left, right, up),
            up,
            left,
            right,
            top,
            bottom,
            legend,
            width,
        }
    }

    /// Puts the axes, with their names, and the legend around what lies in the plot.
    pub(super) fn drawing(
        &self,
        [across, up]: [&str; 2],
        sign: impl Fn(usize, f64, f64) -> Markup,
        content: &Markup,
    ) -> Drawing {
        let up = fitted(&format!("{up}{}", self.up.remark()), self.width);
        Drawing {
            width: self.width,
            height: self.bottom + AXIS_HEIGHT,
            body: html! {
                (self.legend.draw(sign))
                (text(0.0, self.top - 8.0, "start", "faint", &up))
                (axis_left(&self.up, self.left, self.right))
                (axis_below(&self.across, across, self.top, self.bottom))
                (content)
            },
        }
    }
}
