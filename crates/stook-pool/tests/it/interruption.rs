//! Interrupted runs: no item begins after that, nothing hangs, and without a thread there is an error.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use stook_pool::Output;

use crate::{Failed, Light, pool};

#[test]
fn no_item_begins_once_the_user_wants_an_end() {
    for jobs in [1, 4] {
        let (begun, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let is_interrupted = || is_over.load(Ordering::SeqCst);
        let work = |_: usize| {
            if begun.fetch_add(1, Ordering::SeqCst) == 20 {
                is_over.store(true, Ordering::SeqCst);
            }
        };
        pool(jobs).until(&is_interrupted).for_each(0.., work);
        let begun = begun.into_inner();
        assert!((21..=21 + jobs).contains(&begun), "{begun}");
    }
}

/// Counts those that are there.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn tasks_that_wait_are_dropped_once_the_user_wants_an_end() {
    for jobs in [1, 4] {
        let (there, is_over) = (AtomicUsize::new(1), AtomicBool::new(false));
        let is_interrupted = || is_over.load(Ordering::SeqCst);
        let task = || {
            there.fetch_add(1, Ordering::SeqCst);
            Counted(&there)
        };
        pool(jobs)
            .until(&is_interrupted)
            .recursive([Counted(&there)], |_, tasks| {
                tasks.extend([task(), task()]);
                if there.load(Ordering::SeqCst) > 1000 {
                    is_over.store(true, Ordering::SeqCst);
                }
            });
        assert_eq!(there.into_inner(), 0);
    }
}

#[test]
fn a_pipeline_that_is_told_to_end_hands_over_what_it_began_in_order() {
    for jobs in [1, 4] {
        let is_over = AtomicBool::new(false);
        let is_interrupted = || is_over.load(Ordering::SeqCst);
        let seen = Mutex::new(Vec::new());
        let result = pool(jobs).until(&is_interrupted).ordered(
            100,
            (0..).map(Light),
            |Light(item): Light<u32>, output: &mut Output<'_, Light<u32>>| {
                if item == 50 {
                    is_over.store(true, Ordering::SeqCst);
                }
                output.send(Light(item));
            },
            |part| {
                seen.lock().unwrap().push(part.0);
                Ok::<(), Failed>(())
            },
        );
        assert_eq!(result, Ok(()));
        let seen = seen.into_inner().unwrap();
        let expected: Vec<u32> = (0..).take(seen.len()).collect();
        assert_eq!(seen, expected, "{jobs} jobs");
    }
}

/// Only a child of the test below has no threads.
#[test]
#[ignore = "run by `without_a_thread_a_pipeline_is_an_error_and_loops_run_on_the_caller`"]
fn child_without_threads() {
    assert!(std::thread::Builder::new().spawn(|| ()).is_err());
    let result = pool(3).ordered(
        100,
        (0..10).map(Light),
        |_: Light<u32>, _: &mut Output<'_, Light<u32>>| unreachable!("there is no worker"),
        |_| Ok::<(), Failed>(()),
    );
    assert_eq!(result, Err(Failed("no thread")));
    let own = std::thread::current().id();
    let count = AtomicUsize::new(0);
    pool(3).for_each(0..10, |_| {
        assert_eq!(std::thread::current().id(), own);
        count.fetch_add(1, Ordering::SeqCst);
    });
    pool(3).recursive([5], |depth, tasks| {
        count.fetch_add(1, Ordering::SeqCst);
        tasks.extend((0..depth).rev().take(1));
    });
    assert_eq!(count.into_inner(), 16);
}

#[test]
fn without_a_thread_a_pipeline_is_an_error_and_loops_run_on_the_caller() {
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "interruption::child_without_threads",
            "--ignored",
        ])
        .args(["--test-threads", "1"])
        // No address space has room for such a stack.
        .env("RUST_MIN_STACK", (1_u64 << 48).to_string())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}
