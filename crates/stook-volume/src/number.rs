//! Numbers as tar files spell them: octal and base-256 fields, decimal records, and times both
//! exact and as Python prints a float.

use stook_sys::Timestamp;

/// Most characters of a text that is read as a time.
const TIME_TEXT_MAX: usize = 400;

const NANOSECONDS: u32 = 1_000_000_000;

/// Returns true if the number fits a field of `width` bytes as octal digits and a NUL.
pub(crate) fn fits_octal(value: u64, width: u32) -> bool {
    value < 1 << (3 * (width - 1))
}

/// Fills the field with octal digits and a NUL; a number that does not fit becomes 0.
pub(crate) fn put_octal(field: &mut [u8], value: u64) {
    let Some((end, digits)) = field.split_last_mut() else {
        return;
    };
    *end = 0;
    let mut rest = value;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest & 7).to_le_bytes()[0];
        rest >>= 3;
    }
    if rest != 0 {
        digits.fill(b'0');
    }
}

/// Reads an octal field, or a base-256 one as GNU tar writes it. An empty field is 0.
pub(crate) fn field(bytes: &[u8]) -> Option<i64> {
    match bytes.first() {
        Some(first) if first & 0x80 != 0 => base_256(bytes),
        _ => octal(bytes),
    }
}

fn base_256(bytes: &[u8]) -> Option<i64> {
    let (first, rest) = bytes.split_first()?;
    // The top bit marks the encoding, the next one is the sign.
    let mut value = i64::from(first & 0x7f);
    if first & 0x40 != 0 {
        value -= 0x80;
    }
    for byte in rest {
        value = value.checked_mul(256)?.checked_add(i64::from(*byte))?;
    }
    Some(value)
}

fn octal(bytes: &[u8]) -> Option<i64> {
    let bytes = bytes
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let mut value = 0_i64;
    for byte in bytes {
        if !(b'0'..=b'7').contains(byte) {
            return None;
        }
        value = value.checked_mul(8)?.checked_add(i64::from(byte - b'0'))?;
    }
    Some(value)
}

/// Reads a decimal number: digits only.
pub(crate) fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for byte in bytes {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
    }
    Some(value)
}

/// Appends the decimal digits of a number.
pub(crate) fn put_decimal(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = value;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10).to_le_bytes()[0];
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Returns how Python prints a float.
///
/// # Source
/// CPython `float_repr_style`: shortest digits that read back; an exponent from 1e16 up and below
/// 1e-4, as in Rust, but with a sign and two digits.
pub(crate) fn python_float(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
    }
}

/// Returns the exact time in decimal: as many digits after the point as needed, at least one.
pub(crate) fn exact_time(time: Timestamp) -> String {
    let nanoseconds = time.nanoseconds.min(NANOSECONDS - 1);
    let (sign, seconds, fraction) = match (time.seconds < 0, nanoseconds) {
        (false, fraction) => ("", time.seconds.unsigned_abs(), fraction),
        (true, 0) => ("-", time.seconds.unsigned_abs(), 0),
        (true, fraction) => ("-", time.seconds.unsigned_abs() - 1, NANOSECONDS - fraction),
    };
    let mut text = format!("{sign}{seconds}.{fraction:09}");
    let cut = text.trim_end_matches('0').len();
    let shortest = text.len() - 8;
    text.truncate(cut.max(shortest));
    text
}

/// Reads a decimal time, with or without fraction and exponent, rounded to the nanosecond.
pub(crate) fn time(text: &[u8]) -> Option<Timestamp> {
    if text.len() > TIME_TEXT_MAX {
        return None;
    }
    let (negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let magnitude = nanoseconds(text)?;
    let total = if negative { -magnitude } else { magnitude };
    Some(Timestamp {
        seconds: i64::try_from(total.div_euclid(i128::from(NANOSECONDS))).ok()?,
        nanoseconds: u32::try_from(total.rem_euclid(i128::from(NANOSECONDS))).ok()?,
    })
}

/// Reads an unsigned decimal as nanoseconds.
fn nanoseconds(text: &[u8]) -> Option<i128> {
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| digits.get(at).map_or(0, |digit| digit - b'0');
    // How many of the digits are whole nanoseconds; zeros are thought behind the last one.
    let Ok(kept) = usize::try_from(i64::try_from(whole.len()).ok()? + exponent + 9) else {
        return Some(0);
    };
    let mut value = 0_i128;
    for at in 0..kept {
        value = value.checked_mul(10)?.checked_add(i128::from(digit(at)))?;
    }
    Some(value + i128::from(digit(kept) >= 5))
}

/// Reads the exponent of a decimal, which must be of a size that can matter.
fn exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text.split_first()? {
        (b'-', rest) => (-1, rest),
        (b'+', rest) => (1, rest),
        _ => (1, text),
    };
    let magnitude = i64::try_from(decimal(digits)?).ok()?;
    (magnitude <= 400).then_some(sign * magnitude)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64, nanoseconds: u32) -> Timestamp {
        Timestamp {
            seconds,
            nanoseconds,
        }
    }

    #[test]
    fn octal_fields() {
        let mut field = [0; 8];
        put_octal(&mut field, 0o644);
        assert_eq!(&field, b"0000644\0");
        assert_eq!(super::field(&field), Some(0o644));
        put_octal(&mut field, 1 << 21);
        assert_eq!(&field, b"0000000\0", "out of range is zero");
        assert!(fits_octal((1 << 21) - 1, 8) && !fits_octal(1 << 21, 8));
        for (text, expected) in [
            (&b"   644 \0"[..], Some(0o644)),
            (b"", Some(0)),
            (b"\0\0\0", Some(0)),
            (b"        ", Some(0)),
            (b"648\0", None),
            (b"-1\0", None),
            (b"777777777777", Some(0o777_777_777_777)),
        ] {
            assert_eq!(super::field(text), expected, "{text:?}");
        }
    }

    #[test]
    fn base_256_fields() {
        assert_eq!(field(b"\x80\0\0\0\0\0\0\0\0\0\x01\x02"), Some(258));
        assert_eq!(field(&[0xff; 12]), Some(-1));
        assert_eq!(
            field(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"),
            Some(-256)
        );
        assert_eq!(
            field(b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            None,
            "overflow"
        );
    }

    #[test]
    fn floats_as_python_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (1_577_934_245.0, "1577934245.0"),
            (-1.75, "-1.75"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (5e-5, "5e-05"),
            (0.0001, "0.0001"),
            (1.25e-9, "1.25e-09"),
        ] {
            assert_eq!(python_float(value), text);
        }
    }

    #[test]
    fn exact_times() {
        for (time, text) in [
            (at(0, 0), "0.0"),
            (at(-2, 250_000_000), "-1.75"),
            (at(-1, 999_999_999), "-0.000000001"),
            (at(-1, 0), "-1.0"),
            (at(1_700_000_000, 123_456_789), "1700000000.123456789"),
            (at(1_700_000_000, 100), "1700000000.0000001"),
            (at(i64::MIN, 0), "-9223372036854775808.0"),
            (at(i64::MIN, 1), "-9223372036854775807.999999999"),
        ] {
            assert_eq!(exact_time(time), text);
            assert_eq!(super::time(text.as_bytes()), Some(time), "{text}");
        }
    }

    #[test]
    fn times_of_other_writers() {
        for (text, expected) in [
            ("1700000000", Some(at(1_700_000_000, 0))),
            ("1e+16", Some(at(10_000_000_000_000_000, 0))),
            ("5e-05", Some(at(0, 50_000))),
            (".5", Some(at(0, 500_000_000))),
            ("1.", Some(at(1, 0))),
            ("+1.0000000005", Some(at(1, 1))),
            ("6.999999999999999e-09", Some(at(0, 7))),
            ("1e-400", Some(at(0, 0))),
            ("1e19", None),
            ("1e401", None),
            ("", None),
            (".", None),
            ("-", None),
            ("1.2.3", None),
            ("1e", None),
            ("nan", None),
            ("inf", None),
        ] {
            assert_eq!(time(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn exact_times_come_back(seconds: i64, nanoseconds in 0_u32..1_000_000_000) {
            prop_assert_eq!(time(exact_time(at(seconds, nanoseconds)).as_bytes()), Some(at(seconds, nanoseconds)));
        }

        #[test]
        fn float_times_keep_their_float(seconds in -100_000_000_000_i64..100_000_000_000, nanoseconds in 0_u32..1_000_000_000) {
            let float = at(seconds, nanoseconds).as_float();
            let read = time(python_float(float).as_bytes()).unwrap();
            prop_assert_eq!(read.as_float(), float);
        }

        #[test]
        fn any_text_is_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = (time(&text), decimal(&text), field(&text));
        }
    }
}
