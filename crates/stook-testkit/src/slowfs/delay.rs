//! Holds answers back until they are due, any number of them, on one thread.
//!
//! The work of a request is done by the thread that took it; what is left is a closure that sends the answer.
//!
//! ```text
//! readers ──answer──> serving: heap by due time, at most `slots` ──> timer thread sends what is due
//!            │           ^
//!            └──> waiting: in order of arrival; the slot of a sent answer goes to the first
//! ```
//!
//! A slot that is free at the time T, which is noticed a little later, serves the next request from T on. So a server
//! with one slot and 1 ms gives 1000 answers a second, not 1000 less the time that waking up takes. An answer never
//! comes too early; how late it is, is up to the scheduler.

use super::statistics::Counters;
use rustix::thread::set_current_timer_slack;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::io;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Sends one answer.
type Sending = Box<dyn FnOnce() + Send>;

/// The queue and its thread; dropping it sends at once what is left.
pub(super) struct Delay {
    shared: Arc<Shared>,
    timer: Option<JoinHandle<()>>,
}

impl fmt::Debug for Delay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Delay").finish_non_exhaustive()
    }
}

struct Shared {
    state: Mutex<State>,
    /// There is a new first answer, or an end.
    changed: Condvar,
}

struct State {
    serving: BinaryHeap<Reverse<Answer>>,
    waiting: VecDeque<Request>,
    slots: usize,
    arrivals: u64,
    is_closed: bool,
    counters: Arc<Counters>,
}

struct Request {
    arrived: Instant,
    latency: Duration,
    sending: Sending,
}

struct Answer {
    due: Instant,
    /// Makes answers that are due together go out in order of arrival.
    number: u64,
    sending: Sending,
}

impl Answer {
    fn key(&self) -> (Instant, u64) {
        (self.due, self.number)
    }
}

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Answer {}

impl PartialOrd for Answer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Answer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Delay {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub(super) fn new(slots: Option<NonZeroUsize>, counters: Arc<Counters>) -> io::Result<Self> {
        let state = State {
            serving: BinaryHeap::new(),
            waiting: VecDeque::new(),
            slots: slots.map_or(usize::MAX, NonZeroUsize::get),
            arrivals: 0,
            is_closed: false,
            counters,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let of_timer = Arc::clone(&shared);
        let timer = thread::Builder::new()
            .name("slowfs-timer".to_owned())
            .spawn(move || of_timer.run())?;
        Ok(Self {
            shared,
            timer: Some(timer),
        })
    }

    /// Calls `sending` when a request that arrived then has taken its latency: now if that is zero, else later.
    pub(super) fn answer(
        &self,
        arrived: Instant,
        latency: Duration,
        sending: impl FnOnce() + Send + 'static,
    ) {
        if latency.is_zero() {
            sending();
            return;
        }
        let request = Request {
            arrived,
            latency,
            sending: Box::new(sending),
        };
        let is_first = self.shared.lock().take(request);
        if is_first {
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_one();
        if let Some(timer) = self.timer.take() {
            // A panic of the timer has been printed; there is nobody left to answer.
            let _ = timer.join();
        }
    }
}

impl State {
    /// Tells whether the request is now the first to be answered.
    fn take(&mut self, request: Request) -> bool {
        if self.serving.len() >= self.slots {
            self.waiting.push_back(request);
            return false;
        }
        let arrived = request.arrived;
        self.serve(request, arrived)
    }

    fn serve(&mut self, request: Request, from: Instant) -> bool {
        self.arrivals += 1;
        let answer = Answer {
            due: from + request.latency,
            number: self.arrivals,
            sending: request.sending,
        };
        let is_first = self
            .serving
            .peek()
            .is_none_or(|Reverse(first)| answer < *first);
        self.serving.push(Reverse(answer));
        self.counters.in_flight(self.serving.len());
        is_first
    }

    /// Moves what is due at `now` to `ready`, and lets the next ones have the slots.
    fn collect(&mut self, now: Instant, ready: &mut Vec<Sending>) {
        while self
            .serving
            .peek()
            .is_some_and(|Reverse(first)| first.due <= now || self.is_closed)
        {
            let Some(Reverse(answer)) = self.serving.pop() else {
                return;
            };
            ready.push(answer.sending);
            if let Some(next) = self.waiting.pop_front() {
                let from = answer.due.max(next.arrived);
                self.serve(next, from);
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        // Best effort: the usual 50 us of slack are 5 % of a latency of 1 ms.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let mut ready = Vec::new();
        while self.wait(&mut ready) {
            for sending in ready.drain(..) {
                sending();
            }
        }
    }

    /// Sleeps until something is due; `false` when nothing will ever be.
    fn wait(&self, ready: &mut Vec<Sending>) -> bool {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            state.collect(now, ready);
            if !ready.is_empty() {
                return true;
            }
            state = match state.serving.peek() {
                None if state.is_closed => return false,
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(Reverse(first)) => {
                    let left = first.due - now;
                    let woken = self.changed.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Delay;
    use crate::slowfs::statistics::Counters;
    use std::num::NonZeroUsize;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn answers_come_in_order_of_their_time_and_never_early() {
        let delay = Delay::new(None, Arc::default()).unwrap();
        let (sender, receiver) = channel();
        let start = Instant::now();
        for latency in [30, 10, 20, 10, 0] {
            let sender = sender.clone();
            delay.answer(start, latency * MS, move || {
                assert!(start.elapsed() >= latency * MS);
                sender.send(latency).unwrap();
            });
        }
        let order: Vec<u32> = receiver.iter().take(5).collect();
        assert_eq!(order, [0, 10, 10, 20, 30]);
    }

    #[test]
    fn slots_limit_what_is_served_at_once() {
        let counters = Arc::new(Counters::default());
        let delay = Delay::new(NonZeroUsize::new(2), Arc::clone(&counters)).unwrap();
        let (sender, receiver) = channel();
        let start = Instant::now();
        for number in 0..10_u32 {
            let sender = sender.clone();
            delay.answer(start, 5 * MS, move || {
                sender.send((number, start.elapsed())).unwrap();
            });
        }
        for expected in 0..10 {
            let (number, elapsed) = receiver.recv().unwrap();
            assert_eq!(number, expected);
            assert!(
                elapsed >= (number / 2 + 1) * 5 * MS,
                "{number}: {elapsed:?}"
            );
        }
        assert_eq!(counters.read().most_in_flight(), 2);
    }

    #[test]
    fn the_end_answers_everything_at_once() {
        let counters = Arc::new(Counters::default());
        let delay = Delay::new(NonZeroUsize::new(1), counters).unwrap();
        let (sender, receiver) = channel();
        for number in 0..3 {
            let sender = sender.clone();
            delay.answer(Instant::now(), Duration::from_secs(1000), move || {
                sender.send(number).unwrap();
            });
        }
        drop((delay, sender));
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
