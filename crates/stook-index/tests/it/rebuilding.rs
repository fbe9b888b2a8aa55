//! Writing an index anew: what is kept, and what a failed rebuild leaves.

use stook_index::{AsOf, Deleted, Index, IndexError, Mtime, Rebuild, RowId, VolumeParts};

use crate::samples::{Folder, all_rows, commit, config, row, state, volume};

#[test]
fn a_rebuilt_index_replaces_the_old_one() {
    let folder = Folder::new();
    std::fs::write(&folder.index, "rubbish").unwrap();
    // The header of a rollback journal: its magic number, three counts, the sizes of a sector and of a page.
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for number in [1_u32, 0, 1, 512, 4096] {
        journal.extend(number.to_be_bytes());
    }
    std::fs::write(folder.folder.path().join("index.db-journal"), journal).unwrap();
    let mut rebuild = Rebuild::new(&folder.index, &config()).unwrap();
    assert_eq!(
        rebuild
            .add_volume(
                &volume(0),
                [row(b"a", 1), row(b"\xff", 2)],
                VolumeParts::default()
            )
            .unwrap(),
        2
    );
    assert_eq!(
        rebuild
            .add_volume(&volume(5), [row(b"a", 3)], VolumeParts::default())
            .unwrap(),
        1
    );
    assert_eq!(std::fs::read(&folder.index).unwrap(), b"rubbish");
    rebuild.finish().unwrap();
    assert_eq!(folder.files(), ["index.db"]);
    let index = Index::open_write(&folder.index).unwrap();
    assert_eq!(index.config().unwrap(), config());
    assert_eq!(index.volumes().unwrap(), [volume(0), volume(5)]);
    assert_eq!(
        all_rows(&index)
            .iter()
            .map(|row| row.id.0)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(state(&index, AsOf::Now, Deleted::Hide), ["\\xff=2", "a=3"]);
}

#[test]
fn a_rebuild_that_is_given_up_leaves_the_old_index_alone() {
    let folder = Folder::new();
    commit(&mut folder.create(), 0, &["old"], 1);
    let mut rebuild = Rebuild::new(&folder.index, &config()).unwrap();
    rebuild
        .add_volume(&volume(1), [row(b"new", 1)], VolumeParts::default())
        .unwrap();
    let error = rebuild
        .add_volume(&volume(1), [], VolumeParts::default())
        .unwrap_err();
    assert!(matches!(error, IndexError::VolumeOrder { .. }), "{error:?}");
    drop(rebuild);
    assert_eq!(folder.files(), ["index.db"]);
    assert_eq!(
        state(
            &Index::open_read(&folder.index).unwrap(),
            AsOf::Now,
            Deleted::Hide
        ),
        ["old=1"]
    );
}

#[test]
fn runs_and_deletions_are_carried_over_by_volume() {
    let folder = Folder::new();
    let mut old = folder.create();
    let first = old.begin_run("create", Mtime(0)).unwrap();
    commit(&mut old, 0, &["a", "b"], 1);
    commit(&mut old, 1, &["c"], 1);
    old.finish_run(first, Mtime(1), 2, []).unwrap();
    let second = old.begin_run("update", Mtime(2)).unwrap();
    commit(&mut old, 2, &["b"], 2);
    old.finish_run(second, Mtime(3), 0, [&b"a"[..]]).unwrap();
    let third = old.begin_run("update", Mtime(4)).unwrap();

    // The volumes hold one member more than the old index knew, and one volume more.
    let mut rebuild = Rebuild::new(&folder.index, &config()).unwrap();
    rebuild
        .add_volume(
            &volume(0),
            [row(b"a", 1), row(b"b", 1), row(b"found", 1)],
            VolumeParts::default(),
        )
        .unwrap();
    rebuild
        .add_volume(&volume(1), [row(b"c", 1)], VolumeParts::default())
        .unwrap();
    rebuild
        .add_volume(&volume(2), [row(b"b", 2)], VolumeParts::default())
        .unwrap();
    rebuild
        .add_volume(&volume(3), [row(b"a", 4)], VolumeParts::default())
        .unwrap();
    assert_eq!(rebuild.carry_over(&old).unwrap(), 3);
    rebuild.finish().unwrap();

    let index = Index::open_read(&folder.index).unwrap();
    let runs = index.runs().unwrap();
    assert_eq!(
        runs.iter().map(|run| run.id).collect::<Vec<_>>(),
        [first, second, third]
    );
    assert_eq!(
        (runs[0].first_file, runs[0].last_file, runs[0].failed),
        (RowId(1), Some(RowId(4)), 2)
    );
    assert_eq!(
        (runs[1].first_file, runs[1].last_file),
        (RowId(5), Some(RowId(5)))
    );
    assert_eq!(
        (runs[2].first_file, runs[2].last_file, runs[2].finished),
        (RowId(6), None, None)
    );
    assert_eq!(
        state(&index, AsOf::Run(first), Deleted::Hide),
        ["a=1", "b=1", "found=1", "c=1"]
    );
    assert_eq!(
        state(&index, AsOf::Run(second), Deleted::Hide),
        ["found=1", "c=1", "b=2"]
    );
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Hide),
        ["found=1", "c=1", "b=2", "a=4"]
    );
}

#[test]
fn an_old_index_without_runs_has_nothing_to_carry_over() {
    let folder = Folder::new();
    let other = Folder::new();
    let old = other.create();
    other.sql("DROP TABLE stook_runs; DROP TABLE stook_deleted; DROP TABLE stook_raw_names; DROP TABLE stook_meta;");
    let mut rebuild = Rebuild::new(&folder.index, &config()).unwrap();
    assert_eq!(rebuild.carry_over(&old).unwrap(), 0);
    rebuild.finish().unwrap();
}
