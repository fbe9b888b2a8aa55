//! Many workers, one consumer that sees their output in the order of the items.
//!
//! ```text
//!   items ──> worker ──┐   ticket 7: [part][part]      done
//!         ──> worker ──┼─> ticket 8: [part]            running     ──> consumer takes from the
//!         ──> worker ──┘   ticket 9: [part][part][part] done           oldest ticket only
//! ```
//! Parts that wait hold at most `budget` bytes, and one part more: the one that the consumer needs
//! next is always let in, so the pipeline cannot come to a stop.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The bytes that a part holds while it waits.
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
    /// Workers wait here for room.
    room: Condvar,
    budget: usize,
}

#[derive(Debug)]
struct State<T> {
    slots: VecDeque<Slot<T>>,
    /// Ticket of the first slot.
    oldest: u64,
    waiting_bytes: usize,
    running_workers: usize,
    is_stopped: bool,
}

#[derive(Debug)]
struct Slot<T> {
    parts: VecDeque<T>,
    is_done: bool,
}

impl<T: Weight> Output<'_, T> {
    /// Hands a part over; waits while the budget is used up.
    ///
    /// Returns false once the pipeline is stopped: the worker should return.
    pub fn send(&mut self, part: T) -> bool {
        let weight = part.weight();
        let mut state = lock(&self.queue.state);
        while !state.is_stopped
            && state.waiting_bytes + weight > self.queue.budget
            && !state.is_wanted(self.ticket)
        {
            state = self
                .queue
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_stopped {
            return false;
        }
        state.waiting_bytes += weight;
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
        if let Some(slot) = state.slot(self.ticket) {
            slot.is_done = true;
        }
        drop(state);
        self.queue.ready.notify_one();
        if thread::panicking() {
            self.queue.room.notify_all();
        }
    }
}

impl<T> State<T> {
    /// Returns true if the consumer waits for a part of this ticket and has none.
    fn is_wanted(&self, ticket: u64) -> bool {
        let is_starving = |slot: &Slot<T>| slot.parts.is_empty();
        ticket == self.oldest && self.slots.front().is_some_and(is_starving)
    }

    fn slot(&mut self, ticket: u64) -> Option<&mut Slot<T>> {
        let index = usize::try_from(ticket - self.oldest).ok()?;
        self.slots.get_mut(index)
    }
}

impl<T: Weight> Queue<T> {
    /// Opens the slot of the next item; false once the pipeline is stopped.
    fn open_slot(&self) -> Option<Output<'_, T>> {
        let mut state = lock(&self.state);
        if state.is_stopped {
            return None;
        }
        let ticket = state.oldest + state.slots.len() as u64;
        state.slots.push_back(Slot {
            parts: VecDeque::new(),
            is_done: false,
        });
        Some(Output {
            queue: self,
            ticket,
        })
    }

    /// Returns the next part in order, or None when all workers have ended and all is taken.
    fn take(&self) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            // After a panic of a worker, too: what comes after its item would not be in order.
            if state.is_stopped {
                return None;
            }
            let has_ended = state.running_workers == 0;
            match state.slots.front_mut() {
                Some(slot) => {
                    if let Some(part) = slot.parts.pop_front() {
                        state.waiting_bytes -= part.weight();
                        drop(state);
                        self.room.notify_all();
                        return Some(part);
                    }
                    if slot.is_done {
                        state.slots.pop_front();
                        state.oldest += 1;
                        self.room.notify_all();
                        continue;
                    }
                }
                None if has_ended => return None,
                None => {}
            }
            state = self
                .ready
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.room.notify_all();
        self.ready.notify_all();
    }

    fn worker_ends(&self) {
        lock(&self.state).running_workers -= 1;
        self.ready.notify_one();
    }
}

/// Calls `work` with every item on `jobs` threads, and `consume` on this one with all parts that
/// the calls hand over, in the order of the items.
///
/// # Errors
/// The first error of `consume`; the workers are then stopped.
pub fn ordered<I: Send, T: Weight + Send, E>(
    jobs: usize,
    budget: usize,
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I, &mut Output<'_, T>) + Sync,
    mut consume: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let jobs = jobs.max(1);
    let state = State {
        slots: VecDeque::new(),
        oldest: 0,
        waiting_bytes: 0,
        running_workers: jobs,
        is_stopped: false,
    };
    let queue = Queue {
        state: Mutex::new(state),
        ready: Condvar::new(),
        room: Condvar::new(),
        budget,
    };
    let items = Mutex::new(items);
    let spawner = stook_timers::spawner();
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let _attached = spawner.attach();
                let _ending = Ending(&queue);
                loop {
                    // One lock around both, so that tickets follow the order of the items.
                    let mut items = lock(&items);
                    let Some(item) = items.next() else { break };
                    let Some(mut output) = queue.open_slot() else {
                        break;
                    };
                    drop(items);
                    work(item, &mut output);
                }
            });
        }
        // However this ends, also by a panic of `consume`: no worker waits for room any more.
        let _stopping = Stopping(&queue);
        while let Some(part) = queue.take() {
            consume(part)?;
        }
        Ok(())
    })
}

struct Stopping<'a, T: Weight>(&'a Queue<T>);

impl<T: Weight> Drop for Stopping<'_, T> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

struct Ending<'a, T: Weight>(&'a Queue<T>);

impl<T: Weight> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        self.0.worker_ends();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Part(u32, usize);

    impl Weight for Part {
        fn weight(&self) -> usize {
            self.1
        }
    }

    fn collect(jobs: usize, budget: usize) -> Vec<u32> {
        let mut seen = Vec::new();
        ordered(
            jobs,
            budget,
            0..500_u32,
            |item, output| {
                for part in 0..item % 4 {
                    assert!(output.send(Part(item * 10 + part, 100)));
                }
            },
            |part| {
                seen.push(part.0);
                Ok::<(), ()>(())
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
        ordered(
            1,
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
                Ok::<(), ()>(())
            },
        )
        .unwrap();
        // Ten wait, one is in the hands of the consumer, one in those of the worker.
        assert!(most.into_inner() <= 12);
    }

    #[test]
    fn an_error_of_the_consumer_stops_the_workers() {
        let result = ordered(
            4,
            1000,
            0..,
            |item: u32, output| {
                output.send(Part(item, 10));
            },
            |part| if part.0 == 100 { Err("full") } else { Ok(()) },
        );
        assert_eq!(result, Err("full"));
    }

    #[test]
    fn a_panic_of_a_worker_ends_the_pipeline() {
        let caught = std::panic::catch_unwind(|| {
            let work = |item: u32, output: &mut Output<'_, Part>| {
                assert!(item != 50, "item 50");
                output.send(Part(item, 10));
            };
            ordered(3, 100, 0..1000, work, |_| Ok::<(), ()>(()))
        });
        assert!(caught.is_err());
    }
}
