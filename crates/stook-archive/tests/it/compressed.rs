//! Archives whose volumes are compressed: what is in them, for every operation and for other programs.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};

use stook_archive::{
    ArchiveError, AsOf, CheckOptions, Dialect, ExtractOptions, FailedMembers, Jobs, ListOptions,
    Observer, Silent, WriteOptions, ZstdLevel, create, reindex,
};
use stook_index::Index;
use stook_testkit::{Random, Tree, file};
use stook_tree::Pattern;

use crate::by_path::{cat, check, extract, list, open, update};
use crate::planned::{assert_same_archive, build_all, committed, expected, names, planned};
use crate::recorder::Recorder;
use crate::resuming::Stopper;
use crate::round_trip::assert_round_trip;
use crate::scene::{Scene, options};

pub(crate) fn compressed() -> WriteOptions {
    WriteOptions {
        zstd: Some(ZstdLevel::default()),
        ..options()
    }
}

/// Files that compress to about a third: small ones, some as long as a frame or a little longer, and one of several slices.
pub(crate) fn files(count: usize) -> Tree {
    let (mut random, mut tree) = (Random::new(15), Tree::new());
    for number in 0..count {
        let len = match number % 60 {
            7 => 900_000 + random.index(300_000),
            _ => random.index(9_000),
        };
        let name = format!("d{}/f{number:04}", number % 11);
        tree.insert(name, file(text(&mut random, len)));
    }
    // The same whatever comes before it.
    tree.insert("d3/large", file(text(&mut Random::new(9), 9 << 20)));
    tree
}

fn text(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| b"abcdefgh"[random.index(8)]).collect()
}

fn volumes(archive: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = names(archive);
    names.retain(|name| name != "index.db");
    let read = |name: String| (fs::read(archive.join(&name)).unwrap(), name);
    names
        .into_iter()
        .map(read)
        .map(|(bytes, name)| (name, bytes))
        .collect()
}

/// Runs a shell pipe in the folder of the archive; None, said aloud, where there is no `zstd`.
fn shell(archive: &Path, command: &str) -> Option<Vec<u8>> {
    if Command::new("zstd").arg("--version").output().is_err() {
        stook_testkit::skip!("there is no program `zstd`");
        return None;
    }
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(archive)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}");
    Some(output.stdout)
}

#[test]
fn every_kind_of_entry_comes_back() {
    let scene = assert_round_trip(Tree::torture(), &compressed(), "torture");
    assert_eq!(scene.archive_files(), ["000000.tar.zst", "index.db"]);
}

#[test]
fn the_uncompressed_volume_is_the_plain_one_byte_for_byte() {
    let scene = Scene::new(&files(200));
    let plain = scene.beside("plain");
    create(scene.source(), &plain, &options(), &Silent).unwrap();
    scene.create_with(&compressed(), &Silent);
    let volume = fs::metadata(scene.archive().join("000000.tar.zst")).unwrap();
    let expected = fs::read(plain.join("000000.tar")).unwrap();
    assert!(volume.len() < expected.len() as u64 / 2);
    let Some(found) = shell(&scene.archive(), "zstd -dc < 000000.tar.zst") else {
        return;
    };
    assert!(found == expected);
    let listed = shell(&scene.archive(), "zstd -dc < 000000.tar.zst | tar t").unwrap();
    let listed = String::from_utf8(listed).unwrap();
    assert_eq!(listed.lines().count(), 200 + 1 + 11);
    shell(&scene.archive(), "zstd -qt 000000.tar.zst").unwrap();
}

#[test]
fn volumes_do_not_depend_on_the_number_of_workers() {
    let scene = Scene::new(&files(400));
    let archive = |jobs| {
        let archive = scene.beside(&format!("jobs-{jobs}"));
        let options = WriteOptions {
            jobs: Jobs::Fixed(jobs),
            volume_bytes: Some(4 << 20),
            ..compressed()
        };
        create(scene.source(), &archive, &options, &Silent).unwrap();
        volumes(&archive)
    };
    let one = archive(1);
    assert!(one.len() > 3, "{}", one.len());
    assert!(one == archive(2) && one == archive(8));
}

#[test]
fn frames_hold_whole_members_and_the_index_knows_where_they_lie() {
    let scene = Scene::new(&files(300));
    scene.create_with(&compressed(), &Silent);
    let index = Index::open_read(scene.archive().join("index.db")).unwrap();
    let id = "000000.tar.zst".parse().unwrap();
    let frames = index.frames_of_volume(id).unwrap().unwrap();
    let mut rows = Vec::new();
    index
        .rows(|row| {
            rows.push((row.offset, row.size));
            ControlFlow::Continue(())
        })
        .unwrap();
    let frame_of = |offset| frames.partition_point(|frame| frame.offset <= offset);
    for (offset, size) in rows.iter().copied().filter(|(_, size)| *size < 1_000_000) {
        assert_eq!(frame_of(offset), frame_of(offset + size + 1024), "{offset}");
    }
    for (offset, _) in rows.iter().filter(|(_, size)| *size > 1 << 20) {
        assert!(frames.iter().any(|frame| frame.offset == *offset));
    }
    assert!(frames.len() > 15, "{}", frames.len());
    let file = File::open(scene.archive().join("000000.tar.zst")).unwrap();
    let len = file.metadata().unwrap().len();
    let entries = stook_volume::read_seek_table(&file, len).unwrap();
    assert_eq!(entries.len(), frames.len() - 1);
    for (entry, pair) in entries.iter().zip(frames.windows(2)) {
        assert_eq!(u64::from(entry.stored), pair[1].stored - pair[0].stored);
        assert_eq!(u64::from(entry.len), pair[1].offset - pair[0].offset);
    }
}

#[test]
fn an_archive_goes_on_as_it_was_created() {
    let scene = Scene::new(&files(50));
    scene.create_with(&compressed(), &Silent);
    scene.lay(&files(80));
    fs::remove_file(scene.path("d3/f0003")).unwrap();
    assert!(scene.update().members > 30);
    let expected = ["000000.tar.zst", "000001.tar.zst", "index.db"];
    assert_eq!(scene.archive_files(), expected);
    assert_eq!(scene.update().members, 0);
    scene.assert_clean();
    scene.assert_extracts_to_source();
    let mut content = Vec::new();
    cat(&scene.archive(), b"d3/large", AsOf::Now, &mut content).unwrap();
    assert!(content == fs::read(scene.path("d3/large")).unwrap());
    let other = WriteOptions {
        zstd: ZstdLevel::new(7),
        ..options()
    };
    let refused = update(scene.source(), &scene.archive(), &other, &Silent);
    let level = Some(ZstdLevel::default());
    assert!(
        matches!(refused, Err(ArchiveError::OtherCompression { level: it, .. }) if it == level)
    );
    let plain = Scene::archived(&files(2));
    let refused = update(plain.source(), &plain.archive(), &compressed(), &Silent);
    assert!(matches!(
        refused,
        Err(ArchiveError::OtherCompression { level: None, .. })
    ));
}

#[test]
fn nothing_is_compressed_in_the_dialect_of_zstash() {
    let scene = Scene::new(&files(5));
    let zstash = WriteOptions {
        dialect: Dialect::Zstash,
        ..compressed()
    };
    let refused = create(scene.source(), &scene.archive(), &zstash, &Silent);
    assert!(matches!(
        refused,
        Err(ArchiveError::CompressedForZstash { .. })
    ));
    assert!(!scene.archive().exists());
    scene.create_with(&compressed(), &Silent);
    let zstash = WriteOptions {
        dialect: Dialect::Zstash,
        ..options()
    };
    let refused = update(scene.source(), &scene.archive(), &zstash, &Silent);
    assert!(matches!(
        refused,
        Err(ArchiveError::CompressedForZstash { .. })
    ));
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_volumes() {
    for limit in [None, Some(6 << 20)] {
        let scene = Scene::new(&files(400));
        let options = WriteOptions {
            volume_bytes: limit,
            checkpoint_bytes: 2 << 20,
            ..compressed()
        };
        let run = |archive: &Path, observer: &dyn Observer| {
            drop(create(scene.source(), archive, &options, observer));
        };
        let undisturbed = scene.beside("undisturbed");
        run(&undisturbed, &Silent);
        for after in [1, 150, 300, 390] {
            let archive = scene.beside(&format!("after-{after}"));
            for further in 0..3 {
                run(&archive, &Stopper::after(after + further));
            }
            run(&archive, &Silent);
            assert!(volumes(&archive) == volumes(&undisturbed), "after {after}");
            let options = CheckOptions {
                whole_volumes: true,
                ..CheckOptions::default()
            };
            let recorder = Recorder::new();
            check(&archive, &options, &recorder).unwrap();
            assert_eq!(recorder.damage_texts(), [""; 0], "after {after}");
        }
    }
}

#[test]
fn a_volume_behind_one_that_was_begun_is_compressed_too() {
    let mut tree = Tree::new();
    for name in ["a", "b", "c"] {
        tree.insert(name, file(text(&mut Random::new(8), 2 << 20)));
    }
    let scene = Scene::new(&tree);
    let options = WriteOptions {
        volume_bytes: Some(8 << 20),
        jobs: Jobs::Fixed(1),
        ..compressed()
    };
    let stopped = create(
        scene.source(),
        &scene.archive(),
        &options,
        &Stopper::after(1),
    );
    assert!(stopped.is_err());
    // What is left fits into one volume, but not into the rest of the one that was begun.
    fs::write(scene.path("d"), vec![b'x'; 3 << 20]).unwrap();
    create(scene.source(), &scene.archive(), &options, &Silent).unwrap();
    assert_eq!(
        scene.archive_files(),
        ["000000.tar.zst", "000001.tar.zst", "index.db"]
    );
    let checked = check(&scene.archive(), &CheckOptions::default(), &Silent).unwrap();
    assert_eq!(checked.damages, 0);
}

#[test]
fn a_lost_index_is_made_anew_from_the_volumes() {
    let scene = Scene::new(&files(150));
    let options = WriteOptions {
        volume_bytes: Some(8 << 20),
        ..compressed()
    };
    scene.create_with(&options, &Silent);
    let rows = || {
        let mut rows = Vec::new();
        let options = ListOptions {
            patterns: Vec::new(),
            as_of: AsOf::Now,
            all_versions: true,
        };
        list(&scene.archive(), &options, &Silent, |row| {
            rows.push(row.to_row());
            ControlFlow::Continue(())
        })
        .unwrap();
        rows
    };
    let index = scene.archive().join("index.db");
    let frames = || {
        let index = Index::open_read(&index).unwrap();
        let volumes = index.volumes().unwrap();
        let of = |volume: &stook_archive::Volume| index.frames_of_volume(volume.id).unwrap();
        volumes.iter().map(of).collect::<Vec<_>>()
    };
    let (rows_before, frames_before) = (rows(), frames());
    assert!(frames_before.len() > 1 && frames_before.iter().all(Option::is_some));
    for is_lost in [false, true] {
        if is_lost {
            fs::remove_file(&index).unwrap();
        }
        let recorder = Recorder::new();
        let report = reindex(&scene.archive(), Jobs::Fixed(3), &recorder).unwrap();
        assert_eq!((report.damages, recorder.damage_texts()), (0, Vec::new()));
        assert!(rows() == rows_before && frames() == frames_before);
        scene.assert_clean();
    }
    fs::write(scene.path("new"), b"new").unwrap();
    scene.update();
    let last = scene.archive_files().into_iter().rev().nth(1).unwrap();
    assert!(last.ends_with(".tar.zst"), "{last}");
}

#[test]
fn parts_of_a_plan_become_the_same_volumes() {
    let scene = Scene::new(&files(200));
    let options = WriteOptions {
        volume_bytes: Some(5 << 20),
        ..compressed()
    };
    let plan = planned(&scene, &scene.archive(), &options);
    assert!(plan.parts.len() > 2);
    build_all(&scene, &plan);
    committed(&scene.archive(), FailedMembers::Record);
    let expected = expected(&scene, &options);
    assert_same_archive(&expected, &scene.archive());
    assert!(volumes(&expected) == volumes(&scene.archive()));
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

#[test]
fn many_small_members_of_a_frame_cost_one_decode() {
    let mut tree = Tree::new();
    for number in 0..1000 {
        tree.insert(format!("f{number:04}"), file(b"x"));
    }
    let scene = Scene::new(&tree);
    scene.create_with(&compressed(), &Silent);
    let archive = open(&scene.archive()).unwrap();
    let index = Index::open_read(scene.archive().join("index.db")).unwrap();
    let id = "000000.tar.zst".parse().unwrap();
    let frames = index.frames_of_volume(id).unwrap().unwrap().len() as u64 - 1;
    let mut rows = Vec::new();
    index
        .rows(|row| {
            rows.push(row.to_row());
            ControlFlow::Continue(())
        })
        .unwrap();
    // All but the end marker are read, by four threads at once.
    let parts = rows.chunks(rows.len() / 4);
    std::thread::scope(|scope| {
        for part in parts {
            let archive = &archive;
            scope.spawn(move || {
                for row in part {
                    let reader = archive.reader(row).unwrap();
                    let mut byte = [0; 4];
                    assert_eq!(reader.read_at(0, &mut byte).unwrap(), 1);
                }
            });
        }
    });
    assert!(frames < 8, "{frames}");
    assert_eq!(archive.decoded_frames(), frames - 1);
}

#[test]
fn selected_members_come_back_from_the_middle_of_frames() {
    let scene = Scene::new(&files(300));
    scene.create_with(&compressed(), &Silent);
    let into = scene.beside("some");
    let patterns = ["*f00?7", "d3/large", "*f0188"];
    let options = ExtractOptions {
        patterns: patterns.map(|it| Pattern::new(it.as_bytes())).to_vec(),
        ..ExtractOptions::default()
    };
    let recorder = Recorder::new();
    let report = extract(&scene.archive(), &into, &options, &recorder).unwrap();
    assert_eq!(recorder.failure_texts(), [""; 0]);
    assert_eq!(report.members, 12);
    for name in ["d3/large", "d1/f0188", "d7/f0007", "d9/f0097"] {
        let expected = fs::read(scene.path(name)).unwrap();
        assert!(fs::read(into.join(name)).unwrap() == expected, "{name}");
    }
}
