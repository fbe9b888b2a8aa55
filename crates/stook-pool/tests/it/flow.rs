//! What an undisturbed run promises: all items once, parts in order, memory within the budget.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;

use stook_pool::{Output, Weight};

use crate::{Failed, for_each, ordered, recursive};

/// Counts itself as held from its making until it is dropped.
struct Part {
    item: usize,
    bytes: usize,
    held: Arc<AtomicUsize>,
}

impl Part {
    fn new(item: usize, bytes: usize, held: &Arc<AtomicUsize>) -> Self {
        held.fetch_add(bytes, Ordering::SeqCst);
        let held = Arc::clone(held);
        Self { item, bytes, held }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

impl Weight for Part {
    fn weight(&self) -> usize {
        self.bytes
    }
}

#[test]
fn parts_that_wait_stay_within_the_budget() {
    const BUDGET: usize = 1000;
    const JOBS: usize = 8;
    for bytes in [1, 90, 300] {
        let held = Arc::new(AtomicUsize::new(0));
        let mut most = 0;
        let mut next = 0;
        let work = |item: usize, output: &mut Output<'_, Part>| {
            for _ in 0..3 {
                assert!(output.send(Part::new(item, bytes, &held)));
            }
        };
        ordered(JOBS, BUDGET, 0..2000, work, |part: Part| {
            most = most.max(held.load(Ordering::SeqCst));
            assert_eq!(part.item, next / 3);
            next += 1;
            Ok::<(), Failed>(())
        })
        .unwrap();
        assert_eq!(next, 6000);
        assert_eq!(held.load(Ordering::SeqCst), 0);
        // Each worker has one more part in hand, the consumer has one, and one may pass because the
        // consumer waits for it.
        assert!(most <= BUDGET + (JOBS + 2) * bytes, "{most} bytes");
    }
}

/// The second item has used up the budget before the first sends anything.
#[test]
fn the_item_that_the_consumer_waits_for_gets_through() {
    let held = Arc::new(AtomicUsize::new(0));
    let (second_waits, first_may_go) = sync_channel(1);
    let second_waits = Mutex::new(second_waits);
    let first_may_go = Mutex::new(first_may_go);
    let mut seen = Vec::new();
    let work = |item: usize, output: &mut Output<'_, Part>| {
        if item == 0 {
            first_may_go.lock().unwrap().recv().unwrap();
        } else {
            assert!(output.send(Part::new(item, 10, &held)));
            second_waits.lock().unwrap().send(()).unwrap();
        }
        for _ in 0..5 {
            assert!(output.send(Part::new(item, 10, &held)));
        }
    };
    ordered(2, 10, 0..2, work, |part: Part| {
        seen.push(part.item);
        Ok::<(), Failed>(())
    })
    .unwrap();
    assert_eq!(seen, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_part_larger_than_the_budget_passes() {
    let held = Arc::new(AtomicUsize::new(0));
    let mut seen = 0;
    let work = |item: usize, output: &mut Output<'_, Part>| {
        assert!(output.send(Part::new(item, 1_000_000, &held)));
    };
    ordered(4, 10, 0..50, work, |_| {
        seen += 1;
        Ok::<(), Failed>(())
    })
    .unwrap();
    assert_eq!(seen, 50);
}

#[test]
fn without_items_all_three_return_at_once() {
    let work = |_: usize, _: &mut Output<'_, Part>| unreachable!("there is no item");
    let consume = |_: Part| -> Result<(), Failed> { unreachable!("there is no part") };
    ordered(3, 10, std::iter::empty(), work, consume).unwrap();
    for_each(3, std::iter::empty::<u8>(), |_| unreachable!("no item"));
    recursive(3, (), |(), _| ());
}

#[test]
fn items_are_taken_only_as_they_are_needed() {
    let taken = AtomicUsize::new(0);
    let items = std::iter::from_fn(|| Some(taken.fetch_add(1, Ordering::SeqCst)));
    let held = Arc::new(AtomicUsize::new(0));
    let work = |item: usize, output: &mut Output<'_, Part>| {
        output.send(Part::new(item, 10, &held));
    };
    let result = ordered(2, 50, items, work, |part: Part| {
        if part.item == 100 {
            return Err(Failed("enough"));
        }
        Ok(())
    });
    assert_eq!(result, Err(Failed("enough")));
    // Five parts fit the budget, two are in hand, and a worker may have opened the next item.
    let taken = taken.into_inner();
    assert!((101..=112).contains(&taken), "{taken}");
}

#[test]
fn all_jobs_work_at_the_same_time() {
    const JOBS: usize = 5;
    let barrier = std::sync::Barrier::new(JOBS);
    let threads = Mutex::new(HashSet::new());
    let meet = || {
        barrier.wait();
        threads.lock().unwrap().insert(thread::current().id());
    };
    for_each(JOBS, 0..JOBS, |_| meet());
    assert_eq!(threads.lock().unwrap().drain().count(), JOBS);
    recursive(JOBS, true, |is_first, tasks| {
        if is_first {
            tasks.extend([false; JOBS]);
        } else {
            meet();
        }
    });
    assert_eq!(threads.lock().unwrap().len(), JOBS);
}

#[test]
fn the_last_task_added_is_the_first_taken() {
    let order = Mutex::new(Vec::new());
    recursive(1, vec![0_u32], |path, tasks| {
        if path.len() < 3 {
            tasks.extend((0..2).map(|child| [&path[..], &[child]].concat()));
        }
        order.lock().unwrap().push(path);
    });
    let order: Vec<String> = order
        .into_inner()
        .unwrap()
        .iter()
        .map(|path| path.iter().map(u32::to_string).collect())
        .collect();
    assert_eq!(order, ["0", "01", "011", "010", "00", "001", "000"]);
}
