//! Work without an order: items of an iterator, or tasks that add tasks.

use std::sync::{Condvar, Mutex, PoisonError};

use stook_sys::{available_cpus, lock};

use crate::activity::idle;
use crate::worker::Exit;
use crate::worker_pool::WorkerPool;

impl WorkerPool<'_> {
    /// Calls `work` with every item.
    ///
    /// Items are taken from the iterator one at a time, so it may be long or slow.
    pub fn for_each<T: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        work: impl Fn(T) + Sync,
    ) {
        let items = Mutex::new(items);
        let next = || {
            let _idle = idle();
            lock(&items).next()
        };
        self.run(|worker| {
            while !self.is_interrupted()
                && let Some(item) = next()
            {
                work(item);
                if worker.is_surplus() {
                    return Exit::Surplus;
                }
            }
            Exit::NoWork
        });
    }

    /// Calls `work` with the first tasks, the last of them first, and with every task that the calls add.
    pub fn recursive<T: Send>(
        &self,
        first: impl IntoIterator<Item = T>,
        work: impl Fn(T, &Tasks<T>) + Sync,
    ) {
        let tasks = Tasks {
            state: Mutex::new(State {
                waiting: first.into_iter().collect(),
                running: 0,
                asleep: 0,
            }),
            changed: Condvar::new(),
            processors: available_cpus(),
        };
        self.run(|worker| {
            while let Some(task) = tasks.take() {
                let running = Running(&tasks);
                if self.is_interrupted() {
                    tasks.clear();
                } else {
                    work(task, &tasks);
                }
                drop(running);
                if worker.is_surplus() {
                    return Exit::Surplus;
                }
            }
            Exit::NoWork
        });
    }
}

/// Tasks that wait for a worker: the youngest goes first, which keeps few of them waiting.
#[derive(Debug)]
pub struct Tasks<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    processors: usize,
}

#[derive(Debug)]
struct State<T> {
    waiting: Vec<T>,
    running: usize,
    /// Workers that wait for tasks.
    asleep: usize,
}

impl<T> Tasks<T> {
    /// Adds tasks; the last one is taken first.
    ///
    /// # Cost
    /// Wakes no more workers than there are new tasks.
    pub fn extend(&self, tasks: impl IntoIterator<Item = T>) {
        let mut state = lock(&self.state);
        let before = state.waiting.len();
        state.waiting.extend(tasks);
        let added = state.waiting.len() - before;
        let asleep = state.asleep;
        drop(state);
        if added >= asleep {
            if asleep > 0 {
                self.changed.notify_all();
            }
            return;
        }
        for _ in 0..added {
            self.changed.notify_one();
        }
    }

    /// Returns true if workers wait for tasks and there are more of them than processors: then the storage's latency counts,
    /// and even small tasks are worth handing over.
    pub fn is_wanted(&self) -> bool {
        let state = lock(&self.state);
        state.asleep > 0 && state.running + state.asleep > self.processors
    }

    fn take(&self) -> Option<T> {
        let mut state = lock(&self.state);
        if let Some(task) = state.next() {
            return Some(task);
        }
        let _idle = idle();
        loop {
            if state.running == 0 {
                return None;
            }
            state.asleep += 1;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.asleep -= 1;
            if let Some(task) = state.next() {
                return Some(task);
            }
        }
    }

    /// Drops the tasks that wait.
    fn clear(&self) {
        let dropped = std::mem::take(&mut lock(&self.state).waiting);
        // Not under the lock: what a task holds may take long to close.
        drop(dropped);
    }

    fn finish(&self) {
        let mut state = lock(&self.state);
        state.running -= 1;
        let is_over = state.running == 0 && state.waiting.is_empty();
        drop(state);
        if is_over {
            self.changed.notify_all();
        }
    }
}

impl<T> State<T> {
    fn next(&mut self) -> Option<T> {
        let task = self.waiting.pop()?;
        self.running += 1;
        Some(task)
    }
}

/// Counts a task as finished even when it panics, so that the other workers end.
struct Running<'a, T>(&'a Tasks<T>);

impl<T> Drop for Running<'_, T> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::Jobs;

    fn pool(jobs: usize) -> WorkerPool<'static> {
        WorkerPool::new("test", Jobs::Fixed(jobs))
    }

    #[test]
    fn every_item_is_seen_once() {
        for jobs in [0, 1, 2, 7] {
            let sum = AtomicU64::new(0);
            pool(jobs).for_each(1..=1000_u64, |item| {
                sum.fetch_add(item, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 500_500);
        }
    }

    #[test]
    fn tasks_may_add_tasks() {
        for jobs in [1, 3] {
            let count = AtomicU64::new(0);
            pool(jobs).recursive([12_u32], |depth, tasks| {
                count.fetch_add(1, Ordering::Relaxed);
                if depth > 0 {
                    tasks.extend([depth - 1, depth - 1]);
                }
            });
            assert_eq!(count.into_inner(), (1 << 13) - 1);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let caught = std::panic::catch_unwind(|| {
            pool(2).recursive([3_u32], |depth, tasks| {
                assert!(depth > 0, "the bottom");
                tasks.extend([depth - 1]);
            });
        });
        assert!(caught.is_err());
    }
}
