//! Bytes that workers may reserve together.

use std::sync::{Condvar, Mutex, PoisonError};

use stook_sys::lock;

use crate::activity::idle;

/// A number of bytes to be shared by workers.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    reserved: Mutex<usize>,
    freed: Condvar,
}

/// A part of a [`Budget`], given back when this is dropped.
#[derive(Debug)]
#[must_use = "the bytes are given back where this is dropped"]
pub struct Reserved<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl Budget {
    /// Returns a budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self {
            limit: bytes,
            reserved: Mutex::new(0),
            freed: Condvar::new(),
        }
    }

    /// Waits until the bytes are free, and takes them. More than the whole budget is let in when nobody
    /// else holds any. The caller should hold nothing that others wait for.
    pub fn reserve(&self, bytes: usize) -> Reserved<'_> {
        self.take(bytes);
        Reserved {
            budget: self,
            bytes,
        }
    }

    /// As [`Self::reserve`], for bytes that another thread gives back by [`Self::give`].
    pub fn take(&self, bytes: usize) {
        let reserved = lock(&self.reserved);
        let is_full = |reserved: &mut usize| *reserved > 0 && *reserved + bytes > self.limit;
        let _idle = idle();
        let waited = self.freed.wait_while(reserved, is_full);
        *waited.unwrap_or_else(PoisonError::into_inner) += bytes;
    }

    /// Gives bytes back that were taken.
    pub fn give(&self, bytes: usize) {
        *lock(&self.reserved) -= bytes;
        self.freed.notify_all();
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Jobs, WorkerPool};

    #[test]
    fn workers_together_hold_no_more() {
        let budget = Budget::new(100);
        let (held, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        WorkerPool::new("test", Jobs::Fixed(8)).for_each(0..200, |item| {
            let bytes = if item == 7 { 500 } else { 30 };
            let reserved = budget.reserve(bytes);
            let now = held.fetch_add(bytes, Ordering::SeqCst) + bytes;
            if bytes == 500 {
                assert_eq!(now, 500, "alone");
            } else {
                most.fetch_max(now, Ordering::SeqCst);
            }
            std::thread::yield_now();
            held.fetch_sub(bytes, Ordering::SeqCst);
            drop(reserved);
        });
        assert!(most.into_inner() <= 100);
    }
}
