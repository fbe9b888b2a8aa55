//! Parts of the line that says what was done.

use crate::size::grouped;

/// Returns the words for failures, if there are any.
pub(crate) fn failed_text(failed: u64) -> String {
    if failed == 0 {
        String::new()
    } else {
        format!("; {} failed", grouped(failed))
    }
}

/// Returns a number with its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { many }
    )
}
