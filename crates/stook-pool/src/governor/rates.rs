//! How much different numbers of workers got done lately.

use std::time::Duration;

use super::Sample;

/// What was done this long ago counts half.
const HALF_LIFE: Duration = Duration::from_secs(1);
/// A number of workers has had its time, and one that was only tried, for a short one.
const ENOUGH: Duration = Duration::from_millis(200);
const SOME: Duration = Duration::from_millis(20);

/// Units and seconds of numbers of workers, by the power of two below the number. Both fade with time, so that a rate is
/// that of the last seconds, and an old one is no longer used.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// As many as numbers of workers up to 65,535 need.
    levels: [Level; 16],
}

#[derive(Debug, Default, Clone, Copy)]
struct Level {
    units: f64,
    seconds: f64,
}

impl Rates {
    pub(super) fn add(&mut self, sample: &Sample) {
        let seconds = sample.elapsed.as_secs_f64();
        let left = 0.5_f64.powf(seconds / HALF_LIFE.as_secs_f64());
        for level in &mut self.levels {
            level.units *= left;
            level.seconds *= left;
        }
        let level = &mut self.levels[index(sample.workers)];
        level.units += sample.rate() * seconds;
        level.seconds += seconds;
    }

    /// Units a second; 0 if nothing is known.
    pub(super) fn of(&self, workers: usize) -> f64 {
        let level = self.levels[index(workers)];
        level.units / level.seconds.max(1e-9)
    }

    /// Whether these workers have had their time, and fewer did as much.
    pub(super) fn no_better(&self, workers: usize, fewer: usize) -> bool {
        let has =
            |workers, least: Duration| self.levels[index(workers)].seconds >= least.as_secs_f64();
        has(workers, ENOUGH) && has(fewer, SOME) && self.of(workers) <= self.of(fewer)
    }
}

fn index(workers: usize) -> usize {
    (workers.max(1).ilog2() as usize).min(15)
}
