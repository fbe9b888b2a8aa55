//! Which rows count: versions, runs, deletions, selections, and the table of known names.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;
use stook_index::{
    AsOf, Deleted, Index, IndexError, Mtime, NameTable, RowId, RowRef, RunId, Selection, VolumeId,
};
use stook_pool::Jobs;

use crate::samples::{Folder, commit, find, row, selected, state, volume};

fn time(second: i64) -> Mtime {
    Mtime(second * 1_000_000)
}

/// One run that writes a volume, then finds names deleted.
fn run(index: &mut Index, number: u64, names: &[&str], deleted: &[&str]) -> RunId {
    let start = i64::try_from(number).unwrap() * 10;
    let run = index.begin_run("update", time(start)).unwrap();
    commit(index, number, names, number + 1);
    index
        .finish_run(
            run,
            time(start + 5),
            0,
            deleted.iter().map(|name| name.as_bytes()),
        )
        .unwrap();
    run
}

#[test]
fn a_state_is_what_its_run_left() {
    let folder = Folder::new();
    let mut index = folder.create();
    let first = run(&mut index, 0, &["a", "b", "c"], &[]);
    let second = run(&mut index, 1, &["b"], &["a"]);
    let third = run(&mut index, 2, &["a", "d"], &["c"]);
    assert_eq!(
        state(&index, AsOf::Run(first), Deleted::Hide),
        ["a=1", "b=1", "c=1"]
    );
    assert_eq!(
        state(&index, AsOf::Run(second), Deleted::Hide),
        ["c=1", "b=2"]
    );
    assert_eq!(
        state(&index, AsOf::Run(second), Deleted::Show),
        ["a=1", "c=1", "b=2"]
    );
    assert_eq!(
        state(&index, AsOf::Run(third), Deleted::Hide),
        ["b=2", "a=3", "d=3"]
    );
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Hide),
        ["b=2", "a=3", "d=3"]
    );
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Show),
        ["c=1", "b=2", "a=3", "d=3"]
    );
    assert_eq!(find(&index, b"c"), None);
    assert_eq!(find(&index, b"a").unwrap().size, 3);
    let error = Selection::of(&index, AsOf::Run(RunId(9)), Deleted::Hide, &|_| true).unwrap_err();
    assert!(error.to_string().contains("run 9"), "{error}");
}

#[test]
fn runs_are_listed_and_found_by_time() {
    let folder = Folder::new();
    let mut index = folder.create();
    assert_eq!(index.runs().unwrap(), []);
    let first = run(&mut index, 0, &["a", "b"], &[]);
    let second = run(&mut index, 1, &["c"], &[]);
    assert_eq!(index.unfinished_run().unwrap(), None);
    let third = index.begin_run("stook update x", time(30)).unwrap();
    let runs = index.runs().unwrap();
    assert_eq!(
        runs.iter().map(|run| run.id).collect::<Vec<_>>(),
        [first, second, third]
    );
    assert_eq!(
        (runs[1].first_file, runs[1].last_file),
        (RowId(3), Some(RowId(3)))
    );
    assert_eq!(
        (runs[1].started, runs[1].finished),
        (time(10), Some(time(15)))
    );
    assert_eq!(index.unfinished_run().unwrap().as_ref(), Some(&runs[2]));
    assert_eq!(runs[2].command, "stook update x");
    assert_eq!(
        (runs[2].first_file, runs[2].last_file, runs[2].finished),
        (RowId(4), None, None)
    );
    assert_eq!(index.run_at(time(4)).unwrap(), None);
    assert_eq!(index.run_at(time(5)).unwrap(), Some(first));
    assert_eq!(index.run_at(time(14)).unwrap(), Some(first));
    assert_eq!(index.run_at(time(99)).unwrap(), Some(second));
    index.finish_run(third, time(35), 7, []).unwrap();
    assert_eq!(index.runs().unwrap()[2].failed, 7);
    let error = index.finish_run(third, time(36), 0, []).unwrap_err();
    assert!(matches!(error, IndexError::BadRun { .. }), "{error:?}");
}

#[test]
fn the_state_of_an_unfinished_run_ends_where_the_next_begins() {
    let folder = Folder::new();
    let mut index = folder.create();
    let first = index.begin_run("create", time(0)).unwrap();
    commit(&mut index, 0, &["a"], 1);
    let second = index.begin_run("update", time(1)).unwrap();
    commit(&mut index, 1, &["b"], 2);
    assert_eq!(state(&index, AsOf::Run(first), Deleted::Hide), ["a=1"]);
    assert_eq!(
        state(&index, AsOf::Run(second), Deleted::Hide),
        ["a=1", "b=2"]
    );
}

#[test]
fn names_that_are_not_utf8_can_be_deleted_apart_from_their_twins() {
    let folder = Folder::new();
    let mut index = folder.create();
    let run = index.begin_run("update", time(0)).unwrap();
    index
        .commit_volume(&volume(0), [row(b"\xff", 1), row(b"%FF", 2)], None)
        .unwrap();
    index.finish_run(run, time(1), 0, [&b"\xff"[..]]).unwrap();
    assert_eq!(state(&index, AsOf::Now, Deleted::Hide), ["%FF=2"]);
    assert_eq!(find(&index, b"\xff"), None);
    assert_eq!(
        NameTable::load(&index, None, Jobs::default())
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn selections_choose_by_whole_rows_and_stop_when_told() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, &["a", "b"], 1);
    commit(&mut index, 1, &["a", "c"], 2);
    let old = Selection::of(&index, AsOf::Now, Deleted::Hide, &|row| {
        row.volume == VolumeId::plain(0)
    })
    .unwrap();
    assert_eq!(
        selected(&index, &old)
            .iter()
            .map(|row| row.id.0)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    let all = Selection::all_versions(&index, AsOf::Now, &|row| row.name == b"a").unwrap();
    assert_eq!(
        selected(&index, &all)
            .iter()
            .map(|row| row.size)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    let visits = Cell::new(0);
    let stop = |_: stook_index::RowRef<'_>| {
        visits.set(visits.get() + 1);
        ControlFlow::Break(())
    };
    index.selected(&all, stop).unwrap();
    assert_eq!(visits.get(), 1);
    let none = Selection::of(&index, AsOf::Now, Deleted::Hide, &|_| false).unwrap();
    assert!(none.is_empty() && selected(&index, &none).is_empty());
}

#[test]
fn a_hundred_thousand_rows_and_a_few_of_them() {
    let folder = Folder::new();
    let mut index = folder.create();
    let names: Vec<String> = (0..100_000)
        .map(|i| format!("run/output/{:03}/file.{i}.nc", i % 97))
        .collect();
    commit(
        &mut index,
        0,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
        3,
    );
    commit(
        &mut index,
        1,
        &names[..1000].iter().map(String::as_str).collect::<Vec<_>>(),
        4,
    );
    let all = Selection::of(&index, AsOf::Now, Deleted::Hide, &|_| true).unwrap();
    assert_eq!((all.len(), all.bytes()), (100_000, 301_000));
    let few = Selection::of(&index, AsOf::Now, Deleted::Hide, &|row| {
        row.name.ends_with(b"00.nc")
    })
    .unwrap();
    let rows = selected(&index, &few);
    assert_eq!(rows.len(), 999, "every hundredth name but `file.0.nc`");
    assert!(rows.is_sorted_by_key(|row| row.id));
    let pair = |row: &stook_index::RowRef<'_>| {
        row.name == names[5000].as_bytes() || row.name == names[99_000].as_bytes()
    };
    let pair = Selection::of(&index, AsOf::Now, Deleted::Hide, &pair).unwrap();
    let found = selected(&index, &pair);
    assert_eq!(
        found.iter().map(|row| row.id.0).collect::<Vec<_>>(),
        [5001, 99_001]
    );
    let name_table = NameTable::load(&index, None, Jobs::default()).unwrap();
    std::thread::scope(|scope| {
        for half in names[..99_990].chunks(50_000) {
            let name_table = &name_table;
            scope.spawn(move || {
                assert!(
                    half.iter()
                        .all(|name| name_table.lookup(name.as_bytes()).is_some())
                );
            });
        }
    });
    assert_eq!((name_table.len(), name_table.not_visited()), (100_000, 10));
    let mut not_visited = Vec::new();
    index
        .not_visited_names(&name_table, |name| {
            not_visited.push(String::from_utf8(name.to_vec()).unwrap());
        })
        .unwrap();
    assert_eq!(not_visited, names[99_990..]);
}

#[test]
fn known_names_are_the_newest_live_ones() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b", "gone"], &[]);
    run(&mut index, 1, &["b"], &["gone"]);
    let name_table = NameTable::load(&index, None, Jobs::default()).unwrap();
    assert_eq!(name_table.len(), 2);
    assert_eq!(name_table.lookup(b"gone"), None);
    assert_eq!(name_table.lookup(b"never"), None);
    assert_eq!(name_table.not_visited(), 2);
    let b = name_table.lookup(b"b").unwrap();
    assert_eq!(
        (b.id, b.size, b.mtime),
        (Some(RowId(4)), 2, row(b"", 0).mtime)
    );
    assert_eq!(name_table.not_visited(), 1);
    let third = index.begin_run("update", time(40)).unwrap();
    let count = index
        .finish_run_with_not_visited(third, time(41), 0, &name_table, |name| name == b"a")
        .unwrap();
    assert_eq!(count, 1);
    assert_eq!(state(&index, AsOf::Now, Deleted::Hide), ["b=2"]);
    assert!(
        NameTable::load(&index, None, Jobs::default())
            .unwrap()
            .lookup(b"a")
            .is_none()
    );
}

#[test]
fn names_not_visited_that_are_kept_stay() {
    let folder = Folder::new();
    let mut index = folder.create();
    run(&mut index, 0, &["a", "b"], &[]);
    let name_table = NameTable::load(&index, None, Jobs::default()).unwrap();
    let second = index.begin_run("update", time(40)).unwrap();
    assert_eq!(
        index
            .finish_run_with_not_visited(second, time(41), 0, &name_table, |_| false)
            .unwrap(),
        0
    );
    assert_eq!(state(&index, AsOf::Now, Deleted::Hide), ["a=1", "b=1"]);
}

/// A step of the model: a run that archives some names and finds others gone.
fn any_run() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    (
        proptest::collection::vec(0_u8..12, 0..6),
        proptest::collection::vec(0_u8..12, 0..4),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_state_agrees_with_a_model(runs in proptest::collection::vec(any_run(), 1..6)) {
        let folder = Folder::new();
        let mut index = folder.create();
        let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        let mut states = Vec::new();
        for ((added, deleted), number) in runs.iter().zip(0..) {
            let id = index.begin_run("update", time(0)).unwrap();
            let names: Vec<Vec<u8>> = added.iter().map(|&i| name_of(i)).collect();
            let rows = names.iter().zip(0..).map(|(name, i)| row(name, number * 100 + i));
            index.commit_volume(&volume(number), rows, None).unwrap();
            model.extend(names.iter().cloned().zip((0..).map(|i| number * 100 + i)));
            let gone: Vec<Vec<u8>> = deleted.iter().map(|&i| name_of(i)).collect();
            model.retain(|name, _| !gone.contains(name));
            index.finish_run(id, time(1), 0, gone.iter().map(Vec::as_slice)).unwrap();
            states.push((id, model.clone()));
        }
        for (id, expected) in states {
            prop_assert_eq!(&as_map(&index, AsOf::Run(id)), &expected);
            for name in (0..12).map(name_of) {
                let found = index.find(&name, AsOf::Run(id)).unwrap();
                prop_assert_eq!(found.row.map(|row| row.size), expected.get(&name).copied());
                prop_assert_eq!(found.scanned, 0);
            }
        }
        prop_assert_eq!(as_map(&index, AsOf::Now), model.clone());
        let name_table = NameTable::load(&index, None, Jobs::default()).unwrap();
        prop_assert_eq!(name_table.len(), model.len());
        for (name, size) in &model {
            prop_assert_eq!(name_table.lookup(name).map(|row| row.size), Some(*size));
            prop_assert_eq!(find(&index, name).map(|row| row.size), Some(*size));
        }
    }
}

/// Plain names, names with `%`, and names that are not UTF-8 but escape to them.
fn name_of(number: u8) -> Vec<u8> {
    match number % 3 {
        0 => vec![b'a' + number],
        1 => format!("%F{:X}", number - 1).into_bytes(),
        _ => vec![0xf0 + number - 2],
    }
}

fn as_map(index: &Index, as_of: AsOf) -> BTreeMap<Vec<u8>, u64> {
    let selection = Selection::of(index, as_of, Deleted::Hide, &|_| true).unwrap();
    selected(index, &selection)
        .into_iter()
        .map(|row| (row.name, row.size))
        .collect()
}

#[test]
fn a_run_is_taken_back_while_nothing_is_in_it() {
    let folder = Folder::new();
    let mut index = folder.create();
    let first = run(&mut index, 0, &["a"], &[]);
    let before = index.runs().unwrap();
    let begun = index.begin_run("update", time(20)).unwrap();
    // Not one that has finished, and none below the last.
    assert!(!index.take_back_run(first).unwrap());
    assert!(index.take_back_run(begun).unwrap());
    assert_eq!(index.runs().unwrap(), before);
    let mut damages = Vec::new();
    let visit = &mut |_: RowRef<'_>| ControlFlow::Continue(());
    index
        .check(visit, &mut |damage| damages.push(damage))
        .unwrap();
    assert!(damages.is_empty(), "{damages:?}");
    let begun = index.begin_run("update", time(30)).unwrap();
    commit(&mut index, 1, &["b"], 2);
    assert!(!index.take_back_run(begun).unwrap());
    assert_eq!(
        index.unfinished_run().unwrap().map(|run| run.id),
        Some(begun)
    );
}
