//! Numbers as people read them: the one place that rounds and groups.

/// Returns a number with its thousands set apart: `1,290,284`.
pub(crate) fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a figure with one decimal: `7,165.3`.
pub(crate) fn decimal(figure: f64) -> String {
    let text = format!("{figure:.1}");
    let (whole, tenths) = text.split_once('.').unwrap_or((&text, "0"));
    let whole = whole.parse::<u128>().unwrap_or(u128::MAX);
    format!("{}.{tenths}", grouped(whole))
}

/// Returns a figure without decimals: `7,165`.
pub(crate) fn rounded(figure: f64) -> String {
    grouped(whole(figure))
}

/// Returns a mean number of bytes with three digits: `7.2 kB`.
pub(crate) fn mean_size(bytes: f64) -> String {
    size(whole(bytes))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, and no figure is negative"
)]
fn whole(figure: f64) -> u64 {
    figure.round() as u64
}

/// Returns a number with its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { many }
    )
}

/// Returns bytes with three digits: `1.4 GB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn size(bytes: impl Into<u128>) -> String {
    const UNITS: [&str; 8] = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB"];
    let mut value = bytes.into() as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Returns how many there are in a second; 0 if no time has passed.
pub(crate) fn rate(number: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { number / seconds } else { 0.0 }
}

/// Returns which part of all something is, from 0 to 1; 0 of nothing.
pub(crate) fn part(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}

/// Returns a share with one decimal: `12.3 %`.
pub(crate) fn percent(share: f64, all: f64) -> String {
    format!("{:.1} %", 100.0 * part(share, all))
}

/// Returns a share in whole per cents; only nothing is 0, and only all is 100.
#[expect(clippy::cast_precision_loss, reason = "whole per cents are shown")]
pub(crate) fn whole_percent(part: u128, all: u128) -> String {
    let percents = part as f64 * 100.0 / all as f64;
    if all == 0 {
        "-".to_owned()
    } else if part > 0 && percents < 0.5 {
        "<1 %".to_owned()
    } else if part < all && percents >= 99.5 {
        ">99 %".to_owned()
    } else {
        format!("{percents:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        for (bytes, text) in [
            (0_u64, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (143_212_345, "143 MB"),
            (9_245_000_000, "9.2 GB"),
            (999_999, "1.0 MB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(size(u128::from(u64::MAX) * 1000), "18.4 ZB");
        assert_eq!(grouped(1_290_284_u64), "1,290,284");
        assert_eq!(grouped(999_u64), "999");
    }

    #[test]
    fn figures_are_rounded_once() {
        assert_eq!(decimal(7165.25), "7,165.2");
        assert_eq!(decimal(0.0), "0.0");
        assert_eq!(decimal(999.96), "1,000.0");
        assert_eq!(rounded(1023.5), "1,024");
        assert_eq!(mean_size(1023.5), "1.0 kB");
        assert_eq!((rate(3.0, 0.0), rate(3.0, 2.0)), (0.0, 1.5));
        assert_eq!(percent(1.0, 8.0), "12.5 %");
        assert_eq!(percent(0.0, 0.0), "0.0 %");
    }

    #[test]
    fn only_nothing_is_0_and_only_all_is_100_per_cent() {
        for (part, text) in [
            (0, "0 %"),
            (1, "<1 %"),
            (4, "<1 %"),
            (6, "1 %"),
            (333, "33 %"),
            (994, "99 %"),
            (999, ">99 %"),
            (1000, "100 %"),
        ] {
            assert_eq!(whole_percent(part, 1000), text);
        }
        assert_eq!(whole_percent(0, 0), "-");
    }
}
