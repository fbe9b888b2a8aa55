//! Bars in groups: medians with their quartiles, their ends and every sample, or sums of parts.
//!
//! ```text
//! untar
//!   scratch  ██████▪┤                     1.20 s
//!   nfs      █████████████████████▪─┤     61.0 s
//! ```
//! The bars lie, and their names stand beside them: long names fit, the figures stand in a column, and no colour needs
//! a legend.

use maud::{Markup, html};

use super::drawing::{
    AXIS_HEIGHT, Drawing, LINE, Legend, Width, axis_below, clean, fitted, line, number, rectangle,
    series_class, text, widest,
};
use super::scale::Scale;
use super::unit::Unit;
use crate::statistics::Spread;

/// Bars in groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bars {
    /// The name of the axis.
    pub(crate) axis: String,
    pub(crate) unit: Unit,
    /// The names of the parts of each bar from the left, with their classes in the style sheet. None if bars have no
    /// parts: then their ends are medians.
    pub(crate) parts: Vec<(String, &'static str)>,
    pub(crate) groups: Vec<Group>,
    /// What the axis spans at least: for charts that are compared with each other.
    pub(crate) span: Option<(f64, f64)>,
}

/// A group of bars.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    pub(crate) label: String,
    pub(crate) rows: Vec<Row>,
}

/// A bar: the next one of each group belongs to the next series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The name of its series.
    pub(crate) name: String,
    /// What was measured; none if it was not.
    pub(crate) samples: Vec<f64>,
    /// The values of the parts. The axis is straight then: parts add up only there.
    pub(crate) parts: Vec<f64>,
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
    /// How far names stand to the right below that of their group.
    indent: f64,
}

impl Bars {
    pub(super) fn draw(&self, width: Width) -> Drawing {
        let columns = self.columns(width.pixels());
        let scale = self.scale(&columns);
        let legend = Legend::new(self.parts.iter().map(|(name, _)| name), columns.width);
        let mut top = legend.height;
        let mut groups = Vec::new();
        for group in &self.groups {
            groups.push(self.group(group, &columns, &scale, top));
            top += self.group_height(group);
        }
        let bottom = top - GAP + 4.0;
        let sign = |part: usize, x, y| rectangle(self.parts[part].1, x - 7.0, y - 5.0, 15.0, 11.0);
        Drawing {
            width: columns.width,
            height: bottom + AXIS_HEIGHT,
            body: html! {
                (legend.draw(sign))
                (axis_below(&scale, &self.axis, legend.height, bottom))
                @for group in groups { (group) }
            },
        }
    }

    fn rows(&self) -> impl Iterator<Item = (&Group, &Row)> {
        let groups = self.groups.iter();
        groups.flat_map(|group| group.rows.iter().map(move |row| (group, row)))
    }

    fn scale(&self, columns: &Columns) -> Scale {
        let span = self
            .span
            .into_iter()
            .flat_map(|(least, most)| [least, most]);
        let sums = self.rows().map(|(_, row)| row.parts.iter().sum());
        let samples = self.rows().flat_map(|(_, row)| row.samples.iter().copied());
        let values = samples.chain(sums).chain(span);
        if self.parts.is_empty() {
            return Scale::of(values, self.unit, columns.left, columns.right);
        }
        let greatest = values.fold(0.0, f64::max);
        Scale::straight(greatest, self.unit, columns.left, columns.right)
    }

    /// Groups of one bar each need no other names: the groups are the rows.
    fn is_plain(&self) -> bool {
        self.groups.iter().all(|group| group.rows.len() < 2)
    }

    fn group_height(&self, group: &Group) -> f64 {
        match self.is_plain() {
            true => ROW + 4.0,
            false => LINE + ROW * group.rows.len() as f64 + GAP,
        }
    }

    fn columns(&self, width: f64) -> Columns {
        let (names, indent) = match self.is_plain() {
            true => (widest(self.groups.iter().map(|group| &group.label)), 0.0),
            false => (widest(self.rows().map(|(_, row)| &row.name)), 10.0),
        };
        let shown = widest(self.rows().filter_map(|(_, row)| self.shown(row)));
        let names = (names + indent + 1.0).min(width * 0.34);
        Columns {
            names,
            left: names + 10.0,
            right: width - shown.max(24.0) - 10.0,
            width,
            indent,
        }
    }

    /// The text behind a bar: its median.
    fn shown(&self, row: &Row) -> Option<String> {
        Some(self.unit.show(Spread::of(&row.samples)?.median))
    }

    fn group(&self, group: &Group, columns: &Columns, scale: &Scale, top: f64) -> Markup {
        let is_plain = self.is_plain();
        let first = if is_plain { top } else { top + LINE };
        html! {
            @if !is_plain {
                (text(0.0, top + 13.0, "start", "strong", &fitted(&group.label, columns.width)))
            }
            @for (series, row) in group.rows.iter().enumerate() {
                @let name = if is_plain { &group.label } else { &row.name };
                @let middle = first + ROW * (series as f64 + 0.5);
                (text(columns.indent, middle + 4.0, "start", "", &fitted(name, columns.names - columns.indent)))
                (self.bar(group, series, columns, scale, middle))
            }
        }
    }

    fn bar(
        &self,
        group: &Group,
        series: usize,
        columns: &Columns,
        scale: &Scale,
        middle: f64,
    ) -> Markup {
        let row = &group.rows[series];
        let Some(spread) = Spread::of(&row.samples) else {
            return text(columns.width, middle + 4.0, "end", "faint", "–");
        };
        let bar = |class: &str, left: f64, right: f64| {
            rectangle(
                class,
                left,
                middle - THICKNESS / 2.0,
                right - left,
                THICKNESS,
            )
        };
        let mut before = 0.0;
        let parts = row
            .parts
            .iter()
            .zip(&self.parts)
            .map(|(value, (_, class))| {
                before += value;
                bar(class, scale.at(before - value), scale.at(before))
            });
        html! {
            g {
                title { (clean(&self.tip(group, row, &spread))) }
                @for part in parts { (part) }
                @if row.parts.is_empty() { (bar(&series_class("bar", series), columns.left, scale.at(spread.median))) }
                (spread_marks(&spread, &row.samples, scale, middle))
                (text(columns.width, middle + 4.0, "end", "", &self.unit.show(spread.median)))
            }
        }
    }

    fn tip(&self, group: &Group, row: &Row, spread: &Spread) -> String {
        let show = |value| self.unit.show(value);
        let name = format!("{}: {}: {}", group.label, row.name, show(spread.median));
        let parts = row.parts.iter().zip(&self.parts);
        let parts = parts.map(|(value, (part, _))| format!(", {part} {}", show(*value)));
        let name = name + &parts.collect::<String>();
        match spread.count {
            1 => format!("{name}, one sample"),
            count => format!(
                "{name}; quartiles {} and {}, from {} to {}, {count} samples",
                show(spread.lower_quartile),
                show(spread.upper_quartile),
                show(spread.min),
                show(spread.max)
            ),
        }
    }

    pub(super) fn description(&self) -> String {
        let rows = self.rows().filter_map(|(group, row)| {
            let spread = Spread::of(&row.samples)?;
            Some(self.tip(group, row, &spread))
        });
        format!(
            "Bars of medians, with quartiles, least, greatest and all samples. {}.",
            rows.collect::<Vec<String>>().join("; ")
        )
    }
}

/// The least to the greatest as a line, the quartiles as a box, every sample as a dot.
fn spread_marks(spread: &Spread, samples: &[f64], scale: &Scale, middle: f64) -> Markup {
    let (lower, upper) = (
        scale.at(spread.lower_quartile),
        scale.at(spread.upper_quartile),
    );
    html! {
        @if spread.count > 1 {
            (line("whisker", (scale.at(spread.min), middle), (scale.at(spread.max), middle)))
            (rectangle("box", lower, middle - 3.0, upper - lower, 6.0))
        }
        @for sample in samples {
            circle class="dot" cx=(number(scale.at(*sample))) cy=(number(middle)) r="1.8" {}
        }
    }
}
