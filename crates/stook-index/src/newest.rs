//! The rule of which row counts: per name the one with the greatest id, unless a later deletion
//! hides it.
//!
//! Names are held as 128-bit hashes. Two names of one archive share a hash with a chance below
//! 10^-12 at 10^8 names, and nobody can arrange it, as the seed is drawn anew each time.

use stook_pool::{Jobs, WorkerPool};

use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::interrupt::Interrupt;
use crate::name::{NameHash, NameHasher};
use crate::types::Deletion;
use crate::types::RunId;

/// One version of a name.
pub(crate) trait Version: Copy + Send {
    fn hash(&self) -> NameHash;
    fn id(&self) -> i64;
}

/// Sorts by hash and keeps the newest version of each name.
///
/// # Errors
/// `Interrupted`; what is left then is of no use.
///
/// # Cost
/// Sorts in place, on several threads where there are many versions, and asks before each part whether to go on.
pub(crate) fn keep_newest<V: Version>(
    versions: &mut Vec<V>,
    deleted: &DeletedNames,
    jobs: Jobs,
    index: &Index,
) -> Result<(), IndexError> {
    sort(versions, jobs, &index.interrupt);
    index.require_going_on()?;
    dedup(versions);
    if !deleted.last_hidden.is_empty() {
        versions.retain(|version| !deleted.hides(version.hash(), version.id()));
    }
    Ok(())
}

/// Keeps the last of each hash.
fn dedup<V: Version>(versions: &mut Vec<V>) {
    versions.dedup_by(|later, kept| {
        let same = later.hash() == kept.hash();
        if same {
            *kept = *later;
        }
        same
    });
}

/// Versions that one task sorts: some milliseconds of work, in the caches of its processor.
const VERSIONS_A_TASK: usize = 1 << 15;

/// Sorts by hash and id, halves of halves side by side. Hashes may be unevenly spread, as those of a flat directory begin with
/// the same bits, so the middle is looked for and not computed.
fn sort<V: Version>(versions: &mut [V], jobs: Jobs, interrupt: &Interrupt) {
    let key = |version: &V| (version.hash(), version.id());
    if versions.len() <= VERSIONS_A_TASK {
        versions.sort_unstable_by_key(key);
        return;
    }
    let is_raised = || interrupt.is_raised();
    WorkerPool::new("sort", jobs).until(&is_raised).recursive(
        [versions],
        |part: &mut [V], tasks| {
            if part.len() <= VERSIONS_A_TASK {
                part.sort_unstable_by_key(key);
                return;
            }
            let (lower, _, upper) = part.select_nth_unstable_by_key(part.len() / 2, key);
            tasks.extend([upper, lower]);
        },
    );
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Named(u64, u64, i64);

    impl Version for Named {
        fn hash(&self) -> NameHash {
            NameHash(self.0, self.1)
        }
        fn id(&self) -> i64 {
            self.2
        }
    }

    /// Several versions of each name, in any order; `upper` gives the first half of a hash.
    fn versions(count: u64, upper: impl Fn(u64) -> u64) -> Vec<Named> {
        let mixed = (0..count).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (count / 3 + 1));
        let version = |(id, name): (usize, u64)| {
            Named(upper(name), name, id.cast_signed().try_into().unwrap())
        };
        mixed.enumerate().map(version).collect()
    }

    fn newest(versions: &[Named]) -> Vec<Named> {
        let mut newest = BTreeMap::new();
        for version in versions {
            let kept = newest.entry(version.hash()).or_insert(*version);
            if kept.2 < version.2 {
                *kept = *version;
            }
        }
        newest.into_values().collect()
    }

    #[test]
    fn many_versions_are_sorted_in_parts_as_few_are_at_once() {
        let spread = |name: u64| name.wrapping_mul(0xd134_2543_de82_ef95);
        let uppers: [fn(u64) -> u64; 2] = [spread, |_| 7];
        for (count, upper) in [0, 1, 1000, 200_000]
            .into_iter()
            .flat_map(|count| uppers.map(|upper| (count, upper)))
        {
            for jobs in [1, 3] {
                let mut found = versions(count, upper);
                let expected = newest(&found);
                sort(&mut found, jobs.into(), &Interrupt::never());
                dedup(&mut found);
                assert!(found == expected, "{count} {jobs}");
            }
        }
    }

    #[test]
    fn a_sort_ends_early_when_it_is_interrupted() {
        let raised = Interrupt::from(Arc::new(AtomicBool::new(true)));
        let mut versions = versions(200_000, |name| name);
        let before = versions.clone();
        sort(&mut versions, Jobs::Fixed(2), &raised);
        assert!(versions == before);
    }
}
