//! Runs that end early: a panic reaches the caller, nobody waits for ever, and order holds up to there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use stook_pool::{Output, Weight};

use crate::{Failed, for_each, ordered, recursive};

struct Part(usize);

impl Weight for Part {
    fn weight(&self) -> usize {
        100
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("not a text")
}

#[test]
fn a_panic_of_the_consumer_does_not_leave_workers_waiting() {
    for jobs in [1, 2, 8] {
        let work = |item: usize, output: &mut Output<'_, Part>| {
            while output.send(Part(item)) {}
        };
        let caught = catch_unwind(|| {
            ordered(jobs, 0, 0.., work, |part| -> Result<(), Failed> {
                panic!("part {} is one too many", part.0)
            })
        });
        let panic = caught.err().unwrap();
        assert_eq!(text_of(&*panic), "part 0 is one too many");
    }
}

#[test]
fn after_a_panic_of_a_worker_nothing_behind_its_item_is_consumed() {
    for jobs in [1, 3, 8] {
        let seen = Mutex::new(Vec::new());
        let work = |item: usize, output: &mut Output<'_, Part>| {
            output.send(Part(item));
            assert!(item != 50, "item 50");
            output.send(Part(item));
        };
        let caught = catch_unwind(AssertUnwindSafe(|| {
            ordered(jobs, 10_000, 0..1000, work, |part| {
                seen.lock().unwrap().push(part.0);
                Ok::<(), Failed>(())
            })
        }));
        assert!(caught.is_err());
        let seen = seen.into_inner().unwrap();
        let expected: Vec<usize> = (0..=50).flat_map(|item| [item, item]).collect();
        assert!(seen.len() <= 101, "{jobs} jobs: {seen:?}");
        assert_eq!(seen, expected[..seen.len()]);
    }
}

#[test]
fn a_panic_of_the_iterator_reaches_the_caller() {
    let items = || (0..100_usize).inspect(|&item| assert!(item != 30, "item 30"));
    let work = |item: usize, output: &mut Output<'_, Part>| {
        output.send(Part(item));
    };
    let caught = catch_unwind(|| ordered(2, 1000, items(), work, |_| Ok::<(), Failed>(())));
    assert!(caught.is_err());
    assert!(catch_unwind(|| for_each(2, items(), |_| ())).is_err());
}

#[test]
fn an_error_of_the_consumer_is_returned_and_workers_are_told() {
    let refused = AtomicUsize::new(0);
    let work = |item: usize, output: &mut Output<'_, Part>| {
        while output.send(Part(item)) {}
        refused.fetch_add(1, Ordering::SeqCst);
    };
    let mut left = 10;
    let result = ordered(4, 300, 0.., work, |_| {
        left -= 1;
        if left == 0 {
            Err(Failed("disk full"))
        } else {
            Ok(())
        }
    });
    assert_eq!(result, Err(Failed("disk full")));
    let refused = refused.into_inner();
    assert!((1..=4).contains(&refused), "{refused}");
}

#[test]
fn a_panic_of_one_task_does_not_stop_the_others() {
    let done = AtomicUsize::new(0);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        recursive(3, 0_usize, |number, tasks| {
            if number == 0 {
                tasks.extend(1..=100);
            }
            assert!(number != 40, "task 40");
            done.fetch_add(1, Ordering::SeqCst);
        });
    }));
    assert!(caught.is_err());
    assert_eq!(done.into_inner(), 100);
}
