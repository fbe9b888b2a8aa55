//! Counts at the end of a sentence; nothing where there are none.

use crate::number::grouped;

/// Returns the words for failures, if there are any.
pub(super) fn failed(number: u64) -> String {
    also(number, "failed")
}

pub(super) fn also(number: u64, what: &str) -> String {
    match number {
        0 => String::new(),
        number => format!("; {} {what}", grouped(number)),
    }
}
