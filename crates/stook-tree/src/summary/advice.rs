//! Which subtrees would gain from being archived: those of many small files.
//!
//! ```text
//!   from the root down:  fewer than MANY files, or not small ──> look at the directories in it
//!                        else, large parts hold MOST of it   ──> look at the directories in it
//!                        else                                ──> name it, and nothing below it
//! ```
//! So one flat directory deep in a tree is named itself and not all that is above it, and a thousand directories of
//! a thousand files each are named by the one that holds them.

use super::directories::Directory;
use super::{Counts, Group};
use crate::path;

/// An archive has two files, so that with a thousand hardly any inode is left to save.
const MANY: u64 = 1000;

/// A file below 1 MiB takes longer to open, about 1 ms on a network file system, than to read at 1 GB/s.
const SMALL: u128 = 1 << 20;

/// A part of all files that is named apart: a twentieth.
const LARGE: u64 = 20;

/// Returns the subtrees, that of most files first.
pub(super) fn advise(mut sorted: Vec<Directory<'_>>) -> Vec<Group> {
    let parents = parents(&sorted);
    add_up(&mut sorted, &parents);
    let in_large_parts = files_in_large_parts(&sorted, &parents);
    let mut advice = Vec::new();
    let mut is_passed = vec![false; sorted.len()];
    for (at, (path, total)) in sorted.iter().enumerate() {
        if !parents[at].is_none_or(|parent| is_passed[parent]) {
            continue;
        }
        let is_divided = in_large_parts[at] >= total.files - total.files / 5;
        if gains(total) && !is_divided {
            advice.push(Group {
                name: path.to_vec(),
                counts: *total,
            });
        } else {
            is_passed[at] = true;
        }
    }
    advice.sort_unstable_by(|a, b| (b.counts.files, &a.name).cmp(&(a.counts.files, &b.name)));
    advice
}

fn gains(total: &Counts) -> bool {
    total.files >= MANY && total.bytes < SMALL * u128::from(total.files)
}

/// Returns the place of the directory above each one.
fn parents(sorted: &[Directory<'_>]) -> Vec<Option<usize>> {
    let mut above: Vec<usize> = Vec::new();
    let place = |(at, (path, _)): (usize, &Directory<'_>)| {
        while above
            .last()
            .is_some_and(|&last| !path::is_below(path, sorted[last].0))
        {
            above.pop();
        }
        let parent = above.last().copied();
        above.push(at);
        parent
    };
    sorted.iter().enumerate().map(place).collect()
}

/// Turns what is directly in each directory into what is in it and all below it.
fn add_up(sorted: &mut [Directory<'_>], parents: &[Option<usize>]) {
    // Whatever is below a directory stands behind it.
    for at in (0..sorted.len()).rev() {
        if let Some(parent) = parents[at] {
            let (_, total) = sorted[at];
            sorted[parent].1 += total;
        }
    }
}

/// Returns for each directory how many files are in those subtrees right below it that gain and are large.
fn files_in_large_parts(totals: &[Directory<'_>], parents: &[Option<usize>]) -> Vec<u64> {
    let all_files = totals.first().map_or(0, |(_, root)| root.files);
    let mut files = vec![0; totals.len()];
    for ((_, total), parent) in totals.iter().zip(parents) {
        if let Some(parent) = parent
            && gains(total)
            && total.files >= all_files / LARGE
        {
            files[*parent] += total.files;
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories of so many files of so many bytes; returns what is named, with its files.
    fn advice(directories: &[(&str, u64, u64)]) -> Vec<(String, u64)> {
        let mut rows: Vec<Directory<'_>> = directories
            .iter()
            .map(|&(path, files, size)| {
                let counts = Counts {
                    entries: files + 1,
                    files,
                    bytes: u128::from(files) * u128::from(size),
                    on_disk: 0,
                };
                (path.as_bytes(), counts)
            })
            .collect();
        rows.sort_by(|a, b| path::compare(a.0, b.0));
        let named = |group: Group| (String::from_utf8(group.name).unwrap(), group.counts.files);
        advise(rows).into_iter().map(named).collect()
    }

    fn named(path: &str, files: u64) -> (String, u64) {
        (path.to_owned(), files)
    }

    #[test]
    fn few_files_or_large_ones_gain_nothing() {
        assert_eq!(advice(&[]), []);
        assert_eq!(advice(&[("", 0, 0)]), []);
        assert_eq!(advice(&[("", 999, 1)]), []);
        assert_eq!(advice(&[("", 1000, 1 << 20)]), []);
        assert_eq!(advice(&[("", 1000, (1 << 20) - 1)]), [named("", 1000)]);
    }

    #[test]
    fn the_directory_that_holds_them_is_named_not_those_above() {
        let chain = [("", 2, 9), ("a", 1, 9), ("a/b", 5000, 9), ("c", 3, 9)];
        assert_eq!(advice(&chain), [named("a/b", 5000)]);
    }

    #[test]
    fn many_alike_are_named_by_the_one_above() {
        let names: Vec<String> = (0..50).map(|number| format!("runs/{number}")).collect();
        let mut tree: Vec<_> = names.iter().map(|name| (name.as_str(), 1000, 9)).collect();
        tree.extend([("", 0, 0), ("runs", 0, 0)]);
        assert_eq!(advice(&tree), [named("runs", 50_000)]);
        let few: Vec<_> = tree.split_off(47);
        let each: Vec<String> = advice(&few).into_iter().map(|(name, _)| name).collect();
        assert_eq!(each, ["runs/47", "runs/48", "runs/49"]);
    }

    #[test]
    fn small_files_are_found_beside_large_ones() {
        let tree = [
            ("", 0, 0),
            ("films", 100, 10 << 30),
            ("films/thumbnails", 2000, 9),
            ("mail", 1500, 9),
            ("mail/old", 1500, 9),
            ("mail-2", 10, 9),
        ];
        assert_eq!(
            advice(&tree),
            [named("mail", 3000), named("films/thumbnails", 2000)]
        );
    }
}
