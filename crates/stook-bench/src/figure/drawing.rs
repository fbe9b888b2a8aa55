//! What all charts are made of: widths, texts that fit, marks, axes, legends.

use maud::{Markup, html};

use super::scale::Scale;
use super::style::SERIES;

/// Height of a line of text.
pub(super) const LINE: f64 = 18.0;
/// Size of most letters, as in the style sheet.
const LETTER: f64 = 12.0;
/// What the ticks and the name of an axis take below a plot.
pub(super) const AXIS_HEIGHT: f64 = 38.0;

/// How wide a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// A figure alone on a screen.
    Wide,
    /// One of two beside each other.
    Half,
    /// On a phone, or one of three beside each other.
    Narrow,
}

impl Width {
    pub(super) fn pixels(self) -> f64 {
        match self {
            Self::Wide => 680.0,
            Self::Half => 480.0,
            Self::Narrow => 340.0,
        }
    }
}

/// A chart's content and how much space it takes.
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

/// Returns the width of the widest of some texts.
pub(super) fn widest(texts: impl Iterator<Item = impl AsRef<str>>) -> f64 {
    texts
        .map(|text| text_width(text.as_ref()))
        .fold(0.0, f64::max)
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
        let short = letters[..head].iter().chain(&['…']).chain(&letters[tail..]);
        let short: String = short.collect();
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
    text.replace(is_bad, "\u{fffd}")
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

/// Outlines around a point: circle, square, triangle, diamond, triangle upside down, plus.
const SHAPES: [&str; SERIES] = [
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5.4L5 3.6H-5Z",
    "M0-5.9L5 0L0 5.9L-5 0Z",
    "M0 5.4L5-3.6H-5Z",
    "M-1.8-5H1.8V-1.8H5V1.8H1.8V5H-1.8V1.8H-5V-1.8H-1.8Z",
];

/// Returns a mark of a shape that its series has alone.
pub(super) fn mark(series: usize, x: f64, y: f64) -> Markup {
    let (class, shape) = (series_class("mark", series), SHAPES[series % SERIES]);
    html! { path class=(class) d=(shape) transform={ "translate(" (number(x)) " " (number(y)) ")" } {} }
}

/// Returns an axis below a plot: its grid lines, ticks and name.
pub(super) fn axis_below(scale: &Scale, name: &str, top: f64, bottom: f64) -> Markup {
    let (from, to) = (scale.from(), scale.to());
    let name = fitted(&format!("{name}{}", scale.remark()), to - from + 24.0);
    html! {
        @for (x, shown) in thinned(scale) {
            (line("rule", (x, top), (x, bottom)))
            // A text at the left end of the drawing begins there instead of being cut off.
            @let anchor = if x < text_width(&shown) / 2.0 { "start" } else { "middle" };
            (text(x, bottom + 14.0, anchor, "faint", &shown))
        }
        (line("base", (from, bottom), (to, bottom)))
        (text(from, bottom + 30.0, "start", "faint", &name))
    }
}

/// Returns places and texts of the ticks, without those whose texts would touch.
fn thinned(scale: &Scale) -> Vec<(f64, String)> {
    let ticks = scale.ticks();
    let widest = widest(ticks.iter().map(|(_, shown)| shown));
    let most = (scale.to() - scale.from()).abs() / (widest + 8.0);
    let mut every = 1;
    while (ticks.len().saturating_sub(1) / every) as f64 > most {
        every += 1;
    }
    ticks.into_iter().step_by(every).collect()
}

/// Returns an axis to the left of a plot.
pub(super) fn axis_left(scale: &Scale, left: f64, right: f64) -> Markup {
    html! {
        @for (y, shown) in scale.ticks() {
            (line("rule", (left, y), (right, y)))
            (text(left - 6.0, y + 4.0, "end", "faint", &shown))
        }
    }
}

/// Names of series in lines, each behind its sign.
pub(super) struct Legend {
    /// Where each name begins, and its text.
    places: Vec<(f64, f64, String)>,
    pub(super) height: f64,
}

impl Legend {
    const SIGN: f64 = 22.0;
    const GAP: f64 = 16.0;

    pub(super) fn new<'a>(names: impl Iterator<Item = &'a String>, space: f64) -> Self {
        let (mut x, mut y) = (0.0, 0.0);
        let mut places = Vec::new();
        for name in names {
            let name = fitted(name, space - Self::SIGN);
            let width = Self::SIGN + text_width(&name);
            if x > 0.0 && x + width > space {
                (x, y) = (0.0, y + LINE);
            }
            places.push((x, y, name));
            x += width + Self::GAP;
        }
        let height = if places.is_empty() {
            0.0
        } else {
            y + LINE + 6.0
        };
        Self { places, height }
    }

    /// Draws each sign around the place it gets.
    pub(super) fn draw(&self, sign: impl Fn(usize, f64, f64) -> Markup) -> Markup {
        html! {
            @for (series, (x, y, name)) in self.places.iter().enumerate() {
                (sign(series, x + 8.0, y + 8.0))
                (text(x + Self::SIGN, y + 12.0, "start", "", name))
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
        let height = |space| Legend::new(names.iter(), space).height;
        assert!(height(200.0) > 3.0 * height(2000.0));
    }
}
