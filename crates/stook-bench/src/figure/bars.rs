//! Bars in groups: medians, with their quartiles, their ends and every sample.
//!
//! ```text
//! untar
//!   scratch  ██████▪┤                     1.20 s
//!   nfs      █████████████████████▪─┤     61.0 s
//! ```
//! The bars lie, and their names stand beside them: long names fit, the figures stand in a column, and nobody has to look
//! up a colour.

use maud::{Markup, html};

use super::Width;
use super::drawing::{
    AxisBelow, Drawing, LINE, fitted, line, number, rectangle, series_class, text, text_width,
};
use super::scale::Scale;
use super::unit::Unit;
use crate::statistics::Spread;

/// Bars in groups, one bar of every series in each.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The name of the axis.
    pub axis: String,
    /// What the values are.
    pub unit: Unit,
    /// The names of the series.
    pub series: Vec<String>,
    /// The groups.
    pub groups: Vec<Group>,
}

/// A group of bars.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name.
    pub label: String,
    /// The samples of each series; one that was not measured has none.
    pub samples: Vec<Vec<f64>>,
}

const ROW: f64 = 18.0;
const THICKNESS: f64 = 11.0;
const GAP: f64 = 10.0;

/// Where the columns of the figure are.
struct Columns {
    names: f64,
    left: f64,
    right: f64,
    width: f64,
}

impl Bars {
    pub(super) fn draw(&self, width: Width, span: Option<(f64, f64)>) -> Drawing {
        let columns = self.columns(width);
        let values = self
            .groups
            .iter()
            .flat_map(|group| group.samples.iter().flatten());
        let values = values
            .copied()
            .chain(span.into_iter().flat_map(|(least, most)| [least, most]));
        let scale = Scale::of(values, self.unit, columns.left, columns.right);
        let mut top = 0.0;
        let mut groups = Vec::new();
        for group in &self.groups {
            groups.push(self.group(group, &columns, &scale, top));
            top += self.group_height(group);
        }
        let bottom = top - GAP + 4.0;
        let axis = AxisBelow {
            scale: &scale,
            unit: self.unit,
            name: &self.axis,
            top: 0.0,
            bottom,
        };
        Drawing {
            width: columns.width,
            height: bottom + AxisBelow::HEIGHT,
            body: html! { (axis.draw()) @for group in groups { (group) } },
        }
    }

    /// One series needs no name of its own: the groups are its rows.
    fn is_plain(&self) -> bool {
        self.series.len() == 1
    }

    fn group_height(&self, group: &Group) -> f64 {
        if self.is_plain() {
            return ROW + 4.0;
        }
        LINE + ROW * group.samples.len() as f64 + GAP
    }

    fn columns(&self, width: Width) -> Columns {
        let width = width.pixels();
        let indent = if self.is_plain() { 0.0 } else { 10.0 };
        let names: Vec<&String> = if self.is_plain() {
            self.groups.iter().map(|group| &group.label).collect()
        } else {
            self.series.iter().collect()
        };
        let widest = names
            .iter()
            .map(|name| text_width(name))
            .fold(0.0, f64::max);
        let values = self.medians().map(|(_, _, shown)| text_width(&shown));
        let names = (widest + indent + 1.0).min(width * 0.34);
        Columns {
            names,
            left: names + 10.0,
            right: width - values.fold(24.0, f64::max) - 10.0,
            width,
        }
    }

    /// Every bar that there is: its group, its series, and its median as text.
    fn medians(&self) -> impl Iterator<Item = (&Group, usize, String)> {
        self.groups.iter().flat_map(move |group| {
            let all = group.samples.iter().enumerate();
            all.filter_map(move |(series, samples)| {
                let spread = Spread::of(samples)?;
                Some((group, series, self.unit.show(spread.median)))
            })
        })
    }

    fn group(&self, group: &Group, columns: &Columns, scale: &Scale, top: f64) -> Markup {
        let (first, indent) = if self.is_plain() {
            (top, 0.0)
        } else {
            (top + LINE, 10.0)
        };
        html! {
            @if !self.is_plain() {
                (text(0.0, top + 13.0, "start", "strong", &fitted(&group.label, columns.width)))
            }
            @for series in 0..group.samples.len() {
                @let name = if self.is_plain() { &group.label } else { &self.series[series] };
                @let middle = first + ROW * (series as f64 + 0.5);
                (text(indent, middle + 4.0, "start", "", &fitted(name, columns.names - indent)))
                (self.bar(group, series, name, columns, scale, middle))
            }
        }
    }

    fn bar(
        &self,
        group: &Group,
        series: usize,
        name: &str,
        columns: &Columns,
        scale: &Scale,
        middle: f64,
    ) -> Markup {
        let samples = &group.samples[series];
        let Some(spread) = Spread::of(samples) else {
            return text(columns.width, middle + 4.0, "end", "faint", "–");
        };
        let shown = self.unit.show(spread.median);
        let tip = format!("{}: {name}: {}", group.label, self.tip(&shown, &spread));
        let end = scale.at(spread.median);
        let bar = rectangle(
            &series_class("bar", series),
            columns.left,
            middle - THICKNESS / 2.0,
            end - columns.left,
            THICKNESS,
        );
        html! {
            g {
                title { (super::clean(&tip)) }
                (bar)
                (spread_marks(&spread, samples, scale, middle))
                (text(columns.width, middle + 4.0, "end", "", &shown))
            }
        }
    }

    fn tip(&self, median: &str, spread: &Spread) -> String {
        let show = |value| self.unit.show(value);
        let Spread {
            count,
            min,
            max,
            lower_quartile,
            upper_quartile,
            ..
        } = *spread;
        if count == 1 {
            return format!("{median}, one sample");
        }
        format!(
            "median {median}, quartiles {} and {}, from {} to {}, {count} samples",
            show(lower_quartile),
            show(upper_quartile),
            show(min),
            show(max)
        )
    }

    pub(super) fn description(&self) -> String {
        let ends = self.medians().filter_map(|(group, series, shown)| {
            let name = self.series.get(series)?;
            Some(format!("{}, {name}: {shown}", group.label))
        });
        let all: Vec<String> = ends.collect();
        format!(
            "Bars of medians, with quartiles, least, greatest and all samples. {}.",
            all.join("; ")
        )
    }
}

/// The least to the greatest as a line, the quartiles as a box, every sample as a dot.
pub(super) fn spread_marks(spread: &Spread, samples: &[f64], scale: &Scale, middle: f64) -> Markup {
    let (min, max) = (scale.at(spread.min), scale.at(spread.max));
    let (lower, upper) = (
        scale.at(spread.lower_quartile),
        scale.at(spread.upper_quartile),
    );
    html! {
        @if spread.count > 1 {
            (line("whisker", (min, middle), (max, middle)))
            (rectangle("box", lower, middle - 3.0, upper - lower, 6.0))
        }
        @for sample in samples {
            circle class="dot" cx=(number(scale.at(*sample))) cy=(number(middle)) r="1.8" {}
        }
    }
}
