//! The plan of a file set: everything about each file and directory from its number alone.
//!
//! ```text
//!   0 root ─┬─ 1 d00000 ─┬─ 2 d00: files 0..17        firsts = [0, 0, 0, 17, 20, 20, ...]
//!           │            └─ 3 d01: files 17..20
//!           └─ 4 d00001 ─── 5 d00: files 20..
//! ```
//! No stream of random numbers goes from one file to the next, so workers may take them in any order, and a
//! shorter set is the beginning of a longer one.
//!
//! Sizes are drawn in blocks: of the 4,096 files of a block exactly one falls into each 4,096th part of the distribution. So a
//! set of some thousand files has the distribution's mean and deviation already, which its few large files would else spoil.

use std::ops::Range;

use stook_sys::Timestamp;

use crate::error::BenchError;
use crate::fileset::spec::{Levels, Spec, Times};
use crate::random::Random;

/// The most files of a set: what their directories take of memory, at worst, is 8 GB.
const MOST_FILES: u64 = 1_000_000_000;

/// Files in whose sizes every part of the distribution comes once; a power of two.
const BLOCK: u64 = 4096;

/// What random numbers are for: each use has its own.
#[derive(Debug, Clone, Copy)]
enum Use {
    Counts,
    Blocks,
    Files,
    Content,
    Directories,
}

/// All that is to be made.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    spec: &'a Spec,
    seed: u64,
    /// The first file of each directory, and behind them the number of files.
    firsts: Vec<u64>,
    /// By level: directories in a whole subtree that begins at this level, its top counted.
    subtrees: Vec<u64>,
}

/// A directory: the root is number 0 at level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its number.
    pub(super) number: u64,
    /// How many directories lie above it.
    pub(super) level: usize,
    /// How many stand before it in the directory that holds it.
    position: u64,
}

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct File {
    /// Bytes.
    pub(super) size: u64,
    /// Whether it is text.
    pub(super) is_text: bool,
    /// When it was last modified.
    pub(super) mtime: Timestamp,
    /// Where its content begins.
    pub(super) key: u64,
}

pub(super) const ROOT: Place = Place {
    number: 0,
    level: 0,
    position: 0,
};

impl<'a> Plan<'a> {
    /// Lays `files` files into directories.
    ///
    /// # Errors
    /// [`BenchError::Usage`] if there are none, or more than a thousand million.
    ///
    /// # Cost
    /// 8 bytes a directory.
    pub(super) fn new(spec: &'a Spec, files: u64, seed: u64) -> Result<Self, BenchError> {
        if files == 0 {
            return Err(BenchError::usage(
                "a file set needs at least one file".to_owned(),
            ));
        }
        if files > MOST_FILES {
            return Err(BenchError::usage(format!(
                "a file set has at most {MOST_FILES} files, and not {files}"
            )));
        }
        let mut plan = Self {
            spec,
            seed,
            firsts: Vec::new(),
            subtrees: subtrees(spec.tree.depth, spec.tree.fan_out),
        };
        let mut first = 0;
        while first < files {
            plan.firsts.push(first);
            let wanted = plan.wanted_files(plan.firsts.len() as u64 - 1);
            first = files.min(first.saturating_add(wanted));
        }
        plan.firsts.push(files);
        Ok(plan)
    }

    /// The files of a directory, if enough are left.
    fn wanted_files(&self, number: u64) -> u64 {
        let tree = &self.spec.tree;
        if tree.depth == 0 {
            return u64::MAX;
        }
        let level = self.positions(number).count();
        let holds = match tree.files_at {
            Levels::Deepest => level == tree.depth,
            Levels::Every => level > 0,
        };
        if !holds {
            return 0;
        }
        let (least, most) = tree.files_per_directory;
        let range = (most - least).saturating_add(1);
        least + self.random(Use::Counts, number).below(range)
    }

    /// Returns the name of the spec.
    pub(super) fn format(&self) -> &str {
        &self.spec.name
    }

    /// Returns the seed.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns how many files there are.
    pub(super) fn files(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Returns how many directories there are, without the root.
    pub(super) fn directories(&self) -> u64 {
        self.firsts.len() as u64 - 2
    }

    /// Returns the numbers of the files in a directory.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a place is one of those in memory"
    )]
    pub(super) fn files_in(&self, place: Place) -> Range<u64> {
        let at = place.number as usize;
        self.firsts[at]..self.firsts[at + 1]
    }

    /// Returns the directories in a directory.
    pub(super) fn directories_in(&self, place: Place) -> impl Iterator<Item = Place> {
        let level = place.level + 1;
        let most = match place.level {
            0 => u64::MAX,
            _ => self.spec.tree.fan_out,
        };
        let step = self.subtrees.get(level).copied();
        let places = (0..most).map_while(move |position| {
            let number = position.checked_mul(step?)?.checked_add(place.number + 1)?;
            Some(Place {
                number,
                level,
                position,
            })
        });
        let last = self.directories();
        places.take_while(move |place| place.number <= last)
    }

    /// Returns the name of a directory that is not the root.
    pub(super) fn name(&self, place: Place) -> String {
        directory_name(place.level, place.position, self.spec.tree.fan_out)
    }

    /// Returns the path of a directory below the root.
    pub(super) fn path(&self, number: u64) -> String {
        let fan_out = self.spec.tree.fan_out;
        let names = self.positions(number).zip(1..);
        let names = names.map(|(position, level)| directory_name(level, position, fan_out));
        names.collect::<Vec<_>>().join("/")
    }

    /// The way from the root to a directory.
    fn positions(&self, number: u64) -> impl Iterator<Item = u64> {
        let mut rest = number;
        self.subtrees.iter().skip(1).map_while(move |subtree| {
            let below = rest.checked_sub(1)?;
            rest = below % subtree;
            Some(below / subtree)
        })
    }

    /// Returns what a file is like.
    pub(super) fn file(&self, number: u64) -> File {
        let mut random = self.random(Use::Files, number);
        File {
            size: self.size(number),
            is_text: random.unit() < self.spec.content.text,
            mtime: time(&mut random, self.spec.times),
            key: self.random(Use::Content, number).bits(),
        }
    }

    /// Returns the bytes of a file.
    #[expect(clippy::cast_precision_loss, reason = "a part of a block is small")]
    pub(super) fn size(&self, number: u64) -> u64 {
        let mut block = self.random(Use::Blocks, number / BLOCK);
        let part = shuffled(number % BLOCK, &mut block);
        // Where in its part comes from the number alone.
        let within = Random::new(block.bits() ^ number).unit();
        let share = (part as f64 + within) / BLOCK as f64;
        self.spec.sizes.quantile(share.clamp(1e-12, 1.0 - 1e-12))
    }

    /// Returns when a directory was last modified.
    pub(super) fn directory_mtime(&self, number: u64) -> Timestamp {
        let mut random = self.random(Use::Directories, number);
        time(&mut random, self.spec.times)
    }

    fn random(&self, of: Use, number: u64) -> Random {
        let stream = Random::new(self.seed).bits() ^ of as u64;
        Random::new(Random::new(stream).bits() ^ number)
    }
}

/// Returns the name of a file.
pub(super) fn file_name(number: u64, file: &File) -> String {
    let ending = if file.is_text { "txt" } else { "bin" };
    format!("f{number:07}.{ending}")
}

fn directory_name(level: usize, position: u64, fan_out: u64) -> String {
    let width = match level {
        1 => 5,
        _ => (fan_out - 1).to_string().len(),
    };
    format!("d{position:0width$}")
}

/// By level, how many directories a whole subtree has; that of the root is not used.
fn subtrees(depth: usize, fan_out: u64) -> Vec<u64> {
    let mut subtrees = vec![1_u64; depth + 1];
    for level in (0..depth).rev() {
        subtrees[level] = subtrees[level + 1]
            .saturating_mul(fan_out)
            .saturating_add(1);
    }
    subtrees
}

/// A permutation of the numbers below [`BLOCK`]: each step can be undone.
fn shuffled(number: u64, random: &mut Random) -> u64 {
    let mut mixed = number;
    for _ in 0..2 {
        let factor = random.bits() | 1;
        mixed = mixed.wrapping_add(random.bits()).wrapping_mul(factor) % BLOCK;
        mixed ^= mixed >> 6;
    }
    mixed
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "nanoseconds are below a thousand million"
)]
fn time(random: &mut Random, times: Times) -> Timestamp {
    let seconds = random.below(times.to.abs_diff(times.from));
    Timestamp {
        seconds: times.from.saturating_add_unsigned(seconds),
        nanoseconds: random.below(1_000_000_000) as u32,
    }
}
