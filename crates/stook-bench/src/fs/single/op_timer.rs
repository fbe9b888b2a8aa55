//! Times of single operations, at a price that is kept below a hundredth of what is measured.
//!
//! The end of one operation is the beginning of the next, so that each costs one clock read. Where operations
//! are so short that even this would be felt, as with names in memory, some are passed over: their number is
//! known, their times are not. On storage that has to be waited for, every one is timed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::latency::Latencies;

/// Clock reads may take one part in so many of the time: 0.9 %.
const PARTS: u64 = 110;
/// At most so many operations are passed over at a time once clock reads have taken more; at first only one, because
/// a phase may begin with short operations and go on with long ones.
const MOST_PASSED: u32 = 17;
/// So many of each kind are timed in any case.
const FIRST: u64 = 16;

/// Kinds of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// Opening a file or a directory.
    Open,
    /// Creating a file.
    Create,
    /// Reading up to 1 MiB.
    Read,
    /// Writing up to 1 MiB.
    Write,
    /// Closing a file.
    Close,
    /// Setting the time of an open file or of a directory.
    SetTime,
    /// All names of a directory.
    List,
    /// Facts about one entry.
    Stat,
    /// A new directory.
    Mkdir,
    /// A new symbolic or hard link, or what one names.
    Link,
    /// The end of one name.
    Unlink,
    /// The end of a directory.
    Rmdir,
}

/// By operation: its name in results, and what an error says of it.
const OPS: [(&str, &str); 12] = [
    ("open", "open"),
    ("create", "create"),
    ("read", "read"),
    ("write", "write"),
    ("close", "close"),
    ("set time", "set the time of"),
    ("list", "list"),
    ("stat", "look at"),
    ("mkdir", "create"),
    ("link", "link"),
    ("unlink", "remove"),
    ("rmdir", "remove"),
];

impl Op {
    /// Returns what an error says that was tried.
    pub(super) fn verb(self) -> &'static str {
        OPS[self as usize].1
    }
}

/// Where the time comes from: the machine, or a test.
pub(super) trait Clock {
    /// Returns the time now.
    fn now(&self) -> Instant;
}

/// The monotonic clock of the machine.
#[derive(Debug)]
pub(super) struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// Times operations from its making on.
#[derive(Debug)]
pub(super) struct OpTimer<C = Monotonic> {
    clock: C,
    clock_read_nanoseconds: u64,
    begun: Instant,
    last: Instant,
    /// True if nothing but an operation's end lies at `last`.
    is_chained: bool,
    clock_reads: u64,
    /// Operations that are still to be passed over, and how many were the last time.
    passes: u32,
    last_passes: u32,
    counts: [u64; OPS.len()],
    latencies: Vec<Latencies>,
}

impl OpTimer {
    /// Begins; `clock_read_nanoseconds` is what [`clock_read_cost`] says.
    pub(super) fn new(clock_read_nanoseconds: u64) -> Self {
        Self::with_clock(Monotonic, clock_read_nanoseconds)
    }
}

impl<C: Clock> OpTimer<C> {
    fn with_clock(clock: C, clock_read_nanoseconds: u64) -> Self {
        let latencies = vec![Latencies::default(); OPS.len()];
        let begun = clock.now();
        Self {
            clock,
            clock_read_nanoseconds,
            begun,
            last: begun,
            is_chained: false,
            clock_reads: 1,
            passes: 0,
            last_passes: 0,
            counts: [0; OPS.len()],
            latencies,
        }
    }

    /// Does an operation.
    pub(super) fn time<R>(&mut self, op: Op, operation: impl FnOnce() -> R) -> R {
        self.counts[op as usize] += 1;
        if self.passes > 0 && self.counts[op as usize] > FIRST {
            self.passes -= 1;
            self.is_chained = false;
            return operation();
        }
        if !self.is_chained {
            self.last = self.clock.now();
            self.clock_reads += 1;
        }
        let result = operation();
        let now = self.clock.now();
        self.clock_reads += 1;
        self.latencies[op as usize].add(nanoseconds(now - self.last));
        self.last = now;
        self.is_chained = true;
        let is_dear = self.spent() * PARTS > nanoseconds(now - self.begun);
        self.last_passes = if is_dear {
            (2 * self.last_passes + 1).min(MOST_PASSED)
        } else {
            0
        };
        self.passes = self.last_passes;
        result
    }

    /// Says that work of our own has been done since the last operation: the next one is not to count it.
    pub(super) fn unchain(&mut self) {
        self.is_chained = false;
    }

    fn spent(&self) -> u64 {
        self.clock_reads * self.clock_read_nanoseconds
    }

    /// Returns the time since the beginning, the times of the operations, and what is to be known of both.
    pub(super) fn finish(self) -> Measured {
        let real = self.clock.now() - self.begun;
        let (mut operations, mut latencies) = (BTreeMap::new(), BTreeMap::new());
        for (((name, _), count), found) in OPS.iter().zip(self.counts).zip(&self.latencies) {
            if count > 0 {
                operations.insert(*name, count);
                latencies.insert((*name).to_owned(), found.clone());
            }
        }
        let proof = [
            ("operations", json!(operations)),
            ("clock_read_nanoseconds", json!(self.clock_read_nanoseconds)),
            (
                "overhead_share",
                json!(share(self.spent(), nanoseconds(real))),
            ),
        ];
        let proof = proof.map(|(name, value)| (name.to_owned(), value)).into();
        Measured {
            real,
            latencies,
            proof,
        }
    }
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) real: Duration,
    pub(super) latencies: BTreeMap<String, Latencies>,
    /// The number of operations of each kind, timed or not, and the share of the time that clock reads took.
    pub(super) proof: BTreeMap<String, Value>,
}

#[expect(clippy::cast_precision_loss, reason = "a share with a few digits")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the nanoseconds that it takes to time one operation: a clock read and the count.
pub(super) fn clock_read_cost() -> u64 {
    const READS: u32 = 1000;
    let cost = || {
        let mut latencies = Latencies::default();
        let begun = Instant::now();
        let mut last = begun;
        for _ in 0..READS {
            let now = Instant::now();
            latencies.add(nanoseconds(now - last));
            last = now;
        }
        std::hint::black_box(&latencies);
        nanoseconds(begun.elapsed()) / u64::from(READS)
    };
    // The least of several: an interrupted loop says nothing about the clock.
    (0..9).map(|_| cost()).min().unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that a test moves on; reading it takes 20 ns. The clock of a machine may cost more than a short operation,
    /// and then no thinning keeps the price below a hundredth.
    struct Steps(std::cell::Cell<Instant>);

    impl Steps {
        fn new() -> Self {
            Self(std::cell::Cell::new(Instant::now()))
        }

        fn pass(&self, time: Duration) {
            self.0.set(self.0.get() + time);
        }
    }

    impl Clock for &Steps {
        fn now(&self) -> Instant {
            let now = self.0.get();
            self.pass(Duration::from_nanos(20));
            now
        }
    }

    #[test]
    fn every_operation_that_takes_a_while_is_timed() {
        let clock = Steps::new();
        let mut timer = OpTimer::with_clock(&clock, 20);
        for _ in 0..100 {
            timer.time(Op::Open, || clock.pass(Duration::from_micros(50)));
            timer.time(Op::Close, || clock.pass(Duration::from_micros(50)));
        }
        let measured = timer.finish();
        assert!(measured.latencies["open"].count() >= 100 - 1);
        assert_eq!(measured.proof["operations"]["close"], 100);
        assert!(measured.latencies["open"].quantile(0.5) >= 50_000);
    }

    #[test]
    fn of_short_operations_only_as_many_are_timed_as_cost_a_hundredth() {
        let clock = Steps::new();
        let mut timer = OpTimer::with_clock(&clock, 20);
        let done = 100_000;
        for _ in 0..done {
            timer.time(Op::Stat, || clock.pass(Duration::from_nanos(300)));
        }
        let measured = timer.finish();
        let timed = measured.latencies["stat"].count();
        assert_eq!(measured.proof["operations"]["stat"], done);
        assert!(timed > done / 100 && timed < done / 2, "{timed} of {done}");
        let overhead = &measured.proof["overhead_share"];
        assert!(overhead.as_f64().unwrap() <= 0.01, "{overhead}");
    }

    #[test]
    fn own_work_is_not_counted() {
        let clock = Steps::new();
        let mut timer = OpTimer::with_clock(&clock, 20);
        for _ in 0..15 {
            clock.pass(Duration::from_millis(2));
            timer.unchain();
            timer.time(Op::Write, || clock.pass(Duration::from_micros(20)));
        }
        let measured = timer.finish();
        assert!(measured.latencies["write"].quantile(1.0) < 25_000);
        assert!(measured.real >= Duration::from_millis(30));
    }
}
