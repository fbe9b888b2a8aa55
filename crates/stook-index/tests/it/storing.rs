//! Committing volumes: all or nothing, names of any bytes, refusals.

use stook_index::{
    AsOf, Checkpoint, Deleted, Frame, Index, IndexError, Mtime, NewRow, RowId, RunId, Staging,
    Volume, VolumeId, VolumeParts,
};

use crate::samples::{Folder, all_rows, commit, config, find, row, state, volume};

#[test]
fn rows_come_back_as_they_were_given() {
    let folder = Folder::new();
    let mut index = folder.create();
    let rows = [
        NewRow {
            name: b"link",
            size: 0,
            mtime: Mtime(-1_250_000),
            md5: None,
            offset: 0,
        },
        NewRow {
            name: b"big",
            size: i64::MAX as u64,
            mtime: Mtime::MAX,
            md5: Some([0xab; 16]),
            offset: 1 << 40,
        },
        NewRow {
            name: b"",
            size: 1,
            mtime: Mtime(1),
            md5: Some([0; 16]),
            offset: 512,
        },
    ];
    assert_eq!(index.commit_volume(&volume(0), rows, None).unwrap(), 3);
    for (found, given) in all_rows(&index).iter().zip(rows) {
        assert_eq!(found.name, given.name);
        assert_eq!(
            (found.size, found.mtime, found.md5, found.offset),
            (given.size, given.mtime, given.md5, given.offset)
        );
        assert_eq!(found.volume, VolumeId::plain(0));
        assert_eq!(index.row(found.id).unwrap().as_ref(), Some(found));
        assert_eq!(find(&index, given.name).as_ref(), Some(found));
    }
    assert_eq!(index.row(RowId(4)).unwrap(), None);
    assert_eq!(folder.files(), ["index.db"]);
}

#[test]
fn d6_names_that_are_not_utf8_are_escaped_in_files_and_read_back_as_bytes() {
    let folder = Folder::new();
    let mut index = folder.create();
    let names: [&[u8]; 5] = [
        b"d/\xff\xfe",
        b"d/%FF%FE",
        b"100%\xe9",
        "\u{e9}%".as_bytes(),
        b"d/\xc3(",
    ];
    index
        .commit_volume(&volume(0), names.map(|name| row(name, 1)), None)
        .unwrap();
    drop(index);
    let connection = rusqlite::Connection::open(&folder.index).unwrap();
    let mut statement = connection
        .prepare("SELECT name FROM files ORDER BY id")
        .unwrap();
    let stored: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        stored,
        ["d/%FF%FE", "d/%FF%FE", "100%25%E9", "é%", "d/%C3("]
    );
    let index = Index::open_read(&folder.index).unwrap();
    let read: Vec<Vec<u8>> = all_rows(&index).into_iter().map(|row| row.name).collect();
    assert_eq!(read, names);
    assert_eq!(
        state(&index, AsOf::Now, Deleted::Hide).len(),
        5,
        "names with one escaped form stay apart"
    );
    for (name, id) in names.iter().zip(1..) {
        assert_eq!(find(&index, name).unwrap().id, RowId(id));
    }
}

#[test]
fn raw_bytes_of_a_row_that_another_program_replaced_are_passed_over() {
    let folder = Folder::new();
    let mut index = folder.create();
    index
        .commit_volume(&volume(0), [row(b"x\xff", 1)], None)
        .unwrap();
    folder.sql("UPDATE files SET name = '50%' WHERE id = 1");
    assert_eq!(all_rows(&index)[0].name, b"50%");
}

#[test]
fn d8_a_volume_is_committed_once() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 3, &["a"], 1);
    let error = index
        .commit_volume(&volume(3), [row(b"b", 1)], None)
        .unwrap_err();
    assert!(
        matches!(
            error,
            IndexError::VolumeExists { volume, .. } if volume == VolumeId::plain(3)
        ),
        "{error:?}"
    );
    assert_eq!(all_rows(&index).len(), 1);
    assert_eq!(index.next_volume().unwrap(), VolumeId::plain(4));
}

#[test]
fn a_commit_that_fails_leaves_nothing() {
    let folder = Folder::new();
    let mut index = folder.create();
    let error = index
        .commit_volume(&volume(0), [row(b"a", 1), row(b"b", u64::MAX)], None)
        .unwrap_err();
    assert!(
        matches!(error, IndexError::TooLarge { field: "size", .. }),
        "{error:?}"
    );
    assert_eq!(all_rows(&index), []);
    assert_eq!(index.volumes().unwrap(), []);
    commit(&mut index, 0, &["a"], 1);
}

#[test]
fn d12_a_volume_without_rows_takes_its_number() {
    let folder = Folder::new();
    let mut index = folder.create();
    assert_eq!(index.next_volume().unwrap(), VolumeId::plain(0));
    commit(&mut index, 0, &["a"], 1);
    commit(&mut index, 0x100_0000, &[], 1);
    commit(&mut index, 2, &["b"], 1);
    assert_eq!(index.next_volume().unwrap(), VolumeId::plain(0x100_0001));
}

#[test]
fn a_volume_without_md5_has_its_size_recorded() {
    let folder = Folder::new();
    let mut index = folder.create();
    let plain = Volume {
        md5: None,
        ..volume(0)
    };
    index.commit_volume(&plain, [], None).unwrap();
    assert_eq!(index.volumes().unwrap(), [plain]);
}

#[test]
fn a_reader_does_not_write() {
    let folder = Folder::new();
    drop(folder.create());
    let mut index = Index::open_read(&folder.index).unwrap();
    let error = index.begin_run("update", Mtime(0)).unwrap_err();
    assert!(matches!(error, IndexError::ReadOnly { .. }), "{error:?}");
}

#[test]
fn rows_come_by_their_places_however_they_were_stored() {
    let folder = Folder::new();
    let mut index = folder.create();
    for number in 0..3 {
        commit(&mut index, number, &["a", "b", "c"], 1);
    }
    let places = |index: &Index| {
        let mut places = Vec::new();
        let visit = |row: stook_index::RowRef<'_>| {
            places.push((row.volume, row.offset, row.id.0));
            std::ops::ControlFlow::Continue(())
        };
        index.rows_by_place(visit).unwrap();
        places
    };
    let stored = places(&index);
    assert_eq!(stored.len(), 9);
    assert!(stored.is_sorted());
    drop(index);
    // As another program may have left them.
    folder.sql("UPDATE files SET tar = '000000.tar', offset = 1000000 WHERE id = 8; UPDATE files SET offset = 2000000 WHERE id = 1");
    let moved = places(&Index::open_read(&folder.index).unwrap());
    assert_eq!(moved.len(), 9);
    assert!(moved.is_sorted(), "{moved:?}");
    let ids =
        |places: &[(VolumeId, u64, i64)]| places.iter().map(|place| place.2).collect::<Vec<_>>();
    assert_eq!(ids(&moved), [2, 3, 8, 1, 4, 5, 6, 7, 9]);
    let mut seen = 0;
    let first = |_: stook_index::RowRef<'_>| {
        seen += 1;
        std::ops::ControlFlow::Break(())
    };
    Index::open_read(&folder.index)
        .unwrap()
        .rows_by_place(first)
        .unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn frames_of_a_compressed_volume_come_back_with_those_that_were_staged() {
    let folder = Folder::new();
    let mut index = folder.create();
    let frame = |number: u64| Frame {
        offset: number << 20,
        stored: number * 300_000,
    };
    let frames: Vec<Frame> = (0..5000).map(frame).collect();
    let id: VolumeId = "000000.tar.zst".parse().unwrap();
    let path = folder.folder.path().join("000000.rows.partial");
    let mut staging = Staging::create(path).unwrap();
    let checkpoint = Checkpoint {
        run: RunId(1),
        volume: id,
        offset: 4500 << 20,
        stored: 4500 * 300_000,
        planned: 0,
        planned_end: 0,
        md5_state: Vec::new(),
    };
    let parts = |frames| VolumeParts {
        frames,
        ..VolumeParts::default()
    };
    let staged = parts(&frames[..4500]);
    staging.record(&checkpoint, [row(b"a", 1)], staged).unwrap();
    assert_eq!(staging.checkpoint().unwrap(), Some(checkpoint));
    let made = || Ok::<_, IndexError>(vec![Volume { id, ..volume(0) }]);
    let rest = parts(&frames[4500..]);
    index
        .commit_volume_when(id, [], rest, Some(&staging), made)
        .unwrap();
    assert_eq!(index.frames_of_volume(id).unwrap(), Some(frames));
    assert_eq!(index.frames_of_volume(VolumeId::plain(1)).unwrap(), None);
    assert_eq!(all_rows(&index)[0].volume.to_string(), "000000.tar.zst");
    assert_eq!(index.next_volume().unwrap(), VolumeId::plain(1));
    drop(index);
    folder.sql("UPDATE stook_frames SET data = zeroblob(5) WHERE first > 0");
    let index = Index::open_read(&folder.index).unwrap();
    assert_eq!(index.frames_of_volume(id).unwrap(), None);
}

#[test]
fn the_level_of_zstd_stays_with_the_archive() {
    let folder = Folder::new();
    let started = ("create", Mtime(7));
    let (index, _) = Index::create_for_run(&folder.index, &config(), started, Some(7)).unwrap();
    assert_eq!(index.zstd_level().unwrap(), Some(7));
    drop(index);
    folder.sql("UPDATE stook_meta SET value = 23 WHERE key = 'zstd'");
    let index = Index::open_read(&folder.index).unwrap();
    let refused = index.zstd_level();
    assert!(matches!(refused, Err(IndexError::Damaged { .. })));
}
