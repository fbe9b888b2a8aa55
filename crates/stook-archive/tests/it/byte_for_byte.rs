//! zstash's dialect against Python's own `tarfile`, byte for byte, and the rows of the index with it.

use std::io;
use std::path::Path;

use stook_archive::WriteOptions;
use stook_index::Row;
use stook_testkit::oracle::{Oracle, OracleRow};
use stook_testkit::{Random, Tree, tree};

use crate::folder::{all_rows, as_zstash, hex, volumes_in};
use crate::recorder::Recorder;
use crate::scene::Scene;

/// Returns the rows, or nothing (with a line that says so) where there is no Python.
fn ask(oracle: &Oracle, source: &Path, volumes: &Path) -> Option<Vec<OracleRow>> {
    match oracle.write(source, volumes) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            stook_testkit::skip!("python3 is not installed");
            None
        }
        rows => Some(rows.unwrap()),
    }
}

fn as_oracle(row: &Row) -> OracleRow {
    OracleRow {
        name: row.name.clone(),
        size: row.size,
        mtime: row.mtime.to_string(),
        md5: row.md5.map(hex),
        volume: row.volume.to_string(),
        offset: row.offset,
    }
}

/// Volumes of ours must be those of the oracle, and so must the rows, in order of their ids.
fn assert_equal(scene: &Scene, first_row: usize, volumes: &Path, rows: &[OracleRow]) {
    let ours = all_rows(&scene.archive());
    assert!(ours.is_sorted_by_key(|row| row.id));
    let ours: Vec<OracleRow> = ours[first_row..].iter().map(as_oracle).collect();
    for (ours, theirs) in ours.iter().zip(rows) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), rows.len());
    let theirs = volumes_in(volumes);
    assert!(!theirs.is_empty());
    let ours = volumes_in(&scene.archive());
    for (name, bytes) in &theirs {
        let found = ours.iter().find(|(other, _)| other == name);
        let (_, found) = found.unwrap_or_else(|| panic!("{name} is missing"));
        let first = found.iter().zip(bytes).position(|(one, two)| one != two);
        assert_eq!(first, None, "{name} differs from this byte on");
        assert_eq!(found.len(), bytes.len(), "{name}");
    }
}

fn assert_byte_for_byte(tree: &Tree, maxsize: Option<u64>) {
    let scene = Scene::new(tree);
    let oracle = Oracle {
        maxsize,
        ..Oracle::default()
    };
    let volumes = scene.beside("oracle");
    let Some(rows) = ask(&oracle, scene.source(), &volumes) else {
        return;
    };
    let write = WriteOptions {
        volume_bytes: maxsize,
        ..as_zstash()
    };
    let recorder = Recorder::new();
    scene.create_with(&write, &recorder);
    assert_eq!(recorder.failure_texts(), [""; 0]);
    assert_eq!(
        volumes_in(&scene.archive()).len(),
        volumes_in(&volumes).len()
    );
    assert_equal(&scene, 0, &volumes, &rows);
    scene.assert_clean();
}

#[test]
fn the_torture_tree_equals_pythons_tar() {
    assert_byte_for_byte(&Tree::torture().without_xattrs(), None);
}

#[test]
fn small_volumes_equal_pythons_tars() {
    for maxsize in [1, 20 << 10] {
        assert_byte_for_byte(&Tree::basic(), Some(maxsize));
    }
    for maxsize in [99_999, 1 << 20] {
        assert_byte_for_byte(&Tree::torture().without_xattrs(), Some(maxsize));
    }
}

#[test]
fn random_trees_equal_pythons_tars() {
    for seed in 100..106 {
        let maxsize = (seed % 2 == 0).then_some(64 << 10);
        assert_byte_for_byte(&Tree::random(seed, 300), maxsize);
    }
}

#[test]
fn large_files_equal_pythons_tar() {
    let bytes = Random::new(5).bytes((5 << 20) + 7);
    let tree = tree! {
        "a" => file(b"before"),
        "large" => file(&bytes),
        "large-link" => hardlink("large"),
        "sparse" => sparse(&[(5 << 20, b"end")], (5 << 20) + 3),
        "z/link" => hardlink("large"),
    };
    assert_byte_for_byte(&tree, None);
    assert_byte_for_byte(&tree, Some(6 << 20));
}

/// A link to a file in the same volume is a hard link with its data; across a cut it is a file again.
#[test]
fn hard_links_within_a_volume_and_across_a_cut_equal_pythons_tars() {
    let mut tree = Tree::new();
    for group in 0..6 {
        let bytes = Random::new(group).bytes(3000);
        let first = format!("g{group}/first");
        tree.insert(&first, stook_testkit::file(bytes));
        for other in ["second", "third"] {
            tree.insert(format!("g{group}/{other}"), stook_testkit::hardlink(&first));
            let away = format!("z/{other}-{group}-{}", "n".repeat(120));
            tree.insert(away, stook_testkit::hardlink(&first));
        }
    }
    for maxsize in [None, Some(8 << 10), Some(20 << 10), Some(50_000)] {
        assert_byte_for_byte(&tree, maxsize);
    }
}

#[test]
fn awkward_times_equal_pythons() {
    let mut tree = Tree::new();
    let mut random = Random::new(11);
    for number in 0..400_u32 {
        let seconds = match number % 4 {
            0 => random.below(1 << 31).cast_signed(),
            1 => -random.below(1 << 31).cast_signed(),
            2 => 1_700_000_000 + random.below(100_000_000).cast_signed(),
            _ => 1_500_000_000,
        };
        let nanoseconds = match number % 5 {
            0 => 999_999_999 - number,
            1 => number * 500,
            2 => 500 + 1000 * number,
            3 => 499 + 1000 * number,
            _ => u32::try_from(random.below(1_000_000_000)).unwrap(),
        };
        let entry = stook_testkit::file(number.to_string()).mtime(seconds, nanoseconds);
        tree.insert(format!("t{number:03}"), entry);
    }
    assert_byte_for_byte(&tree, None);
}

/// What an update adds is what zstash's update would write: new volumes with the changed files only.
#[test]
fn the_volumes_of_an_update_equal_pythons_tars() {
    let scene = Scene::new(&Tree::basic());
    let write = WriteOptions {
        volume_bytes: Some(20 << 10),
        ..as_zstash()
    };
    scene.create_with(&write, &Recorder::new());
    let first_row = all_rows(&scene.archive()).len();
    let first_volume = volumes_in(&scene.archive()).len() as u64;
    scene.lay(&tree! {
        "top.txt" => file(b"other content").mtime(1_700_000_001, 999_999_999),
        "many/f003.dat" => file(Random::new(9).bytes(15_000)),
        "many/f004.dat" => file(Random::new(8).bytes(9_000)),
        "new/linked-1" => file(b"linked"),
        "new/linked-2" => hardlink("new/linked-1"),
        "new/empty/" => dir(),
    });
    let changed = [
        "top.txt",
        "many/f003.dat",
        "many/f004.dat",
        "new/linked-1",
        "new/linked-2",
        "new/empty",
    ];
    let oracle = Oracle {
        maxsize: Some(20 << 10),
        first_volume,
        only: Some(
            changed
                .iter()
                .map(|name| name.as_bytes().to_vec())
                .collect(),
        ),
        ..Oracle::default()
    };
    let volumes = scene.beside("oracle");
    let Some(rows) = ask(&oracle, scene.source(), &volumes) else {
        return;
    };
    let update = WriteOptions {
        volume_bytes: None,
        ..write
    };
    let recorder = Recorder::new();
    let report = scene.update_with(&update, &recorder);
    assert_eq!(recorder.failure_texts(), [""; 0]);
    assert_eq!(report.members, changed.len() as u64);
    assert_equal(&scene, first_row, &volumes, &rows);
    scene.assert_clean();
}
