//! Figures from samples: location, spread, ratios. Pure; tested against known answers.
//!
//! Times have long tails, so tables show medians and quartiles beside means.

mod bootstrap;

pub use bootstrap::{Ratio, median_interval, ratio_of_medians};

/// Some samples, and how they lie about their median.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of a sample (`n - 1`); 0 of one sample.
    pub stdev: f64,
    /// The smallest.
    pub min: f64,
    /// A quarter of the samples lies below.
    pub lower_quartile: f64,
    /// Half of the samples lies below.
    pub median: f64,
    /// Three quarters of the samples lie below.
    pub upper_quartile: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Returns the figures of some samples, in any order; None of none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let sorted = sorted(samples);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let mean = mean(&sorted);
        Some(Self {
            count: sorted.len(),
            mean,
            stdev: stdev(&sorted, mean),
            min,
            lower_quartile: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            upper_quartile: quantile(&sorted, 0.75),
            max,
        })
    }
}

/// Returns the samples from the least to the greatest.
fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 samples")]
fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 samples")]
fn stdev(samples: &[f64], mean: f64) -> f64 {
    if samples.len() < 2 {
        return 0.0;
    }
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (squares / (samples.len() - 1) as f64).sqrt()
}

/// Returns the quantile of sorted samples, between two of them by a straight line.
///
/// # Source
/// Hyndman and Fan, Sample quantiles in statistical packages, 1996, type 7: what R, NumPy and Python's
/// `statistics.quantiles(method="inclusive")` give.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the share is between 0 and 1, and nobody has 2^52 samples"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let below = at as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}

/// Returns the median; None of no samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    (!sorted.is_empty()).then(|| quantile(&sorted, 0.5))
}

/// Returns the slope of the straight line through the origin that fits `a` over `b` best: sum(a b) / sum(b b).
///
/// So long runs weigh more than short ones. It is neither the mean of ratios nor the ratio of means. None if there are no
/// pairs or `b` is 0 everywhere; what is longer than the other is cut off.
///
/// # Source
/// Least squares; the estimator of CernVM-FS's `avg_cache_time.sh`, here as the original tables have it.
pub fn through_origin(a: &[f64], b: &[f64]) -> Option<f64> {
    let products: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let squares: f64 = b.iter().take(a.len()).map(|b| b * b).sum();
    (squares > 0.0).then(|| products / squares)
}

/// Returns the share of CPU time in wall time, as [`through_origin`] of CPU seconds over seconds: 1 is one processor all
/// the time, and programs with several threads reach more.
pub fn cpu_share(cpu_seconds: &[f64], seconds: &[f64]) -> Option<f64> {
    through_origin(cpu_seconds, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn figures_are_those_of_python() {
        // Python: statistics.quantiles(x, n=4, method="inclusive"), mean(x), stdev(x).
        let spread = Spread::of(&[7.0, 15.0, 36.0, 39.0, 40.0, 41.0]).unwrap();
        assert_eq!(spread.count, 6);
        assert!(close(spread.lower_quartile, 20.25) && close(spread.median, 37.5));
        assert!(close(spread.upper_quartile, 39.75) && close(spread.mean, 178.0 / 6.0));
        assert!(
            close(spread.stdev, 14.773_850_773_128_4),
            "{}",
            spread.stdev
        );
        assert_eq!((spread.min, spread.max), (7.0, 41.0));
    }

    #[test]
    fn the_order_of_samples_does_not_matter_and_one_is_enough() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread::of(&[1.0, 2.0, 3.0]));
        let one = Spread::of(&[0.2]).unwrap();
        assert_eq!((one.median, one.stdev, one.lower_quartile), (0.2, 0.0, 0.2));
        assert_eq!((Spread::of(&[]), median(&[])), (None, None));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }

    #[test]
    fn the_slope_weighs_long_runs_more() {
        // (1*2 + 6*4) / (2*2 + 4*4) = 26 / 20; the mean of ratios is 1, the ratio of means 7/6.
        assert!(close(
            through_origin(&[1.0, 6.0], &[2.0, 4.0]).unwrap(),
            1.3
        ));
        assert_eq!(through_origin(&[], &[]), None);
        assert_eq!(through_origin(&[1.0], &[0.0]), None);
    }
}
