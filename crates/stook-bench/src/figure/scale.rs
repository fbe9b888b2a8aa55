//! From values to places: straight scales from zero, and logarithmic ones where values span much.

use std::ops::RangeInclusive;

use super::unit::Unit;

/// Values that span more than this factor get a logarithmic axis: on a straight one the least would be a hair's breadth.
const LOGARITHMIC_ABOVE: f64 = 50.0;
/// More decades than this and only every other one has a tick with a text.
const LABELLED_DECADES: usize = 7;
/// What lies outside, no measurement gives, and powers of ten around it do not fit into a float.
const DRAWN: RangeInclusive<f64> = 1e-30..=1e30;

/// Where the values of an axis lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    /// From one tick to the next; None on a logarithmic scale.
    step: Option<f64>,
    unit: Unit,
    /// Where `low` and `high` lie.
    from: f64,
    to: f64,
}

impl Scale {
    /// Returns a scale for these values between two places: logarithmic if they span much.
    pub(super) fn of(values: impl Iterator<Item = f64>, unit: Unit, from: f64, to: f64) -> Self {
        let (least, greatest) = ends(values);
        if greatest / least > LOGARITHMIC_ABOVE {
            Self::logarithmic([least, greatest].into_iter(), unit, from, to)
        } else {
            Self::straight(greatest, unit, from, to)
        }
    }

    /// Returns a straight scale from 0 to at least this value.
    pub(super) fn straight(greatest: f64, unit: Unit, from: f64, to: f64) -> Self {
        let greatest = if greatest > 0.0 { greatest } else { 1.0 };
        let grain = unit.grain(greatest);
        let step = round_up(greatest / grain / 4.0, &[1.0, 2.0, 2.5, 5.0]) * grain;
        Self {
            low: 0.0,
            high: (greatest / step - 1e-9).ceil() * step,
            step: Some(step),
            unit,
            from,
            to,
        }
    }

    /// Returns a logarithmic scale around those values that are above 0, from one round value to another.
    pub(super) fn logarithmic(
        values: impl Iterator<Item = f64>,
        unit: Unit,
        from: f64,
        to: f64,
    ) -> Self {
        let (least, greatest) = ends(values);
        if greatest == 0.0 {
            return Self::straight(0.0, unit, from, to);
        }
        // A bar of the least value must still be seen.
        let low = round_down(least * 0.8);
        Self {
            low,
            high: round_up(greatest * 0.999, &[1.0, 2.0, 5.0]).max(low * 10.0),
            step: None,
            unit,
            from,
            to,
        }
    }

    /// Returns where a value lies; what is off the scale lies at its end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.step {
            Some(_) => value / self.high,
            None if value > 0.0 => (value / self.low).log10() / (self.high / self.low).log10(),
            None => 0.0,
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Returns the places of round values, each with its text.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = self.round_values().into_iter();
        values
            .map(|value| (self.at(value), self.unit.tick(value)))
            .collect()
    }

    fn round_values(&self) -> Vec<f64> {
        if let Some(step) = self.step {
            let values = (0..=10).map(|number| f64::from(number) * step);
            return values
                .filter(|value| *value <= self.high * 1.0001)
                .collect();
        }
        let decades = self.multiples(&[1.0]);
        if decades.len() < 3 {
            return self.multiples(&[1.0, 2.0, 5.0]);
        }
        let every = 1 + decades.len() / (LABELLED_DECADES + 1);
        decades.into_iter().step_by(every).collect()
    }

    /// These multiples of all powers of ten that lie on the scale.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "powers of ten of a float are at most 308"
    )]
    fn multiples(&self, multiples: &[f64]) -> Vec<f64> {
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let powers = powers.map(|power| 10_f64.powi(power));
        let values =
            powers.flat_map(|power| multiples.iter().map(move |multiple| multiple * power));
        let drawn = self.low * 0.999..=self.high * 1.001;
        values.filter(|value| drawn.contains(value)).collect()
    }

    /// Returns where the scale begins.
    pub(super) fn from(&self) -> f64 {
        self.from
    }

    /// Returns where the scale ends.
    pub(super) fn to(&self) -> f64 {
        self.to
    }

    /// Returns words for the axis if it is not the usual one.
    pub(super) fn remark(&self) -> &'static str {
        match self.step {
            Some(_) => "",
            None => ", logarithmic",
        }
    }

    /// Returns a scale of the same values between other places.
    pub(super) fn between(self, from: f64, to: f64) -> Self {
        Self { from, to, ..self }
    }
}

/// The least value above 0, and the greatest; infinity and 0 if there is none.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = (f64::INFINITY, 0.0_f64);
    let drawn = values.filter(|value| DRAWN.contains(value));
    drawn.fold(ends, |(least, greatest), value| {
        (least.min(value), greatest.max(value))
    })
}

/// The greatest of 1, 2 and 5 times a power of ten that is at most this.
fn round_down(at_most: f64) -> f64 {
    let power = 10_f64.powf(at_most.log10().floor());
    let fits = |step: &f64| step * power <= at_most * 1.0001;
    [5.0, 2.0].into_iter().find(fits).unwrap_or(1.0) * power
}

/// The least of these multiples, or 10, times a power of ten that is at least this.
fn round_up(at_least: f64, multiples: &[f64]) -> f64 {
    let power = 10_f64.powf(at_least.log10().floor());
    let found = multiples
        .iter()
        .find(|multiple| **multiple * power >= at_least * 0.9999);
    found.unwrap_or(&10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[f64]) -> Scale {
        Scale::of(values.iter().copied(), Unit::Seconds, 0.0, 100.0)
    }

    #[test]
    fn near_values_get_a_straight_scale_from_zero() {
        let scale = scale(&[3.0, 8.7]);
        assert_eq!(scale.round_values(), [0.0, 2.5, 5.0, 7.5, 10.0]);
        assert_eq!(
            [0.0, 5.0, 99.0].map(|value| scale.at(value)),
            [0.0, 50.0, 100.0]
        );
    }

    #[test]
    fn values_that_span_much_get_a_logarithmic_scale() {
        let scale = scale(&[0.02, 0.0, 30.0]);
        assert_eq!(scale.round_values(), [0.01, 0.1, 1.0, 10.0]);
        assert!((scale.at((0.01_f64 * 50.0).sqrt()) - 50.0).abs() < 1e-9);
        assert_eq!((scale.at(0.0), scale.at(50.0)), (0.0, 100.0));
        assert_eq!(scale.remark(), ", logarithmic");
    }

    #[test]
    fn the_least_value_is_seen_and_there_are_neither_few_nor_many_ticks() {
        assert!(scale(&[0.1, 10.0]).at(0.1) > 5.0);
        for values in [[1e-9, 1e4], [0.3, 20.0], [0.1, 10.0]] {
            let ticks = scale(&values).ticks();
            assert!((3..=8).contains(&ticks.len()), "{ticks:?}");
        }
    }

    #[test]
    fn nothing_and_zeros_have_a_scale_too() {
        for values in [&[][..], &[0.0, 0.0], &[5e-324], &[1e-308, 1e308]] {
            assert_eq!(scale(values).at(0.0), 0.0);
            assert!(scale(values).ticks().len() > 2);
        }
    }

    #[test]
    fn memory_has_ticks_that_are_round_in_its_unit() {
        let scale = Scale::of([700.0 * 1_048_576.0].into_iter(), Unit::Bytes, 0.0, 1.0);
        assert_eq!(scale.round_values()[1], 200.0 * 1_048_576.0);
        assert_eq!(scale.ticks()[2].1.replace('\u{a0}', " "), "400 MiB");
    }
}
