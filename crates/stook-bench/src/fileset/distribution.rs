//! Distributions of sizes: from a share of the files to the size that so many of them do not exceed.
//!
//! Only arithmetic that IEEE 754 fixes to the bit, and `libm`, which is the same code on every platform: the functions
//! of the C library differ in their last bits, and a file set must not.

/// How sizes are distributed, before they are cut to their limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Log-normal: half of the files are below the median; sigma is the standard deviation of the logarithms.
    LogNormal {
        /// The median, in bytes.
        median: f64,
        /// The spread.
        sigma: f64,
    },
    /// All sizes between the limits are equally likely.
    Uniform,
    /// All files have this size.
    Fixed {
        /// The size, in bytes.
        bytes: u64,
    },
}

/// Sizes of files: a distribution, and the limits that cut it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// The distribution.
    pub distribution: Distribution,
    /// The least bytes of a file.
    pub min: u64,
    /// The most bytes of a file.
    pub max: u64,
}

impl Distribution {
    /// Returns the log-normal distribution that has this mean before it is cut.
    pub fn with_mean(mean: f64, sigma: f64) -> Self {
        Self::LogNormal {
            median: mean / libm::exp(sigma * sigma / 2.0),
            sigma,
        }
    }
}

impl Sizes {
    /// Returns the size that the share `share` of all files, between 0 and 1, does not exceed.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a float cast saturates, and the limits hold in any case"
    )]
    pub(super) fn quantile(&self, share: f64) -> u64 {
        let size = match self.distribution {
            Distribution::LogNormal { median, sigma } => {
                (median * libm::exp(sigma * normal_quantile(share))) as u64
            }
            Distribution::Uniform => {
                let sizes = (self.max - self.min) as f64 + 1.0;
                self.min.saturating_add((share * sizes) as u64)
            }
            Distribution::Fixed { bytes } => bytes,
        };
        size.clamp(self.min, self.max)
    }
}

/// Returns the value that a normally distributed number does not exceed with this probability, to seven digits.
///
/// # Source
/// Wichura: Algorithm AS 241, the percentage points of the normal distribution, Applied Statistics 37 (1988), PPND7.
fn normal_quantile(probability: f64) -> f64 {
    const CENTRE: ([f64; 4], [f64; 4]) = (
        [
            3.387_132_717_9,
            50.434_271_938,
            159.291_132_02,
            59.109_374_72,
        ],
        [1.0, 17.895_169_469, 78.757_757_664, 67.187_563_6],
    );
    const TAIL: ([f64; 4], [f64; 4]) = (
        [
            1.423_437_277_7,
            2.756_815_39,
            1.306_728_481_6,
            0.170_238_211_03,
        ],
        [1.0, 0.737_001_642_5, 0.120_211_329_75, 0.0],
    );
    const FAR_TAIL: ([f64; 4], [f64; 4]) = (
        [
            6.657_905_115,
            3.081_226_386,
            0.428_682_943_37,
            0.017_337_203_997,
        ],
        [1.0, 0.241_978_942_25, 0.012_258_202_635, 0.0],
    );
    let from_centre = probability - 0.5;
    if from_centre.abs() <= 0.425 {
        return from_centre * ratio(CENTRE, 0.180_625 - from_centre * from_centre);
    }
    let in_tail = probability.min(1.0 - probability);
    let distance = libm::sqrt(-libm::log(in_tail));
    let value = if distance <= 5.0 {
        ratio(TAIL, distance - 1.6)
    } else {
        ratio(FAR_TAIL, distance - 5.0)
    };
    value.copysign(from_centre)
}

/// The ratio of two polynomials, each from its lowest coefficient upwards.
fn ratio((above, below): ([f64; 4], [f64; 4]), at: f64) -> f64 {
    let polynomial = |of: [f64; 4]| ((of[3] * at + of[2]) * at + of[1]) * at + of[0];
    polynomial(above) / polynomial(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution_are_those_of_the_tables() {
        let known = [
            (0.5, 0.0),
            (0.841_344_746_068_543, 1.0),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813),
            (0.999_999_999_999, 7.034_483_779_570_5),
        ];
        for (probability, value) in known {
            for (probability, value) in [(probability, value), (1.0 - probability, -value)] {
                let found = normal_quantile(probability);
                assert!((found - value).abs() < 1e-5, "{probability}: {found}");
            }
        }
    }

    #[test]
    fn distributions_keep_to_their_limits() {
        let of = |distribution| Sizes {
            distribution,
            min: 10,
            max: 19,
        };
        let uniform = of(Distribution::Uniform);
        assert_eq!(
            [0.0, 0.05, 0.5, 1.0].map(|share| uniform.quantile(share)),
            [10, 10, 15, 19]
        );
        let sizes = of(Distribution::LogNormal {
            median: 15.0,
            sigma: 3.0,
        });
        assert_eq!(
            [0.001, 0.5, 0.999].map(|share| sizes.quantile(share)),
            [10, 15, 19]
        );
        assert_eq!(of(Distribution::Fixed { bytes: 12 }).quantile(0.3), 12);
        let all = Sizes {
            distribution: Distribution::Uniform,
            min: 0,
            max: u64::MAX,
        };
        assert_eq!(all.quantile(1.0), u64::MAX);
    }

    #[test]
    fn a_distribution_with_a_mean_has_the_median_that_belongs_to_it() {
        let Distribution::LogNormal { median, sigma } = Distribution::with_mean(1000.0, 2.0) else {
            panic!("it is log-normal");
        };
        assert!(
            (median - 135.335_283).abs() < 1e-5 && sigma == 2.0,
            "{median}"
        );
    }
}
