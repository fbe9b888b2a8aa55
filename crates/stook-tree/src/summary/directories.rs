//! One row for each directory: its path and what is directly in it.
//!
//! Paths lie one after the other in one piece of memory; a row is 64 bytes, and 90 more when all are sorted and added
//! up. So a tree of 100 million files in two million directories takes some 450 MB.

use super::{Counts, Ranking};
use crate::path;

/// A directory with a longer path counts as part of the one above it. It keeps a chain of directories that is
/// hundred thousands deep, and has paths as long as that, from taking the memory of all of them.
pub(super) const LONGEST: usize = 4096;

/// The path of a directory, and what is counted there.
pub(super) type Directory<'a> = (&'a [u8], Counts);

#[derive(Debug, Default)]
pub(super) struct Directories {
    paths: Vec<u8>,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    start: usize,
    len: usize,
    counts: Counts,
}

impl Row {
    fn path<'a>(&self, paths: &'a [u8]) -> &'a [u8] {
        &paths[self.start..][..self.len]
    }
}

impl Directories {
    pub(super) fn add(&mut self, path: &[u8], counts: Counts) {
        let path = shortened(path);
        if let Some(last) = self.rows.last_mut()
            && last.path(&self.paths) == path
        {
            last.counts += counts;
            return;
        }
        let (start, len) = (self.paths.len(), path.len());
        self.paths.extend_from_slice(path);
        self.rows.push(Row { start, len, counts });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let shift = self.paths.len();
        self.paths.extend_from_slice(&other.paths);
        self.rows.extend(other.rows.iter().map(|row| Row {
            start: row.start + shift,
            ..*row
        }));
    }

    /// Returns the directories, each in front of all that is below it.
    pub(super) fn sorted(&mut self) -> Vec<Directory<'_>> {
        let Self { paths, rows } = self;
        rows.sort_unstable_by(|a, b| path::compare(a.path(paths), b.path(paths)));
        let mut sorted: Vec<Directory<'_>> = Vec::with_capacity(rows.len());
        for row in rows {
            match sorted.last_mut() {
                Some((path, counts)) if *path == row.path(paths) => *counts += row.counts,
                _ => sorted.push((row.path(paths), row.counts)),
            }
        }
        sorted
    }
}

/// Returns the directories that have most directly in them.
pub(super) fn ranking(sorted: &[Directory<'_>]) -> Ranking {
    let named = sorted.iter().map(|(path, counts)| (*path, counts));
    Ranking::of(named.collect())
}

fn shortened(path: &[u8]) -> &[u8] {
    let Some(beginning) = path.get(..=LONGEST) else {
        return path;
    };
    let slash = beginning.iter().rposition(|&byte| byte == b'/');
    &path[..slash.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_workers_are_sorted_and_added_up() {
        let counts = Counts::of_file(7, 8);
        let mut directories = Directories::default();
        directories.add(b"b", counts);
        directories.add(b"", counts);
        let mut other = Directories::default();
        other.add(b"a/b", counts);
        other.add(b"a", counts);
        other.add(b"b", counts);
        directories.merge(&other);
        let sorted = directories.sorted();
        let bytes: Vec<(&[u8], u128)> = sorted.iter().map(|row| (row.0, row.1.bytes)).collect();
        let expected: [(&[u8], u128); 4] = [(b"", 7), (b"a", 7), (b"a/b", 7), (b"b", 14)];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn very_deep_directories_count_with_the_one_above() {
        let mut directories = Directories::default();
        let path = b"a/".repeat(5000);
        for len in (1..path.len()).step_by(2) {
            directories.add(&path[..len], Counts::of_file(1, 8));
        }
        let sorted = directories.sorted();
        let (deepest, counts) = sorted.last().unwrap();
        assert_eq!(deepest.len(), 4095);
        assert_eq!((sorted.len(), counts.files), (2048, 5000 - 2047));
        assert_eq!(shortened(&b"x".repeat(4096)).len(), 4096);
        assert_eq!(
            shortened(&[&b"x".repeat(4096)[..], b"/y"].concat()).len(),
            4096
        );
    }
}
