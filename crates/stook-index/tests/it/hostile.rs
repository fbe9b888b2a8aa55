//! Databases that somebody made to harm their reader, and the flag that ends whatever takes too long.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_index::{Index, IndexError, Interrupt, Mtime, NameTable, Rebuild, Staging, VolumeParts};
use stook_pool::Jobs;

use crate::samples::{Folder, commit, config, row, volume};

/// Rows without end, with the columns of `files`.
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT i AS id, 'f' || i AS name, 1 AS size, '2020-01-01 00:00:00' AS mtime, NULL AS md5, '000000.tar' AS tar,
    i * 1024 AS offset FROM n";

/// Opens the index in both ways; returns what is said of it, the same for both.
fn refusal(folder: &Folder) -> String {
    let read = Index::open_read(&folder.index).unwrap_err();
    let write = Index::open_write(&folder.index).unwrap_err();
    assert!(read.is_damage() && write.is_damage(), "{read:?}");
    assert_eq!(read.to_string(), write.to_string());
    let text = read.to_string();
    text.rsplit_once("index: ").unwrap().1.to_owned()
}

#[test]
fn what_poses_as_a_table_is_refused() {
    let cases = [
        (
            format!("DROP TABLE files; CREATE VIEW files AS {ENDLESS}"),
            "its `files` is a view",
        ),
        (
            format!("DROP TABLE files; CREATE VIEW FILES AS {ENDLESS}"),
            "its `files` is a view",
        ),
        (
            "DROP TABLE stook_meta; CREATE VIEW stook_meta AS SELECT 'format' AS key, 1 AS value"
                .to_owned(),
            "its `stook_meta` is a view",
        ),
        (
            "DROP TABLE tars; CREATE VIRTUAL TABLE tars USING fts5(name, size, md5)".to_owned(),
            "its `tars` is a virtual table",
        ),
        (
            "CREATE TRIGGER t AFTER INSERT ON files BEGIN DELETE FROM files; END".to_owned(),
            "its `files` has a trigger",
        ),
        (
            "CREATE TRIGGER t BEFORE UPDATE ON stook_runs BEGIN SELECT 1; END".to_owned(),
            "its `stook_runs` has a trigger",
        ),
        (
            "ALTER TABLE files ADD COLUMN more AS (length(zeroblob(1000000000)))".to_owned(),
            "its `files` has a generated column",
        ),
    ];
    for (sql, expected) in cases {
        let folder = Folder::new();
        drop(folder.create());
        folder.sql(&sql);
        assert_eq!(refusal(&folder), expected, "{sql}");
    }
}

/// The type that the schema states is nothing but text.
#[test]
fn a_view_that_states_to_be_a_table_is_not_read() {
    let folder = Folder::new();
    drop(folder.create());
    folder.sql(&format!(
        "DROP TABLE files; CREATE VIEW files AS {ENDLESS};
         PRAGMA writable_schema = on; UPDATE sqlite_schema SET type = 'table' WHERE name = 'files'"
    ));
    let error = Index::open_read(&folder.index).unwrap_err();
    assert!(error.is_damage(), "{error:?}");
}

#[test]
fn what_others_keep_beside_our_tables_is_theirs() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, &["a"], 1);
    drop(index);
    folder.sql(
        "CREATE TABLE notes (text); CREATE VIEW names AS SELECT name FROM files;
         CREATE INDEX by_name ON files (name); CREATE TRIGGER t AFTER INSERT ON notes BEGIN SELECT 1; END",
    );
    let mut index = Index::open_write(&folder.index).unwrap();
    commit(&mut index, 1, &["b"], 1);
    assert_eq!(index.row_count().unwrap(), 2);
}

#[test]
fn a_staging_file_with_a_view_is_no_checkpoint() {
    let folder = Folder::new();
    let path = folder.folder.path().join("000000.rows.partial");
    drop(Staging::create(&path).unwrap());
    let sql = format!("DROP TABLE rows; CREATE VIEW rows AS {ENDLESS}");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch(&sql).unwrap();
    drop(other);
    let error = Staging::open(&path).unwrap_err();
    assert!(matches!(error, IndexError::BadStaging { .. }), "{error:?}");
    assert!(
        error.to_string().ends_with("its `rows` is a view"),
        "{error}"
    );
}

/// An index with many rows, and a flag.
fn many_rows() -> (Folder, Arc<AtomicBool>) {
    let folder = Folder::new();
    drop(folder.create());
    folder.sql(&format!(
        "INSERT INTO files {ENDLESS} LIMIT 200000; INSERT INTO stook_runs VALUES (1, 'create', '2020-01-01 00:00:00', NULL, 1, NULL, NULL)"
    ));
    (folder, Arc::default())
}

fn assert_interrupted<T: std::fmt::Debug>(result: Result<T, IndexError>) {
    let error = result.unwrap_err();
    assert!(matches!(error, IndexError::Interrupted { .. }), "{error:?}");
}

#[test]
fn a_pass_over_the_rows_ends_when_it_is_interrupted() {
    let (folder, flag) = many_rows();
    let index = Index::open_read_until(&folder.index, &flag.clone().into()).unwrap();
    let mut seen = 0;
    assert_interrupted(index.rows(|_| {
        seen += 1;
        flag.store(true, Ordering::Relaxed);
        ControlFlow::Continue(())
    }));
    assert!((1..10_000).contains(&seen), "{seen}");
    for jobs in [1, 4] {
        assert_interrupted(NameTable::load(&index, None, Jobs::Fixed(jobs)));
    }
    flag.store(false, Ordering::Relaxed);
    assert_eq!(index.row_count().unwrap(), 200_000);
}

#[test]
fn a_transaction_that_is_interrupted_is_undone() {
    let (folder, flag) = many_rows();
    let before = std::fs::read(&folder.index).unwrap();
    let mut index = Index::open_write_until(&folder.index, &flag.clone().into()).unwrap();
    let rows = (0..100_000).map(|number| {
        if number == 50_000 {
            flag.store(true, Ordering::Relaxed);
        }
        row(b"new", 1)
    });
    assert_interrupted(index.commit_volume(&volume(1), rows, None));
    let name_table = {
        flag.store(false, Ordering::Relaxed);
        NameTable::load(&index, None, Jobs::Fixed(1)).unwrap()
    };
    let run = index.runs().unwrap()[0].id;
    let is_deleted = |_: &[u8]| {
        flag.store(true, Ordering::Relaxed);
        true
    };
    assert_interrupted(index.finish_run_with_not_visited(
        run,
        Mtime(0),
        0,
        &name_table,
        is_deleted,
    ));
    drop(index);
    assert_eq!(folder.files(), ["index.db"]);
    assert!(
        std::fs::read(&folder.index).unwrap() == before,
        "something was changed"
    );
    // The same goes on as if nothing had happened.
    let mut index = Index::open_write(&folder.index).unwrap();
    commit(&mut index, 1, &["new"], 1);
    assert_eq!(index.row_count().unwrap(), 200_001);
}

#[test]
fn a_rebuild_that_is_interrupted_leaves_the_old_index() {
    let (folder, flag) = many_rows();
    let mut rebuild = Rebuild::new(&folder.index, &config()).unwrap();
    rebuild
        .set_interrupt(&Interrupt::from(flag.clone()))
        .unwrap();
    let rows = (0..100_000).map(|_| {
        flag.store(true, Ordering::Relaxed);
        row(b"new", 1)
    });
    assert_interrupted(rebuild.add_volume(&volume(0), rows, VolumeParts::default()));
    drop(rebuild);
    assert_eq!(folder.files(), ["index.db"]);
}
