//! Staging files: what survives an interruption, and what is refused.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use stook_index::{
    AsOf, Checkpoint, Deleted, IndexError, Mtime, NameTable, RunId, Staging, VolumeId, VolumeParts,
};
use stook_pool::Jobs;

use crate::samples::{Folder, all_rows, commit, row, state, volume};

fn checkpoint(offset: u64) -> Checkpoint {
    Checkpoint {
        run: RunId(1),
        volume: VolumeId::plain(3),
        offset,
        stored: offset,
        planned: offset + 512,
        planned_end: offset + 1024,
        md5_state: vec![1, 2, 3],
    }
}

fn staging_path(folder: &Folder) -> PathBuf {
    folder.folder.path().join("000003.rows.partial")
}

fn staged_names(staging: &Staging) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    staging
        .rows(|row| {
            names.push(row.name.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    names
}

#[test]
fn checkpoints_and_rows_survive_reopening() {
    let folder = Folder::new();
    let path = staging_path(&folder);
    let mut staging = Staging::create(&path).unwrap();
    assert_eq!(staging.checkpoint().unwrap(), None);
    staging
        .record(
            &checkpoint(4096),
            [row(b"a", 1), row(b"\xff", 2)],
            VolumeParts::default(),
        )
        .unwrap();
    staging
        .record(&checkpoint(8192), [row(b"b", 3)], VolumeParts::default())
        .unwrap();
    drop(staging);
    let staging = Staging::open(&path).unwrap();
    assert_eq!(staging.checkpoint().unwrap(), Some(checkpoint(8192)));
    assert_eq!(staged_names(&staging), [&b"a"[..], b"\xff", b"b"]);
    assert!(matches!(
        Staging::create(&path).unwrap_err(),
        IndexError::Exists { .. }
    ));
    drop(staging);
    Staging::discard(staging_path(&folder)).unwrap();
    assert_eq!(folder.files(), [""; 0]);
    assert!(matches!(
        Staging::open(&path).unwrap_err(),
        IndexError::NotFound { .. }
    ));
}

#[test]
fn staged_rows_are_committed_first_and_in_order() {
    let folder = Folder::new();
    let mut index = folder.create();
    let mut staging = Staging::create(staging_path(&folder)).unwrap();
    staging
        .record(
            &checkpoint(4096),
            [row(b"a", 1), row(b"\xff", 2)],
            VolumeParts::default(),
        )
        .unwrap();
    assert_eq!(
        index
            .commit_volume(&volume(3), [row(b"c", 3)], Some(&staging))
            .unwrap(),
        3
    );
    let rows = all_rows(&index);
    assert_eq!(
        rows.iter()
            .map(|row| (row.id.0, row.size))
            .collect::<Vec<_>>(),
        [(1, 1), (2, 2), (3, 3)]
    );
    assert_eq!(rows[1].name, b"\xff");
    drop(staging);
    Staging::discard(staging_path(&folder)).unwrap();
    assert_eq!(folder.files(), ["index.db"]);
}

#[test]
fn staged_rows_of_another_volume_are_refused() {
    let folder = Folder::new();
    let mut index = folder.create();
    let mut staging = Staging::create(staging_path(&folder)).unwrap();
    staging
        .record(&checkpoint(4096), [row(b"a", 1)], VolumeParts::default())
        .unwrap();
    let error = index
        .commit_volume(&volume(4), [], Some(&staging))
        .unwrap_err();
    assert!(
        error.to_string().ends_with("it belongs to `000003.tar`"),
        "{error}"
    );
    assert_eq!(all_rows(&index), []);
}

#[test]
fn staged_rows_are_known_on_top_of_stored_ones() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, &["a", "b"], 1);
    let run = index.begin_run("update", Mtime(0)).unwrap();
    let mut staging = Staging::create(staging_path(&folder)).unwrap();
    staging
        .record(
            &checkpoint(4096),
            [row(b"a", 5), row(b"new", 6), row(b"lost", 7)],
            VolumeParts::default(),
        )
        .unwrap();
    let name_table = NameTable::load(&index, Some(&staging), Jobs::default()).unwrap();
    assert_eq!(name_table.len(), 4);
    let a = name_table.lookup(b"a").unwrap();
    assert_eq!((a.id, a.size), (None, 5));
    assert_eq!(name_table.lookup(b"new").unwrap().size, 6);
    let mut not_visited = Vec::new();
    index
        .not_visited_names(&name_table, |name| not_visited.push(name.to_vec()))
        .unwrap();
    assert_eq!(not_visited, [b"b"]);
    index.commit_volume(&volume(3), [], Some(&staging)).unwrap();
    assert_eq!(
        index
            .finish_run_with_not_visited(run, Mtime(1), 0, &name_table, |_| true)
            .unwrap(),
        2
    );
    assert_eq!(state(&index, AsOf::Now, Deleted::Hide), ["a=5", "new=6"]);
}

#[test]
fn only_staged_names_not_visited_are_deleted_too() {
    let folder = Folder::new();
    let mut index = folder.create();
    let run = index.begin_run("create", Mtime(0)).unwrap();
    let mut staging = Staging::create(staging_path(&folder)).unwrap();
    staging
        .record(
            &checkpoint(4096),
            [row(b"kept", 1), row(b"lost", 2)],
            VolumeParts::default(),
        )
        .unwrap();
    let name_table = NameTable::load(&index, Some(&staging), Jobs::default()).unwrap();
    name_table.lookup(b"kept");
    index
        .commit_volume(&volume(3), [row(b"more", 3)], Some(&staging))
        .unwrap();
    assert_eq!(
        index
            .finish_run_with_not_visited(run, Mtime(1), 0, &name_table, |_| true)
            .unwrap(),
        1
    );
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Hide),
        ["kept=1", "more=3"]
    );
}

fn refusal(path: &Path) -> String {
    let error = Staging::open(path).unwrap_err();
    assert!(matches!(error, IndexError::BadStaging { .. }), "{error:?}");
    assert!(error.is_damage());
    error.to_string()
}

#[test]
fn damaged_staging_files_are_refused_as_no_checkpoint() {
    let folder = Folder::new();
    let path = staging_path(&folder);
    std::fs::write(&path, "").unwrap();
    assert!(refusal(&path).ends_with("it has no table `rows`"));
    std::fs::write(&path, [b'x'; 5000]).unwrap();
    assert!(refusal(&path).ends_with("it is not an SQLite database"));
    Staging::discard(&path).unwrap();
    let mut staging = Staging::create(&path).unwrap();
    let names: Vec<String> = (0..3000)
        .map(|i| format!("a/long/enough/name/{i}"))
        .collect();
    staging
        .record(
            &checkpoint(1),
            names.iter().map(|name| row(name.as_bytes(), 1)),
            VolumeParts::default(),
        )
        .unwrap();
    drop(staging);
    let whole = std::fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[4096 * 5..4096 * 6].fill(0x5a);
    std::fs::write(&path, flipped).unwrap();
    refusal(&path);
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refusal(&path);
}

#[test]
fn a_record_cut_off_by_a_crash_leaves_the_checkpoint_before() {
    let folder = Folder::new();
    let path = staging_path(&folder);
    let mut staging = Staging::create(&path).unwrap();
    staging
        .record(&checkpoint(4096), [row(b"a", 1)], VolumeParts::default())
        .unwrap();
    drop(staging);
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer
        .execute_batch(
            "PRAGMA cache_size = 2; BEGIN; UPDATE checkpoint SET offset = 9;
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
            INSERT INTO rows SELECT NULL, cast('lost' || i AS blob), 0, 0, NULL, 0 FROM n;",
        )
        .unwrap();
    let crashed = Folder::new();
    for name in folder.files() {
        std::fs::copy(
            folder.folder.path().join(&name),
            crashed.folder.path().join(&name),
        )
        .unwrap();
    }
    assert_eq!(
        crashed.files().len(),
        2,
        "the journal stands beside the file"
    );
    let staging = Staging::open(staging_path(&crashed)).unwrap();
    assert_eq!(staging.checkpoint().unwrap(), Some(checkpoint(4096)));
    assert_eq!(staged_names(&staging), [b"a"]);
}
