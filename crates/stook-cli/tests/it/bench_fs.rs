//! `stook bench fs`: targets measured side by side, what is refused, what is left behind.

use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;
use stook_testkit::slowfs::{Options, SlowFs, unavailable};

use crate::no_space::SmallDisk;
use crate::place::{Place, Ran, Signal, json_lines, names, wait_until};

/// A place with targets.
fn place(targets: &[&str]) -> Place {
    let place = Place::new();
    for target in targets {
        std::fs::create_dir(place.path(target)).unwrap();
    }
    place
}

/// The bench of these targets, with few files.
fn bench<'a>(targets: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    let few = ["--work", ".", "--files", "150", "--rounds", "1"];
    [&["bench", "fs"], targets, &few, options].concat()
}

fn samples(lines: &[Value]) -> Vec<&Value> {
    lines
        .iter()
        .filter(|line| line["type"] == "sample")
        .collect()
}

fn failure(ran: &Ran) -> &str {
    assert_eq!((ran.status, ran.text()), (Some(1), ""), "{}", ran.stderr);
    &ran.stderr
}

/// What the bench must leave as it was.
fn assert_clean(place: &Place, targets: &[&str]) {
    for target in targets {
        assert_eq!(place.names(target), [""; 0], "{target}");
    }
    let left: Vec<String> = place
        .names(".")
        .into_iter()
        .filter(|name| name.starts_with("stook-bench"))
        .collect();
    assert_eq!(left, [""; 0]);
}

/// Puts a program of this name before that of the system.
fn with_program(place: &Place, arguments: &[&str], name: &str, script: &str) -> Ran {
    std::fs::create_dir(place.path("bin")).unwrap();
    place.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("bin").join(name), executable).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
    Ran::of(place.command(arguments).env("PATH", path).output().unwrap())
}

#[test]
fn targets_are_measured_with_all_tools_and_left_as_they_were() {
    let place = place(&["a", "b"]);
    let ran = place.run(&bench(&["a", "b"], &["--save", "results.jsonl"]));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let text = ran.text();
    assert!(
        text.starts_with("Seconds, the median of 1 round: 150 files"),
        "{text}"
    );
    let row = |target: &str, tool: &str| {
        let is_row = |line: &&str| line.split_whitespace().take(2).eq([target, tool]);
        text.lines()
            .find(is_row)
            .map(|line| line.split_whitespace().count())
    };
    // Names of 150 files are found in no time, on both targets.
    let hint = "\nhint: `--files` with a larger number\n";
    assert!(text.contains("too short to judge: "), "{text}");
    assert_eq!(ran.stderr.matches(hint).count(), 1, "{}", ran.stderr);
    for (target, tool) in [("a", "system"), ("a", "stook"), ("b", "single")] {
        assert_eq!(row(target, tool), Some(10), "{target} {tool}: {text}");
    }
    assert!(
        ran.stderr.contains("round 1 of 1: copy-tree on `b`"),
        "{}",
        ran.stderr
    );
    assert_clean(&place, &["a", "b"]);
    let saved = json_lines(&std::fs::read_to_string(place.path("results.jsonl")).unwrap());
    assert_eq!(
        (saved[0]["kind"].as_str(), samples(&saved).len()),
        (Some("fs"), 2 * 8 * 3)
    );
    assert!(saved[0]["facts"]["a"]["type"].is_string() && saved[0]["files"]["files"] == 150);
    assert!(
        saved[0]["programs"]["tar"]
            .as_str()
            .unwrap()
            .contains("tar")
    );
    let is_title = |line: &str| {
        let last = line.split_whitespace().rev().take(3);
        last.eq(["BLOCKED", "WAITED", "CPU"])
    };
    assert!(text.lines().any(is_title), "{text}");
}

#[test]
fn how_long_a_tool_waited_for_a_processor_is_known_of_one_thread() {
    let place = place(&["a"]);
    let lines = place.json(&bench(&["a"], &["--json", "--phases", "untar"]));
    let delay = |tool: &str| {
        let of_tool = |sample: &&&Value| sample["labels"]["tool"] == tool;
        let all = samples(&lines);
        let sample = all.iter().find(of_tool).unwrap();
        sample["run_delay_seconds"].as_f64()
    };
    if delay("single").is_none() {
        stook_testkit::skip!("the kernel does not count how long a thread waits for a processor");
        return;
    }
    assert!(delay("system").is_some(), "tar has one thread: {lines:?}");
    assert_eq!(delay("stook"), None, "it has several: {lines:?}");
}

#[test]
fn chosen_phases_are_printed_as_json() {
    let place = place(&["a"]);
    let options = [
        "--json",
        "--phases",
        "delete,stat",
        "--tools",
        "single,stook",
    ];
    let printed = place.stdout(&bench(&["a"], &options));
    let lines = json_lines(&printed);
    // What is printed is a file of results, too.
    place.write("printed.jsonl", printed);
    let made = place.stderr(&["bench", "report", "printed.jsonl", "-o", "page.html"]);
    assert_eq!(made, "wrote `page.html` about 1 run\n");
    let summary = lines.last().unwrap();
    assert_eq!(
        (&summary["type"], &summary["samples"]),
        (&"summary".into(), &4.into())
    );
    assert!(summary["advice"].is_array() && summary["warnings"].is_array());
    let found: Vec<String> = samples(&lines)
        .iter()
        .map(|sample| {
            format!("{} {}", sample["labels"]["phase"], sample["labels"]["tool"]).replace('"', "")
        })
        .collect();
    assert_eq!(
        found,
        ["stat single", "stat stook", "delete single", "delete stook"]
    );
    let single = samples(&lines)[0];
    assert!(single["latencies"]["stat"]["p99_ns"].as_u64().unwrap() > 0);
    assert!(
        single["proof"]["overhead_share"].as_f64().unwrap() < 0.1,
        "{single}"
    );
}

#[test]
fn names_that_look_like_options_or_machines_are_only_names() {
    let place = place(&["-x", "host:dir"]);
    let first = [
        "bench", "fs", "--work", ".", "--files", "20", "--rounds", "1", "--", "-x", "host:dir",
    ];
    place.stdout(&first);
    assert_clean(&place, &["-x", "host:dir"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = place(&["a"]);
    let refused = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!((ran.status, ran.text()), (Some(2), ""), "{}", ran.stderr);
        ran.stderr
    };
    assert_eq!(
        refused(&["bench", "fs", "a", "--rounds", "0"]),
        "error: zero rounds measure nothing\nhint: `--rounds` with 1 or a larger number\n"
    );
    let twice = refused(&["bench", "fs", "a", "./a"]);
    assert_eq!(
        twice,
        "error: the targets `a` and `./a` are the same directory\n"
    );
    refused(&["bench", "fs"]);
    refused(&["bench", "fs", "a", "--phases", "fly"]);
    let ran = place.run(&bench(&["a", "none"], &[]));
    assert_eq!(
        failure(&ran),
        "error: cannot look at `none`: no such file or directory\n"
    );
    assert_clean(&place, &["a"]);
}

#[test]
fn a_tool_that_fails_stops_the_bench_and_is_quoted() {
    let place = place(&["a", "b"]);
    let script =
        "case $1 in -xf) echo 'tar: it broke' >&2; exit 2;; *) exec /bin/tar \"$@\";; esac";
    let arguments = bench(
        &["a", "b"],
        &["--tools", "system", "--save", "results.jsonl", "--quiet"],
    );
    let ran = with_program(&place, &arguments, "tar", script);
    let text = failure(&ran);
    assert!(text.starts_with("error: `tar -xf /"), "{text}");
    assert!(
        text.ends_with(
            "failed in round 1, untar on `a` with system: exit status 2\n  tar: it broke\n"
        ),
        "{text}"
    );
    assert_clean(&place, &["a", "b"]);
    let saved = json_lines(&std::fs::read_to_string(place.path("results.jsonl")).unwrap());
    assert_eq!(samples(&saved).len(), 2, "the samples until then are kept");
}

#[test]
fn a_tool_that_fails_in_silence_is_found_out() {
    let place = place(&["a"]);
    let script = "case $1 in -xf) exit 0;; *) exec /bin/tar \"$@\";; esac";
    let arguments = bench(
        &["a"],
        &["--tools", "system", "--phases", "untar", "--quiet"],
    );
    let ran = with_program(&place, &arguments, "tar", script);
    let text = failure(&ran);
    assert!(
        text.contains("in round 1, untar on `a` with system: `/")
            && text.contains("/a/stook-bench-"),
        "{text}"
    );
    assert!(
        text.contains("holds 0 files of 0 bytes, and not 150 of"),
        "{text}"
    );
    assert_clean(&place, &["a"]);
}

#[test]
fn a_target_without_room_is_refused_and_one_that_fills_up_is_named() {
    let place = place(&["a"]);
    let Some(disk) = SmallDisk::mount(place.path("small"), "8m") else {
        return;
    };
    let large = [
        "bench", "fs", "a", "small", "--work", ".", "--files", "5000", "--rounds", "1",
    ];
    let ran = place.run(&large);
    let text = failure(&ran);
    assert!(
        text.starts_with("error: `small` has too little free space: ")
            && text.contains(" are needed, 8 MB are free\nhint: "),
        "{text}"
    );
    // There is room at the beginning, and then something else takes it.
    let script = "case $1 in -xf) head -c 20m /dev/zero > \"$4/fill\" 2>/dev/null;; esac\nexec /bin/tar \"$@\"";
    let arguments = bench(
        &["small"],
        &["--tools", "system", "--phases", "untar", "--quiet"],
    );
    let ran = with_program(&place, &arguments, "tar", script);
    let text = failure(&ran);
    assert!(
        text.contains("failed in round 1, untar on `small` with system: exit status 2"),
        "{text}"
    );
    assert!(text.contains("No space left on device"), "{text}");
    assert_eq!(names(&place.path("small")), [""; 0]);
    assert_clean(&place, &["a"]);
    drop(disk);
}

#[test]
fn a_read_only_target_is_named() {
    let place = place(&["a"]);
    let Some(disk) = SmallDisk::mount(place.path("fixed"), "50m") else {
        return;
    };
    disk.make_read_only();
    let ran = place.run(&bench(&["a", "fixed"], &["--quiet"]));
    let text = failure(&ran);
    assert!(
        text.starts_with("error: cannot create `/") && text.contains("/fixed/stook-bench-"),
        "{text}"
    );
    assert!(text.ends_with("read-only file system\n"), "{text}");
    assert_clean(&place, &["a", "fixed"]);
}

#[test]
fn who_may_not_drop_caches_is_told_before_anything_is_made() {
    let place = place(&["a"]);
    let ran = place.run_as_nobody(&bench(&["a"], &["--cold"]));
    let text = failure(&ran);
    assert!(
        text.contains("caches cannot be dropped") && text.contains("hint: "),
        "{text}"
    );
    assert_clean(&place, &["a"]);
}

/// Starts a bench that takes its time, and waits until it has begun to measure.
fn started(place: &Place) -> Child {
    let arguments = "bench fs a --work . --files 150 --rounds 500 --save results.jsonl";
    let mut child = place
        .command(&arguments.split(' ').collect::<Vec<_>>())
        .spawn()
        .unwrap();
    let saved = place.path("results.jsonl");
    let lines = || {
        std::fs::read_to_string(&saved)
            .unwrap_or_default()
            .lines()
            .count()
    };
    assert!(wait_until(&mut child, || lines() > 5), "it ended before");
    child
}

#[test]
fn an_interrupt_or_the_end_of_the_terminal_cleans_up() {
    for signal in ["INT", "HUP"] {
        let place = place(&["a"]);
        place.write("a/mine", "");
        let child = started(&place);
        Signal::ready(&child, signal).send();
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.status, Some(130), "{signal}: {}", ran.stderr);
        assert!(ran.stderr.contains("error: interrupted"), "{}", ran.stderr);
        assert_eq!(place.names("a"), ["mine"]);
        std::fs::remove_file(place.path("a/mine")).unwrap();
        assert_clean(&place, &["a"]);
    }
}

#[test]
fn a_slow_file_system_shows_what_an_operation_costs() {
    if let Some(why) = unavailable() {
        stook_testkit::skip!("{why}");
        return;
    }
    let place = place(&["fast", "below", "slow"]);
    let latency = Duration::from_micros(200);
    let slow = SlowFs::mount(
        &place.path("below"),
        &place.path("slow"),
        &Options::new(latency),
    )
    .unwrap();
    let options = ["--json", "--phases", "untar,stat,read,delete"];
    let printed = place.stdout(&bench(&["fast", "slow"], &options));
    let lines = json_lines(&printed);
    let p50 = |target: &str, operation: &str| {
        let of_target = |sample: &&&Value| {
            sample["labels"]["target"] == target && sample["labels"]["tool"] == "single"
        };
        let all = samples(&lines);
        let mut found = all
            .iter()
            .filter(of_target)
            .filter_map(|sample| sample["latencies"][operation]["p50_ns"].as_u64());
        found.next().unwrap()
    };
    assert!(
        p50("slow", "create") >= 200_000,
        "{} ns",
        p50("slow", "create")
    );
    assert!(p50("fast", "create") < p50("slow", "create"));
    let header: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
    let device = &header["facts"]["slow"]["device"];
    assert_eq!(device, "another process (FUSE)");
    drop(slow);
    assert_clean(&place, &["fast", "below", "slow"]);
}
