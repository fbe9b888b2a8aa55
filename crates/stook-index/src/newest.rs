//! The rule of which row counts: per name the one with the greatest id, unless a later deletion
//! hides it.
//!
//! Names are held as 128-bit hashes. Two names of one archive share a hash with a chance below
//! 10^-12 at 10^8 names, and nobody can arrange it, as the seed is drawn anew each time.

use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::name::{NameHash, NameHasher};
use crate::types::Deletion;
use crate::types::RunId;

/// One version of a name.
pub(crate) trait Version: Copy {
    fn hash(&self) -> NameHash;
    fn id(&self) -> i64;
}

/// Sorts by hash and keeps the newest version of each name.
pub(crate) fn keep_newest<V: Version>(versions: &mut Vec<V>, deleted: &DeletedNames) {
    versions.sort_unstable_by_key(|version| (version.hash(), version.id()));
    versions.dedup_by(|later, kept| {
        let same = later.hash() == kept.hash();
        if same {
            *kept = *later;
        }
        same
    });
    if !deleted.last_hidden.is_empty() {
        versions.retain(|version| !deleted.hides(version.hash(), version.id()));
    }
}

/// Up to which row each deleted name is hidden.
#[derive(Debug, Default)]
pub(crate) struct DeletedNames {
    /// Ascending by hash; one entry a name.
    last_hidden: Vec<(NameHash, i64)>,
}

impl DeletedNames {
    /// Reads the deletions up to a run, or all; what cannot be read of them goes to `damaged`.
    pub(crate) fn load(
        index: &Index,
        up_to: Option<RunId>,
        hasher: &NameHasher,
        damaged: &mut dyn FnMut(IndexDamage),
    ) -> Result<Self, IndexError> {
        let mut last_hidden = Vec::new();
        let mut visit = |deletion: Deletion<'_>| {
            last_hidden.push((hasher.hash(deletion.name), deletion.last_file));
        };
        index.deletions(up_to, &mut visit, damaged)?;
        last_hidden.sort_unstable();
        last_hidden.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                *kept = *later;
            }
            same
        });
        Ok(Self { last_hidden })
    }

    fn hides(&self, hash: NameHash, id: i64) -> bool {
        match self
            .last_hidden
            .binary_search_by_key(&hash, |entry| entry.0)
        {
            Ok(index) => id <= self.last_hidden[index].1,
            Err(_) => false,
        }
    }
}

/// Returns about how many rows there are, without counting them; never more than fit in the file.
pub(crate) fn expected_rows(index: &Index) -> Result<usize, IndexError> {
    /// No row of `files` is smaller than this.
    const SMALLEST_ROW: i64 = 16;
    let bytes: i64 = index
        .connection
        .query_row(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
            [],
            |row| row.get(0),
        )
        .map_err(index.fault(READ))?;
    let last = index.last_readable_row()?.unwrap_or(0);
    Ok(usize::try_from(last.min(bytes / SMALLEST_ROW)).unwrap_or(0))
}
