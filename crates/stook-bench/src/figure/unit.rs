//! Figures as people read them: three digits and a unit. Pure text, no layout.

/// What the figures of an axis or a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds: shown as ns, µs, ms or s.
    Seconds,
    /// Bytes: shown as B, KiB, MiB or GiB.
    Bytes,
    /// One figure as a multiple of another.
    Ratio,
    /// A part of 1: shown in percent.
    Share,
}

const SECONDS: [(f64, &str); 4] = [(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")];
const BYTES: [(f64, &str); 5] = [
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
];

impl Unit {
    /// Returns a value with three digits and its unit, such as `12.3 ms`.
    pub(crate) fn show(self, value: f64) -> String {
        let (number, unit) = self.scaled(value);
        let digits = match self {
            // Of ratios that have an interval of their own, two digits are enough.
            Self::Ratio if value < 0.995 => two_digits(number),
            _ => three_digits(number),
        };
        join(&digits, unit)
    }

    /// Returns the value of a tick, without zeros that say nothing, such as `10 s`.
    pub(super) fn tick(self, value: f64) -> String {
        let (number, unit) = self.scaled(value);
        let text = format!("{number:.3}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        join(&with_groups(text), unit)
    }

    /// What one step of a round tick is a multiple of: bytes are round in their unit, all else in powers of ten.
    pub(super) fn grain(self, greatest: f64) -> f64 {
        match self {
            Self::Bytes => chosen(&BYTES, greatest).0,
            _ => 1.0,
        }
    }

    fn scaled(self, value: f64) -> (f64, &'static str) {
        let in_unit = |units: &[(f64, &'static str)]| {
            let (size, unit) = chosen(units, value);
            (value / size, unit)
        };
        match self {
            Self::Seconds if value == 0.0 => (0.0, "s"),
            Self::Seconds => in_unit(&SECONDS),
            Self::Bytes => in_unit(&BYTES),
            Self::Ratio => (value, "×"),
            Self::Share => (value * 100.0, "%"),
        }
    }
}

/// The greatest unit that the value holds at least once, when it is rounded to three digits; the least unit for less.
fn chosen(units: &[(f64, &'static str)], value: f64) -> (f64, &'static str) {
    let held = units
        .iter()
        .rev()
        .find(|(size, _)| value.abs() >= size * 0.9995);
    *held.unwrap_or(&units[0])
}

/// A blank that does not break: a figure and its unit stay on one line.
fn join(number: &str, unit: &str) -> String {
    format!("{number}\u{a0}{unit}")
}

/// Returns a number with three digits, or all of them before the point.
pub(crate) fn three_digits(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.0995 => 3,
        _ => 4,
    };
    with_groups(&format!("{number:.decimals$}"))
}

/// Returns a whole number with commas between its thousands.
pub(crate) fn grouped(number: u64) -> String {
    with_groups(&number.to_string())
}

/// Returns a number below 1 with two digits.
fn two_digits(number: f64) -> String {
    let decimals = match number {
        size if size >= 0.0995 || size == 0.0 => 2,
        size if size >= 0.00995 => 3,
        _ => 4,
    };
    format!("{number:.decimals$}")
}

/// Puts a comma between the thousands.
pub(crate) fn with_groups(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let (whole, decimals) = match digits.split_once('.') {
        Some((whole, decimals)) => (whole, format!(".{decimals}")),
        None => (digits, String::new()),
    };
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{decimals}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn values_have_three_digits_and_the_unit_that_fits() {
        let seconds = [0.0, 3.5e-7, 1.234e-5, 0.0123, 0.9996, 59.96, 1234.4];
        let shown = seconds.map(|value| plain(&Unit::Seconds.show(value)));
        let expected = [
            "0 s", "350 ns", "12.3 µs", "12.3 ms", "1.00 s", "60.0 s", "1,234 s",
        ];
        assert_eq!(shown, expected);
        assert_eq!(plain(&Unit::Bytes.show(1536.0 * 1024.0)), "1.50 MiB");
        assert_eq!(plain(&Unit::Ratio.show(0.0123)), "0.012 ×");
        assert_eq!(plain(&Unit::Share.show(0.853)), "85.3 %");
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        let ticks = [0.0, 0.001, 0.25, 10.0, 20_000.0];
        let shown = ticks.map(|value| plain(&Unit::Seconds.tick(value)));
        assert_eq!(shown, ["0 s", "1 ms", "250 ms", "10 s", "20,000 s"]);
    }
}
