//! Programs of a few lines, and how they are watched.

use super::*;
use crate::transfer::Silent;
use std::sync::atomic::{AtomicBool, Ordering};

const LONG: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Program<'static> {
    Program {
        path: Path::new("sh"),
        arguments: ["-c", script].map(OsString::from).to_vec(),
        input: Input::Nothing,
        directory: None,
        patience: LONG,
    }
}

fn run(program: &Program<'_>) -> Result<Output, StoreCause> {
    program.run(&Silent, &mut || false)
}

#[test]
fn what_a_program_writes_and_how_it_ends_is_told() {
    let output = run(&shell(
        "cat; echo out; echo first >&2; echo last >&2; exit 3",
    ))
    .unwrap();
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"first\nlast\n");
    let error = output.require_success("sh").unwrap_err();
    assert_eq!(error.to_string(), "sh says: last");
    let output = run(&shell("kill -9 $$")).unwrap();
    assert_eq!(output.line(), "signal: 9 (SIGKILL)");
    run(&shell("true")).unwrap().require_success("sh").unwrap();
}

#[test]
fn a_program_reads_what_it_is_given() {
    let given = Program {
        input: Input::Bytes(vec![b'x'; 300_000]),
        ..shell("wc -c")
    };
    assert_eq!(run(&given).unwrap().stdout, b"300000\n");
    let file = File::open("/proc/self/cmdline").unwrap();
    let given = Program {
        input: Input::File(file),
        ..shell("wc -c")
    };
    assert_ne!(run(&given).unwrap().stdout, b"0\n");
}

#[test]
fn variables_of_the_loader_are_left_out_and_there_is_no_terminal() {
    let script = "env | grep ^LD_; ps -o tty= -p $$; : </dev/tty";
    let output = run(&shell(script)).unwrap();
    assert_eq!(output.stdout, b"?\n");
    assert!(!output.status.success());
}

#[test]
fn what_a_process_reads_is_counted() {
    let io = Path::new("/proc/self/io");
    let before = read_and_written(io);
    let len = read_all(Path::new("/proc/self/maps")).unwrap().len() as u64;
    assert!(read_and_written(io) >= before + len && len > 0);
    assert_eq!(read_and_written(Path::new("/proc/self/no")), 0);
}

#[test]
fn a_program_runs_where_it_should() {
    let folder = tempfile::tempdir().unwrap();
    let there = Program {
        directory: Some(folder.path()),
        ..shell("pwd -P")
    };
    let path = folder.path().canonicalize().unwrap();
    let output = run(&there).unwrap();
    assert_eq!(output.line(), path.to_str().unwrap());
    let nowhere = Program {
        directory: Some(Path::new("/no/such/folder")),
        ..shell("pwd")
    };
    let error = run(&nowhere).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot look at `/no/such/folder`"),
        "{error}"
    );
}

#[test]
fn a_missing_program_is_named() {
    for path in ["stook-no-such-program", "/no/such/program"] {
        let missing = Program {
            path: Path::new(path),
            ..shell("")
        };
        let error = run(&missing).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the program `{path}` was not found")
        );
    }
    let folder = Program {
        path: Path::new("/"),
        ..shell("")
    };
    assert_eq!(
        run(&folder).unwrap_err().to_string(),
        "cannot start `/`: permission denied"
    );
}

#[test]
fn what_a_program_leaves_behind_keeps_nobody_waiting() {
    let output = run(&shell("sleep 60 & echo $!")).unwrap();
    let left: String = String::from_utf8(output.stdout).unwrap();
    let kill = format!("kill {left}");
    run(&shell(&kill)).unwrap().require_success("sh").unwrap();
}

#[test]
fn patience_ends_a_program_that_does_nothing_and_none_that_moves() {
    let patience = Duration::from_millis(800);
    let still = Program {
        patience,
        ..shell("trap '' TERM; while :; do sleep 60; done")
    };
    let error = run(&still).unwrap_err();
    assert!(matches!(error, StoreCause::Timeout(0)), "{error}");
    let writing = Program {
        patience,
        ..shell("for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.2; done")
    };
    assert_eq!(run(&writing).unwrap().stdout.len(), 18);
    let computing = Program {
        patience,
        ..shell("i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done")
    };
    run(&computing).unwrap().require_success("sh").unwrap();
    let moving = Program {
        patience,
        ..shell("sleep 1.6")
    };
    moving.run(&Silent, &mut || true).unwrap();
}

struct Asked(AtomicBool);

impl TransferObserver for Asked {
    fn is_interrupted(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }
}

#[test]
fn an_interruption_ends_a_program_with_all_that_it_started() {
    // The file is there as long as the inner shell lives.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alive");
    let script = format!(
        "trap '' TERM; (trap 'rm {0}; exit' TERM; : >{0}; while :; do sleep 0.05; done) & wait",
        path.display()
    );
    let observer = Asked(AtomicBool::new(false));
    let error = shell(&script).run(&observer, &mut || {
        while !path.exists() {
            std::thread::yield_now();
        }
        false
    });
    let error = error.unwrap_err();
    assert!(matches!(error, StoreCause::Interrupted), "{error}");
    assert!(!path.exists());
}
