//! Times of the index: microseconds since 1970, and the text zstash keeps in `files.mtime`.
//!
//! The text is what Python's `datetime` prints: UTC, no zone, a fraction only when there is one.
//! Texts compare as their times do, so SQL may compare them. The calendar is the proleptic
//! Gregorian one, done in integers; nothing here knows leap seconds or zones.

use std::fmt;

use stook_sys::Timestamp;

/// A time in microseconds since 1970-01-01 UTC; prints as `YYYY-MM-DD HH:MM:SS[.ffffff]`.
///
/// The text exists for the years 1 to 9999 only; a time outside prints as the nearest one inside.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mtime(pub i64);

const MICROS: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;

impl Mtime {
    /// 0001-01-01 00:00:00, the earliest time that has a text.
    pub const MIN: Self = Self(-62_135_596_800 * MICROS);
    /// 9999-12-31 23:59:59.999999, the latest time that has a text.
    pub const MAX: Self = Self(253_402_300_800 * MICROS - 1);

    /// Reads the text form; `None` if it is not one. A fraction may have any number of digits:
    /// those past the sixth are dropped, as Python's `sqlite3` does.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let (clock, fraction) = text.split_at_checked(19)?;
        if clock[4] != b'-'
            || clock[7] != b'-'
            || clock[10] != b' '
            || clock[13] != b':'
            || clock[16] != b':'
        {
            return None;
        }
        let year = i64::from(number(&clock[..4])?);
        let month = number(&clock[5..7])?;
        let day = number(&clock[8..10])?;
        let (hour, minute, second) = (
            number(&clock[11..13])?,
            number(&clock[14..16])?,
            number(&clock[17..])?,
        );
        let in_range = year >= 1
            && (1..=12).contains(&month)
            && (1..=month_days(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !in_range {
            return None;
        }
        let seconds = days_from_date(year, month, day) * DAY_SECONDS
            + i64::from(hour * 3600 + minute * 60 + second);
        Some(Self(seconds * MICROS + microseconds(fraction)?))
    }
}

impl From<Timestamp> for Mtime {
    fn from(time: Timestamp) -> Self {
        // What has no text in the index would not compare with what was read back.
        Self(time.python_microseconds()).clamp(Self::MIN, Self::MAX)
    }
}

impl fmt::Display for Mtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = (*self).clamp(Self::MIN, Self::MAX);
        let (seconds, micros) = (time.0.div_euclid(MICROS), time.0.rem_euclid(MICROS));
        let (year, month, day) = date_from_days(seconds.div_euclid(DAY_SECONDS));
        let clock = seconds.rem_euclid(DAY_SECONDS);
        let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )?;
        if micros != 0 {
            write!(f, ".{micros:06}")?;
        }
        Ok(())
    }
}

#[inline]
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + u32::from(digit - b'0'))
    })
}

fn microseconds(fraction: &[u8]) -> Option<i64> {
    let Some((&dot, digits)) = fraction.split_first() else {
        return Some(0);
    };
    if dot != b'.' || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = digits
        .iter()
        .copied()
        .chain(std::iter::repeat(b'0'))
        .take(6);
    Some(digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

fn month_days(year: i64, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01. Years are counted from March, so that the leap day comes last.
///
/// # Source
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn days_from_date(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = i64::from((153 * ((month + 9) % 12) + 2) / 5 + day - 1);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The reverse of [`days_from_date`].
fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times_print_and_parse() {
        for (micros, text) in [
            (0, "1970-01-01 00:00:00"),
            (-1_250_000, "1969-12-31 23:59:58.750000"),
            (1_700_000_000_500_000, "2023-11-14 22:13:20.500000"),
            (951_782_400_000_000, "2000-02-29 00:00:00"),
            (Mtime::MIN.0, "0001-01-01 00:00:00"),
            (Mtime::MAX.0, "9999-12-31 23:59:59.999999"),
        ] {
            assert_eq!(Mtime(micros).to_string(), text);
            assert_eq!(Mtime::from_text(text.as_bytes()), Some(Mtime(micros)));
        }
        assert_eq!(Mtime(i64::MIN).to_string(), Mtime::MIN.to_string());
        assert_eq!(Mtime(i64::MAX).to_string(), Mtime::MAX.to_string());
    }

    #[test]
    fn texts_that_are_no_times_are_refused() {
        for text in [
            "",
            "2020-01-02",
            "2020-01-02T03:04:05",
            "2020-01-02 03:04:05Z",
            "2020-01-02 03:04:05+00:00",
            "2020-01-02 03:04:05.",
            "2020-01-02 03:04:05.x",
            "2021-02-29 00:00:00",
            "2020-13-01 00:00:00",
            "2020-00-01 00:00:00",
            "2020-01-00 00:00:00",
            "0000-01-01 00:00:00",
            "2020-01-02 24:00:00",
            "2020-01-02 03:60:05",
            "2020-01-02 03:04:60",
            "+020-01-02 03:04:05",
        ] {
            assert_eq!(Mtime::from_text(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn short_and_long_fractions_are_read_as_python_reads_them() {
        assert_eq!(
            Mtime::from_text(b"1970-01-01 00:00:00.5"),
            Some(Mtime(500_000))
        );
        assert_eq!(
            Mtime::from_text(b"1970-01-01 00:00:00.1234569"),
            Some(Mtime(123_456))
        );
    }

    #[test]
    fn times_past_the_year_9999_compare_with_what_is_read_back() {
        let far = Timestamp {
            seconds: 400_000_000_000,
            nanoseconds: 5,
        };
        let mtime = Mtime::from(far);
        assert_eq!(Mtime::from_text(mtime.to_string().as_bytes()), Some(mtime));
    }

    proptest! {
        #[test]
        fn every_time_survives_its_text(micros in Mtime::MIN.0..=Mtime::MAX.0) {
            prop_assert_eq!(Mtime::from_text(Mtime(micros).to_string().as_bytes()), Some(Mtime(micros)));
        }

        #[test]
        fn texts_compare_as_times_do(a in Mtime::MIN.0..=Mtime::MAX.0, step in 0_i64..5_000_000) {
            let (a, b) = (Mtime(a), Mtime((a + step).min(Mtime::MAX.0)));
            prop_assert_eq!(a.to_string().cmp(&b.to_string()), a.cmp(&b));
        }

        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Mtime::from_text(&text);
        }
    }
}
