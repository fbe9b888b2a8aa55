//! What becomes of names that are gone from the source, and the guard in front of recording them as deleted: a file
//! system that is not mounted, a wrong directory or half a copy looks just like a tree whose files were deleted.
//!
//! The guard compares numbers only, and does so before anything is written. It does not know whether a deletion was
//! meant; `Deletions::Record` says that it was.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_index::{Index, NameTable, Staging};
use stook_sys::{Directory, display_path, exists};

use crate::ArchiveError;
use crate::not_visited::{NotVisited, count_deleted};
use crate::observer::Observer;

/// From this many names on, the guard does not accept that more than half of them are gone.
const MANY_NAMES: u64 = 100;

/// A source of which fewer names than one in this many are known is another tree.
const KNOWN_SHARE: u64 = 100;

/// What becomes of names that are gone from the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deletions {
    /// They are recorded as deleted, unless the source looks empty, incomplete or like another tree.
    #[default]
    Guarded,
    /// They are recorded as deleted, however many they are.
    Record,
    /// They stay in the newest state.
    Keep,
    /// If there are any, the operation stops before it writes.
    Refuse,
}

/// Why names that are gone are not recorded as deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Nothing was found in the source.
    Empty,
    /// Fewer than 1 % of the names in the source are in the archive.
    Unknown,
    /// More than half of the names are gone, and there were 100 or more.
    MostGone,
    /// [`Deletions::Refuse`] was asked for.
    Refused,
}

/// A source compared with an archive, in numbers. Only names that the filter selects count, and only those that could
/// be looked for: what lies below a directory that cannot be read is neither known nor gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameCounts {
    /// Entries in the source.
    pub found: u64,
    /// Those whose name the archive holds.
    pub known: u64,
    /// Names that the archive holds and the source does not.
    pub gone: u64,
}

/// An update that would record deletions that were probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlikelyDeletions {
    /// Why it stops.
    pub reason: StopReason,
    /// What was compared.
    pub counts: NameCounts,
    /// The source.
    pub tree: PathBuf,
    /// The directory that the archive was created from, if it is another one.
    pub created_from: Option<PathBuf>,
}

impl fmt::Display for UnlikelyDeletions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NameCounts { found, known, gone } = self.counts;
        let (tree, all) = (display_path(&self.tree), known + gone);
        let names = if gone == 1 { "name" } else { "names" };
        match self.reason {
            StopReason::Empty => write!(
                f,
                "nothing was found in `{tree}`, and {gone} {names} would be recorded as deleted"
            )?,
            StopReason::Unknown => write!(
                f,
                "the archive has {known} of the {found} names in `{tree}`, and {gone} {names} would be recorded as deleted"
            )?,
            StopReason::MostGone | StopReason::Refused => {
                let verb = if gone == 1 { "is" } else { "are" };
                write!(f, "{gone} of {all} names {verb} gone from `{tree}`")?;
            }
        }
        match &self.created_from {
            Some(path) => write!(f, "; the archive was created from `{}`", display_path(path)),
            None => Ok(()),
        }
    }
}

impl Deletions {
    /// Returns why an update with these numbers must stop; if it must, it must with more names gone, too. `is_begun` is
    /// an archive that holds only what its first run had archived when it was interrupted.
    fn stop_reason(self, counts: NameCounts, is_begun: bool) -> Option<StopReason> {
        let NameCounts { found, known, gone } = counts;
        if gone == 0 {
            return None;
        }
        let most_gone = gone > known;
        match self {
            Self::Record | Self::Keep => None,
            Self::Refuse => Some(StopReason::Refused),
            Self::Guarded if found == 0 && known == 0 => Some(StopReason::Empty),
            // The source may well hold a hundred times what an interrupted first run has archived.
            Self::Guarded
                if known.saturating_mul(KNOWN_SHARE) < found && (most_gone || !is_begun) =>
            {
                Some(StopReason::Unknown)
            }
            Self::Guarded if most_gone && known + gone >= MANY_NAMES => Some(StopReason::MostGone),
            Self::Guarded => None,
        }
    }
}

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
