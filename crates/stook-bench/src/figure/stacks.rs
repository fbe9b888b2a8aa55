//! Bars made of parts, such as CPU time and time blocked, with every sample of the whole as a dot.

use maud::{Markup, html};

use super::Width;
use super::bars::spread_marks;
use super::drawing::{AxisBelow, Drawing, LINE, Legend, fitted, line, rectangle, text, text_width};
use super::scale::Scale;
use super::unit::Unit;
use crate::statistics::Spread;

/// Bars made of parts. The axis is straight: parts of a bar add up only there.
#[derive(Debug, Clone, PartialEq)]
pub struct Stacks {
    /// The name of the axis.
    pub axis: String,
    /// What the values are.
    pub unit: Unit,
    /// The names of the parts, from the left, each with its class in the style sheet: `user`, `system`, `served`, `blocked`.
    pub parts: Vec<(String, &'static str)>,
    /// The bars.
    pub stacks: Vec<Stack>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// Its name.
    pub label: String,
    /// The values of the parts.
    pub parts: Vec<f64>,
    /// Samples of the whole, if they are to be shown.
    pub samples: Vec<f64>,
    /// A text behind the bar; the sum, if it is empty.
    pub note: String,
}

const THICKNESS: f64 = 22.0;

impl Stacks {
    pub(super) fn draw(&self, width: Width) -> Drawing {
        let width = width.pixels();
        let names: Vec<String> = self.parts.iter().map(|(name, _)| name.clone()).collect();
        let legend = Legend {
            names: &names,
            width,
        };
        let notes = self
            .stacks
            .iter()
            .map(|stack| text_width(&self.note(stack)));
        let right = width - notes.fold(24.0, f64::max) - 10.0;
        let scale = Scale::straight(self.greatest(), self.unit, 0.0, right);
        let top = legend.height();
        let row = LINE + THICKNESS + 12.0;
        let bottom = top + row * self.stacks.len() as f64;
        let axis = AxisBelow {
            scale: &scale,
            unit: self.unit,
            name: &self.axis,
            top,
            bottom,
        };
        let body = html! {
            (legend.draw(0.0, |part, x, y| rectangle(self.parts[part].1, x - 7.0, y - 5.0, 15.0, 11.0)))
            (axis.draw())
            @for (place, stack) in self.stacks.iter().enumerate() {
                (self.stack(stack, &scale, top + row * place as f64, width))
            }
        };
        Drawing {
            width,
            height: bottom + AxisBelow::HEIGHT,
            body,
        }
    }

    fn greatest(&self) -> f64 {
        let of_one = |stack: &Stack| {
            let sum: f64 = stack.parts.iter().sum();
            stack.samples.iter().copied().fold(sum, f64::max)
        };
        self.stacks.iter().map(of_one).fold(0.0, f64::max)
    }

    fn note(&self, stack: &Stack) -> String {
        if stack.note.is_empty() {
            self.unit.show(stack.parts.iter().sum())
        } else {
            stack.note.clone()
        }
    }

    fn stack(&self, stack: &Stack, scale: &Scale, top: f64, width: f64) -> Markup {
        let (upper, middle) = (top + LINE, top + LINE + THICKNESS / 2.0);
        let mut before = 0.0;
        let mut parts = Vec::new();
        for (value, (name, class)) in stack.parts.iter().zip(&self.parts) {
            parts.push(self.part(
                &stack.label,
                name,
                class,
                (before, before + value),
                scale,
                upper,
            ));
            before += value;
        }
        html! {
            (text(0.0, top + 13.0, "start", "strong", &fitted(&stack.label, width)))
            @for part in parts { (part) }
            @if let Some(spread) = Spread::of(&stack.samples) {
                (spread_marks(&spread, &stack.samples, scale, middle + 5.0))
            }
            (text(width, middle + 4.0, "end", "", &self.note(stack)))
        }
    }

    fn part(
        &self,
        label: &str,
        name: &str,
        class: &str,
        (from, to): (f64, f64),
        scale: &Scale,
        upper: f64,
    ) -> Markup {
        let (left, right) = (scale.at(from), scale.at(to));
        let tip = format!("{label}: {name} {}", self.unit.show(to - from));
        html! {
            g {
                title { (super::clean(&tip)) }
                (rectangle(class, left, upper, right - left, THICKNESS))
                @if class == "blocked" && right > left {
                    // The only part without work has an edge, too: seen without colours.
                    (line("edge", (left, upper + 0.5), (right, upper + 0.5)))
                    (line("edge", (left, upper + THICKNESS - 0.5), (right, upper + THICKNESS - 0.5)))
                    (line("edge", (right, upper), (right, upper + THICKNESS)))
                }
            }
        }
    }

    pub(super) fn description(&self) -> String {
        let stacks = self.stacks.iter().map(|stack| {
            let parts = stack.parts.iter().zip(&self.parts);
            let parts =
                parts.map(|(value, (name, _))| format!("{name} {}", self.unit.show(*value)));
            format!(
                "{}: {}",
                stack.label,
                parts.collect::<Vec<String>>().join(", ")
            )
        });
        format!(
            "Bars made of parts. {}.",
            stacks.collect::<Vec<String>>().join("; ")
        )
    }
}
