//! Lines about what happened on the way: failures, damage, notes, and the error that ended a command.

use serde::Serialize;
use stook_archive::{Damage, Failure, IndexDamage};

use super::JsonPath;

/// A file that failed; the rest goes on.
#[derive(Serialize)]
pub(crate) struct Failed {
    #[serde(flatten)]
    path: JsonPath,
    operation: &'static str,
    cause: String,
    errno: Option<i32>,
}

impl Failed {
    pub(crate) fn new(failure: &Failure) -> Self {
        Self {
            path: JsonPath::new(&failure.path),
            operation: failure.operation,
            cause: failure.cause.to_string(),
            errno: failure.cause.errno(),
        }
    }
}

/// Something that is not as it was written, in a volume or in the index.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Damaged<'a> {
    Volume {
        #[serde(flatten)]
        path: Option<JsonPath>,
        volume: String,
        offset: Option<u64>,
        cause: String,
        errno: Option<i32>,
    },
    Index {
        #[serde(flatten)]
        path: Option<JsonPath>,
        /// Always true: what the other kind has not.
        index: bool,
        table: Option<&'a str>,
        rows: Option<[i64; 2]>,
        column: Option<&'a str>,
        cause: String,
    },
}

impl<'a> Damaged<'a> {
    pub(crate) fn volume(damage: &Damage) -> Self {
        Self::Volume {
            path: damage.member.as_deref().map(JsonPath::new),
            volume: damage.volume.to_string(),
            offset: damage.offset,
            cause: damage.cause.to_string(),
            errno: damage.cause.errno(),
        }
    }

    pub(crate) fn index(damage: &'a IndexDamage) -> Self {
        let rows = damage.rows.as_ref();
        Self::Index {
            path: damage.name.as_deref().map(JsonPath::new),
            index: true,
            table: damage.table,
            rows: rows.map(|rows| [*rows.start(), *rows.end()]),
            column: damage.column,
            cause: damage.what.to_string(),
        }
    }
}

/// An entry that is left out on purpose.
#[derive(Serialize)]
pub(crate) struct Skipped<'a> {
    #[serde(flatten)]
    path: JsonPath,
    cause: &'a str,
}

impl<'a> Skipped<'a> {
    pub(crate) fn new(path: &[u8], cause: &'a str) -> Self {
        Self {
            path: JsonPath::new(path),
            cause,
        }
    }
}

/// A pattern that matches nothing.
#[derive(Serialize)]
pub(crate) struct Unmatched {
    pub(crate) pattern: String,
}

/// A fact that is not an error.
#[derive(Serialize)]
pub(crate) struct Noted<'a> {
    pub(crate) text: &'a str,
    pub(crate) hint: Option<&'a str>,
}

/// What ended a command early.
#[derive(Serialize)]
pub(crate) struct Fatal<'a> {
    pub(crate) text: &'a str,
    pub(crate) hint: Option<&'a str>,
    /// The exit status.
    pub(crate) status: u8,
}
