//! Patterns mean the same in every command: a directory's name is about all that is in it, and what matches nothing is said.

use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;
use stook_testkit::{Tree, tree};

use crate::place::{Place, Ran};

fn sample() -> Tree {
    tree! {
        "a" => file(b"a"),
        "keep/x" => file(b"x"),
        "keep/deep/y" => file(b"y"),
        "other/keep" => file(b"z"),
        "other/w.o" => file(b"w"),
    }
}

/// All spellings of the directory `keep`.
const SPELLINGS: [&str; 4] = ["keep", "./keep", "/keep", "keep/"];

const KEPT: [&str; 4] = ["keep", "keep/deep", "keep/deep/y", "keep/x"];
const OTHERS: [&str; 4] = ["a", "other", "other/keep", "other/w.o"];

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The paths below a folder of the place.
fn below(place: &Place, folder: &str) -> Vec<String> {
    let snapshot = place.snapshot(folder);
    let paths = snapshot
        .entries()
        .map(|(path, _)| String::from_utf8(path.to_vec()).unwrap());
    let mut paths: Vec<String> = paths.collect();
    paths.sort();
    paths
}

/// Runs a command that must succeed without a word of warning.
fn quiet(place: &Place, arguments: &[&str]) {
    let said = place.stderr(arguments);
    assert!(!said.contains("warning"), "{arguments:?}: {said}");
}

fn fed(place: &Place, arguments: &[&str], input: &str) -> Ran {
    let mut command = place.command(arguments);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn the_name_of_a_directory_keeps_all_in_it_from_removal() {
    for spelling in SPELLINGS.into_iter().chain(["src/keep", "./src/keep/"]) {
        let place = Place::with(&sample());
        quiet(&place, &["remove", "src", "--exclude", spelling]);
        assert_eq!(below(&place, "src"), KEPT, "{spelling}");
    }
    let place = Place::with(&sample());
    quiet(&place, &["remove", "src", "--include", "keep"]);
    assert_eq!(below(&place, "src"), OTHERS);
    quiet(&place, &["remove", "src", "--include", "other/w.o"]);
    assert_eq!(below(&place, "src"), ["a", "other", "other/keep"]);
    quiet(&place, &["remove", "src", "--include", "."]);
    assert!(!place.path("src").exists());
}

#[test]
fn the_name_of_a_directory_is_about_all_in_it_in_archives() {
    let place = Place::with(&sample());
    for (number, spelling) in SPELLINGS.into_iter().enumerate() {
        let archive = format!("arc{number}");
        quiet(&place, &["create", "src", &archive, "--exclude", spelling]);
        assert_eq!(sorted(&place.stdout(&["list", &archive])), OTHERS);
    }
    quiet(&place, &["create", "src", "arc"]);
    // As in an archive of zstash, which has rows of empty directories only.
    quiet(&place, &["create", "src", "bare", "--no-directories"]);
    for spelling in SPELLINGS {
        let archives = [("arc", &KEPT[..]), ("bare", &KEPT[2..])];
        for (archive, members) in archives {
            assert_eq!(sorted(&place.stdout(&["list", archive, spelling])), members);
            assert_eq!(
                sorted(&place.stdout(&["list", archive, "--all", spelling])),
                members
            );
            quiet(&place, &["extract", archive, spelling, "--into", "out"]);
            assert_eq!(below(&place, "out"), KEPT, "{archive} {spelling}");
            std::fs::remove_dir_all(place.path("out")).unwrap();
            let checked = place.stderr(&["check", archive, spelling]);
            let number = format!("checked {} members", members.len());
            assert!(checked.starts_with(&number), "{checked}");
        }
    }
}

#[test]
fn the_name_of_a_directory_is_about_all_in_it_in_trees() {
    let place = Place::with(&sample());
    for spelling in SPELLINGS {
        quiet(&place, &["copy", "src", "copy", "--exclude", spelling]);
        assert_eq!(below(&place, "copy"), OTHERS);
        std::fs::remove_dir_all(place.path("copy")).unwrap();
        quiet(&place, &["copy", "src", "copy", "--include", spelling]);
        assert_eq!(below(&place, "copy"), KEPT);
        std::fs::remove_dir_all(place.path("copy")).unwrap();
        let walked = place.stdout(&[
            "walk",
            "src",
            "--include",
            spelling,
            "--exclude",
            "keep/deep",
        ]);
        assert_eq!(sorted(&walked), ["src/keep", "src/keep/x"]);
        let counted = place.json(&["walk", "src", "--summary", "--json", "--include", spelling]);
        assert_eq!(counted[0]["files"], 2);
    }
}

#[test]
fn what_is_excluded_is_neither_different_nor_deleted() {
    let place = Place::with(&sample());
    quiet(&place, &["create", "src", "arc"]);
    std::fs::remove_dir_all(place.path("src/keep")).unwrap();
    place.write("src/new", "new");
    assert_eq!(
        place.stdout(&["diff", "src", "arc", "--exclude", "keep"]),
        "new      new\n"
    );
    let deleted = place.stdout(&["diff", "src", "arc", "--include", "keep/"]);
    let names = sorted(&deleted);
    assert_eq!(names, KEPT.map(|name| format!("deleted  {name}")));
    quiet(&place, &["update", "src", "arc", "--exclude", "keep"]);
    assert_eq!(sorted(&place.stdout(&["list", "arc", "keep"])), KEPT);
    let gone = ["update", "src", "arc", "--include", "keep"];
    quiet(&place, &[&gone[..], &["--deletions", "record"]].concat());
    let listed = place.stdout(&["list", "arc"]);
    assert_eq!(
        sorted(&listed),
        ["a", "new", "other", "other/keep", "other/w.o"]
    );
}

#[test]
fn zstash_compares_whole_paths() {
    let place = Place::with(&sample());
    let zstash = |archive: &str, pattern: &str| {
        let compat = ["--compat", "zstash", "--exclude", pattern];
        place.stderr(&[&["create", "src", archive], &compat[..]].concat());
        sorted(&place.stdout(&["list", archive])).join(" ")
    };
    assert_eq!(
        zstash("name", "keep"),
        "a keep/deep/y keep/x other/keep other/w.o"
    );
    assert_eq!(zstash("slash", "keep/"), "a other/keep other/w.o");
    assert_eq!(
        zstash("dot", "./keep/"),
        "a keep/deep/y keep/x other/keep other/w.o"
    );
}

#[test]
fn a_pattern_that_matches_nothing_is_a_warning() {
    let place = Place::with(&sample());
    let warned = |arguments: &[&str]| {
        let patterns = [
            "--exclude",
            "keep",
            "--exclude",
            "kepe",
            "--include",
            "*.x",
            "--include",
            "a",
        ];
        let said = place.stderr(&[arguments, &patterns].concat());
        let warnings = said.lines().filter(|line| line.starts_with("warning"));
        warnings.collect::<Vec<_>>().join("\n")
    };
    place.stderr(&["create", "src", "arc"]);
    for arguments in [
        &["create", "src", "new"][..],
        &["create", "src", "dry", "--dry-run"],
        &["update", "src", "arc"],
        &["diff", "src", "arc"],
        &["copy", "src", "copy"],
        &["walk", "src"],
        &["walk", "src", "--type", "d"],
        &["walk", "src", "--summary"],
    ] {
        // A file `keep/m.x` might be there: nobody has looked.
        let expected = "warning: the pattern `kepe` matches nothing";
        assert_eq!(warned(arguments), expected, "{arguments:?}");
    }
    assert_eq!(
        place
            .run(&["walk", "src", "-q", "--exclude", "kepe"])
            .stderr,
        ""
    );
    let json = place.json(&["walk", "src", "--json", "--type", "f", "--exclude", "kepe"]);
    let unmatched: Vec<_> = json
        .iter()
        .filter(|line| line["type"] == "unmatched")
        .collect();
    assert_eq!(unmatched.len(), 1);
    assert_eq!(unmatched[0]["pattern"], "kepe");
}

#[test]
fn nothing_is_said_of_patterns_for_what_nobody_has_seen() {
    let place = Place::with(&sample());
    let patterns = [
        "--exclude",
        "keep",
        "--exclude",
        "keep/deep/y",
        "--exclude",
        "arc",
    ];
    quiet(
        &place,
        &[&["create", "src", "src/arc"], &patterns[..]].concat(),
    );
    quiet(
        &place,
        &[&["update", "src", "src/arc"], &patterns[..]].concat(),
    );
    quiet(
        &place,
        &["walk", "src", "--type", "d", "--exclude", "other/w.o"],
    );
    // Below another directory it is certain that there is nothing.
    let said = place.stderr(&["walk", "src", "--exclude", "keep", "--exclude", "other/y"]);
    assert_snapshot!(said, @"warning: the pattern `other/y` matches nothing");
}

#[test]
fn a_removal_with_a_pattern_that_matches_nothing_removes_nothing() {
    let place = Place::with(&sample());
    place.stderr(&["create", "src", "arc"]);
    let before = below(&place, "src");
    let refused = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(1), "{}", ran.stderr);
        assert_eq!(below(&place, "src"), before, "{arguments:?}");
        assert_eq!(ran.text(), "", "{arguments:?}");
        ran.stderr
    };
    let expected = refused(&["remove", "src", "--exclude", "kepe", "--exclude", "keep"]);
    assert_snapshot!(expected, @r"
    error: cannot find `kepe`: no entry matches
    hint: nothing was removed; a pattern is compared with paths below the tree: `*/NAME` finds a name in any directory of it
    ");
    for more in [
        &["--dry-run", "src"][..],
        &["--archived-in", "arc", "src"],
        &["--include", "a", "src"],
    ] {
        let arguments = [&["remove", "--exclude", "kepe"], more].concat();
        assert_eq!(refused(&arguments), expected, "{arguments:?}");
    }
    assert!(refused(&["remove", "src", "--include", ""]).contains("``"));
    // What is gone already is no reason to complain.
    quiet(&place, &["remove", "gone", "--exclude", "kepe"]);
}

#[test]
fn the_name_of_a_tree_is_about_that_tree_alone() {
    let place = Place::with(&tree! {
        "one/a" => file(b"1"),
        "one/b" => file(b"1"),
        "two/a" => file(b"2"),
        "two/b" => file(b"2"),
    });
    let would = place.stdout(&["remove", "--dry-run", "src/one", "--exclude", "src/one/a"]);
    assert_eq!(would, "src/one/b\n");
    quiet(
        &place,
        &["remove", "src/one", "src/two", "--include", "src/one/a"],
    );
    assert_eq!(
        below(&place, "src"),
        ["one", "one/b", "two", "two/a", "two/b"]
    );
    quiet(
        &place,
        &["remove", "src/one", "src/two", "--exclude", "src/two/b"],
    );
    assert_eq!(below(&place, "src"), ["two", "two/b"]);
    quiet(
        &place,
        &["create", "src", "arc", "--exclude", "./src/two/b"],
    );
    assert_eq!(place.stdout(&["list", "arc"]), "two\n");
}

#[test]
fn a_pattern_is_taken_literally_first() {
    let place = Place::with(&tree! {
        "src/a" => file(b"1"),
        "a" => file(b"2"),
        "b" => file(b"3"),
    });
    let walked = place.stdout(&["walk", "src", "--exclude", "src/a"]);
    assert_eq!(sorted(&walked), ["src", "src/a", "src/b", "src/src"]);
    quiet(&place, &["remove", "src", "--exclude", "src/a"]);
    assert_eq!(below(&place, "src"), ["src", "src/a"]);
}

#[test]
fn a_name_with_brackets_is_found_by_itself() {
    let place = Place::with(&tree! { "a[1].txt" => file(b"1"), "b" => file(b"2") });
    quiet(&place, &["create", "src", "arc"]);
    assert_eq!(place.stdout(&["list", "arc", "a[1].txt"]), "a[1].txt\n");
    quiet(&place, &["remove", "src", "--exclude", "a[1].txt"]);
    assert_eq!(below(&place, "src"), ["a[1].txt"]);
}

#[test]
fn patterns_come_from_a_file_too() {
    let place = Place::with(&sample());
    place.write("list", "# what stays\n\nkeep\r\n*.o\n");
    let walked = place.stdout(&["walk", "src", "--exclude-from", "list"]);
    assert_eq!(
        sorted(&walked),
        ["src", "src/a", "src/other", "src/other/keep"]
    );
    quiet(&place, &["create", "src", "arc", "--exclude-from", "list"]);
    assert_eq!(
        sorted(&place.stdout(&["list", "arc"])),
        ["a", "other", "other/keep"]
    );
    let differing = place.stdout(&["diff", "src", "arc", "--exclude-from", "list"]);
    assert_eq!(differing, "");
    quiet(&place, &["update", "src", "arc", "--exclude-from", "list"]);
    quiet(&place, &["copy", "src", "copy", "--exclude-from", "list"]);
    assert_eq!(below(&place, "copy"), ["a", "other", "other/keep"]);
    let ran = fed(
        &place,
        &["remove", "src", "--exclude-from", "-"],
        "./src/keep\n",
    );
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(below(&place, "src"), KEPT);
}

#[test]
fn a_file_of_patterns_that_is_no_use_is_named() {
    let place = Place::with(&sample());
    place.write("none", "# nothing yet\n");
    let said = |arguments: &[&str], status: i32| {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(status), "{}", ran.stderr);
        ran.stderr
    };
    assert_snapshot!(said(&["walk", "src", "--exclude-from", "gone"], 1), @"error: cannot open `gone`: no such file or directory");
    assert_snapshot!(said(&["walk", "src", "--exclude-from", "src"], 1), @"error: cannot read `src`: is a directory");
    assert_snapshot!(said(&["remove", "src", "--exclude-from", "none"], 2), @"error: cannot use `none` for --exclude-from: there is no pattern in it");
    assert_eq!(below(&place, "src").len(), 8);
    quiet(&place, &["copy", "src", "copy", "--exclude-from", "none"]);
}

#[test]
fn one_text_explains_patterns_everywhere() {
    let place = Place::new();
    let section = |command: &str| {
        let help = place.stdout(&[command, "--help"]);
        let at = help
            .find("Patterns:\n")
            .unwrap_or_else(|| panic!("{command}"));
        help[at..].to_owned()
    };
    let expected = section("create");
    for command in [
        "update", "diff", "check", "list", "extract", "pull", "walk", "copy", "remove",
    ] {
        assert_eq!(section(command), expected, "{command}");
    }
    place.stdout(&["man", "pages"]);
    for page in ["stook-create.1", "stook-remove.1", "stook-list.1"] {
        let text = std::fs::read_to_string(place.path("pages").join(page)).unwrap();
        assert!(
            text.contains(".SH PATTERNS\n") && !text.contains(".SH EXTRA"),
            "{page}"
        );
    }
    let reference = place.stdout(&["reference"]);
    assert_eq!(reference.matches("\n## Patterns\n").count(), 1);
    assert_eq!(reference.matches("See [Patterns](#patterns).").count(), 12);
}
