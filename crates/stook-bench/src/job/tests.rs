use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::shares::{Shares, Waited};
use crate::statistics::median;
use crate::testing::Quiet;

fn run(line: &str) -> Ran {
    Job::shell(line).run(&Quiet::default()).unwrap()
}

/// Shares of the time and median wall time of five runs.
fn shares(line: &str) -> (Shares, f64) {
    let samples: Vec<Sample> = (1..=5).map(|round| run(line).sample(round)).collect();
    let real: Vec<f64> = samples.iter().map(|sample| sample.real_seconds).collect();
    let shares = Shares::of(&samples.iter().collect::<Vec<_>>());
    (shares.unwrap(), median(&real).unwrap())
}

#[test]
fn sleeping_is_blocked() {
    let (shares, real) = shares("exec sleep 0.2");
    assert!(real >= 0.2, "{real} s");
    if shares.waited.is_none() {
        println!("skipped: the kernel does not count who waits for a processor");
        return;
    }
    assert!(shares.blocked().unwrap() > 0.8, "{shares:?}");
}

#[test]
fn waiting_for_a_processor_is_not_blocked() {
    let processors = std::thread::available_parallelism().unwrap().get();
    let is_over = AtomicBool::new(false);
    let shares = std::thread::scope(|scope| {
        for _ in 0..2 * processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let shares = shares(spin).0;
        is_over.store(true, Ordering::Relaxed);
        shares
    });
    let Some(Waited::Exactly(waited)) = shares.waited else {
        println!("skipped: the kernel does not count how long threads wait for a processor");
        return;
    };
    assert!(
        waited > 0.2 && shares.blocked().unwrap() < 0.1,
        "{shares:?}"
    );
}

#[test]
fn of_several_processes_only_a_bound_is_known() {
    let ran = run("sleep 0.05; true");
    assert_eq!(ran.run_delay, None);
    let (shares, _) = shares("sleep 0.05; true");
    assert!(
        !matches!(shares.waited, Some(Waited::Exactly(_))),
        "{shares:?}"
    );
}

#[test]
fn cpu_time_of_children_is_counted() {
    let ran = run("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true");
    let cpu = ran.user + ran.system;
    assert!(cpu > Duration::from_millis(20), "{cpu:?}");
    // On a busy machine the spin waits for a processor, and then it is shorter than the wall time.
    assert!(
        cpu <= ran.real + Duration::from_millis(20),
        "{cpu:?} of {:?}",
        ran.real
    );
}

#[test]
fn a_failing_command_is_reported_with_the_end_of_its_stderr() {
    let job = Job::shell("seq 1 5000 >&2; echo it broke >&2; exit 7");
    let error = job
        .succeed("in round 2", &Quiet::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(
            "`seq 1 5000 >&2; echo it broke >&2; exit 7` failed in round 2: exit status 7\n"
        ),
        "{error}"
    );
    assert!(
        error.ends_with("\n  4999\n  5000\n  it broke") && error.len() < 8000,
        "{error}"
    );
    let killed = Job::shell("kill -9 $$").succeed("once", &Quiet::default());
    assert!(
        killed
            .unwrap_err()
            .to_string()
            .ends_with("failed once: signal 9")
    );
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Job::new(["no-such-program"])
        .run(&Quiet::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot run `no-such-program`: no such file or directory"
    );
}

#[test]
fn stdout_is_kept_only_when_it_is_wanted() {
    assert!(run("echo a").stdout.is_empty());
    let job = Job {
        output: Output::Kept,
        ..Job::shell("echo $WORD; echo b")
    };
    let job = Job {
        environment: vec![("WORD".into(), "a".into())],
        ..job
    };
    assert_eq!(job.run(&Quiet::default()).unwrap().stdout, b"a\nb\n");
}

#[test]
fn an_end_ends_the_whole_group() {
    let started = Instant::now();
    let quiet = Quiet::stopped();
    let error = Job::shell("sleep 60 & sleep 60").run(&quiet).unwrap_err();
    assert!(matches!(error, BenchError::Interrupted));
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_child_that_stays_behind_does_not_hold_the_bench_up() {
    let started = Instant::now();
    run("sleep 20 & true");
    assert!(started.elapsed() < Duration::from_secs(10));
}
