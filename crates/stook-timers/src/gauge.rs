//! Gauges: numbers that change now and then, such as that of the workers, with the time of each change.
//!
//! Unlike scopes they keep every sample, so they are for what happens some times a second at most.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::report::Gauge;
use crate::{clock, node::Callsite, position};

static SAMPLES: Mutex<Samples> = Mutex::new(Samples {
    begun: 0,
    all: Vec::new(),
    dropped: 0,
});

#[derive(Debug)]
struct Samples {
    /// Reading of the clock when recording began.
    begun: u64,
    all: Vec<Sample>,
    dropped: u64,
}

#[derive(Debug)]
struct Sample {
    path: Vec<&'static Callsite>,
    name: &'static str,
    at: u64,
    value: u64,
}

/// Samples kept, of all gauges together; later ones are counted as dropped.
const MOST_SAMPLES: usize = 100_000;

/// Records that a number is `value` from now on, at the calling thread's call path.
///
/// # Cost
/// One relaxed load when recording is off; a lock and some copying when it is on.
pub fn gauge(name: &'static str, value: u64) {
    if !crate::is_enabled() {
        return;
    }
    let (path, _) = position::path();
    let at = clock::now();
    let mut samples = lock();
    if samples.all.len() < MOST_SAMPLES {
        samples.all.push(Sample {
            path,
            name,
            at,
            value,
        });
    } else {
        samples.dropped += 1;
    }
}

/// Forgets all samples; times count from now.
pub(crate) fn begin_anew() {
    *lock() = Samples {
        begun: clock::now(),
        all: Vec::new(),
        dropped: 0,
    };
}

/// Returns the reading of the clock when recording began, from which times count.
pub(crate) fn begun() -> u64 {
    lock().begun
}

/// Returns all gauges, in the order of their first samples, and how many samples were dropped.
pub(crate) fn collect() -> (Vec<Gauge>, u64) {
    let samples = lock();
    let mut gauges: Vec<Gauge> = Vec::new();
    for sample in &samples.all {
        let path = || sample.path.iter().map(|callsite| callsite.name());
        let value = (clock::nanoseconds(samples.begun, sample.at), sample.value);
        let is_same = |gauge: &&mut Gauge| {
            gauge.name == sample.name && gauge.path.iter().map(String::as_str).eq(path())
        };
        match gauges.iter_mut().find(is_same) {
            Some(gauge) => gauge.samples.push(value),
            None => gauges.push(Gauge {
                path: path().map(str::to_owned).collect(),
                name: sample.name.to_owned(),
                samples: vec![value],
            }),
        }
    }
    (gauges, samples.dropped)
}

fn lock() -> MutexGuard<'static, Samples> {
    SAMPLES.lock().unwrap_or_else(PoisonError::into_inner)
}
