//! Points in a plane: one figure against another of the same unit, with the line where both are equal.

use maud::{Markup, html};

use super::drawing::{Drawing, Width, clean, fitted, line, mark, text, text_width};
use super::plane::Plane;
use super::scale::Scale;
use super::unit::Unit;

/// Points in a plane. Both axes are the same, so that the distance from the line of equality is the ratio.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scatter {
    /// The name of the axis below.
    pub(crate) across: String,
    /// The name of the axis on the left.
    pub(crate) up: String,
    pub(crate) unit: Unit,
    /// The points, by series.
    pub(crate) clouds: Vec<Cloud>,
}

/// The points of one series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cloud {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
}

/// One point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) label: String,
}

/// A box that a text takes: left, top, right, bottom.
type Area = (f64, f64, f64, f64);

impl Scatter {
    pub(super) fn draw(&self, width: Width) -> Drawing {
        let height = if width == Width::Wide { 400.0 } else { 290.0 };
        let values = self.points().flat_map(|(_, _, point)| [point.x, point.y]);
        let plane = Plane::new(
            width,
            height,
            self.clouds.iter().map(|cloud| &cloud.name),
            |bottom, top| Scale::of(values.clone(), self.unit, bottom, top),
            |left, right, up| up.between(left, right),
        );
        let (left, right, top, bottom) = (plane.left, plane.right, plane.top, plane.bottom);
        let content = html! {
            (line("equal", (left, bottom), (right, top)))
            (text(right - 30.0, top + 11.0, "end", "faint", "equal"))
            @for (series, cloud, point) in self.points() {
                g {
                    title { (clean(&self.tip(cloud, point))) }
                    (mark(series, plane.across.at(point.x), plane.up.at(point.y)))
                }
            }
            (self.labels(&plane))
        };
        plane.drawing([&self.across, &self.up], mark, &content)
    }

    fn points(&self) -> impl Iterator<Item = (usize, &Cloud, &Point)> + Clone {
        let clouds = self.clouds.iter().enumerate();
        clouds.flat_map(|(series, cloud)| {
            let points = cloud.points.iter();
            points.map(move |point| (series, cloud, point))
        })
    }

    fn tip(&self, cloud: &Cloud, point: &Point) -> String {
        let (x, y) = (self.unit.show(point.x), self.unit.show(point.y));
        format!("{}, {}: {x} across, {y} up", cloud.name, point.label)
    }

    /// The names of the points, as far as there is space.
    fn labels(&self, plane: &Plane) -> Markup {
        let around = |point: &Point| {
            let (x, y) = (plane.across.at(point.x), plane.up.at(point.y));
            (x - 5.0, y - 5.0, x + 5.0, y + 5.0)
        };
        let mut taken: Vec<Area> = self.points().map(|(.., point)| around(point)).collect();
        let (right, top) = (plane.right, plane.top);
        taken.push((right - 40.0, top + 12.0, right, top + 30.0));
        html! { @for (.., point) in self.points() { (label(point, plane, &mut taken)) } }
    }

    pub(super) fn description(&self) -> String {
        let is_below = |(.., point): &(_, _, &Point)| point.y < point.x;
        let (count, below) = (
            self.points().count(),
            self.points().filter(is_below).count(),
        );
        let (across, up) = (&self.across, &self.up);
        format!(
            "{count} points; across: {across}, up: {up}. {below} lie below the line where both are equal."
        )
    }
}

fn overlap(a: Area, b: Area) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// The name of a point on the first of its sides that is free; none if there is no space.
fn label(point: &Point, plane: &Plane, taken: &mut Vec<Area>) -> Markup {
    let (x, y) = (plane.across.at(point.x), plane.up.at(point.y));
    let name = fitted(&point.label, 120.0);
    let width = text_width(&name) * 0.95;
    let sides = [
        (x + 8.0, y + 4.0, "start", x + 8.0),
        (x - 8.0, y + 4.0, "end", x - 8.0 - width),
        (x, y - 9.0, "middle", x - width / 2.0),
        (x, y + 17.0, "middle", x - width / 2.0),
    ];
    let free = sides.into_iter().find_map(|(at, base, anchor, left)| {
        let area = (left, base - 9.0, left + width, base + 2.0);
        let is_inside = area.0 >= plane.left
            && area.2 <= plane.right + 20.0
            && area.1 >= plane.top
            && area.3 <= plane.bottom;
        let is_free = is_inside && !taken.iter().any(|other| overlap(*other, area));
        is_free.then_some((at, base, anchor, area))
    });
    let Some((at, base, anchor, area)) = free else {
        return html! {};
    };
    taken.push(area);
    text(at, base, anchor, "faint", &name)
}
