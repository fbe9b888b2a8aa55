//! Buffers that are used again: fresh memory costs a page fault for every 4 KiB, which is a tenth of
//! the time of a `create` of small files.

use std::sync::Mutex;

use crate::memory::budget_bytes;
use crate::mutex::lock;

/// Buffers up to this length serve any smaller need.
const SMALL: usize = 256 << 10;

/// Where memory is short, as much as the budget is kept: what goes back to the allocator stays with the
/// thread that had it, and there are many.
const LEAST_KEPT: usize = 16 << 20;

/// Buffers that wait for their next use.
#[derive(Debug)]
pub(crate) struct Buffers {
    free: Mutex<Free>,
    /// Bytes kept; more are given back to the system.
    limit: usize,
}

#[derive(Debug, Default)]
struct Free {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            free: Mutex::default(),
            limit: (budget_bytes() / 2).max(budget_bytes().min(LEAST_KEPT)),
        }
    }
}

impl Buffers {
    /// Returns an empty buffer with room for `len` bytes, and not for many more: those would be held, and not
    /// be counted.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let mut free = self.lock();
        let fitting = len..=2 * len.max(SMALL);
        let found = free
            .buffers
            .iter()
            .rposition(|free| fitting.contains(&free.capacity()));
        match found {
            Some(place) => {
                let buffer = free.buffers.swap_remove(place);
                free.bytes -= buffer.capacity();
                buffer
            }
            // Rounded, so that it fits the next need, too.
            None => Vec::with_capacity(len.next_multiple_of(SMALL)),
        }
    }

    /// Takes a buffer back.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        let mut free = self.lock();
        if free.bytes + buffer.capacity() <= self.limit && buffer.capacity() > 0 {
            buffer.clear();
            free.bytes += buffer.capacity();
            free.buffers.push(buffer);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Free> {
        lock(&self.free)
    }
}
