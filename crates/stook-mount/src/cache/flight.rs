//! A block on its way: one thread fetches it, others wait for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use stook_sys::lock;

use super::block::Block;
use super::error::ReadError;

/// A block on its way.
#[derive(Debug, Default)]
pub(super) struct Flight {
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
    /// Whether anybody waits for it.
    is_wanted: AtomicBool,
}

/// How a flight ended.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Arrived(Block),
    Failed(ReadError),
    /// It was only tried ahead: a reader that waits fetches it itself.
    Abandoned,
}

impl Flight {
    /// Waits until it has ended.
    pub(super) fn wait(&self) -> Outcome {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            let waited = self.ended.wait(outcome);
            outcome = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says that a reader waits for it; the caller has the lock of its part of the table.
    pub(super) fn want(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self, outcome: Outcome) {
        *lock(&self.outcome) = Some(outcome);
        self.ended.notify_all();
    }
}
