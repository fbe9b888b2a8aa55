//! An archive on a file system without locks, as `strace` makes one of any.

use std::path::Path;

use stook_testkit::{Tree, tree};

use crate::place::{Place, Ran};

fn sample() -> Tree {
    tree! { "a" => file(b"first"), "b" => file(b"second") }
}

/// Runs the program where every call that locks, or asks for locks, fails; `None` where nothing can be traced. The first
/// call of that name only asks whether stdout is open.
fn run_without_locks(place: &Place, arguments: &[&str]) -> Option<Ran> {
    let inject = [
        "-f",
        "-o",
        "/dev/null",
        "-e",
        "inject=fcntl:error=EOPNOTSUPP:when=2+",
        "-e",
        "inject=flock:error=EOPNOTSUPP",
    ];
    let strace = |program: &[&str]| {
        let all = [&inject[..], program].concat();
        place.command_of(Path::new("strace"), &all).output()
    };
    if !strace(&["/bin/true"]).is_ok_and(|done| done.status.success()) {
        stook_testkit::skip!("strace is not there, or may not trace");
        return None;
    }
    let program = [&[env!("CARGO_BIN_EXE_stook")], arguments].concat();
    Some(Ran::of(strace(&program).unwrap()))
}

#[test]
fn an_archive_is_read_where_nothing_can_be_locked() {
    let place = Place::with(&sample());
    place.stderr(&["create", "src", "archive"]);
    for (arguments, output) in [
        (&["list", "archive"][..], "a\nb\n"),
        (&["cat", "archive", "b"], "second"),
        (&["check", "archive"], ""),
    ] {
        let Some(ran) = run_without_locks(&place, arguments) else {
            return;
        };
        assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.stderr);
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), output);
    }
}

#[test]
fn an_archive_is_written_where_nothing_can_be_locked() {
    let place = Place::with(&sample());
    for (arguments, says) in [
        (&["create", "src", "archive"][..], "archived 2 entries"),
        (&["update", "src", "archive"], "archived 1 entry"),
    ] {
        let Some(ran) = run_without_locks(&place, arguments) else {
            return;
        };
        assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
        assert_eq!(place.names("archive").last().unwrap(), "index.db");
        place.write("src/c", b"third");
    }
    place.stderr(&["check", "archive", "--volumes"]);
}

#[test]
fn a_writer_on_another_host_is_seen_where_nothing_can_be_locked() {
    let place = Place::with(&sample());
    place.stderr(&["create", "src", "archive"]);
    place.write("archive/stook.lock", b"1 another-host\n");
    let Some(ran) = run_without_locks(&place, &["update", "src", "archive"]) else {
        return;
    };
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("it is being written by process 1 on another-host"),
        "{}",
        ran.stderr
    );
    assert!(place.path("archive/stook.lock").exists());
}

#[test]
fn a_log_in_the_folder_of_the_archive_is_left_alone() {
    let place = Place::with(&sample());
    std::fs::create_dir(place.path("src/arc")).unwrap();
    place.write("src/arc/stook.log", b"begun");
    place.stderr(&["create", "src", "src/arc"]);
    place.write("src/arc/stook.log", b"begun, and more");
    place.stderr(&["update", "src", "src/arc"]);
    assert!(!place.stdout(&["list", "src/arc"]).contains("stook.log"));
    let log = std::fs::read(place.path("src/arc/stook.log")).unwrap();
    assert_eq!(log, b"begun, and more");
}
