//! A few decoded frames, shared by all threads that read compressed volumes.
//!
//! ```text
//!   reader ──> here ──────────────────────────────> content, shared
//!        ──> nobody has it: Decoding ──> Here           decoded by the thread that asks first
//!        ──> Decoding: waits for that thread
//! ```
//! What fails leaves nothing: a reader that waited tries for itself, and gets the error. The frames that were used last stay.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use stook_volume::{FrameDecoder, FrameError};

use crate::memory::budget_bytes;
use crate::mutex::lock;

/// A frame: the number of its volume, and its own there.
type Key = (u64, usize);

/// Memory of one decoder: its own, and a frame as it is stored.
#[derive(Debug)]
pub(super) struct Decoding {
    pub(super) decoder: FrameDecoder,
    pub(super) stored: Vec<u8>,
}

#[derive(Debug)]
enum Slot {
    Decoding,
    Here { content: Arc<Vec<u8>>, used: u64 },
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<Key, Slot>,
    bytes: usize,
    /// Counts uses.
    clock: u64,
}

/// Decoded frames of all volumes of an archive.
#[derive(Debug)]
pub(crate) struct FrameCache {
    state: Mutex<State>,
    arrived: Condvar,
    idle: Mutex<Vec<Decoding>>,
    most_bytes: usize,
    decoded: AtomicU64,
}

impl Default for FrameCache {
    fn default() -> Self {
        Self::of_bytes(budget_bytes() / 2)
    }
}

impl FrameCache {
    /// Returns a cache that keeps so many bytes of content.
    fn of_bytes(most_bytes: usize) -> Self {
        Self {
            state: Mutex::default(),
            arrived: Condvar::new(),
            idle: Mutex::default(),
            most_bytes,
            decoded: AtomicU64::new(0),
        }
    }

    /// Returns how many frames were decoded so far.
    pub(crate) fn decoded(&self) -> u64 {
        self.decoded.load(Ordering::Relaxed)
    }

    /// Returns the content of a frame if it is here.
    pub(super) fn peek(&self, key: Key) -> Option<Arc<Vec<u8>>> {
        lock(&self.state).take(key)
    }

    /// Drops all frames that are here.
    pub(crate) fn clear(&self) {
        let mut state = lock(&self.state);
        while state.evict() {}
    }

    /// Returns the content of a frame; `decode` appends it if it is not here, with nobody else doing so.
    pub(super) fn get(
        &self,
        key: Key,
        decode: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<Arc<Vec<u8>>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(content) = state.take(key) {
                return Ok(content);
            }
            if !state.slots.contains_key(&key) {
                break;
            }
            let waited = self.arrived.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.slots.insert(key, Slot::Decoding);
        drop(state);
        // Given up on every way out, unless it arrives.
        let pending = Pending { cache: self, key };
        let mut content = Vec::new();
        decode(&mut content)?;
        let content = Arc::new(content);
        lock(&self.state).put(key, &content, self.most_bytes);
        drop(pending);
        Ok(content)
    }

    /// Decodes with memory that is used again.
    pub(super) fn with_decoder<T>(
        &self,
        decode: impl FnOnce(&mut Decoding) -> Result<T, FrameError>,
    ) -> Result<T, FrameError> {
        let idle = lock(&self.idle).pop();
        let mut decoding = match idle {
            Some(decoding) => decoding,
            None => Decoding {
                decoder: FrameDecoder::new()?,
                stored: Vec::new(),
            },
        };
        self.decoded.fetch_add(1, Ordering::Relaxed);
        let result = decode(&mut decoding);
        lock(&self.idle).push(decoding);
        result
    }
}

impl State {
    fn take(&mut self, key: Key) -> Option<Arc<Vec<u8>>> {
        self.clock += 1;
        match self.slots.get_mut(&key)? {
            Slot::Here { content, used } => {
                *used = self.clock;
                Some(Arc::clone(content))
            }
            Slot::Decoding => None,
        }
    }

    fn put(&mut self, key: Key, content: &Arc<Vec<u8>>, most_bytes: usize) {
        while self.bytes + content.len() > most_bytes && self.evict() {}
        self.bytes += content.len();
        let (content, used) = (Arc::clone(content), self.clock);
        self.slots.insert(key, Slot::Here { content, used });
    }

    /// Drops the frame that was not used for longest; false if there is none.
    fn evict(&mut self) -> bool {
        let used = |(key, slot): (&Key, &Slot)| match slot {
            Slot::Here { used, .. } => Some((*used, *key)),
            Slot::Decoding => None,
        };
        let oldest = self.slots.iter().filter_map(used).min();
        let slot = oldest.and_then(|(_, key)| self.slots.remove(&key));
        if let Some(Slot::Here { content, .. }) = &slot {
            self.bytes -= content.len();
        }
        slot.is_some()
    }
}

/// A frame that is being decoded.
struct Pending<'a> {
    cache: &'a FrameCache,
    key: Key,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.cache.state);
        if matches!(state.slots.get(&self.key), Some(Slot::Decoding)) {
            state.slots.remove(&self.key);
        }
        drop(state);
        self.cache.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn content(byte: u8, len: usize) -> impl FnOnce(&mut Vec<u8>) -> io::Result<()> {
        move |content| {
            content.resize(len, byte);
            Ok(())
        }
    }

    #[test]
    fn a_frame_is_decoded_once_however_many_ask() {
        let (cache, decodes) = (FrameCache::of_bytes(1000), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let decode = |content: &mut Vec<u8>| {
                        decodes.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                        content.push(7);
                        Ok(())
                    };
                    assert_eq!(*cache.get((0, 5), decode).unwrap(), [7]);
                });
            }
        });
        assert_eq!(decodes.into_inner(), 1);
    }

    #[test]
    fn what_was_used_last_stays_and_memory_is_bounded() {
        let cache = FrameCache::of_bytes(1000);
        for number in 0..10 {
            cache.get((0, number), content(1, 300)).unwrap();
            assert!(cache.peek((0, 0)).is_some(), "{number}");
        }
        assert!(cache.peek((0, 9)).is_some());
        assert!(cache.peek((0, 5)).is_none());
        assert!(cache.peek((1, 0)).is_none());
        assert_eq!(lock(&cache.state).bytes, 900);
        // Longer than all that it keeps: it is given out all the same.
        assert_eq!(cache.get((2, 0), content(2, 5000)).unwrap().len(), 5000);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let cache = FrameCache::of_bytes(1000);
        let fails = |_: &mut Vec<u8>| Err(io::Error::other("no"));
        assert!(cache.get((0, 0), fails).is_err());
        assert_eq!(*cache.get((0, 0), content(3, 2)).unwrap(), [3, 3]);
    }
}
