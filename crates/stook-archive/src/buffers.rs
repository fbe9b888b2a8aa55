//! Buffers that are used again: fresh memory costs a page fault for every 4 KiB, which is a tenth of
//! the time of a `create` of small files.

use std::sync::{Mutex, PoisonError};

/// Buffers that wait for their next use.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

/// Buffers kept; more are given back to the system.
const MOST_FREE: usize = 16;

/// Largest buffer kept.
const LARGEST: usize = 16 << 20;

impl Buffers {
    /// Returns an empty buffer with room for `len` bytes.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let mut buffer = self.lock().pop().unwrap_or_default();
        buffer.reserve(len);
        buffer
    }

    /// Takes a buffer back.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        let mut free = self.lock();
        if free.len() < MOST_FREE && (1..=LARGEST).contains(&buffer.capacity()) {
            buffer.clear();
            free.push(buffer);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
