//! Many workers, one consumer that sees their output in the order of the items.
//!
//! ```text
//!   items ──> worker ──┐   ticket 7: [part][part]      done
//!         ──> worker ──┼─> ticket 8: [part]            running     ──> consumer takes from the
//!         ──> worker ──┘   ticket 9: [part][part][part] done           oldest ticket only
//! ```
//! An item reserves its weight of the budget before a worker begins it, and its parts take the place of
//! that as they come. What is reserved and what waits is at most `budget` bytes, and one item or part more:
//! the one that the consumer needs next is always let in, so the pipeline cannot come to a stop. A part
//! that a worker has in hand while it waits for space is not counted.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use stook_sys::lock;

use crate::activity::idle;
use crate::worker::{Exit, Worker};
use crate::worker_pool::{NoThread, WorkerPool};

/// The bytes that something holds: a part while it waits, an item while it is worked on.
pub trait Weight {
    /// Returns the number of bytes.
    fn weight(&self) -> usize;
}

/// Where a worker hands over the parts of one item.
#[derive(Debug)]
pub struct Output<'a, T: Weight> {
    queue: &'a Queue<T>,
    ticket: u64,
}

#[derive(Debug)]
struct Queue<T> {
    state: Mutex<State<T>>,
    /// The consumer waits here for parts.
    ready: Condvar,
    /// Workers wait here for space.
    space: Condvar,
    budget: usize,
}

#[derive(Debug)]
struct State<T> {
    slots: VecDeque<Slot<T>>,
    /// Ticket of the first slot.
    oldest: u64,
    /// Reserved by items, and held by parts that wait.
    held_bytes: usize,
    /// No items will come.
    is_exhausted: bool,
    is_stopped: bool,
}

/// What is reserved and waits at most for each worker: several items of usual size.
const BYTES_OF_A_WORKER: usize = 12 << 20;

#[derive(Debug)]
struct Slot<T> {
    parts: VecDeque<T>,
    /// What is left of the item's reservation.
    reserved: usize,
    is_done: bool,
}

impl<T: Weight> Output<'_, T> {
    /// Hands a part over; waits while the budget is used up.
    ///
    /// Returns false once the pipeline is stopped: the worker should return.
    pub fn send(&mut self, part: T) -> bool {
        let mut state = lock(&self.queue.state);
        let added = state.spend(self.ticket, part.weight());
        if added > 0 {
            let _idle = idle();
            while !state.is_stopped
                && state.held_bytes + added > self.queue.budget
                && !state.is_wanted(self.ticket)
            {
                state = wait(&self.queue.space, state);
            }
        }
        if state.is_stopped {
            return false;
        }
        state.held_bytes += added;
        let is_oldest = self.ticket == state.oldest;
        if let Some(slot) = state.slot(self.ticket) {
            slot.parts.push_back(part);
        }
        drop(state);
        if is_oldest {
            self.queue.ready.notify_one();
        }
        true
    }
}

impl<T: Weight> Drop for Output<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.queue.state);
        state.is_stopped |= thread::panicking();
        state.end(self.ticket);
        drop(state);
        self.queue.ready.notify_one();
        self.queue.space.notify_all();
    }
}

impl<T> State<T> {
    /// Returns true if the consumer waits for a part of this ticket and has none.
    fn is_wanted(&self, ticket: u64) -> bool {
        let is_starving = |slot: &Slot<T>| slot.parts.is_empty();
        ticket == self.oldest && self.slots.front().is_some_and(is_starving)
    }

    /// Takes a part's weight from the reservation of its item; returns what is missing.
    fn spend(&mut self, ticket: u64, weight: usize) -> usize {
        let Some(slot) = self.slot(ticket) else {
            return weight;
        };
        let spent = weight.min(slot.reserved);
        slot.reserved -= spent;
        weight - spent
    }

    /// The item of this ticket is done: what it reserved and did not need is free again.
    fn end(&mut self, ticket: u64) {
        if let Some(slot) = self.slot(ticket) {
            slot.is_done = true;
            let unused = std::mem::take(&mut slot.reserved);
            self.held_bytes -= unused;
        }
    }

    fn slot(&mut self, ticket: u64) -> Option<&mut Slot<T>> {
        let index = usize::try_from(ticket - self.oldest).ok()?;
        self.slots.get_mut(index)
    }
}

impl<T: Weight> Queue<T> {
    fn new(budget: usize) -> Self {
        let state = State {
            slots: VecDeque::new(),
            oldest: 0,
            held_bytes: 0,
            is_exhausted: false,
            is_stopped: false,
        };
        Self {
            state: Mutex::new(state),
            ready: Condvar::new(),
            space: Condvar::new(),
            budget,
        }
    }

    /// Takes the next item and opens its slot, under one lock, so that tickets follow the order of the
    /// items; None if there is none, or it is not wanted any more.
    fn next<I: Weight>(
        &self,
        items: &Mutex<impl Iterator<Item = I>>,
        workers: usize,
    ) -> Option<(I, Output<'_, T>)> {
        let _idle = idle();
        let mut items = lock(items);
        let broken = StoppedByPanic(self);
        let next = items.next();
        drop(broken);
        let Some(item) = next else {
            self.set_exhausted();
            return None;
        };
        let output = self.open_slot(item.weight(), workers)?;
        Some((item, output))
    }

    /// Opens the slot of the next item, once there is space for it; None once the pipeline is stopped.
    fn open_slot(&self, weight: usize, workers: usize) -> Option<Output<'_, T>> {
        // What a few workers could run ahead by would only take memory: they are never starved.
        let budget = self.budget.min(workers.saturating_mul(BYTES_OF_A_WORKER));
        let mut state = lock(&self.state);
        while !state.is_stopped && !state.slots.is_empty() && state.held_bytes + weight > budget {
            state = wait(&self.space, state);
        }
        if state.is_stopped {
            return None;
        }
        state.held_bytes += weight;
        let ticket = state.oldest + state.slots.len() as u64;
        state.slots.push_back(Slot {
            parts: VecDeque::new(),
            reserved: weight,
            is_done: false,
        });
        Some(Output {
            queue: self,
            ticket,
        })
    }

    /// Returns the next part in order, or None when there are no more items and all is taken.
    fn take(&self) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            // After a panic of a worker, too: what comes after its item would not be in order.
            if state.is_stopped {
                return None;
            }
            let has_ended = state.is_exhausted;
            match state.slots.front_mut() {
                Some(slot) => {
                    if let Some(part) = slot.parts.pop_front() {
                        state.held_bytes -= part.weight();
                        drop(state);
                        self.space.notify_all();
                        return Some(part);
                    }
                    if slot.is_done {
                        state.slots.pop_front();
                        state.oldest += 1;
                        self.space.notify_all();
                        continue;
                    }
                }
                None if has_ended => return None,
                None => {}
            }
            state = wait(&self.ready, state);
        }
    }

    fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.space.notify_all();
        self.ready.notify_all();
    }

    fn set_exhausted(&self) {
        lock(&self.state).is_exhausted = true;
        self.ready.notify_one();
    }
}

impl WorkerPool<'_> {
    /// Calls `work` with every item, and `consume` on this thread with all parts that the calls hand
    /// over, in the order of the items.
    ///
    /// # Errors
    /// The first error of `consume`, and the workers are stopped; [`NoThread`] if the system gives not one thread.
    pub fn ordered<I: Weight + Send, T: Weight + Send, E: From<NoThread>>(
        &self,
        budget: usize,
        items: impl Iterator<Item = I> + Send,
        work: impl Fn(I, &mut Output<'_, T>) + Sync,
        mut consume: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let queue = Queue::new(budget);
        let items = Mutex::new(items);
        let body = |worker: &Worker<'_>| {
            while !self.is_interrupted()
                && let Some((item, mut output)) = queue.next(&items, worker.number())
            {
                work(item, &mut output);
                drop(output);
                if worker.is_surplus() {
                    return Exit::Surplus;
                }
            }
            queue.set_exhausted();
            Exit::NoWork
        };
        self.run_beside(body, || {
            // However this ends, also by a panic of `consume`: no worker waits for space any more.
            let _stopping = Stopping(&queue);
            while let Some(part) = queue.take() {
                consume(part)?;
            }
            Ok(())
        })?
    }
}

/// A panic of the iterator ends the pipeline as one of a worker does.
struct StoppedByPanic<'a, T: Weight>(&'a Queue<T>);

impl<T: Weight> Drop for StoppedByPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

struct Stopping<'a, T: Weight>(&'a Queue<T>);

impl<T: Weight> Drop for Stopping<'_, T> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Jobs;

    impl Weight for u32 {
        fn weight(&self) -> usize {
            0
        }
    }

    fn pool(jobs: usize) -> WorkerPool<'static> {
        WorkerPool::new("test", Jobs::Fixed(jobs))
    }

    struct Part(u32, usize);

    impl Weight for Part {
        fn weight(&self) -> usize {
            self.1
        }
    }

    fn collect(jobs: usize, budget: usize) -> Vec<u32> {
        let mut seen = Vec::new();
        pool(jobs)
            .ordered(
                budget,
                0..500_u32,
                |item, output| {
                    for part in 0..item % 4 {
                        assert!(output.send(Part(item * 10 + part, 100)));
                    }
                },
                |part| {
                    seen.push(part.0);
                    Ok::<(), NoThread>(())
                },
            )
            .unwrap();
        seen
    }

    #[test]
    fn order_is_that_of_the_items() {
        let expected: Vec<u32> = (0..500)
            .flat_map(|item| (0..item % 4).map(move |part| item * 10 + part))
            .collect();
        for (jobs, budget) in [(0, 0), (1, 1), (2, 0), (3, 250), (16, 10_000)] {
            assert_eq!(
                collect(jobs, budget),
                expected,
                "{jobs} jobs, {budget} bytes"
            );
        }
    }

    #[test]
    fn one_item_with_many_parts_keeps_to_the_budget() {
        let (made, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let most = AtomicUsize::new(0);
        pool(1)
            .ordered(
                1000,
                0..1_u32,
                |_, output| {
                    for part in 0..500 {
                        let waiting =
                            made.fetch_add(1, Ordering::Relaxed) - taken.load(Ordering::Relaxed);
                        most.fetch_max(waiting, Ordering::Relaxed);
                        assert!(output.send(Part(part, 100)));
                    }
                },
                |_| {
                    taken.fetch_add(1, Ordering::Relaxed);
                    Ok::<(), NoThread>(())
                },
            )
            .unwrap();
        // Ten wait, one is in the hands of the consumer, one in those of the worker.
        assert!(most.into_inner() <= 12);
    }

    #[test]
    fn an_error_of_the_consumer_stops_the_workers() {
        let result = pool(4).ordered(
            1000,
            0..,
            |item: u32, output| {
                output.send(Part(item, 10));
            },
            |part| {
                if part.0 == 100 {
                    let source = std::io::ErrorKind::StorageFull.into();
                    return Err(NoThread { source });
                }
                Ok(())
            },
        );
        let kind = result.unwrap_err().source.kind();
        assert_eq!(kind, std::io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_panic_of_a_worker_ends_the_pipeline() {
        let caught = std::panic::catch_unwind(|| {
            let work = |item: u32, output: &mut Output<'_, Part>| {
                assert!(item != 50, "item 50");
                output.send(Part(item, 10));
            };
            pool(3).ordered(100, 0..1000, work, |_| Ok::<(), NoThread>(()))
        });
        assert!(caught.is_err());
    }
}
