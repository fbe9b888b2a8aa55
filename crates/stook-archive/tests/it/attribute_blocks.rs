//! What the index keeps of headers: it equals what the volumes say, for rows of any program.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use stook_archive::{
    ArchiveError, AsOf, AttributesReport, FailedMembers, Jobs, Silent, WriteOptions, create,
    reindex,
};
use stook_index::{Attributes, AttributesBlock, Index, MemberKind, VolumeId};
use stook_testkit::{TempDir, Tree, file, tree};
use stook_volume::{Kind, Member};

use crate::by_path::fill_attributes;
use crate::folder::{all_rows, as_zstash, assert_clean, bytes_in, volumes_in};
use crate::planned::{build_all, committed, planned};
use crate::recorder::Recorder;
use crate::resuming::Stopper;
use crate::scene::{Scene, names, options, python};

/// Runs SQL on the index of an archive; false, said aloud, where there is no Python.
pub(crate) fn sql(archive: &Path, statements: &str) -> bool {
    let script = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.executescript(sys.argv[2])\nc.close()";
    python(script, &[&archive.join("index.db"), Path::new(statements)]).is_some()
}

fn open(archive: &Path) -> Index {
    Index::open_read(archive.join("index.db")).unwrap()
}

fn fill(archive: &Path) -> AttributesReport {
    fill_attributes(archive, Jobs::Fixed(3), &Silent).unwrap()
}

/// Names of the members whose attributes are not in the index, and a comparison of all others with their headers.
fn unknown(archive: &Path) -> Vec<String> {
    let index = open(archive);
    let (mut unknown, mut last) = (Vec::new(), None);
    for row in all_rows(archive) {
        let header = File::open(archive.join(row.volume.to_string()))
            .ok()
            .and_then(|volume| stook_volume::decode(&volume, row.offset).ok().flatten());
        let is_held = last.as_ref().is_some_and(|block: &AttributesBlock| {
            block.volume() == row.volume && block.contains(row.offset)
        });
        if !is_held {
            last = index.attributes_at(row.volume, row.offset).unwrap();
        }
        let Some(block) = &last else {
            unknown.push(String::from_utf8_lossy(&row.name).into_owned());
            continue;
        };
        let found = block.find(row.offset).unwrap();
        assert_same(&found, &header.unwrap(), is_stooks(archive, row.volume));
    }
    unknown.sort();
    unknown
}

pub(crate) fn is_stooks(archive: &Path, volume: VolumeId) -> bool {
    let volume = File::open(archive.join(volume.to_string())).unwrap();
    let first = stook_volume::decode(&volume, 0).unwrap().unwrap();
    first.checksum == stook_volume::HeaderCheck::Verified
}

pub(crate) fn assert_same(found: &Attributes<'_>, member: &Member, is_exact: bool) {
    let header = &member.header;
    let kind = match found.kind {
        MemberKind::File => Kind::File,
        MemberKind::HardLink => Kind::HardLink,
        MemberKind::Symlink => Kind::Symlink,
        MemberKind::CharDevice => Kind::CharDevice,
        MemberKind::BlockDevice => Kind::BlockDevice,
        MemberKind::Directory => Kind::Directory,
        MemberKind::Fifo => Kind::Fifo,
    };
    let name = header.name.escape_ascii();
    assert_eq!(kind, header.kind, "{name}");
    assert_eq!(found.content, member.data_offset, "{name}");
    assert_eq!((found.mode, found.device), (header.mode, header.device));
    assert_eq!((found.uid, found.gid), (header.uid, header.gid));
    assert_eq!(found.uname, header.uname);
    assert_eq!(found.gname, header.gname);
    assert_eq!(found.target, header.target, "{name}");
    assert_eq!(found.link, header.link.as_deref(), "{name}");
    assert_eq!(found.is_sparse, header.sparse.is_some(), "{name}");
    assert_eq!(found.has_xattrs, !header.xattrs.is_empty(), "{name}");
    // zstash's headers have Python's doubles: the index may know better.
    let difference = found.mtime.seconds.abs_diff(header.mtime.seconds);
    if is_exact {
        assert_eq!(found.mtime, header.mtime, "{name}");
    } else {
        assert!(difference <= 1, "{name}");
    }
}

#[test]
fn a_run_and_a_rebuild_write_what_the_headers_say() {
    for options in [
        options(),
        as_zstash(),
        // Slices, and volumes side by side.
        WriteOptions {
            volume_bytes: Some(1 << 20),
            ..options()
        },
    ] {
        let scene = Scene::new(&Tree::torture());
        scene.lay(&tree! {"large" => file(vec![7; 5 << 20])});
        scene.create_with(&options, &Silent);
        let archive = scene.archive();
        assert_eq!(unknown(&archive), [""; 0]);
        assert_clean(&archive);
        assert_eq!(fill(&archive), AttributesReport::default());
        reindex(&archive, Jobs::Fixed(3), &Silent).unwrap();
        assert_eq!(unknown(&archive), [""; 0]);
        assert_clean(&archive);
    }
}

#[test]
fn the_blocks_of_a_volume_come_in_order_and_hold_every_member() {
    let mut tree = Tree::new();
    for number in 0..9000 {
        tree.insert(format!("d{}/f{number}", number / 100), file(b"x"));
    }
    let scene = Scene::archived(&tree);
    let index = open(&scene.archive());
    let rows = all_rows(&scene.archive());
    let mut offsets: Vec<u64> = rows.iter().map(|row| row.offset).collect();
    offsets.sort_unstable();
    let mut found = Vec::new();
    let mut blocks = 0;
    index
        .attributes_of_volume(VolumeId::plain(0), |block| {
            assert!(block.len() <= 4096);
            found.extend(block.iter().map(|member| member.offset));
            blocks += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(found, offsets);
    assert_eq!(blocks, rows.len().div_ceil(4096));
    let mut members = 0;
    index
        .attributes(|stored| {
            members += stored.decode().unwrap().len();
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(members, rows.len());
}

#[test]
fn a_resumed_run_has_the_attributes_of_what_was_staged() {
    let mut tree = Tree::new();
    for number in 0..300_usize {
        tree.insert(
            format!("f{number:03}"),
            file(vec![b'a'; number * 977 % 6000]),
        );
    }
    let options = WriteOptions {
        volume_bytes: Some(200 << 10),
        checkpoint_bytes: 1,
        ..options()
    };
    for after in [1, 90, 170, 299] {
        let scene = Scene::new(&tree);
        let archive = scene.archive();
        let stopped = create(scene.source(), &archive, &options, &Stopper::after(after));
        assert!(matches!(stopped, Err(ArchiveError::Interrupted)), "{after}");
        create(scene.source(), &archive, &options, &Silent).unwrap();
        assert_eq!(unknown(&archive), [""; 0], "{after}");
        assert_clean(&archive);
    }
}

/// Adds what zstash would have archived between two updates: a volume of its own, and rows that belong to no run.
fn add_as_zstash(scene: &Scene, volume: u64) -> bool {
    let other = Scene::new(&tree! {
        "theirs/" => dir(), "theirs/a" => file(b"of zstash"), "theirs/link" => symlink("a"),
    });
    other.create_with(&as_zstash(), &Silent);
    let (archive, name) = (scene.archive(), VolumeId::plain(volume).to_string());
    fs::copy(other.archive().join("000000.tar"), archive.join(&name)).unwrap();
    let other = other.archive().join("index.db");
    sql(
        &archive,
        &format!(
            "ATTACH '{}' AS other;
            INSERT INTO files (name, size, mtime, md5, tar, offset)
                SELECT name, size, mtime, md5, '{name}', offset FROM other.files;
            INSERT INTO tars (name, size, md5) SELECT '{name}', size, md5 FROM other.tars;",
            other.display()
        ),
    )
}

#[test]
fn rows_that_zstash_added_are_filled_in_by_the_next_update() {
    let scene = Scene::archived(&tree! {"a" => file(b"a")});
    let archive = scene.archive();
    if !add_as_zstash(&scene, 1) {
        return;
    }
    let theirs = ["theirs/a", "theirs/link"];
    assert_eq!(unknown(&archive), theirs);
    assert_clean(&archive);
    assert!(names(&archive, AsOf::Now, false).contains(&"theirs/a".to_owned()));
    // What writes nothing leaves the index alone.
    scene.lay(&tree! {"theirs/a" => file(b"of zstash"), "theirs/link" => symlink("a")});
    scene.lay(&tree! {"b" => file(b"b")});
    assert!(scene.update().members > 0);
    assert_eq!(unknown(&archive), [""; 0]);
    assert_clean(&archive);
}

#[test]
fn rows_that_zstash_added_are_filled_in_by_a_commit() {
    let scene = Scene::archived(&tree! {"a" => file(b"a")});
    let archive = scene.archive();
    if !add_as_zstash(&scene, 1) {
        return;
    }
    scene.lay(&tree! {"theirs/a" => file(b"of zstash"), "theirs/link" => symlink("a")});
    scene.lay(&tree! {"b" => file(b"b")});
    let planned = planned(&scene, &archive, &options());
    build_all(&scene, &planned);
    assert_eq!(unknown(&archive), ["theirs/a", "theirs/link"]);
    committed(&archive, FailedMembers::Retry);
    assert_eq!(unknown(&archive), [""; 0]);
    assert_clean(&archive);
}

#[test]
fn an_update_does_not_fail_for_volumes_that_are_elsewhere() {
    let scene = Scene::archived(&tree! {"a" => file(b"a")});
    let archive = scene.archive();
    if !add_as_zstash(&scene, 1) {
        return;
    }
    fs::rename(archive.join("000001.tar"), scene.beside("on-tape")).unwrap();
    scene.lay(&tree! {"b" => file(b"b")});
    scene.update();
    assert_eq!(unknown(&archive), ["theirs/a", "theirs/link"]);
    assert_eq!(fill(&archive).missing_volumes, 1);
    fs::rename(scene.beside("on-tape"), archive.join("000001.tar")).unwrap();
    let report = fill(&archive);
    assert_eq!((report.volumes, report.members), (1, 2));
    assert_eq!(unknown(&archive), [""; 0]);
    assert_clean(&archive);
}

/// What stook 1 left of an archive.
const DOWNGRADE: &str =
    "DROP TABLE stook_attributes; DROP TABLE stook_frames; DROP TABLE stook_witnesses;
    UPDATE stook_meta SET value = 1 WHERE key = 'format'";

#[test]
fn an_archive_of_format_1_is_left_alone_until_it_is_written_or_asked_for() {
    let tree = tree! {"a" => file(b"a"), "d/" => dir(), "d/b" => file(b"bb")};
    for by_update in [true, false] {
        let scene = Scene::archived(&tree);
        let archive = scene.archive();
        if !sql(&archive, DOWNGRADE) {
            return;
        }
        let before = bytes_in(&archive);
        assert_eq!(unknown(&archive).len(), 3);
        assert_clean(&archive);
        // Nothing to do.
        assert_eq!(scene.update().members, 0);
        assert!(bytes_in(&archive) == before);
        if by_update {
            scene.lay(&tree! {"new" => file(b"new")});
            scene.update();
        } else {
            let (rows, volumes) = (all_rows(&archive), volumes_in(&archive));
            assert_eq!(fill(&archive).members, 3);
            assert!(volumes_in(&archive) == volumes);
            assert_eq!(all_rows(&archive), rows);
        }
        assert_eq!(unknown(&archive), [""; 0]);
        assert_clean(&archive);
        scene.assert_extracts_to_source();
    }
}

#[test]
fn archives_of_zstash_are_filled_in_without_a_change_of_their_tables() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/zstash");
    let mut left: BTreeMap<String, u64> = BTreeMap::new();
    for case in fs::read_dir(cases).unwrap() {
        let case = case.unwrap().path();
        if !case.is_dir() {
            continue;
        }
        let directory = TempDir::new().unwrap();
        let archive: PathBuf = directory.join("archive");
        fs::create_dir(&archive).unwrap();
        for (name, bytes) in bytes_in(&case.join("archive")) {
            fs::write(archive.join(name), bytes).unwrap();
        }
        let (rows, volumes) = (all_rows(&archive), volumes_in(&archive));
        let unfilled = unknown(&archive);
        assert_eq!(unfilled.len(), rows.len());
        let report = fill(&archive);
        assert_eq!(unknown(&archive).len() as u64, report.unreadable);
        assert_eq!(report.members + report.unreadable, rows.len() as u64);
        assert_eq!(all_rows(&archive), rows);
        assert!(volumes_in(&archive) == volumes);
        let again = fill(&archive);
        assert_eq!((again.members, again.unreadable), (0, report.unreadable));
        if report.unreadable > 0 {
            let case = case.file_name().unwrap().to_string_lossy().into_owned();
            left.insert(case, report.unreadable);
        }
    }
    // Rows that point behind their members.
    assert_eq!(left.keys().collect::<Vec<_>>(), ["shifted-offsets"]);
}

#[test]
fn damaged_blocks_are_told_read_around_and_mended() {
    let mut tree = Tree::new();
    for number in 0..5000 {
        tree.insert(format!("f{number:04}"), file(b"x"));
    }
    let scene = Scene::archived(&tree);
    let archive = scene.archive();
    let pristine = fs::read(archive.join("index.db")).unwrap();
    for damage in [
        "UPDATE stook_attributes SET data = zeroblob(9) WHERE id = 2",
        "UPDATE stook_attributes SET data = 7 WHERE id = 2",
        "UPDATE stook_attributes SET crc = crc + 1 WHERE id = 2",
        "UPDATE stook_attributes SET first = first + 512 WHERE id = 2",
        "UPDATE stook_attributes SET first = -5 WHERE id = 2",
        "UPDATE stook_attributes SET entries = NULL WHERE id = 2",
        "UPDATE stook_attributes SET volume = 9 WHERE id = 2",
        "DELETE FROM stook_attributes WHERE id = 2",
    ] {
        fs::write(archive.join("index.db"), &pristine).unwrap();
        if !sql(&archive, damage) {
            return;
        }
        let lost = unknown(&archive);
        assert_eq!(lost.len(), 5000 - 4096, "{damage}");
        assert_eq!(names(&archive, AsOf::Now, false).len(), 5000);
        let recorder = Recorder::new();
        scene.check(&recorder);
        let told = recorder.damage_texts();
        assert!(
            !told.is_empty() && told.iter().all(|text| text.contains("stook_attributes")),
            "{damage}: {told:?}"
        );
        let report = fill(&archive);
        assert_eq!((report.volumes, report.members), (1, 904), "{damage}");
        assert_eq!(unknown(&archive), [""; 0]);
    }
}

/// Rows between those of a block, as no program writes them, would not be found by the block's first offset.
#[test]
fn rows_between_the_members_of_a_block_are_filled_in_with_it() {
    let scene = Scene::archived(&tree! {
        "a" => file(b"a"), "b" => file(b"b"), "c" => file(b"c"), "d" => file(b"d"),
    });
    let archive = scene.archive();
    let rows = all_rows(&archive);
    assert_eq!(rows.len(), 4);
    let mut index = Index::open_write(archive.join("index.db")).unwrap();
    let ids = index.rows_by_volume().unwrap();
    let gaps = index
        .rows_without_attributes(VolumeId::plain(0), &ids[&VolumeId::plain(0)], |_, _| {
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(gaps.is_empty());
    let mut encoder = stook_index::AttributesEncoder::default();
    let block = index.attributes_at(VolumeId::plain(0), 0).unwrap().unwrap();
    for member in block
        .iter()
        .filter(|member| member.offset != rows[1].offset)
    {
        encoder.push(&member);
    }
    if !sql(&archive, "DELETE FROM stook_attributes") {
        return;
    }
    index
        .fill_attributes(VolumeId::plain(0), &gaps, &encoder.take())
        .unwrap();
    drop(index);
    assert_eq!(unknown(&archive), ["b"]);
    assert_eq!(fill(&archive).members, 4);
    assert_eq!(unknown(&archive), [""; 0]);
    assert_clean(&archive);
}
