//! The log of single calls of one thread at a time: the first ones, by their beginning.
//!
//! A place is taken when a scope begins, not when it ends, so that the long scopes around many short ones
//! are never those that find no room. The log is part of the thread's tree and goes with it to the next
//! thread; hence each event has the number of its thread.

use crate::node::Callsite;

/// Events kept for the threads of one tree; later ones are counted as dropped. At 40 bytes each this
/// bounds a thread to 1.3 MB, and its part of the output to 2 MB.
pub(crate) const MOST_EVENTS: usize = 20_000;

/// One call, in ticks of the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) callsite: &'static Callsite,
    /// The thread's number since the last reset, from 1.
    pub(crate) thread: usize,
    pub(crate) start: u64,
    /// `None` while it runs.
    pub(crate) end: Option<u64>,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) all: Vec<Event>,
    pub(crate) dropped: u64,
}

impl Events {
    pub(crate) const EMPTY: Self = Self {
        all: Vec::new(),
        dropped: 0,
    };

    /// Adds the beginning of a call; returns its place in the log, which is outside of it if there is no room.
    pub(crate) fn begin(&mut self, callsite: &'static Callsite, thread: usize, start: u64) -> u64 {
        let place = self.all.len();
        if place < MOST_EVENTS {
            self.all.push(Event {
                callsite,
                thread,
                start,
                end: None,
            });
        } else {
            self.dropped += 1;
        }
        place as u64
    }

    /// Adds the end of the call that began at `start`, unless a reset has removed it. The place is not known of
    /// a call that ends after its path was entered anew.
    pub(crate) fn end(&mut self, place: Option<u64>, start: u64, end: u64) {
        let is_it = |event: &&mut Event| event.start == start;
        let event = match place.and_then(|place| usize::try_from(place).ok()) {
            Some(place) => self.all.get_mut(place).filter(is_it),
            None => self.all.iter_mut().find(is_it),
        };
        if let Some(event) = event {
            event.end = Some(end);
        }
    }

    /// Ends all calls still running.
    pub(crate) fn end_all(&mut self, end: u64) {
        for event in &mut self.all {
            event.end.get_or_insert(end);
        }
    }
}
