//! What becomes of names that are gone from the source, and when an operation stops because of them.

use std::fmt;
use std::path::PathBuf;

use stook_sys::display_path;

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
    pub(crate) fn stop_reason(self, counts: NameCounts, is_begun: bool) -> Option<StopReason> {
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
