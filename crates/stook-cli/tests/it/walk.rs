//! `walk` prints what `find` prints, and ends as every command ends.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use insta::assert_snapshot;
use stook_testkit::{Tree, supports_xattrs, tree};

use crate::commands::sample_tree;
use crate::place::{Place, Ran, json_lines};

/// All fields, as both programs call them; `find` prints times with a tenth decimal.
const FIELDS: &str = "{type} {mode} {links} {inode} {size} {mtime} {path}";
const FIND_FIELDS: &str = r"%y %m %n %i %s %T@ %p\0";

fn sorted(output: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = output
        .split(|&byte| byte == 0)
        .map(<[u8]>::to_vec)
        .collect();
    assert_eq!(lines.pop(), Some(Vec::new()), "the last line is ended");
    lines.sort();
    lines
}

/// Returns what `find` prints, with times cut to nine decimals; None if there is no such `find`.
fn found(place: &Place, tree: &str) -> Option<Vec<Vec<u8>>> {
    let output = Command::new("find")
        .args([tree, "-printf", FIND_FIELDS])
        .current_dir(place.root())
        .output()
        .ok()
        .filter(|output| output.status.success());
    let Some(output) = output else {
        stook_testkit::skip!("there is no find with -printf");
        return None;
    };
    let mut lines = sorted(&output.stdout);
    for line in &mut lines {
        let mut spaces = (0..line.len()).filter(|&at| line[at] == b' ');
        let (start, end) = (spaces.nth(4).unwrap() + 1, spaces.next().unwrap());
        let time = time_of(str::from_utf8(&line[start..end]).unwrap());
        line.splice(start..end, time.bytes());
    }
    lines.sort();
    Some(lines)
}

/// Cuts off the tenth decimal. Before 1970 `find` prints -2.25 for a second and three quarters: the
/// seconds rounded down, and behind the point what is to be added to them.
fn time_of(printed: &str) -> String {
    let (seconds, fraction) = printed[..printed.len() - 1].split_once('.').unwrap();
    let (seconds, fraction): (i64, u32) = (seconds.parse().unwrap(), fraction.parse().unwrap());
    if seconds < 0 && fraction > 0 {
        return format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - fraction);
    }
    format!("{seconds}.{fraction:09}")
}

fn assert_as_find(place: &Place, tree: &str, jobs: &str) {
    let ran = place.run(&["walk", tree, "-0", "--format", FIELDS, "--jobs", jobs]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    let Some(expected) = found(place, tree) else {
        return;
    };
    let printed = sorted(&ran.stdout);
    for (line, expected) in printed.iter().zip(&expected) {
        assert_eq!(
            line.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }
    assert_eq!(printed.len(), expected.len());
}

#[test]
fn every_tree_is_printed_as_find_prints_it() {
    let torture = if supports_xattrs(&std::env::temp_dir()) {
        Tree::torture()
    } else {
        Tree::torture().without_xattrs()
    };
    let trees = [
        torture,
        Tree::basic(),
        Tree::deep(300),
        Tree::wide(1000),
        Tree::links(),
        Tree::hardlinks(),
        Tree::odd_names(),
        Tree::sparse(),
        Tree::loops(),
        Tree::random(3, 500),
        Tree::new(),
    ];
    for tree in &trees {
        assert_as_find(&Place::with(tree), "src", "2");
    }
}

#[test]
fn any_number_of_workers_prints_the_same_lines() {
    let place = Place::with(&Tree::random(4, 3000));
    for jobs in ["1", "2", "7", "64"] {
        assert_as_find(&place, "src", jobs);
    }
}

#[test]
fn paths_begin_with_the_tree_as_it_was_typed() {
    let place = Place::with(&tree! { "d/f" => file(b"x") });
    let whole = place.path("src");
    let whole = whole.to_str().unwrap();
    for tree in ["src", "src/", "./src", "src/d/..", whole] {
        assert_as_find(&place, tree, "1");
    }
}

#[test]
fn path_and_type_are_printed_without_looking_at_files() {
    let place = Place::with(&sample_tree());
    let printed = place.stdout(&["walk", "src", "--format", "{type}\t{path}"]);
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_snapshot!(lines.join("\n"), @r"
    d	src
    d	src/d
    d	src/empty
    f	src/a
    f	src/b
    f	src/d/deep
    l	src/link
    ");
    let mut paths: Vec<&str> = lines.iter().map(|line| &line[2..]).collect();
    paths.sort_unstable();
    let plain = place.stdout(&["walk", "src"]);
    let mut plain: Vec<&str> = plain.lines().collect();
    plain.sort_unstable();
    assert_eq!(plain, paths);
}

#[test]
fn names_are_printed_as_they_are() {
    let place = Place::with(&tree! { b"not utf-8 \xff" => file(b"") });
    let printed = place.run(&["walk", "src", "--format", "{{{path}}}"]).stdout;
    assert_eq!(printed, b"{src}\n{src/not utf-8 \xff}\n");
    let lines = place.json(&["walk", "src", "--json"]);
    let odd = lines.iter().find(|line| line.get("path_hex").is_some());
    assert_eq!(odd.unwrap()["path_hex"], "7372632f6e6f74207574662d3820ff");
}

#[test]
fn patterns_are_about_the_path_below_the_tree() {
    let place = Place::with(&tree! {
        "a.nc" => file(b""),
        "a.txt" => file(b""),
        "run/b.nc" => file(b""),
        "run/tmp/c.nc" => file(b""),
    });
    let sorted = |arguments: &[&str]| {
        let printed = place.stdout(&[&["walk", "src"], arguments].concat());
        let mut lines: Vec<&str> = printed.lines().collect();
        lines.sort_unstable();
        lines.join(" ")
    };
    assert_eq!(
        sorted(&["--include", "*.nc"]),
        "src/a.nc src/run/b.nc src/run/tmp/c.nc"
    );
    assert_eq!(
        sorted(&["--include", "*.nc", "--exclude", "run/tmp/"]),
        "src/a.nc src/run/b.nc"
    );
    assert_eq!(
        sorted(&["--exclude", "run/tmp/*"]),
        "src src/a.nc src/a.txt src/run src/run/b.nc src/run/tmp"
    );
}

#[test]
fn json_has_the_facts_of_every_entry() {
    let place = Place::with(&tree! {
        "f" => file(b"hello").mode(0o640).mtime(-2, 250_000_000),
        "l" => symlink("f"),
    });
    let lines = place.rows(&["walk", "src", "--json"]);
    assert_eq!(lines.len(), 3);
    let file = lines.iter().find(|line| line["path"] == "src/f").unwrap();
    let expected = serde_json::json!({
        "type": "entry", "path": "src/f", "kind": "file", "size": 5, "mtime": "1969-12-31T23:59:58.25Z",
        "inode": file["inode"], "mode": "640", "links": 1,
    });
    assert_eq!(file, &expected);
    assert!(file["inode"].as_u64().unwrap() > 0);
    let link = lines.iter().find(|line| line["path"] == "src/l").unwrap();
    assert_eq!(
        (&link["kind"], &link["size"]),
        (&"symlink".into(), &1.into())
    );
}

#[test]
fn a_directory_that_may_not_be_read_is_printed_and_gives_status_3() {
    let place = Place::with(&tree! {
        "closed/inside" => file(b"unseen"),
        "open/file" => file(b"seen"),
    });
    let set_mode = |path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(place.root().to_owned(), 0o777);
    set_mode(place.path("src/closed"), 0);
    for (arguments, lines) in [
        (
            &["walk", "src"][..],
            "src src/closed src/open src/open/file",
        ),
        (&["walk", "src", "--format", "{mode}"], "0 644 755 755"),
    ] {
        let ran = place.run_as_nobody(arguments);
        assert_eq!(ran.status, Some(3), "{}", ran.stderr);
        let mut printed: Vec<&str> = ran.text().lines().collect();
        printed.sort_unstable();
        assert_eq!(printed.join(" "), lines);
        assert_eq!(
            ran.stderr,
            "error: cannot open `src/closed`: permission denied\n"
        );
    }
    let ran = place.run_as_nobody(&["walk", "src", "--json"]);
    let failures: Vec<_> = json_lines(ran.text())
        .into_iter()
        .filter(|line| line["type"] == "failure")
        .collect();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0]["path"], "src/closed");
    set_mode(place.path("src/closed"), 0o755);
}

#[test]
fn a_reader_that_goes_away_ends_the_walk_silently() {
    let place = Place::with(&Tree::wide(20_000));
    for format in ["{path}", "{size} {path}"] {
        let mut child = place
            .command(&["walk", "src", "--format", format])
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        drop(stdout);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    }
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = place
        .command(&["walk", "src"])
        .stdout(full)
        .output()
        .unwrap();
    let ran = Ran::of(output);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(ran.stderr, @"error: cannot write the output: no space left on device");
}

#[test]
fn what_cannot_be_walked_or_printed_is_explained() {
    let place = Place::with(&sample_tree());
    let fails = |arguments: &[&str], status| {
        let ran = place.run(arguments);
        assert_eq!((ran.status, ran.text()), (Some(status), ""));
        ran.stderr
    };
    assert_snapshot!(fails(&["walk", "none"], 1), @"error: cannot open `none`: no such file or directory");
    assert_snapshot!(fails(&["walk", "src/a"], 1), @"error: cannot open `src/a`: not a directory");
    assert_snapshot!(
        fails(&["walk", "src", "--format", "{name}"], 2),
        @"error: cannot use `{name}` for --format: there is no field `name`; there are path, size, mtime, inode, type, mode, links"
    );
}

#[test]
fn timings_and_phases_of_a_walk_are_shown() {
    let place = Place::with(&sample_tree());
    let ran = place.run(&["walk", "src", "-v", "--timings", "--format", "{size}"]);
    assert_eq!(ran.status, Some(0));
    for scope in ["phase ", "walk", "  stat", "  print"] {
        assert!(ran.stderr.contains(scope), "{scope}\n{}", ran.stderr);
    }
}
