//! The check of a whole index, and passes over one that is damaged: what can be read still comes.

use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use stook_index::{
    AsOf, Deleted, Index, IndexDamage, Mtime, NameTable, NewRow, Selection, Structure, Volume,
    VolumeId, VolumeParts,
};
use stook_pool::Jobs;

use crate::samples::{Folder, all_rows, config, state};

fn check(folder: &Folder) -> (Vec<IndexDamage>, Structure, Vec<String>) {
    let index = Index::open_read(&folder.index).unwrap();
    let (mut damages, mut names) = (Vec::new(), Vec::new());
    let structure = index
        .check(
            &mut |row| {
                names.push(row.name.escape_ascii().to_string());
                ControlFlow::Continue(())
            },
            &mut |damage| damages.push(damage),
        )
        .unwrap();
    (damages, structure, names)
}

fn texts(folder: &Folder) -> Vec<String> {
    let (damages, ..) = check(folder);
    damages.iter().map(ToString::to_string).collect()
}

fn time(second: i64) -> Mtime {
    Mtime(1_600_000_000_000_000 + second * 1_000_000)
}

/// Commits one volume whose rows do not overlap.
fn commit(index: &mut Index, number: u64, names: &[&[u8]]) {
    let rows = names.iter().enumerate().map(|(at, name)| NewRow {
        name,
        size: 5,
        mtime: time(0),
        md5: Some([0xab; 16]),
        offset: at as u64 * 2048,
    });
    let volume = Volume {
        id: VolumeId::plain(number),
        size: 10_240,
        md5: Some([1; 16]),
    };
    index.commit_volume(&volume, rows, None).unwrap();
}

/// Two runs: the second one found two names deleted, one of which is not UTF-8.
fn two_runs() -> Folder {
    let folder = Folder::new();
    let mut settings = config();
    settings.path = b"/source\xff".to_vec();
    let mut index = Index::create(&folder.index, &settings).unwrap();
    let run = index.begin_run("create", time(1)).unwrap();
    commit(&mut index, 0, &[b"a", b"gone", b"raw\xff", b"raw\xfe%"]);
    index.finish_run(run, time(2), 0, []).unwrap();
    let run = index.begin_run("update", time(3)).unwrap();
    commit(&mut index, 1, &[b"b", b"a"]);
    let deleted: [&[u8]; 2] = [b"gone", b"raw\xff"];
    index.finish_run(run, time(4), 1, deleted).unwrap();
    index
        .record_checks(
            &[(
                VolumeId::plain(0),
                Some("10240 77 1.000000000 1.000000000".to_owned()),
            )]
            .into(),
            time(5),
        )
        .unwrap();
    folder
}

#[test]
fn a_sound_index_has_no_damage() {
    let folder = two_runs();
    let (damages, structure, names) = check(&folder);
    assert!(damages.is_empty(), "{damages:?}");
    assert_eq!(structure, Structure::Sound);
    let expected = ["a", "gone", "raw\\xff", "raw\\xfe%", "b", "a"];
    assert_eq!(names, expected);
    let empty = Folder::new();
    drop(empty.create());
    assert_eq!(texts(&empty), [""; 0]);
}

/// Each of these makes one wrong value, and one damage that names it.
const WRONG_VALUES: &[(&str, &str)] = &[
    (
        "UPDATE files SET id = -2 WHERE id = 4",
        "row -2 of `files`, `raw%FE%25`: its id is out of range",
    ),
    (
        "UPDATE files SET name = x'62' WHERE id = 5",
        "row 5 of `files`, `b`: it has no name",
    ),
    (
        "UPDATE files SET name = NULL WHERE id = 5",
        "row 5 of `files`: it has no name",
    ),
    (
        "UPDATE files SET name = '' WHERE id = 5",
        "row 5 of `files`: it has no name",
    ),
    (
        "UPDATE files SET name = CAST(x'62ff' AS text) WHERE id = 5",
        "its name is not valid UTF-8",
    ),
    (
        "UPDATE files SET name = '/b' WHERE id = 5",
        "row 5 of `files`, `/b`: its name is no plain path below the tree",
    ),
    (
        "UPDATE files SET name = 'b/' WHERE id = 5",
        "its name is no plain path below the tree",
    ),
    (
        "UPDATE files SET name = 'x/../b' WHERE id = 5",
        "its name is no plain path below the tree",
    ),
    (
        "UPDATE files SET name = CAST(x'620063' AS text) WHERE id = 5",
        "its name has a zero byte",
    ),
    (
        "UPDATE files SET size = -1 WHERE id = 5",
        "row 5 of `files`, `b`: its size is not a number of bytes",
    ),
    (
        "UPDATE files SET size = 'big' WHERE id = 5",
        "its size is not a number of bytes",
    ),
    (
        "UPDATE files SET mtime = '2020-01-01 00:00:00.5' WHERE id = 5",
        "row 5 of `files`, `b`: its mtime is not a time of the form `YYYY-MM-DD HH:MM:SS`",
    ),
    (
        "UPDATE files SET mtime = NULL WHERE id = 5",
        "its mtime is not a time of the form `YYYY-MM-DD HH:MM:SS`",
    ),
    (
        "UPDATE files SET md5 = upper(md5) WHERE id = 5",
        "row 5 of `files`, `b`: its md5 is not 32 hexadecimal digits",
    ),
    (
        "UPDATE files SET md5 = 'abc' WHERE id = 5",
        "its md5 is not 32 hexadecimal digits",
    ),
    (
        "UPDATE files SET tar = '00000G.tar' WHERE id = 5",
        "row 5 of `files`, `b`: its tar is not the name of a volume",
    ),
    (
        "UPDATE files SET offset = 3 WHERE id = 5",
        "row 5 of `files`, `b`: its offset is not a multiple of 512",
    ),
    (
        "UPDATE files SET offset = -512 WHERE id = 5",
        "its offset is not a number of bytes",
    ),
    (
        "UPDATE tars SET name = '1.tar' WHERE id = 2",
        "row 2 of `tars`: its name is not the name of a volume",
    ),
    (
        "UPDATE tars SET size = NULL WHERE id = 2",
        "row 2 of `tars`: its size is not a number of bytes",
    ),
    (
        "UPDATE tars SET md5 = 'x' WHERE id = 2",
        "row 2 of `tars`: its md5 is not 32 hexadecimal digits",
    ),
    (
        "DELETE FROM tars WHERE id = 2",
        "table `tars`: `000001.tar` is missing, and `files` has members in it",
    ),
    (
        "DELETE FROM config WHERE arg = 'hpss'",
        "table `config`: `hpss` is missing",
    ),
    (
        "UPDATE config SET value = 'much' WHERE arg = 'maxsize'",
        "row 2 of `config`: its value is none of `maxsize`",
    ),
    (
        "UPDATE stook_meta SET value = 0 WHERE key = 'format'",
        "row 1 of `stook_meta`: its value is not a format that this program knows",
    ),
    (
        "DELETE FROM stook_meta WHERE key = 'format'",
        "table `stook_meta`: `format` is missing",
    ),
    (
        "UPDATE stook_meta SET key = 'patl' WHERE key = 'path'",
        "row 2 of `stook_meta`: its key is not one of this format",
    ),
    (
        "UPDATE config SET value = '/source' WHERE arg = 'path'",
        "row 2 of `stook_meta`: its value is not what the path in `config` stands for",
    ),
    (
        "UPDATE stook_runs SET command = 'creatf' WHERE id = 1",
        "row 1 of `stook_runs`: its command is neither `create` nor `update`",
    ),
    (
        "UPDATE stook_runs SET started = 'then' WHERE id = 1",
        "row 1 of `stook_runs`: its started is not a time of the form `YYYY-MM-DD HH:MM:SS`",
    ),
    (
        "UPDATE stook_runs SET failed = -1 WHERE id = 2",
        "row 2 of `stook_runs`: its number of failures is invalid",
    ),
    (
        "UPDATE stook_runs SET first_file = 6 WHERE id = 2",
        "row 2 of `stook_runs`: the row before its first_file is in the middle of a volume",
    ),
    (
        "UPDATE stook_runs SET first_file = 3 WHERE id = 2",
        "row 2 of `stook_runs`: its rows are not behind those of the run before",
    ),
    (
        "UPDATE stook_runs SET last_file = 5 WHERE id = 2",
        "row 2 of `stook_runs`: its last_file is in the middle of a volume",
    ),
    (
        "UPDATE stook_runs SET last_file = 22 WHERE id = 2",
        "row 2 of `stook_runs`: its last_file is missing from `files`",
    ),
    (
        "UPDATE stook_runs SET finished = NULL, failed = NULL WHERE id = 1",
        "row 1 of `stook_runs`: it is both finished and not",
    ),
    (
        "UPDATE stook_runs SET id = 3 WHERE id = 2",
        "row 3 of `stook_runs`: the numbers of runs do not follow each other from 1",
    ),
    (
        "UPDATE stook_deleted SET run = 7 WHERE rowid = 1",
        "row 1 of `stook_deleted`: its run is not in `stook_runs`, or cannot be read there",
    ),
    (
        "UPDATE stook_deleted SET name = 'gonf' WHERE rowid = 1",
        "row 1 of `stook_deleted`: no row of `files` up to the end of its run has its name",
    ),
    (
        "UPDATE stook_deleted SET name = NULL WHERE rowid = 1",
        "row 1 of `stook_deleted`: its name is not text in UTF-8",
    ),
    (
        "UPDATE stook_deleted SET raw = x'726177fd' WHERE rowid = 2",
        "row 2 of `stook_deleted`: its raw is not what its name stands for",
    ),
    (
        "UPDATE stook_deleted SET raw = NULL WHERE rowid = 2",
        "row 2 of `stook_deleted`: no row of `files` up to the end of its run has its name",
    ),
    (
        "UPDATE stook_raw_names SET name = x'726177fd' WHERE file = 3",
        "row 3 of `stook_raw_names`: its name is not what the one in `files` stands for",
    ),
    (
        "UPDATE stook_raw_names SET name = 'raw' WHERE file = 3",
        "row 3 of `stook_raw_names`: its name is not one outside UTF-8, in bytes",
    ),
    (
        "UPDATE stook_raw_names SET file = 9 WHERE file = 4",
        "row 9 of `stook_raw_names`: there is no such row of `files`",
    ),
    (
        "UPDATE stook_checks SET volume = '000007.tar'",
        "row 1 of `stook_checks`: its volume has no members",
    ),
    (
        "UPDATE stook_checks SET stamp = '10240 77 1.0'",
        "row 1 of `stook_checks`: its stamp is not the state of a file",
    ),
    (
        "UPDATE stook_checks SET stamp = stamp || ' 0123456789abcdef'",
        "row 1 of `stook_checks`: its stamp is not the state of a file",
    ),
    (
        "UPDATE stook_checks SET checked = 0",
        "row 1 of `stook_checks`: its checked is not a time of the form `YYYY-MM-DD HH:MM:SS`",
    ),
    (
        "DROP TABLE stook_deleted; CREATE TABLE stook_deleted (run, name, raw)",
        "table `stook_deleted`: its columns are not those of an archive",
    ),
    (
        "ALTER TABLE tars RENAME TO tarz",
        "table `tars`: it is missing",
    ),
    (
        "ALTER TABLE files ADD COLUMN more",
        "table `files`: its columns are not those of an archive",
    ),
    (
        "PRAGMA user_version = 4",
        "index.db: its `user_version` is 4 instead of 0",
    ),
    (
        "PRAGMA application_id = 9",
        "index.db: its `application_id` is 9 instead of 0",
    ),
];

#[test]
fn every_wrong_value_is_told_with_its_table_row_and_column() {
    let mut wrong = Vec::new();
    for (sql, expected) in WRONG_VALUES {
        let folder = two_runs();
        folder.sql(sql);
        let texts = texts(&folder);
        if !texts.iter().any(|text| text.ends_with(expected)) {
            wrong.push(format!("{sql}: {texts:#?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn tables_of_others_and_further_settings_are_no_damage() {
    let folder = two_runs();
    folder.sql(
        "CREATE TABLE notes (text); INSERT INTO notes VALUES (x'ff'); CREATE VIEW v AS SELECT 1;
        CREATE INDEX names ON files (name); INSERT INTO config VALUES ('keep', NULL)",
    );
    assert_eq!(texts(&folder), [""; 0]);
}

/// An index of 3000 rows, of which some lie on a page that is overwritten.
struct Torn {
    folder: Folder,
    /// Names of rows that are still there.
    readable: Vec<String>,
}

fn name(number: usize) -> String {
    format!("some/rather/long/name/{number:05}")
}

impl Torn {
    fn new() -> Self {
        let folder = Folder::new();
        let mut index = folder.create();
        let names: Vec<String> = (0..3000).map(name).collect();
        let bytes: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        commit(&mut index, 0, &bytes);
        drop(index);
        let bytes = std::fs::read(&folder.index).unwrap();
        let wanted = name(1500);
        let at = bytes
            .windows(wanted.len())
            .position(|window| window == wanted.as_bytes())
            .unwrap();
        let page = at / 4096 * 4096;
        let lost = |name: &String| {
            let found = bytes[page..page + 4096]
                .windows(name.len())
                .any(|window| window == name.as_bytes());
            !found
        };
        let readable: Vec<String> = names.iter().filter(|name| lost(name)).cloned().collect();
        assert!((2900..3000).contains(&readable.len()), "{}", readable.len());
        let file = std::fs::File::options()
            .write(true)
            .open(&folder.index)
            .unwrap();
        file.write_all_at(&[0xa5; 4096], page as u64).unwrap();
        Self { folder, readable }
    }

    /// The ids that are lost.
    fn ids(&self) -> (i64, i64) {
        let first = (0..3000)
            .find(|&at| self.readable.get(at) != Some(&name(at)))
            .unwrap();
        let count = 3000 - self.readable.len();
        let first = i64::try_from(first).unwrap() + 1;
        (first, first + i64::try_from(count).unwrap() - 1)
    }
}

#[test]
fn rows_behind_a_damaged_page_are_read_and_those_on_it_are_told() {
    let torn = Torn::new();
    let (damages, structure, names) = check(&torn.folder);
    assert_eq!(structure, Structure::Damaged);
    assert_eq!(names, torn.readable);
    let (first, last) = torn.ids();
    let expected = format!("index.db, rows {first} to {last} of `files`: they cannot be read: ");
    let texts: Vec<String> = damages.iter().map(ToString::to_string).collect();
    assert!(
        texts.iter().any(|text| text.starts_with(&expected)),
        "{texts:#?}"
    );

    let index = Index::open_read(&torn.folder.index).unwrap();
    let selection = Selection::of(&index, AsOf::Now, Deleted::Hide, &|_| true).unwrap();
    assert_eq!(selection.len(), torn.readable.len() as u64);
    assert!(selection.has_unknown_names());
    let mut told = Vec::new();
    index
        .selection_damages(&selection, |damage| told.push(damage.rows.unwrap()))
        .unwrap();
    assert_eq!(told, [first..=last]);
    let mut shown = Vec::new();
    index
        .selected(&selection, |row| {
            shown.push(String::from_utf8(row.name.to_vec()).unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(shown, torn.readable);
    let mut by_offset = Vec::new();
    index
        .rows_of_volume(
            VolumeId::plain(0),
            stook_index::RowId(0)..=stook_index::RowId(i64::MAX),
            |row| {
                by_offset.push(String::from_utf8(row.name.to_vec()).unwrap());
                ControlFlow::Continue(())
            },
        )
        .unwrap();
    assert_eq!(by_offset, torn.readable);
    let name_table = NameTable::load(&index, None, Jobs::Fixed(2)).unwrap();
    assert_eq!(name_table.len(), torn.readable.len());
    assert_eq!(name_table.damages().len(), 1);
    assert!(name_table.damages()[0].is_page());
}

#[test]
fn where_the_last_page_is_damaged_the_rows_before_it_are_read() {
    let torn = Torn::new();
    let file = std::fs::File::options()
        .write(true)
        .open(&torn.folder.index)
        .unwrap();
    let bytes = std::fs::read(&torn.folder.index).unwrap();
    let wanted = name(2999);
    let at = bytes
        .windows(wanted.len())
        .position(|window| window == wanted.as_bytes())
        .unwrap();
    file.write_all_at(&[0xff; 4096], (at / 4096 * 4096) as u64)
        .unwrap();
    let (_, _, names) = check(&torn.folder);
    assert!((2800..2950).contains(&names.len()), "{}", names.len());
    let index = Index::open_read(&torn.folder.index).unwrap();
    let name_table = NameTable::load(&index, None, Jobs::Fixed(2)).unwrap();
    assert_eq!(name_table.len(), names.len());
    let ends: Vec<i64> = name_table
        .damages()
        .iter()
        .map(|damage| *damage.rows.as_ref().unwrap().end())
        .collect();
    assert_eq!(ends.last(), Some(&i64::MAX));
    assert!(
        name_table.damages()[1].to_string().contains("rows from "),
        "{}",
        name_table.damages()[1]
    );
}

/// An older version must not come forth because the newest cannot be read.
#[test]
fn a_first_row_without_a_volume_is_unreadable() {
    for value in ["NULL", "''", "7", "'x.tar.gz'"] {
        let folder = Folder::new();
        commit(&mut folder.create(), 0, &[b"a", b"b"]);
        folder.sql(&format!("UPDATE files SET tar = {value} WHERE id = 1"));
        let index = Index::open_read(&folder.index).unwrap();
        let name_table = NameTable::load(&index, None, Jobs::Fixed(1)).unwrap();
        assert!(!name_table.lookup(b"a").unwrap().is_readable, "{value}");
        assert!(name_table.lookup(b"b").unwrap().is_readable);
    }
}

#[test]
fn a_name_whose_newest_row_makes_no_sense_has_no_row() {
    for (column, value) in [
        ("mtime", "'yesterday'"),
        ("md5", "'!'"),
        ("tar", "7"),
        ("offset", "NULL"),
        ("size", "-4"),
    ] {
        let folder = two_runs();
        folder.sql(&format!("UPDATE files SET {column} = {value} WHERE id = 6"));
        let index = Index::open_read(&folder.index).unwrap();
        assert_eq!(
            state(&index, AsOf::Now, Deleted::Hide),
            ["raw\\xfe%=5", "b=5"]
        );
        let selection =
            Selection::of(&index, AsOf::Now, Deleted::Hide, &|row| row.name == b"a").unwrap();
        assert!(selection.is_empty() && !selection.has_unknown_names());
        let mut told = Vec::new();
        index
            .selection_damages(&selection, |damage| {
                told.push((damage.rows, damage.column, damage.name));
            })
            .unwrap();
        assert_eq!(told, [(Some(6..=6), Some(column), Some(b"a".to_vec()))]);
        let name_table = NameTable::load(&index, None, Jobs::Fixed(1)).unwrap();
        assert!(!name_table.lookup(b"a").unwrap().is_readable, "{column}");
        assert!(name_table.lookup(b"b").unwrap().is_readable);
        assert!(
            name_table.damages().is_empty(),
            "{:?}",
            name_table.damages()
        );
    }
}

#[test]
fn a_bad_row_that_a_newer_one_replaces_is_of_no_account() {
    let folder = two_runs();
    folder.sql("UPDATE files SET mtime = 'yesterday' WHERE id = 1");
    let index = Index::open_read(&folder.index).unwrap();
    let selection = Selection::of(&index, AsOf::Now, Deleted::Hide, &|_| true).unwrap();
    index
        .selection_damages(&selection, |damage| panic!("{damage}"))
        .unwrap();
    assert_eq!(selection.len(), 3);
    let name_table = NameTable::load(&index, None, Jobs::Fixed(1)).unwrap();
    assert!(name_table.lookup(b"a").unwrap().is_readable);
}

#[test]
fn a_run_that_cannot_be_read_leaves_the_others() {
    let folder = two_runs();
    folder.sql("UPDATE stook_runs SET started = 'then' WHERE id = 2");
    let index = Index::open_read(&folder.index).unwrap();
    let mut told = Vec::new();
    let runs = index
        .readable_runs(|damage| told.push(damage.to_string()))
        .unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(told.len(), 1);
    assert!(index.runs().is_err());
    let first = AsOf::Run(runs[0].id);
    assert_eq!(state(&index, first, Deleted::Hide).len(), 4);
    // What it found deleted is not known.
    let selection = Selection::of(&index, AsOf::Now, Deleted::Hide, &|_| true).unwrap();
    let mut told = 0;
    index.selection_damages(&selection, |_| told += 1).unwrap();
    assert_eq!((selection.len(), told), (5, 3));
}

#[test]
fn a_new_volume_is_numbered_past_rows_that_make_no_sense() {
    let folder = two_runs();
    folder.sql("UPDATE files SET tar = 'x' WHERE id = 2");
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(index.next_volume().unwrap(), VolumeId::plain(2));
    assert_eq!(index.volumes().unwrap().len(), 2);
    drop(index);
    folder.sql("UPDATE tars SET size = 'x'");
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(index.volumes().unwrap(), []);
    assert!(all_rows_or_error(&index).is_err());
}

fn all_rows_or_error(index: &Index) -> Result<(), stook_index::IndexError> {
    index.rows(|_| ControlFlow::Continue(()))
}

#[test]
fn deletions_of_names_that_no_volume_holds_do_not_survive_a_rebuild() {
    let folder = two_runs();
    let old = Index::open_read(&folder.index).unwrap();
    let mut rebuild = stook_index::Rebuild::new(&folder.index, &old.config().unwrap()).unwrap();
    let rows = all_rows(&old);
    let kept = rows
        .iter()
        .filter(|row| row.volume == VolumeId::plain(0) && row.name != b"gone");
    let kept = kept.map(|row| NewRow {
        name: &row.name,
        size: row.size,
        mtime: row.mtime,
        md5: row.md5,
        offset: row.offset,
    });
    let volume = Volume {
        id: VolumeId::plain(0),
        size: 10_240,
        md5: None,
    };
    rebuild
        .add_volume(&volume, kept, VolumeParts::default())
        .unwrap();
    assert_eq!(rebuild.carry_over(&old).unwrap(), 2);
    drop(old);
    rebuild.finish().unwrap();
    assert_eq!(texts(&folder), [""; 0]);
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Hide),
        ["a=5", "raw\\xfe%=5"]
    );
}
