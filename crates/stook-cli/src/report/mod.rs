//! What commands print, as values: each is one line of `--json`, and has a text for people.
//!
//! [`Line`] lists all kinds of lines of all commands; `docs/json.md` describes them, and a test compares the two. Raise
//! [`SCHEMA`] when a field is removed or changes its meaning, not for new fields or new kinds of lines.

mod counts;
mod event;
mod member;
mod phase;
mod plan;
mod row;
mod summary;

use serde::Serialize;
use serde_json::Value;
use stook_sys::Timestamp;

pub(crate) use event::{Damaged, Failed, Fatal, Noted, Skipped, Unmatched};
pub(crate) use member::{ListedMember, long_row};
pub(crate) use phase::{Phase, phase_table, with_shares};
pub(crate) use plan::{Abandoned, Built, Committed, Part, Planned};
pub(crate) use row::{
    Differing, Entry, ListedRun, NewVolume, Syscall, Tree, Word, difference_text, run_text,
};
pub(crate) use summary::{
    Checked, Compared, Copied, Extracted, Filled, Indexed, Listed, ListedRuns, Page, Removed,
    Summary, Walked, Written,
};

use crate::output::hex;

/// The version of the schema.
pub(crate) const SCHEMA: u32 = 1;

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Line<'a> {
    /// The first line of every command.
    Header(Header),
    /// An entry of a tree.
    Entry(Entry),
    /// A member of an archive.
    Member(ListedMember),
    /// A run that wrote an archive.
    Run(ListedRun<'a>),
    /// An entry that a tree and an archive do not have alike.
    Difference(Differing),
    /// A volume that would be written.
    Volume(NewVolume),
    /// A part of a plan that is to be built.
    Part(Part),
    /// An entry that would be copied.
    WouldCopy(Tree),
    /// An entry that would be removed.
    WouldRemove(Tree),
    /// An entry that is not removed.
    Stays(Word),
    /// An entry that is left out on purpose.
    Skipped(Skipped<'a>),
    /// A pattern that matches nothing.
    Unmatched(Unmatched),
    /// A fact that is not an error.
    Note(Noted<'a>),
    /// A file that failed.
    Failure(Failed),
    /// Something that is not as it was written.
    Damage(Damaged<'a>),
    /// What ended the command early.
    Error(Fatal<'a>),
    /// Where the time went.
    Phases {
        /// One after the other.
        phases: &'a [Phase],
    },
    /// How often a system call was made.
    Syscall(Syscall),
    /// What was done.
    Summary(Summary),
}

/// What prints these lines.
#[derive(Serialize)]
pub(crate) struct Header {
    schema: u32,
    stook: &'static str,
    command: &'static str,
}

impl Header {
    pub(crate) fn new(command: &'static str) -> Self {
        Self {
            schema: SCHEMA,
            stook: env!("CARGO_PKG_VERSION"),
            command,
        }
    }
}

/// A path: as text, and as hexadecimal bytes where the text is not exact.
#[derive(Debug, Serialize)]
pub(crate) struct JsonPath {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
}

impl JsonPath {
    pub(crate) fn new(path: &[u8]) -> Self {
        let (path, path_hex) = text_and_hex(path);
        Self { path, path_hex }
    }
}

/// Returns bytes as text, and as hexadecimal digits where the text is not exact.
pub(crate) fn text_and_hex(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (
            String::from_utf8_lossy(bytes).into_owned(),
            Some(hex(bytes)),
        ),
    }
}

/// Returns an object of a library as a line.
pub(crate) fn with_type(line: &str, mut value: Value) -> Value {
    value["type"] = line.into();
    value
}

/// Returns a time of an index as RFC 3339.
pub(crate) fn time(time: stook_archive::Mtime) -> String {
    crate::time::rfc3339(Timestamp {
        seconds: time.0.div_euclid(1_000_000),
        nanoseconds: u32::try_from(time.0.rem_euclid(1_000_000) * 1000).unwrap_or(0),
    })
}
