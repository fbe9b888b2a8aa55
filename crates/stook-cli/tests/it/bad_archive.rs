//! Archives that are not whole: an index that cannot be used, a volume that is cut off or gone.

use std::path::Path;

use insta::assert_snapshot;
use stook_testkit::Compare;

use crate::bad_input::{archived, refused};
use crate::place::{Place, make_writable};

#[test]
fn volumes_without_an_index_are_not_overwritten() {
    let place = archived();
    std::fs::remove_file(place.path("arc/index.db")).unwrap();
    assert_snapshot!(refused(&place, &["create", "src", "arc"]), @r"
    status 1
    error: cannot use `arc`: it holds volumes, but no index.db
    hint: `stook reindex arc` rebuilds it from the volumes
    ");
    assert_eq!(
        refused(&place, &["list", "arc"]),
        refused(&place, &["update", "src", "arc"])
    );
}

/// Every command that reads the index says the same of one that it cannot use.
fn refused_by_all(place: &Place) -> String {
    let expected = refused(place, &["list", "arc"]);
    for arguments in [
        &["check", "arc"][..],
        &["cat", "arc", "a"],
        &["extract", "arc", "--into", "out"],
        &["diff", "src", "arc"],
        &["update", "src", "arc"],
        &["create", "src", "arc"],
    ] {
        assert_eq!(refused(place, arguments), expected, "{arguments:?}");
    }
    expected
}

#[test]
fn an_index_that_is_not_sqlite_is_refused() {
    let place = archived();
    place.write(
        "arc/index.db",
        "no database, but longer than a header of one".repeat(100),
    );
    assert_snapshot!(refused_by_all(&place), @r"
    status 1
    error: cannot read `arc/index.db`: it is not an SQLite database
    hint: `stook reindex` writes the index anew from the volumes
    ");
}

#[test]
fn an_index_without_its_tables_is_refused() {
    let place = archived();
    place.sql("arc/index.db", "drop table files");
    assert_snapshot!(refused_by_all(&place), @r"
    status 1
    error: cannot read `arc/index.db`: it is not an archive's index: it has no table `files`
    hint: `stook reindex` writes the index anew from the volumes
    ");
    place.write("arc/index.db", "");
    assert_snapshot!(refused_by_all(&place), @r"
    status 1
    error: cannot read `arc/index.db`: it is not an archive's index: it has no table `files`
    hint: `stook reindex` writes the index anew from the volumes
    ");
}

/// Rows without end would keep every reader for ever.
#[test]
fn an_index_whose_table_is_a_view_is_refused() {
    let place = archived();
    place.sql(
        "arc/index.db",
        "drop table files; create view files as with recursive n(i) as (select 1 union all select i + 1 from n) \
         select i as id, 'f' || i as name, 1 as size, '2020-01-01 00:00:00' as mtime, null as md5, \
         '000000.tar' as tar, 0 as offset from n",
    );
    assert_snapshot!(refused_by_all(&place), @r"
    status 1
    error: cannot read `arc/index.db`: it is not an archive's index: its `files` is a view
    hint: `stook reindex` writes the index anew from the volumes
    ");
    place.stderr(&["reindex", "arc"]);
    assert_eq!(place.run(&["check", "arc"]).status, Some(0));
}

#[test]
fn an_index_of_a_newer_stook_is_refused_and_not_replaced() {
    let place = archived();
    place.sql(
        "arc/index.db",
        "update stook_meta set value = 7 where key = 'format'; delete from stook_witnesses where name = 'stook_meta'",
    );
    assert_snapshot!(refused_by_all(&place), @r"
    status 1
    error: cannot read `arc/index.db`: its format is 7, this program knows formats up to 2
    hint: use a newer stook for this archive
    ");
    assert_snapshot!(refused(&place, &["reindex", "arc"]), @r"
    status 1
    error: cannot read `arc/index.db`: its format is 7, this program knows formats up to 2
    hint: use a newer stook for this archive
    ");
}

/// Runs a command that reads a damaged archive; returns all that it says. The archive stays as it is.
fn damaged(place: &Place, arguments: &[&str]) -> String {
    let before = place.snapshot("arc");
    let ran = place.run(arguments);
    let changes = before.difference(&place.snapshot("arc"), &Compare::everything());
    assert_eq!(changes, [""; 0], "{arguments:?} changed something");
    format!(
        "status {}\n{}{}",
        ran.status.unwrap(),
        ran.text(),
        ran.stderr
    )
}

#[test]
fn a_truncated_volume_is_named() {
    let place = archived();
    cut(&place.path("arc/000000.tar"), 4000);
    assert_snapshot!(damaged(&place, &["check", "arc"]), @r"
    status 4
    error: 000000.tar: the volume has 4000 bytes, the index says 10240
    error: 000000.tar at byte 3584, `d`: the volume ends early, there is nothing at byte 4000
    error: 000000.tar at byte 5120, `d/b`: the volume ends early, there is nothing at byte 5120
    checked 2 members, 6 B, in 1 volume: 3 damages
    ");
    assert_snapshot!(damaged(&place, &["cat", "arc", "d/b"]), @r"
    status 4
    error: cannot read `d/b`: it is damaged: the volume ends early, there is nothing at byte 5120
    ");
    assert_snapshot!(damaged(&place, &["extract", "arc", "--into", "out"]), @r"
    status 3
    error: cannot read `d`: the volume ends early, there is nothing at byte 4000 (byte 3584 of 000000.tar)
    error: cannot read `d/b`: the volume ends early, there is nothing at byte 5120 (byte 5120 of 000000.tar)
    extracted 2 entries, 6 B; 2 failed
    ");
}

fn cut(path: &Path, len: u64) {
    make_writable(path);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(len).unwrap();
}

#[test]
fn a_volume_that_is_missing_is_named() {
    let place = archived();
    std::fs::remove_file(place.path("arc/000000.tar")).unwrap();
    assert_snapshot!(damaged(&place, &["check", "arc"]), @r"
    status 4
    error: 000000.tar: the volume is missing
    checked 0 members, 0 B, in 1 volume: 1 damage
    ");
    assert_snapshot!(damaged(&place, &["check", "arc", "a"]), @r"
    status 4
    error: 000000.tar: cannot open the volume: no such file or directory
    checked 0 members, 0 B: 1 damage
    ");
    assert_snapshot!(damaged(&place, &["cat", "arc", "a"]), @r"
    status 1
    error: cannot open `arc/000000.tar`: no such file or directory
    ");
    assert_snapshot!(damaged(&place, &["extract", "arc", "a", "--into", "out"]), @r"
    status 3
    error: cannot read `a`: cannot open `arc/000000.tar`: no such file or directory
    extracted 0 entries, 0 B; 1 failed
    ");
}

#[test]
fn an_index_row_past_the_end_of_its_volume_is_named() {
    let place = archived();
    place.sql(
        "arc/index.db",
        "update files set offset = 1152921504606846976 where name = 'a'",
    );
    assert_snapshot!(damaged(&place, &["check", "arc"]), @r"
    status 4
    error: 000000.tar at byte 0: 2048 bytes belong to no member that the index knows
    error: 000000.tar at byte 7168: 3072 bytes belong to no member that the index knows
    error: 000000.tar at byte 1152921504606846976, `a`: the volume ends early, there is nothing at byte 1152921504606846976
    checked 3 members, 2 B, in 1 volume: 3 damages
    ");
    assert_snapshot!(damaged(&place, &["check", "arc", "a"]), @r"
    status 4
    error: 000000.tar at byte 1152921504606846976, `a`: the volume ends early, there is nothing at byte 1152921504606846976
    checked 0 members, 0 B: 1 damage
    ");
    assert_snapshot!(damaged(&place, &["cat", "arc", "a"]), @r"
    status 4
    error: cannot read `a`: it is damaged: the volume ends early, there is nothing at byte 1152921504606846976
    ");
    assert_snapshot!(damaged(&place, &["extract", "arc", "--into", "out"]), @r"
    status 3
    error: cannot read `a`: the volume ends early, there is nothing at byte 1152921504606846976 (byte 1152921504606846976 of 000000.tar)
    extracted 3 entries, 2 B; 1 failed
    ");
}

#[test]
fn a_senseless_row_fails_alone() {
    let place = archived();
    place.sql(
        "arc/index.db",
        "update files set mtime = 'yesterday' where name = 'a'",
    );
    let why = "its mtime is not a time of the form `YYYY-MM-DD HH:MM:SS`";
    let row = "row 1 of `files`";
    let failure = format!("error: cannot read `a`: {row} in index.db: {why}\n");
    let listed = damaged(&place, &["list", "arc"]);
    assert!(
        listed.starts_with("status 3\n") && listed.contains("\nd/b\n"),
        "{listed}"
    );
    assert!(
        !listed.contains("\na\n") && listed.ends_with(&failure),
        "{listed}"
    );
    let damage = format!("error: index.db, {row}, `a`: {why}\n");
    let checked = damaged(&place, &["check", "arc", "d/b"]);
    let hint = "hint: `stook reindex` writes the index anew from the volumes\n";
    let expected = format!("status 4\n{damage}{hint}checked 1 member, 2 B: 1 damage\n");
    assert_eq!(checked, expected);
    let json = place.run(&["check", "arc", "d/b", "--json"]);
    let fields = format!(
        r#"{{"type":"damage","path":"a","index":true,"table":"files","rows":[1,1],"column":"mtime","cause":"{why}"}}"#
    );
    assert_eq!(json.text().lines().nth(1), Some(fields.as_str()));
    let printed = damaged(&place, &["cat", "arc", "a"]);
    let expected = format!("error: cannot read `a`: it is damaged: {row} in index.db: {why}\n");
    assert_eq!(printed, format!("status 4\n{expected}"));
    let extracted = damaged(&place, &["extract", "arc", "--into", "out"]);
    assert!(
        extracted.starts_with(&format!("status 3\n{failure}extracted 3 entries")),
        "{extracted}"
    );
    let differs = damaged(&place, &["diff", "src", "arc"]);
    assert!(differs.starts_with("status 0\nchanged  a\n"), "{differs}");
}

#[test]
fn an_index_with_a_senseless_row_is_rebuilt() {
    let place = archived();
    place.sql("arc/index.db", "update files set mtime = 'yesterday'");
    let listed = place.run(&["list", "arc"]);
    assert_eq!((listed.status, listed.text()), (Some(3), ""));
    assert_eq!(listed.stderr.lines().count(), 4);
    assert_eq!(place.run(&["check", "arc"]).status, Some(4));
    let rebuilt = place.run(&["reindex", "arc"]);
    assert_eq!(rebuilt.status, Some(0), "{}", rebuilt.stderr);
    assert_eq!(place.run(&["check", "arc"]).status, Some(0));
}

#[test]
fn what_headers_say_is_added_without_a_rebuild() {
    let place = archived();
    place.sql("arc/index.db", "delete from stook_attributes");
    let checked = place.run(&["check", "arc"]);
    assert_eq!(checked.status, Some(4), "{}", checked.stderr);
    let listed = place.stdout(&["list", "arc", "-l"]);
    let added = place.stderr(&["reindex", "arc", "--attributes"]);
    assert!(added.starts_with("added attributes of "), "{added}");
    assert!(added.ends_with(" in 1 volume\n"), "{added}");
    place.stderr(&["check", "arc"]);
    assert_eq!(place.stdout(&["list", "arc", "-l"]), listed);
    let again = place.json(&["reindex", "arc", "--attributes", "--json"]);
    assert_eq!(again.last().unwrap()["members"], 0);
}

#[test]
fn lost_witnesses_are_told_with_the_command_that_mends() {
    let place = archived();
    place.sql("arc/index.db", "DELETE FROM stook_witnesses");
    let checked = damaged(&place, &["check", "arc"]);
    assert!(checked.starts_with("status 4\n"), "{checked}");
    let hint = "hint: `stook reindex` writes the index anew from the volumes\n";
    // Once, however many there are.
    assert_eq!(checked.matches(hint).count(), 1, "{checked}");
    place.stderr(&["reindex", "arc"]);
    place.stderr(&["check", "arc"]);
}
