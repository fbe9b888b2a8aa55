//! Flame graphs: folded stacks drawn as an SVG that can be searched and zoomed in a browser.
//!
//! Colours follow from names alone, so two graphs of one program can be laid side by side. The picture needs no
//! network. Lines that are no stacks are passed over.

use inferno::flamegraph::{Options, TextTruncateDirection, color, from_lines};

use crate::error::BenchError;

/// The colours of a flame graph, one for each kind of figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// Reds and yellows: time on the CPU.
    Hot,
    /// Blues: time off the CPU.
    Io,
    /// Greens: scopes that a program has named itself.
    Green,
}

/// Draws folded stacks, such as `create;read 1500`, one on a line; `count_name` says what the numbers count.
///
/// # Errors
/// [`BenchError::Refused`] if no line is a stack with a number above 0.
///
/// # Cost
/// Memory for the lines and the picture; frames narrower than a hundredth of a percent are left out.
pub fn flame_graph(
    folded: &str,
    title: &str,
    count_name: &str,
    palette: Palette,
) -> Result<Vec<u8>, BenchError> {
    let mut options = Options::default();
    options.colors = color::Palette::Basic(match palette {
        Palette::Hot => color::BasicPalette::Hot,
        Palette::Io => color::BasicPalette::Io,
        Palette::Green => color::BasicPalette::Green,
    });
    options.deterministic = true;
    options.text_truncate_direction = TextTruncateDirection::Right;
    title.clone_into(&mut options.title);
    count_name.clone_into(&mut options.count_name);
    "Frame:".clone_into(&mut options.name_type);
    let lines = folded.lines().filter(|line| has_count(line));
    let mut drawing = Vec::new();
    let drawn = from_lines(&mut options, lines, &mut drawing);
    drawn.map_err(|error| {
        BenchError::refused(format!("cannot draw the flame graph `{title}`: {error}"))
    })?;
    Ok(drawing)
}

/// Whether a line ends with a number that gives its stack a width.
fn has_count(line: &str) -> bool {
    let number = line.trim_end().rsplit_once(' ');
    let count = number.map(|(_, number)| number.parse::<f64>());
    matches!(count, Some(Ok(count)) if count > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(folded: &str) -> String {
        let drawing = flame_graph(folded, "a <run> & more", "microseconds", Palette::Green);
        String::from_utf8(drawing.unwrap()).unwrap()
    }

    #[test]
    fn every_stack_has_its_frames_and_its_share() {
        let svg = drawn("create;read 300\ncreate;write 500\nlist 200\n");
        assert!(svg.contains("<title>create (800 microseconds, 80.00%)</title>"));
        assert!(svg.contains("<title>read (300 microseconds, 30.00%)</title>"));
        assert!(svg.contains("<title>all (1,000 microseconds, 100%)</title>"));
        assert!(svg.contains("a &lt;run&gt; &amp; more"));
    }

    #[test]
    fn the_order_of_the_lines_and_what_is_no_stack_do_not_matter() {
        let mixed = drawn("z 1\n# a note\na;b 2\n\nno number\nnothing 0\na 3\n");
        assert_eq!(mixed, drawn("a 3\na;b 2\nz 1\n"));
    }

    #[test]
    fn a_graph_of_nothing_is_refused() {
        for folded in ["", "create;read 0\n", "no number\n"] {
            let error = flame_graph(folded, "create", "samples", Palette::Hot);
            let error = error.unwrap_err().to_string();
            assert!(
                error.starts_with("cannot draw the flame graph `create`: "),
                "{error}"
            );
        }
    }
}
