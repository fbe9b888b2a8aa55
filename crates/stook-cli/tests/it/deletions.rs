//! Names that are gone: when an update stops, what `--deletions` decides, and where deleted names are found again.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};
use stook_testkit::tree;

use crate::bad_input::refused;
use crate::commands::{sample_tree, updated};
use crate::place::Place;

/// A place whose `src` was archived and is empty now.
fn emptied() -> Place {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    fs::remove_dir_all(place.path("src")).unwrap();
    fs::create_dir(place.path("src")).unwrap();
    place
}

/// Runs an update that must stop, with every byte of the archive as it was and no lock left; returns what it says.
fn stopped(place: &Place, arguments: &[&str]) -> String {
    let files = || {
        let names = place.names("arc").into_iter();
        let with_bytes = names.map(|name| (fs::read(place.path("arc").join(&name)).unwrap(), name));
        with_bytes.collect::<Vec<_>>()
    };
    let before = files();
    let ran = place.run(arguments);
    assert_eq!((ran.status, ran.text()), (Some(1), ""));
    assert!(files() == before, "{arguments:?} changed the archive");
    ran.stderr
}

#[test]
fn an_update_of_an_empty_source_stops_and_changes_nothing() {
    let place = emptied();
    assert_snapshot!(stopped(&place, &["update", "src", "arc"]), @r"
    error: cannot update `arc`: nothing was found in `src`, and 6 names would be recorded as deleted
    hint: is `src` the right directory, mounted and complete? `--deletions record` records them as deleted; `--deletions keep` keeps them in the newest state
    ");
    // Asked for, it goes on.
    assert_snapshot!(place.stderr(&["update", "src", "arc", "--deletions", "keep"]), @"nothing to archive, 0 entries unchanged");
    assert_snapshot!(place.stderr(&["update", "src", "arc", "--deletions", "record"]), @"archived 0 entries, 0 B, in 0 volumes; 6 deleted");
    assert_eq!(place.stdout(&["list", "arc"]), "");
}

#[test]
fn a_vanished_source_is_an_error() {
    let place = emptied();
    fs::remove_dir(place.path("src")).unwrap();
    assert_snapshot!(refused(&place, &["update", "src", "arc"]), @r"
    status 1
    error: cannot open `src`: no such file or directory
    ");
}

#[test]
fn another_directory_is_named_with_the_one_that_was_archived() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    tree! { "x" => file(b"x"), "y" => file(b"y") }
        .write(&place.path("other"))
        .unwrap();
    let archived = fs::canonicalize(place.path("src")).unwrap();
    let shown = |text: &str| text.replace(archived.to_str().unwrap(), "/SRC");
    let ran = place.run(&["update", "other", "arc"]);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(shown(&ran.stderr), @r"
    error: cannot update `arc`: the archive has 0 of the 2 names in `other`, and 6 names would be recorded as deleted; the archive was created from `/SRC`
    hint: is `other` the right directory, mounted and complete? `--deletions record` records them as deleted; `--deletions keep` keeps them in the newest state
    ");
    let dry_run = place.run(&["update", "other", "arc", "--dry-run"]);
    assert_eq!(dry_run.status, Some(0));
    assert_snapshot!(shown(&dry_run.stderr), @"note: the run would stop: the archive has 0 of the 2 names in `other`, and 6 names would be recorded as deleted; the archive was created from `/SRC`");
    let diff = place.run(&["diff", "other", "arc"]);
    assert_eq!(diff.status, Some(0));
    assert_snapshot!(shown(&diff.stderr), @r"
    note: an update would stop: the archive has 0 of the 2 names in `other`, and 6 names would be recorded as deleted; the archive was created from `/SRC`
    hint: `stook update --deletions` says what is meant
    2 new, 0 changed, 6 deleted, 0 unchanged
    ");
    // A copy of the tree is legitimate, so it is only noted, and not under --quiet.
    place.stderr(&["copy", "src", "copy"]);
    let note = shown(&place.stderr(&["update", "copy", "arc", "--compat", "zstash"]));
    assert_snapshot!(note, @r"
    note: the archive was created from `/SRC`, and `copy` is another directory
    nothing to archive, 5 entries unchanged
    ");
    assert_eq!(place.stderr(&["update", "copy", "arc", "--quiet"]), "");
}

#[test]
fn deletions_can_be_refused() {
    let place = updated();
    assert_snapshot!(stopped(&place, &["update", "src", "arc", "--deletions", "refuse"]), @r"
    error: cannot update `arc`: 1 of 6 names is gone from `src`
    hint: `stook diff src arc` names them; `--deletions record` records them as deleted; `--deletions keep` keeps them in the newest state
    ");
    place.write("src/b", "back\n");
    let done = place.stderr(&["update", "src", "arc", "--deletions", "refuse"]);
    assert_snapshot!(done, @"archived 3 entries, 21 B, in 1 volume; 4 unchanged");
}

#[test]
fn compat_zstash_keeps_what_is_gone_unless_asked() {
    let place = emptied();
    let update = ["update", "src", "arc", "--compat", "zstash"];
    assert_snapshot!(place.stderr(&update), @"nothing to archive, 0 entries unchanged");
    assert_eq!(place.stdout(&["list", "arc"]).lines().count(), 6);
    let recorded = place.stderr(&[&update[..], &["--deletions", "record"]].concat());
    assert_snapshot!(recorded, @"archived 0 entries, 0 B, in 0 volumes; 6 deleted");
}

/// Runs: 1 creates; 2 deletes `b`, 3 deletes `d` and what is in it, 4 adds `late`.
fn deleted() -> Place {
    let place = updated();
    place.stderr(&["update", "src", "arc"]);
    fs::remove_dir_all(place.path("src/d")).unwrap();
    place.stderr(&["update", "src", "arc"]);
    place.write("src/late", "late\n");
    place.stderr(&["update", "src", "arc"]);
    place.sql(
        "arc/index.db",
        "update stook_runs set finished = '2026-11-21 18:3' || id || ':00.654321'",
    );
    place
}

#[test]
fn a_deleted_name_is_told_with_its_run_and_the_state_that_has_it() {
    let place = deleted();
    let expected = refused(&place, &["cat", "arc", "b"]);
    assert_snapshot!(expected, @r"
    status 1
    error: cannot find `b` in `arc`: it was deleted by run 2 (2026-11-21 18:32:00)
    hint: `--as-of 1` brings it back
    ");
    for arguments in [
        &["list", "arc", "b"][..],
        &["list", "arc", "a", "b"],
        &["list", "arc", "b", "a"],
        &["extract", "arc", "b", "--into", "out"],
        &["extract", "arc", "a", "b", "--into", "out"],
    ] {
        assert_eq!(refused(&place, arguments), expected, "{arguments:?}");
    }
    assert!(!place.path("out").exists());
    assert_eq!(
        place.stdout(&["cat", "arc", "b", "--as-of", "1"]),
        "bytes of b\n"
    );
    assert_eq!(place.stdout(&["list", "arc", "b", "--all"]), "b\n");
    // A pattern that selects something says nothing of what it does not select.
    assert_eq!(place.stdout(&["list", "arc", "?"]), "a\n");
}

#[test]
fn a_pattern_of_deleted_names_says_how_many() {
    let place = deleted();
    assert_snapshot!(refused(&place, &["list", "arc", "[bd]*"]), @r"
    status 1
    error: cannot find `[bd]*` in `arc`: the 3 names that match were deleted, the last of them by run 3 (2026-11-21 18:33:00)
    hint: `--as-of 2` has 2 of them
    ");
    assert_eq!(
        place.stdout(&["list", "arc", "[bd]*", "--as-of", "2"]),
        "d\nd/deep\n"
    );
}

#[test]
fn a_state_without_a_name_says_which_state_has_it() {
    let place = deleted();
    assert_snapshot!(refused(&place, &["cat", "arc", "late", "--as-of", "2"]), @r"
    status 1
    error: cannot find `late` in `arc`: as of run 2, it was not archived yet
    hint: `--as-of 4` has it
    ");
    assert_snapshot!(refused(&place, &["list", "arc", "b", "--as-of", "2026-11-21 18:33:30"]), @r"
    status 1
    error: cannot find `b` in `arc`: as of run 3, it was deleted by run 2 (2026-11-21 18:32:00)
    hint: `--as-of 1` brings it back
    ");
    assert_snapshot!(refused(&place, &["list", "arc", "none", "--as-of", "2"]), @r"
    status 1
    error: cannot find `none` in `arc`: no member matches
    hint: a pattern is compared with whole paths; `*/none` finds that name in any directory
    ");
}

#[test]
fn runs_are_listed_with_what_they_added_and_deleted() {
    let place = deleted();
    // Between runs, as zstash does.
    place.sql(
        "arc/index.db",
        "insert into files select null, 'zstash', size, mtime, md5, tar, offset from files where name = 'a' limit 1;
         update stook_runs set started = '2026-11-21 18:30:00'",
    );
    assert_snapshot!(place.stdout(&["list", "arc", "--runs"]), @r"
    1 create   2026-11-21 18:30:00        2026-11-21 18:31:00.654321            6 added            0 deleted        0 failed
    2 update   2026-11-21 18:30:00        2026-11-21 18:32:00.654321            2 added            1 deleted        0 failed
    3 update   2026-11-21 18:30:00        2026-11-21 18:33:00.654321            0 added            2 deleted        0 failed
    4 update   2026-11-21 18:30:00        2026-11-21 18:34:00.654321            1 added            0 deleted        0 failed
    - no run   -                          -                                     1 added            0 deleted        0 failed
    ");
    let lines = place.rows(&["list", "arc", "--runs", "--json"]);
    let of = |line: &Value| json!([line["run"], line["command"], line["added"], line["deleted"]]);
    let facts: Vec<Value> = lines.iter().map(of).collect();
    assert_eq!(
        facts,
        [
            json!([1, "create", 6, 0]),
            json!([2, "update", 2, 1]),
            json!([3, "update", 0, 2]),
            json!([4, "update", 1, 0]),
            json!([null, null, 1, 0]),
        ]
    );
}
