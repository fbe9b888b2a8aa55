//! How often each kind of request came, and how many were held back at once.

use super::options::{OPS, Op};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters that the threads of the server share.
#[derive(Debug, Default)]
pub(super) struct Counters {
    ops: [AtomicU64; OPS],
    most_in_flight: AtomicUsize,
}

impl Counters {
    pub(super) fn count(&self, op: Op, times: u64) {
        self.ops[op as usize].fetch_add(times, Ordering::Relaxed);
    }

    pub(super) fn in_flight(&self, requests: usize) {
        self.most_in_flight.fetch_max(requests, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Statistics {
        let mut counts = [0; OPS];
        for (count, counter) in counts.iter_mut().zip(&self.ops) {
            *count = counter.load(Ordering::Relaxed);
        }
        Statistics {
            counts,
            most_in_flight: self.most_in_flight.load(Ordering::Relaxed),
        }
    }
}

/// What a slow file system was asked so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    counts: [u64; OPS],
    most_in_flight: usize,
}

impl Statistics {
    /// Returns how many requests of this kind came; for [`Op::Forget`], how many inodes were dropped.
    #[must_use]
    pub fn count(&self, op: Op) -> u64 {
        self.counts[op as usize]
    }

    /// Returns how many requests came that somebody could wait for: all but [`Op::Forget`].
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.counts.iter().sum::<u64>() - self.count(Op::Forget)
    }

    /// Returns the greatest number of requests that were being served at once.
    ///
    /// Requests without latency are answered on the spot and do not count, nor do those that wait for a slot.
    #[must_use]
    pub fn most_in_flight(&self) -> usize {
        self.most_in_flight
    }

    /// Returns one JSON object: `requests`, `most_in_flight`, and every kind under `ops`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let ops: serde_json::Map<String, serde_json::Value> = Op::ALL
            .iter()
            .map(|op| (op.name().to_owned(), self.count(*op).into()))
            .collect();
        serde_json::json!({
            "requests": self.requests(),
            "most_in_flight": self.most_in_flight,
            "ops": ops,
        })
        .to_string()
    }
}
