//! `remove`: what it prints, how it ends, which system calls it makes.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use stook_testkit::{Tree, file};

use crate::commands::sample_tree;
use crate::place::Place;

#[test]
fn the_summary_says_what_is_gone() {
    let place = Place::with(&sample_tree());
    let would = place.run(&["remove", "--dry-run", "src", "--include", "d*"]);
    assert_snapshot!(would.text(), @r"
    src/d/deep
    src/d
    ");
    assert_snapshot!(would.stderr, @"would remove 2 entries, 1 of them directories");
    assert_snapshot!(place.stderr(&["remove", "src/link", "src/a"]), @"removed 2 entries, 0 of them directories");
    assert_snapshot!(place.stderr(&["remove", "--keep-root", "src"]), @"removed 4 entries, 2 of them directories");
    assert_eq!(place.names("src"), [""; 0]);
    assert_snapshot!(place.stderr(&["remove", "src", "src"]), @r"
    note: `src` is not there
    removed 1 entry, 1 of them directories
    ");
    assert_eq!(place.names("."), [""; 0]);
}

#[test]
fn json_has_the_same_facts() {
    let place = Place::with(&sample_tree());
    let lines = place.json(&["remove", "--json", "--dry-run", "src"]);
    assert_eq!(lines.len(), 8);
    assert!(lines[..7].iter().all(|line| line["type"] == "would-remove"));
    let lines = place.json(&["remove", "--json", "src"]);
    assert_eq!(
        lines,
        [serde_json::json!({
            "type": "summary", "entries": 7, "directories": 3, "failed": 0, "dry_run": false,
        })]
    );
}

#[test]
fn protected_places_are_refused_before_anything_goes() {
    let place = Place::with(&sample_tree());
    for (tree, why) in [
        ("/", "it is the root"),
        ("..", "its name is `.` or `..`"),
        ("../../tmp/..", "its name is `.` or `..`"),
        (
            place.root().to_str().unwrap(),
            "it is the working directory, or above it",
        ),
    ] {
        let ran = place.run(&["remove", "src", tree]);
        assert_eq!(ran.status, Some(1), "{tree}");
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
    assert_eq!(place.names("src").len(), 5);
    assert_eq!(place.run(&["remove"]).status, Some(2));
}

#[test]
fn failures_are_named_and_of_many_only_the_number() {
    let mut tree = Tree::new();
    for number in 0..30 {
        tree.insert(format!("closed/{number:02}"), file(b"1"));
    }
    tree.insert("open/file", file(b"1"));
    let place = Place::with(&tree);
    let set_mode = |path: &str, mode| {
        fs::set_permissions(place.path(path), Permissions::from_mode(mode)).unwrap();
    };
    set_mode("src", 0o777);
    set_mode("src/open", 0o777);
    set_mode("src/closed", 0o555);
    let ran = place.run_as_nobody(&["remove", "src"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    let named = ran
        .stderr
        .matches("error: cannot remove `src/closed/")
        .count();
    assert_eq!(named, 20, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("error: and 10 more failures"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .trim_end()
            .ends_with("removed 2 entries, 1 of them directories; 30 failed"),
        "{}",
        ran.stderr
    );
    set_mode("src/closed", 0o755);
    assert_eq!(place.names("src"), ["closed"]);
}

/// A tree with an archive in it, and with another one that has nothing but its index.
fn with_archives() -> Place {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "src/deep/arc"]);
    place.stderr(&["create", "src/d", "src/zarc", "--compat", "zstash"]);
    fs::remove_file(place.path("src/zarc/000000.tar")).unwrap();
    place
}

#[test]
fn an_archive_is_refused_and_nothing_is_removed() {
    let place = with_archives();
    std::os::unix::fs::symlink("src/deep/arc", place.path("link")).unwrap();
    for (tree, why) in [
        ("src/deep/arc", "it is an archive"),
        ("src/deep/arc/", "it is an archive"),
        ("src/zarc", "it is an archive"),
        ("src/deep/arc/index.db", "it is part of an archive"),
        ("src/deep/arc/000000.tar", "it is part of an archive"),
    ] {
        for more in ["--force-chmod", "--dry-run", "--keep-root"] {
            let ran = place.run(&["remove", "src/d", tree, more]);
            assert_eq!(ran.status, Some(1), "{tree} {more}");
            let text = format!("{why}\nhint: `--with-archives` removes it");
            assert!(ran.stderr.contains(&text), "{}", ran.stderr);
        }
    }
    assert_eq!(place.names("src").len(), 7);
    place.stderr(&["check", "src/deep/arc"]);
    place.stderr(&["remove", "link"]);
    place.stderr(&["check", "src/deep/arc"]);
    place.stderr(&["remove", "--with-archives", "src/deep/arc", "src/zarc"]);
    assert_eq!(place.names("src/deep"), [""; 0]);
}

#[test]
fn an_archive_in_a_tree_stays_and_is_named() {
    let place = with_archives();
    let dry = place.run(&["remove", "--dry-run", "src"]);
    assert_eq!(dry.status, Some(3), "{}", dry.stderr);
    assert!(!dry.text().contains("index.db"), "{}", dry.text());
    let ran = place.run(&["remove", "src"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    for archive in ["src/deep/arc", "src/zarc"] {
        let text = format!("cannot remove `{archive}`: it is an archive\n");
        assert!(ran.stderr.contains(&text), "{}", ran.stderr);
    }
    let hints = ran
        .stderr
        .matches("hint: `--with-archives` removes it, too\n");
    assert_eq!(hints.count(), 1, "{}", ran.stderr);
    assert_eq!(place.names("src"), ["deep", "zarc"]);
    assert_eq!(place.names("src/deep"), ["arc"]);
    place.stderr(&["check", "src/deep/arc"]);
    place.stderr(&["remove", "--with-archives", "src"]);
    assert_eq!(place.names("."), [""; 0]);
}

#[test]
fn an_archive_is_a_failure_only_if_a_pattern_matches_something_in_it() {
    let place = with_archives();
    place.write("src/deep/a.none", "a");
    place.stderr(&["remove", "src", "--include", "*.none"]);
    assert_eq!(place.names("src/deep"), ["arc"]);
    let ran = place.run(&["remove", "src", "--include", "*.tar"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("`src/deep/arc`"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("zarc"), "{}", ran.stderr);
    place.stderr(&["check", "src/deep/arc"]);
}

#[test]
fn a_directory_with_a_name_like_an_index_is_no_archive() {
    let place = Place::with(&stook_testkit::tree! {
        "a/index.db" => file(b"a database of another program"),
        "b/000000.tar" => file(b"no index"),
        "c/index.db/" => dir(),
        "c/000000.tar" => file(b"no index"),
    });
    place.sql(
        "src/a/index.db2",
        "create table config (a); create table other (b)",
    );
    place.stderr(&["remove", "src"]);
    assert_eq!(place.names("."), [""; 0]);
}

/// Calls by name, of `--syscalls --json`.
fn counted(place: &Place, tree: &str) -> BTreeMap<String, u64> {
    place
        .json(&["remove", "--syscalls", "--json", tree])
        .iter()
        .filter(|line| line["type"] == "syscall")
        .map(|line| {
            let name = line["name"].as_str().unwrap().to_owned();
            (name, line["calls"].as_u64().unwrap())
        })
        .collect()
}

#[test]
fn a_directory_takes_five_calls_and_an_entry_one() {
    let mut tree = Tree::new();
    for directory in 0..40 {
        tree.insert(format!("d{directory}/e/"), stook_testkit::dir());
        for number in 0..10 {
            tree.insert(format!("d{directory}/f{number}"), file(b"1"));
        }
    }
    let place = Place::with(&tree);
    let (files, directories) = (40 * 10, 1 + 2 * 40);
    let counts = counted(&place, "src");
    assert_eq!(counts["unlinkat"], files + directories);
    assert_eq!(counts["getdents64"], 2 * directories);
    // The tree itself is opened from the directory that holds it.
    assert_eq!(counts["openat2"] + counts["openat"], directories + 1);
    assert_eq!(counts["close"], directories + 1);
    assert_eq!(counts.len(), 5, "{counts:?}");
}

#[test]
fn strace_counts_the_same() {
    if Command::new("strace").arg("-V").output().is_err() {
        stook_testkit::skip!("strace is not installed");
        return;
    }
    let place = Place::with(&Tree::random(3, 400));
    fs::create_dir(place.path("other")).unwrap();
    Tree::random(3, 400).write(&place.path("other")).unwrap();
    let counts = counted(&place, "src");
    let traced = place
        .command_of(
            Path::new("strace"),
            &[
                "-f",
                "-o",
                "trace",
                "-e",
                "trace=getdents64,unlinkat,openat2,openat",
                env!("CARGO_BIN_EXE_stook"),
                "remove",
                "other",
            ],
        )
        .output()
        .unwrap();
    if !traced.status.success() {
        stook_testkit::skip!(
            "strace cannot trace here: {}",
            String::from_utf8_lossy(&traced.stderr)
        );
        return;
    }
    let trace = fs::read_to_string(place.path("trace")).unwrap();
    let of = |call: &str| {
        trace
            .lines()
            .filter(|line| line.contains(&format!(" {call}(")))
            .count() as u64
    };
    for call in ["getdents64", "unlinkat", "openat2"] {
        assert_eq!(of(call), counts[call], "{call}");
    }
}
