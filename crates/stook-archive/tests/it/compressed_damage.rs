//! Compressed volumes that are not as they were written, and tables that lie about them: what is damaged is named, and the
//! rest can be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use stook_archive::{AsOf, CheckOptions, ExtractOptions, Jobs, VolumeId, reindex};
use stook_index::{Frame, Index, encode_frames};
use stook_testkit::Random;

use crate::by_path::{cat, check, extract, open};
use crate::compressed::{compressed, files};
use crate::recorder::Recorder;
use crate::scene::Scene;

fn archived(count: usize) -> Scene {
    let scene = Scene::new(&files(count));
    scene.create_with(&compressed(), &Recorder::new());
    scene
}

fn volume(scene: &Scene) -> PathBuf {
    scene.archive().join("000000.tar.zst")
}

/// Changes the volume, whatever its rights.
fn change(scene: &Scene, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let path = volume(scene);
    let before = fs::read(&path).unwrap();
    let mut bytes = before.clone();
    change(&mut bytes);
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    before
}

fn frames(archive: &Path) -> Vec<Frame> {
    let index = Index::open_read(archive.join("index.db")).unwrap();
    let id: VolumeId = "000000.tar.zst".parse().unwrap();
    index.frames_of_volume(id).unwrap().unwrap()
}

/// Numbers of frames with more than a few members.
fn crowded(scene: &Scene, frames: &[Frame]) -> Vec<usize> {
    let members = |at: usize| names_in(&scene.archive(), frames[at].offset..frames[at + 1].offset);
    let mut numbers: Vec<usize> = (0..frames.len() - 1).collect();
    numbers.retain(|number| members(*number).len() > 10);
    numbers
}

/// Names of the members that begin in a part of the uncompressed volume.
fn names_in(archive: &Path, place: std::ops::Range<u64>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let archive = open(archive).unwrap();
    archive
        .rows_by_place(|row| {
            if place.contains(&row.offset) {
                names.insert(String::from_utf8(row.name.to_vec()).unwrap());
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    names
}

fn checked(scene: &Scene, whole_volumes: bool) -> Vec<String> {
    let options = CheckOptions {
        whole_volumes,
        ..CheckOptions::default()
    };
    let recorder = Recorder::new();
    check(&scene.archive(), &options, &recorder).unwrap();
    recorder.damage_texts()
}

/// Extracts everything; returns what failed, and how many members did not.
fn extracted(scene: &Scene, name: &str) -> (BTreeSet<String>, u64) {
    let recorder = Recorder::new();
    let into = scene.beside(name);
    let report = extract(
        &scene.archive(),
        &into,
        &ExtractOptions::default(),
        &recorder,
    );
    let written = report.unwrap().written;
    (recorder.failed_paths().into_iter().collect(), written)
}

#[test]
fn a_flipped_byte_costs_the_members_of_its_frame_and_no_other() {
    let scene = archived(300);
    let frames = frames(&scene.archive());
    let number = crowded(&scene, &frames)[1];
    let (frame, next) = (frames[number], frames[number + 1]);
    let middle = usize::try_from(frame.stored.midpoint(next.stored)).unwrap();
    change(&scene, |bytes| bytes[middle] ^= 0x10);
    let lost = names_in(&scene.archive(), frame.offset..next.offset);
    assert!(lost.len() > 10 && lost.len() < 250, "{}", lost.len());
    let told = checked(&scene, false);
    assert_eq!(told.len(), lost.len());
    for text in &told {
        let is_named = lost.iter().any(|name| text.contains(name.as_str()));
        let place = format!(
            "the frame at byte {} of the file 000000.tar.zst",
            frame.stored
        );
        assert!(is_named && text.contains(&place), "{text}");
    }
    let all = names_in(&scene.archive(), 0..u64::MAX).len() as u64;
    let (failed, written) = extracted(&scene, "out");
    assert_eq!((&failed, written), (&lost, all - lost.len() as u64));
    let name = lost.iter().next().unwrap();
    let refused = cat(
        &scene.archive(),
        name.as_bytes(),
        AsOf::Now,
        &mut Vec::new(),
    );
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains(name.as_str()) && text.contains("the frame at byte"),
        "{text}"
    );
}

#[test]
fn every_change_of_a_byte_is_seen_and_content_is_never_wrong() {
    let scene = archived(40);
    let mut random = Random::new(3);
    let len = fs::metadata(volume(&scene)).unwrap().len();
    for round in 0..60 {
        let at = if round < 30 {
            random.index(usize::try_from(len).unwrap())
        } else {
            // In the seek table.
            usize::try_from(len).unwrap() - 1 - random.index(300)
        };
        let bit = 1 << random.index(8);
        let before = change(&scene, |bytes| bytes[at] ^= bit);
        assert_ne!(checked(&scene, true), [""; 0], "byte {at} of {len}");
        let into = scene.beside(&format!("out-{round}"));
        let _ = extract(
            &scene.archive(),
            &into,
            &ExtractOptions::default(),
            &Recorder::new(),
        );
        for name in names_in(&scene.archive(), 0..u64::MAX) {
            let (found, source) = (into.join(&name), scene.path(&name));
            if found.is_file() {
                assert!(
                    fs::read(&found).unwrap() == fs::read(&source).unwrap(),
                    "{name}"
                );
            }
        }
        change(&scene, |bytes| *bytes = before);
        stook_testkit::remove_tree(&into).unwrap();
    }
    assert_eq!(checked(&scene, true), [""; 0]);
}

#[test]
fn a_volume_that_was_cut_off_gives_what_it_has() {
    let scene = archived(300);
    let frames = frames(&scene.archive());
    let kept = frames[frames.len() / 2];
    let end = usize::try_from(kept.stored).unwrap() + 100;
    change(&scene, |bytes| bytes.truncate(end));
    let lost = names_in(&scene.archive(), kept.offset..u64::MAX);
    let told = checked(&scene, false);
    assert!(
        told.iter().any(|text| text.contains("000000.tar.zst")),
        "{told:?}"
    );
    for name in &lost {
        assert!(
            told.iter().any(|text| text.contains(name.as_str())),
            "{name}"
        );
    }
    let all = names_in(&scene.archive(), 0..u64::MAX).len() as u64;
    let (failed, written) = extracted(&scene, "out");
    assert!(failed.is_superset(&lost), "{failed:?}");
    // A large member may begin in front of the end, and go on behind it.
    assert!(failed.len() <= lost.len() + 1);
    assert_eq!(written, all - failed.len() as u64);
    // The same from the volume alone.
    fs::remove_file(scene.archive().join("index.db")).unwrap();
    let recorder = Recorder::new();
    let report = reindex(&scene.archive(), Jobs::Fixed(2), &recorder).unwrap();
    assert!(report.damages > 0);
    assert!(
        report.members >= written && report.members <= all,
        "{}",
        report.members
    );
    let (failed, _) = extracted(&scene, "again");
    assert_eq!(failed, BTreeSet::new());
}

#[test]
fn reindex_finds_its_way_past_damaged_frames() {
    let scene = archived(300);
    let frames = frames(&scene.archive());
    let crowded = crowded(&scene, &frames);
    let bad = [crowded[0], crowded[2]];
    let mut lost = BTreeSet::new();
    for number in bad {
        let (frame, next) = (frames[number], frames[number + 1]);
        lost.extend(names_in(&scene.archive(), frame.offset..next.offset));
        let at = usize::try_from(frame.stored).unwrap() + 200;
        change(&scene, |bytes| bytes[at] ^= 1);
    }
    let all = names_in(&scene.archive(), 0..u64::MAX);
    fs::remove_file(scene.archive().join("index.db")).unwrap();
    let recorder = Recorder::new();
    reindex(&scene.archive(), Jobs::Fixed(2), &recorder).unwrap();
    assert!(recorder.damage_texts().len() >= bad.len());
    let found = names_in(&scene.archive(), 0..u64::MAX);
    let expected: BTreeSet<String> = all.difference(&lost).cloned().collect();
    assert_eq!(found, expected);
}

#[test]
fn tables_that_lie_are_bounded_and_damage_only_what_they_say() {
    let scene = archived(100);
    let honest = frames(&scene.archive());
    let all = names_in(&scene.archive(), 0..u64::MAX);
    let middle = honest.len() / 2;
    let last = honest.len() - 1;
    let lies: [fn(&mut Vec<Frame>, usize, usize); 6] = [
        |frames, middle, _| frames[middle].stored += 1,
        |frames, middle, _| frames[middle].offset += 512,
        |frames, middle, _| {
            frames.remove(middle);
        },
        |frames, _, last| frames[last].stored = u64::from(u32::MAX) << 20,
        |frames, _, last| frames[last].offset += 1 << 40,
        |frames, _, _| frames.truncate(1),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let mut frames = honest.clone();
        lie(&mut frames, middle, last);
        set_frames(&scene, &frames);
        // Nothing panics, and nothing is given out that is not so.
        assert!(checked(&scene, false).len() > 1, "lie {number}");
        let (failed, written) = extracted(&scene, &format!("out-{number}"));
        assert_eq!(failed.len() as u64 + written, all.len() as u64);
        for name in all.difference(&failed) {
            let found = scene.beside(&format!("out-{number}")).join(name);
            if found.is_file() {
                let expected = fs::read(scene.path(name)).unwrap();
                assert!(fs::read(found).unwrap() == expected, "lie {number}: {name}");
            }
        }
    }
    set_frames(&scene, &honest);
    let told = checked(&scene, true);
    assert!(
        told.len() == 1 && told[0].contains("stook_witnesses"),
        "{told:?}"
    );
}

/// Writes other frames into the index, with their right CRC.
fn set_frames(scene: &Scene, frames: &[Frame]) {
    let block = encode_frames(frames).remove(0);
    let numbers = [0, block.first(), block.entries()].map(u64::to_le_bytes);
    let crc = stook_volume::crc32(&[&numbers.concat(), block.data()]);
    let data: String = block
        .data()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // Without the witness, which would be a damage of its own whatever the frames say.
    let sql = format!(
        "UPDATE stook_frames SET entries = {}, crc = {crc}, data = x'{data}' WHERE volume = 0;
         DELETE FROM stook_witnesses WHERE name = 'stook_frames'",
        block.entries(),
    );
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.commit()";
    let path = scene.archive().join("index.db");
    crate::scene::python(script, &[&path, Path::new(&sql)]);
}
