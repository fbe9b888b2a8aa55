//! Trees into archives and back: everything that an archive keeps is the same afterwards.

use stook_archive::{AsOf, DEFAULT_VOLUME_BYTES, ExtractOptions, Jobs, WriteOptions};
use stook_testkit::{Compare, Fact, Kind, Random, Snapshot, Tree, sparse, supports_xattrs, tree};

use crate::folder::{all_rows, as_zstash, assert_clean, extract_to, only, volumes_in};
use crate::recorder::Recorder;
use crate::scene::{Scene, all_facts, options};

/// The tree, without what the file system of the test cannot hold.
fn holdable(tree: Tree) -> Tree {
    if supports_xattrs(&std::env::temp_dir()) {
        return tree;
    }
    stook_testkit::skip!("extended attributes, which the temporary directory has not");
    tree.without_xattrs()
}

/// Compares what came back with the source. Sockets are never archived; set-id bits only come back for
/// root; hard links of anything but files come back as entries of their own.
fn assert_same(source: &Snapshot, extracted: &Snapshot, facts: &Compare, context: &str) {
    let (mut source, mut extracted) = (source.clone(), extracted.clone());
    source.retain(|_, facts| facts.kind != Kind::Socket);
    if !stook_sys::is_root() {
        stook_testkit::skip!("set-id bits, which only root can bring back");
        let before = source.clone();
        let has_plain_mode = |path: &[u8]| {
            before
                .get(path)
                .is_none_or(|facts| facts.mode & 0o6000 == 0)
        };
        source.retain(|path, _| has_plain_mode(path));
        extracted.retain(|path, _| has_plain_mode(path));
    }
    let difference = source.difference(&extracted, &facts.clone().without(Fact::Links));
    assert_eq!(difference, [""; 0], "{context}");
    source.retain(|_, facts| facts.kind == Kind::File);
    extracted.retain(|_, facts| facts.kind == Kind::File);
    assert_eq!(source.difference(&extracted, facts), [""; 0], "{context}");
}

/// Creates, checks and extracts; returns the scene for more.
pub(crate) fn assert_round_trip(tree: Tree, write: &WriteOptions, context: &str) -> Scene {
    let scene = Scene::new(&holdable(tree));
    let recorder = Recorder::new();
    let report = scene.create_with(write, &recorder);
    assert_eq!(recorder.failure_texts(), [""; 0], "{context}");
    let checked = scene.assert_clean();
    assert_eq!(checked.members, report.members, "{context}");
    assert_eq!(checked.bytes, report.bytes, "{context}");
    let extracted = scene.extract(AsOf::Now);
    assert_same(&scene.snapshot(), &extracted, &all_facts(), context);
    scene
}

#[test]
fn the_torture_tree_comes_back_whole() {
    let scene = assert_round_trip(Tree::torture(), &options(), "torture");
    assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);
}

#[test]
fn every_named_tree_comes_back_whole() {
    for (name, tree) in [
        ("nothing", Tree::new()),
        ("basic", Tree::basic()),
        ("deep", Tree::deep(60)),
        ("wide", Tree::wide(3000)),
        ("links", Tree::links()),
        ("hardlinks", Tree::hardlinks()),
        ("odd names", Tree::odd_names()),
        ("sparse", Tree::sparse()),
        ("loops", Tree::loops()),
    ] {
        assert_round_trip(tree, &options(), name);
    }
}

#[test]
fn a_tree_of_5000_levels_comes_back_whole() {
    assert_round_trip(Tree::deep(5000), &options(), "deep");
}

#[test]
fn paths_far_longer_than_the_kernel_takes_come_back_whole() {
    let mut tree = Tree::new();
    for byte in [b'n', 0xff, b' ', b'%'] {
        let name = vec![byte; 255];
        let directory = [name.as_slice(), b"/"].concat().repeat(20);
        tree.insert(
            [directory.as_slice(), b"file"].concat(),
            stook_testkit::file(&name),
        );
        tree.insert(
            [directory.as_slice(), &name].concat(),
            stook_testkit::symlink(&name),
        );
        tree.insert(
            [directory.as_slice(), b"empty/"].concat(),
            stook_testkit::dir(),
        );
    }
    assert_round_trip(tree, &options(), "long paths");
}

#[test]
fn a_path_that_is_too_long_for_a_member_is_a_failure_and_never_a_deletion() {
    let directory = [vec![b'n'; 255], b"/".to_vec()].concat().repeat(256);
    let mut tree = tree! { "short" => file(b"short") };
    tree.insert([&directory, &b"f"[..]].concat(), stook_testkit::file(b"f"));
    let scene = Scene::new(&tree);
    for round in 0..2 {
        let recorder = Recorder::new();
        let report = match round {
            0 => scene.create_with(&options(), &recorder),
            _ => scene.update_with(&options(), &recorder),
        };
        assert_eq!((report.failed, report.deleted), (1, 0));
        let texts = recorder.failure_texts();
        assert!(texts[0].ends_with("/f`: its path is longer than 65,535 bytes"));
    }
    // The directory itself is as long as it may be.
    assert_eq!(all_rows(&scene.archive()).len(), 257);
    let (report, _) = extract_to(
        &scene.archive(),
        &scene.beside("into"),
        &ExtractOptions {
            jobs: Jobs::Fixed(1),
            ..ExtractOptions::default()
        },
    );
    assert_eq!((report.written, report.failed), (257, 0));
}

#[test]
fn names_of_every_byte_come_back_whole() {
    let mut tree = Tree::new();
    for byte in (1..=255_u8).filter(|&byte| byte != b'/' && byte != b'.') {
        tree.insert([byte], stook_testkit::file([byte]));
        tree.insert(
            [b"d-", &[byte][..], b"/f"].concat(),
            stook_testkit::file([byte]),
        );
        tree.insert([b'l', b'-', byte], stook_testkit::symlink([byte]));
    }
    let scene = assert_round_trip(tree, &options(), "bytes");
    let names = all_rows(&scene.archive()).into_iter().map(|row| row.name);
    assert_eq!(names.filter(|name| name.len() == 1).count(), 253);
}

/// Above 4 MiB a file is read in slices, below with its neighbours.
#[test]
fn large_files_come_back_whole() {
    let mut random = Random::new(3);
    let mut tree = tree! {
        "between" => file(b"small"),
        "z-last" => file(b"small"),
        "far-apart" => sparse(&[(0, b"start"), (12 << 20, b"end")], (12 << 20) + 3),
        "hole" => sparse(&[], 6 << 20),
        "linked" => hardlink("large-9437185"),
    };
    let bytes = random.bytes((4 << 20) + 1);
    let extents: [(u64, &[u8]); 2] = [(1 << 20, &bytes), (8 << 20, &bytes)];
    tree.insert("sparse", sparse(&extents, (16 << 20) + 1));
    for size in [4 << 20, (4 << 20) + 1, (9 << 20) + 1] {
        let bytes = random.bytes(size);
        tree.insert(format!("large-{size}"), stook_testkit::file(&bytes));
    }
    let scene = assert_round_trip(tree.clone(), &options(), "large");
    let stored: u64 = volumes_in(&scene.archive())
        .iter()
        .map(|(_, bytes)| bytes.len() as u64)
        .sum();
    assert!(stored < 50 << 20, "holes take room: {stored} bytes");
    for dialect in [options(), as_zstash()] {
        let small = WriteOptions {
            volume_bytes: Some(1 << 20),
            ..dialect
        };
        let scene = Scene::new(&tree);
        scene.create_with(&small, &Recorder::new());
        scene.assert_clean();
        let difference = scene
            .snapshot()
            .difference(&scene.extract(AsOf::Now), &Compare::content());
        assert_eq!(difference, [""; 0]);
    }
}

#[test]
fn random_trees_come_back_whole() {
    for seed in 0..12 {
        let write = WriteOptions {
            jobs: Jobs::Fixed(usize::try_from(seed % 4).unwrap() + 1),
            volume_bytes: (seed % 3 == 0).then_some(24 << 10),
            ..options()
        };
        assert_round_trip(Tree::random(seed, 120), &write, &format!("seed {seed}"));
    }
}

/// zstash's format keeps no directories with contents, no links, no attributes, and times as doubles.
#[test]
fn what_zstashs_format_keeps_comes_back() {
    for (name, tree) in [
        ("torture", Tree::torture()),
        ("deep", Tree::deep(300)),
        ("random", Tree::random(77, 300)),
    ] {
        let scene = Scene::new(&holdable(tree));
        let recorder = Recorder::new();
        let report = scene.create_with(&as_zstash(), &recorder);
        assert_eq!(recorder.failure_texts(), [""; 0]);
        let checked = scene.assert_clean();
        assert_eq!((checked.members, checked.volume_md5s), (report.members, 1));
        let facts = Compare::zstash().with(Fact::Owner);
        assert_same(&scene.snapshot(), &scene.extract(AsOf::Now), &facts, name);
    }
}

#[test]
fn the_number_of_workers_does_not_change_a_byte() {
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&holdable(Tree::torture()));
        for volume_bytes in [DEFAULT_VOLUME_BYTES, 300 << 10] {
            let mut written = Vec::new();
            for jobs in [1, 2, 7, 64] {
                let write = WriteOptions {
                    jobs: Jobs::Fixed(jobs),
                    volume_bytes: Some(volume_bytes),
                    ..dialect.clone()
                };
                let archive = scene.beside(&format!("{volume_bytes}-{jobs}"));
                stook_archive::create(scene.source(), &archive, &write, &Recorder::new()).unwrap();
                let rows = all_rows(&archive);
                written.push((jobs, volumes_in(&archive), rows));
                stook_testkit::remove_tree(&archive).unwrap();
            }
            let (_, volumes, rows) = &written[0];
            assert_eq!(volumes.len() > 1, volume_bytes < DEFAULT_VOLUME_BYTES);
            for (jobs, other_volumes, other_rows) in &written[1..] {
                assert!(volumes == other_volumes, "{jobs} workers, {volume_bytes}");
                assert!(rows == other_rows, "{jobs} workers, {volume_bytes}");
            }
        }
    }
}

#[test]
fn no_volume_is_longer_than_asked_unless_one_member_is() {
    for volume_bytes in [10_240, 20 << 10, 100_000] {
        let write = WriteOptions {
            volume_bytes: Some(volume_bytes),
            ..options()
        };
        let scene = assert_round_trip(Tree::basic(), &write, "small volumes");
        let rows = all_rows(&scene.archive());
        let volumes = volumes_in(&scene.archive());
        assert!(volumes.len() > 3);
        for (number, (name, bytes)) in volumes.iter().enumerate() {
            assert_eq!(*name, format!("{number:06x}.tar"));
            let members = rows.iter().filter(|row| row.volume.to_string() == *name);
            let members = members.count();
            assert!(members > 0);
            assert!(
                bytes.len() as u64 <= volume_bytes || members == 1,
                "{name} of {members} members has {} bytes",
                bytes.len()
            );
        }
    }
}

/// The plan of a dry run is what is then written, for a tree of plain files.
#[test]
fn a_dry_run_tells_the_volumes_and_writes_nothing() {
    let scene = Scene::new(&Tree::basic());
    let write = WriteOptions {
        volume_bytes: Some(50_000),
        xattrs: false,
        is_dry_run: true,
        ..options()
    };
    let report = scene.create_with(&write, &Recorder::new());
    assert!(!scene.archive().exists());
    let plan = report.plan.unwrap();
    let real = WriteOptions {
        is_dry_run: false,
        ..write
    };
    let report = scene.create_with(&real, &Recorder::new());
    assert_eq!((report.members, report.bytes), (plan.members, plan.bytes));
    let planned: Vec<(String, u64)> = plan
        .volumes
        .iter()
        .map(|volume| (volume.id.to_string(), volume.bytes))
        .collect();
    let written: Vec<(String, u64)> = volumes_in(&scene.archive())
        .into_iter()
        .map(|(name, bytes)| (name, bytes.len() as u64))
        .collect();
    assert_eq!(planned, written);
}

#[test]
fn a_second_extraction_finds_everything_there() {
    for dialect in [options(), as_zstash()] {
        let mut tree = Tree::torture();
        tree.insert("modes/dir-0500/inside-too", stook_testkit::file(b"more"));
        let scene = Scene::new(&holdable(tree));
        scene.create_with(&dialect, &Recorder::new());
        let into = scene.beside("into");
        let extract = ExtractOptions {
            same_permissions: true,
            ..ExtractOptions::default()
        };
        let (first, recorder) = extract_to(&scene.archive(), &into, &extract);
        assert_eq!(recorder.failure_texts(), [""; 0]);
        let before = Snapshot::take(&into).unwrap();
        let (second, recorder) = extract_to(&scene.archive(), &into, &extract);
        assert_eq!(recorder.failure_texts(), [""; 0]);
        assert_eq!((second.written, second.bytes), (0, 0));
        assert_eq!(second.unchanged, first.members);
        let after = Snapshot::take(&into).unwrap();
        assert_eq!(before.difference(&after, &all_facts()), [""; 0]);
    }
}

#[test]
fn set_id_bits_and_devices_need_same_permissions() {
    let scene = Scene::new(&tree! {
        "set-id" => file(b"x").mode(0o6755),
        "shared/" => dir().mode(0o2775),
        "sticky/" => dir().mode(0o1777),
        "plain" => file(b"x").mode(0o640),
    });
    scene.create();
    let into = scene.beside("into");
    extract_to(&scene.archive(), &into, &ExtractOptions::default());
    let extracted = Snapshot::take(&into).unwrap();
    for (name, mode) in [
        ("set-id", 0o755),
        ("shared", 0o775),
        ("sticky", 0o1777),
        ("plain", 0o640),
    ] {
        assert_eq!(extracted.get(name).unwrap().mode, mode, "{name}");
    }
    if !stook_testkit::can_make_devices() {
        stook_testkit::skip!("devices, which this process cannot make");
        return;
    }
    scene.lay(&tree! { "null" => character_device(1, 3) });
    scene.update();
    let (report, recorder) = extract_to(&scene.archive(), &into, &only("null"));
    assert_eq!((report.written, report.failed), (0, 1));
    assert_eq!(
        recorder.failure_texts(),
        ["cannot create `null`: only the superuser can create a device, and only on request"]
    );
    assert!(!into.join("null").exists());
}

#[test]
fn a_part_comes_back_alone_and_with_its_directories() {
    let scene = Scene::new(&Tree::basic());
    scene.create();
    let into = scene.beside("part");
    let (report, _) = extract_to(&scene.archive(), &into, &only("a/deep/*"));
    assert_eq!(report.members, 2);
    let extracted = Snapshot::take(&into).unwrap();
    let mut expected = scene.snapshot();
    expected.retain(|path, _| path == b"a" || path.starts_with(b"a/deep"));
    let content = Compare::content();
    assert_eq!(expected.difference(&extracted, &content), [""; 0]);
    assert_clean(&scene.archive());
}
