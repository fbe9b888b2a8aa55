//! A source that is empty, another tree, or half gone: nothing is written, unless the user says what is meant.

use std::fs;
use std::path::{Path, PathBuf};

use stook_archive::{
    ArchiveError, AsOf, Deletions, DiffOptions, NameCounts, Observer, StopReason,
    UnlikelyDeletions, WriteOptions, WriteReport, create,
};
use stook_testkit::{Tree, file, remove_tree, tree, without_privileges};
use stook_tree::{Filter, Pattern};

use crate::by_path::{diff, runs, update};
use crate::folder::{bytes_in, newest_rows};
use crate::recorder::Recorder;
use crate::resuming::Stopper;
use crate::scene::{Scene, names, options};

fn with(deletions: Deletions) -> WriteOptions {
    WriteOptions {
        deletions,
        ..options()
    }
}

fn only(include: &str, deletions: Deletions) -> WriteOptions {
    WriteOptions {
        filter: Filter {
            include: vec![Pattern::new(include.as_bytes())],
            ..Filter::default()
        },
        ..with(deletions)
    }
}

fn numbered(prefix: &str, count: usize) -> Tree {
    let mut tree = Tree::new();
    for number in 0..count {
        tree.insert(format!("{prefix}{number:04}"), file(b"x"));
    }
    tree
}

/// Removes everything from a directory, as from a mount point on which nothing is mounted.
fn empty(directory: &Path) {
    remove_tree(directory).unwrap();
    fs::create_dir(directory).unwrap();
}

/// Updates from `tree`, which must stop, and leave every byte of the archive as it was.
fn stopped_from(scene: &Scene, tree: &Path, options: &WriteOptions) -> UnlikelyDeletions {
    let before = bytes_in(&scene.archive());
    let result = update(tree, &scene.archive(), options, &Recorder::new());
    assert!(bytes_in(&scene.archive()) == before, "{result:?}");
    match result {
        Err(ArchiveError::UnlikelyDeletions { archive, unlikely }) => {
            assert_eq!(archive, scene.archive());
            unlikely
        }
        other => panic!("{other:?}"),
    }
}

fn stopped(scene: &Scene, options: &WriteOptions) -> (StopReason, NameCounts) {
    let unlikely = stopped_from(scene, scene.source(), options);
    assert_eq!(unlikely.created_from, None);
    (unlikely.reason, unlikely.counts)
}

fn counts(found: u64, known: u64, gone: u64) -> NameCounts {
    NameCounts { found, known, gone }
}

fn live(scene: &Scene) -> usize {
    newest_rows(&scene.archive()).len()
}

fn updated(scene: &Scene, options: &WriteOptions) -> WriteReport {
    scene.update_with(options, &Recorder::new())
}

#[test]
fn an_empty_source_is_not_taken_for_a_tree_whose_files_were_deleted() {
    let scene = Scene::archived(&tree! {"a" => file(b"a"), "d/b" => file(b"b")});
    empty(scene.source());
    assert_eq!(
        stopped(&scene, &options()),
        (StopReason::Empty, counts(0, 0, 3))
    );
    assert_eq!(
        (live(&scene), runs(&scene.archive()).unwrap().len()),
        (3, 1)
    );
    // What is meant may be said.
    assert_eq!(updated(&scene, &with(Deletions::Keep)).deleted, 0);
    assert_eq!(
        (live(&scene), runs(&scene.archive()).unwrap().len()),
        (3, 1)
    );
    assert_eq!(updated(&scene, &with(Deletions::Record)).deleted, 3);
    assert_eq!(live(&scene), 0);
    // Nothing is left that could be gone.
    assert_eq!(scene.update().deleted, 0);
    assert_eq!(
        names(
            &scene.archive(),
            AsOf::Run(runs(&scene.archive()).unwrap()[0].id),
            false
        )
        .len(),
        3
    );
}

#[test]
fn an_empty_archive_and_an_empty_source_have_nothing_to_do() {
    let scene = Scene::archived(&Tree::new());
    for deletions in [Deletions::Guarded, Deletions::Refuse] {
        let report = updated(&scene, &with(deletions));
        assert_eq!((report.members, report.deleted), (0, 0));
    }
}

#[test]
fn another_tree_is_not_taken_for_the_archived_one() {
    let scene = Scene::archived(&numbered("a", 40));
    let other = scene.beside("other");
    let mut tree = numbered("b", 150);
    tree.insert("a0007", file(b"x"));
    tree.write(&other).unwrap();
    let unlikely = stopped_from(&scene, &other, &options());
    assert_eq!(unlikely.reason, StopReason::Unknown);
    assert_eq!(unlikely.counts, counts(151, 1, 39));
    assert_eq!(unlikely.tree, other);
    let source = fs::canonicalize(scene.source()).unwrap();
    assert_eq!(unlikely.created_from, Some(source));
    // Two of 151 are more than 1 %, and 38 names are few.
    fs::write(other.join("a0008"), b"x").unwrap();
    let report = update(&other, &scene.archive(), &options(), &Recorder::new()).unwrap();
    assert_eq!((report.members, report.deleted), (151, 38));
}

#[test]
fn a_tree_that_has_grown_a_thousandfold_has_lost_nothing() {
    let scene = Scene::archived(&tree! {"a" => file(b"a")});
    scene.lay(&numbered("b", 1000));
    assert_eq!((scene.update().members, live(&scene)), (1000, 1001));
}

#[test]
fn more_than_half_of_many_names_are_not_recorded_as_deleted() {
    let scene = Scene::archived(&numbered("d/", 119));
    let remove = |range: std::ops::Range<usize>| {
        for number in range {
            fs::remove_file(scene.path(&format!("d/{number:04}"))).unwrap();
        }
    };
    // Of 120 names, `d` is one.
    remove(0..61);
    fs::write(scene.path("new"), b"new").unwrap();
    assert_eq!(
        stopped(&scene, &options()),
        (StopReason::MostGone, counts(60, 59, 61))
    );
    fs::write(scene.path("d/0000"), b"back").unwrap();
    let report = scene.update();
    assert_eq!((report.deleted, live(&scene)), (60, 61));
    // What is left is not many names any more.
    remove(61..119);
    assert_eq!(scene.update().deleted, 58);
}

#[test]
fn refusing_stops_at_the_first_name_that_is_gone() {
    let scene = Scene::archived(&numbered("a", 5));
    scene.lay(&tree! {"new" => file(b"new")});
    let refuse = with(Deletions::Refuse);
    assert_eq!(updated(&scene, &refuse).members, 1);
    fs::remove_file(scene.path("a0003")).unwrap();
    assert_eq!(
        stopped(&scene, &refuse),
        (StopReason::Refused, counts(5, 5, 1))
    );
    // A name that is not selected does not count.
    assert_eq!(updated(&scene, &only("n*", Deletions::Refuse)).deleted, 0);
    assert_eq!(
        stopped(&scene, &only("a*", Deletions::Refuse)),
        (StopReason::Refused, counts(4, 4, 1))
    );
}

#[test]
fn keeping_archives_what_is_new_and_records_nothing_as_deleted() {
    let scene = Scene::archived(&numbered("a", 200));
    empty(scene.source());
    scene.lay(&tree! {"new" => file(b"new")});
    let keep = with(Deletions::Keep);
    let report = updated(&scene, &keep);
    assert_eq!((report.members, report.deleted, live(&scene)), (1, 0, 201));
    assert_eq!(updated(&scene, &keep).volumes, 0);
    assert_eq!(runs(&scene.archive()).unwrap().len(), 2);
    scene.assert_clean();
}

#[test]
fn only_names_that_the_filter_selects_count() {
    let mut tree = numbered("d/", 150);
    tree.insert("keep", file(b"keep"));
    let scene = Scene::archived(&tree);
    empty(&scene.path("d"));
    // Nothing is left of what is selected, and nothing else was looked for.
    assert_eq!(
        stopped(&scene, &only("d/*", Deletions::Guarded)),
        (StopReason::Empty, counts(0, 0, 150))
    );
    assert_eq!(
        updated(&scene, &only("keep", Deletions::Guarded)).deleted,
        0
    );
    assert_eq!(
        updated(&scene, &only("none", Deletions::Guarded)).deleted,
        0
    );
    assert_eq!(
        stopped(&scene, &only("*", Deletions::Guarded)),
        (StopReason::MostGone, counts(2, 2, 150))
    );
}

#[test]
fn names_below_a_directory_that_cannot_be_read_are_not_gone() {
    use std::os::unix::fs::PermissionsExt;
    let done = without_privileges(|| {
        let scene = Scene::archived(&numbered("d/", 150));
        let mode = |mode| {
            fs::set_permissions(scene.path("d"), fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(0);
        for deletions in [Deletions::Guarded, Deletions::Refuse] {
            let recorder = Recorder::new();
            let report = scene.update_with(&with(deletions), &recorder);
            assert_eq!((report.deleted, report.failed), (0, 1));
            assert_eq!(recorder.failed_paths(), ["d"]);
        }
        mode(0o755);
        assert_eq!(live(&scene), 151);
    });
    if let Err(error) = done {
        stook_testkit::skip!("root may not change its user here: {error}");
    }
}

#[test]
fn a_dry_run_and_a_diff_tell_of_the_stop_and_go_on() {
    let scene = Scene::archived(&tree! {"a" => file(b"a"), "b" => file(b"b")});
    empty(scene.source());
    let would = "would stop: nothing was found in `";
    let recorder = Recorder::new();
    let dry_run = WriteOptions {
        is_dry_run: true,
        ..options()
    };
    let before = bytes_in(&scene.archive());
    let report = scene.update_with(&dry_run, &recorder);
    assert_eq!(report.plan.unwrap().deleted, 2);
    let notes = recorder.notes();
    assert!(notes.len() == 1 && notes[0].contains(would), "{notes:?}");
    assert!(bytes_in(&scene.archive()) == before);

    let recorder = Recorder::new();
    let options = DiffOptions::default();
    let found = diff(scene.source(), &scene.archive(), &options, &recorder).unwrap();
    assert_eq!(found.differences.len(), 2);
    let notes = recorder.notes();
    assert!(notes.len() == 1 && notes[0].contains(would), "{notes:?}");

    let kept = WriteOptions {
        deletions: Deletions::Keep,
        ..dry_run
    };
    let recorder = Recorder::new();
    let report = scene.update_with(&kept, &recorder);
    assert_eq!(report.plan.unwrap().deleted, 0);
    assert_eq!(recorder.notes(), [""; 0]);
}

#[test]
fn a_source_that_is_another_directory_is_noted_once() {
    let scene = Scene::archived(&numbered("a", 3));
    let notes = |tree: &Path, operation: &dyn Fn(&Path, &dyn Observer)| {
        let recorder = Recorder::new();
        operation(tree, &recorder);
        recorder.notes()
    };
    let update = |tree: &Path, observer: &dyn Observer| {
        update(tree, &scene.archive(), &options(), observer).unwrap();
    };
    let diff = |tree: &Path, observer: &dyn Observer| {
        diff(tree, &scene.archive(), &DiffOptions::default(), observer).unwrap();
    };
    let alias = scene.beside("alias");
    std::os::unix::fs::symlink(scene.source(), &alias).unwrap();
    let dotted = scene
        .source()
        .join("../")
        .join(scene.source().file_name().unwrap());
    for same in [scene.source(), &alias, &dotted] {
        assert_eq!(notes(same, &update), [""; 0]);
        assert_eq!(notes(same, &diff), [""; 0]);
    }
    let copy: PathBuf = scene.beside("copy");
    numbered("a", 3).write(&copy).unwrap();
    let source = fs::canonicalize(scene.source()).unwrap();
    let expected = format!(
        "the archive was created from `{}`, and `{}` is another directory",
        source.display(),
        copy.display()
    );
    assert_eq!(notes(&copy, &update), [&*expected]);
    assert_eq!(notes(&copy, &diff), [&*expected]);
}

/// A `create` of `count` files that was interrupted after at least `after` of them.
fn interrupted(count: usize, after: u64) -> (Scene, WriteOptions) {
    let scene = Scene::new(&numbered("f", count));
    let options = WriteOptions {
        checkpoint_bytes: 1,
        ..options()
    };
    let observer = Stopper::after(after);
    let stopped = create(scene.source(), &scene.archive(), &options, &observer);
    assert!(matches!(stopped, Err(ArchiveError::Interrupted)));
    (scene, options)
}

#[test]
fn an_interrupted_create_goes_on_if_little_is_gone() {
    let (scene, options) = interrupted(30, 20);
    fs::remove_file(scene.path("f0000")).unwrap();
    // What was archived is now less than 1 % of the tree.
    scene.lay(&numbered("g", 3000));
    let report = scene.create_with(&options, &Recorder::new());
    assert!(report.unchanged > 0);
    assert_eq!((report.deleted, live(&scene)), (1, 3029));
    scene.assert_extracts_to_source();
}

#[test]
fn an_interrupted_create_does_not_go_on_with_an_empty_source() {
    let (scene, options) = interrupted(300, 250);
    empty(scene.source());
    let before = bytes_in(&scene.archive());
    let result = create(scene.source(), &scene.archive(), &options, &Recorder::new());
    let Err(ArchiveError::UnlikelyDeletions { unlikely, .. }) = result else {
        panic!("{result:?}");
    };
    assert_eq!(unlikely.reason, StopReason::Empty);
    assert!(unlikely.counts.gone > 0);
    assert!(bytes_in(&scene.archive()) == before);
    // What was archived is still there to go on with.
    scene.lay(&numbered("f", 300));
    let report = scene.create_with(&options, &Recorder::new());
    assert!(report.unchanged > 0);
    assert_eq!(live(&scene), 300);
    scene.assert_clean();
}
