//! The figures of a file set, from its plan alone: what will be on the disk is known before anything is.
//!
//! Sizes are cheap to compute again, and there may be 100 million of them: so none are kept. A first pass counts them
//! by their leading bits; a second one counts exactly those that share theirs with the median.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Observer;
use crate::error::BenchError;
use crate::fileset::plan::Plan;
use crate::space::Need;

/// The figures of a file set; sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Properties {
    /// The name of its spec.
    pub format: String,
    /// Its seed.
    pub seed: u64,
    /// Bytes in all files.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Directories, without the one that holds the set.
    pub directories: u64,
    /// The mean size.
    pub mean: f64,
    /// The standard deviation of the sizes.
    pub stdev: f64,
    /// The smallest size.
    pub min: u64,
    /// The size in the middle; of two, the smaller one.
    pub median: u64,
    /// The greatest size.
    pub max: u64,
}

/// Bytes of a block of the file systems that there are most of; larger ones share theirs between small files.
pub(super) const BLOCK: u64 = 4096;

/// Files between two questions whether to end.
const LOOK: u64 = 1 << 16;

/// Returns the figures of a set, and what it takes.
///
/// # Errors
/// [`BenchError::Interrupted`] if the observer wants an end.
///
/// # Cost
/// About 0.13 us a file.
pub(super) fn survey(
    plan: &Plan<'_>,
    observer: &dyn Observer,
) -> Result<(Properties, Need), BenchError> {
    let mut moments = SizeMoments::default();
    let mut bins = vec![0_u64; BINS];
    for_each_size(plan, observer, |size| {
        moments.add(size);
        bins[bin(size)] += 1;
    })?;
    let (median_bin, rank) = bin_of_rank(&bins, (plan.files() - 1) / 2);
    let mut near = BTreeMap::new();
    for_each_size(plan, observer, |size| {
        if bin(size) == median_bin {
            *near.entry(size).or_insert(0_u64) += 1;
        }
    })?;
    let properties = Properties {
        format: plan.format().to_owned(),
        seed: plan.seed(),
        bytes: moments.bytes,
        files: plan.files(),
        directories: plan.directories(),
        mean: moments.mean,
        stdev: (moments.squares / moments.count).sqrt(),
        min: moments.min,
        median: size_of_rank(&near, rank),
        max: moments.max,
    };
    let need = Need {
        bytes: moments.on_disk.saturating_add(plan.directories() * BLOCK),
        inodes: plan.files() + plan.directories(),
    };
    Ok((properties, need))
}

fn for_each_size(
    plan: &Plan<'_>,
    observer: &dyn Observer,
    mut take: impl FnMut(u64),
) -> Result<(), BenchError> {
    for number in 0..plan.files() {
        if number % LOOK == 0 && observer.is_stopped() {
            return Err(BenchError::Interrupted);
        }
        take(plan.size(number));
    }
    Ok(())
}

/// Sums; mean and squares after Welford, as plain sums of squares lose the digits that count.
struct SizeMoments {
    count: f64,
    bytes: u64,
    on_disk: u64,
    mean: f64,
    squares: f64,
    min: u64,
    max: u64,
}

impl Default for SizeMoments {
    fn default() -> Self {
        Self {
            count: 0.0,
            bytes: 0,
            on_disk: 0,
            mean: 0.0,
            squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl SizeMoments {
    #[expect(clippy::cast_precision_loss, reason = "moments are no exact figures")]
    fn add(&mut self, size: u64) {
        self.count += 1.0;
        self.bytes = self.bytes.saturating_add(size);
        let blocks = size.div_ceil(BLOCK);
        self.on_disk = self.on_disk.saturating_add(blocks.saturating_mul(BLOCK));
        let off = size as f64 - self.mean;
        self.mean += off / self.count;
        self.squares += off * (size as f64 - self.mean);
        self.min = self.min.min(size);
        self.max = self.max.max(size);
    }
}

/// Leading bits that tell bins apart, without the first.
const FINE_BITS: u32 = 10;

const BINS: usize = (u64::BITS - FINE_BITS + 1) as usize * (1 << FINE_BITS);

/// The bin of a size: small ones have their own, of the others those with the same leading bits share one.
#[expect(clippy::cast_possible_truncation, reason = "there are few bins")]
fn bin(size: u64) -> usize {
    let shift = size.checked_ilog2().unwrap_or(0).saturating_sub(FINE_BITS);
    ((u64::from(shift) << FINE_BITS) + (size >> shift)) as usize
}

/// Returns the bin of the size that has so many before it, and how many of them are in that bin.
fn bin_of_rank(bins: &[u64], rank: u64) -> (usize, u64) {
    let mut rest = rank;
    for (bin, count) in bins.iter().enumerate() {
        if rest < *count {
            return (bin, rest);
        }
        rest -= count;
    }
    (0, 0)
}

fn size_of_rank(counts: &BTreeMap<u64, u64>, rank: u64) -> u64 {
    let mut behind = 0;
    let found = counts.iter().find(|(_, count)| {
        behind += **count;
        rank < behind
    });
    found.map_or(0, |(size, _)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_in_the_order_of_sizes_and_end_with_the_greatest() {
        let sizes = [0, 1, 1023, 1024, 2047, 2048, 2050, 4096, 1 << 40, u64::MAX];
        assert!(sizes.map(bin).is_sorted());
        assert_eq!(
            (bin(2047), bin(2048), bin(2049), bin(2050)),
            (2047, 2048, 2048, 2049)
        );
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn the_size_of_a_rank_is_that_of_the_sorted_sizes() {
        let sizes = [5_u64, 5, 70_000, 70_001, 70_001, 70_002, 9_999_999];
        let mut bins = vec![0; BINS];
        for size in sizes {
            bins[bin(size)] += 1;
        }
        for (rank, size) in sizes.iter().enumerate() {
            let (found, within) = bin_of_rank(&bins, rank as u64);
            let near = sizes.iter().filter(|size| bin(**size) == found);
            let mut counts = BTreeMap::new();
            near.for_each(|size| *counts.entry(*size).or_insert(0) += 1);
            assert_eq!(size_of_rank(&counts, within), *size);
        }
    }
}
