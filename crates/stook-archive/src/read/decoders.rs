//! How many frames are decoded at a time, and the threads that decode ahead of readers.
//!
//! ```text
//!   reader ──frame that it needs──────────────> in_turn ──> content
//!      └─────frames behind it──> jobs ──> helpers ──> in_turn
//! ```
//! A helper begins when there is a frame to decode, and ends when there was none for a while. Helpers are more than turns, since
//! some of them wait for the bytes of their frames.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use stook_timers::scope;

use crate::mutex::lock;

type Job = Box<dyn FnOnce() + Send>;

/// Helpers for each turn.
const HELPERS_A_TURN: usize = 4;

/// How long a helper without a job stays.
const IDLE: Duration = Duration::from_secs(1);

/// Frames that wait for a helper; there is no room in memory for as many.
const MOST_JOBS: usize = 256;

pub(super) struct Decoders {
    /// Frames that are decoded at a time, at most.
    threads: usize,
    state: Mutex<State>,
    turn_ended: Condvar,
    job_added: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    helpers: usize,
    idle: usize,
    turns: usize,
}

impl std::fmt::Debug for Decoders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoders")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Decoders {
    pub(super) fn new(threads: NonZeroUsize) -> Self {
        Self {
            threads: threads.get(),
            state: Mutex::default(),
            turn_ended: Condvar::new(),
            job_added: Condvar::new(),
        }
    }

    /// Returns how many frames are decoded ahead of one reader: with one thread none, since that has the next reader to serve.
    pub(super) fn frames_ahead(&self) -> usize {
        match self.threads {
            1 => 0,
            threads => 2 * threads,
        }
    }

    /// Decodes when fewer than so many others do.
    pub(super) fn in_turn<T>(&self, decode: impl FnOnce() -> T) -> T {
        {
            let _scope = scope!("wait for a decoder");
            let mut state = lock(&self.state);
            while state.turns >= self.threads {
                let waited = self.turn_ended.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            state.turns += 1;
        }
        let _turn = Turn(self);
        decode()
    }

    /// Has a helper do this, unless too much waits for them.
    pub(super) fn submit(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.state);
        if state.jobs.len() >= MOST_JOBS {
            return;
        }
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() || state.helpers >= self.threads * HELPERS_A_TURN {
            self.job_added.notify_one();
            return;
        }
        state.helpers += 1;
        drop(state);
        let decoders = Arc::clone(self);
        let helper = thread::Builder::new().name("stook-decode".to_owned());
        if helper.spawn(move || decoders.help()).is_err() {
            // Readers decode what they need.
            let mut state = lock(&self.state);
            state.helpers -= 1;
            state.jobs.clear();
        }
    }

    fn help(&self) {
        while let Some(job) = self.next_job() {
            let _scope = scope!("decode ahead");
            job();
        }
    }

    /// Returns what is to be done; the helper that gets nothing has ended.
    fn next_job(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        if state.jobs.is_empty() {
            state.idle += 1;
            let is_empty = |state: &mut State| state.jobs.is_empty();
            let waited = self.job_added.wait_timeout_while(state, IDLE, is_empty);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
        let job = state.jobs.pop_front();
        if job.is_none() {
            state.helpers -= 1;
        }
        job
    }
}

struct Turn<'d>(&'d Decoders);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).turns -= 1;
        self.0.turn_ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn no_more_decode_at_a_time_than_there_are_turns() {
        let decoders = Arc::new(Decoders::new(NonZeroUsize::new(2).unwrap()));
        assert_eq!(decoders.frames_ahead(), 4);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (sender, receiver) = channel();
        for number in 0..40_u64 {
            let (now, most, sender) = (Arc::clone(&now), Arc::clone(&most), sender.clone());
            let turns = Arc::clone(&decoders);
            decoders.submit(move || {
                turns.in_turn(|| {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(1));
                    now.fetch_sub(1, Ordering::SeqCst);
                });
                sender.send(number).unwrap();
            });
        }
        assert_eq!(receiver.iter().take(40).sum::<u64>(), 780);
        assert_eq!(most.load(Ordering::SeqCst), 2);
        let one = Decoders::new(NonZeroUsize::MIN);
        assert_eq!(one.frames_ahead(), 0);
    }
}
