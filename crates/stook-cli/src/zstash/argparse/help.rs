//! The layout of the help: the widths, the columns and the line breaks of Python's `argparse` and `textwrap`.

use super::{Argument, Group, Parser, Takes};

/// What stands in front of texts about arguments, at most.
const HELP_COLUMN: i64 = 24;

/// No text is set narrower.
const NARROWEST: i64 = 11;

/// Returns the width that Python takes for the terminal's: `COLUMNS` as typed, else what the terminal says, else 80.
pub(crate) fn terminal_columns(typed: Option<&[u8]>, terminal: Option<u16>) -> i64 {
    let typed = typed.and_then(super::python::integer).unwrap_or(0);
    if typed > 0 {
        return i64::try_from(typed).unwrap_or(i64::MAX);
    }
    terminal
        .filter(|&columns| columns > 0)
        .map_or(80, i64::from)
}

impl Parser {
    /// Returns the lines that stand in front of an error.
    pub(crate) fn usage_text(&self) -> String {
        format!("usage: {}\n", self.usage.trim_end_matches('\n'))
    }

    /// Returns the help for a terminal of this width.
    pub(crate) fn help_text(&self, columns: i64) -> String {
        let width = columns - 2;
        let mut text = format!("usage: {}\n\n", self.usage.trim_end_matches('\n'));
        if !self.description.is_empty() {
            let lines = wrap(self.description, width.max(NARROWEST));
            text.push_str(&format!("{}\n\n", lines.join("\n")));
        }
        let longest = self.arguments.iter().map(|it| invocation(it).len()).max();
        let longest = i64::try_from(longest.unwrap_or(0)).unwrap_or(i64::MAX);
        let column = (longest + 4).min(HELP_COLUMN.min((width - 20).max(4)));
        for (group, heading) in [
            (Group::Positional, "positional arguments"),
            (Group::Options, "options"),
            (Group::Required, "required named arguments"),
            (Group::Optional, "optional named arguments"),
        ] {
            let arguments = self.arguments.iter().filter(|it| it.group == group);
            let lines: String = arguments
                .map(|argument| argument_text(argument, column, width))
                .collect();
            if !lines.is_empty() {
                text.push_str(&format!("{heading}:\n{lines}\n"));
            }
        }
        format!("{}\n", text.trim_end_matches('\n'))
    }
}

/// Returns how an argument is given.
fn invocation(argument: &Argument) -> String {
    if !argument.is_option() {
        return argument.name.to_owned();
    }
    let placeholder = argument.name.to_uppercase();
    let flags = argument.flags.iter().map(|flag| match argument.takes {
        Takes::Nothing | Takes::Help => (*flag).to_owned(),
        _ => format!("{flag} {placeholder}"),
    });
    flags.collect::<Vec<String>>().join(", ")
}

fn argument_text(argument: &Argument, column: i64, width: i64) -> String {
    let header = invocation(argument);
    if argument.help.is_empty() {
        return format!("  {header}\n");
    }
    let room = usize::try_from(column - 4).unwrap_or(0);
    let lines = wrap(argument.help, (width - column).max(NARROWEST));
    let indent = " ".repeat(usize::try_from(column).unwrap_or(0));
    let mut lines = lines.into_iter();
    let mut text = if header.len() <= room {
        let first = lines.next().unwrap_or_default();
        format!("  {header:room$}  {first}\n")
    } else {
        format!("  {header}\n")
    };
    for line in lines {
        text.push_str(&format!("{indent}{line}\n"));
    }
    text
}

/// Breaks a text into lines as Python's `textwrap.wrap` does. The text is one line of ASCII.
fn wrap(text: &str, width: i64) -> Vec<String> {
    let width = usize::try_from(width).unwrap_or(1);
    let mut chunks: Vec<&str> = chunks_of(text);
    chunks.reverse();
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        if !lines.is_empty() && chunks.last().is_some_and(|it| it.trim().is_empty()) {
            chunks.pop();
        }
        let mut line = String::new();
        while let Some(chunk) = chunks.pop_if(|chunk| line.len() + chunk.len() <= width) {
            line.push_str(chunk);
        }
        if let Some(chunk) = chunks.pop_if(|chunk| chunk.len() > width) {
            let end = end_of_part(chunk, width - line.len());
            line.push_str(&chunk[..end]);
            chunks.push(&chunk[end..]);
        }
        let line = line.trim_end();
        if !line.is_empty() {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// Returns where a word that is too long is broken: behind its last hyphen that fits, if it has one.
fn end_of_part(word: &str, room: usize) -> usize {
    let hyphen = word[..room].rfind('-');
    let is_usable = |at: &usize| *at > 0 && word[..*at].bytes().any(|byte| byte != b'-');
    hyphen.filter(is_usable).map_or(room, |at| at + 1)
}

/// Cuts a text into blanks, words, and parts of words that end with a hyphen.
fn chunks_of(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut chunks = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let end = if bytes[start].is_ascii_whitespace() {
            let rest = &bytes[start..];
            start
                + rest
                    .iter()
                    .take_while(|byte| byte.is_ascii_whitespace())
                    .count()
        } else {
            end_of_chunk(bytes, start)
        };
        chunks.push(&text[start..end]);
        start = end;
    }
    chunks
}

fn end_of_chunk(bytes: &[u8], start: usize) -> usize {
    let at = |place: usize| bytes.get(place).copied().unwrap_or(b' ');
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    // Two dashes or more between words.
    let dash_from = |place: usize| {
        let dashes = bytes[place..]
            .iter()
            .take_while(|&&byte| byte == b'-')
            .count();
        let follows = place > 0 && (is_word(at(place - 1)) || b"!\"'&.,?".contains(&at(place - 1)));
        (follows && dashes >= 2 && is_word(at(place + dashes))).then_some(place + dashes)
    };
    if let Some(end) = dash_from(start) {
        return end;
    }
    for end in start + 1..=bytes.len() {
        if at(end) == b'-' {
            let before = |back: usize| end.checked_sub(back).map_or(b' ', at);
            let is_behind_letters = is_letter(before(1)) && is_letter(before(2))
                || is_letter(before(1)) && before(2) == b'-' && is_letter(before(3));
            let next = usize::from(at(end + 2) == b'-');
            if is_behind_letters && is_letter(at(end + 1)) && is_letter(at(end + 2 + next)) {
                return end + 1;
            }
        }
        if at(end).is_ascii_whitespace() || dash_from(end).is_some() {
            return end;
        }
    }
    bytes.len()
}
