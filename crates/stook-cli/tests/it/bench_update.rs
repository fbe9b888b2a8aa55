//! `stook bench update`: the study as its user meets it.

use stook_testkit::tree;

use crate::place::{Place, Ran, Signal, wait_until};

const DIRS: [&str; 4] = ["--dirs", "a", "b", "c"];

/// Three directories; `a` and `b` have names in common.
fn place() -> Place {
    let place = Place::new();
    tree! {
        "a/same" => file(b"of a"), "a/d/x" => file([7; 5000]), "b/same" => file(b"longer, of b"), "b/d/link" => symlink("x"),
        "c/odd name '$HOME'" => file(b"3"), "c/empty" => dir(),
    }
    .write(place.root())
    .unwrap();
    place
}

fn study(place: &Place, arguments: &[&str]) -> Ran {
    place.run(&[&["bench", "update", "--repeats", "1"], &DIRS[..], arguments].concat())
}

/// An archiver that copies, as options; `extract` is what it does besides when it extracts.
fn copier(extract: &str) -> [String; 4] {
    let script = format!(
        "copier=case {{operation}} in list) cd {{archive}} && find . -print0;; \
         extract) cp -a {{archive}}/. {{into}}; {extract};; *) cp -a {{source}}/. {{archive}};; esac"
    );
    ["--tool", &script, "--tool", "copier:check="].map(ToOwned::to_owned)
}

fn run_copier(place: &Place, extract: &str, more: &[&str]) -> Ran {
    let tools = copier(extract);
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    study(place, &[&tools[..], more].concat())
}

fn assert_nothing_left(place: &Place) {
    assert_eq!(place.names("."), ["a", "b", "c"]);
}

#[test]
fn stook_and_tar_are_put_side_by_side() {
    let place = place();
    let ran = study(
        &place,
        &[
            "--tool",
            "stook",
            "--tool",
            "tar",
            "--csv",
            "all.csv",
            "--save",
            "all.jsonl",
            "--figures",
            "figures",
        ],
    );
    if ran.stderr.contains("cannot run the tool `tar`") {
        stook_testkit::skip!("there is no GNU tar");
        return;
    }
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let text = ran.text();
    for line in [
        "a -> b",
        "c -> b",
        "extract_par  tar",
        "stook                12 of 12  6 of 6",
        "tar                    6 of 6  6 of 6",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let csv = std::fs::read_to_string(place.path("all.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0].join(","),
        "test_label,create_subdir,update_subdir,hpss_label,operation,elapsed_seconds,\
         tool,repeat,user_seconds,system_seconds,peak_bytes,files,bytes,building_seconds,sending_seconds"
    );
    // Five operations of stook and four of tar, for each pair.
    assert_eq!(rows.len(), 1 + 6 * 9);
    let labels: Vec<&str> = rows[1..].iter().step_by(9).map(|row| row[0]).collect();
    assert_eq!(labels, ["01", "02", "10", "12", "20", "21"]);
    let operations: Vec<&str> = rows[1..10].iter().map(|row| row[4]).collect();
    assert_eq!(
        operations,
        [
            "create",
            "update",
            "check",
            "extract_seq",
            "extract_par",
            "create",
            "update",
            "check",
            "extract_seq"
        ]
    );
    assert!(
        rows[1..]
            .iter()
            .all(|row| row[3] == "none" && row[5].parse::<f64>().unwrap() > 0.0)
    );
    let saved = std::fs::read_to_string(place.path("all.jsonl")).unwrap();
    assert_eq!(saved.lines().count(), 1 + 6 * 9);
    assert!(saved.starts_with("{\"type\":\"header\"") && saved.contains("GNU tar"));
    assert_eq!(
        place.names("."),
        ["a", "all.csv", "all.jsonl", "b", "c", "figures"]
    );
    assert_eq!(
        place.names("figures"),
        ["memory.svg", "scatter-tar.svg", "time.svg"]
    );
}

#[test]
fn a_tool_that_lies_is_told_and_the_rest_goes_on() {
    let place = place();
    let ran = run_copier(
        &place,
        "rm -f {into}/same",
        &["--csv", "of-{tool}.csv", "--json"],
    );
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    let warning = "warning: round 1, a -> b, copier, extract_seq: the extracted tree is not the same as the source: \
                   1 missing, 0 extra, 0 changed, such as `same`\n";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    // Each of the six pairs has `a` or `b`, and so the file.
    assert!(
        ran.stderr
            .ends_with("error: 6 trees and lists are not the same as their source\n"),
        "{}",
        ran.stderr
    );
    let lines: Vec<&str> = ran.text().lines().collect();
    assert_eq!(lines.len(), 1 + 6 * 3 + 1);
    let summary = r#"{"type":"summary","samples":18,"warnings":[],"unequal":6}"#;
    assert_eq!(lines[lines.len() - 1], summary);
    let csv = std::fs::read_to_string(place.path("of-copier.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 6 * 3);
}

#[test]
fn a_tool_that_fails_ends_the_study_with_its_own_words() {
    let place = place();
    let ran = run_copier(&place, "echo out of luck >&2; exit 7", &["--quiet"]);
    assert_eq!((ran.status, ran.text()), (Some(1), ""));
    let end = "failed in round 1, a -> b, copier, extract_seq: exit status 7\n  out of luck\n";
    assert!(ran.stderr.ends_with(end), "{}", ran.stderr);
    assert_nothing_left(&place);
}

#[test]
fn places_for_results_that_cannot_be_used_are_told_before_the_study() {
    let place = place();
    place.write("taken", "1");
    let told = |arguments: &[&str], expected: &str| {
        let ran = run_copier(&place, "true", arguments);
        assert_eq!((ran.status, &*ran.stderr), (Some(1), expected));
        assert_eq!(place.names("."), ["a", "b", "c", "taken"]);
    };
    told(
        &["--figures", "taken"],
        "error: cannot create `taken`: not a directory\n",
    );
    // No empty CSV stays in the way of the next try.
    told(
        &["--csv", "new.csv", "--save", "taken"],
        "error: cannot create `taken`: file exists\n",
    );
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_written() {
    let place = place();
    let usage = |arguments: &[&str]| {
        let ran = place.run(&[&["bench", "update"], arguments].concat());
        assert_eq!(ran.status, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    };
    usage(&[]);
    usage(&["--dirs", "a", "b"]);
    usage(&["--dirs", "a", "b", "c", "d"]);
    usage(&[&DIRS[..], &["--repeats", "0"]].concat());
    usage(&[&DIRS[..], &["--tool", "cpio"]].concat());
    usage(&[&DIRS[..], &["--tool", "x:create=true"]].concat());
    let refused = |arguments: &[&str], expected: &str| {
        let ran = place.run(&[&["bench", "update"], arguments].concat());
        assert_eq!(ran.status, Some(1), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    };
    refused(
        &["--dirs", "a", "b", "gone"],
        "error: cannot open `gone`: no such file or directory\n",
    );
    refused(
        &["--dirs", "a", "b", "c/odd name '$HOME'"],
        "error: cannot open `c/odd name",
    );
    refused(
        &["--dirs", "a", "b", "a/d"],
        "error: `a/d` and `a` are not two trees: one holds the other\n",
    );
    refused(&[&DIRS[..], &["--work", "b/d"]].concat(), "error: `");
    refused(
        &[&DIRS[..], &["--csv", "a/same"]].concat(),
        "error: cannot create `a/same`: ",
    );
    assert_nothing_left(&place);
}

#[test]
fn an_unreadable_directory_is_named() {
    let place = place();
    use std::os::unix::fs::PermissionsExt;
    let closed = place.path("b/d");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    std::fs::set_permissions(place.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = place.run_as_nobody(&[&["bench", "update"], &DIRS[..]].concat());
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr
            .starts_with("error: cannot open `b/d`: permission denied"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_interrupted_study_leaves_nothing_but_its_samples() {
    let place = place();
    let tools = copier("sleep 60");
    let mut arguments = vec!["bench", "update", "--csv", "some.csv"];
    arguments.extend(DIRS);
    arguments.extend(tools.iter().map(String::as_str));
    let mut child = place.command(&arguments).spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    let extracts = || {
        let names = place.names(".");
        let work = names.iter().find(|name| name.starts_with("stook-bench-"));
        work.is_some_and(|work| place.path(&format!("{work}/0/extract_seq/same")).exists())
    };
    assert!(wait_until(&mut child, extracts), "it ended too soon");
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.text()), (Some(130), ""), "{}", ran.stderr);
    assert!(
        ran.stderr.ends_with("error: interrupted\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.names("."), ["a", "b", "c", "some.csv"]);
    let csv = std::fs::read_to_string(place.path("some.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
}
