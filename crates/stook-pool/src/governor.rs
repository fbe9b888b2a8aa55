//! Decides how many workers there should be. No threads, no clock: samples in, numbers out.
//!
//! A worker is running, waiting for a processor, idle (nothing to do), or blocked: inside a system call
//! that waits for the storage. Only the last is a reason for more workers, and only if more of them get
//! more done:
//!
//! ```text
//!   mostly blocked ──> twice as many ──> rate has risen by a fifth? ── yes ──> stay, go on
//!         ^                                     no: back to before, and wait ──┐
//!         └────────────── 0.2 s, then 0.4 s, ... 6.4 s ────────────────────────┘
//!   hardly ever blocked, and more than processors ──> half as many
//!   no better, over some time, than half as many were shortly before ──> half as many, and wait
//! ```
//! Storage that writes a log stalls now and then, and a sample that falls into a stall makes any growth look
//! good. So the rate before a growth is the better of the last sample's and of what these workers did in the last
//! seconds, and a growth is checked once more when it has had some time.
//!
//! Doubling reaches 128 from 2 in six steps. A fifth is above the noise of a sample, and well below what
//! doubling brings as long as it helps at all. Waiting for a processor is not being blocked: on
//! a busy machine more threads would only take time from other people.

use std::time::Duration;

/// What the workers did since the last decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub(crate) elapsed: Duration,
    pub(crate) workers: usize,
    /// How often a worker was observed.
    pub(crate) observations: usize,
    /// Share of the observations that found it blocked, of those that did not find it idle.
    pub(crate) blocked: f64,
    /// Share of the observations that found it with nothing to do.
    pub(crate) idle: f64,
    /// Units of work done.
    pub(crate) units: u64,
}

/// Why the number of workers changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Blocked,
    NoGain,
    Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) workers: usize,
    pub(crate) reason: Reason,
}

#[derive(Debug)]
pub(crate) struct Governor {
    /// Never fewer.
    least: usize,
    /// Never more.
    most: usize,
    /// A growth whose use is not known yet.
    trial: Option<Trial>,
    /// No growth for this long.
    pause: Duration,
    /// The pause after the next growth that does not help.
    next_pause: Duration,
    rates: Rates,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    from: usize,
    /// Units a second before it.
    rate: f64,
}

/// Grow if workers are blocked more often than this.
const MANY_BLOCKED: f64 = 0.5;
/// Shrink if it is less than this.
const FEW_BLOCKED: f64 = 0.2;
/// Not enough work for those that are there.
const MANY_IDLE: f64 = 0.3;
/// What doubling must add to the rate.
const GAIN: f64 = 0.2;
/// Units that make a rate: some for each worker, and not too few.
const LEAST_UNITS: u64 = 16;
/// With two workers that is 40 ms. Workers that are never blocked are never taken for blocked ones.
const LEAST_OBSERVATIONS: usize = 8;
/// A rate is taken as it is after this long.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// What was done this long ago counts half.
const HALF_LIFE: Duration = Duration::from_secs(1);
/// A number of workers has had its time, and one that was only tried, for a short one.
const ENOUGH: Duration = Duration::from_millis(200);
const SOME: Duration = Duration::from_millis(20);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(6400);

impl Governor {
    pub(crate) fn new(least: usize, most: usize) -> Self {
        Self {
            least,
            most: most.max(least),
            trial: None,
            pause: Duration::ZERO,
            next_pause: FIRST_PAUSE,
            rates: Rates::default(),
        }
    }

    /// Returns whether a sample says enough to decide by.
    pub(crate) fn is_significant(sample: &Sample) -> bool {
        let wanted = LEAST_UNITS.max(sample.workers as u64);
        let is_enough = sample.units >= wanted && sample.observations >= LEAST_OBSERVATIONS;
        is_enough || sample.elapsed >= LONGEST_WAIT
    }

    /// Takes a significant sample; returns a number of workers if it should be another one.
    pub(crate) fn decide(&mut self, sample: &Sample) -> Option<Decision> {
        self.pause = self.pause.saturating_sub(sample.elapsed);
        self.rates.add(sample);
        if let Some(trial) = self.trial.take() {
            if !has_helped(trial, sample.workers, rate(sample)) {
                return self.back(sample, trial.from);
            }
            self.next_pause = FIRST_PAUSE;
        }
        let half = (sample.workers / 2).max(self.least);
        if half < sample.workers && self.rates.no_better(sample.workers, half) {
            return self.back(sample, half);
        }
        if sample.idle > MANY_IDLE {
            return None;
        }
        let has_room = sample.workers < self.most && self.pause.is_zero();
        if sample.blocked > MANY_BLOCKED && has_room {
            self.trial = Some(Trial {
                from: sample.workers,
                rate: rate(sample).max(self.rates.of(sample.workers)),
            });
            let workers = (2 * sample.workers).min(self.most);
            return decision(sample, workers, Reason::Blocked);
        }
        if sample.blocked < FEW_BLOCKED {
            return decision(sample, half, Reason::Running);
        }
        None
    }

    /// Fewer workers again, and no growth for a while, longer each time.
    fn back(&mut self, sample: &Sample, workers: usize) -> Option<Decision> {
        self.pause = self.next_pause;
        self.next_pause = (self.next_pause * 2).min(LONGEST_PAUSE);
        decision(sample, workers, Reason::NoGain)
    }
}

/// What numbers of workers did lately: units and seconds, by the power of two below the number. Both fade with time,
/// so that a rate is that of the last seconds, and an old one is no longer asked.
#[derive(Debug, Default)]
struct Rates {
    /// As many as numbers of workers up to 65,535 need.
    levels: [Level; 16],
}

#[derive(Debug, Default, Clone, Copy)]
struct Level {
    units: f64,
    seconds: f64,
}

impl Rates {
    fn add(&mut self, sample: &Sample) {
        let seconds = sample.elapsed.as_secs_f64();
        let left = 0.5_f64.powf(seconds / HALF_LIFE.as_secs_f64());
        for level in &mut self.levels {
            level.units *= left;
            level.seconds *= left;
        }
        let level = &mut self.levels[index(sample.workers)];
        level.units += rate(sample) * seconds;
        level.seconds += seconds;
    }

    /// Units a second; 0 if nothing is known.
    fn of(&self, workers: usize) -> f64 {
        let level = self.levels[index(workers)];
        level.units / level.seconds.max(1e-9)
    }

    /// Whether these workers have had their time, and half of them did as much.
    fn no_better(&self, workers: usize, half: usize) -> bool {
        let has =
            |workers, least: Duration| self.levels[index(workers)].seconds >= least.as_secs_f64();
        has(workers, ENOUGH) && has(half, SOME) && self.of(workers) <= self.of(half)
    }
}

fn index(workers: usize) -> usize {
    (workers.max(1).ilog2() as usize).min(15)
}

fn decision(sample: &Sample, workers: usize, reason: Reason) -> Option<Decision> {
    (workers != sample.workers).then_some(Decision { workers, reason })
}

fn rate(sample: &Sample) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a rate need not be exact to the unit"
    )]
    let units = sample.units as f64;
    units / sample.elapsed.as_secs_f64().max(1e-9)
}

/// Fewer than twice as many workers must add proportionally less.
fn has_helped(trial: Trial, workers: usize, rate: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "numbers of workers are small")]
    let added = workers as f64 / trial.from as f64 - 1.0;
    // Without any work done on either side there is nothing to compare.
    (rate == 0.0 && trial.rate == 0.0) || rate >= trial.rate * (1.0 + GAIN * added)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A storage: how a number of workers fares on it for a while.
    struct Storage {
        /// Time blocked for each unit, and on a processor, in seconds.
        latency: f64,
        work: f64,
        processors: f64,
        /// Requests that it serves at a time.
        queue: f64,
    }

    impl Storage {
        fn sample(&self, workers: usize) -> Sample {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let wanted = workers as f64 / (self.latency + self.work);
            let by_processors = self.processors / self.work;
            let by_queue = if self.latency > 0.0 {
                self.queue / self.latency
            } else {
                f64::INFINITY
            };
            let rate = wanted.min(by_processors).min(by_queue);
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let cycle = workers as f64 / rate;
            // What is not work or a wait for a processor is a wait for the storage.
            let blocked = if rate < by_processors {
                (cycle - self.work) / cycle
            } else {
                self.latency / cycle
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive and small"
            )]
            let units = (rate * 0.05) as u64;
            Sample {
                elapsed: Duration::from_millis(50),
                workers,
                observations: 100,
                blocked,
                idle: 0.0,
                units,
            }
        }

        fn run(&self, steps: usize) -> Vec<usize> {
            let mut governor = Governor::new(2, 128);
            let mut workers = 2;
            let mut seen = vec![workers];
            for _ in 0..steps {
                if let Some(decision) = governor.decide(&self.sample(workers)) {
                    workers = decision.workers;
                    seen.push(workers);
                }
            }
            seen
        }
    }

    const FREE: f64 = f64::INFINITY;

    #[test]
    fn work_without_waiting_stays_at_the_processors() {
        let storage = Storage {
            latency: 0.0,
            work: 1e-4,
            processors: 2.0,
            queue: FREE,
        };
        assert_eq!(storage.run(100), [2]);
    }

    #[test]
    fn a_millisecond_each_time_takes_all_workers() {
        let storage = Storage {
            latency: 1e-3,
            work: 1e-6,
            processors: 2.0,
            queue: FREE,
        };
        assert_eq!(storage.run(100), [2, 4, 8, 16, 32, 64, 128]);
    }

    #[test]
    fn a_server_with_eight_slots_gets_eight_workers() {
        let storage = Storage {
            latency: 1e-3,
            work: 1e-6,
            processors: 2.0,
            queue: 8.0,
        };
        let seen = storage.run(1000);
        assert_eq!(seen[..6], [2, 4, 8, 16, 8, 16]);
        assert!(seen.iter().all(|&workers| workers <= 16));
        // Tried again, at most once in 6.4 s: 1000 samples are 50 s.
        assert!(seen.len() < 40, "{seen:?}");
    }

    #[test]
    fn storage_that_became_fast_needs_fewer_workers() {
        let mut governor = Governor::new(2, 128);
        let mut sample = Sample {
            elapsed: Duration::from_millis(50),
            workers: 64,
            observations: 100,
            blocked: 0.1,
            idle: 0.0,
            units: 1000,
        };
        for expected in [32, 16, 8, 4, 2] {
            let decision = governor.decide(&sample).unwrap();
            assert_eq!(
                (decision.workers, decision.reason),
                (expected, Reason::Running)
            );
            sample.workers = decision.workers;
        }
        assert_eq!(governor.decide(&sample), None);
    }

    #[test]
    fn workers_without_work_bring_no_others() {
        let sample = Sample {
            elapsed: Duration::from_millis(50),
            workers: 4,
            observations: 100,
            blocked: 0.99,
            idle: 0.5,
            units: 1000,
        };
        assert_eq!(Governor::new(2, 128).decide(&sample), None);
    }

    #[test]
    fn few_units_are_not_significant_until_long_after() {
        let mut sample = Sample {
            elapsed: Duration::from_millis(50),
            workers: 32,
            observations: 100,
            blocked: 0.9,
            idle: 0.0,
            units: 31,
        };
        assert!(!Governor::is_significant(&sample));
        sample.elapsed = Duration::from_millis(500);
        assert!(Governor::is_significant(&sample));
        sample = Sample {
            units: 32,
            elapsed: Duration::from_millis(1),
            ..sample
        };
        assert!(Governor::is_significant(&sample));
        sample.observations = 7;
        assert!(!Governor::is_significant(&sample));
    }

    /// A storage that stalls: of ten samples one finds next to nothing done, however many workers there are.
    #[test]
    fn stalls_do_not_bring_workers_that_do_not_help() {
        let mut governor = Governor::new(2, 128);
        let mut workers = 2;
        let mut most = 0;
        let mut sum = 0;
        for number in 0_u64..1000 {
            let sample = Sample {
                elapsed: Duration::from_millis(20),
                workers,
                observations: 100,
                blocked: 0.9,
                idle: 0.0,
                units: if number % 10 == 7 { 20 } else { 500 },
            };
            if let Some(decision) = governor.decide(&sample) {
                workers = decision.workers;
            }
            most = most.max(workers);
            sum += workers;
        }
        assert!(most <= 8 && sum < 2200, "up to {most}, {sum} in all");
    }
}
