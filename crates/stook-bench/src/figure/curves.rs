//! Shares of operations that took at most so long: one rising line a series over a logarithmic time.

use maud::{Markup, html};

use super::Width;
use super::drawing::{
    AxisBelow, Drawing, LINE, Legend, axis_left, line, number, series_class, text, text_width,
};
use super::scale::Scale;
use super::unit::Unit;

/// Rising lines from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// The name of the axis below.
    pub axis: String,
    /// What the values are.
    pub unit: Unit,
    /// The lines.
    pub curves: Vec<Curve>,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Value, and the share of all that is at most that; both rising.
    pub points: Vec<(f64, f64)>,
}

impl Curves {
    pub(super) fn draw(&self, width: Width) -> Drawing {
        let pixels = width.pixels();
        let names: Vec<String> = self.curves.iter().map(|curve| curve.name.clone()).collect();
        let legend = Legend {
            names: &names,
            width: pixels,
        };
        let top = legend.height() + LINE;
        let bottom = top + if width == Width::Wide { 210.0 } else { 190.0 };
        let left = text_width(&Unit::Share.tick(1.0)) + 8.0;
        let right = pixels - 24.0;
        let across = self.across(left, right);
        let up = Scale::straight(1.0, Unit::Share, bottom, top);
        let below = AxisBelow {
            scale: &across,
            unit: self.unit,
            name: &self.axis,
            top,
            bottom,
        };
        let body = html! {
            (legend.draw(0.0, |series, x, y| line(&series_class("curve", series), (x - 8.0, y), (x + 10.0, y))))
            (text(0.0, top - 8.0, "start", "faint", "Share of operations that took at most so long"))
            (axis_left(&up, Unit::Share, left, right))
            (below.draw())
            @for (series, curve) in self.curves.iter().enumerate() {
                (self.curve(series, curve, &across, &up))
            }
        };
        Drawing {
            width: pixels,
            height: bottom + AxisBelow::HEIGHT,
            body,
        }
    }

    fn across(&self, left: f64, right: f64) -> Scale {
        let values = self
            .curves
            .iter()
            .flat_map(|curve| &curve.points)
            .map(|(value, _)| *value);
        let (least, greatest) = values
            .filter(|value| *value > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(least, greatest), value| {
                (least.min(value), greatest.max(value))
            });
        if greatest > 0.0 {
            Scale::logarithmic(least, greatest, left, right)
        } else {
            Scale::straight(0.0, self.unit, left, right)
        }
    }

    fn curve(&self, series: usize, curve: &Curve, across: &Scale, up: &Scale) -> Markup {
        let mut path = String::new();
        let mut height = up.at(0.0);
        for (value, share) in &curve.points {
            let x = number(across.at(*value));
            let start = if path.is_empty() { "M" } else { "L" };
            let next = up.at(*share);
            path.push_str(&format!("{start}{x} {}V{}", number(height), number(next)));
            height = next;
        }
        html! {
            @if !path.is_empty() {
                g {
                    title { (super::clean(&curve.name)) }
                    path class=(series_class("curve", series)) d=(path) {}
                }
            }
        }
    }

    /// Returns the least value that this share does not exceed.
    fn quantile(curve: &Curve, share: f64) -> f64 {
        let found = curve.points.iter().find(|(_, below)| *below >= share);
        found
            .or(curve.points.last())
            .map_or(0.0, |(value, _)| *value)
    }

    pub(super) fn description(&self) -> String {
        let curves = self.curves.iter().map(|curve| {
            let at = |share| self.unit.show(Self::quantile(curve, share));
            format!(
                "{}: half took at most {}, 99 % at most {}",
                curve.name,
                at(0.5),
                at(0.99)
            )
        });
        format!(
            "Rising lines. {}.",
            curves.collect::<Vec<String>>().join("; ")
        )
    }
}
