//! What commands print, as values: each is one line of `--json`, and has a text for people.
//!
//! [`Line`] lists all kinds of lines of all commands; `docs/json.md` describes them, and a test compares the two. Raise
//! [`SCHEMA`] when a field is removed or changes its meaning, not for new fields or new kinds of lines.

mod counts;
mod event;
mod export;
mod member;
mod phase;
mod plan;
pub(crate) mod profile;
mod row;
mod summary;
mod transfer;
mod zodb;

use serde::Serialize;
use stook_archive::Mtime;
use stook_bench::Sample;
use stook_bench::profile::{Place, ThreadTimes};
use stook_sys::Timestamp;

pub(crate) use event::{Damaged, Failed, Fatal, Noted, Skipped, Unmatched};
pub(crate) use export::{Imaged, Referred};
pub(crate) use member::{ListedMember, long_row};
pub(crate) use phase::{Phase, phase_table, with_shares};
pub(crate) use plan::{Abandoned, Built, Committed, Part, Planned};
use profile::{SourceLine, ViewFunction, ViewStacks};
pub(crate) use row::{
    Differing, Entry, ListedRun, NewVolume, Syscall, Tree, Word, difference_text, run_text,
};
pub(crate) use summary::{
    Checked, Compared, Copied, Extracted, Filled, Indexed, Listed, ListedRuns, Measured, Page,
    Paired, Removed, Summary, Walked, Written,
};

pub(crate) use zodb::{
    ZodbAnalyzed, ZodbChecked, ZodbClass, ZodbDamage, ZodbDay, ZodbObject, ZodbReference,
    ZodbReferenced, ZodbReindexed,
};

pub(crate) use transfer::{ArchiveStatus, Pulled, Sent, StoredVolume};

use crate::output::hex;

/// The version of the schema.
pub(crate) const SCHEMA: u32 = 1;

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Line<'a> {
    /// The first line of every command.
    Header(Header<'a>),
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
    /// Where a volume is.
    StoredVolume(StoredVolume),
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
    Syscall(Syscall<'a>),
    /// A run of a command that is measured.
    Sample(&'a Sample),
    /// Where the time of all threads went.
    Times(ThreadTimes),
    /// The stacks of a profile.
    Stacks(ViewStacks),
    /// A function of a profile.
    Function(ViewFunction),
    /// What threads were blocked in.
    Place(&'a Place),
    /// A line of a Python function.
    #[serde(rename = "line")]
    Source(SourceLine<'a>),
    /// Damage in a database.
    ZodbDamage(ZodbDamage),
    /// A class of a database.
    ZodbClass(ZodbClass<'a>),
    /// An object of a database.
    ZodbObject(ZodbObject<'a>),
    /// A day of a database.
    ZodbDay(ZodbDay),
    /// A reference in a database.
    ZodbReference(ZodbReference),
    /// What was done.
    Summary(Summary),
}

/// What prints these lines.
#[derive(Serialize)]
pub(crate) struct Header<'a> {
    schema: u32,
    #[serde(flatten)]
    stook: Stook<'a>,
    command: &'static str,
}

/// The version of the program; of a bench, with the conditions of the samples that follow.
#[derive(Serialize)]
#[serde(untagged)]
enum Stook<'a> {
    Version { stook: &'static str },
    Bench(&'a stook_bench::Header),
}

impl<'a> Header<'a> {
    pub(crate) fn new(command: &'static str) -> Self {
        let stook = env!("CARGO_PKG_VERSION");
        Self::with(Stook::Version { stook }, command)
    }

    /// Returns the header of a bench, as its files of results have it, and besides what all headers have.
    pub(crate) fn of_bench(command: &'static str, header: &'a stook_bench::Header) -> Self {
        Self::with(Stook::Bench(header), command)
    }

    fn with(stook: Stook<'a>, command: &'static str) -> Self {
        Self {
            schema: SCHEMA,
            stook,
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

/// Returns the exact time of a file as an index has it, in microseconds. Of one that an index cannot have, which keeps the
/// nearest year that it can, the exact time.
pub(crate) fn file_time(exact: Timestamp) -> String {
    match Mtime::from(exact) {
        Mtime::MIN | Mtime::MAX => crate::time::rfc3339(exact),
        kept => time(kept),
    }
}

/// Returns a time of an index as RFC 3339.
pub(crate) fn time(time: Mtime) -> String {
    crate::time::rfc3339(Timestamp {
        seconds: time.0.div_euclid(1_000_000),
        nanoseconds: u32::try_from(time.0.rem_euclid(1_000_000) * 1000).unwrap_or(0),
    })
}
