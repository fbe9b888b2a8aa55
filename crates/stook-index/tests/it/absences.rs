//! Why a name is not in a state, which state has it, and what each run added and deleted.

use stook_index::{AsOf, Index, Mtime, RunCounts, RunId, Writer};

use crate::samples::{Folder, commit};

fn run(index: &mut Index, volume: u64, names: &[&str], deleted: &[&str]) -> RunId {
    let run = index.begin_run("update", Mtime(0)).unwrap();
    if !names.is_empty() {
        commit(index, volume, names, 1);
    }
    let deleted = deleted.iter().map(|name| name.as_bytes());
    index.finish_run(run, Mtime(1), 0, deleted).unwrap();
    run
}

/// How many names match, which run deleted the last of them, and which state has how many.
type Found = (u64, Option<i64>, Option<(AsOf, u64)>);

fn absence(index: &Index, as_of: AsOf, prefix: &str) -> Option<Found> {
    let matches = |name: &[u8]| name.starts_with(prefix.as_bytes());
    let absence = index.absence(as_of, &matches).unwrap()?;
    let deleted_by = absence.deleted_by.map(|run| run.id.0);
    Some((absence.names, deleted_by, absence.found_in))
}

fn after(run: i64) -> AsOf {
    AsOf::Run(RunId(run))
}

#[test]
fn a_deleted_name_is_in_the_state_before_its_deletion() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b"], &[]);
    run(&mut index, 1, &["c"], &[]);
    run(&mut index, 2, &["d"], &["a"]);
    run(&mut index, 3, &["e"], &[]);
    let expected = (1, Some(3), Some((after(2), 1)));
    for state in [AsOf::Now, after(4), after(3)] {
        assert_eq!(absence(&index, state, "a"), Some(expected), "{state:?}");
    }
    assert_eq!(absence(&index, AsOf::Now, "none"), None);
    assert_eq!(absence(&index, after(9), "a"), None);
}

#[test]
fn a_name_that_came_later_is_in_the_first_state_that_has_it() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a"], &[]);
    run(&mut index, 1, &["b"], &[]);
    run(&mut index, 2, &["late"], &[]);
    run(&mut index, 3, &["late"], &[]);
    assert_eq!(
        absence(&index, after(1), "late"),
        Some((1, None, Some((after(3), 1))))
    );
    // What zstash adds after the last run is in the newest state only.
    commit(&mut index, 4, &["zstash"], 1);
    assert_eq!(
        absence(&index, after(4), "zstash"),
        Some((1, None, Some((AsOf::Now, 1))))
    );
}

#[test]
fn a_name_that_came_back_is_found_between_its_deletions() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "x"], &[]);
    run(&mut index, 1, &[], &["a"]);
    run(&mut index, 1, &["a"], &[]);
    run(&mut index, 2, &[], &["a"]);
    assert_eq!(
        absence(&index, AsOf::Now, "a"),
        Some((1, Some(4), Some((after(3), 1))))
    );
    assert_eq!(
        absence(&index, after(2), "a"),
        Some((1, Some(2), Some((after(1), 1))))
    );
}

#[test]
fn of_several_names_the_newest_state_with_any_is_found() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["d1", "d2", "d3", "x"], &[]);
    run(&mut index, 1, &["y"], &["d1"]);
    run(&mut index, 2, &["z"], &["d2", "d3"]);
    assert_eq!(
        absence(&index, AsOf::Now, "d"),
        Some((3, Some(3), Some((after(2), 2))))
    );
}

#[test]
fn what_was_added_and_deleted_within_one_run_is_in_no_state() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b"], &["b"]);
    assert_eq!(absence(&index, AsOf::Now, "b"), Some((1, Some(1), None)));
    // Added by zstash, and gone when stook came next: no run ended with it.
    commit(&mut index, 1, &["c"], 1);
    run(&mut index, 2, &["d"], &["c"]);
    assert_eq!(absence(&index, AsOf::Now, "c"), Some((1, Some(2), None)));
    assert_eq!(absence(&index, after(1), "c"), Some((1, None, None)));
}

/// Run, rows added and names deleted; no run for rows of another program.
fn counts(index: &Index) -> Vec<(Option<i64>, u64, u64)> {
    let shown = |counts: &RunCounts| match &counts.writer {
        Writer::Run(run) => (Some(run.id.0), counts.added, counts.deleted),
        Writer::Other => (None, counts.added, counts.deleted),
    };
    index
        .run_counts(|damage| panic!("{damage}"))
        .unwrap()
        .iter()
        .map(shown)
        .collect()
}

#[test]
fn each_run_is_listed_with_what_it_added_and_deleted() {
    let folder = Folder::new();
    let mut index = folder.create();
    assert_eq!(counts(&index), []);
    commit(&mut index, 0, &["a", "b"], 1);
    assert_eq!(counts(&index), [(None, 2, 0)]);
    run(&mut index, 1, &["c", "d", "e"], &["a"]);
    run(&mut index, 2, &[], &["b", "c"]);
    commit(&mut index, 2, &["f"], 1);
    run(&mut index, 3, &["g"], &[]);
    commit(&mut index, 4, &["h", "i"], 1);
    let finished = [
        (None, 2, 0),
        (Some(1), 3, 1),
        (Some(2), 0, 2),
        (None, 1, 0),
        (Some(3), 1, 0),
        (None, 2, 0),
    ];
    assert_eq!(counts(&index), finished);
    // An interrupted run has added what it has committed.
    index.begin_run("update", Mtime(2)).unwrap();
    commit(&mut index, 5, &["j", "k"], 1);
    assert_eq!(counts(&index)[6..], [(Some(4), 2, 0)]);
}
