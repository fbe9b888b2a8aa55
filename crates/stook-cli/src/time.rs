//! Times: the one parser of all options that take one, and the one form in which `--json` prints them.
//!
//! What is typed without an offset is local time; what is printed is UTC.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use stook_sys::Timestamp;

/// What a date without a time of day means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Day {
    /// Its first moment: what is newer is of that day, or later.
    Start,
    /// Its last moment: the state as of a day has all that happened on it.
    End,
}

/// Why a text is no time.
#[derive(Debug)]
pub(crate) enum NotATime {
    /// It names a time zone without an offset.
    NoOffset,
    /// It has no such form, or there is no such day or time of day.
    Unreadable(jiff::Error),
    /// The clocks of this time zone passed over it when they were set forward.
    Skipped,
}

impl From<jiff::Error> for NotATime {
    fn from(why: jiff::Error) -> Self {
        Self::Unreadable(why)
    }
}

impl NotATime {
    /// Returns what to say of a value of an option that takes a time in this form.
    pub(crate) fn explain(&self, value: &str, forms: &str) -> String {
        match self {
            Self::NoOffset => format!("it is neither {forms}"),
            // Of anything else, what no date looks like is not worth telling.
            Self::Unreadable(why) if looks_like_a_date(value) => format!("it is no time: {why}"),
            Self::Unreadable(_) => format!("it is neither {forms}"),
            Self::Skipped => {
                "there is no such time here: the clocks were set forward over it".to_owned()
            }
        }
    }
}

/// Returns true for a text that begins as `2026-11-21` does, whatever the numbers.
fn looks_like_a_date(text: &str) -> bool {
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = text.splitn(3, '-');
    let (year, month) = (parts.next(), parts.next());
    let has_length = |part: Option<&str>, length| {
        part.is_some_and(|part| part.len() == length && is_digits(part))
    };
    has_length(year, 4) && has_length(month, 2) && parts.next().is_some()
}

/// Returns the time that a text like `2026-11-21`, `2026-11-21T18:30` or `2026-11-21T18:30+01:00` means; without an
/// offset it is one of this time zone. A local time that comes twice, as the clocks are set back, is the first for
/// [`Day::Start`], and the second for [`Day::End`].
///
/// # Errors
/// If it is no time, or one that this time zone does not have.
pub(crate) fn parse(text: &str, day: Day, zone: &TimeZone) -> Result<jiff::Timestamp, NotATime> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    // The parser passes over the name of a zone, so a time there would be taken for one here.
    if text.contains('[') {
        return Err(NotATime::NoOffset);
    }
    if text.contains(['T', 't', ' ']) {
        let time: DateTime = text.parse()?;
        return local(time, day, zone);
    }
    let date: Date = text.parse()?;
    let first = |date: Date| date.to_zoned(zone.clone()).map(|time| time.timestamp());
    let time = match day {
        Day::Start => first(date),
        Day::End => date
            .tomorrow()
            .and_then(first)
            .and_then(|next| jiff::Timestamp::from_nanosecond(next.as_nanosecond() - 1)),
    };
    Ok(time?)
}

fn local(time: DateTime, day: Day, zone: &TimeZone) -> Result<jiff::Timestamp, NotATime> {
    let found = zone.to_ambiguous_timestamp(time);
    if matches!(found.offset(), AmbiguousOffset::Gap { .. }) {
        return Err(NotATime::Skipped);
    }
    let time = match day {
        Day::Start => found.earlier(),
        Day::End => found.later(),
    };
    Ok(time?)
}

/// Returns a time as RFC 3339 in UTC, with as many decimals as it needs. One outside of the years -9999 to 9999, which
/// that cannot write, is `@` and the seconds since 1970.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let nanoseconds = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
    jiff::Timestamp::from_nanosecond(nanoseconds).map_or_else(
        |_| format!("@{}", crate::format::time_text(time)),
        |time| time.to_string(),
    )
}

/// Returns the time that a text means, or the time so long before `now` as it says.
///
/// # Errors
/// A sentence that names what is wrong.
pub(crate) fn time_or_age(
    text: &str,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Timestamp, String> {
    let since_1970 = text.strip_prefix('@').and_then(since_1970);
    if let Some(stamp) = since_1970 {
        return Ok(stamp);
    }
    let forms =
        "a time such as 2026-11-21T18:30 or @1795285800, nor an age such as 2d, nor file:PATH";
    let why = match parse(text, Day::Start, zone) {
        Ok(time) => return Ok(stamp(time)),
        Err(skipped @ NotATime::Skipped) => return Err(skipped.explain(text, forms)),
        Err(why) => why,
    };
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let unit = unit.trim();
    if number.is_empty() || !unit.chars().all(char::is_alphabetic) {
        return Err(why.explain(text, forms));
    }
    if unit.is_empty() {
        return Err(format!(
            "it has no unit; use s, min, h, d, w, or @{number} for seconds since 1970"
        ));
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

/// Returns the time that `{mtime}` of a format is printed as: seconds, with up to nine decimals.
fn since_1970(text: &str) -> Option<Timestamp> {
    let (is_before, number) = match text.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, text),
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 9 {
        return None;
    }
    let seconds: i64 = whole.parse().ok()?;
    let nanoseconds: u32 = format!("{decimals:0<9}").parse().ok()?;
    // A stamp counts forwards from the whole second before.
    Some(match (is_before, nanoseconds) {
        (false, _) => Timestamp {
            seconds,
            nanoseconds,
        },
        (true, 0) => Timestamp {
            seconds: -seconds,
            nanoseconds,
        },
        (true, _) => Timestamp {
            seconds: -seconds - 1,
            nanoseconds: 1_000_000_000 - nanoseconds,
        },
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
        let time = time_or_age(text, NOW, &TimeZone::UTC).unwrap();
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
    fn what_is_printed_as_mtime_is_a_time() {
        for (seconds, nanoseconds) in [
            (1_600_000_000, 123_456_789),
            (0, 7),
            (-1, 0),
            (-1, 750_000_000),
            (-2, 250_000_000),
            (i64::MAX, 999_999_999),
        ] {
            let printed = crate::format::time_text(Timestamp {
                seconds,
                nanoseconds,
            });
            assert_eq!(is(&format!("@{printed}")), (seconds, nanoseconds));
        }
        assert_eq!(is("@7"), (7, 0));
        assert_eq!(is("@7.5"), (7, 500_000_000));
        assert_eq!(is("@-7.5"), (-8, 500_000_000));
        for wrong in [
            "@",
            "@-",
            "@7.",
            "@.5",
            "@+7",
            "@7.1234567890",
            "@1e9",
            "@9223372036854775808",
        ] {
            assert!(time_or_age(wrong, NOW, &TimeZone::UTC).is_err(), "{wrong}");
        }
    }

    /// One hour ahead of UTC, two in summer.
    fn central_europe() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn without_an_offset_it_is_local_time() {
        let zone = central_europe();
        for (text, day, expected) in [
            ("2026-11-21T18:30", Day::End, "2026-11-21T17:30:00Z"),
            ("2026-07-21 18:30", Day::Start, "2026-07-21T16:30:00Z"),
            ("2026-11-21T18:30Z", Day::End, "2026-11-21T18:30:00Z"),
            ("2026-11-21T18:30-05:00", Day::End, "2026-11-21T23:30:00Z"),
            ("2026-11-21", Day::Start, "2026-11-20T23:00:00Z"),
            ("2026-11-21", Day::End, "2026-11-21T22:59:59.999999999Z"),
            // The days on which the clocks change have 23 and 25 hours.
            ("2026-03-29", Day::Start, "2026-03-28T23:00:00Z"),
            ("2026-03-29", Day::End, "2026-03-29T21:59:59.999999999Z"),
            ("2026-10-25", Day::End, "2026-10-25T22:59:59.999999999Z"),
            // The clocks go from 3 back to 2 on that day.
            ("2026-10-25T02:30", Day::Start, "2026-10-25T00:30:00Z"),
            ("2026-10-25T02:30", Day::End, "2026-10-25T01:30:00Z"),
        ] {
            let time = parse(text, day, &zone).unwrap();
            assert_eq!(time.to_string(), expected, "{text} {day:?}");
        }
        let skipped = parse("2026-03-29T02:30", Day::End, &zone);
        assert!(matches!(skipped, Err(NotATime::Skipped)), "{skipped:?}");
        let refused = time_or_age("2026-03-29 02:30", NOW, &zone).unwrap_err();
        assert!(refused.contains("set forward"), "{refused}");
        for wrong in ["", "2026-13-01", "2026-11-21T25:00", "yesterday", "3"] {
            let parsed = parse(wrong, Day::End, &zone);
            assert!(matches!(parsed, Err(NotATime::Unreadable(_))), "{wrong}");
        }
    }

    #[test]
    fn times_are_printed_in_utc() {
        for (seconds, nanoseconds, expected) in [
            (1_600_000_000, 123_456_789, "2020-09-13T12:26:40.123456789Z"),
            (0, 0, "1970-01-01T00:00:00Z"),
            (-1, 750_000_000, "1969-12-31T23:59:59.75Z"),
            (1_000_000_000_000, 5, "@1000000000000.000000005"),
        ] {
            let time = Timestamp {
                seconds,
                nanoseconds,
            };
            assert_eq!(rfc3339(time), expected);
            assert_eq!(is(expected), (seconds, nanoseconds));
        }
    }

    #[test]
    fn a_zone_without_an_offset_is_not_taken_for_utc() {
        assert_eq!(is("1970-01-01T01:00+01:00[Europe/Berlin]"), (0, 0));
        for text in [
            "1970-01-01T01:00[Europe/Berlin]",
            "1970-01-01[Europe/Berlin]",
        ] {
            let parsed = parse(text, Day::Start, &TimeZone::UTC);
            assert!(matches!(parsed, Err(NotATime::NoOffset)), "{text}");
            assert!(time_or_age(text, NOW, &TimeZone::UTC).is_err(), "{text}");
        }
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
        let why = |text: &str| time_or_age(text, NOW, &TimeZone::UTC).unwrap_err();
        let neither = "it is neither a time such as 2026-11-21T18:30 or @1795285800, nor an age such as 2d, nor file:PATH";
        for text in ["", "yesterday", "-2d", "d", "1.5h", "+1d"] {
            assert_eq!(why(text), neither, "{text}");
        }
        // Which part is wrong, the parser knows.
        for (text, part) in [
            ("2026-13-01", "month"),
            ("2026-02-30", "day"),
            ("2026-11-21T25:00", "hour"),
        ] {
            let why = why(text);
            assert!(
                why.starts_with("it is no time: ") && why.contains(part),
                "{why}"
            );
        }
        assert_eq!(why("5m"), "`m` is not a unit of time; use s, min, h, d, w");
        assert_eq!(
            why("7"),
            "it has no unit; use s, min, h, d, w, or @7 for seconds since 1970"
        );
        assert_eq!(why("99999999999999999w"), "it is too long ago");
        assert_eq!(why("99999999999999999999s"), "it is too long ago");
    }
}
