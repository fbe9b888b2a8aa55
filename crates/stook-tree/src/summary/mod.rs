//! Figures about a tree, counted while it is walked.
//!
//! ```text
//!   Listing ──> SummaryBuilder (one for each worker that is counting) ──merge──> SummaryBuilder ──> Summary
//!                 ├─ sizes         a counter for each size
//!                 ├─ extensions    files and bytes of each
//!                 └─ directories   a row for each ──sorted──> totals of subtrees, advice
//! ```
//! An entry costs two or three additions; all that is compared, sorted or divided waits for the end. Whatever the order
//! in which listings come, and whichever worker takes them, the summary is the same. A file with several names
//! counts once for each of them.

mod advice;
mod directories;
mod extensions;
mod sizes;

use std::cmp::Ordering;
use std::ops::AddAssign;

use stook_sys::{FileKind, Metadata};
use stook_timers::scope;

use crate::{Listing, Selection};
use directories::Directories;
use extensions::Extensions;
use sizes::SizeCounts;
pub use sizes::{SizeClass, SizeFigures};

/// Rows of a [`Ranking`].
const RANKED: usize = 10;

/// What is counted of a group of entries.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Entries of every kind.
    pub entries: u64,
    /// Regular files among them.
    pub files: u64,
    /// Sum of the sizes of the files.
    pub bytes: u128,
    /// Bytes that the files take on disk.
    pub on_disk: u128,
}

/// A name with what was counted under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// A path below the tree, or an extension with its dot; empty for the tree itself, or no extension.
    pub name: Vec<u8>,
    /// What was counted.
    pub counts: Counts,
}

/// The first ten of some groups that have files; those alike go by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    /// Those with most files.
    pub by_files: Vec<Group>,
    /// Those with most bytes.
    pub by_bytes: Vec<Group>,
}

/// What was counted by one worker.
#[derive(Debug, Default)]
pub struct SummaryBuilder {
    directories: u64,
    links: u64,
    others: u64,
    sizes: SizeCounts,
    extensions: Extensions,
    rows: Directories,
}

/// What is known about a tree once it is counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Directories, the tree itself among them.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Fifos, sockets and devices.
    pub others: u64,
    /// All entries.
    pub counts: Counts,
    /// What sizes the files have; None without files.
    pub sizes: Option<SizeFigures>,
    /// How many files have about which size.
    pub classes: Vec<SizeClass>,
    /// The extensions of the files.
    pub extensions: Ranking,
    /// True if there were too many extensions; those met late count as none.
    pub has_more_extensions: bool,
    /// What is directly in the directories.
    pub largest_directories: Ranking,
    /// Subtrees of many small files, none below another, that with most files first.
    pub advice: Vec<Group>,
}

impl Counts {
    fn of_file(size: u64, blocks: u64) -> Self {
        Self {
            entries: 1,
            files: 1,
            bytes: size.into(),
            on_disk: u128::from(blocks) * 512,
        }
    }

    /// Returns the mean size of the files, if there are any.
    pub fn mean(&self) -> Option<f64> {
        (self.files > 0).then(|| sizes::mean(self.bytes, self.files))
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.entries += other.entries;
        self.files += other.files;
        self.bytes += other.bytes;
        self.on_disk += other.on_disk;
    }
}

impl SummaryBuilder {
    /// How many bytes of a path are looked at, from its beginning, unless the selection looks at more.
    pub const LONGEST_PATH: usize = directories::LONGEST + 1;

    /// Counts a directory and the entries in it that are selected.
    ///
    /// Entries that the selection rules out are not in the listing: see [`Visitor::skips`](crate::Visitor::skips).
    pub fn add(&mut self, listing: &Listing, selection: &Selection) {
        let _scope = scope!("count");
        let mut counts = Counts::default();
        if selection.selects(&listing.path, &listing.metadata) {
            self.directories += 1;
            counts.entries += 1;
        }
        for entry in &listing.entries {
            let metadata = entry.metadata();
            if selection.admits(&metadata) {
                counts += self.count(listing.name(entry), &metadata);
            }
        }
        self.rows.add(&listing.path, counts);
    }

    fn count(&mut self, name: &[u8], metadata: &Metadata) -> Counts {
        let kinds = match metadata.kind {
            FileKind::File => {
                let file = Counts::of_file(metadata.size, metadata.blocks);
                self.sizes.add(metadata.size);
                self.extensions.add(name, file);
                return file;
            }
            FileKind::Directory => &mut self.directories,
            FileKind::Symlink => &mut self.links,
            _ => &mut self.others,
        };
        *kinds += 1;
        Counts {
            entries: 1,
            ..Counts::default()
        }
    }

    /// Adds what another worker has counted.
    pub fn merge(&mut self, other: Self) {
        self.directories += other.directories;
        self.links += other.links;
        self.others += other.others;
        self.sizes.merge(other.sizes);
        self.extensions.merge(other.extensions);
        self.rows.merge(&other.rows);
    }

    /// Returns what all of it comes to.
    ///
    /// # Cost
    /// A sort of the directories and of the large files.
    pub fn summary(mut self) -> Summary {
        let _scope = scope!("summary");
        let sorted = self.rows.sorted();
        let mut counts = Counts::default();
        for (_, directory) in &sorted {
            counts += *directory;
        }
        Summary {
            directories: self.directories,
            links: self.links,
            others: self.others,
            counts,
            sizes: self.sizes.figures(),
            classes: self.sizes.classes(),
            extensions: self.extensions.ranking(),
            has_more_extensions: self.extensions.has_more(),
            largest_directories: directories::ranking(&sorted),
            advice: advice::advise(sorted),
        }
    }
}

/// A group before its name is copied.
type Named<'a> = (&'a [u8], &'a Counts);

impl Ranking {
    fn of(mut groups: Vec<Named<'_>>) -> Self {
        groups.retain(|(_, counts)| counts.files > 0);
        Self {
            by_files: first(&mut groups, |counts| counts.files.into()),
            by_bytes: first(&mut groups, |counts| counts.bytes),
        }
    }
}

/// Returns the groups with the largest figures.
fn first(groups: &mut [Named<'_>], figure: impl Fn(&Counts) -> u128) -> Vec<Group> {
    let order = |a: &Named<'_>, b: &Named<'_>| -> Ordering {
        figure(b.1).cmp(&figure(a.1)).then_with(|| a.0.cmp(b.0))
    };
    if groups.len() > RANKED {
        groups.select_nth_unstable_by(RANKED, order);
    }
    let most = groups.len().min(RANKED);
    let ranked = &mut groups[..most];
    ranked.sort_unstable_by(order);
    let group = |(name, counts): &Named<'_>| Group {
        name: name.to_vec(),
        counts: **counts,
    };
    ranked.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ten_are_the_largest_and_ties_go_by_name() {
        let names: Vec<String> = (0..30).map(|number| format!("{number:02}")).collect();
        let counts: Vec<Counts> = (0..30)
            .map(|number| Counts {
                entries: 9,
                files: number % 3,
                bytes: 7,
                on_disk: 0,
            })
            .collect();
        let groups = names.iter().map(String::as_bytes).zip(&counts).rev();
        let ranking = Ranking::of(groups.collect());
        let shown = |groups: &[Group]| -> Vec<String> {
            let names = groups.iter().map(|group| group.name.clone());
            names.map(|name| String::from_utf8(name).unwrap()).collect()
        };
        let twos = ["02", "05", "08", "11", "14", "17", "20", "23", "26", "29"];
        assert_eq!(shown(&ranking.by_files), twos);
        let with_files = ["01", "02", "04", "05", "07", "08", "10", "11", "13", "14"];
        assert_eq!(shown(&ranking.by_bytes), with_files);
    }
}
