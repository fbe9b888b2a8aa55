//! The sizes of all files, counted so that every figure about them is exact.
//!
//! Below 64 KiB there is one counter for each size, above it the sizes themselves: a small file costs one increment,
//! and memory is half a megabyte and 8 bytes for each large file. The figures are taken at the end, in the order of the
//! sizes, so they do not depend on the order in which the files were met.

/// Sizes that have a counter of their own: nearly all of those in trees of small files. With a million counters the
/// memory for them, touched for the first time, took as long as a tenth of a walk over 100,000 files.
const COUNTED: usize = 64 << 10;

/// How many files there are of each size.
#[derive(Debug)]
pub(super) struct SizeCounts {
    /// By size.
    counters: Vec<u64>,
    larger: Vec<u64>,
}

/// What the sizes of at least one file are like.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeFigures {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of all of them, not of a sample.
    pub deviation: f64,
    /// The smallest.
    pub smallest: u64,
    /// The middle one; of an even number, the larger of the two.
    pub median: u64,
    /// The largest.
    pub largest: u64,
}

/// The files whose sizes have the same number of decimal digits; empty files are apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeClass {
    /// The smallest size of the class.
    pub from: u64,
    /// The largest one.
    pub to: u64,
    /// How many files.
    pub files: u64,
    /// The sum of their sizes.
    pub bytes: u128,
}

impl Default for SizeCounts {
    fn default() -> Self {
        Self {
            counters: vec![0; COUNTED],
            larger: Vec::new(),
        }
    }
}

impl SizeCounts {
    pub(super) fn add(&mut self, size: u64) {
        let counter = usize::try_from(size)
            .ok()
            .and_then(|at| self.counters.get_mut(at));
        match counter {
            Some(counter) => *counter += 1,
            None => self.larger.push(size),
        }
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        for (counter, more) in self.counters.iter_mut().zip(&other.counters) {
            *counter += more;
        }
        self.larger.append(&mut other.larger);
    }

    /// Returns the classes from the smallest that has files to the largest.
    pub(super) fn classes(&self) -> Vec<SizeClass> {
        let mut classes: Vec<SizeClass> = (0..=20).map(SizeClass::empty).collect();
        for (size, files) in self.in_any_order() {
            let class = &mut classes[digits(size)];
            class.files += files;
            class.bytes += u128::from(size) * u128::from(files);
        }
        let has_files = |class: &SizeClass| class.files > 0;
        let first = classes.iter().position(has_files).unwrap_or(classes.len());
        let end = classes
            .iter()
            .rposition(has_files)
            .map_or(first, |last| last + 1);
        classes[first..end].to_vec()
    }

    /// Returns the figures; None if there are no files.
    pub(super) fn figures(&mut self) -> Option<SizeFigures> {
        self.larger.sort_unstable();
        let (mut files, mut bytes) = (0, 0);
        let (mut smallest, mut largest) = (None, 0);
        for (size, count) in self.in_any_order() {
            files += count;
            bytes += u128::from(size) * u128::from(count);
            smallest = smallest.or(Some(size));
            largest = size;
        }
        let (median, deviation) = self.middle(files, mean(bytes, files));
        smallest.map(|smallest| SizeFigures {
            mean: mean(bytes, files),
            deviation,
            smallest,
            median,
            largest,
        })
    }

    /// Returns the median and the deviation, of sizes that are sorted.
    #[expect(clippy::cast_precision_loss, reason = "they are figures, not counts")]
    fn middle(&self, files: u64, mean: f64) -> (u64, f64) {
        let (mut seen, mut median, mut squares) = (0, 0, 0.0);
        for (size, count) in self.in_any_order() {
            if seen <= files / 2 {
                median = size;
            }
            seen += count;
            // From the mean, not from zero: large sizes that differ little do not cancel out.
            let distance = size as f64 - mean;
            squares += count as f64 * distance * distance;
        }
        (median, (squares / files as f64).sqrt())
    }

    /// All sizes with the number of their files; sorted as far as the large ones are.
    fn in_any_order(&self) -> impl Iterator<Item = (u64, u64)> {
        let small = (0..).zip(self.counters.iter().copied());
        let large = self.larger.iter().map(|&size| (size, 1));
        small.filter(|&(_, files)| files > 0).chain(large)
    }
}

impl SizeClass {
    fn empty(digits: u32) -> Self {
        let below = 10_u64.checked_pow(digits);
        Self {
            from: digits.checked_sub(1).map_or(0, |zeros| 10_u64.pow(zeros)),
            to: below.map_or(u64::MAX, |below| below - 1),
            files: 0,
            bytes: 0,
        }
    }
}

/// Returns the number of decimal digits; zero has none.
fn digits(size: u64) -> usize {
    size.checked_ilog10().map_or(0, |zeros| zeros as usize + 1)
}

/// Returns the mean of so many numbers with this sum.
#[expect(clippy::cast_precision_loss, reason = "it is a figure, not a count")]
pub(super) fn mean(sum: u128, count: u64) -> f64 {
    sum as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sizes: &[u64]) -> SizeCounts {
        let mut counts = SizeCounts::default();
        for &size in sizes {
            counts.add(size);
        }
        counts
    }

    #[test]
    fn figures_of_known_sizes() {
        let figures = counts(&[9, 2, 4, 4, 4, 5, 5, 7]).figures().unwrap();
        let expected = SizeFigures {
            mean: 5.0,
            deviation: 2.0,
            smallest: 2,
            median: 5,
            largest: 9,
        };
        assert_eq!(figures, expected);
        assert_eq!(counts(&[]).figures(), None);
        assert_eq!(counts(&[]).classes(), []);
        let one = counts(&[0]).figures().unwrap();
        assert_eq!((one.mean, one.deviation, one.median), (0.0, 0.0, 0));
    }

    #[test]
    fn the_median_is_the_upper_one_of_two() {
        let median = |sizes: &[u64]| counts(sizes).figures().unwrap().median;
        assert_eq!(median(&[3, 1, 2]), 2);
        assert_eq!(median(&[3, 1]), 3);
        assert_eq!(median(&[1, 1, 5, 5]), 5);
        assert_eq!(median(&[1, 5, 1, 1]), 1);
        let huge = 1 << 40;
        assert_eq!(median(&[huge + 1, 1, huge]), huge);
        assert_eq!(median(&[huge + 1, huge]), huge + 1);
    }

    #[test]
    fn nothing_overflows_or_cancels_out() {
        let largest = i64::MAX.unsigned_abs();
        let huge = counts(&[largest, largest - 1024, largest, largest - 1024]);
        assert_eq!(huge.classes()[0].bytes, 4 * u128::from(largest) - 2048);
        let figures = counts(&[largest, 0]).figures().unwrap();
        assert_eq!(figures.deviation, 2_f64.powi(62));
        // Squares of these have no place for their difference in a float.
        let near = counts(&[1 << 50, (1 << 50) + 2]).figures().unwrap();
        assert_eq!((near.mean, near.deviation), (2_f64.powi(50) + 1.0, 1.0));
    }

    #[test]
    fn any_split_gives_the_same() {
        let sizes: Vec<u64> = (0..1000).map(|n| n * n * n % 3_000_000).collect();
        let mut whole = counts(&sizes);
        for at in [0, 1, 500, 1000] {
            let (first, second) = sizes.split_at(at);
            let mut merged = counts(second);
            merged.merge(counts(first));
            assert_eq!(merged.figures(), whole.figures());
            assert_eq!(merged.classes(), whole.classes());
        }
    }

    #[test]
    fn classes_go_by_digits() {
        let classes = counts(&[0, 0, 9, 1000, 1001, u64::MAX]).classes();
        let shown: Vec<_> = classes
            .iter()
            .filter(|class| class.files > 0)
            .map(|class| (class.from, class.to, class.files, class.bytes))
            .collect();
        let last = (10_000_000_000_000_000_000, u64::MAX, 1, u64::MAX.into());
        assert_eq!(
            shown,
            [(0, 0, 2, 0), (1, 9, 1, 9), (1000, 9999, 2, 2001), last]
        );
        assert_eq!(classes.len(), 21);
        assert_eq!(counts(&[10, 99]).classes().len(), 1);
    }
}
