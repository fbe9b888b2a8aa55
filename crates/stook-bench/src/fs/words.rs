//! Figures as text.

/// Returns a time in three digits: `850 ns`, `1.25 ms`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn duration(nanoseconds: u64) -> String {
    let mut value = nanoseconds as f64;
    for unit in ["ns", "us", "ms"] {
        if value < 999.5 {
            return format!("{} {unit}", three_digits(value));
        }
        value /= 1000.0;
    }
    format!("{} s", three_digits(value))
}

/// Returns seconds: milliseconds as long as they count.
pub(super) fn seconds(value: f64) -> String {
    match value {
        value if value < 9.9995 => format!("{value:.3}"),
        value if value < 99.995 => format!("{value:.2}"),
        value => format!("{value:.1}"),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        value if value == value.trunc() || value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Returns a number with its thousands set apart.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive"
)]
pub(super) fn grouped(number: f64) -> String {
    let digits = (number.round() as u64).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let times = [
            0,
            850,
            1_250,
            999_700,
            12_345_678,
            3_000_000_000,
            123_456_000_000,
        ];
        let texts = [
            "0 ns", "850 ns", "1.25 us", "1.00 ms", "12.3 ms", "3 s", "123 s",
        ];
        assert_eq!(times.map(duration), texts);
        assert_eq!(
            [0.01234, 9.9996, 12.345, 6365.04].map(seconds),
            ["0.012", "10.00", "12.35", "6365.0"]
        );
        assert_eq!(
            [0.4, 999.6, 1_290_284.0].map(grouped),
            ["0", "1,000", "1,290,284"]
        );
    }
}
