//! What was asked of a mount, and how long the answers took.
//!
//! A latency falls into one of four steps for each power of two of nanoseconds, up to 18 minutes: a slow read is not lost in a
//! last step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use stook_timers::{Callsite, Scope};

/// What the kernel asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Lookup,
    Getattr,
    Readlink,
    Read,
    Readdir,
    Getxattr,
    Listxattr,
    Lseek,
    Statfs,
}

const OPERATIONS: [(Operation, &str); 9] = [
    (Operation::Lookup, "lookup"),
    (Operation::Getattr, "getattr"),
    (Operation::Readlink, "readlink"),
    (Operation::Read, "read"),
    (Operation::Readdir, "readdir"),
    (Operation::Getxattr, "getxattr"),
    (Operation::Listxattr, "listxattr"),
    (Operation::Lseek, "lseek"),
    (Operation::Statfs, "statfs"),
];

/// Scopes of what workers do, in the same order. Of directories only those with attributes have to wait.
static SCOPES: [Callsite; OPERATIONS.len()] = [
    Callsite::new("mount.lookup"),
    Callsite::new("mount.getattr"),
    Callsite::new("mount.readlink"),
    Callsite::new("mount.read"),
    Callsite::new("mount.readdirplus"),
    Callsite::new("mount.getxattr"),
    Callsite::new("mount.listxattr"),
    Callsite::new("mount.lseek"),
    Callsite::new("mount.statfs"),
];

/// Steps for each power of two.
const FINE: u32 = 4;

/// Powers of two of nanoseconds.
const POWERS: u32 = 40;

const STEPS: usize = (FINE * POWERS) as usize;

#[derive(Debug)]
pub(crate) struct Statistics {
    begun: Instant,
    operations: [Counters; OPERATIONS.len()],
    open: AtomicU64,
    read_bytes: AtomicU64,
    /// Requests that would have waited, and went to a worker.
    waited: AtomicU64,
    unreadable: AtomicU64,
}

#[derive(Debug)]
struct Counters {
    nanoseconds: AtomicU64,
    longest: AtomicU64,
    steps: [AtomicU64; STEPS],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            nanoseconds: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            steps: [const { AtomicU64::new(0) }; STEPS],
        }
    }
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            operations: Default::default(),
            open: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            unreadable: AtomicU64::new(0),
        }
    }
}

/// A request that has come; it is answered when this is dropped.
#[derive(Debug)]
pub(crate) struct Call {
    statistics: Arc<Statistics>,
    operation: Operation,
    begun: Instant,
}

impl Call {
    pub(crate) fn begin(statistics: &Arc<Statistics>, operation: Operation) -> Self {
        statistics.open.fetch_add(1, Ordering::Relaxed);
        Self {
            statistics: Arc::clone(statistics),
            operation,
            begun: Instant::now(),
        }
    }

    /// Enters the scope of the operation, on the thread of a worker.
    pub(crate) fn scope(&self) -> Scope {
        Scope::enter(&SCOPES[self.operation as usize])
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let latency = self.begun.elapsed();
        self.statistics.open.fetch_sub(1, Ordering::Relaxed);
        self.statistics.operations[self.operation as usize].add(latency);
    }
}

impl Counters {
    fn add(&self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.longest.fetch_max(nanoseconds, Ordering::Relaxed);
        self.steps[step_of(nanoseconds)].fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> Latencies {
        let steps: Vec<u64> = self
            .steps
            .iter()
            .map(|step| step.load(Ordering::Relaxed))
            .collect();
        let calls: u64 = steps.iter().sum();
        let longest = self.longest.load(Ordering::Relaxed);
        let quantile = |share: u64| {
            let wanted = (calls * share).div_ceil(1000).max(1);
            let mut passed = 0;
            let step = steps.iter().position(|count| {
                passed += count;
                passed >= wanted
            });
            step.map_or(0, |step| end_of(step).min(longest))
        };
        Latencies {
            calls,
            total_ns: self.nanoseconds.load(Ordering::Relaxed),
            p50_ns: quantile(500),
            p90_ns: quantile(900),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
            max_ns: longest,
        }
    }
}

/// A step for each quarter of a power of two.
fn step_of(nanoseconds: u64) -> usize {
    let nanoseconds = nanoseconds.max(u64::from(FINE));
    let power = nanoseconds.ilog2();
    let quarter = (nanoseconds >> (power - 2)) & 3;
    let step = u64::from((power - 2) * FINE) + quarter;
    usize::try_from(step).unwrap_or(STEPS).min(STEPS - 1)
}

/// Returns the last nanosecond of a step.
fn end_of(step: usize) -> u64 {
    let (power, quarter) = (step as u64 / 4 + 2, step as u64 % 4);
    (1 << power) + ((quarter + 1) << (power - 2)) - 1
}

impl Statistics {
    pub(crate) fn count_waited(&self) {
        self.waited.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Requests {
        let operations = OPERATIONS.iter().zip(&self.operations);
        let operations = operations
            .map(|((_, name), counters)| Operations {
                name,
                latencies: counters.read(),
            })
            .collect();
        Requests {
            seconds: self.begun.elapsed().as_secs_f64(),
            open_requests: self.open.load(Ordering::Relaxed),
            waited: self.waited.load(Ordering::Relaxed),
            unreadable: self.unreadable.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            operations,
        }
    }
}

/// What was asked so far.
#[derive(Debug, Serialize)]
pub(crate) struct Requests {
    /// Since it was mounted.
    pub(crate) seconds: f64,
    /// That are not answered yet.
    pub(crate) open_requests: u64,
    /// That would have waited, and were left to a worker.
    pub(crate) waited: u64,
    /// That were answered with `EIO`.
    pub(crate) unreadable: u64,
    /// Bytes of content that were given out.
    pub(crate) read_bytes: u64,
    pub(crate) operations: Vec<Operations>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Operations {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) latencies: Latencies,
}

/// From the arrival of a request to its answer.
#[derive(Debug, Serialize)]
pub(crate) struct Latencies {
    pub(crate) calls: u64,
    pub(crate) total_ns: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p90_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) p999_ns: u64,
    pub(crate) max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_quarter_of_a_power() {
        let counters = Counters::default();
        for microseconds in 1..=1000 {
            counters.add(Duration::from_micros(microseconds));
        }
        let found = counters.read();
        assert_eq!((found.calls, found.max_ns), (1000, 1_000_000));
        for (quantile, exact) in [(found.p50_ns, 500_000), (found.p99_ns, 990_000)] {
            assert!(quantile >= exact && quantile <= exact * 5 / 4, "{quantile}");
        }
    }

    #[test]
    fn steps_follow_each_other() {
        for step in 0..STEPS - 1 {
            assert_eq!(step_of(end_of(step)), step);
            assert_eq!(step_of(end_of(step) + 1), step + 1);
        }
        assert_eq!(step_of(u64::MAX), STEPS - 1);
    }

    #[test]
    fn operations_are_listed_in_their_order() {
        for (number, (operation, _)) in OPERATIONS.iter().enumerate() {
            assert_eq!(*operation as usize, number);
        }
    }
}
