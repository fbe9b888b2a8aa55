//! Decides how many workers there should be. No threads, no clock: samples in, numbers out.
//!
//! A worker is on a processor, waiting for one, idle (nothing to do), or blocked: inside a system call that waits for the
//! storage. Only the last is a reason for more workers, and only if more of them get more done. So there are three
//! laws: two say how many to try, the last how many of those have paid.
//!
//! - *Fill the processors.* Work that takes `C` on a processor and waits `W` keeps `P` processors busy with
//!   `P (C + W) / C` workers (Goetz et al., Java Concurrency in Practice, 8.2). The first millisecond of one
//!   worker tells `C` and `W`, and the pool goes there at once. Waiting for a processor counts as work here.
//! - *Climb where others have the processors.* Those may be a server of this very work, such as FUSE or NFS on the same
//!   machine, and it may do more at a time if it is asked for more. Only trying tells: twice as many, as long as that
//!   pays (hill climbing; Hellerstein et al., Optimizing Concurrency Levels in the .NET ThreadPool, FeBID 2008), and
//!   never more than fill the processors if waiting for one counts as waiting.
//! - *Keep what is in use.* `N` workers that get done `r1` a second, where fewer got done `r0` and took `u` for each
//!   unit, are used like `r1 u` of them (Little's law; BBR sizes the window of a connection so, Cardwell et
//!   al., ACM Queue 14(5), 2016). The others wait in a queue of the storage, or for a lock of the kernel.
//!
//! ```text
//!   1 worker ── 1 ms ──> P (C + W) / C ──> rate risen by a fifth of what was added? ── yes ──> stay, ask again
//!                             ^                 no: back to r1 u, and if that is what there were before,
//!                             │                     try half as many: do they do as much? yes ──> stay
//!                             └───── 0.2 s, then 0.4 s, ... 6.4 s ──────────────┘           no ──> back
//!   blocked half of the time, and others have the processors ──> twice as many, a trial as above
//!   hardly ever blocked, and more than fill the processors ──> as many as do
//!   no better, over some time, than half as many were shortly before ──> half as many, and wait
//! ```
//! Every change is a trial: the next window must confirm it. Storage that writes a log stalls now and then, and a window
//! that falls into a stall makes any growth look good. So the rate before a change is the better of the last window's and of
//! what these workers did in the last seconds, and a growth is checked once more when it has had some time.
//!
//! Waiting for a processor is not being blocked: workers that do little else bring no others, which would only take time
//! from other people.
//! Without enough work for those that are there nothing can be learned, and idle workers cost nothing.

mod rates;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rates::Rates;

/// What the workers did in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub(crate) elapsed: Duration,
    pub(crate) workers: usize,
    /// Units of work done.
    pub(crate) units: u64,
    /// Shares of a worker's time.
    pub(crate) on_cpu: f64,
    pub(crate) run_delay: f64,
    pub(crate) idle: f64,
}

impl Sample {
    /// Units a second.
    fn rate(&self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a rate need not be exact to the unit"
        )]
        let units = self.units as f64;
        units / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Share of the time with work in which a worker had or wanted a processor.
    fn work(&self) -> f64 {
        self.of_busy(self.on_cpu + self.run_delay)
    }

    /// The share of the time with work that this share of all time is.
    fn of_busy(&self, share: f64) -> f64 {
        (share / (1.0 - self.idle).max(1e-9)).clamp(0.0, 1.0)
    }
}

/// Why the number of workers changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Blocked,
    Outnumbered,
    NoGain,
    Fewer,
    Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) workers: usize,
    pub(crate) reason: Reason,
}

#[derive(Debug)]
pub(crate) struct Governor {
    processors: usize,
    /// Never more.
    most: usize,
    /// Where a growth that does not help leads back to: the processors, unless fewer workers do as much.
    floor: usize,
    /// A change whose use is not known yet.
    trial: Option<Trial>,
    /// No trial for this long.
    pause: Duration,
    /// The pause after the next trial that does not help.
    next_pause: Duration,
    /// When fewer are tried, from now: they may do as much.
    until_fewer: Option<Duration>,
    /// The shortest window, longer the longer nothing changes.
    least_window: Duration,
    rates: Rates,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    from: usize,
    /// Units a second before it.
    rate: f64,
}

/// Shrink if workers are blocked less often than this.
const FEW_BLOCKED: f64 = 0.2;
/// Climb if workers are blocked more often than this.
const MANY_BLOCKED: f64 = 0.5;
/// Not enough work for those that are there.
const MANY_IDLE: f64 = 0.3;
/// What doubling must add to the rate: above the noise of a window, and well below what doubling brings as long as it
/// helps at all.
const GAIN: f64 = 0.2;
/// What fewer workers may lose of the rate.
const LOSS: f64 = 0.05;
/// More than what is in use: the next window tells whether more would be.
const ROOM: f64 = 1.25;
/// Units that make a rate: two for each worker, and not too few.
const LEAST_UNITS: u64 = 16;
/// The first window, and the shortest of all.
const FIRST_WINDOW: Duration = Duration::from_millis(1);
/// The shortest one when nothing has changed for long: to measure takes time as well.
const STEADY_WINDOW: Duration = Duration::from_millis(32);
/// A trial without enough units after this long says nothing.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(6400);

impl Governor {
    /// Returns the governor of a pool that begins with one worker.
    pub(crate) fn new(processors: usize, most: usize) -> Self {
        Self {
            processors: processors.min(most),
            most,
            floor: processors.min(most),
            trial: None,
            pause: Duration::ZERO,
            next_pause: FIRST_PAUSE,
            until_fewer: None,
            least_window: Duration::ZERO,
            rates: Rates::default(),
        }
    }

    /// Returns whether a window says enough to decide by: what workers do with their time is known soon, how much they get
    /// done only by some units, and only a trial asks for that.
    pub(crate) fn is_significant(&self, elapsed: Duration, workers: usize, units: u64) -> bool {
        let is_enough = self.trial.is_none() || units >= enough_units(workers);
        is_enough && elapsed >= self.least_window.max(FIRST_WINDOW) || elapsed >= LONGEST_WAIT
    }

    /// Takes a significant sample; returns a number of workers if it should be another one.
    pub(crate) fn decide(&mut self, sample: &Sample) -> Option<Decision> {
        self.pause = self.pause.saturating_sub(sample.elapsed);
        self.until_fewer = self
            .until_fewer
            .map(|left| left.saturating_sub(sample.elapsed));
        self.rates.add(sample);
        if sample.idle > MANY_IDLE {
            // Nothing was learned: the first window that says something is still to come.
            self.trial = None;
            return None;
        }
        let decision = self.next(sample);
        self.least_window = match decision {
            Some(_) => FIRST_WINDOW,
            None => (self.least_window * 2).clamp(FIRST_WINDOW, STEADY_WINDOW),
        };
        decision
    }

    fn next(&mut self, sample: &Sample) -> Option<Decision> {
        if let Some(trial) = self.trial.take()
            && let Some(workers) = self.unpaid(trial, sample)
        {
            return decision(sample, workers, Reason::NoGain);
        }
        let workers = sample.workers;
        let half = (workers / 2).max(1);
        if half < workers && self.rates.no_better(workers, half) {
            self.wait();
            return decision(sample, half, Reason::NoGain);
        }
        let filling = self.filling(sample.work());
        if self.pause.is_zero() && at_least(filling, workers, ROOM) {
            return self.try_out(sample, filling, Reason::Blocked);
        }
        let blocked = 1.0 - sample.work();
        let undelayed = self.filling(sample.of_busy(sample.on_cpu)).min(workers * 2);
        if self.pause.is_zero() && blocked > MANY_BLOCKED && at_least(undelayed, workers, ROOM) {
            return self.try_out(sample, undelayed, Reason::Outnumbered);
        }
        let are_running = blocked < FEW_BLOCKED;
        if self.pause.is_zero() && are_running && filling < workers {
            return self.try_out(sample, filling, Reason::Running);
        }
        // Where little gets done in a window, the next one could not tell whether fewer do less.
        let is_known = sample.units >= enough_units(workers);
        if self.until_fewer == Some(Duration::ZERO) && !are_running && is_known {
            self.until_fewer = None;
            return self.try_out(sample, half, Reason::Fewer);
        }
        None
    }

    /// As many as fill the processors with this share of their time.
    fn filling(&self, work: f64) -> usize {
        let workers = float(self.processors) / work.max(1e-6);
        ceiling(workers.round()).clamp(1, self.most)
    }

    fn try_out(&mut self, sample: &Sample, workers: usize, reason: Reason) -> Option<Decision> {
        // What the first millisecond says of a rate is too little to leave processors idle for.
        let is_first = self.least_window.is_zero() && workers <= self.processors;
        self.trial = (workers != sample.workers && !is_first).then(|| Trial {
            from: sample.workers,
            rate: self.known_rate(sample),
        });
        decision(sample, workers, reason)
    }

    /// Units a second before a change; 0 if too few were done to tell.
    fn known_rate(&self, sample: &Sample) -> f64 {
        if sample.units < LEAST_UNITS / 2 {
            return 0.0;
        }
        sample.rate().max(self.rates.of(sample.workers))
    }

    /// Returns how many workers there should be if a change has not paid.
    fn unpaid(&mut self, trial: Trial, sample: &Sample) -> Option<usize> {
        let is_known = sample.units >= enough_units(sample.workers);
        if sample.workers < trial.from {
            self.lost(trial, sample, is_known)
        } else if is_known && trial.rate > 0.0 {
            self.not_gained(trial, sample)
        } else {
            // There is nothing to compare but with what fewer will do, some time later: they mostly do less.
            self.until_fewer = Some(FIRST_PAUSE);
            None
        }
    }

    /// The number from before if fewer do less, or too little for it to be known.
    fn lost(&mut self, trial: Trial, sample: &Sample, is_known: bool) -> Option<usize> {
        if !is_known || sample.rate() < trial.rate * (1.0 - LOSS) {
            self.wait();
            return Some(trial.from);
        }
        self.floor = self.floor.min(sample.workers);
        self.until_fewer = Some(Duration::ZERO);
        None
    }

    /// As many as are used if more workers have not done enough more.
    fn not_gained(&mut self, trial: Trial, sample: &Sample) -> Option<usize> {
        let ratio = sample.rate() / trial.rate;
        let (from, now) = (float(trial.from), float(sample.workers));
        if ratio >= 1.0 + GAIN * (now / from - 1.0) {
            self.next_pause = FIRST_PAUSE;
            return None;
        }
        self.wait();
        let before = trial.from.max(self.floor);
        let used = ceiling(from * ratio * ROOM);
        if at_least(used, before, 1.0 + 2.0 * GAIN) && used < sample.workers {
            self.trial = Some(Trial {
                from: sample.workers,
                rate: sample.rate(),
            });
            return Some(used);
        }
        self.until_fewer = Some(Duration::ZERO);
        Some(before)
    }

    /// No trial for a while, longer each time.
    fn wait(&mut self) {
        self.pause = self.next_pause;
        self.next_pause = (self.next_pause * 2).min(LONGEST_PAUSE);
    }
}

fn enough_units(workers: usize) -> u64 {
    LEAST_UNITS.max(2 * workers as u64)
}

fn decision(sample: &Sample, workers: usize, reason: Reason) -> Option<Decision> {
    (workers != sample.workers).then_some(Decision { workers, reason })
}

fn at_least(workers: usize, before: usize, times: f64) -> bool {
    float(workers) >= float(before) * times
}

#[expect(clippy::cast_precision_loss, reason = "numbers of workers are small")]
fn float(workers: usize) -> f64 {
    workers as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and cut off at a number that no pool has"
)]
fn ceiling(workers: f64) -> usize {
    workers.ceil().clamp(1.0, 65_535.0) as usize
}
