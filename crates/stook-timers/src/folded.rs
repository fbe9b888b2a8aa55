//! A report as folded stacks, the input of flame-graph programs: `create;read 1500`, one line for each path.
//!
//! The number is the path's own time in whole microseconds, of all threads together: helpers that run at once
//! make the picture wider than the clock. A `;` separates scopes and the last space the number, so in names
//! they become `:` and `_`; paths that are the same after that are one line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::report::{Record, Report};

impl Report {
    /// Returns the report as folded stacks of own time in microseconds, for flame-graph programs.
    pub fn folded(&self) -> String {
        render(self)
    }
}

/// Renders the lines in order of their paths.
fn render(report: &Report) -> String {
    let mut stacks = BTreeMap::new();
    for root in &report.roots {
        add(&mut stacks, "", root);
    }
    let mut text = String::new();
    for (stack, own) in stacks {
        let _ = writeln!(text, "{stack} {}", own.as_micros());
    }
    text
}

fn add(stacks: &mut BTreeMap<String, Duration>, above: &str, record: &Record) {
    let separator = if above.is_empty() { "" } else { ";" };
    let stack = format!("{above}{separator}{}", frame(&record.name));
    for child in &record.children {
        add(stacks, &stack, child);
    }
    let own = stacks.entry(stack).or_default();
    *own = own.saturating_add(record.own);
}

/// A name without what has a meaning between names.
fn frame(name: &str) -> String {
    let plain = |letter: char| match letter {
        ';' => ':',
        letter if letter.is_whitespace() || letter.is_control() => '_',
        letter => letter,
    };
    name.chars().map(plain).collect()
}
