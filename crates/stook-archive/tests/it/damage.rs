//! Damage of every sort, made on purpose: `check` sees it and names it, and what is sound comes back.

use std::fs;
use std::os::unix::fs::FileExt;

use stook_archive::{AsOf, Dialect, ExtractOptions, create};
use stook_testkit::{Compare, Directories, Snapshot, Tree, file, tree};

use crate::by_path::{cat, extract};
use crate::crafted::{Crafted, write_archive, write_archive_with};
use crate::recorder::Recorder;
use crate::scene::{Scene, options};
use crate::specimen::{Specimen, damages, one_of_each};

#[test]
fn check_sees_every_truncation() {
    for dialect in [Dialect::Stook, Dialect::Zstash] {
        let specimen = Specimen::new(&one_of_each(dialect), dialect);
        let len = specimen.bytes.len();
        for cut in (0..len).step_by(512).chain([1, 511, len - 1]) {
            specimen.file.set_len(cut as u64).unwrap();
            let damages = specimen.damages();
            let wrong_length =
                format!("000000.tar: the volume has {cut} bytes, the index says {len}");
            assert!(damages.contains(&wrong_length), "{cut}: {damages:?}");
            specimen.file.set_len(0).unwrap();
            specimen.file.write_all_at(&specimen.bytes, 0).unwrap();
        }
        assert_eq!(specimen.damages(), [""; 0]);
    }
}

#[test]
fn check_sees_bytes_at_the_end_of_a_volume() {
    for dialect in [Dialect::Stook, Dialect::Zstash] {
        let specimen = Specimen::new(&one_of_each(dialect), dialect);
        let member = specimen.bytes[..2048].to_vec();
        let one = {
            let mut block = vec![0; 512];
            block[511] = 1;
            block
        };
        for tail in [
            vec![0],
            vec![0; 512],
            vec![0; 10_240],
            one,
            member,
            vec![b'x'; 10_240],
        ] {
            specimen
                .file
                .write_all_at(&tail, specimen.bytes.len() as u64)
                .unwrap();
            assert!(!specimen.damages().is_empty(), "{} bytes", tail.len());
            specimen.repair();
        }
    }
}

#[test]
fn what_is_before_a_cut_comes_back_and_what_is_behind_is_named() {
    let specimen = Specimen::new(&Tree::basic(), Dialect::Stook);
    let before = specimen.scene.snapshot();
    for cut in [0, 512, specimen.bytes.len() / 3, specimen.bytes.len() / 2] {
        specimen.file.set_len(cut as u64).unwrap();
        let recorder = Recorder::new();
        let extracted = specimen.scene.extract_with(AsOf::Now, &recorder);
        let failed = recorder.failed_paths();
        let mut expected = before.clone();
        expected.retain(|path, _| {
            let is_lost = |name: &String| name.as_bytes() == path;
            !failed.iter().any(is_lost)
        });
        assert!(!failed.is_empty());
        // A lost directory is made anew for what is in it.
        let compare = Compare::content().directories(Directories::Empty);
        let difference = expected.difference(&extracted, &compare);
        assert_eq!(difference, [""; 0], "{cut}");
        specimen.repair();
    }
}

#[test]
fn a_damaged_file_is_a_failure_and_leaves_nothing_half_right() {
    let content = b"seven hundred bytes or so".repeat(28);
    let specimen = Specimen::new(
        &tree! {"a" => file(b"a"), "b" => file(&content), "c" => file(b"c")},
        Dialect::Stook,
    );
    let at = specimen
        .bytes
        .windows(content.len())
        .position(|part| part == content)
        .unwrap();
    specimen.file.write_all_at(b"S", at as u64).unwrap();
    let recorder = Recorder::new();
    let extracted = specimen.scene.extract_with(AsOf::Now, &recorder);
    let text = "cannot extract `b`: its content does not have the MD5 in the index";
    assert_eq!(recorder.failure_texts(), [text]);
    let paths: Vec<&[u8]> = extracted.entries().map(|(path, _)| path).collect();
    assert_eq!(paths, [b"a", b"c"]);
    let result = cat(&specimen.scene.archive(), b"b", AsOf::Now, &mut Vec::new());
    assert!(result.unwrap_err().is_damage());

    // A sound file that is there already is not replaced by a damaged one.
    let into = specimen.scene.beside("into");
    fs::create_dir(&into).unwrap();
    fs::write(into.join("b"), b"mine").unwrap();
    let recorder = Recorder::new();
    extract(
        &specimen.scene.archive(),
        &into,
        &ExtractOptions::default(),
        &recorder,
    )
    .unwrap();
    assert_eq!(recorder.failed_paths(), ["b"]);
    assert_eq!(fs::read(into.join("b")).unwrap(), b"mine");
    assert_eq!(Snapshot::take(&into).unwrap().len(), 3);
}

/// Two volumes of equal length with a file each, and the same facts about both files but their names.
fn two_volumes(names: [&str; 2]) -> Scene {
    let scene = Scene::new(&tree! {});
    for (number, name) in names.into_iter().enumerate() {
        let mut tree = Tree::new();
        let content = format!("content {number}");
        let nanoseconds = 1000 * u32::try_from(number).unwrap();
        tree.insert(name, file(content).mtime(1_700_000_000, nanoseconds));
        scene.lay(&tree);
        if number == 0 {
            scene.create();
        } else {
            scene.update();
        }
    }
    scene.assert_clean();
    scene
}

#[test]
fn check_names_a_missing_volume_and_the_rest_is_extracted() {
    let scene = two_volumes(["a", "b"]);
    fs::remove_file(scene.archive().join("000000.tar")).unwrap();
    assert_eq!(
        damages(&scene.archive()),
        ["000000.tar: the volume is missing"]
    );
    let recorder = Recorder::new();
    let extracted = scene.extract_with(AsOf::Now, &recorder);
    let volume = scene.archive().join("000000.tar");
    let cause = format!(
        "cannot open `{}`: no such file or directory",
        volume.display()
    );
    assert_eq!(
        recorder.failure_texts(),
        [format!("cannot read `a`: {cause}")]
    );
    let paths: Vec<&[u8]> = extracted.entries().map(|(path, _)| path).collect();
    assert_eq!(paths, [b"b"]);
}

#[test]
fn check_sees_volumes_that_changed_places() {
    // With other names, and with two versions of one file, which only times and MD5s tell apart.
    for names in [["a", "b"], ["a", "a"]] {
        let scene = two_volumes(names);
        let [first, second, spare] =
            ["000000.tar", "000001.tar", "spare"].map(|name| scene.archive().join(name));
        fs::rename(&first, &spare).unwrap();
        fs::rename(&second, &first).unwrap();
        fs::rename(&spare, &second).unwrap();
        let damages = damages(&scene.archive());
        assert!(
            damages.iter().any(|text| text.starts_with("000000.tar")),
            "{damages:?}"
        );
        assert!(
            damages.iter().any(|text| text.starts_with("000001.tar")),
            "{damages:?}"
        );
        let recorder = Recorder::new();
        let extracted = scene.extract_with(AsOf::Now, &recorder);
        assert!(extracted.is_empty());
        assert!(!recorder.failed_paths().is_empty());
    }
}

#[test]
fn rows_that_fit_no_member_are_damage_and_failures_by_name() {
    let members = || {
        [
            Crafted::file("a", b"first"),
            Crafted::file("b", b"second"),
            Crafted::file("c", b"third"),
        ]
    };
    type Distortion = fn(&mut stook_index::NewRow<'_>);
    let distortions: [Distortion; 11] = [
        |row| row.offset = 10_240,
        |row| row.offset = 10_239,
        |row| row.offset = 1 << 40,
        |row| row.offset = i64::MAX.cast_unsigned(),
        |row| row.offset += 1,
        |row| row.offset += 512,
        |row| row.offset = 0,
        |row| row.size += 1,
        |row| row.size = i64::MAX.cast_unsigned(),
        |row| row.mtime.0 += 1_000_001,
        |row| row.md5 = Some([7; 16]),
    ];
    for (number, distort) in distortions.into_iter().enumerate() {
        for (dialect, victims) in [(Dialect::Stook, &["b"][..]), (Dialect::Zstash, &["b", "c"])] {
            let scene = Scene::new(&tree! {});
            write_archive_with(&scene.archive(), dialect, &members(), |row| {
                if victims.iter().any(|victim| victim.as_bytes() == row.name) {
                    distort(row);
                }
            });
            let damages = damages(&scene.archive());
            for victim in victims {
                let name = format!("`{victim}`");
                assert!(
                    damages.iter().any(|text| text.contains(&name)),
                    "{number}: {damages:?}"
                );
            }
            let recorder = Recorder::new();
            let extracted = scene.extract_with(AsOf::Now, &recorder);
            assert_eq!(recorder.failed_paths(), *victims, "{number}");
            assert_eq!(extracted.len(), 3 - victims.len(), "{number}");
        }
    }
}

#[test]
fn a_row_without_md5_for_a_file_is_damage() {
    let scene = Scene::new(&tree! {});
    let members = [Crafted::file("a", b"first"), Crafted::directory("d")];
    write_archive_with(&scene.archive(), Dialect::Stook, &members, |row| {
        row.md5 = if row.md5.is_some() {
            None
        } else {
            Some([0; 16])
        };
    });
    let damages = damages(&scene.archive());
    assert_eq!(damages.len(), 2);
    assert!(
        damages
            .iter()
            .all(|text| text.ends_with("differ in what kind of file it is")),
        "{damages:?}"
    );
    let recorder = Recorder::new();
    assert!(scene.extract_with(AsOf::Now, &recorder).is_empty());
    assert_eq!(recorder.failed_paths(), ["a", "d"]);
}

#[test]
fn a_member_that_the_index_does_not_know_is_damage() {
    let scene = Scene::new(&tree! {"a" => file(b"a")});
    scene.create();
    let other = scene.beside("other");
    write_archive(
        &other,
        Dialect::Stook,
        &[Crafted::file("a", b"a"), Crafted::file("b", b"b")],
    );
    let volume = scene.archive().join("000000.tar");
    fs::remove_file(&volume).unwrap();
    fs::copy(other.join("000000.tar"), &volume).unwrap();
    assert!(!damages(&scene.archive()).is_empty());
}

#[test]
fn a_volume_that_the_index_does_not_know_is_noted() {
    let scene = Scene::archived(&tree! {"a" => file(b"a")});
    fs::copy(
        scene.archive().join("000000.tar"),
        scene.archive().join("000001.tar"),
    )
    .unwrap();
    let recorder = Recorder::new();
    assert_eq!(scene.check(&recorder).damages, 0);
    let note = "000001.tar is not in the index";
    assert_eq!(recorder.notes(), [note]);
    // Nor does an update write over it.
    fs::write(scene.path("b"), b"b").unwrap();
    scene.update();
    assert_eq!(
        scene.archive_files(),
        ["000000.tar", "000001.tar", "000002.tar", "index.db"]
    );
    assert!(
        create(
            scene.source(),
            &scene.archive(),
            &options(),
            &Recorder::new()
        )
        .is_err()
    );
}
