//! D1, D4, D5, D6, D7: every member has the right bytes, whatever its name and whatever happens beside it.

use std::fs;

use stook_archive::{AsOf, ExtractOptions, WriteOptions};
use stook_sys::Links;
use stook_testkit::{Random, Tree, tree};

use crate::by_path::cat;
use crate::folder::{all_rows, as_zstash, bytes_in, extract_to, newest_rows, only};
use crate::recorder::Recorder;
use crate::scene::{Scene, content, names, options, python};

fn linked_tree() -> Tree {
    tree! {
        "a.txt" => file(b"the old content\n"),
        "hard.txt" => hardlink("a.txt"),
        "sub/third.txt" => hardlink("a.txt"),
    }
}

/// Extracts twice into one folder, and each name alone: always the right content.
fn assert_contents(scene: &Scene, expected: &[(&str, &str)]) {
    scene.assert_clean();
    for round in ["first", "first", "second"] {
        let into = scene.beside(round);
        let (_, recorder) = extract_to(&scene.archive(), &into, &ExtractOptions::default());
        assert_eq!(recorder.failure_texts(), [""; 0]);
        for (name, content) in expected {
            assert_eq!(
                fs::read_to_string(into.join(name)).unwrap(),
                *content,
                "{name}"
            );
        }
    }
    for (number, (name, content)) in expected.iter().enumerate() {
        let into = scene.beside(&format!("alone-{number}"));
        let (report, recorder) = extract_to(&scene.archive(), &into, &only(name));
        assert_eq!((report.written, recorder.failures().len()), (1, 0));
        assert_eq!(fs::read_to_string(into.join(name)).unwrap(), *content);
    }
}

/// Replaces the first name of a hard-linked file, so that the others keep the old content.
fn replace(scene: &Scene, name: &str, content: &str) {
    fs::remove_file(scene.path(name)).unwrap();
    fs::write(scene.path(name), content).unwrap();
}

#[test]
fn d01_a_hard_link_keeps_its_bytes_when_the_first_name_gets_others() {
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&linked_tree());
        scene.create_with(&dialect, &Recorder::new());
        replace(&scene, "a.txt", "new content, longer than the old one\n");
        scene.update_with(&dialect, &Recorder::new());
        let old = "the old content\n";
        assert_contents(
            &scene,
            &[
                ("a.txt", "new content, longer than the old one\n"),
                ("hard.txt", old),
                ("sub/third.txt", old),
            ],
        );
    }
}

/// The hardest case: the new file has the size, the time and the mode of the old one.
#[test]
fn d01_a_hard_link_is_not_made_to_a_file_that_only_looks_the_same() {
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&linked_tree());
        scene.create_with(&dialect, &Recorder::new());
        scene.lay(&tree! { "a.txt" => file(b"the new content\n") });
        let thorough = WriteOptions {
            compare_content: true,
            ..dialect
        };
        let report = scene.update_with(&thorough, &Recorder::new());
        assert_eq!(report.members, 1);
        let (new, old) = ("the new content\n", "the old content\n");
        assert_contents(
            &scene,
            &[("a.txt", new), ("hard.txt", old), ("sub/third.txt", old)],
        );
    }
}

#[test]
fn d01_hard_links_are_links_again_after_extraction() {
    let scene = Scene::new(&linked_tree());
    scene.create();
    let extracted = scene.extract(AsOf::Now);
    for name in ["a.txt", "hard.txt", "sub/third.txt"] {
        let first = extracted.get(name).unwrap().first_link.clone();
        assert_eq!(first.as_deref(), Some(&b"a.txt"[..]));
    }
}

/// Small files share a batch, large ones are streamed: either leaves no trace when it shrinks.
#[test]
fn d04_a_file_that_shrinks_leaves_no_trace() {
    for dialect in [options(), as_zstash()] {
        for size in [100_000, 9 << 20] {
            let scene = Scene::new(&Tree::basic());
            fs::write(scene.path("b-shrinks"), Random::new(1).bytes(size)).unwrap();
            let path = scene.path("b-shrinks");
            let recorder = Recorder::at_phase("archive", || {
                let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(size as u64 - 20_000).unwrap();
            });
            let report = scene.create_with(&dialect, &recorder);
            assert_eq!(report.failed, 1);
            assert_eq!(recorder.failed_paths(), ["b-shrinks"]);
            scene.assert_clean();
            assert!(!names(&scene.archive(), AsOf::Now, true).contains(&"b-shrinks".to_owned()));
            let mut expected = scene.snapshot();
            expected.retain(|path, _| path != b"b-shrinks");
            let facts = stook_testkit::Compare::zstash();
            assert_eq!(
                expected.difference(&scene.extract(AsOf::Now), &facts),
                [""; 0]
            );
            let report = scene.update_with(&dialect, &Recorder::new());
            assert_eq!((report.members, report.failed), (1, 0));
            assert_eq!(content(&scene, "b-shrinks").len(), size - 20_000);
            scene.assert_clean();
        }
    }
}

#[test]
fn d05_followed_links_bring_their_content_once() {
    let scene = Scene::new(&tree! {
        "dir/a" => file(b"a"),
        "dir/sub/b" => file(b"b"),
        "link" => symlink("dir"),
        "to-file" => symlink("dir/a"),
    });
    for follow in [options(), as_zstash()] {
        let follow = WriteOptions {
            links: Links::Follow,
            ..follow
        };
        stook_testkit::remove_tree(&scene.archive()).unwrap();
        scene.create_with(&follow, &Recorder::new());
        scene.assert_clean();
        for (name, expected) in [("link/a", "a"), ("link/sub/b", "b"), ("to-file", "a")] {
            assert_eq!(content(&scene, name), expected.as_bytes(), "{name}");
        }
        let before = bytes_in(&scene.archive());
        let report = scene.update_with(&follow, &Recorder::new());
        assert_eq!((report.members, report.volumes), (0, 0));
        assert!(bytes_in(&scene.archive()) == before);
    }
}

/// One name that is not UTF-8: zstash ends with a volume that the index says nothing about.
#[test]
fn d06_a_name_that_is_not_utf_8_is_archived_like_any_other() {
    for dialect in [options(), as_zstash()] {
        let name = &b"latin1-\xe9"[..];
        let scene = Scene::new(&tree! {
            name => file(b"e acute"),
            "latin1-%E9" => file(b"looks like the escaped name"),
            "other" => file(b"other"),
        });
        scene.create_with(&dialect, &Recorder::new());
        scene.assert_clean();
        let found: Vec<Vec<u8>> = newest_rows(&scene.archive())
            .into_iter()
            .map(|row| row.name)
            .collect();
        assert_eq!(found, [b"latin1-%E9", name, b"other"]);
        let mut bytes = Vec::new();
        cat(&scene.archive(), name, AsOf::Now, &mut bytes).unwrap();
        assert_eq!(bytes, b"e acute");
        let extracted = scene.extract(AsOf::Now);
        assert_eq!(extracted.len(), 3);
        assert!(extracted.get(name).is_some());
        assert_eq!(scene.update_with(&dialect, &Recorder::new()).members, 0);
        let script = "import sqlite3, sys; print(*(row[0] for row in sqlite3.connect(sys.argv[1]).execute('select name from files order by id')))";
        if let Some(names) = python(script, &[&scene.archive().join("index.db")]) {
            assert_eq!(names.split_whitespace().count(), 3, "{names}");
        }
    }
}

#[test]
fn d07_a_socket_is_skipped_by_name_and_a_file_that_vanishes_is_a_failure() {
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&tree! {
            "a" => file(b"a"),
            "socket" => socket(),
            "vanishes" => file(b"gone before it is read"),
            "z" => file(b"z"),
        });
        let vanishes = scene.path("vanishes");
        let recorder = Recorder::at_phase("archive", || fs::remove_file(&vanishes).unwrap());
        let report = scene.create_with(&dialect, &recorder);
        assert_eq!((report.members, report.failed), (2, 1));
        assert_eq!(recorder.skipped(), ["socket: it is a socket"]);
        assert_eq!(recorder.failed_paths(), ["vanishes"]);
        scene.assert_clean();
        assert_eq!(names(&scene.archive(), AsOf::Now, true), ["a", "z"]);
        assert_eq!(all_rows(&scene.archive()).len(), 2);
    }
}
