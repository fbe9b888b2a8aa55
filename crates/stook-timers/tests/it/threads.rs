//! Many threads: helpers under their spawner, exact counts, reading while running.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use stook_timers::{Report, Spawner, scope, snapshot, spawner};

use crate::{assert_sound, shape, turn};

fn calls(report: &Report, path: &[&str]) -> u64 {
    report.at(path).map_or(0, |record| record.calls)
}

#[test]
fn helpers_hang_under_the_scope_that_spawned_them() {
    let _turn = turn();
    {
        let _create = scope!("create");
        let _files = scope!("files");
        let spawner = spawner();
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    let _attached = spawner.attach();
                    let _read = scope!("read");
                    drop(scope!("md5"));
                });
            }
        });
    }
    let report = snapshot();
    assert_eq!(shape(&report), "create:1(files:1(read:2(md5:2)))");
    assert_eq!(report.threads, 3);
    assert_sound(&report.roots);
}

#[test]
fn helper_time_is_not_taken_from_the_spawners_own_time() {
    let _turn = turn();
    {
        let _create = scope!("create");
        let spawner = spawner();
        thread::scope(|threads| {
            threads.spawn(|| {
                let _attached = spawner.attach();
                drop(scope!("read"));
            });
        });
    }
    let report = snapshot();
    let create = report.at(&["create"]).unwrap();
    assert_eq!(create.own, create.total);
    assert_eq!(create.children[0].name, "read");
}

/// The second helper takes over the first one's tree, in which `read` was a timed scope.
#[test]
fn a_helper_of_a_helper_does_not_count_as_its_thread() {
    let _turn = turn();
    let helper = |spawner: &Spawner, work: &(dyn Fn() -> Spawner + Sync)| {
        thread::scope(|threads| {
            let attached = || {
                let _attached = spawner.attach();
                work()
            };
            threads.spawn(attached).join().unwrap()
        })
    };
    let create = scope!("create");
    let inside = helper(&spawner(), &|| {
        let _read = scope!("read");
        spawner()
    });
    let before = snapshot().at(&["create", "read"]).unwrap().own;
    helper(&inside, &|| {
        drop(scope!("md5"));
        spawner()
    });
    drop(create);
    let report = snapshot();
    assert_eq!(shape(&report), "create:1(read:1(md5:1))");
    assert_eq!(report.at(&["create", "read"]).unwrap().own, before);
}

#[test]
fn attaching_where_one_stands_keeps_one_thread() {
    let _turn = turn();
    {
        let _create = scope!("create");
        let _attached = spawner().attach();
        drop(scope!("read"));
    }
    let report = snapshot();
    let (create, read) = (
        report.at(&["create"]).unwrap(),
        report.at(&["create", "read"]).unwrap(),
    );
    assert_eq!(create.own, create.total.saturating_sub(read.total));
}

#[test]
fn detaching_goes_back_to_where_the_thread_was() {
    let _turn = turn();
    let create = scope!("create");
    let spawner = spawner();
    thread::scope(|threads| {
        threads.spawn(|| {
            let worker = scope!("worker");
            {
                let _attached = spawner.attach();
                drop(scope!("read"));
            }
            drop(scope!("idle"));
            let attached = spawner.attach();
            drop(worker);
            drop(attached);
            drop(scope!("end"));
        });
    });
    drop(create);
    assert_eq!(
        shape(&snapshot()),
        "create:1(read:1) end:1 worker:1(idle:1)"
    );
}

#[test]
fn a_spawner_of_no_scope_changes_nothing() {
    let _turn = turn();
    stook_timers::disable();
    let off = spawner();
    stook_timers::enable();
    drop(scope!("seen"));
    let outside = spawner();
    thread::spawn(move || {
        let _outer = scope!("outer");
        let _off = off.attach();
        drop(scope!("inner"));
        let _outside = outside.attach();
        drop(scope!("inner"));
    })
    .join()
    .unwrap();
    assert_eq!(shape(&snapshot()), "outer:1(inner:2) seen:1");
}

#[test]
fn counts_are_exact_with_8_threads() {
    const CALLS: u64 = 20_000;
    let _turn = turn();
    let start = Barrier::new(8);
    {
        let _work = scope!("work");
        let spawner = spawner();
        thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    let _attached = spawner.attach();
                    start.wait();
                    for _ in 0..CALLS {
                        let _file = scope!("file");
                        drop(scope!("open"));
                    }
                });
            }
        });
    }
    let report = snapshot();
    assert_eq!(
        shape(&report),
        format!("work:1(file:{0}(open:{0}))", 8 * CALLS)
    );
    assert_eq!((report.threads, report.dropped), (9, 0));
    assert_sound(&report.roots);
}

#[test]
fn merging_while_running_sees_counts_grow_and_open_scopes() {
    let _turn = turn();
    let (done, read) = (AtomicBool::new(false), Barrier::new(2));
    thread::scope(|threads| {
        threads.spawn(|| {
            let _work = scope!("work");
            drop(scope!("file"));
            read.wait();
            while !done.load(Ordering::Relaxed) {
                drop(scope!("file"));
            }
        });
        read.wait();
        let mut last = 0;
        while last < 1_000 {
            let report = snapshot();
            let work = report.at(&["work"]).unwrap();
            assert_eq!((work.calls, work.running), (0, 1));
            assert_eq!(work.running_time, work.total);
            assert!(!work.total.is_zero());
            let now = calls(&report, &["work", "file"]);
            assert!(now >= last && now > 0);
            last = now;
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    let report = snapshot();
    let work = report.at(&["work"]).unwrap();
    assert_eq!((work.calls, work.running), (1, 0));
    assert!(work.running_time.is_zero());
    assert_sound(&report.roots);
}

#[test]
fn records_of_dead_threads_stay_and_add_up() {
    let _turn = turn();
    for _ in 0..20 {
        thread::spawn(|| drop(scope!("task"))).join().unwrap();
    }
    let report = snapshot();
    assert_eq!(shape(&report), "task:20");
    assert_eq!(report.threads, 20);
}

#[test]
fn reset_while_threads_run_leaves_only_new_calls() {
    let _turn = turn();
    let turns = Barrier::new(2);
    thread::scope(|threads| {
        threads.spawn(|| {
            drop(scope!("old"));
            turns.wait();
            turns.wait();
            drop(scope!("new"));
        });
        turns.wait();
        assert_eq!(shape(&snapshot()), "old:1");
        stook_timers::reset();
        assert_eq!(shape(&snapshot()), "");
        turns.wait();
    });
    let report = snapshot();
    assert_eq!(shape(&report), "new:1");
    assert_eq!(report.threads, 1);
}
