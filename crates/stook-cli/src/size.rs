//! Sizes as people write them: the one parser of all options that take one.
//!
//! `K`, `M`, `G`, `T` and `P` are binary, as in `du`, `split` and `tar`; so are `KiB`, `MiB` and so on. `KB`, `MB` are
//! decimal. Upper and lower case are the same.

/// What a number without a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    /// Bytes.
    Bytes,
    /// Refused: the maximum size of a volume is in GiB for zstash, and in bytes for everything else.
    Refused,
}

/// Returns the bytes that a text like `4GiB`, `4G` or `500MB` means.
///
/// # Errors
/// A sentence that names what is wrong.
pub(crate) fn parse(text: &str, bare: Bare) -> Result<u64, String> {
    match parse_or_none(text, bare)? {
        0 => Err("it must be at least one byte".to_owned()),
        bytes => Ok(bytes),
    }
}

/// As [`parse`], and 0 is a size, too.
pub(crate) fn parse_or_none(text: &str, bare: Bare) -> Result<u64, String> {
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let unit = unit.trim();
    if !number.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err("it is not a size such as 4GiB, 4G or 500MB".to_owned());
    }
    if unit.is_empty() && bare == Bare::Refused {
        return Err(format!(
            "it has no unit; `{number}B` is bytes, `{number}GiB` is what it means to zstash"
        ));
    }
    let factor = factor(unit).ok_or_else(|| {
        format!(
            "`{unit}` is not a unit; use K, M, G, T, P (or KiB, MiB and so on) for powers of 1024, KB, MB, GB, TB, PB for powers of 1000"
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
    let unit = unit.to_ascii_lowercase();
    if matches!(&*unit, "" | "b") {
        return Some(1);
    }
    let (letter, rest) = unit.split_at_checked(1)?;
    let power = "kmgtp".find(letter)?;
    let power = u32::try_from(power).ok()? + 1;
    match rest {
        "" | "ib" => Some(1024_u64.pow(power)),
        "b" => Some(1000_u64.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(text: &str) -> Result<u64, String> {
        parse(text, Bare::Bytes)
    }

    #[test]
    fn letters_alone_are_binary() {
        for (power, letter) in (1..).zip(["K", "M", "G", "T", "P"]) {
            let (binary, decimal) = (1024_u64.pow(power), 1000_u64.pow(power));
            let lower = letter.to_lowercase();
            for text in [
                format!("3{letter}"),
                format!("3{letter}iB"),
                format!("3{lower}"),
            ] {
                assert_eq!(is(&text), Ok(3 * binary), "{text}");
            }
            for text in [
                format!("3{letter}B"),
                format!("3{lower}B"),
                format!("3 {lower}b"),
            ] {
                assert_eq!(is(&text), Ok(3 * decimal), "{text}");
            }
        }
        for wrong in ["3E", "3Ki", "3KiBs", "3KK", "3é"] {
            assert!(is(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_where_it_has_two_readings() {
        assert_eq!(is("256"), Ok(256));
        assert_eq!(
            parse("256", Bare::Refused).unwrap_err(),
            "it has no unit; `256B` is bytes, `256GiB` is what it means to zstash"
        );
        assert_eq!(parse("256B", Bare::Refused), Ok(256));
        assert_eq!(parse("256G", Bare::Refused), Ok(256 << 30));
    }

    #[test]
    fn sizes_are_exact() {
        assert_eq!(is("4GiB"), Ok(4 << 30));
        assert_eq!(is("500MB"), Ok(500_000_000));
        assert_eq!(is("1.5 kib"), Ok(1536));
        assert_eq!(is("20480"), Ok(20_480));
        // As floats, these lose a byte.
        assert_eq!(is("1.001kB"), Ok(1001));
        assert_eq!(is("8388608.000000001PB"), Err("it is too large".to_owned()));
        assert_eq!(is("9007.199254740993PB"), Ok(9_007_199_254_740_993_000));
        assert_eq!(is("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(is("18446744073709551615.9"), Ok(u64::MAX));
        assert_eq!(is("0.99999999999999999999999999PiB"), Ok((1 << 50) - 1));
        assert_eq!(is(".5kB"), Ok(500));
        assert_eq!(is("1.kB"), Ok(1000));
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
            assert!(is(wrong).is_err(), "{wrong}");
        }
        for text in ["", ".", "-1", "GiB", " 5"] {
            let why = is(text).unwrap_err();
            assert_eq!(why, "it is not a size such as 4GiB, 4G or 500MB", "{text}");
        }
        assert_eq!(is("1.2.3MB").unwrap_err(), "`1.2.3` is not a number");
        assert_eq!(parse_or_none("0", Bare::Bytes), Ok(0));
        assert_eq!(parse_or_none("0 kB", Bare::Bytes), Ok(0));
        assert!(parse_or_none("", Bare::Bytes).is_err());
    }
}
