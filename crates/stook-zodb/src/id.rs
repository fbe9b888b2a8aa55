//! The numbers that name objects and transactions: 8 bytes each in the file, big-endian, so that they sort as numbers.

use std::fmt;

/// The number of an object; 0 is the root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(pub u64);

impl Oid {
    /// The object that all others are reached from.
    pub const ROOT: Self = Self(0);
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// The number of a transaction, which is a time: minutes since 1900 in the upper half, parts of a minute in the lower one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u64);

impl Tid {
    /// Returns the day of the transaction, in UTC.
    ///
    /// # Source
    /// `persistent.TimeStamp`: `((((year - 1900) * 12 + month - 1) * 31 + day - 1) * 24 + hour) * 60 + minute`.
    pub fn day(self) -> Day {
        let days = (self.0 >> 32) / (24 * 60);
        let part = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        Day {
            year: part(1900 + days / 31 / 12),
            month: part(1 + days / 31 % 12),
            day: part(1 + days % 31),
        }
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

/// A day of the calendar, as a transaction's number says it; prints as `2002-02-28`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    /// Years of our era.
    pub year: u16,
    /// From 1 to 12.
    pub month: u16,
    /// From 1 to 31.
    pub day: u16,
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_that_of_the_time_stamp() {
        // TimeStamp(2002, 2, 28, 13, 30, 0) of `persistent`.
        let minutes = ((((102 * 12 + 1) * 31 + 27) * 24 + 13) * 60) + 30;
        assert_eq!(Tid(minutes << 32 | 7).day().to_string(), "2002-02-28");
        assert_eq!(Tid(0).day().to_string(), "1900-01-01");
        assert_eq!(Tid(u64::MAX).day().year, 9917);
    }
}
