//! How pools grow: what they were asked, not how fast the machine is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use stook_pool::{Jobs, MAX_WORKERS, WorkerPool, advance};
use stook_timers::snapshot;

/// Counts those inside at once.
#[derive(Default)]
struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Inside {
    fn with(&self, work: impl FnOnce()) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        work();
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Items until enough are inside at once, or far too long a time has passed.
fn until(inside: &Inside, wanted: usize, patience: Duration) -> impl Iterator<Item = u32> + Send {
    let begun = Instant::now();
    (0..).take_while(move |_| inside.most() < wanted && begun.elapsed() < patience)
}

#[test]
fn operations_of_a_millisecond_bring_64_workers() {
    let inside = Inside::default();
    let begun = Instant::now();
    let items = until(&inside, 64, Duration::from_secs(60));
    WorkerPool::new("sleep", Jobs::Adaptive).for_each(items, |_| {
        inside.with(|| thread::sleep(Duration::from_millis(1)));
    });
    assert!(
        inside.most() >= 64,
        "{} after {:?}",
        inside.most(),
        begun.elapsed()
    );
    println!("64 workers after {:?}", begun.elapsed());
}

#[test]
fn one_long_item_of_many_small_steps_counts_as_many() {
    let inside = Inside::default();
    let items = until(&inside, 32, Duration::from_secs(60));
    WorkerPool::new("steps", Jobs::Adaptive).for_each(items, |_| {
        inside.with(|| {
            for _ in 0..200 {
                thread::sleep(Duration::from_micros(500));
                advance(1);
            }
        });
    });
    assert!(inside.most() >= 32, "{}", inside.most());
}

#[test]
fn work_without_waiting_stays_at_the_processors() {
    stook_timers::enable();
    let scope = stook_timers::scope!("spinning");
    let cpus = thread::available_parallelism().unwrap().get();
    let inside = Inside::default();
    let begun = Instant::now();
    let items = (0..).take_while(|_| begun.elapsed() < Duration::from_millis(700));
    WorkerPool::new("spin", Jobs::Adaptive).for_each(items, |item: u64| {
        inside.with(|| {
            let mut sum = item;
            for n in 0..20_000 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n));
            }
        });
    });
    drop(scope);
    let report = snapshot();
    let gauge = report
        .gauges
        .iter()
        .find(|gauge| gauge.path == ["spinning"]);
    let mut workers: Vec<u64> = gauge
        .unwrap()
        .samples
        .iter()
        .map(|sample| sample.1)
        .collect();
    assert_eq!(inside.most(), cpus, "{workers:?}");
    // At the end one may find the others gone already.
    workers.dedup();
    let mut expected = vec![1, cpus as u64];
    expected.dedup();
    assert_eq!(workers, expected);
}

#[test]
fn limits_hold_for_every_pool() {
    let cpus = thread::available_parallelism().unwrap().get();
    for (jobs, most, expected) in [
        (Jobs::Adaptive, 1000, MAX_WORKERS.max(cpus).min(1000)),
        (Jobs::Adaptive, 3, 3),
        (Jobs::Fixed(1000), 5, 5),
        (Jobs::Fixed(0), 5, 1),
        (Jobs::Fixed(7), 0, 1),
    ] {
        assert_eq!(WorkerPool::new("test", jobs).at_most(most).most(), expected);
    }
    let inside = Inside::default();
    let begun = Instant::now();
    let items = (0..).take_while(|_| begun.elapsed() < Duration::from_millis(300));
    WorkerPool::new("few", Jobs::Adaptive)
        .at_most(5)
        .for_each(items, |_: u32| {
            inside.with(|| thread::sleep(Duration::from_millis(1)));
        });
    assert!(inside.most() <= 5, "{}", inside.most());
}

#[test]
fn a_fixed_number_begins_at_once() {
    let (present, all_here) = (Mutex::new(0), Condvar::new());
    WorkerPool::new("fixed", Jobs::Fixed(9)).for_each(0..9, |_| {
        let mut present = present.lock().unwrap();
        *present += 1;
        all_here.notify_all();
        // Ends only when nine items are worked on together.
        drop(
            all_here
                .wait_while(present, |present| *present < 9)
                .unwrap(),
        );
    });
}
