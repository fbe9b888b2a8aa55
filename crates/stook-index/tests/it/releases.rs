//! Releases: which names count as present though they are gone from the tree, and when they no longer do.

use std::ops::ControlFlow;

use stook_index::{AsOf, Deleted, Index, Mtime, NameTable, Rebuild, RowId, VolumeParts};
use stook_pool::Jobs;

use crate::samples::{Folder, commit, config, row, state, volume};

fn created(folder: &Folder, names: &[&str]) -> Index {
    let mut index = folder.create();
    let run = index.begin_run("create", Mtime(0)).unwrap();
    commit(&mut index, 0, names, 1);
    index.finish_run(run, Mtime(1), 0, []).unwrap();
    index
}

fn name_table(index: &Index) -> NameTable {
    NameTable::load(index, None, Jobs::Fixed(1)).unwrap()
}

fn not_visited(index: &Index, name_table: &NameTable) -> Vec<String> {
    let mut names = Vec::new();
    index
        .not_visited_names(name_table, |name| {
            names.push(name.escape_ascii().to_string());
        })
        .unwrap();
    assert_eq!(names.len(), name_table.not_visited());
    names
}

fn ids(ids: &[i64]) -> Vec<RowId> {
    ids.iter().copied().map(RowId).collect()
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
fn a_released_name_is_not_found_deleted() {
    let folder = Folder::new();
    let mut index = created(&folder, &["a", "b", "c"]);
    assert_eq!(index.record_releases(&ids(&[1, 3, 9])).unwrap(), 2);
    let name_table = name_table(&index);
    assert_eq!(not_visited(&index, &name_table), ["b"]);
    assert_eq!(name_table.released_not_visited(), 2);
    let run = index.begin_run("update", Mtime(2)).unwrap();
    let deleted = index.finish_run_with_not_visited(run, Mtime(3), 0, &name_table, |_| true);
    assert_eq!(deleted.unwrap(), 1);
    assert_eq!(state(&index, AsOf::Now, Deleted::Hide), ["a=1", "c=1"]);
    assert_eq!(damages(&folder), [""; 0]);
}

#[test]
fn a_name_that_is_seen_again_or_has_a_newer_row_loses_its_release() {
    let folder = Folder::new();
    let mut index = created(&folder, &["a", "b", "c"]);
    index.record_releases(&ids(&[1, 2, 3])).unwrap();
    commit(&mut index, 1, &["b"], 2);
    let first = name_table(&index);
    first.lookup(b"a");
    assert_eq!(not_visited(&index, &first), ["b"]);
    assert_eq!(first.lost_releases(), ids(&[1, 2]));
    index.withdraw_releases(&first.lost_releases()).unwrap();
    let second = name_table(&index);
    assert_eq!(not_visited(&index, &second), ["a", "b"]);
    assert_eq!(second.lost_releases(), []);
}

#[test]
fn a_release_ends_below_what_is_no_directory_any_more() {
    let folder = Folder::new();
    let names = ["a/b/c", "a/x", "ab/c", "d", "z\u{e9}/y"];
    let mut index = created(&folder, &names);
    index
        .commit_volume(&volume(1), [row(b"r%\xff/x", 1)], None)
        .unwrap();
    index.record_releases(&ids(&[1, 2, 3, 4, 5, 6])).unwrap();
    let ended = |replaced: &[&[u8]]| {
        let name_table = name_table(&index);
        replaced
            .iter()
            .for_each(|path| name_table.end_releases_below(path));
        let gone = not_visited(&index, &name_table);
        assert_eq!(name_table.released_not_visited(), 6 - gone.len());
        // Nothing is withdrawn as long as no deletion is recorded.
        assert_eq!(name_table.lost_releases(), []);
        gone
    };
    assert_eq!(ended(&[]), [""; 0]);
    assert_eq!(ended(&[b"new", b"d", b"a/x", b"c"]), [""; 0]);
    assert_eq!(ended(&[b"a"]), ["a/b/c", "a/x"]);
    assert_eq!(ended(&[b"a/b", b"ab"]), ["a/b/c", "ab/c"]);
    assert_eq!(ended(&[b"r%\xff"]), ["r%\\xff/x"]);
}

#[test]
fn an_ended_release_is_withdrawn_once_its_name_is_deleted() {
    let folder = Folder::new();
    let mut index = created(&folder, &["d/x", "d/y"]);
    index.record_releases(&ids(&[1, 2])).unwrap();
    let ending = name_table(&index);
    ending.end_releases_below(b"d");
    let run = index.begin_run("update", Mtime(2)).unwrap();
    let is_deleted = |name: &[u8]| name == b"d/x";
    let deleted = index.finish_run_with_not_visited(run, Mtime(3), 0, &ending, is_deleted);
    assert_eq!(deleted.unwrap(), 1);
    let next = name_table(&index);
    assert_eq!(not_visited(&index, &next), [""; 0]);
    assert_eq!(next.lost_releases(), ids(&[1]));
}

#[test]
fn a_release_of_another_member_does_not_hold() {
    for sql in [
        "UPDATE stook_released SET offset = 512",
        "UPDATE stook_released SET volume = 3",
        "UPDATE stook_released SET name = 'b'",
        "UPDATE stook_released SET file = 2",
        "UPDATE stook_released SET file = 7",
        "UPDATE files SET id = id + 1 WHERE id = 2; UPDATE files SET id = 2 WHERE id = 1",
    ] {
        let folder = Folder::new();
        let mut index = created(&folder, &["a", "b"]);
        index.record_releases(&ids(&[1])).unwrap();
        folder.sql(sql);
        let name_table = name_table(&index);
        assert_eq!(not_visited(&index, &name_table).len(), 2, "{sql}");
        assert_eq!(name_table.lost_releases().len(), 1, "{sql}");
        let texts = damages(&folder);
        let told = |text: &String| text.contains("of `stook_released`: it does not repeat");
        assert!(texts.iter().any(told), "{sql}: {texts:#?}");
    }
}

#[test]
fn real_names_are_kept_and_checked() {
    let folder = Folder::new();
    let mut index = folder.create();
    index
        .commit_volume(&volume(0), [row(b"x\xff", 1)], None)
        .unwrap();
    index.record_releases(&ids(&[1])).unwrap();
    assert_eq!(name_table(&index).not_visited(), 0);
    folder.sql("UPDATE stook_released SET raw = x'78fe'");
    let texts = damages(&folder);
    let told = "row 1 of `stook_released`: its raw is not what its name stands for";
    assert!(texts.iter().any(|text| text.ends_with(told)), "{texts:#?}");
}

#[test]
fn a_rebuilt_index_keeps_releases_under_its_own_ids() {
    let folder = Folder::new();
    let mut old = created(&folder, &["a"]);
    commit(&mut old, 1, &["b"], 1);
    commit(&mut old, 2, &["c"], 1);
    old.record_releases(&ids(&[2, 3])).unwrap();
    let mut rebuild = Rebuild::new(&folder.index, &config()).unwrap();
    let found = stook_index::NewRow {
        offset: 2048,
        ..row(b"found", 1)
    };
    rebuild
        .add_volume(&volume(0), [row(b"a", 1), found], VolumeParts::default())
        .unwrap();
    rebuild
        .add_volume(&volume(1), [row(b"b", 1)], VolumeParts::default())
        .unwrap();
    rebuild
        .add_volume(&volume(2), [row(b"other", 1)], VolumeParts::default())
        .unwrap();
    rebuild.carry_over(&old).unwrap();
    drop(old);
    rebuild.finish().unwrap();
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(
        not_visited(&index, &name_table(&index)),
        ["a", "found", "other"]
    );
    assert_eq!(damages(&folder), [""; 0]);
}

/// The staged rows are asked for between the passes over rows and over deletions.
#[test]
fn rows_deletions_and_releases_are_of_one_state() {
    let folder = Folder::new();
    let mut writer = created(&folder, &["a", "b", "c"]);
    let reader = Index::open_read(&folder.index).unwrap();
    let write = std::iter::from_fn(|| {
        let run = writer.begin_run("update", Mtime(2)).unwrap();
        commit(&mut writer, 1, &["new"], 1);
        let deleted: [&[u8]; 1] = [b"b"];
        writer.finish_run(run, Mtime(3), 0, deleted).unwrap();
        writer.record_releases(&ids(&[1])).unwrap();
        None
    });
    let before = NameTable::load(&reader, write, Jobs::Fixed(1)).unwrap();
    assert_eq!((before.len(), before.not_visited()), (3, 3));
    assert!(before.lookup(b"b").is_some() && before.lookup(b"new").is_none());
    let after = name_table(&reader);
    assert_eq!((after.len(), after.not_visited()), (3, 2));
    assert!(after.lookup(b"b").is_none() && after.lookup(b"new").is_some());
}

#[test]
fn an_archive_of_another_program_has_no_releases() {
    let folder = Folder::new();
    let index = created(&folder, &["a"]);
    folder.sql("DROP TABLE stook_released");
    assert_eq!(name_table(&index).not_visited(), 1);
    assert_eq!(name_table(&index).lost_releases(), []);
}
