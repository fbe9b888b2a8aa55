//! What a tree is like, in a few numbers that are the same whenever the tree is: counts, and sums of hashes.
//!
//! Listings come in no order, so hashes are added up. A sum takes no memory for names: what the bench holds when it starts
//! a command would count as the command's. Names are listed only where two trees are not the same.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Mutex;

use stook_sys::{FileKind, into_inner, lock};
use stook_tree::{Detail, Selection, Summary, SummaryBuilder, join};

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
/// [`BenchError::Sys`] with the first directory that cannot be read.
pub(super) fn digest(tree: &Path) -> Result<TreeDigest, BenchError> {
    let total: Mutex<TreeDigest> = Mutex::default();
    each_directory(tree, Detail::Facts, |listing| {
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
pub(super) fn summary(tree: &Path) -> Result<Summary, BenchError> {
    let builder: Mutex<SummaryBuilder> = Mutex::default();
    let all = Selection::default();
    each_directory(tree, Detail::Facts, |listing| {
        lock(&builder).add(listing, &all);
    })?;
    Ok(into_inner(builder).summary())
}

/// All paths below a tree, in one buffer, so that all of the memory goes back when they do.
#[derive(Debug, Default)]
pub(super) struct Paths {
    bytes: Vec<u8>,
    /// Where each ends, and whether it is a directory.
    ends: Vec<(usize, bool)>,
}

impl Paths {
    /// Lists a tree.
    ///
    /// # Errors
    /// As [`digest`].
    pub(super) fn below(tree: &Path) -> Result<Self, BenchError> {
        let all: Mutex<Self> = Mutex::default();
        each_directory(tree, Detail::Kinds, |listing| {
            let mut all = lock(&all);
            if !listing.path.is_empty() {
                all.push(&listing.path, true);
            }
            for entry in &listing.entries {
                let path = join(&listing.path, listing.name(entry));
                all.push(&path, false);
            }
        })?;
        Ok(into_inner(all))
    }

    fn push(&mut self, path: &[u8], is_directory: bool) {
        self.bytes.extend_from_slice(path);
        self.ends.push((self.bytes.len(), is_directory));
    }

    /// Returns each path, and whether it is a directory.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts
            .zip(&self.ends)
            .map(|(start, (end, is_directory))| (&self.bytes[start..*end], *is_directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stook_testkit::{TempDir, tree};

    fn seen(tree: &stook_testkit::Tree) -> TreeDigest {
        let folder = TempDir::new().unwrap();
        tree.write(folder.path()).unwrap();
        digest(folder.path()).unwrap()
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
        let paths = Paths::below(folder.path()).unwrap();
        let mut found: Vec<(&[u8], bool)> = paths.iter().collect();
        found.sort_unstable();
        let expected: [(&[u8], bool); 3] = [(b"a", true), (b"a/b", false), (b"c", false)];
        assert_eq!(found, expected);
    }
}
