//! Shares of operations that took at most so long: one rising line a series over a logarithmic time.

use maud::{Markup, html};

use super::drawing::{Drawing, Width, clean, line, number, series_class};
use super::plane::Plane;
use super::scale::Scale;
use super::unit::Unit;

/// Rising lines from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curves {
    /// The name of the axis below.
    pub(crate) axis: String,
    pub(crate) unit: Unit,
    pub(crate) curves: Vec<Curve>,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    pub(crate) name: String,
    /// Value, and the share of all that is at most that; both rising.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curves {
    pub(super) fn draw(&self, width: Width) -> Drawing {
        let height = if width == Width::Wide { 210.0 } else { 190.0 };
        let points = self.curves.iter().flat_map(|curve| &curve.points);
        let values = points.map(|(value, _)| *value);
        let plane = Plane::new(
            width,
            height,
            self.curves.iter().map(|curve| &curve.name),
            |bottom, top| Scale::straight(1.0, Unit::Share, bottom, top),
            |left, right, _| Scale::logarithmic(values.clone(), self.unit, left, right),
        );
        let sign = |series, x, y| line(&series_class("curve", series), (x - 8.0, y), (x + 10.0, y));
        let names = [&self.axis, "Share of operations that took at most so long"];
        let curves = html! {
            @for (series, curve) in self.curves.iter().enumerate() { (curve.draw(series, &plane)) }
        };
        plane.drawing(names, sign, &curves)
    }

    pub(super) fn description(&self) -> String {
        let curves = self.curves.iter().map(|curve| {
            let at = |share| self.unit.show(curve.quantile(share));
            let (name, half, most) = (&curve.name, at(0.5), at(0.99));
            format!("{name}: half took at most {half}, 99 % at most {most}")
        });
        format!(
            "Rising lines. {}.",
            curves.collect::<Vec<String>>().join("; ")
        )
    }
}

impl Curve {
    fn draw(&self, series: usize, plane: &Plane) -> Markup {
        let mut path = String::new();
        let mut height = plane.up.at(0.0);
        for (value, share) in &self.points {
            let x = number(plane.across.at(*value));
            let start = if path.is_empty() { "M" } else { "L" };
            let next = plane.up.at(*share);
            path.push_str(&format!("{start}{x} {}V{}", number(height), number(next)));
            height = next;
        }
        html! {
            @if !path.is_empty() {
                g {
                    title { (clean(&self.name)) }
                    path class=(series_class("curve", series)) d=(path) {}
                }
            }
        }
    }

    /// Returns the least value that this share does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let found = self.points.iter().find(|(_, below)| *below >= share);
        let found = found.or(self.points.last());
        found.map_or(0.0, |(value, _)| *value)
    }
}
