//! Blocks that are to be fetched ahead of readers, and the threads that fetch them.
//!
//! Nothing here is promised: a full queue takes no more, and what fails is asked for again by the reader that needs it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use stook_sys::lock;

use super::loader::Loader;
use super::mirrors::Effort;
use super::volume::CachedFile;

/// Requests that wait for a fetcher, at most.
const LONGEST: usize = 256;

/// Blocks of one volume to be fetched by one request.
#[derive(Debug)]
struct Job {
    volume: Arc<CachedFile>,
    numbers: Range<u64>,
}

impl Job {
    fn blocks(&self) -> u64 {
        self.numbers.end - self.numbers.start
    }
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Blocks of requests that fetchers have taken and not finished.
    taken: u64,
    is_closed: bool,
}

/// What is to be fetched ahead.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    /// Asks for blocks, each request of so many at most, unless the queue is full.
    pub(super) fn add(&self, volume: &Arc<CachedFile>, numbers: Range<u64>, request_blocks: usize) {
        let mut state = lock(&self.state);
        for start in numbers.clone().step_by(request_blocks) {
            if state.jobs.len() >= LONGEST || state.is_closed {
                break;
            }
            state.jobs.push_back(Job {
                volume: Arc::clone(volume),
                numbers: start..numbers.end.min(start + request_blocks as u64),
            });
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Returns how many blocks wait for a fetcher, or are being fetched.
    pub(super) fn blocks(&self) -> u64 {
        let state = lock(&self.state);
        state.taken + state.jobs.iter().map(Job::blocks).sum::<u64>()
    }

    /// Ends all fetchers; those that wait for a store end when it answers.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.jobs.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the next request; None once it is closed.
    fn take(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        while state.jobs.is_empty() && !state.is_closed {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let job = state.jobs.pop_front();
        state.taken += job.as_ref().map_or(0, Job::blocks);
        job
    }

    fn finished(&self, job: &Job) {
        lock(&self.state).taken -= job.blocks();
    }
}

/// Begins threads that fetch what is asked for. Without threads nothing is fetched ahead.
pub(super) fn begin_fetching(queue: &Arc<Queue>, loader: &Arc<Loader>, fetchers: usize) {
    for _ in 0..fetchers {
        let (queue, loader) = (Arc::clone(queue), Arc::clone(loader));
        let fetcher = thread::Builder::new().name("stook-fetch".to_owned());
        let begun = fetcher.spawn(move || {
            while let Some(job) = queue.take() {
                fetch_ahead(&loader, &job);
                queue.finished(&job);
            }
        });
        if begun.is_err() {
            return;
        }
    }
}

fn fetch_ahead(loader: &Loader, job: &Job) {
    let _scope = stook_timers::scope!("read ahead");
    let claim = |number| loader.table.claim_missing(job.volume.block(number));
    let claimed: Vec<_> = job.numbers.clone().filter_map(claim).collect();
    let mut count = 0;
    // The reader that needs a block asks again, and gets the error.
    let _ = loader.load(&job.volume, claimed, Effort::Ahead, &mut |_, _| count += 1);
    loader.counters.read_ahead_blocks.add(count);
}
