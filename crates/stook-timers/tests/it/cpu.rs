//! CPU time, and with it the time blocked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use stook_timers::{Detail, Record, Report, enable, enable_with, scope, snapshot, spawner};

use crate::{assert_sound, shape, turn, turn_with};

/// Long enough that a busy machine does not hide which is which.
const A_WHILE: Duration = Duration::from_millis(50);

/// Returns the part of the time of a record's finished calls that it was blocked.
fn blocked(report: &Report, path: &[&str]) -> f64 {
    let record = report.at(path).expect("the scope was entered");
    let blocked = record.blocked().expect("CPU time was measured");
    blocked.as_secs_f64() / record.finished().as_secs_f64()
}

/// Uses a processor until the thread has had it for so long.
fn spin(at_least: Duration) {
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::from_secs(time.tv_sec.unsigned_abs())
            + Duration::from_nanos(time.tv_nsec.unsigned_abs())
    };
    let start = cpu();
    while cpu() - start < at_least {
        std::hint::spin_loop();
    }
}

#[test]
fn a_sleep_is_blocked_and_a_spin_is_not() {
    let _turn = turn_with(Detail::Cpu);
    {
        let _sleep = scope!("sleep");
        thread::sleep(A_WHILE);
    }
    assert!(blocked(&snapshot(), &["sleep"]) > 0.9);
    // Others may take the processor away, which counts as blocked: the best of many tries is what counts.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        stook_timers::reset();
        {
            let _spin = scope!("spin");
            spin(Duration::from_millis(2));
        }
        let blocked = blocked(&snapshot(), &["spin"]);
        if blocked < 0.2 {
            break;
        }
        assert!(Instant::now() < deadline, "{blocked}");
    }
}

#[test]
fn nested_scopes_have_cpu_time_each() {
    let _turn = turn_with(Detail::Cpu);
    {
        let _outer = scope!("outer");
        {
            let _inner = scope!("inner");
            spin(Duration::from_millis(2));
        }
        let _asleep = scope!("asleep");
        thread::sleep(A_WHILE);
    }
    let report = snapshot();
    let cpu = |path: &[&str]| report.at(path).unwrap().cpu.unwrap();
    let (outer, inner) = (cpu(&["outer"]), cpu(&["outer", "inner"]));
    assert!(inner >= Duration::from_millis(2), "{report:?}");
    assert!(outer >= inner + cpu(&["outer", "asleep"]), "{report:?}");
    assert!(blocked(&report, &["outer", "asleep"]) > 0.9);
    assert_sound(&report.roots);
}

#[test]
fn helpers_and_dead_threads_add_up() {
    let _turn = turn_with(Detail::Cpu);
    {
        let _create = scope!("create");
        let spawner = spawner();
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    let _attached = spawner.attach();
                    let _read = scope!("read");
                    spin(Duration::from_millis(2));
                });
            }
        });
    }
    let report = snapshot();
    assert_eq!(shape(&report), "create:1(read:2)");
    let read = report.at(&["create", "read"]).unwrap();
    assert!(read.cpu.unwrap() >= Duration::from_millis(4), "{read:?}");
}

#[test]
fn the_sum_is_the_cpu_time_of_the_process() {
    let _turn = turn_with(Detail::Cpu);
    // That of the turn before counts no more.
    stook_timers::reset();
    {
        let _create = scope!("create");
        let spawner = spawner();
        thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    let _attached = spawner.attach();
                    let _read = scope!("read");
                    let _md5 = scope!("md5");
                    spin(Duration::from_millis(20));
                });
            }
        });
    }
    spin(Duration::from_millis(30));
    let report = snapshot();
    let cpu = report.process_cpu.unwrap();
    let (create, read) = (report.at(&["create"]), report.at(&["create", "read"]));
    let scopes = create.unwrap().cpu.unwrap() + read.unwrap().cpu.unwrap();
    assert_eq!(cpu.in_scopes, scopes, "each thread's outermost scopes");
    assert!(cpu.in_scopes >= Duration::from_millis(60), "{cpu:?}");
    assert!(cpu.outside() >= Duration::from_millis(30), "{cpu:?}");
    assert_eq!(cpu.in_scopes + cpu.outside(), cpu.total);
    assert!(cpu.total < Duration::from_millis(500), "{cpu:?}");
    let table = report.tree();
    let names: Vec<&str> = table.lines().map(|line| &line[..8]).collect();
    assert_eq!(names[4..6], ["outside ", "sum     "], "{table}");
    enable();
    assert_eq!(snapshot().process_cpu, None);
}

#[test]
fn early_returns_and_panics_are_calls_like_others() {
    fn find(early: bool) {
        let _find = scope!("find");
        if early {
            return;
        }
        let _rest = scope!("rest");
        panic!("on purpose");
    }
    let _turn = turn_with(Detail::Cpu);
    find(true);
    assert!(catch_unwind(AssertUnwindSafe(|| find(false))).is_err());
    drop(scope!("after"));
    let report = snapshot();
    assert_eq!(shape(&report), "after:1 find:2(rest:1)");
    let is_measured = |record: &Record| record.cpu.is_some() && record.running == 0;
    assert!(report.roots.iter().all(is_measured), "{report:?}");
}

#[test]
fn a_running_call_is_neither_cpu_time_nor_blocked() {
    let _turn = turn_with(Detail::Cpu);
    let reached = Barrier::new(2);
    thread::scope(|threads| {
        threads.spawn(|| {
            let _work = scope!("work");
            spin(Duration::from_millis(1));
            reached.wait();
            reached.wait();
        });
        reached.wait();
        let report = snapshot();
        let work = report.at(&["work"]).unwrap();
        assert_eq!((work.calls, work.running), (0, 1));
        assert_eq!(
            (work.cpu, work.blocked()),
            (Some(Duration::ZERO), Some(Duration::ZERO))
        );
        let table = report.tree();
        let cells: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(&cells[..2], ["work", "0+1"], "{table}");
        assert_eq!(&cells[6..9], ["-", "-", "-"], "{table}");
        reached.wait();
    });
}

#[test]
fn without_being_asked_for_there_is_no_cpu_time() {
    let _turn = turn();
    drop(scope!("work"));
    let report = snapshot();
    let work = report.at(&["work"]).unwrap();
    assert_eq!((work.cpu, work.blocked()), (None, None));
    assert!(!report.json().contains("cpu_ns"));
}

#[test]
fn other_details_forget_what_was_measured_without_them() {
    let _turn = turn();
    let wall = scope!("wall");
    enable_with(Detail::Cpu);
    drop(scope!("inner"));
    drop(wall);
    drop(scope!("both"));
    enable_with(Detail::Cpu);
    assert_eq!(shape(&snapshot()), "both:1 wall:0(inner:1)");
    enable();
    assert_eq!(shape(&snapshot()), "");
}
