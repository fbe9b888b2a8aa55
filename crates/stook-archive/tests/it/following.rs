//! Symbolic links that are followed, and an archive that lies in its own source.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use stook_archive::{ArchiveError, AsOf, Dialect, DiffOptions, WriteOptions, create};
use stook_sys::Links;
use stook_testkit::{Compare, Kind, Tree, tree};

use crate::by_path::{diff, update};
use crate::recorder::Recorder;
use crate::scene::{Scene, all_facts, content, names, options};

fn following() -> WriteOptions {
    WriteOptions {
        links: Links::Follow,
        ..options()
    }
}

/// A source with links to a file, to a directory, and to a link to a directory, all outside of it.
fn linked() -> Tree {
    tree! {
        "file" => file(b"in the tree"),
        "to-file" => symlink("../outside/target"),
        "to-dir" => symlink("../outside/dir").mtime(1_400_000_000, 0),
        "to-link" => symlink("../outside/other-way").mtime(1_400_000_000, 0),
        "inside" => symlink("file"),
    }
}

fn outside() -> Tree {
    tree! {
        "target" => file(b"outside").mode(0o600).mtime(1_500_000_000, 7_000),
        "dir/a" => file(b"a"),
        "dir/b/c" => file(vec![b'c'; 5 << 20]),
        "dir/empty/" => dir(),
        "other-way" => symlink("dir/b"),
    }
}

#[test]
fn d05_followed_links_bring_what_they_lead_to() {
    for dialect in [Dialect::Stook, Dialect::Zstash] {
        let scene = Scene::new(&linked());
        outside().write(&scene.beside("outside")).unwrap();
        let options = WriteOptions {
            dialect,
            ..following()
        };
        let recorder = Recorder::new();
        let report = scene.create_with(&options, &recorder);
        assert_eq!(recorder.failure_texts(), [""; 0]);
        scene.assert_clean();
        let expected = tree! {
            "file" => file(b"in the tree"),
            "inside" => file(b"in the tree"),
            "to-file" => file(b"outside").mode(0o600).mtime(1_500_000_000, 7_000),
            "to-dir/a" => file(b"a"),
            "to-dir/b/c" => file(vec![b'c'; 5 << 20]),
            "to-dir/empty/" => dir(),
            "to-link/c" => file(vec![b'c'; 5 << 20]),
        };
        let expected = Scene::new(&expected).snapshot();
        let compare = match dialect {
            Dialect::Stook => all_facts(),
            Dialect::Zstash => Compare::everything().mtime_tolerance_ns(1000),
        };
        let difference = expected.difference(&scene.extract(AsOf::Now), &compare);
        assert_eq!(difference, [""; 0]);

        // Followed links that lead to the same things are not archived again.
        let again = scene.update_with(&options, &Recorder::new());
        assert_eq!((again.members, again.deleted), (0, 0));
        assert_eq!(again.unchanged, report.members);
    }
}

#[test]
fn d05_a_change_behind_a_followed_link_is_found() {
    let scene = Scene::new(&linked());
    outside().write(&scene.beside("outside")).unwrap();
    scene.create_with(&following(), &Recorder::new());
    fs::write(scene.beside("outside/target"), b"changed").unwrap();
    fs::write(scene.beside("outside/dir/b/new"), b"new").unwrap();
    let report = scene.update_with(&following(), &Recorder::new());
    // Both ways to the new file, and to its directory.
    assert_eq!(report.members, 5);
    assert_eq!(content(&scene, "to-file"), b"changed");
    assert_eq!(content(&scene, "to-dir/b/new"), b"new");
    assert_eq!(content(&scene, "to-link/new"), b"new");
    fs::remove_file(scene.path("to-dir")).unwrap();
    let report = scene.update_with(&following(), &Recorder::new());
    assert_eq!((report.members, report.deleted), (0, 6));
    scene.assert_clean();
}

#[test]
fn d05_loops_and_broken_links_are_named_failures_and_the_rest_is_archived() {
    let scene = Scene::new(&Tree::loops());
    scene.lay(&tree! {"broken" => symlink("nowhere"), "sound" => file(b"sound")});
    let failing = [
        "below-self",
        "broken",
        "dir/here",
        "dir/sub/root",
        "dir/up",
        "ping",
        "pong",
        "self",
    ];
    let recorder = Recorder::new();
    let report = scene.create_with(&following(), &recorder);
    assert_eq!(recorder.failed_paths(), failing);
    assert_eq!(report.failed, failing.len() as u64);
    let looped = "cannot follow `dir/up`: the link leads to a directory above itself";
    assert!(recorder.failure_texts().contains(&looped.to_owned()));
    let expected = ["sound", "dir", "dir/sub", "dir/sub/file"];
    assert_eq!(names(&scene.archive(), AsOf::Now, false), expected);
    scene.assert_clean();
    let report = scene.update_with(&following(), &Recorder::new());
    assert_eq!((report.members, report.deleted), (0, 0));
    assert_eq!(report.failed, failing.len() as u64);
}

#[test]
fn a_link_that_breaks_does_not_delete_what_was_behind_it() {
    let scene = Scene::new(&linked());
    outside().write(&scene.beside("outside")).unwrap();
    scene.create_with(&following(), &Recorder::new());
    fs::rename(scene.beside("outside"), scene.beside("away")).unwrap();
    let recorder = Recorder::new();
    let report = scene.update_with(&following(), &recorder);
    assert_eq!(recorder.failed_paths(), ["to-dir", "to-file", "to-link"]);
    assert_eq!((report.members, report.deleted), (0, 0));
    assert_eq!(content(&scene, "to-file"), b"outside");
}

#[test]
fn the_archive_is_left_out_behind_a_followed_link_too() {
    let scene = Scene::new(
        &tree! {"f" => file(b"f"), "out" => symlink("../beside"), "direct" => symlink("../archive")},
    );
    fs::create_dir(scene.beside("beside")).unwrap();
    symlink(scene.archive(), scene.beside("beside/archive")).unwrap();
    for members in [2, 0] {
        let recorder = Recorder::new();
        let report = if members > 0 {
            scene.create_with(&following(), &recorder)
        } else {
            scene.update_with(&following(), &recorder)
        };
        assert_eq!(recorder.failure_texts(), [""; 0]);
        assert_eq!(report.members, members);
    }
    assert_eq!(names(&scene.archive(), AsOf::Now, false), ["f", "out"]);
}

#[test]
fn links_that_were_stored_and_then_are_followed_turn_into_what_they_lead_to() {
    let scene = Scene::new(&linked());
    outside().write(&scene.beside("outside")).unwrap();
    scene.create_with(&options(), &Recorder::new());
    assert_eq!(
        scene.extract(AsOf::Now).get("to-dir").unwrap().kind,
        Kind::Symlink
    );
    scene.update_with(&following(), &Recorder::new());
    let extracted = scene.extract(AsOf::Now);
    assert_eq!(extracted.get("to-dir/a").unwrap().size, 1);
    assert_eq!(extracted.get("to-file").unwrap().kind, Kind::File);
    let options = DiffOptions {
        links: Links::Follow,
        ..DiffOptions::default()
    };
    let report = diff(scene.source(), &scene.archive(), &options, &Recorder::new()).unwrap();
    assert_eq!(report.differences, []);
    // And back.
    scene.update();
    scene.assert_extracts_to_source();
}

/// The path, counted from the working directory, which no test changes.
fn relative(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap();
    let up = here.components().skip(1).map(|_| "..");
    up.collect::<PathBuf>()
        .join(path.strip_prefix("/").unwrap())
}

#[test]
fn d11_the_archive_in_its_source_is_left_out_however_it_is_spelled() {
    let tree = tree! {"f" => file(b"f"), "sub/g" => file(b"g")};
    for spelling in 0..6 {
        let scene = Scene::new(&tree);
        let source = scene.source();
        std::os::unix::fs::symlink(source, scene.beside("to-source")).unwrap();
        let archive = match spelling {
            0 => source.join("sub/archive"),
            1 => source.join("./sub//archive/"),
            2 => source.join("sub/../sub/archive"),
            3 => scene.beside("to-source").join("sub/archive"),
            4 => relative(&source.join("sub/archive")),
            _ => relative(source).join("./sub/./archive"),
        };
        for source in [
            source.to_owned(),
            relative(source),
            scene.beside("to-source"),
        ] {
            let report = if source == scene.source() {
                create(&source, &archive, &options(), &Recorder::new()).unwrap()
            } else {
                update(&source, &archive, &options(), &Recorder::new()).unwrap()
            };
            let is_first = source == scene.source();
            assert_eq!(report.members, if is_first { 3 } else { 0 }, "{spelling}");
            assert_eq!(report.failed, 0, "{spelling}");
        }
        fs::write(scene.path("h"), b"h").unwrap();
        let report = update(scene.source(), &archive, &options(), &Recorder::new()).unwrap();
        assert_eq!((report.members, report.deleted), (1, 0), "{spelling}");
        let expected = ["f", "sub", "sub/g", "h"];
        assert_eq!(names(&archive, AsOf::Now, false), expected, "{spelling}");
    }
}

#[test]
fn a_tree_is_not_archived_into_itself() {
    let scene = Scene::new(&tree! {"f" => file(b"f")});
    let before = scene.snapshot();
    for archive in [
        scene.source().to_owned(),
        scene.source().join("."),
        relative(scene.source()),
    ] {
        let result = create(scene.source(), &archive, &options(), &Recorder::new());
        assert!(matches!(result, Err(ArchiveError::IntoItself { .. })));
    }
    let difference = before.difference(&scene.snapshot(), &Compare::everything());
    assert_eq!(difference, [""; 0]);
}
