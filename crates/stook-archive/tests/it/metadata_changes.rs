//! Mode and owner that changed while size and time did not: always said, archived again on request.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

use stook_archive::{
    ArchiveError, AsOf, Change, Changed, Deletions, DiffOptions, ExtractOptions, Jobs,
    MetadataChange, MetadataChanges, Silent, WriteOptions, create,
};
use stook_testkit::rights::set_mode;
use stook_testkit::{Tree, skip, tree};

use crate::attribute_blocks::sql;
use crate::by_path::{diff, extract, fill_attributes};
use crate::folder::as_zstash;
use crate::recorder::Recorder;
use crate::resuming::Stopper;
use crate::scene::{Scene, all_facts, names, options};

fn archiving() -> WriteOptions {
    WriteOptions {
        metadata: MetadataChanges::Archive,
        ..options()
    }
}

fn sample() -> Scene {
    Scene::archived(&tree! {
        "d/a" => file(b"a").mode(0o644),
        "d/b" => file(b"b").mode(0o600),
        "d/p" => fifo().mode(0o644),
        "e/" => dir().mode(0o755),
        "l" => symlink("d/a"),
    })
}

#[test]
fn a_changed_mode_is_counted_and_archived_on_request() {
    let scene = sample();
    set_mode(&scene.path("d/a"), 0o4600);
    set_mode(&scene.path("d/p"), 0o600);
    set_mode(&scene.path("e"), 0o700);
    let differences = ["metadata d/a", "metadata d/p", "metadata e"];
    assert_eq!(scene.diff(), differences);
    let recorder = Recorder::new();
    let report = scene.update_with(&options(), &recorder);
    assert_eq!((report.members, report.metadata_changed), (0, 3));
    assert_eq!(report.entries, report.unchanged + 3);
    assert_eq!(
        recorder.notes(),
        ["only mode or owner of 3 entries changed"]
    );
    assert_eq!(scene.diff(), differences);
    let before = scene.last_run();

    let report = scene.update_with(&archiving(), &Recorder::new());
    assert_eq!((report.members, report.metadata_changed), (3, 0));
    assert_eq!(scene.diff(), [""; 0]);
    scene.assert_extracts_to_source();
    assert_eq!(names(&scene.archive(), AsOf::Now, true).len(), 6 + 3);
    let old = scene.extract(AsOf::Run(before));
    assert_ne!(scene.snapshot().difference(&old, &all_facts()), [""; 0]);
    let report = scene.update_with(&archiving(), &Recorder::new());
    assert_eq!((report.members, report.volumes), (0, 0));
}

#[test]
fn a_dry_run_counts_and_plans_them() {
    let scene = sample();
    set_mode(&scene.path("d/a"), 0o600);
    let dry = |options: WriteOptions| WriteOptions {
        is_dry_run: true,
        ..options
    };
    let report = scene.update_with(&dry(options()), &Silent);
    assert_eq!(
        (report.plan.unwrap().members, report.metadata_changed),
        (0, 1)
    );
    let report = scene.update_with(&dry(archiving()), &Silent);
    assert_eq!(
        (report.plan.unwrap().members, report.metadata_changed),
        (1, 0)
    );
}

#[test]
fn diff_tells_what_changed_and_need_not_look() {
    let scene = sample();
    set_mode(&scene.path("d/b"), 0o640);
    let options = DiffOptions::default();
    let report = diff(scene.source(), &scene.archive(), &options, &Silent).unwrap();
    let change = MetadataChange {
        mode: Some(Changed {
            archived: 0o600,
            now: 0o640,
        }),
        uid: None,
        gid: None,
    };
    assert_eq!(report.differences.len(), 1);
    assert_eq!(report.differences[0].change, Change::Metadata(change));
    assert_eq!(report.unchanged, report.entries - 1);
    let options = DiffOptions {
        compare_metadata: false,
        ..options
    };
    let report = diff(scene.source(), &scene.archive(), &options, &Silent).unwrap();
    assert_eq!(report.differences, []);
    assert_eq!(report.unchanged, report.entries);
}

#[test]
fn owner_and_group_are_compared() {
    if !stook_sys::is_root() {
        return stook_testkit::skip!("only root changes owners");
    }
    let scene = sample();
    std::os::unix::fs::chown(scene.path("d/a"), Some(12_345), None).unwrap();
    std::os::unix::fs::chown(scene.path("e"), None, Some(23_456)).unwrap();
    std::os::unix::fs::lchown(scene.path("l"), Some(1), Some(2)).unwrap();
    assert_eq!(scene.diff(), ["metadata d/a", "metadata e", "metadata l"]);
    let report = scene.update_with(&archiving(), &Recorder::new());
    assert_eq!(report.members, 3);
    assert_eq!(scene.diff(), [""; 0]);
    scene.assert_extracts_to_source();
}

#[test]
fn another_size_or_time_outweighs_another_mode() {
    let scene = sample();
    scene.lay(&tree! {"d/a" => file(b"longer").mode(0o600)});
    let changed = |lines: &Vec<String>| lines.contains(&"changed d/a".to_owned());
    let lines = scene.diff();
    assert!(
        changed(&lines) && !lines.contains(&"metadata d/a".to_owned()),
        "{lines:?}"
    );
    let report = scene.update();
    assert_eq!(report.metadata_changed, 0);
    scene.assert_extracts_to_source();
}

#[test]
fn another_kind_with_the_same_size_and_time_is_a_change() {
    let kinds = || {
        [
            tree! {"x/" => dir().mtime(1_700_000_000, 1_000)},
            tree! {"x" => symlink("y").mtime(1_700_000_000, 1_000)},
            tree! {"x" => fifo().mtime(1_700_000_000, 1_000)},
        ]
    };
    for (from, before) in kinds().iter().enumerate() {
        for (to, after) in kinds().iter().enumerate().filter(|(to, _)| *to != from) {
            let scene = Scene::archived(before);
            stook_testkit::remove_tree(&scene.path("x")).unwrap();
            scene.lay(after);
            assert_eq!(scene.diff(), ["changed x"], "{from} to {to}");
            assert_eq!(scene.update().members, 1);
            scene.assert_extracts_to_source();
        }
    }
}

#[test]
fn all_names_of_a_file_change_together() {
    let scene =
        Scene::archived(&tree! {"a" => file(b"one"), "b" => hardlink("a"), "c" => file(b"c")});
    set_mode(&scene.path("b"), 0o600);
    assert_eq!(scene.diff(), ["metadata a", "metadata b"]);
    assert_eq!(scene.update_with(&archiving(), &Recorder::new()).members, 2);
    scene.assert_extracts_to_source();
}

#[test]
fn directories_in_the_archive_are_compared_without_directories_too() {
    let scene = sample();
    set_mode(&scene.path("d"), 0o700);
    let empty_only = |options: WriteOptions| WriteOptions {
        directories: false,
        ..options
    };
    let report = scene.update_with(&empty_only(options()), &Silent);
    assert_eq!((report.members, report.metadata_changed), (0, 1));
    // Its name is in the archive: what is known of it must not stay wrong.
    let report = scene.update_with(&empty_only(archiving()), &Silent);
    assert_eq!(report.members, 1);
    assert_eq!(scene.diff(), [""; 0]);
}

#[test]
fn members_of_zstash_are_compared_once_their_attributes_are_known() {
    let scene = Scene::new(&tree! {"a" => file(b"a").mode(0o644), "l" => symlink("a")});
    scene.create_with(&as_zstash(), &Silent);
    if !sql(&scene.archive(), "DELETE FROM stook_attributes") {
        return;
    }
    set_mode(&scene.path("a"), 0o600);
    assert_eq!(scene.diff(), [""; 0]);
    assert_eq!(scene.update_with(&archiving(), &Silent).members, 0);
    fill_attributes(&scene.archive(), Jobs::Fixed(1), &Silent).unwrap();
    assert_eq!(scene.diff(), ["metadata a"]);
    // zstash does not see it.
    let as_zstash = WriteOptions {
        metadata: MetadataChanges::Ignore,
        deletions: Deletions::Keep,
        ..as_zstash()
    };
    let report = scene.update_with(&as_zstash, &Silent);
    assert_eq!(
        (report.members, report.metadata_changed, report.unchanged),
        (0, 0, 2)
    );
    assert_eq!(scene.update_with(&archiving(), &Silent).members, 1);
    assert_eq!(scene.diff(), [""; 0]);
}

#[test]
fn what_an_interrupted_run_had_staged_is_compared_too() {
    let mut tree = Tree::new();
    for number in 0..300_usize {
        let text = vec![b'a'; number * 977 % 6000];
        tree.insert(
            format!("f{number:03}"),
            stook_testkit::file(text).mode(0o644),
        );
    }
    let options = WriteOptions {
        volume_bytes: Some(200 << 10),
        checkpoint_bytes: 1,
        ..archiving()
    };
    for after in [90, 170, 299] {
        let scene = Scene::new(&tree);
        let archive = scene.archive();
        let stopped = create(scene.source(), &archive, &options, &Stopper::after(after));
        assert!(matches!(stopped, Err(ArchiveError::Interrupted)), "{after}");
        for number in [0, 40, 89, after - 1, 299] {
            set_mode(&scene.path(&format!("f{number:03}")), 0o600);
        }
        create(scene.source(), &archive, &options, &Silent).unwrap();
        assert_eq!(scene.diff(), [""; 0], "{after}");
        scene.assert_extracts_to_source();
        scene.assert_clean();
    }
}

#[test]
fn a_name_that_left_its_group_does_not_get_the_owner_of_the_others() {
    let scene = Scene::archived(&tree! { "a" => file(b"same"), "b" => hardlink("a") });
    // A file of its own now, of the same size, time and mode.
    let (b, copy) = (scene.path("b"), scene.path("copy"));
    let mtime = fs::metadata(&b).unwrap().modified().unwrap();
    fs::copy(&b, &copy).unwrap();
    fs::File::options()
        .write(true)
        .open(&copy)
        .unwrap()
        .set_modified(mtime)
        .unwrap();
    fs::rename(&copy, &b).unwrap();
    if chown(scene.path("a"), Some(7), None).is_err() {
        skip!("only root can give files away");
        return;
    }
    scene.update_with(&archiving(), &Silent);
    let into = scene.beside("into");
    let options = ExtractOptions {
        same_permissions: true,
        ..ExtractOptions::default()
    };
    extract(&scene.archive(), &into, &options, &Silent).unwrap();
    let owner = |name: &str| fs::metadata(into.join(name)).unwrap().uid();
    assert_eq!((owner("a"), owner("b")), (7, 0));
}
