//! Databases that zstash 1.6.0 wrote, against what its own `ls -l` said of them.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use stook_index::{AsOf, Deleted, Index, Row, RowId, VolumeId};

use crate::samples::{Folder, all_rows, commit, config, find, state, volume};

const CASES: [&str; 8] = [
    "basic",
    "duplicate-tars",
    "gnu-format",
    "hard-links",
    "no-tars-table",
    "odd-names",
    "shifted-offsets",
    "volumes",
];

fn fixture(case: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../stook-archive/tests/fixtures/zstash")
        .join(case)
}

fn copy(case: &str) -> Folder {
    let folder = Folder::new();
    let bytes = std::fs::read(fixture(case).join("archive/index.db")).unwrap();
    std::fs::write(&folder.index, bytes).unwrap();
    folder
}

fn hex(md5: Option<[u8; 16]>) -> String {
    md5.map_or("None".to_owned(), |md5| {
        md5.iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    })
}

fn ls_line(row: &Row) -> String {
    let name = String::from_utf8(row.name.clone()).unwrap();
    let (md5, offset) = (hex(row.md5), row.offset);
    format!(
        "{}\t{name}\t{}\t{}\t{md5}\t{}\t{offset}\t\n",
        row.id.0, row.size, row.mtime, row.volume
    )
}

#[test]
fn every_case_is_listed_here() {
    let folders = std::fs::read_dir(fixture(""))
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir());
    let mut found: Vec<String> = folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, CASES);
}

#[test]
fn rows_are_what_zstash_lists() {
    for case in CASES {
        let folder = copy(case);
        let index = Index::open_read(&folder.index).unwrap();
        let mut rows = all_rows(&index);
        rows.sort_by_key(|row| (row.volume, row.offset));
        let mut text = "id\tname\tsize\tmtime\tmd5\ttar\toffset\n".to_owned();
        for row in &rows {
            write!(text, "{}", ls_line(row)).unwrap();
        }
        let expected = std::fs::read_to_string(fixture(case).join("ls-l.txt")).unwrap();
        assert_eq!(text, expected, "{case}");
        assert_eq!(index.row_count().unwrap(), rows.len() as u64);
        assert_eq!(index.config().unwrap().path, b"/src");
    }
}

#[test]
fn reading_changes_no_byte_and_leaves_no_file() {
    for case in CASES {
        let folder = copy(case);
        let before = std::fs::read(&folder.index).unwrap();
        let index = Index::open_read(&folder.index).unwrap();
        state(&index, AsOf::Now, Deleted::Hide);
        index.volumes().unwrap();
        index.runs().unwrap();
        drop(index);
        drop(Index::open_write(&folder.index).unwrap());
        assert_eq!(std::fs::read(&folder.index).unwrap(), before, "{case}");
        assert_eq!(folder.files(), ["index.db"]);
    }
}

#[test]
fn rows_of_a_volume_come_by_offset() {
    let folder = copy("volumes");
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(index.next_volume().unwrap(), VolumeId::plain(11));
    let mut total = 0;
    for volume in index.volumes().unwrap() {
        let mut last = None;
        index
            .rows_of_volume(volume.id, RowId(1)..=RowId(i64::MAX), |row| {
                assert_eq!(row.volume, volume.id);
                assert!(last < Some(row.offset));
                last = Some(row.offset);
                total += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    assert_eq!(total, index.row_count().unwrap());
}

#[test]
fn of_duplicate_tars_rows_the_newest_counts() {
    let folder = copy("duplicate-tars");
    let volumes = Index::open_read(&folder.index).unwrap().volumes().unwrap();
    assert_eq!(volumes.len(), 1);
    assert_eq!(volumes[0].size, 268_240);
}

#[test]
fn a_missing_tars_table_reads_as_empty_and_is_made_by_the_first_write() {
    let folder = copy("no-tars-table");
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(index.volumes().unwrap(), []);
    assert_eq!(index.next_volume().unwrap(), VolumeId::plain(1));
    drop(index);
    let mut index = Index::open_write(&folder.index).unwrap();
    commit(&mut index, 1, &["new"], 5);
    assert_eq!(index.volumes().unwrap(), [volume(1)]);
}

#[test]
fn the_newest_version_of_a_name_counts() {
    let folder = copy("hard-links");
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Hide),
        ["hard.txt=18", "z.txt=5", "a.txt=24"]
    );
    assert_eq!(find(&index, b"a.txt").unwrap().id.0, 4);
    assert_eq!(find(&index, b"a"), None);
}

#[test]
fn tables_have_the_very_text_zstash_gives_them() {
    let tables = |path: &PathBuf| -> Vec<String> {
        let connection = rusqlite::Connection::open(path).unwrap();
        let query =
            "SELECT sql FROM sqlite_master WHERE name IN ('config', 'files', 'tars') ORDER BY name";
        let mut statement = connection.prepare(query).unwrap();
        statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let ours = Folder::new();
    drop(Index::create(&ours.index, &config()).unwrap());
    assert_eq!(tables(&ours.index), tables(&copy("basic").index));
    let old = copy("no-tars-table");
    commit(&mut Index::open_write(&old.index).unwrap(), 1, &["new"], 5);
    assert_eq!(tables(&old.index), tables(&ours.index));
}
