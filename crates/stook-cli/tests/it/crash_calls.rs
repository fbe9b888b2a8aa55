//! kill -9 at the N-th system call that changes the disk, N by N, with `strace` to send the signal.
//!
//! Random moments seldom hit the short stretches between two calls; this hits each of them. All of them with
//! `STOOK_CRASH_POINTS=200` and more, otherwise every sixteenth, beginning anywhere.

use std::path::Path;
use std::process::Command;

use stook_testkit::{Random, Tree, file};

use crate::crash::{assert_equal_archives, complete, copy_with_modes, points, seed, undisturbed};
use crate::place::{Place, Ran};

/// Calls after which the disk, or what this process may do with it, has changed.
const CALLS: &str = "pwrite64,write,rename,renameat,renameat2,unlink,unlinkat,fsync,fdatasync,fchmod,ftruncate,mkdirat,openat,flock";

fn is_there() -> bool {
    let tried = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .status();
    let is_there = tried.is_ok_and(|status| status.success());
    if !is_there {
        stook_testkit::skip!("strace is not there, or may not trace");
    }
    is_there
}

/// Runs a command that is killed at the call of this number; returns false if it has fewer.
fn killed_at(place: &Place, number: usize, arguments: &[&str]) -> bool {
    let inject = format!("inject={CALLS}:signal=SIGKILL:when={number}");
    let trace = format!("trace={CALLS}");
    killed(place, &["-e", &trace, "-e", &inject], arguments)
}

/// Runs a command under `strace` with these options; returns true if it was killed.
fn killed(place: &Place, options: &[&str], arguments: &[&str]) -> bool {
    let tracer = [&["-f", "-qq", "-o", "/dev/null"], options].concat();
    let all = [&tracer[..], &[env!("CARGO_BIN_EXE_stook")], arguments].concat();
    let mut command = place.command_of(Path::new("strace"), &all);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let ran = Ran::of(command.output().unwrap());
    assert!(
        ran.status.is_none() || ran.status == Some(0),
        "{}",
        ran.stderr
    );
    ran.status.is_none()
}

fn kill_call_by_call(place: &Place, arguments: &[&str], before: Option<&Path>, expected: &Path) {
    let stride = if points() >= 200 { 1 } else { 16 };
    let start = 1 + usize::try_from(seed()).unwrap_or(0) % stride;
    let archive = place.path("arc");
    let mut kills = 0;
    for number in (start..).step_by(stride) {
        if archive.exists() {
            std::fs::remove_dir_all(&archive).unwrap();
        }
        if let Some(before) = before {
            copy_with_modes(before, &archive);
        }
        if !killed_at(place, number, arguments) {
            break;
        }
        kills += 1;
        println!("call {number} of {}", arguments[0]);
        complete(place, arguments);
        assert_equal_archives(expected, &archive);
    }
    println!("{}: {kills} kills, all ended equal", arguments[0]);
    assert!(kills > 60 / stride, "hardly anything was killed");
}

#[test]
fn kill_9_at_any_system_call_and_the_same_command_again_gives_the_same_archive() {
    if !is_there() {
        return;
    }
    println!(
        "STOOK_CRASH_SEED={} STOOK_CRASH_POINTS={}",
        seed(),
        points()
    );
    let mut random = Random::new(1);
    let mut tree = Tree::new();
    for number in 10..24 {
        tree.insert(format!("d/f{number}"), file(random.bytes(4000)));
    }
    tree.insert("big", file(random.bytes(5 << 20)));
    tree.insert("z", file(b"z"));
    let place = Place::with(&tree);
    let options = [
        "--volume-size",
        "20KiB",
        "--checkpoint-size",
        "6KiB",
        "--jobs",
        "1",
    ];
    let create = [&["create", "src", "arc"][..], &options].concat();
    let update = [&["update", "src", "arc"][..], &options].concat();
    let created = undisturbed(&place, &[&create]);
    kill_call_by_call(&place, &create, None, &created);

    let before = place.path("created");
    std::fs::rename(&created, &before).unwrap();
    std::fs::remove_file(place.path("src/z")).unwrap();
    for number in (10..24).step_by(2) {
        place.write(&format!("src/d/f{number}"), random.bytes(4100));
    }
    std::fs::remove_dir_all(place.path("arc")).unwrap();
    copy_with_modes(&before, &place.path("arc"));
    let updated = undisturbed(&place, &[&update]);
    kill_call_by_call(&place, &update, Some(&before), &updated);
}

/// The volume is on record as sent, and was about to be removed.
#[test]
fn a_volume_that_a_kill_left_after_it_was_sent_goes_with_the_next_run() {
    if !is_there() {
        return;
    }
    let tree = ["a", "b", "c"].map(|name| (name, file([b'x'; 9000])));
    let mut source = Tree::new();
    for (name, node) in tree {
        source.insert(name, node);
    }
    let create = ["create", "src", "arc", "--volume-size", "20KiB"];
    let create = [&create[..], &["--store", "store"]].concat();
    let kill = ["-P", "arc/000001.tar", "-e", "trace=unlink,unlinkat"];
    let kill = [
        &kill[..],
        &["-e", "inject=unlink,unlinkat:error=EINTR:signal=SIGKILL"],
    ]
    .concat();
    for keeps in [false, true] {
        let place = Place::with(&source);
        assert!(killed(&place, &kill, &create));
        assert!(place.names("arc").contains(&"000001.tar".to_owned()));
        let again = match keeps {
            false => create.clone(),
            true => [&create[..], &["--keep-volumes"]].concat(),
        };
        complete(&place, &again);
        let is_left = place.names("arc").contains(&"000001.tar".to_owned());
        assert_eq!(is_left, keeps);
        place.stderr(&["check", "arc", "--volumes"]);
        // A volume that was fetched stays.
        place.stderr(&["pull", "arc"]);
        place.stderr(&["update", "src", "arc"]);
        assert!(place.names("arc").contains(&"000001.tar".to_owned()));
    }
}
