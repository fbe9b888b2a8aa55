//! One writer per archive: the second gets an error that names the first, and a dead one holds nothing.

use std::fs::File;
use std::io::Write;

use insta::assert_snapshot;
use stook_testkit::{Compare, Random, tree};

use crate::commands::sample_tree;
use crate::place::{Place, Ran, Signal, wait_until};

/// Holds the lock of an archive as process 4711 of another machine would.
fn hold(place: &Place, archive: &str) -> File {
    let mut file = File::create(place.path(archive).join("stook.lock")).unwrap();
    file.try_lock().unwrap();
    file.write_all(b"4711 elsewhere\n").unwrap();
    file
}

fn refused(place: &Place, arguments: &[&str]) -> String {
    let before = place.snapshot(".");
    let ran = place.run(arguments);
    let changes = before.difference(&place.snapshot("."), &Compare::everything());
    assert_eq!(changes, [""; 0], "{arguments:?}");
    assert_eq!((ran.status, ran.text()), (Some(1), ""), "{arguments:?}");
    ran.stderr
}

#[test]
fn the_second_writer_is_told_who_writes() {
    let place = Place::with(&sample_tree());
    std::fs::create_dir(place.path("arc")).unwrap();
    let lock = hold(&place, "arc");
    assert_snapshot!(refused(&place, &["create", "src", "arc"]), @"error: cannot write `arc`: it is being written by process 4711 on elsewhere");
    drop(lock);
    place.stderr(&["create", "src", "arc"]);
    place.write("src/new", "new");
    let lock = hold(&place, "arc");
    let expected = refused(&place, &["update", "src", "arc"]);
    assert_snapshot!(expected, @"error: cannot write `arc`: it is being written by process 4711 on elsewhere");
    assert_eq!(refused(&place, &["reindex", "arc"]), expected);
    // Readers need no lock, nor does a plan.
    for arguments in [
        &["list", "arc"][..],
        &["check", "arc"],
        &["diff", "src", "arc"],
        &["update", "src", "arc", "--dry-run"],
        &["extract", "arc", "--into", "out"],
    ] {
        assert_eq!(place.run(arguments).status, Some(0), "{arguments:?}");
    }
    drop(lock);
    place.stderr(&["update", "src", "arc"]);
    assert_eq!(place.names("arc"), ["000000.tar", "000001.tar", "index.db"]);
}

#[test]
fn two_creates_at_once_leave_one_archive() {
    let large = Random::new(9).bytes(8 << 20).repeat(8);
    let place = Place::with(&tree! { "a" => file(b"x"), "large" => file(&large) });
    let create = ["create", "src", "arc"];
    let mut first = place.command(&create).spawn().unwrap();
    let [stop, go_on] = ["STOP", "CONT"].map(|name| Signal::ready(&first, name));
    let began = wait_until(&mut first, || place.path("arc/000000.tar.partial").exists());
    assert!(began, "the first ended too soon");
    // Stopped in the middle of its volume, it holds the lock for as long as the second needs.
    stop.send();
    let second = place.run(&create);
    go_on.send();
    assert_eq!(second.status, Some(1));
    let expected = format!(
        "error: cannot write `arc`: it is being written by process {} on {}\n",
        first.id(),
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .unwrap()
            .trim()
    );
    assert_eq!(second.stderr, expected);
    let first = Ran::of(first.wait_with_output().unwrap());
    assert_eq!(first.status, Some(0), "{}", first.stderr);
    place.stderr(&["check", "arc"]);
    let summary = place.json(&["update", "src", "arc", "--json"]);
    assert_eq!(summary[0]["members"], 0);
}

#[test]
fn the_lock_of_a_dead_process_is_taken_over() {
    let place = Place::with(&tree! { "a" => file(b"x") });
    std::fs::create_dir(place.path("arc")).unwrap();
    place.write("arc/stook.lock", "4711 elsewhere\n");
    place.stderr(&["create", "src", "arc"]);
    assert_eq!(place.names("arc"), ["000000.tar", "index.db"]);
    place.write("arc/stook.lock", "");
    place.write("src/b", "y");
    place.stderr(&["update", "src", "arc"]);
    assert_eq!(place.names("arc"), ["000000.tar", "000001.tar", "index.db"]);
    // Killed when all was done: the archive is refused as finished, and nothing of the lock stays.
    place.write("arc/stook.lock", "4711 elsewhere\n");
    assert_eq!(place.run(&["create", "src", "arc"]).status, Some(1));
    assert_eq!(place.names("arc"), ["000000.tar", "000001.tar", "index.db"]);
}
