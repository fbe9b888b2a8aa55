//! Colours and style sheets of the figures.
//!
//! A figure says only what its parts are (`class="s2"`); a style sheet says how they look. So the same drawing serves the
//! page, where colours are variables that change between light and dark, and a file of its own, which follows the reader's
//! choice. The colours of series differ in lightness too, and every series also has a
//! name beside it, a shape or a dash: no colour alone carries a meaning.

use std::fmt::Write;

/// Series have so many colours, shapes and dashes before they come again.
pub(super) const SERIES: usize = 6;

/// Name, light, dark. `s` are series.
const COLOURS: &[(&str, &str, &str)] = &[
    ("paper", "#ffffff", "#15181c"),
    ("ink", "#1c2126", "#e4e7ea"),
    ("faint", "#5a646e", "#9aa4ae"),
    ("rule", "#e1e5e9", "#2c3238"),
    ("s0", "#1f6fb2", "#6db3f2"),
    ("s1", "#c4501b", "#f2915a"),
    ("s2", "#16826a", "#4cc4a3"),
    ("s3", "#8b4a9c", "#cf9ae0"),
    ("s4", "#9a7400", "#dfb846"),
    ("s5", "#59636e", "#aab4be"),
    ("user", "#1f6fb2", "#5a9fdc"),
    ("system", "#7fb3dc", "#2f6596"),
    ("served", "#16826a", "#3aa588"),
    ("blocked", "#e7c9b9", "#5c3d2e"),
];

/// What the parts of a figure look like, in terms of the colours.
const RULES: &str = "
.figure text{font-family:system-ui,-apple-system,\"Segoe UI\",sans-serif;font-size:12px;fill:var(--ink)}
.figure .faint{fill:var(--faint);font-size:11px}
.figure .strong{font-weight:600}
.figure .title{font-weight:600;font-size:15px}
.figure .paper{fill:var(--paper)}
.figure .rule{stroke:var(--rule);stroke-width:1;fill:none}
.figure .base{stroke:var(--faint);stroke-width:1;fill:none}
.figure .equal{stroke:var(--faint);stroke-width:1;stroke-dasharray:4 3;fill:none}
.figure .whisker{stroke:var(--ink);stroke-width:1;fill:none}
.figure .box{stroke:var(--ink);stroke-width:1;fill:var(--paper);fill-opacity:.55}
.figure .dot{fill:var(--paper);stroke:var(--ink);stroke-width:.9}
.figure .blocked{stroke:var(--s1);stroke-width:1}
.figure .curve{fill:none;stroke-width:1.8;stroke-linejoin:round}
.figure .mark{stroke:var(--paper);stroke-width:1}
.figure .bar{stroke:none}
";

/// Dashes of lines, by series.
const DASHES: [&str; SERIES] = ["none", "6 3", "2 2.5", "9 3 2 3", "12 4", "4 2 1.5 2 1.5 2"];

/// Which of the two themes.
#[derive(Clone, Copy)]
enum Theme {
    Light,
    Dark,
}

/// Returns the style sheet of a page: the colours as variables, light or dark as the reader's system or the page's
/// `data-look` says.
pub(crate) fn page_style() -> String {
    let (light, dark) = (variables(Theme::Light), variables(Theme::Dark));
    format!(
        ":root{{color-scheme:light;{light}}}\n\
         @media (prefers-color-scheme:dark){{:root:not([data-look=light]){{color-scheme:dark;{dark}}}}}\n\
         :root[data-look=dark]{{color-scheme:dark;{dark}}}\n{}",
        rules()
    )
}

/// Returns the style sheet of a figure in a file of its own: colours spelled out, as not every viewer knows variables.
pub(super) fn file_style() -> String {
    let dark = spelled_out(Theme::Dark);
    format!(
        "{}@media (prefers-color-scheme:dark){{{dark}}}",
        spelled_out(Theme::Light)
    )
}

fn rules() -> String {
    let mut text = RULES.to_owned();
    for (series, dash) in DASHES.iter().enumerate() {
        let colour = format!("var(--s{series})");
        let _ = writeln!(
            text,
            ".figure .s{series}{{fill:{colour}}}\n\
             .figure .curve.s{series}{{fill:none;stroke:{colour};stroke-dasharray:{dash}}}"
        );
    }
    // The only part without work has an edge, too: seen without colours.
    for part in ["user", "system", "served", "blocked"] {
        let _ = writeln!(text, ".figure .{part}{{fill:var(--{part})}}");
    }
    text
}

fn colour((_, light, dark): (&str, &'static str, &'static str), theme: Theme) -> &'static str {
    match theme {
        Theme::Light => light,
        Theme::Dark => dark,
    }
}

fn variables(theme: Theme) -> String {
    let all = COLOURS
        .iter()
        .map(|&entry| format!("--{}:{};", entry.0, colour(entry, theme)));
    all.collect()
}

fn spelled_out(theme: Theme) -> String {
    COLOURS.iter().fold(rules(), |text, &entry| {
        text.replace(&format!("var(--{})", entry.0), colour(entry, theme))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance and contrast.
    ///
    /// Source: Web Content Accessibility Guidelines 2.1, "relative luminance".
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.03928 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn named(name: &str, theme: Theme) -> &'static str {
        colour(
            *COLOURS.iter().find(|entry| entry.0 == name).unwrap(),
            theme,
        )
    }

    #[test]
    fn every_colour_stands_out_from_what_lies_below_it() {
        for theme in [Theme::Light, Theme::Dark] {
            let paper = named("paper", theme);
            assert!(contrast(named("ink", theme), paper) > 12.0);
            assert!(contrast(named("faint", theme), paper) > 4.5);
            for series in 0..SERIES {
                let found = contrast(named(&format!("s{series}"), theme), paper);
                assert!(found > 3.5, "s{series}: {found}");
            }
        }
    }

    #[test]
    fn a_file_of_its_own_needs_no_variables() {
        let style = file_style();
        assert!(!style.contains("var("), "{style}");
        assert!(page_style().contains("var(--s5)"));
    }
}
