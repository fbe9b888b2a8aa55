//! `copy`: what it prints, how it ends, and that a killed one is finished by the same command with --update.

use std::process::Stdio;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use stook_testkit::{Random, Tree, file, tree};

use crate::crash::{points, seed, slow_tree};
use crate::place::{Place, Ran, Signal, json_lines, wait_until};

fn small() -> Place {
    Place::with(&tree! {
        "f" => file(b"content"),
        "d/g" => file(b"more"),
        "d/s" => stook_testkit::socket(),
        "e/" => dir(),
    })
}

#[test]
fn a_copy_says_what_it_did() {
    let place = small();
    assert_snapshot!(place.stderr(&["copy", "src", "b"]), @r"
    skipped `src/d/s`: it is a socket
    copied 5 entries, 11 B
    ");
    let ran = place.run(&["copy", "src", "b"]);
    assert_eq!((ran.status, ran.text()), (Some(1), ""));
    assert_snapshot!(ran.stderr, @r"
    error: cannot copy to `b`: it is there already
    hint: `--update` copies what differs
    ");
    std::fs::remove_file(place.path("src/d/s")).unwrap();
    place.write("src/f", "changed");
    assert_snapshot!(place.stderr(&["copy", "src", "b/", "--update", "--verify"]), @"copied 1 entry, 7 B; 4 unchanged; 11 B verified");
    place.assert_same_tree("src", "b");
    assert_eq!(place.stderr(&["copy", "src", "c", "--quiet"]), "");
}

#[test]
fn a_dry_run_prints_paths_and_json_prints_the_same_facts() {
    let place = small();
    let printed = place.stdout(&["copy", "src", "b", "--dry-run"]);
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["src", "src/d", "src/d/g", "src/e", "src/f"]);
    assert!(!place.path("b").exists());
    let ran = place.run(&["copy", "src", "b", "--dry-run", "--json"]);
    let events = json_lines(ran.text());
    let would = events.iter().filter(|event| event["type"] == "would-copy");
    assert_eq!(would.count(), 5);
    let expected = serde_json::json!({
        "type": "summary", "entries": 5, "directories": 3, "bytes": 11, "unchanged": 0, "verified": null,
        "failed": 0, "dry_run": true,
    });
    assert_eq!(events.last(), Some(&expected));
    assert_eq!(ran.status, Some(0));
}

#[test]
fn differences_are_failures_that_are_named() {
    let place = small();
    place.stderr(&["copy", "src", "b"]);
    let time = std::fs::metadata(place.path("src/f")).unwrap().modified();
    place.write("b/f", "contenT");
    let copy = std::fs::File::options().write(true).open(place.path("b/f"));
    copy.unwrap().set_modified(time.unwrap()).unwrap();
    let ran = place.run(&["copy", "src", "b", "--update", "--verify", "--json"]);
    assert_eq!(ran.status, Some(3));
    assert!(
        ran.stderr
            .contains("error: cannot verify `b/f`: it differs at byte 6\n"),
        "{}",
        ran.stderr
    );
    let events = json_lines(ran.text());
    let failure = events.iter().find(|event| event["type"] == "failure");
    assert_eq!(failure.unwrap()["path"], "b/f");
    assert_eq!(events.last().unwrap()["failed"], 1);
}

#[test]
fn twenty_failures_are_named_and_then_their_number() {
    let mut tree = Tree::new();
    for number in 0..30 {
        tree.insert(format!("f{number:02}"), file(b"x"));
    }
    let place = Place::with(&tree);
    for number in 0..30 {
        std::fs::create_dir_all(place.path(&format!("b/f{number:02}/full"))).unwrap();
    }
    let ran = place.run(&["copy", "src", "b", "--update"]);
    assert_eq!(ran.status, Some(3));
    let named = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("error: cannot replace `b/f"));
    assert_eq!(named.count(), 20);
    assert!(
        ran.stderr.contains("error: and 10 more failures\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .ends_with("copied 0 entries, 0 B; 1 unchanged; 30 failed\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn system_calls_are_counted() {
    let place = Place::with(&Tree::wide(500));
    let events = place.json(&["copy", "src", "b", "--syscalls", "--json"]);
    let calls = |name: &str| -> u64 {
        let all = events.iter().filter(|event| event["type"] == "syscall");
        let found = all.clone().find(|event| event["name"] == name);
        found.map_or(0, |event| event["calls"].as_u64().unwrap())
    };
    // What 500 small files take, and no more; the few besides are for directories, and to learn what works.
    for (name, expected) in [
        ("openat", 1000),
        ("statx", 500),
        ("flistxattr", 500),
        ("pwrite64", 500),
        ("utimensat", 500),
        ("close", 1000),
    ] {
        let calls = calls(name);
        assert!(
            (expected..expected + 40).contains(&calls),
            "{name}: {calls}"
        );
    }
    // Where content is shared or copied by the system, it is not read.
    let content: u64 = ["pread64", "copy_file_range", "ioctl(FICLONE)"]
        .map(calls)
        .iter()
        .sum();
    assert!(content >= 500, "{content}");
    for name in ["fchown", "fchmod", "unlinkat", "mkdirat"] {
        assert!(calls(name) < 40, "{name}: {}", calls(name));
    }
}

#[test]
fn only_a_refused_link_becomes_a_copy() {
    let place = Place::with(&tree! { "one" => file(b"shared"), "two" => hardlink("one") });
    let run = |error: &str| {
        let fails = format!("inject=linkat:error={error}");
        let program = env!("CARGO_BIN_EXE_stook");
        let arguments = [
            "-f",
            "-o",
            "/dev/null",
            "-e",
            &fails,
            program,
            "copy",
            "src",
            "b",
        ];
        let strace = std::path::Path::new("strace");
        place.command_of(strace, &arguments).output().map(Ran::of)
    };
    for error in ["EMLINK", "EXDEV", "EPERM", "EOPNOTSUPP"] {
        let ran = match run(error) {
            Ok(ran) if !ran.stderr.contains("ptrace") => ran,
            other => {
                stook_testkit::skip!("strace cannot trace: {:?}", other.err());
                return;
            }
        };
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert!(
            ran.stderr
                .contains("some hard links became files of their own"),
            "{}",
            ran.stderr
        );
        assert_eq!(place.names("b").len(), 2);
        std::fs::remove_dir_all(place.path("b")).unwrap();
    }
    for (error, why) in [
        ("EIO", "input/output error"),
        ("ENOSPC", "no space left on device"),
        ("EMFILE", "too many open files"),
    ] {
        let ran = run(error).unwrap();
        assert!(matches!(ran.status, Some(1 | 3)), "{}", ran.stderr);
        let named = |name: &str| {
            ran.stderr
                .contains(&format!("error: cannot link `b/{name}`: {why}\n"))
        };
        assert!(named("one") || named("two"), "{}", ran.stderr);
        assert_eq!(place.names("b").len(), 1);
        std::fs::remove_dir_all(place.path("b")).unwrap();
    }
}

#[test]
fn an_interrupted_copy_goes_on_with_update() {
    let place = Place::with(&slow_tree());
    let mut child = place
        .command(&["copy", "src", "b", "--jobs", "1"])
        .spawn()
        .unwrap();
    let signal = Signal::ready(&child, "INT");
    let begun = || place.names("b").len() > 1;
    assert!(wait_until(&mut child, begun), "it ended too soon");
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    // It may have been done already: what counts is that the next run completes it.
    if ran.status == Some(130) {
        let hint = "error: interrupted\nhint: the same command with --update goes on\n";
        assert!(ran.stderr.ends_with(hint), "{}", ran.stderr);
    } else {
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    }
    place.stderr(&["copy", "src", "b", "--update"]);
    place.assert_same_tree("src", "b");
}

#[test]
fn kill_9_at_any_moment_and_update_gives_the_same_copy() {
    let (points, seed) = (points(), seed());
    println!("STOOK_CRASH_SEED={seed} STOOK_CRASH_POINTS={points}");
    let mut random = Random::new(seed);
    let mut tree = slow_tree();
    tree.graft("hard", &Tree::hardlinks());
    tree.graft("sparse", &Tree::sparse());
    tree.insert("large", file(random.bytes(12 << 20)));
    let place = Place::with(&tree);
    let started = Instant::now();
    place.stderr(&["copy", "src", "whole"]);
    let mut whole = started.elapsed();
    let mut kills = 0;
    for point in 0..points {
        let mut arguments = vec!["copy", "src", "b"];
        for again in 0..=point % 3 {
            let delay: Duration = whole.mul_f64(random.unit());
            let mut command = place.command(&arguments);
            let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = silent.spawn().unwrap();
            let started = Instant::now();
            wait_until(&mut child, || started.elapsed() >= delay);
            child.kill().unwrap();
            let is_killed = child.wait().unwrap().code().is_none();
            kills += usize::from(is_killed);
            if again == 0 && !is_killed {
                // The machine was busier when the whole run was timed.
                whole = whole.min(started.elapsed());
            }
            assert_looks_done_only_if_it_is(&place);
            if again == 0 {
                arguments.push("--update");
            }
        }
        place.stderr(&["copy", "src", "b", "--update", "--verify"]);
        place.assert_same_tree("src", "b");
        std::fs::remove_dir_all(place.path("b")).unwrap();
    }
    println!("{kills} kills");
    assert!(kills > points / 3, "hardly anything was killed");
}

/// Every file with size and time of its original has its content.
fn assert_looks_done_only_if_it_is(place: &Place) {
    if !place.path("b").exists() {
        return;
    }
    let (originals, copies) = (place.snapshot("src"), place.snapshot("b"));
    for (path, facts) in copies.entries() {
        let Some(original) = originals.get(path) else {
            let name = String::from_utf8_lossy(path);
            assert!(name.contains(".stook-"), "{name}");
            continue;
        };
        if (facts.size, facts.mtime_ns) == (original.size, original.mtime_ns) {
            assert_eq!(facts.md5, original.md5, "{path:?}");
        }
    }
}

#[test]
fn paths_are_not_taken_for_others() {
    let place = small();
    std::fs::create_dir(place.path("b")).unwrap();
    for (arguments, expected) in [
        (
            ["copy", "src", "src/d/b"],
            "error: cannot copy to `src/d/b`: it is in the tree that is copied\n",
        ),
        (
            ["copy", "src", "src"],
            "error: cannot copy to `src`: it is the tree itself\n",
        ),
        (
            ["copy", "none", "b"],
            "error: cannot copy `none`: no such file or directory\n",
        ),
        (
            ["copy", "src/f", "b"],
            "error: cannot copy to `b`: it is a directory\n",
        ),
    ] {
        let ran = place.run(&arguments);
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(1), expected));
    }
    assert_eq!(place.names("b"), [""; 0]);
    let ran = place.run(&["copy", "src"]);
    assert_eq!(ran.status, Some(2));
    let ran = place.run(&["copy", "src", "b", "--verify", "--dry-run"]);
    assert_eq!(ran.status, Some(2));
}
