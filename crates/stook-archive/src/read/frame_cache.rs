//! A few decoded frames, shared by all threads that read compressed volumes.
//!
//! ```text
//!   reader ──> here ──────────────────────────────> content, shared
//!        ──> nobody has it: Decoding ──> Here           decoded by the thread that asks first
//!        ──> Decoding: waits for that thread
//! ```
//! What fails leaves nothing: a reader that waited tries for itself, and gets the error. The frames that were used last stay.
//! Frames that were decoded ahead and that nobody has read yet are counted: half of the memory is for them.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use stook_timers::scope;
use stook_volume::{FrameDecoder, FrameError};

use super::decoders::Decoders;

use crate::memory::budget_bytes;
use crate::mutex::lock;

/// A frame: the number of its volume, and its own there.
pub(super) type Key = (u64, usize);

/// Memory of one decoder: its own, and a frame as it is stored.
#[derive(Debug)]
pub(super) struct Decoding {
    pub(super) decoder: FrameDecoder,
    pub(super) stored: Vec<u8>,
}

#[derive(Debug)]
enum Slot {
    Decoding,
    Here {
        content: Arc<Vec<u8>>,
        used: u64,
        /// It was decoded ahead, and nobody has read it.
        is_unread: bool,
    },
}

/// Why a frame is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Somebody reads it.
    Now,
    /// Somebody will read it.
    Ahead,
}

/// What a reader found of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Somebody has read it before.
    Again,
    /// It was decoded ahead, and this is its first reader.
    First,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<Key, Slot>,
    bytes: usize,
    unread_bytes: usize,
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
    /// `None` if every reader decodes for itself, side by side with others.
    pub(super) decoders: Option<Arc<Decoders>>,
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
            decoders: None,
        }
    }

    /// Returns a cache whose frames are decoded by so many threads at a time, ahead of readers if they are several.
    pub(crate) fn with_decoders(threads: NonZeroUsize) -> Self {
        Self {
            decoders: Some(Arc::new(Decoders::new(threads))),
            ..Self::default()
        }
    }

    /// Returns how many frames were decoded so far.
    pub(crate) fn decoded(&self) -> u64 {
        self.decoded.load(Ordering::Relaxed)
    }

    /// Returns the content of a frame if it is here.
    pub(super) fn peek(&self, key: Key) -> Option<(Arc<Vec<u8>>, Found)> {
        lock(&self.state).take(key)
    }

    /// Drops all frames that are here.
    pub(crate) fn clear(&self) {
        let mut state = lock(&self.state);
        while state.evict() {}
    }

    /// Returns true if a frame is here or being decoded; this is no use of it.
    pub(super) fn is_known(&self, key: Key) -> bool {
        lock(&self.state).slots.contains_key(&key)
    }

    /// Returns how many bytes may be decoded ahead now.
    pub(super) fn room_ahead(&self) -> usize {
        (self.most_bytes / 2).saturating_sub(lock(&self.state).unread_bytes)
    }

    /// Returns the content of a frame; `decode` appends it if it is not here, with nobody else doing so.
    pub(super) fn get(
        &self,
        key: Key,
        decode: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<(Arc<Vec<u8>>, Found)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(found) = state.take(key) {
                return Ok(found);
            }
            if !state.slots.contains_key(&key) {
                break;
            }
            let _scope = scope!("wait for a frame");
            let waited = self.arrived.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let content = self.decode(key, Wanted::Now, (state, decode))?;
        Ok((content, Found::Again))
    }

    /// Has a frame here that nobody has or decodes.
    pub(super) fn get_ahead(
        &self,
        key: Key,
        decode: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        let state = lock(&self.state);
        if !state.slots.contains_key(&key) {
            self.decode(key, Wanted::Ahead, (state, decode))?;
        }
        Ok(())
    }

    fn decode(
        &self,
        key: Key,
        wanted: Wanted,
        (mut state, decode): (
            MutexGuard<'_, State>,
            impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
        ),
    ) -> io::Result<Arc<Vec<u8>>> {
        state.slots.insert(key, Slot::Decoding);
        drop(state);
        // Given up on every way out, unless it arrives.
        let pending = Pending { cache: self, key };
        let mut content = Vec::new();
        decode(&mut content)?;
        let content = Arc::new(content);
        lock(&self.state).put(key, &content, wanted, self.most_bytes);
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
    fn take(&mut self, key: Key) -> Option<(Arc<Vec<u8>>, Found)> {
        self.clock += 1;
        match self.slots.get_mut(&key)? {
            Slot::Here {
                content,
                used,
                is_unread,
            } => {
                *used = self.clock;
                let found = match std::mem::take(is_unread) {
                    true => Found::First,
                    false => Found::Again,
                };
                if found == Found::First {
                    self.unread_bytes -= content.len();
                }
                Some((Arc::clone(content), found))
            }
            Slot::Decoding => None,
        }
    }

    fn put(&mut self, key: Key, content: &Arc<Vec<u8>>, wanted: Wanted, most_bytes: usize) {
        while self.bytes + content.len() > most_bytes && self.evict() {}
        self.bytes += content.len();
        let is_unread = wanted == Wanted::Ahead;
        if is_unread {
            self.unread_bytes += content.len();
        }
        let (content, used) = (Arc::clone(content), self.clock);
        self.slots.insert(
            key,
            Slot::Here {
                content,
                used,
                is_unread,
            },
        );
    }

    /// Drops the frame that was not used for longest; false if there is none.
    fn evict(&mut self) -> bool {
        let used = |(key, slot): (&Key, &Slot)| match slot {
            Slot::Here { used, .. } => Some((*used, *key)),
            Slot::Decoding => None,
        };
        let oldest = self.slots.iter().filter_map(used).min();
        let slot = oldest.and_then(|(_, key)| self.slots.remove(&key));
        if let Some(Slot::Here {
            content, is_unread, ..
        }) = &slot
        {
            self.bytes -= content.len();
            if *is_unread {
                self.unread_bytes -= content.len();
            }
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
                    assert_eq!(*cache.get((0, 5), decode).unwrap().0, [7]);
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
        assert_eq!(cache.get((2, 0), content(2, 5000)).unwrap().0.len(), 5000);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let cache = FrameCache::of_bytes(1000);
        let fails = |_: &mut Vec<u8>| Err(io::Error::other("no"));
        assert!(cache.get((0, 0), fails).is_err());
        assert_eq!(*cache.get((0, 0), content(3, 2)).unwrap().0, [3, 3]);
    }

    #[test]
    fn what_is_decoded_ahead_counts_until_it_is_read() {
        let cache = FrameCache::of_bytes(1000);
        cache.get_ahead((0, 0), content(1, 200)).unwrap();
        cache.get_ahead((0, 1), content(1, 200)).unwrap();
        assert_eq!(cache.room_ahead(), 100);
        let found = |number| cache.peek((0, number)).map(|(_, found)| found);
        assert_eq!(found(0), Some(Found::First));
        assert_eq!(found(0), Some(Found::Again));
        assert_eq!(cache.room_ahead(), 300);
        // Nor does what makes room for others.
        for number in 10..20 {
            cache.get((0, number), content(1, 300)).unwrap();
        }
        assert_eq!((found(1), cache.room_ahead()), (None, 500));
    }
}
