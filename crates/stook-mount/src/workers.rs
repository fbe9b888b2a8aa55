//! Threads for requests that have to wait: as many as there are such requests, up to a limit.
//!
//! ```text
//!   submit ──> queue ──> a worker that is idle, or a new one
//!                        a worker that was idle for some seconds ends
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use stook_sys::lock;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait at the same time. Kernels send no more requests of one file ahead than a handful.
const MOST_THREADS: usize = 64;

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = lock(&self.shared.state).threads;
        f.debug_struct("Workers")
            .field("threads", &threads)
            .finish()
    }
}

impl Workers {
    /// Has a worker do this, soon.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.shared.state);
        state.jobs.push_back(Box::new(job));
        let needs_thread = state.idle < state.jobs.len() && state.threads < MOST_THREADS;
        if !needs_thread {
            drop(state);
            self.shared.wake.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let started = thread::Builder::new()
            .name("mount-worker".to_owned())
            .spawn(move || shared.work());
        if started.is_err() {
            self.without_new_thread();
        }
    }

    /// Those that are there do it; if there are none, this thread does.
    fn without_new_thread(&self) {
        let mut state = lock(&self.shared.state);
        state.threads -= 1;
        let job = match state.threads {
            0 => state.jobs.pop_front(),
            _ => None,
        };
        drop(state);
        if let Some(job) = job {
            job();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = lock(&self.state);
                continue;
            }
            state.idle += 1;
            let waited = self.wake.wait_timeout(state, IDLE);
            let (again, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = again;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn there_are_as_many_workers_as_jobs_that_wait() {
        let workers = Workers::default();
        let barrier = Arc::new(Barrier::new(8));
        let (sender, receiver) = channel();
        for number in 0..8 {
            let (barrier, sender) = (Arc::clone(&barrier), sender.clone());
            workers.submit(move || {
                // Nobody passes until all eight are here.
                barrier.wait();
                sender.send(number).unwrap();
            });
        }
        let mut done: Vec<i32> = receiver.iter().take(8).collect();
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn more_jobs_than_workers_are_all_done() {
        let workers = Workers::default();
        let (sender, receiver) = channel();
        for number in 0..1000_u64 {
            let sender = sender.clone();
            workers.submit(move || sender.send(number).unwrap());
        }
        assert_eq!(receiver.iter().take(1000).sum::<u64>(), 499_500);
        assert!(lock(&workers.shared.state).threads <= MOST_THREADS);
    }
}
