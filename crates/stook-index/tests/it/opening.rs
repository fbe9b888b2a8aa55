//! Opening what is no index, what is a later one, and what a crash left behind.

use std::ops::ControlFlow;
use std::path::Path;

use stook_index::{AsOf, Config, Deleted, Index, IndexError, Mtime};

use crate::samples::{Folder, all_rows, commit, config, find, state};

fn refusal(folder: &Folder) -> IndexError {
    let read = Index::open_read(&folder.index).unwrap_err();
    let write = Index::open_write(&folder.index).unwrap_err();
    assert_eq!(read.to_string(), write.to_string());
    read
}

fn told(error: &IndexError, folder: &Folder) -> String {
    error
        .to_string()
        .replace(&format!("{}/", folder.folder.path().display()), "A/")
}

#[test]
fn a_missing_file_is_not_found_and_not_made() {
    let folder = Folder::new();
    let error = refusal(&folder);
    assert!(matches!(error, IndexError::NotFound { .. }), "{error:?}");
    assert_eq!(
        told(&error, &folder),
        "cannot open `A/index.db`: no such index"
    );
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn a_file_of_other_content_is_not_sqlite() {
    let folder = Folder::new();
    std::fs::write(&folder.index, "this is no database at all\n".repeat(100)).unwrap();
    let error = refusal(&folder);
    assert!(matches!(error, IndexError::NotSqlite { .. }), "{error:?}");
    assert_eq!(
        told(&error, &folder),
        "cannot read `A/index.db`: it is not an SQLite database"
    );
    assert!(error.is_damage());
}

#[test]
fn d14_an_empty_file_is_refused_by_name_of_what_is_missing() {
    let folder = Folder::new();
    std::fs::write(&folder.index, "").unwrap();
    let error = refusal(&folder);
    assert_eq!(
        told(&error, &folder),
        "cannot read `A/index.db`: it is not an archive's index: it has no table `files`"
    );
    assert_eq!(std::fs::metadata(&folder.index).unwrap().len(), 0);
}

#[test]
fn a_missing_table_or_column_is_named() {
    let folder = Folder::new();
    drop(folder.create());
    folder.sql("ALTER TABLE files RENAME COLUMN md5 TO sum");
    let error = refusal(&folder);
    assert!(
        told(&error, &folder).ends_with("it has no column `md5` in its table `files`"),
        "{error}"
    );
    folder.sql("DROP TABLE files");
    assert!(
        refusal(&folder)
            .to_string()
            .ends_with("it has no table `files`")
    );
    let other = Folder::new();
    drop(other.create());
    other.sql("DROP TABLE config");
    assert!(
        refusal(&other)
            .to_string()
            .ends_with("it has no table `config`")
    );
}

#[test]
fn a_later_format_is_refused() {
    let folder = Folder::new();
    drop(folder.create());
    // A later stook writes CRCs of its own, or none; those of this one would say that the number is damaged.
    folder.sql(
        "UPDATE stook_meta SET value = 3 WHERE key = 'format'; UPDATE stook_witnesses SET crc = 7",
    );
    let error = refusal(&folder);
    assert!(
        matches!(error, IndexError::Newer { format: 3, .. }),
        "{error:?}"
    );
    assert_eq!(
        told(&error, &folder),
        "cannot read `A/index.db`: its format is 3, this program knows formats up to 2"
    );
}

#[test]
fn a_format_with_a_flipped_bit_is_damage_and_hides_nothing() {
    for format in ["3", "6", "66", "16386", "0", "1", "NULL"] {
        let folder = Folder::new();
        commit(&mut folder.create(), 0, &["a"], 1);
        folder.sql(&format!(
            "UPDATE stook_meta SET value = {format} WHERE key = 'format'"
        ));
        let mut index = Index::open_read(&folder.index).unwrap();
        assert!(find(&index, b"a").is_some());
        let mut damages = Vec::new();
        index
            .check(&mut |_| ControlFlow::Continue(()), &mut |damage| {
                damages.push(damage.to_string());
            })
            .unwrap();
        let expected = if format == "1" {
            "index.db, rows 1 to 1023 of `stook_meta`: they are not as they were written"
        } else {
            "index.db, row 1 of `stook_meta`: its value is not a format that this program knows"
        };
        assert_eq!(damages, [expected]);
        let before = std::fs::read(&folder.index).unwrap();
        index = Index::open_write(&folder.index).unwrap();
        let error = index.begin_run("update", Mtime(0)).unwrap_err();
        assert!(error.is_damage(), "{error}");
        assert_eq!(
            told(&error, &folder),
            "cannot use `A/index.db`: table `stook_meta`: its `format` is not what was written"
        );
        drop(index);
        assert!(std::fs::read(&folder.index).unwrap() == before);
        if ["0", "1", "NULL"].contains(&format) {
            continue;
        }
        // Without CRCs nothing tells a damage from a later stook.
        for other in ["DELETE FROM stook_witnesses", "DROP TABLE stook_witnesses"] {
            folder.sql(other);
            assert!(matches!(refusal(&folder), IndexError::Newer { .. }));
        }
    }
}

/// What stook 1 asks of an index before it reads or writes it, word for word. It must go on to refuse what this stook
/// writes: to it, names that were released are deletions, and it would write volumes without attributes.
fn stook_1_reads(folder: &Folder) -> bool {
    let connection = rusqlite::Connection::open(&folder.index).unwrap();
    let format: i64 = connection
        .query_row(
            "SELECT cast(value AS integer) FROM stook_meta WHERE key = 'format'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    format <= 1
}

/// Makes an index what stook 1 left of it.
fn downgrade(folder: &Folder) {
    let connection = rusqlite::Connection::open(&folder.index).unwrap();
    let mut tables = connection
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'stook%'")
        .unwrap();
    let tables: Vec<String> = tables
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for table in tables {
        let is_of_format_1 = matches!(
            &table[..],
            "stook_meta" | "stook_runs" | "stook_deleted" | "stook_raw_names" | "stook_checks"
        );
        if !is_of_format_1 {
            folder.sql(&format!("DROP TABLE {table}"));
        }
    }
    folder.sql("UPDATE stook_meta SET value = 1 WHERE key = 'format'; VACUUM");
}

#[test]
fn an_index_of_format_1_is_read_as_it_is_and_upgraded_by_the_next_write() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, &["a"], 1);
    drop(index);
    assert!(!stook_1_reads(&folder));
    downgrade(&folder);
    assert!(stook_1_reads(&folder));
    let before = std::fs::read(&folder.index).unwrap();
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(state(&index, AsOf::Now, Deleted::Hide), ["a=1"]);
    let mut ignore = |_: stook_index::RowRef<'_>| ControlFlow::Continue(());
    index
        .check(&mut ignore, &mut |damage| panic!("{damage}"))
        .unwrap();
    drop(index);
    // Opened for writing and left alone is as good as opened for reading.
    drop(Index::open_write(&folder.index).unwrap());
    assert!(std::fs::read(&folder.index).unwrap() == before);
    let mut index = Index::open_write(&folder.index).unwrap();
    commit(&mut index, 1, &["b"], 2);
    assert!(!stook_1_reads(&folder));
    assert_eq!(state(&index, AsOf::Now, Deleted::Hide), ["a=1", "b=2"]);
    index
        .check(&mut ignore, &mut |damage| panic!("{damage}"))
        .unwrap();
}

#[test]
fn a_damaged_database_is_an_error_that_names_reindex() {
    let folder = Folder::new();
    let mut index = folder.create();
    let names: Vec<String> = (0..2000)
        .map(|i| format!("some/rather/long/name/{i}"))
        .collect();
    commit(
        &mut index,
        0,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
        1,
    );
    drop(index);
    let mut bytes = std::fs::read(&folder.index).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(&folder.index, bytes).unwrap();
    let index = Index::open_read(&folder.index).unwrap();
    let error = index
        .rows(|_| std::ops::ControlFlow::Continue(()))
        .unwrap_err();
    assert!(error.is_damage(), "{error:?}");
}

#[test]
fn no_run_begins_behind_an_id_that_is_out_of_range() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, &["a", "b"], 1);
    drop(index);
    folder.sql("UPDATE files SET id = 9223372036854775807 WHERE name = 'b'");
    let mut index = Index::open_write(&folder.index).unwrap();
    let error = index.begin_run("update", Mtime(0)).unwrap_err();
    assert!(error.is_damage(), "{error:?}");
    assert_eq!(
        told(&error, &folder),
        "cannot read `A/index.db`: row 9223372036854775807 of `files`: its id is out of range"
    );
    assert!(index.runs().unwrap().is_empty());
}

#[test]
fn rows_that_make_no_sense_are_named_by_table_and_id() {
    for (column, value, why) in [
        ("name", "NULL", "it has no name"),
        ("size", "-1", "its size is not a number of bytes"),
        ("size", "'big'", "its size is not a number of bytes"),
        (
            "mtime",
            "'2020-01-02T03:04:05'",
            "its mtime is not a time of the form `YYYY-MM-DD HH:MM:SS`",
        ),
        (
            "mtime",
            "NULL",
            "its mtime is not a time of the form `YYYY-MM-DD HH:MM:SS`",
        ),
        ("md5", "'xyz'", "its md5 is not 32 hexadecimal digits"),
        (
            "tar",
            "'../../etc/passwd'",
            "its tar is not the name of a volume",
        ),
        ("offset", "1.5", "its offset is not a number of bytes"),
        ("id", "5000000000000000000", "its id is out of range"),
    ] {
        let folder = Folder::new();
        let mut index = folder.create();
        commit(&mut index, 0, &["a", "b"], 1);
        folder.sql(&format!("UPDATE files SET {column} = {value} WHERE id = 2"));
        let error = index
            .rows(|_| std::ops::ControlFlow::Continue(()))
            .unwrap_err();
        let id = if column == "id" {
            5_000_000_000_000_000_000_i64
        } else {
            2
        };
        assert_eq!(
            told(&error, &folder),
            format!("cannot read `A/index.db`: row {id} of `files`: {why}")
        );
    }
}

#[test]
fn settings_round_trip_also_with_a_path_that_is_not_utf8() {
    for path in [&b"/src"[..], b"/d\xff/100%", "/日本".as_bytes()] {
        let folder = Folder::new();
        let config = Config {
            hpss: "globus://nersc/home".into(),
            maxsize: 1234,
            path: path.to_vec(),
        };
        let index = Index::create(&folder.index, &config).unwrap();
        assert_eq!(index.config().unwrap(), config);
    }
}

#[test]
fn missing_and_senseless_settings_are_named() {
    let folder = Folder::new();
    let index = folder.create();
    folder.sql("UPDATE config SET value = 'huge' WHERE arg = 'maxsize'");
    assert!(
        index
            .config()
            .unwrap_err()
            .to_string()
            .ends_with("its setting `maxsize` is not a number of bytes")
    );
    folder.sql("DELETE FROM config WHERE arg = 'maxsize'");
    assert!(
        index
            .config()
            .unwrap_err()
            .to_string()
            .ends_with("its setting `maxsize` is missing")
    );
}

#[test]
fn create_refuses_a_name_in_use_and_replaces_its_own_partial_file() {
    let folder = Folder::new();
    let beside = |name: &str| folder.folder.path().join(name);
    drop(folder.create());
    std::fs::rename(&folder.index, beside("index.db.partial")).unwrap();
    std::fs::write(beside("index.db.partial-journal"), "").unwrap();
    std::fs::write(beside("index.db-journal"), "").unwrap();
    drop(folder.create());
    assert_eq!(folder.files(), ["index.db"]);
    let error = Index::create(&folder.index, &config()).unwrap_err();
    assert!(matches!(error, IndexError::Exists { .. }), "{error:?}");
    let error =
        Index::create(folder.folder.path().join("no/such/index.db"), &config()).unwrap_err();
    assert!(error.to_string().contains("no/such/index.db"), "{error}");
}

#[test]
fn a_new_index_has_the_page_size_and_journal_zstash_uses() {
    let folder = Folder::new();
    drop(folder.create());
    let bytes = std::fs::read(&folder.index).unwrap();
    assert_eq!(bytes[16..18], 4096_u16.to_be_bytes(), "page size");
    assert_eq!(bytes[18..20], [1, 1], "rollback journal");
    assert_eq!(bytes[60..64], [0; 4], "user_version");
}

#[test]
fn a_transaction_cut_off_by_a_crash_is_undone_by_the_next_reader() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, &["kept"], 1);
    drop(index);
    let crashed = crash_in_mid_transaction(&folder);
    assert!(crashed.folder.path().join("index.db-journal").exists());
    let index = Index::open_read(&crashed.index).unwrap();
    let names: Vec<Vec<u8>> = all_rows(&index).into_iter().map(|row| row.name).collect();
    assert_eq!(names, [b"kept"]);
    assert_eq!(crashed.files(), ["index.db"]);
}

/// Returns a copy of the folder as it stood on disk while a large transaction was under way.
fn crash_in_mid_transaction(folder: &Folder) -> Folder {
    let writer = rusqlite::Connection::open(&folder.index).unwrap();
    writer
        .execute_batch(
            "PRAGMA cache_size = 2; BEGIN; DELETE FROM files;
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
            INSERT INTO files SELECT NULL, 'lost' || i, 0, '2020-01-01 00:00:00', NULL, '000001.tar', 0 FROM n;",
        )
        .unwrap();
    let crashed = Folder::new();
    for name in folder.files() {
        let from = |folder: &Folder| Path::new(folder.folder.path()).join(&name);
        std::fs::copy(from(folder), from(&crashed)).unwrap();
    }
    crashed
}

#[test]
fn names_of_indexes_may_be_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let path = folder
        .folder
        .path()
        .join(std::ffi::OsStr::from_bytes(b"a?b=c&d%20\xff.db"));
    let mut index = Index::create(&path, &config()).unwrap();
    commit(&mut index, 0, &["x"], 1);
    drop(index);
    assert_eq!(all_rows(&Index::open_read(&path).unwrap()).len(), 1);
}
