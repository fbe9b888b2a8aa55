//! What all figures are made of: texts that fit, numbers, axes, legends, marks.

use maud::{Markup, html};

use super::scale::Scale;
use super::style::SERIES;
use super::unit::Unit;

/// Height of a line of text.
pub(super) const LINE: f64 = 18.0;
/// Size of most letters, as in the style sheet.
const LETTER: f64 = 12.0;

/// A figure's content and how much room it takes.
pub(super) struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) body: Markup,
}

/// Returns a number as SVG has it, with one decimal at most.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Returns about how wide a text is, in pixels: in the wider ones of the usual fonts.
pub(super) fn text_width(text: &str) -> f64 {
    let ems = text.chars().map(|letter| match letter {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | '\'' | '|' | ' ' | '\u{a0}' | '/'
        | '-' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.9,
        'A'..='Z' => 0.7,
        letter if u32::from(letter) >= 0x1100 => 1.0,
        _ => 0.6,
    });
    ems.sum::<f64>() * LETTER
}

/// Returns a text that fits into a width, with an ellipsis for what is left out before the last part.
pub(super) fn fitted(text: &str, width: f64) -> String {
    let text = clean(text);
    if text_width(&text) <= width {
        return text;
    }
    let letters: Vec<char> = text.chars().collect();
    let mut kept = letters.len() - 1;
    loop {
        // What distinguishes paths is their end.
        let head = kept / 3;
        let tail = letters.len() - (kept - head);
        let short: String = letters[..head]
            .iter()
            .chain(&['…'])
            .chain(&letters[tail..])
            .collect();
        if kept <= 1 || text_width(&short) <= width {
            return short;
        }
        kept -= 1;
    }
}

/// Returns a text without the characters that XML has no place for, or that turn the direction of writing.
pub(crate) fn clean(text: &str) -> String {
    let is_bad = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
    };
    text.chars()
        .map(|letter| if is_bad(letter) { '\u{fffd}' } else { letter })
        .collect()
}

/// Returns a text that ends, is centred or begins at a place.
pub(super) fn text(x: f64, y: f64, anchor: &str, class: &str, content: &str) -> Markup {
    html! { text x=(number(x)) y=(number(y)) text-anchor=(anchor) class=[(!class.is_empty()).then_some(class)] { (clean(content)) } }
}

pub(super) fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! { path class=(class) d={ "M" (number(x1)) " " (number(y1)) "L" (number(x2)) " " (number(y2)) } {} }
}

pub(super) fn rectangle(class: &str, x: f64, y: f64, width: f64, height: f64) -> Markup {
    html! { rect class=(class) x=(number(x)) y=(number(y)) width=(number(width.max(0.0))) height=(number(height)) {} }
}

/// Returns the class of a series.
pub(super) fn series_class(kind: &str, series: usize) -> String {
    format!("{kind} s{}", series % SERIES)
}

/// Returns a mark of a shape that its series has alone.
pub(super) fn mark(series: usize, x: f64, y: f64, size: f64) -> Markup {
    let class = series_class("mark", series);
    let path = |points: &[(f64, f64)]| {
        let places = points
            .iter()
            .map(|(dx, dy)| format!("{} {}", number(x + dx * size), number(y + dy * size)));
        format!("M{}Z", places.collect::<Vec<String>>().join("L"))
    };
    let plus = [
        (-0.4, -1.1),
        (0.4, -1.1),
        (0.4, -0.4),
        (1.1, -0.4),
        (1.1, 0.4),
        (0.4, 0.4),
        (0.4, 1.1),
        (-0.4, 1.1),
        (-0.4, 0.4),
        (-1.1, 0.4),
        (-1.1, -0.4),
        (-0.4, -0.4),
    ];
    match series % SERIES {
        0 => html! { circle class=(class) cx=(number(x)) cy=(number(y)) r=(number(size)) {} },
        1 => {
            html! { path class=(class) d=(path(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)])) {} }
        }
        2 => html! { path class=(class) d=(path(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)])) {} },
        3 => {
            html! { path class=(class) d=(path(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)])) {} }
        }
        4 => html! { path class=(class) d=(path(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)])) {} },
        _ => html! { path class=(class) d=(path(&plus)) {} },
    }
}

/// An axis below a plot: its grid lines, ticks and name.
pub(super) struct AxisBelow<'a> {
    pub(super) scale: &'a Scale,
    pub(super) unit: Unit,
    pub(super) name: &'a str,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl AxisBelow<'_> {
    /// Space that ticks and name take below the plot.
    pub(super) const HEIGHT: f64 = 38.0;

    pub(super) fn draw(&self) -> Markup {
        let ticks = thinned(self.scale, self.unit, self.scale.ticks());
        let (from, to) = (self.scale.from(), self.scale.to());
        let name = format!("{}{}", self.name, self.scale.remark());
        html! {
            @for tick in &ticks {
                (line("rule", (self.scale.at(*tick), self.top), (self.scale.at(*tick), self.bottom)))
                (self.tick_text(*tick))
            }
            (line("base", (from, self.bottom), (to, self.bottom)))
            (text(from, self.bottom + 30.0, "start", "faint", &fitted(&name, to - from + 24.0)))
        }
    }
}

impl AxisBelow<'_> {
    /// A text at the left end of the drawing begins there instead of being cut off.
    fn tick_text(&self, tick: f64) -> Markup {
        let (x, shown) = (self.scale.at(tick), self.unit.tick(tick));
        let anchor = if x < text_width(&shown) / 2.0 {
            "start"
        } else {
            "middle"
        };
        text(x, self.bottom + 14.0, anchor, "faint", &shown)
    }
}

/// Leaves out ticks whose texts would touch.
fn thinned(scale: &Scale, unit: Unit, ticks: Vec<f64>) -> Vec<f64> {
    let widest = ticks
        .iter()
        .map(|tick| text_width(&unit.tick(*tick)))
        .fold(0.0, f64::max);
    let room = (scale.to() - scale.from()).abs() / (widest + 8.0);
    let mut every = 1;
    while (ticks.len().saturating_sub(1) / every) as f64 > room {
        every += 1;
    }
    ticks.into_iter().step_by(every).collect()
}

/// An axis to the left of a plot.
pub(super) fn axis_left(scale: &Scale, unit: Unit, left: f64, right: f64) -> Markup {
    html! {
        @for tick in scale.ticks() {
            (line("rule", (left, scale.at(tick)), (right, scale.at(tick))))
            (text(left - 6.0, scale.at(tick) + 4.0, "end", "faint", &unit.tick(tick)))
        }
    }
}

/// Names of series in lines, each behind its sign.
pub(super) struct Legend<'a> {
    pub(super) names: &'a [String],
    pub(super) width: f64,
}

impl Legend<'_> {
    const SIGN: f64 = 22.0;
    const GAP: f64 = 16.0;

    /// Returns where each name begins, its text, and the height of all.
    fn places(&self) -> (Vec<(f64, f64, String)>, f64) {
        let (mut x, mut y) = (0.0, 0.0);
        let mut places = Vec::new();
        for name in self.names {
            let name = fitted(name, self.width - Self::SIGN);
            let width = Self::SIGN + text_width(&name);
            if x > 0.0 && x + width > self.width {
                (x, y) = (0.0, y + LINE);
            }
            places.push((x, y, name));
            x += width + Self::GAP;
        }
        (places, y + LINE)
    }

    pub(super) fn height(&self) -> f64 {
        if self.names.is_empty() {
            0.0
        } else {
            self.places().1 + 6.0
        }
    }

    /// Draws each sign around the place it gets.
    pub(super) fn draw(&self, top: f64, sign: impl Fn(usize, f64, f64) -> Markup) -> Markup {
        let (places, _) = self.places();
        html! {
            @for (series, (x, y, name)) in places.iter().enumerate() {
                (sign(series, x + 8.0, top + y + 8.0))
                (text(x + Self::SIGN, top + y + 12.0, "start", "", name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_keep_their_end() {
        let text = fitted("/gpfs/projects/climate/a-long-name/scratch", 120.0);
        assert!(text.contains('…') && text.ends_with("scratch"), "{text}");
        assert!(text_width(&text) <= 120.0);
        assert_eq!(fitted("short", 120.0), "short");
        assert_eq!(fitted("日本語", 1.0).chars().count(), 2);
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced_and_markup_is_escaped() {
        assert_eq!(clean("a\u{1}b\u{202e}c"), "a\u{fffd}b\u{fffd}c");
        let drawn = text(1.0, 2.55, "end", "", "<b> & \"c\"").into_string();
        assert!(drawn.contains("&lt;b&gt; &amp; &quot;c&quot;"), "{drawn}");
    }

    #[test]
    fn a_legend_wraps() {
        let names: Vec<String> = (0..6).map(|name| format!("a longer name {name}")).collect();
        let narrow = Legend {
            names: &names,
            width: 200.0,
        };
        let wide = Legend {
            names: &names,
            width: 2000.0,
        };
        assert!(narrow.height() > 3.0 * wide.height());
    }
}
