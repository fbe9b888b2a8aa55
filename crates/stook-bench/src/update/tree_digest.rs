//! What a tree is like, in a few numbers that are the same whenever the tree is: counts, and sums of hashes.
//!
//! Listings come in no order, so hashes are added up. Names are listed only where two trees are not the same.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Mutex;

use stook_sys::{FileKind, into_inner, lock};
use stook_tree::{Detail, Selection, Summary, SummaryBuilder, join};

use crate::Observer;
use crate::error::BenchError;
use crate::trees::each_directory;

/// A tree in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TreeDigest {
    /// Of the path and kind of every entry, directories among them.
    names: u64,
    /// The same with sizes and times of all but directories.
    facts: u64,
    pub(super) entries: u64,
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl TreeDigest {
    /// Returns true if both trees have the same paths, each of the same kind.
    pub(super) fn has_names_of(&self, other: &Self) -> bool {
        (self.names, self.entries) == (other.names, other.entries)
    }
}

/// Walks a tree and returns its digest.
///
/// # Errors
/// As [`each_directory`].
pub(super) fn digest(tree: &Path, observer: &dyn Observer) -> Result<TreeDigest, BenchError> {
    let total: Mutex<TreeDigest> = Mutex::default();
    each_directory(tree, Detail::Facts, observer, |listing| {
        let mut own = TreeDigest::default();
        if !listing.path.is_empty() {
            own.add(&listing.path, FileKind::Directory, None);
        }
        for entry in &listing.entries {
            let metadata = entry.metadata();
            let path = join(&listing.path, listing.name(entry));
            own.add(&path, metadata.kind, Some((metadata.size, metadata.mtime)));
        }
        lock(&total).merge(&own);
    })?;
    Ok(into_inner(total))
}

impl TreeDigest {
    fn add(&mut self, path: &[u8], kind: FileKind, facts: Option<(u64, stook_sys::Timestamp)>) {
        self.names = self.names.wrapping_add(hash((path, kind)));
        self.entries += 1;
        let Some((size, mtime)) = facts else { return };
        let facts = (path, size, mtime.seconds, mtime.nanoseconds);
        self.facts = self.facts.wrapping_add(hash(facts));
        if kind == FileKind::File {
            self.files += 1;
            self.bytes += size;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.names = self.names.wrapping_add(other.names);
        self.facts = self.facts.wrapping_add(other.facts);
        self.entries += other.entries;
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

fn hash(value: impl Hash) -> u64 {
    // With fixed keys: the same in every run.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the figures of a tree, as `stook walk --summary` has them.
///
/// # Errors
/// As [`digest`].
pub(super) fn summary(tree: &Path, observer: &dyn Observer) -> Result<Summary, BenchError> {
    let builder: Mutex<SummaryBuilder> = Mutex::default();
    let all = Selection::default();
    each_directory(tree, Detail::Facts, observer, |listing| {
        lock(&builder).add(listing, &all);
    })?;
    Ok(into_inner(builder).summary())
}

/// Returns all paths below a tree, and whether each is a directory.
///
/// # Errors
/// As [`digest`].
pub(super) fn paths_below(
    tree: &Path,
    observer: &dyn Observer,
) -> Result<BTreeMap<Vec<u8>, bool>, BenchError> {
    let all: Mutex<BTreeMap<Vec<u8>, bool>> = Mutex::default();
    each_directory(tree, Detail::Kinds, observer, |listing| {
        let entries = listing.entries.iter().map(|entry| listing.name(entry));
        let entries = entries.map(|name| (join(&listing.path, name), false));
        let own = (!listing.path.is_empty()).then(|| (listing.path.clone(), true));
        lock(&all).extend(entries.chain(own));
    })?;
    Ok(into_inner(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stook_testkit::{TempDir, tree};

    fn seen(tree: &stook_testkit::Tree) -> TreeDigest {
        let folder = TempDir::new().unwrap();
        tree.write(folder.path()).unwrap();
        digest(folder.path(), &()).unwrap()
    }

    #[test]
    fn the_same_tree_has_the_same_digest_and_any_other_has_not() {
        let usual = || tree! { "a/b" => file(b"12"), "c" => file(b"345"), "d" => dir() };
        let first = seen(&usual());
        assert_eq!((first.entries, first.files, first.bytes), (4, 2, 5));
        assert_eq!(first, seen(&usual()));
        let longer = seen(&tree! { "a/b" => file(b"123"), "c" => file(b"45"), "d" => dir() });
        assert!(first != longer && first.has_names_of(&longer));
        let other = seen(&tree! { "a/b" => file(b"12"), "c" => file(b"345"), "d" => file(b"") });
        assert!(!first.has_names_of(&other));
    }

    #[test]
    fn all_paths_are_listed() {
        let folder = TempDir::new().unwrap();
        tree! { "a/b" => file(b""), "c" => symlink("a") }
            .write(folder.path())
            .unwrap();
        let paths = paths_below(folder.path(), &()).unwrap();
        let found: Vec<(&[u8], bool)> = paths.iter().map(|(path, is)| (&**path, *is)).collect();
        let expected: [(&[u8], bool); 3] = [(b"a", true), (b"a/b", false), (b"c", false)];
        assert_eq!(found, expected);
    }
}
