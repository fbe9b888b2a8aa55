//! Moments as people write them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use stook_sys::Timestamp;

/// Returns the time that a text like `2026-11-21`, `2026-11-21T18:30` or `2026-11-21T18:30+01:00` means; without an
/// offset it is UTC.
pub(crate) fn time(text: &str) -> Option<jiff::Timestamp> {
    let civil = || {
        let civil: DateTime = text.parse().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    text.parse().ok().or_else(civil)
}

/// Returns the time that a text means, or the time so long before `now` as it says.
///
/// # Errors
/// A sentence that names what is wrong.
pub(crate) fn time_or_age(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Some(time) = time(text) {
        return Ok(stamp(time));
    }
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let unit = unit.trim();
    if number.is_empty() || !unit.chars().all(char::is_alphabetic) {
        return Err(
            "it is neither a time such as 2026-11-21T18:30, nor an age such as 2d, nor file:PATH"
                .to_owned(),
        );
    }
    let seconds = seconds(unit)
        .ok_or_else(|| format!("`{unit}` is not a unit of time; use s, min, h, d, w"))?;
    let age = number.parse::<i64>().ok();
    let before = age
        .and_then(|age| age.checked_mul(seconds))
        .and_then(|age| now.seconds.checked_sub(age))
        .ok_or("it is too long ago")?;
    Ok(Timestamp {
        seconds: before,
        ..now
    })
}

fn seconds(unit: &str) -> Option<i64> {
    Some(match unit {
        "s" => 1,
        "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    })
}

fn stamp(time: jiff::Timestamp) -> Timestamp {
    let nanoseconds = time.subsec_nanosecond();
    // Before 1970 the fraction is negative; a stamp counts forwards from the whole second before.
    let borrow = i64::from(nanoseconds < 0);
    Timestamp {
        seconds: time.as_second() - borrow,
        nanoseconds: nanoseconds.rem_euclid(1_000_000_000).unsigned_abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp {
        seconds: 1_800_000_000,
        nanoseconds: 5,
    };

    fn is(text: &str) -> (i64, u32) {
        let time = time_or_age(text, NOW).unwrap();
        (time.seconds, time.nanoseconds)
    }

    #[test]
    fn times_are_exact_on_both_sides_of_1970() {
        assert_eq!(is("1970-01-02"), (86_400, 0));
        assert_eq!(is("1970-01-01T00:00:01.123456789"), (1, 123_456_789));
        assert_eq!(is("1970-01-01 01:00"), (3600, 0));
        assert_eq!(is("1970-01-01T01:00+01:00"), (0, 0));
        assert_eq!(is("1969-12-31T23:59:58.25"), (-2, 250_000_000));
        assert_eq!(is("1969-12-31T23:59:59"), (-1, 0));
    }

    #[test]
    fn ages_count_back_from_now() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("30min", 1800),
            ("12h", 43_200),
            ("2d", 172_800),
            ("2 d", 172_800),
            ("1w", 604_800),
        ] {
            assert_eq!(is(text), (NOW.seconds - seconds, 5), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_explained() {
        let why = |text: &str| time_or_age(text, NOW).unwrap_err();
        let neither =
            "it is neither a time such as 2026-11-21T18:30, nor an age such as 2d, nor file:PATH";
        for text in ["", "yesterday", "-2d", "d", "2026-13-01", "1.5h", "+1d"] {
            assert_eq!(why(text), neither, "{text}");
        }
        assert_eq!(why("5m"), "`m` is not a unit of time; use s, min, h, d, w");
        assert_eq!(why("7"), "`` is not a unit of time; use s, min, h, d, w");
        assert_eq!(why("99999999999999999w"), "it is too long ago");
        assert_eq!(why("99999999999999999999s"), "it is too long ago");
    }
}
