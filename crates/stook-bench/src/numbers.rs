//! Figures in tables of text. Figures with units come from [`Unit`], which pages use, too.

use crate::figure::Unit;
use crate::figure::grouped as grouped_whole;

/// Returns a time in three digits: `850 ns`, `1.25 ms`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn duration(nanoseconds: u64) -> String {
    let shown = Unit::Seconds.show(nanoseconds as f64 / 1e9);
    // On a terminal a blank is a blank, and Greek letters are not everywhere.
    shown.replace('\u{a0}', " ").replace('µ', "u")
}

/// Returns seconds: milliseconds as long as they count.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        value if value < 9.9995 => format!("{value:.3}"),
        value if value < 99.995 => format!("{value:.2}"),
        value => format!("{value:.1}"),
    }
}

/// Returns a rounded number with its thousands set apart.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive"
)]
pub(crate) fn grouped(number: f64) -> String {
    grouped_whole(number.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let times = [850, 1_250, 999_700, 12_345_678, 123_456_000_000].map(duration);
        assert_eq!(times, ["850 ns", "1.25 us", "1.00 ms", "12.3 ms", "123 s"]);
        let texts = [0.01234, 9.9996, 12.345, 6365.04].map(seconds);
        assert_eq!(texts, ["0.012", "10.00", "12.35", "6365.0"]);
        assert_eq!(
            [0.4, 999.6, 1_290_284.0].map(grouped),
            ["0", "1,000", "1,290,284"]
        );
    }
}
