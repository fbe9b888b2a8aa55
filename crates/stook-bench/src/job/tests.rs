use super::*;

use crate::shares::{Shares, Waited};
use crate::testing::Quiet;

fn run(line: &str) -> Ran {
    Job::shell(line).run(&Quiet::default()).unwrap()
}

fn shares(line: &str) -> Shares {
    let sample = run(line).sample(1);
    Shares::of(&[&sample]).unwrap()
}

#[test]
fn sleeping_takes_time_and_next_to_no_processor() {
    let ran = run("exec sleep 0.2");
    assert!(ran.real >= Duration::from_millis(200));
    assert!(ran.user + ran.system < ran.real, "{ran:?}");
}

#[test]
fn of_one_thread_it_is_known_how_long_it_waited_for_a_processor() {
    let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let shares = shares(spin);
    let Some(Waited::Exactly(waited)) = shares.waited else {
        stook_testkit::skip!("the kernel does not count how long threads wait for a processor");
        return;
    };
    assert!(waited >= 0.0 && shares.blocked().unwrap() <= 1.0 - shares.cpu.min(1.0));
}

#[test]
fn of_several_processes_only_a_bound_is_known() {
    let line = "sleep 0.05; true";
    assert_eq!(run(line).run_delay, None);
    let waited = shares(line).waited;
    assert!(!matches!(waited, Some(Waited::Exactly(_))), "{waited:?}");
}

#[test]
fn cpu_time_of_children_is_counted() {
    let alone = run("true");
    let ran = run("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true");
    assert!(ran.user + ran.system > alone.user + alone.system, "{ran:?}");
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
fn stdout_is_kept_only_when_it_is_wanted() {
    assert!(run("echo a").stdout.is_empty());
    let job = Job {
        output: Output::Kept,
        environment: vec![("WORD".into(), "a".into())],
        ..Job::shell("echo $WORD; echo b")
    };
    assert_eq!(job.run(&Quiet::default()).unwrap().stdout, b"a\nb\n");
}

#[test]
fn a_user_who_wants_an_end_gets_one() {
    let stopped = Job::shell("sleep 1000 & sleep 1000").run(&Quiet::stopped());
    assert!(matches!(stopped, Err(BenchError::Interrupted)));
}

#[test]
fn a_child_that_stays_behind_does_not_hold_the_bench_up() {
    let job = Job {
        output: Output::Kept,
        ..Job::shell("sleep 1000 & echo $!")
    };
    let ran = job.run(&Quiet::default()).unwrap();
    let child = String::from_utf8(ran.stdout).unwrap();
    let child = child.trim();
    assert!(std::path::Path::new(&format!("/proc/{child}")).exists());
    run(&format!("kill {child}"));
}
