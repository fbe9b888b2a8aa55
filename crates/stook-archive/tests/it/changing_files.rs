//! A source that changes between the survey and the read: a named failure, and every other byte right.
//!
//! The change is made when the phase "archive" begins: the survey is over, nothing has been read.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use stook_archive::{AsOf, Dialect, Jobs, WriteOptions};
use stook_testkit::{Compare, Directories, Fact, Tree, tree};

use crate::by_path::runs;
use crate::recorder::Recorder;
use crate::scene::{Scene, all_facts, as_ordinary_user, options};

/// More than goes into one slice, and not a whole number of blocks.
const LARGE: usize = (5 << 20) + 77;

/// Bytes without a period that fits a block.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251).to_le_bytes()[0]).collect()
}

/// A file to be changed, between others: in the same batch, before and after it.
fn tree_with(victim: &[u8]) -> Tree {
    let mut tree = tree! {
        "a-first" => file(bytes(700)),
        "d/before" => file(bytes(70_000)),
        "d/victim" => file(victim),
        "d/victim.after" => file(bytes(513)),
        "e/large" => file(bytes((4 << 20) + 1)),
        "z-last" => symlink("a-first"),
        "z/last" => file(b"the end"),
    };
    for number in 0..50 {
        tree.insert(format!("many/{number}"), stook_testkit::file(bytes(number)));
    }
    tree
}

/// How a failing member is archived.
fn ways() -> impl Iterator<Item = (WriteOptions, Compare)> {
    let zstash = Compare::zstash();
    let stook = all_facts().without(Fact::DirectoryMtime);
    [
        (1, Dialect::Stook),
        (3, Dialect::Stook),
        (2, Dialect::Zstash),
    ]
    .into_iter()
    .map(move |(jobs, dialect)| {
        let is_stook = dialect == Dialect::Stook;
        let options = WriteOptions {
            jobs: Jobs::Fixed(jobs),
            dialect,
            directories: is_stook,
            ..WriteOptions::default()
        };
        (
            options,
            if is_stook {
                stook.clone()
            } else {
                zstash.clone()
            },
        )
    })
}

/// Archives the tree while `change` is made to `d/victim`, and expects exactly that file to fail.
fn expect_failure(victim: &[u8], change: fn(&Path), text: &str) {
    for (options, compare) in ways() {
        let scene = Scene::new(&tree_with(victim));
        let recorder = Recorder::at_phase("archive", || change(&scene.path("d/victim")));
        let report = scene.create_with(&options, &recorder);
        assert_eq!(recorder.failure_texts(), [text]);
        assert_eq!(report.failed, 1);
        assert_eq!(report.members + 1, report.entries);
        assert_eq!(runs(&scene.archive()).unwrap()[0].failed, 1);
        let checked = scene.assert_clean();
        assert_eq!(checked.members, report.members);
        assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);

        let mut expected = scene.snapshot();
        expected.retain(|path, _| path != b"d/victim");
        let difference = expected.difference(&scene.extract(AsOf::Now), &compare);
        assert_eq!(difference, [""; 0]);

        // The next update takes it.
        let second = Recorder::new();
        let report = scene.update_with(&options, &second);
        assert_eq!(second.failure_texts(), [""; 0]);
        assert_eq!(report.failed, 0);
        scene.assert_clean();
        let difference = scene
            .snapshot()
            .difference(&scene.extract(AsOf::Now), &compare);
        assert_eq!(difference, [""; 0]);
    }
}

fn set_len(path: &Path, len: u64) {
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(len)
        .unwrap();
}

#[test]
fn d04_a_file_that_shrinks_leaves_no_trace() {
    let text = "cannot read `d/victim`: it shrank while it was read";
    expect_failure(&bytes(40_000), |path| set_len(path, 20_001), text);
    expect_failure(&bytes(40_000), |path| set_len(path, 0), text);
}

#[test]
fn d04_a_large_file_that_shrinks_is_taken_back_out_of_the_volume() {
    let text = "cannot read `d/victim`: it shrank while it was read";
    expect_failure(&bytes(LARGE), |path| set_len(path, (4 << 20) + 5), text);
    expect_failure(&bytes(LARGE), |path| set_len(path, 10), text);
}

#[test]
fn d04_a_file_that_grows_leaves_no_trace() {
    let text = "cannot archive `d/victim`: it grew from 600 to 50000 bytes while it was archived";
    expect_failure(
        &bytes(600),
        |path| fs::write(path, bytes(50_000)).unwrap(),
        text,
    );
    let text = "cannot archive `d/victim`: it grew from 0 to 1 bytes while it was archived";
    expect_failure(b"", |path| fs::write(path, b"1").unwrap(), text);
}

#[test]
fn d04_a_large_file_that_grows_is_taken_back_out_of_the_volume() {
    let text =
        "cannot archive `d/victim`: it grew from 5242957 to 5242958 bytes while it was archived";
    expect_failure(&bytes(LARGE), |path| set_len(path, LARGE as u64 + 1), text);
}

#[test]
fn d07_a_file_that_vanishes_is_a_named_failure() {
    let text = "cannot open `d/victim`: no such file or directory";
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    expect_failure(&bytes(300), remove, text);
    expect_failure(&bytes(LARGE), remove, text);
}

#[test]
fn a_file_that_changes_its_time_is_a_named_failure() {
    fn touch(path: &Path) {
        let file = File::options().write(true).open(path).unwrap();
        // One microsecond past the time that the tree gives.
        let time = UNIX_EPOCH + Duration::new(1_600_000_000, 123_457_789);
        file.set_modified(time).unwrap();
    }
    let text = "cannot archive `d/victim`: it changed while it was archived";
    expect_failure(&bytes(300), touch, text);
    expect_failure(&bytes(LARGE), touch, text);
}

#[test]
fn a_file_of_the_same_size_and_time_in_its_place_is_a_named_failure() {
    fn replace(path: &Path) {
        let time = fs::metadata(path).unwrap().modified().unwrap();
        let len = usize::try_from(fs::metadata(path).unwrap().len()).unwrap();
        let other = path.with_extension("new");
        fs::write(&other, vec![b'x'; len]).unwrap();
        let file = File::options().write(true).open(&other).unwrap();
        file.set_modified(time).unwrap();
        fs::rename(&other, path).unwrap();
    }
    let scene = Scene::new(&tree_with(&bytes(300)));
    let recorder = Recorder::at_phase("archive", || replace(&scene.path("d/victim")));
    let report = scene.create_with(&options(), &recorder);
    let text = "cannot archive `d/victim`: another file took its place while it was archived";
    assert_eq!(recorder.failure_texts(), [text]);
    assert_eq!(report.failed, 1);
    scene.assert_clean();
    scene.update();
    scene.assert_extracts_to_source();
}

#[test]
fn something_else_in_the_place_of_a_file_is_a_named_failure_and_blocks_nothing() {
    fn fifo(path: &Path) {
        fs::remove_file(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let parent = stook_sys::Directory::open(path.parent().unwrap()).unwrap();
        parent
            .create_node(name.as_bytes(), stook_sys::FileKind::Fifo, (0, 0))
            .unwrap();
    }
    fn link(path: &Path) {
        fs::remove_file(path).unwrap();
        symlink("before", path).unwrap();
    }
    fn directory(path: &Path) {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }
    for (change, len) in [fifo, link, directory]
        .into_iter()
        .flat_map(|change| [(change, 0), (change, 300), (change, LARGE)])
    {
        let scene = Scene::new(&tree_with(&bytes(len)));
        let recorder = Recorder::at_phase("archive", || change(&scene.path("d/victim")));
        let report = scene.create_with(&options(), &recorder);
        let text = "cannot archive `d/victim`: another file took its place while it was archived";
        assert_eq!(recorder.failure_texts(), [text]);
        assert_eq!(report.failed, 1);
        scene.assert_clean();
        scene.update();
        scene.assert_extracts_to_source();
    }
}

#[test]
fn a_link_that_is_replaced_is_never_archived_with_a_mixture_of_old_and_new() {
    let scene = Scene::new(&tree! {
        "gone" => symlink("somewhere"),
        "now-a-file" => symlink("somewhere"),
        "other" => file(b"other"),
    });
    let recorder = Recorder::at_phase("archive", || {
        fs::remove_file(scene.path("gone")).unwrap();
        fs::remove_file(scene.path("now-a-file")).unwrap();
        fs::write(scene.path("now-a-file"), b"file").unwrap();
    });
    let report = scene.create_with(&options(), &recorder);
    let texts = [
        "cannot archive `now-a-file`: another file took its place while it was archived",
        "cannot read `gone`: no such file or directory",
    ];
    let mut told = recorder.failure_texts();
    told.sort();
    assert_eq!(told, texts);
    assert_eq!((report.failed, report.members), (2, 1));
    scene.update();
    scene.assert_extracts_to_source();
}

#[test]
fn a_directory_swapped_for_a_link_gives_nothing_from_outside() {
    let scene = Scene::new(&tree_with(&bytes(300)));
    let outside = scene.beside("outside");
    let recorder = Recorder::at_phase("archive", || {
        tree! {"victim" => file(b"secret"), "before" => file(b"secret")}
            .write(&outside)
            .unwrap();
        fs::rename(scene.path("d"), scene.beside("d-was-here")).unwrap();
        symlink(&outside, scene.path("d")).unwrap();
    });
    let report = scene.create_with(&options(), &recorder);
    let lost = ["d", "d/before", "d/victim", "d/victim.after"];
    assert_eq!(recorder.failed_paths(), lost);
    assert_eq!(report.failed, 4);
    scene.assert_clean();
    assert!(scene.extract(AsOf::Now).get("d").is_none());
    scene.update();
    scene.assert_extracts_to_source();
}

#[test]
fn hard_links_survive_the_loss_of_their_first_name() {
    for (options, compare) in ways() {
        for len in [500, LARGE] {
            let scene = Scene::new(&tree! {
                "a" => file(bytes(len)),
                "b" => hardlink("a"),
                "c/d" => hardlink("a"),
                "other" => file(b"other"),
            });
            let recorder = Recorder::at_phase("archive", || {
                fs::remove_file(scene.path("a")).unwrap();
            });
            scene.create_with(&options, &recorder);
            assert_eq!(recorder.failed_paths(), ["a"]);
            scene.assert_clean();
            let difference = scene
                .snapshot()
                .difference(&scene.extract(AsOf::Now), &compare);
            assert_eq!(difference, [""; 0]);
        }
    }
}

#[test]
fn no_volume_is_left_when_every_file_of_it_fails() {
    for len in [100, LARGE] {
        let scene = Scene::new(&tree! {"a" => file(bytes(len)), "b" => file(bytes(len + 1))});
        let recorder = Recorder::at_phase("archive", || {
            set_len(&scene.path("a"), len as u64 - 1);
            set_len(&scene.path("b"), len as u64);
        });
        let report = scene.create_with(&options(), &recorder);
        assert_eq!(recorder.failed_paths(), ["a", "b"]);
        assert_eq!((report.members, report.volumes, report.bytes), (0, 0, 0));
        assert_eq!(scene.archive_files(), ["index.db"]);
        assert_eq!(scene.update().volumes, 1);
        assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);
        scene.assert_extracts_to_source();
    }
}

#[test]
fn a_failure_at_the_cut_between_volumes_shifts_nothing() {
    let mut tree = Tree::new();
    for number in 0..40 {
        tree.insert(
            format!("f{number:02}"),
            stook_testkit::file(bytes(3000 + number)),
        );
    }
    for victims in [vec![2], vec![3], vec![4], vec![0, 39], (0..39).collect()] {
        let scene = Scene::new(&tree);
        let paths: Vec<String> = victims.iter().map(|n| format!("f{n:02}")).collect();
        let recorder = Recorder::at_phase("archive", || {
            for path in &paths {
                set_len(&scene.path(path), 0);
            }
        });
        let options = WriteOptions {
            volume_bytes: Some(20 << 10),
            ..options()
        };
        let report = scene.create_with(&options, &recorder);
        assert_eq!(recorder.failed_paths(), paths);
        assert_eq!(report.members, 40 - paths.len() as u64);
        scene.assert_clean();
        // Volumes have their numbers from the plan: one without members is just not there.
        let survivors = (0..40).filter(|number| !victims.contains(number));
        let volumes: BTreeSet<usize> = survivors.map(|number| number / 4).collect();
        let names = volumes.iter().map(|volume| format!("{volume:06x}.tar"));
        let names: Vec<String> = names.chain(["index.db".to_owned()]).collect();
        assert_eq!(
            (report.volumes, scene.archive_files()),
            (volumes.len() as u64, names)
        );
        scene.update();
        scene.assert_clean();
        scene.assert_extracts_to_source();
    }
}

#[test]
fn d07_a_socket_is_named_as_skipped_and_is_no_failure() {
    let scene = Scene::new(&tree! {"d/socket" => socket(), "d/file" => file(b"1")});
    let recorder = Recorder::new();
    let report = scene.create_with(&options(), &recorder);
    assert_eq!(recorder.skipped(), ["d/socket: it is a socket"]);
    assert_eq!((report.failed, report.members), (0, 2));
    let names: Vec<Vec<u8>> = scene
        .extract(AsOf::Now)
        .entries()
        .map(|(path, _)| path.to_vec())
        .collect();
    assert_eq!(names, [&b"d"[..], b"d/file"]);
    assert_eq!(scene.update().members, 0);
}

#[test]
fn d12_an_unreadable_file_is_a_named_failure_each_time_and_blocks_nothing() {
    let name =
        "changing_files::d12_an_unreadable_file_is_a_named_failure_each_time_and_blocks_nothing";
    as_ordinary_user(name, || {
        let scene = Scene::new(&tree_with(&bytes(300)));
        let set_mode = |mode| {
            fs::set_permissions(scene.path("d/victim"), fs::Permissions::from_mode(mode)).unwrap();
        };
        set_mode(0);
        let text = "cannot open `d/victim`: permission denied";
        let recorder = Recorder::new();
        scene.create_with(&options(), &recorder);
        assert_eq!(recorder.failure_texts(), [text]);
        for round in 1..4 {
            let recorder = Recorder::new();
            let report = scene.update_with(&options(), &recorder);
            assert_eq!(recorder.failure_texts(), [text]);
            assert_eq!((report.failed, report.members, report.volumes), (1, 0, 0));
            assert_eq!(scene.archive_files().len(), 1 + round);
            fs::write(scene.path(&format!("a-first.{round}")), b"new").unwrap();
            let report = scene.update_with(&options(), &Recorder::new());
            assert_eq!((report.failed, report.members, report.volumes), (1, 1, 1));
        }
        set_mode(0o600);
        assert_eq!(scene.update().members, 1);
        scene.assert_clean();
        scene.assert_extracts_to_source();
    });
}

#[test]
fn d12_an_unreadable_directory_is_a_failure_and_what_is_below_does_not_count_as_deleted() {
    let name = "changing_files::d12_an_unreadable_directory_is_a_failure_and_what_is_below_does_not_count_as_deleted";
    as_ordinary_user(name, || {
        let scene = Scene::archived(&tree_with(&bytes(300)));
        let before = scene.snapshot();
        let set_mode = |mode| {
            fs::set_permissions(scene.path("d"), fs::Permissions::from_mode(mode)).unwrap();
        };
        // Closed, then listed without the right to look at what is in it.
        for mode in [0, 0o400] {
            set_mode(mode);
            let recorder = Recorder::new();
            let report = scene.update_with(&options(), &recorder);
            assert!(report.failed > 0, "{mode:o}");
            assert!(
                recorder
                    .failed_paths()
                    .iter()
                    .all(|path| path.starts_with('d'))
            );
            assert_eq!((report.deleted, report.members), (0, 0), "{mode:o}");
            assert_eq!(scene.diff(), [""; 0], "{mode:o}");
            fs::remove_file(scene.path("z-last")).unwrap();
            let report = scene.update_with(&options(), &Recorder::new());
            assert_eq!((report.deleted, report.members), (1, 0), "{mode:o}");
            symlink("a-first", scene.path("z-last")).unwrap();
            scene.update_with(&options(), &Recorder::new());
        }
        set_mode(0o755);
        assert_eq!(scene.update().members, 0);
        let compare = Compare::content().directories(Directories::All);
        let difference = before.difference(&scene.extract(AsOf::Now), &compare);
        assert_eq!(difference, [""; 0]);
    });
}
