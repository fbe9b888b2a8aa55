//! Type, mode and owner in the table of newest names, and what a record of 40 bytes cannot hold.

use std::os::unix::fs::FileExt;

use stook_index::{
    Attributes, AttributesEncoder, Index, IndexError, MemberKind, Mtime, NameTable, NewRow,
    NewestRow, RecordedMetadata, VolumeId, VolumeParts,
};
use stook_pool::Jobs;

use crate::samples::{Folder, row, volume};

fn metadata(number: u64) -> RecordedMetadata {
    RecordedMetadata {
        kind: MemberKind::File,
        mode: 0o600 + u32::try_from(number % 8).unwrap(),
        uid: number % 13,
        gid: 5_000_000_000,
        uname: b"someone"[..].into(),
        gname: Box::default(),
    }
}

fn name(volume: u64, member: u64) -> String {
    format!("{volume}/{member}")
}

/// Commits a volume of so many members, with their attributes.
fn commit(index: &mut Index, id: u64, members: u64) {
    let mut encoder = AttributesEncoder::default();
    let names: Vec<String> = (0..members).map(|member| name(id, member)).collect();
    for member in 0..members {
        let recorded = metadata(id + member);
        encoder.push(&Attributes {
            offset: member * 1024,
            content: member * 1024 + 512,
            kind: recorded.kind,
            mode: recorded.mode,
            uid: recorded.uid,
            gid: recorded.gid,
            uname: &recorded.uname,
            ..Attributes::default()
        });
    }
    let rows = names.iter().zip(0..).map(|(name, member)| NewRow {
        offset: member * 1024,
        ..row(name.as_bytes(), 1)
    });
    let attributes = encoder.take();
    let parts = VolumeParts {
        attributes: &attributes,
        ..VolumeParts::default()
    };
    let durable = || Ok::<_, IndexError>(vec![volume(id)]);
    index
        .commit_volume_when(VolumeId::plain(id), rows, parts, None, durable)
        .unwrap();
}

fn load(folder: &Folder) -> NameTable {
    let index = Index::open_read(&folder.index).unwrap();
    NameTable::load_with_metadata(&index, None, Jobs::Fixed(3)).unwrap()
}

fn recorded(table: &NameTable, volume: u64, member: u64) -> Option<RecordedMetadata> {
    of(
        table,
        &table.lookup(name(volume, member).as_bytes()).unwrap(),
    )
}

fn of(table: &NameTable, row: &NewestRow) -> Option<RecordedMetadata> {
    row.recorded.map(|at| table.recorded()[at].clone())
}

#[test]
fn every_name_has_the_metadata_of_its_newest_member() {
    let folder = Folder::new();
    let mut index = folder.create();
    // Two blocks; more rows than one connection reads.
    commit(&mut index, 0, 5_000);
    for id in 1..8 {
        commit(&mut index, id, 9_000);
    }
    let table = load(&folder);
    for (id, members) in [(0, 5_000)].into_iter().chain((1..8).map(|id| (id, 9_000))) {
        for member in 0..members {
            assert_eq!(
                recorded(&table, id, member),
                Some(metadata(id + member)),
                "{id}/{member}"
            );
        }
    }
    let without = NameTable::load(&index, None, Jobs::Fixed(1)).unwrap();
    assert_eq!(without.lookup(b"0/0").unwrap().recorded, None);
}

#[test]
fn rows_of_several_volumes_may_alternate() {
    for volumes in [3, 20] {
        let folder = Folder::new();
        let mut index = folder.create();
        for id in 0..volumes {
            commit(&mut index, id, 50);
        }
        // Rows by offset first, as if so many programs had written them at once.
        folder.sql(
            "CREATE TEMP TABLE mixed AS SELECT name, size, mtime, md5, tar, offset FROM files ORDER BY offset, tar DESC;
             DELETE FROM files;
             INSERT INTO files (name, size, mtime, md5, tar, offset) SELECT * FROM mixed;",
        );
        let table = load(&folder);
        for id in 0..volumes {
            for member in 0..50 {
                assert_eq!(recorded(&table, id, member), Some(metadata(id + member)));
            }
        }
    }
}

#[test]
fn what_no_block_has_is_unknown() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, 10);
    commit(&mut index, 1, 10);
    commit(&mut index, 2, 10);
    folder.sql(
        "UPDATE stook_attributes SET crc = crc + 1 WHERE volume = 1;
         DELETE FROM stook_attributes WHERE volume = 2;
         UPDATE files SET offset = offset + 512 WHERE name = '0/3';",
    );
    let table = load(&folder);
    for member in 0..10 {
        let known = (member != 3).then(|| metadata(member));
        assert_eq!(recorded(&table, 0, member), known);
        assert_eq!(recorded(&table, 1, member), None);
        assert_eq!(recorded(&table, 2, member), None);
    }
    folder.sql("DROP TABLE stook_attributes");
    assert_eq!(recorded(&load(&folder), 0, 0), None);
}

/// A block of 4,096 members and one of 904; one of them is not as it was written.
#[test]
fn members_of_a_bad_block_are_unknown_and_those_of_the_others_are_not() {
    for bad in [0..4096, 4096..5000] {
        for change in [
            "crc = crc + 1",
            "crc = NULL",
            "crc = -1",
            "entries = entries - 1",
            "entries = 'many'",
            "data = NULL",
            "data = substr(data, 1, 100)",
            "data = data || x'00'",
            "data = zeroblob(length(data))",
        ] {
            let folder = Folder::new();
            let mut index = folder.create();
            commit(&mut index, 0, 5_000);
            commit(&mut index, 1, 10);
            let first = bad.start * 1024;
            folder.sql(&format!(
                "UPDATE stook_attributes SET {change} WHERE volume = 0 AND first = {first}"
            ));
            let table = load(&folder);
            assert_eq!(table.len(), 5_010);
            for member in 0..5_000 {
                let known = (!bad.contains(&member)).then(|| metadata(member));
                assert_eq!(recorded(&table, 0, member), known, "{member}: {change}");
            }
            assert_eq!(recorded(&table, 1, 9), Some(metadata(10)), "{change}");
        }
    }
}

#[test]
fn where_blocks_cannot_be_read_everything_else_is_known() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, 5_000);
    drop(index);
    let connection = rusqlite::Connection::open(&folder.index).unwrap();
    let query = "SELECT rootpage FROM sqlite_master WHERE name = 'stook_attributes'";
    let page: i64 = connection.query_row(query, [], |row| row.get(0)).unwrap();
    drop(connection);
    let file = std::fs::File::options();
    let file = file.clone().write(true).open(&folder.index).unwrap();
    file.write_all_at(&[0xa5; 4096], (page.unsigned_abs() - 1) * 4096)
        .unwrap();
    let table = load(&folder);
    assert_eq!((table.len(), table.damages().len()), (5_000, 0));
    for member in 0..5_000 {
        let found = table.lookup(name(0, member).as_bytes()).unwrap();
        assert_eq!((found.size, found.recorded), (1, None));
    }
}

#[test]
fn sizes_of_any_length_are_kept_beside_metadata() {
    let folder = Folder::new();
    let mut index = folder.create();
    commit(&mut index, 0, 7);
    let limit = (1_u64 << 43) - 1;
    let sizes = [0, limit - 1, limit, limit + 1, 1 << 50, i64::MAX as u64, 1];
    for (member, size) in sizes.iter().enumerate() {
        folder.sql(&format!(
            "UPDATE files SET size = {size} WHERE name = '0/{member}'"
        ));
    }
    let table = load(&folder);
    for (member, size) in (0..).zip(sizes) {
        let found = table.lookup(name(0, member).as_bytes()).unwrap();
        assert_eq!(
            (found.size, of(&table, &found)),
            (size, Some(metadata(member)))
        );
        assert!(found.is_file && found.mtime == Mtime(1_600_000_000_000_000));
    }
}
