//! Only what stook has made is gone on with, or removed, in an archive's folder, whatever the names of other files.

use std::fs;

use insta::assert_snapshot;
use stook_testkit::{Tree, tree};

use crate::place::Place;

fn some_files() -> Tree {
    tree! { "a" => file(b"a"), "d/b" => file(b"b") }
}

/// A place with a tree, and a folder `arc` with these files.
fn with_files(names: &[&str]) -> Place {
    let place = Place::with(&some_files());
    fs::create_dir(place.path("arc")).unwrap();
    for name in names {
        place.write(&format!("arc/{name}"), b"mine");
    }
    place
}

fn assert_mine(place: &Place, names: &[&str]) {
    for name in names {
        let content = fs::read(place.path("arc").join(name));
        assert_eq!(content.unwrap(), b"mine", "{name}");
    }
}

/// Names of an unfinished volume, of which the archive makes others.
const OF_VOLUMES: [&str; 4] = [
    "000000.tar.partial",
    "000000.rows.partial",
    "000000.rows.partial-journal",
    "000003.tar.partial",
];

/// Names for which there is no other.
const NEEDED: [&str; 7] = [
    "stook.lock",
    "index.db.partial",
    "index.db.partial-journal",
    "index.db.partial-wal",
    "index.db-journal",
    "index.db-wal",
    "index.db-shm",
];

#[test]
fn a_folder_with_other_files_is_refused_and_they_are_named() {
    let place = with_files(&["notes.txt"]);
    let dry = place.run(&["create", "src", "arc", "--dry-run"]);
    let ran = place.run(&["create", "src", "arc"]);
    assert_eq!((dry.status, ran.status), (Some(1), Some(1)));
    assert_eq!(dry.stderr, ran.stderr);
    assert_snapshot!(ran.stderr, @r"
        error: cannot create `arc`: it holds `notes.txt`
        hint: `--allow-other-files` creates the archive all the same, and leaves them alone
        ");
    for name in ["a", "b", "c", "d"] {
        fs::create_dir(place.path("arc").join(name)).unwrap();
    }
    let ran = place.run(&["create", "src", "arc"]);
    assert_snapshot!(ran.stderr.lines().next().unwrap(), @"error: cannot create `arc`: it holds `a`, `b`, `c` and 2 more");
    for name in OF_VOLUMES.iter().chain(&NEEDED) {
        let place = with_files(&[name]);
        let ran = place.run(&["create", "src", "arc"]);
        assert_eq!(ran.status, Some(1), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(name), "{name}: {}", ran.stderr);
        assert_eq!(place.names("arc"), [*name]);
        assert_mine(&place, &[name]);
    }
}

#[test]
fn other_files_stay_as_they_are_where_they_are_allowed() {
    for more in [&["--allow-other-files"][..], &["--compat", "zstash"]] {
        let mut mine = vec!["notes.txt", "create.log"];
        mine.extend(OF_VOLUMES);
        let place = with_files(&mine);
        place.stderr(&[&["create", "src", "arc"][..], more].concat());
        assert_mine(&place, &mine);
        assert!(
            place.path("arc/000004.tar").exists(),
            "{:?}",
            place.names("arc")
        );
        place.write("src/new", b"new");
        place.stderr(&["update", "src", "arc"]);
        assert_mine(&place, &mine);
        place.stderr(&["check", "arc", "--volumes"]);
        place.stderr(&["extract", "arc", "--into", "out"]);
        assert_eq!(fs::read(place.path("out/new")).unwrap(), b"new");
    }
}

#[test]
fn a_file_with_a_name_that_stook_needs_is_named_and_stays() {
    for name in NEEDED {
        let place = with_files(&[name]);
        let ran = place.run(&["create", "src", "arc", "--allow-other-files"]);
        assert_eq!(ran.status, Some(1), "{name}");
        let text =
            format!("cannot write `arc/{name}`: stook did not make this file, and needs its name");
        assert!(ran.stderr.contains(&text), "{}", ran.stderr);
        assert_eq!(place.names("arc"), [name]);
        assert_mine(&place, &[name]);
    }
}

/// Files that others add to an archive change no answer, neither after a run that ended nor after one that was killed.
#[test]
fn an_update_leaves_other_files_alone() {
    for is_interrupted in [false, true] {
        let place = Place::with(&some_files());
        place.stderr(&["create", "src", "arc"]);
        if is_interrupted {
            let unfinished = "update stook_runs set finished = null, last_file = null";
            place.sql("arc/index.db", unfinished);
        }
        let mine = [
            "000000.tar.partial",
            "000001.tar.partial",
            "000001.rows.partial",
            "000007.rows.partial-journal",
            "index.db.partial",
            "notes.txt",
        ];
        for name in mine {
            place.write(&format!("arc/{name}"), b"mine");
        }
        if !is_interrupted {
            place.write("arc/000005.rows.partial", b"");
            place.write("arc/000005.tar.partial", b"mine");
        }
        place.write("src/new", b"new");
        place.stderr(&["update", "src", "arc"]);
        assert_mine(&place, &mine);
        if !is_interrupted {
            assert_mine(&place, &["000005.tar.partial"]);
        }
        assert!(
            place.path("arc/000008.tar").exists(),
            "{:?}",
            place.names("arc")
        );
        place.stderr(&["check", "arc"]);
        let ran = place.run(&["reindex", "arc"]);
        assert_eq!(ran.status, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("index.db.partial"), "{}", ran.stderr);
        assert_mine(&place, &mine);
        fs::remove_file(place.path("arc/index.db.partial")).unwrap();
        place.stderr(&["reindex", "arc"]);
        place.write("arc/stook.lock", b"mine");
        let ran = place.run(&["update", "src", "arc"]);
        assert_eq!(ran.status, Some(1));
        assert!(
            ran.stderr.contains("cannot lock `arc/stook.lock`"),
            "{}",
            ran.stderr
        );
        assert_mine(&place, &["stook.lock", "notes.txt"]);
    }
}

/// A `create` that was killed before there was an index leaves these.
#[test]
fn what_a_killed_create_left_is_no_other_file() {
    let place = with_files(&[]);
    place.write("arc/stook.lock", b"1234567 elsewhere\n");
    place.write("arc/index.db.partial", b"");
    place.write("arc/index.db.partial-journal", b"");
    place.stderr(&["create", "src", "arc"]);
    assert_eq!(place.names("arc"), ["000000.tar", "index.db"]);
}

/// An empty file proves nothing: it belongs to a run that was interrupted, or else to the user.
#[test]
fn an_empty_file_with_the_name_of_staged_rows_is_left_alone() {
    for options in [&["--allow-other-files"][..], &["--compat", "zstash"]] {
        let place = Place::with(&some_files());
        fs::create_dir(place.path("arc")).unwrap();
        place.write("arc/000000.rows.partial", b"");
        place.stderr(&[&["create", "src", "arc"][..], options].concat());
        assert!(place.path("arc/000001.tar").is_file());
        place.write("src/new", b"new");
        place.stderr(&["update", "src", "arc"]);
        assert!(place.path("arc/000000.rows.partial").is_file());
        place.stderr(&["check", "arc"]);
    }
}
