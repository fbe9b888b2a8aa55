//! Intervals by resampling: how far another run of the same bench might be off.
//!
//! The percentile bootstrap. With five samples its intervals are rough, and too narrow rather than too wide.
//!
//! # Source
//! Efron and Tibshirani, An introduction to the bootstrap, 1993, chapter 13.

use super::{quantile, sorted};
use crate::random::Random;

const RESAMPLES: usize = 5_000;
/// Of the resampled values, as many lie in the interval.
const CONFIDENCE: f64 = 0.95;
/// The same samples give the same interval.
const SEED: u64 = 1;

/// A ratio of medians with its interval of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Ratio {
    /// The ratio of the two medians.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Returns the interval of 95 % of the median; None of no samples.
pub fn median_interval(samples: &[f64]) -> Option<(f64, f64)> {
    if samples.is_empty() {
        return None;
    }
    let mut random = Random::new(SEED);
    let medians = (0..RESAMPLES).map(|_| resampled_median(samples, &mut random));
    Some(ends(&medians.collect::<Vec<f64>>()))
}

/// Returns the ratio of two medians, and its interval of 95 %; None if either has no samples or that of `b` is 0.
pub fn ratio_of_medians(a: &[f64], b: &[f64]) -> Option<Ratio> {
    let (of_a, of_b) = (super::median(a)?, super::median(b)?);
    if of_b == 0.0 {
        return None;
    }
    let mut random = Random::new(SEED);
    let ratios =
        (0..RESAMPLES).map(|_| resampled_median(a, &mut random) / resampled_median(b, &mut random));
    let (low, high) = ends(&ratios.collect::<Vec<f64>>());
    Some(Ratio {
        value: of_a / of_b,
        low,
        high,
    })
}

fn resampled_median(samples: &[f64], random: &mut Random) -> f64 {
    let drawn: Vec<f64> = samples
        .iter()
        .map(|_| samples[random.index(samples.len())])
        .collect();
    quantile(&sorted(&drawn), 0.5)
}

fn ends(values: &[f64]) -> (f64, f64) {
    let sorted = sorted(values);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    (quantile(&sorted, tail), quantile(&sorted, 1.0 - tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::median;

    #[test]
    fn equal_samples_leave_no_doubt() {
        assert_eq!(median_interval(&[2.0; 5]), Some((2.0, 2.0)));
        let ratio = ratio_of_medians(&[3.0; 4], &[2.0; 6]).unwrap();
        assert_eq!((ratio.value, ratio.low, ratio.high), (1.5, 1.5, 1.5));
    }

    #[test]
    fn the_interval_of_three_is_their_range() {
        // The median of three resampled of {1, 2, 3} is 1 in 7 of 27 cases: more than the tail of 2.5 %.
        assert_eq!(median_interval(&[2.0, 1.0, 3.0]), Some((1.0, 3.0)));
    }

    #[test]
    fn the_interval_holds_the_true_median_about_as_often_as_it_says() {
        let mut random = Random::new(5);
        let mut held = 0;
        for _ in 0..200 {
            let samples: Vec<f64> = (0..25).map(|_| random.unit()).collect();
            let (low, high) = median_interval(&samples).unwrap();
            held += i32::from(low <= 0.5 && 0.5 <= high);
        }
        // 95 % of 200, less five standard deviations.
        assert!(held >= 174, "{held} of 200");
    }

    #[test]
    fn nothing_has_no_interval() {
        assert_eq!(median_interval(&[]), None);
        assert_eq!(ratio_of_medians(&[], &[1.0]), None);
        assert_eq!(ratio_of_medians(&[1.0], &[0.0]), None);
        assert_eq!(median(&[]), None);
    }
}
