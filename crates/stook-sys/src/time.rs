//! Time stamps of files.

/// A point in time as `stat` gives it: seconds since 1970 and nanoseconds past that second.
///
/// Before 1970 the seconds are negative and the nanoseconds still count forwards:
/// -1.75 s is `{ seconds: -2, nanoseconds: 250_000_000 }`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds since 1970-01-01 UTC, rounded down.
    pub seconds: i64,
    /// 0 to 999,999,999.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// Returns the time stamp as a floating-point number of seconds, computed as CPython
    /// computes `st_mtime`: zstash archives hold times that went through this rounding.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the loss is what CPython has, too"
    )]
    pub fn as_float(self) -> f64 {
        self.seconds as f64 + 1e-9 * f64::from(self.nanoseconds)
    }

    /// Returns the microseconds since 1970 as Python's `datetime.utcfromtimestamp(st_mtime)`
    /// rounds them: the float is split, and its fraction rounded half to even.
    ///
    /// # Source
    /// CPython `_fromtimestamp`; integer rounding differs in 6 % of present-day stamps.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float cast saturates, and the clamp bounds it"
    )]
    pub fn python_microseconds(self) -> i64 {
        let float = self.as_float();
        let whole = float.trunc();
        let micros = ((float - whole) * 1e6).round_ties_even() as i64;
        let limit = i64::MAX / 2_000_000;
        (whole as i64).clamp(-limit, limit) * 1_000_000 + micros
    }
}
