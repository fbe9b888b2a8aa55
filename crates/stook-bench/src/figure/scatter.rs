//! Points in a plane: one figure against another of the same unit, with the line where both are equal.

use maud::{Markup, html};

use super::Width;
use super::drawing::{
    AxisBelow, Drawing, LINE, Legend, axis_left, fitted, line, mark, text, text_width,
};
use super::scale::Scale;
use super::unit::Unit;

/// Points in a plane. Both axes are the same, so that the distance from the line of equality is the ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Scatter {
    /// The name of the axis below.
    pub across: String,
    /// The name of the axis on the left.
    pub up: String,
    /// What the values are.
    pub unit: Unit,
    /// The points, by series.
    pub clouds: Vec<Cloud>,
}

/// The points of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct Cloud {
    /// The name of the series.
    pub name: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The value to the right.
    pub x: f64,
    /// The value upwards.
    pub y: f64,
    /// Its name.
    pub label: String,
}

/// A box that a text takes: left, top, right, bottom.
type Area = (f64, f64, f64, f64);

/// Where the plot lies, and what lies where in it.
struct Plane {
    across: Scale,
    up: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Scatter {
    pub(super) fn draw(&self, width: Width) -> Drawing {
        let pixels = width.pixels();
        let names: Vec<String> = self.clouds.iter().map(|cloud| cloud.name.clone()).collect();
        let legend = Legend {
            names: &names,
            width: pixels,
        };
        let top = legend.height() + LINE + 4.0;
        let plane = self.plane(
            pixels,
            top,
            if width == Width::Wide { 400.0 } else { 290.0 },
        );
        let below = AxisBelow {
            scale: &plane.across,
            unit: self.unit,
            name: &self.across,
            top: plane.top,
            bottom: plane.bottom,
        };
        let body = html! {
            (legend.draw(0.0, |series, x, y| mark(series, x, y, 4.5)))
            (text(0.0, top - 8.0, "start", "faint", &fitted(&format!("{}{}", self.up, plane.up.remark()), pixels)))
            (axis_left(&plane.up, self.unit, plane.left, plane.right))
            (below.draw())
            (self.equality(&plane))
            (self.points(&plane))
        };
        Drawing {
            width: pixels,
            height: plane.bottom + AxisBelow::HEIGHT,
            body,
        }
    }

    fn plane(&self, width: f64, top: f64, height: f64) -> Plane {
        let bottom = top + height;
        let values = || self.points_of_all().flat_map(|point| [point.x, point.y]);
        let up = Scale::of(values(), self.unit, bottom, top);
        let ticks = up
            .ticks()
            .into_iter()
            .map(|tick| text_width(&self.unit.tick(tick)));
        let left = ticks.fold(20.0, f64::max) + 8.0;
        let right = width - 24.0;
        Plane {
            across: up.between(left, right),
            up,
            left,
            right,
            top,
            bottom,
        }
    }

    fn points_of_all(&self) -> impl Iterator<Item = &Point> {
        self.clouds.iter().flat_map(|cloud| &cloud.points)
    }

    fn equality(&self, plane: &Plane) -> Markup {
        html! {
            (line("equal", (plane.left, plane.bottom), (plane.right, plane.top)))
            (text(plane.right - 30.0, plane.top + 11.0, "end", "faint", "equal"))
        }
    }

    fn points(&self, plane: &Plane) -> Markup {
        let mut taken: Vec<Area> = self
            .points_of_all()
            .map(|point| around(plane.across.at(point.x), plane.up.at(point.y), 5.0))
            .collect();
        taken.push((
            plane.right - 40.0,
            plane.top + 12.0,
            plane.right,
            plane.top + 30.0,
        ));
        let show = |value| self.unit.show(value);
        html! {
            @for (series, cloud) in self.clouds.iter().enumerate() {
                @for point in &cloud.points {
                    @let (x, y) = (plane.across.at(point.x), plane.up.at(point.y));
                    g {
                        title { (super::clean(&format!(
                            "{}, {}: {} across, {} up", cloud.name, point.label, show(point.x), show(point.y)
                        ))) }
                        (mark(series, x, y, 4.5))
                    }
                }
            }
            @for cloud in &self.clouds {
                @for point in &cloud.points {
                    (label(point, plane, &mut taken))
                }
            }
        }
    }

    pub(super) fn description(&self) -> String {
        let count = self.points_of_all().count();
        let below = self
            .points_of_all()
            .filter(|point| point.y < point.x)
            .count();
        format!(
            "{count} points; across: {}, up: {}. {below} lie below the line where both are equal.",
            self.across, self.up
        )
    }
}

fn around(x: f64, y: f64, by: f64) -> Area {
    (x - by, y - by, x + by, y + by)
}

fn overlap(a: Area, b: Area) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// The name of a point on the first of its sides that is free; none if there is no room.
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
        (is_inside && !taken.iter().any(|other| overlap(*other, area)))
            .then_some((at, base, anchor, area))
    });
    html! {
        @if let Some((at, base, anchor, area)) = free {
            ({ taken.push(area); text(at, base, anchor, "faint", &name) })
        }
    }
}
