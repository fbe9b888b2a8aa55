//! The guard in front of recording names as deleted: a file system that is not mounted, a wrong directory or half a copy
//! looks just like a tree whose files were deleted.
//!
//! It compares numbers only, and does so before anything is written. It does not know whether a deletion was meant;
//! `Deletions::Record` says that it was.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_index::{Index, NameTable, Staging};
use stook_sys::{Directory, display_path, exists};

use crate::ArchiveError;
use crate::deletions::{Deletions, NameCounts, StopReason, UnlikelyDeletions};
use crate::not_visited::{NotVisited, count_deleted};
use crate::observer::Observer;

/// A source that was surveyed, and the archive that it was compared with.
pub(crate) struct Guard<'a> {
    pub(crate) index: &'a Index,
    pub(crate) name_table: &'a NameTable,
    pub(crate) not_visited: &'a NotVisited<'a>,
    pub(crate) source: &'a Directory,
    /// As the user named it.
    pub(crate) tree: &'a Path,
}

impl Guard<'_> {
    /// Returns what speaks against recording the names that are gone as deleted. If nothing does, a note says so if the
    /// source is not the directory that the archive was created from.
    ///
    /// # Cost
    /// A pass over the rows only if `deletions` would not allow that all names are gone that were not found.
    pub(crate) fn unlikely_deletions<'s>(
        &self,
        deletions: Deletions,
        stagings: impl IntoIterator<Item = &'s Staging>,
        observer: &dyn Observer,
    ) -> Result<Option<UnlikelyDeletions>, ArchiveError> {
        let created_from = created_from(self.index, self.source);
        let stop = self.stop(deletions, stagings)?;
        if let (None, Some(path)) = (stop, &created_from) {
            observer.noted(&format!(
                "the archive was created from `{}`, and `{}` is another directory",
                display_path(path),
                display_path(self.tree)
            ));
        }
        Ok(stop.map(|(reason, counts)| UnlikelyDeletions {
            reason,
            counts,
            tree: self.tree.to_owned(),
            created_from,
        }))
    }

    fn stop<'s>(
        &self,
        deletions: Deletions,
        stagings: impl IntoIterator<Item = &'s Staging>,
    ) -> Result<Option<(StopReason, NameCounts)>, ArchiveError> {
        let not_found = self.name_table.not_visited() as u64;
        let mut counts = NameCounts {
            found: self.not_visited.found,
            known: (self.name_table.len() - self.name_table.released_not_visited()) as u64
                - not_found,
            gone: not_found,
        };
        if deletions.stop_reason(counts, false).is_none() {
            return Ok(None);
        }
        counts.gone = count_deleted(self.index, Some(self.name_table), self.not_visited)?;
        self.name_table.not_visited_staged_names(stagings, |name| {
            counts.gone += u64::from(self.not_visited.is_deleted(name));
        })?;
        let first_run = self.index.unfinished_run()?;
        let is_begun = first_run.is_some_and(|run| run.first_file.0 <= 1);
        let reason = deletions.stop_reason(counts, is_begun);
        Ok(reason.map(|reason| (reason, counts)))
    }
}

/// Returns the directory that the archive was created from, unless the source is that directory.
fn created_from(index: &Index, source: &Directory) -> Option<PathBuf> {
    // An archive without usable settings does not say.
    let recorded = index.config().ok()?.path;
    let recorded = Path::new(std::ffi::OsStr::from_bytes(&recorded));
    if !recorded.is_absolute() {
        return None;
    }
    let own = source.own_metadata().ok()?.identity();
    let is_source = matches!(exists(recorded), Ok(Some(there)) if there.identity() == own);
    (!is_source).then(|| recorded.to_owned())
}

/// Returns true if the directory that the archive was created from is still there, and the source is another one: what is in
/// such a copy says nothing of what was removed from the tree. If that directory is gone, the source is taken for the tree
/// at its new place.
pub(crate) fn is_copy(index: &Index, source: &Directory) -> bool {
    created_from(index, source).is_some_and(|recorded| matches!(exists(&recorded), Ok(Some(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(found: u64, known: u64, gone: u64) -> Option<StopReason> {
        Deletions::Guarded.stop_reason(NameCounts { found, known, gone }, false)
    }

    #[test]
    fn an_empty_source_stops_if_anything_is_gone() {
        assert_eq!(reason(0, 0, 1), Some(StopReason::Empty));
        assert_eq!(reason(0, 0, 40_817), Some(StopReason::Empty));
        assert_eq!(reason(0, 0, 0), None);
        // Directories that are not archived for themselves are met all the same.
        assert_eq!(reason(0, 1, 1), None);
    }

    #[test]
    fn a_source_of_unknown_names_stops_below_one_percent() {
        assert_eq!(reason(5, 0, 3), Some(StopReason::Unknown));
        assert_eq!(reason(5, 1, 3), None);
        assert_eq!(reason(100, 1, 3), None);
        assert_eq!(reason(101, 1, 3), Some(StopReason::Unknown));
        assert_eq!(reason(10_000, 99, 1), Some(StopReason::Unknown));
        assert_eq!(reason(10_000, 100, 1), None);
        // A tree that has only grown has lost nothing.
        assert_eq!(reason(10_000, 1, 0), None);
        assert_eq!(reason(u64::MAX, u64::MAX / 2, 1), None);
    }

    #[test]
    fn more_than_half_of_a_hundred_names_stop() {
        assert_eq!(reason(50, 50, 50), None);
        assert_eq!(reason(49, 49, 51), Some(StopReason::MostGone));
        assert_eq!(reason(9, 9, 90), None);
        assert_eq!(reason(10, 10, 90), Some(StopReason::MostGone));
        assert_eq!(reason(500_000, 500_000, 500_000), None);
        assert_eq!(
            reason(500_000, 500_000, 500_001),
            Some(StopReason::MostGone)
        );
    }

    #[test]
    fn an_interrupted_first_run_may_have_archived_but_a_little() {
        let begun = |known, gone| {
            let counts = NameCounts {
                found: 100_000,
                known,
                gone,
            };
            Deletions::Guarded.stop_reason(counts, true)
        };
        assert_eq!(begun(499, 1), None);
        assert_eq!(begun(30, 30), None);
        assert_eq!(begun(30, 31), Some(StopReason::Unknown));
        assert_eq!(begun(0, 500), Some(StopReason::Unknown));
        assert_eq!(begun(40_000, 60_000), Some(StopReason::MostGone));
    }

    #[test]
    fn what_was_asked_for_is_not_guarded() {
        for gone in [0, 1, 1000] {
            let counts = NameCounts {
                found: 0,
                known: 0,
                gone,
            };
            for deletions in [Deletions::Record, Deletions::Keep] {
                assert_eq!(deletions.stop_reason(counts, false), None);
            }
            let refused = (gone > 0).then_some(StopReason::Refused);
            assert_eq!(Deletions::Refuse.stop_reason(counts, false), refused);
        }
    }

    #[test]
    fn a_stop_says_what_was_found() {
        let text = |reason, found, known, gone, created_from: Option<&str>| {
            let unlikely = UnlikelyDeletions {
                reason,
                counts: NameCounts { found, known, gone },
                tree: PathBuf::from("src"),
                created_from: created_from.map(PathBuf::from),
            };
            unlikely.to_string()
        };
        assert_eq!(
            text(StopReason::Empty, 0, 0, 1, None),
            "nothing was found in `src`, and 1 name would be recorded as deleted"
        );
        assert_eq!(
            text(StopReason::Unknown, 200, 1, 7, Some("/data/run7")),
            "the archive has 1 of the 200 names in `src`, and 7 names would be recorded as deleted; \
             the archive was created from `/data/run7`"
        );
        assert_eq!(
            text(StopReason::MostGone, 10, 10, 90, None),
            "90 of 100 names are gone from `src`"
        );
        assert_eq!(
            text(StopReason::Refused, 4, 4, 1, None),
            "1 of 5 names is gone from `src`"
        );
    }
}
