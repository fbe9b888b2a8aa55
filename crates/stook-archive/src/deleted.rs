//! Says of names that a state lacks where they are: which run found them deleted, and which state has them.
//!
//! Asked only once a name or a pattern has selected nothing, so it may look at the whole index.

use std::fmt;
use std::ops::ControlFlow;

use stook_index::{Absence, AsOf, Index, Mtime, Run, Selection};
use stook_tree::Pattern;

use crate::ArchiveError;
use crate::folder::Folder;

/// Names that a state of an archive does not have, and others do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingName {
    /// The name or the pattern.
    pub name: Vec<u8>,
    /// The state.
    pub as_of: AsOf,
    /// Where they are.
    pub absence: Absence,
}

impl fmt::Display for MissingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let AsOf::Run(run) = self.as_of {
            write!(f, "as of run {run}, ")?;
        }
        match (self.absence.names, &self.absence.deleted_by) {
            (1, None) => write!(f, "it was not archived yet"),
            (names, None) => write!(f, "the {names} names that match were not archived yet"),
            (1, Some(run)) => write!(f, "it was deleted by run {}", Dated(run)),
            (names, Some(run)) => write!(
                f,
                "the {names} names that match were deleted, the last of them by run {}",
                Dated(run)
            ),
        }
    }
}

/// The number of a run, and when it ended.
struct Dated<'r>(&'r Run);

impl fmt::Display for Dated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { id, finished, .. } = self.0;
        match finished {
            Some(time) => write!(f, "{id} ({})", whole_seconds(*time)),
            None => write!(f, "{id}"),
        }
    }
}

fn whole_seconds(time: Mtime) -> Mtime {
    Mtime(time.0 - time.0.rem_euclid(1_000_000))
}

/// Returns the error for a name or a pattern that selects nothing of a state, if other states have what it matches.
pub(crate) fn explain_missing(
    folder: &Folder,
    index: &Index,
    name: &[u8],
    as_of: AsOf,
    matches: &dyn Fn(&[u8]) -> bool,
) -> Result<Option<ArchiveError>, ArchiveError> {
    let absence = index.absence(as_of, matches)?;
    Ok(absence.map(|absence| not_in_state(folder, name, as_of, absence)))
}

/// As [`explain_missing`], of one whole name.
pub(crate) fn explain_missing_name(
    folder: &Folder,
    index: &Index,
    name: &[u8],
    as_of: AsOf,
) -> Result<Option<ArchiveError>, ArchiveError> {
    let absence = index.absence_of(as_of, name)?;
    Ok(absence.map(|absence| not_in_state(folder, name, as_of, absence)))
}

fn not_in_state(folder: &Folder, name: &[u8], as_of: AsOf, absence: Absence) -> ArchiveError {
    ArchiveError::NotInState {
        archive: folder.name().to_owned(),
        missing: Box::new(MissingName {
            name: name.to_vec(),
            as_of,
            absence,
        }),
    }
}

/// Requires that each pattern selects something, or that no state has what it matches, unless something that matches, or
/// might match, cannot be read.
///
/// # Cost
/// With several patterns, a pass over the selected rows until each pattern has matched one.
pub(crate) fn require_not_missing(
    folder: &Folder,
    index: &Index,
    as_of: AsOf,
    patterns: &[Pattern],
    selection: &Selection,
) -> Result<(), ArchiveError> {
    if selection.is_damaged() {
        return Ok(());
    }
    for pattern in without_rows(index, patterns, selection)? {
        let matches = |name: &[u8]| pattern.matches(name);
        if let Some(error) = explain_missing(folder, index, pattern.text(), as_of, &matches)? {
            return Err(error);
        }
    }
    Ok(())
}

/// Returns the patterns that match no selected row.
fn without_rows<'p>(
    index: &Index,
    patterns: &'p [Pattern],
    selection: &Selection,
) -> Result<Vec<&'p Pattern>, ArchiveError> {
    let mut left: Vec<&Pattern> = patterns.iter().collect();
    if selection.is_empty() {
        return Ok(left);
    }
    // What is selected matches one of them.
    if left.len() < 2 {
        return Ok(Vec::new());
    }
    index.selected(selection, |row| {
        left.retain(|pattern| !pattern.matches(row.name));
        if left.is_empty() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stook_index::{RowId, RunId};

    fn missing(
        names: u64,
        as_of: AsOf,
        deleted_by: Option<i64>,
        found: Option<(AsOf, u64)>,
    ) -> String {
        let run = |id| Run {
            id: RunId(id),
            command: "update".to_owned(),
            started: Mtime(0),
            finished: Mtime::from_text(b"2026-11-21 18:30:00.123456"),
            first_file: RowId(1),
            last_file: Some(RowId(2)),
            failed: 0,
        };
        let missing = MissingName {
            name: b"a/b".to_vec(),
            as_of,
            absence: Absence {
                names,
                deleted_by: deleted_by.map(run),
                found_in: found,
            },
        };
        missing.to_string()
    }

    #[test]
    fn each_case_has_its_words() {
        let after = |run| AsOf::Run(RunId(run));
        let cases = [
            (
                missing(1, AsOf::Now, Some(3), Some((after(2), 1))),
                "it was deleted by run 3 (2026-11-21 18:30:00)",
            ),
            (
                missing(12, AsOf::Now, Some(5), Some((after(4), 7))),
                "the 12 names that match were deleted, the last of them by run 5 (2026-11-21 18:30:00)",
            ),
            (
                missing(1, after(1), None, Some((after(4), 1))),
                "as of run 1, it was not archived yet",
            ),
            (
                missing(1, after(1), None, Some((AsOf::Now, 1))),
                "as of run 1, it was not archived yet",
            ),
            (
                missing(1, after(3), Some(2), Some((after(1), 1))),
                "as of run 3, it was deleted by run 2 (2026-11-21 18:30:00)",
            ),
            (
                missing(1, AsOf::Now, Some(1), None),
                "it was deleted by run 1 (2026-11-21 18:30:00)",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(text, expected);
        }
    }
}
