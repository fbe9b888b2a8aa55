//! What is measured is started by a small process: its figures, its ends, its errors.

use std::path::PathBuf;

use stook_bench::{BenchError, Job, Output, Ran, set_launcher};

use crate::observer::Quiet;

fn launched(job: &Job) -> Result<Ran, BenchError> {
    set_launcher(PathBuf::from(env!("CARGO_BIN_EXE_stook-bench-launcher")));
    job.run(&Quiet::default())
}

#[test]
fn the_memory_of_the_bench_does_not_count_for_a_command() {
    let block = vec![1_u8; 256 << 20];
    assert_eq!(std::hint::black_box(&block)[7], 1);
    let small = launched(&Job::new(["true"])).unwrap().peak_bytes;
    assert!((1..64 << 20).contains(&small), "{small}");
    drop(block);
    let line = "dd if=/dev/zero of=/dev/null bs=300M count=1";
    let large = launched(&Job::shell(line)).unwrap().peak_bytes;
    assert!(large >= 300 << 20, "{large}");
}

#[test]
fn output_and_ending_are_those_of_the_command() {
    let job = Job {
        output: Output::Kept,
        directory: Some("/".into()),
        environment: vec![("WORD".into(), "a b".into())],
        ..Job::shell("echo \"$WORD\" $(pwd); echo broken >&2; cat; exit 7")
    };
    let ran = launched(&job).unwrap();
    assert_eq!(
        (ran.stdout.as_slice(), &*ran.stderr),
        (&b"a b /\n"[..], "broken")
    );
    assert_eq!(ran.status.code(), Some(7));
    assert!(
        !(ran.user + ran.system).is_zero(),
        "the CPU time of children counts"
    );
    let error = Job::shell("kill -9 $$").succeed("once", &Quiet::default());
    assert!(
        error
            .unwrap_err()
            .to_string()
            .ends_with("failed once: signal 9")
    );
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = launched(&Job::new(["no-such-program"])).unwrap_err();
    let expected = "cannot run `no-such-program`: no such file or directory";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_end_ends_the_command_and_its_children() {
    set_launcher(PathBuf::from(env!("CARGO_BIN_EXE_stook-bench-launcher")));
    let folder = stook_testkit::TempDir::new().unwrap();
    let job = Job {
        directory: Some(folder.path().to_owned()),
        ..Job::shell("sleep 1000 & echo $! > child; wait")
    };
    let stopped = StopsOnce(folder.join("child"));
    assert!(matches!(job.run(&stopped), Err(BenchError::Interrupted)));
    let child = std::fs::read_to_string(folder.join("child")).unwrap();
    let path = PathBuf::from(format!("/proc/{}/stat", child.trim()));
    // A process that nobody has waited for yet is a zombie.
    let is_over = |stat: &str| stat.contains(") Z ");
    while let Ok(stat) = std::fs::read_to_string(&path) {
        if is_over(&stat) {
            break;
        }
        std::thread::yield_now();
    }
}

/// Wants an end as soon as there is this file with a line in it.
struct StopsOnce(PathBuf);

impl stook_bench::Observer for StopsOnce {
    fn is_stopped(&self) -> bool {
        std::fs::read_to_string(&self.0).is_ok_and(|text| text.ends_with('\n'))
    }
}
