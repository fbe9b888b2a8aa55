//! Sizes as people write and read them.

/// Returns the bytes that a text like `4GiB`, `500MB` or `1024` means.
///
/// # Errors
/// A sentence that names what is wrong.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    match parse_or_none(text)? {
        0 => Err("it must be more than nothing".to_owned()),
        bytes => Ok(bytes),
    }
}

/// As [`parse`], and nothing is a size, too.
pub(crate) fn parse_or_none(text: &str) -> Result<u64, String> {
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    if !number.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err("it is not a size such as 4GiB, 1.5MB or 1024".to_owned());
    }
    let factor = factor(unit.trim()).ok_or_else(|| {
        format!(
            "`{}` is not a unit; use KiB, MiB, GiB, TiB, or kB, MB, GB, TB",
            unit.trim()
        )
    })?;
    bytes(number, factor)
}

/// Returns so many units, exactly; what is left of a byte is cut off.
fn bytes(number: &str, factor: u64) -> Result<u64, String> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if decimals.contains('.') {
        return Err(format!("`{number}` is not a number"));
    }
    // All that follow are less than a byte of the largest unit.
    let decimals = &decimals[..decimals.len().min(20)];
    let digits = |text: &str| format!("0{text}").parse::<u128>().ok();
    let unit_parts = 10_u128.pow(u32::try_from(decimals.len()).unwrap_or(0));
    let rest = digits(decimals).map(|part| u128::from(factor) * part / unit_parts);
    let units = digits(whole).and_then(|whole| whole.checked_mul(factor.into()));
    let bytes = units
        .zip(rest)
        .map(|(units, rest)| units.saturating_add(rest));
    bytes
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(|| "it is too large".to_owned())
}

fn factor(unit: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 12] = [
        ("", 1),
        ("b", 1),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
        ("pib", 1 << 50),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("pb", 1_000_000_000_000_000),
    ];
    let unit = unit.to_ascii_lowercase();
    UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
}

/// Returns a figure such as `1.4 GB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn show(bytes: impl Into<u128>) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact() {
        assert_eq!(parse("4GiB"), Ok(4 << 30));
        assert_eq!(parse("500MB"), Ok(500_000_000));
        assert_eq!(parse("1.5 kib"), Ok(1536));
        assert_eq!(parse("20480"), Ok(20_480));
        // As floats, these lose a byte.
        assert_eq!(parse("1.001kB"), Ok(1001));
        assert_eq!(
            parse("8388608.000000001PB"),
            Err("it is too large".to_owned())
        );
        assert_eq!(parse("9007.199254740993PB"), Ok(9_007_199_254_740_993_000));
        assert_eq!(parse("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse("18446744073709551615.9"), Ok(u64::MAX));
        assert_eq!(parse("0.99999999999999999999999999PiB"), Ok((1 << 50) - 1));
        assert_eq!(parse(".5kB"), Ok(500));
        assert_eq!(parse("1.kB"), Ok(1000));
        for wrong in [
            "10XB",
            "GiB",
            "",
            "1e9",
            "-1",
            "0",
            "99999999PB",
            "1.2.3MB",
            ".",
            ".GB",
            "18446744073709551616",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let why = |text: &str| parse(text).unwrap_err();
        for text in ["", ".", "-1", "GiB", " 5"] {
            assert_eq!(
                why(text),
                "it is not a size such as 4GiB, 1.5MB or 1024",
                "{text}"
            );
        }
        assert_eq!(why("1.2.3MB"), "`1.2.3` is not a number");
        assert_eq!(parse_or_none("0"), Ok(0));
        assert_eq!(parse_or_none("0 kB"), Ok(0));
        assert!(parse_or_none("").is_err());
    }

    #[test]
    fn figures_have_three_digits() {
        for (bytes, text) in [
            (0_u64, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (143_212_345, "143 MB"),
            (9_245_000_000, "9.2 GB"),
            (999_999, "1.0 MB"),
        ] {
            assert_eq!(show(bytes), text);
        }
        assert_eq!(show(u128::from(u64::MAX) * 1000), "18.4 ZB");
        assert_eq!(grouped(1_290_284_u64), "1,290,284");
        assert_eq!(grouped(999_u64), "999");
    }
}
