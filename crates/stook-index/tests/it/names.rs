//! Name lookup: what segments of hashes find, when they are not used, and that no lookup ever disagrees with a scan.

use std::ops::ControlFlow;
use std::time::Instant;

use proptest::prelude::*;
use stook_index::{
    AsOf, Deleted, Index, Mtime, NameLookup, Rebuild, RunId, Selection, Version, VolumeParts,
};

use crate::samples::{Folder, all_rows, commit, config, row, selected, volume};

/// Commits a volume of names in a run that finds other names deleted.
fn run(index: &mut Index, number: u64, names: &[&str], deleted: &[&str]) -> RunId {
    let run = index.begin_run("update", Mtime(0)).unwrap();
    if !names.is_empty() {
        commit(index, number, names, number + 1);
    }
    let deleted = deleted.iter().map(|name| name.as_bytes());
    index.finish_run(run, Mtime(1), 0, deleted).unwrap();
    run
}

fn find(index: &Index, name: &str) -> NameLookup {
    index.find(name.as_bytes(), AsOf::Now).unwrap()
}

/// Size of the newest version, and how many rows were scanned for it.
fn found(index: &Index, name: &str) -> (Option<u64>, u64) {
    let NameLookup { row, scanned, .. } = find(index, name);
    (row.map(|row| row.size), scanned)
}

fn numbered(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers
        .map(|number| format!("some/name/{number}"))
        .collect()
}

fn commit_numbered(index: &mut Index, number: u64, numbers: std::ops::Range<u32>) {
    let names = numbered(numbers);
    let rows = names.iter().map(|name| row(name.as_bytes(), number + 1));
    index.commit_volume(&volume(number), rows, None).unwrap();
}

fn count(folder: &Folder, table: &str) -> i64 {
    let connection = rusqlite::Connection::open(&folder.index).unwrap();
    let query = format!("SELECT count(*) FROM {table}");
    connection.query_row(&query, [], |row| row.get(0)).unwrap()
}

fn damages(folder: &Folder) -> Vec<String> {
    let index = Index::open_read(&folder.index).unwrap();
    let mut told = Vec::new();
    index
        .check(&mut |_| ControlFlow::Continue(()), &mut |damage| {
            told.push(damage.to_string());
        })
        .unwrap();
    told
}

#[test]
fn every_name_of_many_commits_is_found_without_a_scan() {
    let folder = Folder::new();
    let mut index = folder.create();
    // Segments of several parts, merges of unequal ones, and newer versions of names.
    let mut end = 0;
    for (number, length) in [9000, 5000, 20_000, 100, 90, 1, 1, 30_000, 1]
        .into_iter()
        .enumerate()
    {
        let number = u64::try_from(number).unwrap();
        commit_numbered(&mut index, number, end..end + length);
        end += length;
    }
    commit_numbered(&mut index, 9, 100..200);
    for name in numbered(0..end).iter().step_by(7).chain(&numbered(90..210)) {
        let (size, scanned) = found(&index, name);
        assert!(size.is_some() && scanned == 0, "{name}");
    }
    assert_eq!(found(&index, "some/name/150"), (Some(10), 0));
    assert_eq!(found(&index, "some/name/none"), (None, 0));
    let segments = count(&folder, "stook_name_segments");
    assert!((1..=16).contains(&segments), "{segments}");
    assert_eq!(damages(&folder), [""; 0]);
}

#[test]
fn many_small_commits_leave_few_segments() {
    let folder = Folder::new();
    let mut index = folder.create();
    for number in 0..100 {
        commit_numbered(&mut index, u64::from(number), number * 3..number * 3 + 3);
    }
    let segments = count(&folder, "stook_name_segments");
    assert!(segments <= 7, "{segments}");
    assert_eq!(count(&folder, "stook_name_parts"), segments);
    assert_eq!(found(&index, "some/name/0"), (Some(1), 0));
    assert_eq!(found(&index, "some/name/299"), (Some(100), 0));
}

#[test]
fn rows_of_another_program_are_scanned_until_the_next_write() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b"], &[]);
    folder.sql(
        "INSERT INTO files (name, size, mtime, md5, tar, offset)
            SELECT name, 77, mtime, md5, '000001.tar', offset FROM files WHERE name = 'a';
        INSERT INTO files (name, size, mtime, md5, tar, offset)
            SELECT 'new', 78, mtime, md5, '000001.tar', offset FROM files WHERE name = 'b'",
    );
    assert_eq!(found(&index, "a"), (Some(77), 2));
    assert_eq!(found(&index, "b"), (Some(1), 2));
    assert_eq!(found(&index, "new"), (Some(78), 2));
    run(&mut index, 2, &[], &["b"]);
    assert_eq!(found(&index, "a"), (Some(77), 0));
    assert_eq!(found(&index, "new"), (Some(78), 0));
    assert_eq!(found(&index, "b"), (None, 0));
}

#[test]
fn an_archive_without_segments_is_scanned_once_and_indexed_by_the_next_write() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b", "gone"], &["gone"]);
    folder.sql("DROP TABLE stook_name_segments; DROP TABLE stook_name_parts");
    assert_eq!(found(&index, "a"), (Some(1), 4));
    assert_eq!(found(&index, "gone"), (None, 4));
    run(&mut index, 1, &["c"], &[]);
    assert_eq!(found(&index, "a"), (Some(1), 0));
    assert_eq!(found(&index, "gone"), (None, 0));
    assert_eq!(damages(&folder), [""; 0]);
}

/// What another program may do to rows that are indexed.
const REPLACED: [&str; 6] = [
    // The ids of removed rows are given to new ones.
    "DELETE FROM files WHERE id > 2;
        INSERT INTO files (name, size, mtime, md5, tar, offset)
        SELECT 'other', 9, mtime, md5, '000007.tar', offset FROM files WHERE id = 1;
        INSERT INTO files (name, size, mtime, md5, tar, offset)
        SELECT 'd', 10, mtime, md5, '000007.tar', offset FROM files WHERE id = 1",
    "DELETE FROM files WHERE id = 4",
    "DELETE FROM files WHERE id = 1",
    "UPDATE files SET id = id + 10",
    "UPDATE files SET id = -id",
    "UPDATE files SET id = 100 WHERE name = 'b'",
];

#[test]
fn replaced_and_renumbered_rows_are_found_as_a_scan_finds_them() {
    for sql in REPLACED {
        let folder = Folder::new();
        let mut index = folder.create();
        run(&mut index, 0, &["a", "b", "c", "d"], &[]);
        folder.sql(sql);
        assert_agrees_with_a_scan(&index, sql);
        assert!(!damages(&folder).is_empty(), "{sql}");
        run(&mut index, 8, &["e", "a"], &[]);
        assert_agrees_with_a_scan(&index, sql);
        // A row that is gone from the middle stays in its segment, and no archive has ids below 1.
        let is_left = sql.contains("= 100") || sql.contains("-id");
        let names = |text: &String| text.contains("stook_name");
        assert!(is_left || !damages(&folder).iter().any(names), "{sql}");
    }
}

fn assert_agrees_with_a_scan(index: &Index, context: &str) {
    for name in ["a", "b", "c", "d", "e", "other", "none"] {
        let matches = |row: &stook_index::RowRef<'_>| row.name == name.as_bytes();
        let selection = Selection::of(index, AsOf::Now, Deleted::Hide, &matches).unwrap();
        let expected = selected(index, &selection).pop();
        assert_eq!(find(index, name).row, expected, "{name} after {context}");
        let matches = |other: &[u8]| other == name.as_bytes();
        assert_eq!(
            index.absence_of(AsOf::Now, name.as_bytes()).unwrap(),
            index.absence(AsOf::Now, &matches).unwrap(),
            "{name} after {context}"
        );
        let mut rows = all_rows(index);
        rows.retain(|row| row.name == name.as_bytes());
        rows.reverse();
        let versions = index.versions(name.as_bytes()).unwrap().versions;
        let found: Vec<_> = versions.into_iter().map(|version| version.row).collect();
        assert_eq!(found, rows, "{name} after {context}");
    }
}

/// Sizes and runs of the versions of a name, the newest first, and how many rows were scanned for them.
fn versions(index: &Index, name: &str) -> (Vec<(u64, Option<i64>)>, u64) {
    let found = index.versions(name.as_bytes()).unwrap();
    let versions = found.versions.iter();
    let text = |version: &Version| (version.row.size, version.run.as_ref().map(|run| run.id.0));
    (versions.map(text).collect(), found.scanned)
}

#[test]
fn versions_are_those_of_all_runs_and_of_other_programs() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b"], &[]);
    run(&mut index, 1, &["a"], &["b"]);
    folder.sql(
        "INSERT INTO files (name, size, mtime, md5, tar, offset)
            SELECT name, 77, mtime, md5, '000007.tar', offset FROM files WHERE id = 1",
    );
    assert_eq!(
        versions(&index, "a"),
        (vec![(77, None), (2, Some(2)), (1, Some(1))], 1)
    );
    run(&mut index, 2, &["b", "a"], &[]);
    let of_a = vec![(3, Some(3)), (77, None), (2, Some(2)), (1, Some(1))];
    assert_eq!(versions(&index, "a"), (of_a, 0));
    assert_eq!(versions(&index, "b"), (vec![(3, Some(3)), (1, Some(1))], 0));
    assert_eq!(versions(&index, "none"), (vec![], 0));
    // A run that has not ended has added what is behind its first row.
    index.begin_run("update", Mtime(0)).unwrap();
    commit(&mut index, 3, &["b"], 4);
    assert_eq!(versions(&index, "b").0[0], (4, Some(4)));
    folder.sql("DELETE FROM stook_runs WHERE id = 2");
    assert_eq!(versions(&index, "a").0[2], (2, None));
}

#[test]
fn a_version_that_cannot_be_read_is_told() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b"], &[]);
    run(&mut index, 1, &["a", "b"], &[]);
    folder.sql("UPDATE files SET size = -1 WHERE id = 3");
    let found = index.versions(b"a").unwrap();
    assert_eq!(found.versions.len(), 1);
    assert_eq!(found.damages.len(), 1);
    assert_eq!(found.damages[0].rows, Some(3..=3));
    assert!(index.versions(b"b").unwrap().damages.is_empty());
}

#[test]
fn a_row_removed_from_the_middle_gives_way_to_the_version_before() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b"], &[]);
    run(&mut index, 1, &["a", "c"], &[]);
    assert_eq!(found(&index, "a"), (Some(2), 0));
    folder.sql("DELETE FROM files WHERE id = 3");
    assert_eq!(found(&index, "a").0, Some(1));
    assert_agrees_with_a_scan(&index, "a removed row");
}

#[test]
fn a_damaged_part_or_segment_is_told_and_not_used() {
    for (sql, told) in [
        (
            "UPDATE stook_name_parts SET entries = x'00' || substr(entries, 2) WHERE id = 1",
            "row 1 of `stook_name_parts`: it does not have its checksum",
        ),
        (
            "DELETE FROM stook_name_parts",
            "row 1 of `stook_name_parts`: it does not have its checksum",
        ),
        (
            "UPDATE stook_name_segments SET last_row = 7 WHERE id = 1",
            "row 1 of `stook_name_segments`: it does not have its checksum",
        ),
        (
            "UPDATE stook_name_segments SET fences = NULL WHERE id = 1",
            "row 1 of `stook_name_segments`: it does not have its checksum",
        ),
        (
            "INSERT INTO stook_name_parts VALUES (90, x'0000')",
            "row 90 of `stook_name_parts`: no segment has it",
        ),
    ] {
        let folder = Folder::new();
        let mut index = folder.create();
        run(&mut index, 0, &["a", "b", "c", "d"], &["d"]);
        folder.sql(sql);
        assert_agrees_with_a_scan(&index, sql);
        let texts = damages(&folder);
        assert!(texts.iter().any(|text| text.contains(told)), "{texts:#?}");
        drop(index);
        let mut index = Index::open_write(&folder.index).unwrap();
        run(&mut index, 1, &["e", "a", "b", "c", "other"], &["b"]);
        assert_agrees_with_a_scan(&index, sql);
    }
}

/// The sum of all entries in a segment tells a name that was changed in place, which no lookup can.
#[test]
fn a_name_changed_in_place_is_told_by_a_check() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b", "c", "d"], &[]);
    folder.sql("UPDATE files SET name = 'x' WHERE id = 2");
    assert_eq!(found(&index, "b"), (None, 0));
    let expected =
        "row 1 of `stook_name_segments`: its entries are not the names of rows 1 to 4 of `files`";
    let texts = damages(&folder);
    assert!(
        texts.iter().any(|text| text.ends_with(expected)),
        "{texts:#?}"
    );
}

#[test]
fn a_damaged_row_behind_a_hit_is_told_as_by_a_scan() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b"], &[]);
    run(&mut index, 1, &["a", "c"], &[]);
    folder.sql("UPDATE files SET size = -1 WHERE id = 3");
    let found = find(&index, "a");
    assert_eq!(found.row, None);
    assert_eq!(found.damage.unwrap().rows, Some(3..=3));
    assert!(find(&index, "b").damage.is_none());
}

#[test]
fn deleted_names_are_found_by_their_segments() {
    let folder = Folder::new();
    let mut index = folder.create();
    let first = run(&mut index, 0, &["a", "b", "c"], &[]);
    let second = run(&mut index, 1, &[], &["a", "b"]);
    let third = run(&mut index, 2, &["a"], &["c"]);
    let at = |name: &str, run| {
        let found = index.find(name.as_bytes(), AsOf::Run(run)).unwrap();
        assert_eq!(found.scanned, 0);
        found.row.map(|row| row.size)
    };
    assert_eq!(at("a", first), Some(1));
    assert_eq!(at("a", second), None);
    assert_eq!(at("a", third), Some(3));
    assert_eq!(at("c", second), Some(1));
    assert_eq!(at("c", third), None);
    assert!(index.find(b"a", AsOf::Run(RunId(9))).is_err());
    assert_agrees_with_a_scan(&index, "three runs");
}

#[test]
fn a_rebuilt_index_finds_names_without_a_scan() {
    let folder = Folder::new();
    let mut old = folder.create();
    run(&mut old, 0, &["a", "b"], &[]);
    run(&mut old, 1, &["b"], &["a"]);
    let mut rebuild = Rebuild::new(&folder.index, &config()).unwrap();
    rebuild
        .add_volume(
            &volume(0),
            [row(b"a", 1), row(b"found", 1), row(b"b", 1)],
            VolumeParts::default(),
        )
        .unwrap();
    rebuild
        .add_volume(&volume(1), [row(b"b", 2)], VolumeParts::default())
        .unwrap();
    rebuild.carry_over(&old).unwrap();
    rebuild.finish().unwrap();
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(found(&index, "b"), (Some(2), 0));
    assert_eq!(found(&index, "found"), (Some(1), 0));
    assert_eq!(found(&index, "a"), (None, 0));
    assert_eq!(damages(&folder), [""; 0]);
}

/// What happens to an archive between two looks at it.
#[derive(Debug, Clone)]
enum Event {
    Run(Vec<usize>, Vec<usize>),
    /// zstash adds rows.
    Foreign(Vec<usize>),
    RemoveLast(u8),
    RemoveOne(u8),
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "other"];

fn any_event() -> impl Strategy<Value = Event> {
    let names = || proptest::collection::vec(0..NAMES.len(), 0..5);
    prop_oneof![
        4 => (names(), names()).prop_map(|(added, deleted)| Event::Run(added, deleted)),
        2 => names().prop_map(Event::Foreign),
        1 => (1_u8..4).prop_map(Event::RemoveLast),
        1 => (1_u8..20).prop_map(Event::RemoveOne),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_lookup_ever_disagrees_with_a_scan(events in proptest::collection::vec(any_event(), 1..9)) {
        let folder = Folder::new();
        let mut index = folder.create();
        for (number, event) in (0..).zip(&events) {
            let named = |which: &[usize]| -> Vec<&str> { which.iter().map(|&at| NAMES[at]).collect() };
            match event {
                Event::Run(added, deleted) => {
                    run(&mut index, number, &named(added), &named(deleted));
                }
                Event::Foreign(added) => for name in named(added) {
                    folder.sql(&format!("INSERT INTO files (name, size, mtime, tar, offset)
                        VALUES ('{name}', {number}, '2020-01-01 00:00:00', '000fff.tar', 0)"));
                },
                Event::RemoveLast(count) => folder.sql(&format!(
                    "DELETE FROM files WHERE id > (SELECT max(id) FROM files) - {count}")),
                Event::RemoveOne(id) => folder.sql(&format!("DELETE FROM files WHERE id = {id}")),
            }
            assert_agrees_with_a_scan(&index, &format!("{events:?}"));
        }
    }
}

/// As many rows as the standard file set has, by plain SQL, then what the segments cost and what a lookup takes.
#[test]
#[ignore = "makes an index of 1,290,284 rows, which takes half a minute"]
fn one_name_of_a_million_is_found_in_milliseconds() {
    const ROWS: u64 = 1_290_284;
    let folder = Folder::new();
    drop(folder.create());
    folder.sql(&format!(
        "INSERT INTO files (name, size, mtime, md5, tar, offset)
            WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS})
            SELECT printf('some/directory/of/%d/file-number-%d.nc', i / 50, i), 7165, '2020-09-13 12:26:40',
            printf('%032x', i), '000000.tar', i * 8192 FROM n"
    ));
    let mut index = Index::open_write(&folder.index).unwrap();
    let name = |number: u64| format!("some/directory/of/{}/file-number-{number}.nc", number / 50);
    let timed = |index: &Index, name: &str| {
        let begin = Instant::now();
        let found = find(index, name);
        (begin.elapsed(), found.row.is_some(), found.scanned)
    };
    println!("by a scan: {:?}", timed(&index, &name(ROWS / 2)));
    let before = std::fs::metadata(&folder.index).unwrap().len();
    let begin = Instant::now();
    run(&mut index, 1, &["one more"], &[]);
    println!(
        "the first write after a scan indexes all names: {:?}",
        begin.elapsed()
    );
    let after = std::fs::metadata(&folder.index).unwrap().len();
    println!("bytes a row: {:.2}", (after - before) as f64 / ROWS as f64);
    drop(index);
    let mut longest = std::time::Duration::ZERO;
    for number in (0..ROWS).step_by(100_003) {
        let index = Index::open_read(&folder.index).unwrap();
        let (time, is_found, scanned) = timed(&index, &name(number));
        assert!(is_found && scanned == 0);
        longest = longest.max(time);
    }
    let index = Index::open_read(&folder.index).unwrap();
    println!(
        "a name: {longest:?} at most; none: {:?}",
        timed(&index, "none")
    );
    assert!(longest.as_millis() < 30, "{longest:?}");
    drop(index);
    let rows = all_rows(&Index::open_read(&folder.index).unwrap());
    let fresh = Folder::new();
    let mut index = fresh.create();
    let begin = Instant::now();
    let new = rows.iter().map(|row| stook_index::NewRow {
        name: &row.name,
        size: row.size,
        mtime: row.mtime,
        md5: row.md5,
        offset: row.offset,
    });
    index.commit_volume(&volume(0), new, None).unwrap();
    println!("a commit of all rows: {:?}", begin.elapsed());
    println!("segments: {}", count(&fresh, "stook_name_segments"));
}
