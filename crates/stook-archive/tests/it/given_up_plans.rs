//! A plan that is given up, or that has nothing to do, leaves everything as it was before.

use std::fs;

use stook_archive::{
    ArchiveError, Deletions, Dialect, FailedMembers, PlanOptions, WriteOptions, abandon, create,
    plan,
};
use stook_testkit::{Tree, tree};

use crate::by_path::runs;
use crate::planned::{build, build_all, committed, many_files, names, planned, small_volumes};
use crate::recorder::Recorder;
use crate::scene::{Scene, options};

#[test]
fn an_abandoned_create_leaves_nothing() {
    let scene = Scene::new(&many_files());
    let archive = scene.archive();
    let planned = planned(&scene, &archive, &small_volumes(Dialect::Stook));
    build(&scene, &planned.parts[2].path, &Recorder::new());
    let report = abandon(&archive).unwrap();
    assert!(!archive.exists());
    assert_eq!(
        (report.parts, report.built),
        (planned.parts.len() as u64, 1)
    );
    assert_eq!(report.planned, Some((planned.members, planned.bytes)));
    assert!(report.is_archive_gone);
}

#[test]
fn an_abandoned_create_leaves_a_folder_that_was_there() {
    let scene = Scene::new(&Tree::basic());
    let archive = scene.archive();
    fs::create_dir(&archive).unwrap();
    planned(&scene, &archive, &options());
    assert!(abandon(&archive).unwrap().is_archive_gone);
    assert_eq!(names(&archive), [""; 0]);
    // And what has come into one that was made.
    fs::remove_dir(&archive).unwrap();
    planned(&scene, &archive, &options());
    fs::write(archive.join("notes"), "mine").unwrap();
    abandon(&archive).unwrap();
    assert_eq!(names(&archive), ["notes"]);
}

#[test]
fn an_abandoned_update_leaves_no_run() {
    let scene = Scene::archived(&Tree::basic());
    let archive = scene.archive();
    let before = runs(&archive).unwrap();
    fs::write(scene.path("new"), "new").unwrap();
    planned(&scene, &archive, &options());
    assert_eq!(runs(&archive).unwrap().len(), before.len() + 1);
    let report = abandon(&archive).unwrap();
    assert_eq!((report.parts, report.is_archive_gone), (1, false));
    assert_eq!(runs(&archive).unwrap(), before);
    assert_eq!(names(&archive), ["000000.tar", "index.db"]);
    scene.assert_clean();
    scene.update();
    scene.assert_extracts_to_source();
}

#[test]
fn what_was_committed_of_an_abandoned_plan_stays() {
    let scene = Scene::new(&tree! { "a" => file(b"a"), "b" => file(b"b") });
    let archive = scene.archive();
    let planned = planned(&scene, &archive, &options());
    fs::rename(scene.path("b"), scene.beside("away")).unwrap();
    build_all(&scene, &planned);
    committed(&archive, FailedMembers::Retry);
    let report = abandon(&archive).unwrap();
    assert_eq!((report.parts, report.planned), (1, Some((1, 1))));
    assert!(!report.is_archive_gone);
    assert_eq!(names(&archive), ["000000.tar", "index.db"]);
    // It is the run that goes on.
    fs::rename(scene.beside("away"), scene.path("b")).unwrap();
    create(scene.source(), &archive, &options(), &Recorder::new()).unwrap();
    assert_eq!(runs(&archive).unwrap().len(), 1);
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

/// An archive with an interrupted run: as a kill between the run and its plan leaves it.
fn interrupted() -> Scene {
    let scene = Scene::archived(&Tree::basic());
    fs::write(scene.path("new"), "new").unwrap();
    planned(&scene, &scene.archive(), &options());
    fs::remove_dir_all(scene.archive().join("stook.plan")).unwrap();
    scene
}

#[test]
fn an_interrupted_run_outlives_the_plan_that_went_on_with_it() {
    let scene = interrupted();
    let before = runs(&scene.archive()).unwrap();
    assert_eq!(before.last().unwrap().finished, None);
    planned(&scene, &scene.archive(), &options());
    abandon(&scene.archive()).unwrap();
    assert_eq!(runs(&scene.archive()).unwrap(), before);
    scene.update();
    scene.assert_extracts_to_source();
}

#[test]
fn nothing_to_do_ends_an_interrupted_run() {
    let scene = interrupted();
    fs::remove_file(scene.path("new")).unwrap();
    let planned = planned(&scene, &scene.archive(), &options());
    assert_eq!((planned.parts.len(), planned.is_reserved), (0, false));
    assert!(runs(&scene.archive()).unwrap()[1].finished.is_some());
    assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);
    scene.assert_clean();
}

#[test]
fn nothing_to_do_reserves_nothing() {
    let scene = Scene::archived(&Tree::basic());
    let before = runs(&scene.archive()).unwrap();
    let planned = planned(&scene, &scene.archive(), &options());
    assert_eq!((planned.parts.len(), planned.is_reserved), (0, false));
    assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);
    assert_eq!(runs(&scene.archive()).unwrap(), before);
    assert_eq!(scene.update().members, 0);
}

#[test]
fn a_plan_of_an_empty_tree_makes_nothing() {
    let scene = Scene::new(&Tree::new());
    let archive = scene.archive();
    let report = planned(&scene, &archive, &options());
    assert_eq!((report.parts.len(), report.is_reserved), (0, false));
    assert!(!archive.exists());
    fs::create_dir(&archive).unwrap();
    planned(&scene, &archive, &options());
    assert_eq!(names(&archive), [""; 0]);
}

#[test]
fn deletions_alone_are_a_plan_without_parts() {
    let scene = Scene::archived(&tree! { "a" => file(b"a"), "b" => file(b"b"), "c" => file(b"c") });
    fs::remove_file(scene.path("b")).unwrap();
    let planned = planned(&scene, &scene.archive(), &options());
    assert_eq!(
        (planned.parts.len(), planned.deleted, planned.is_reserved),
        (0, 1, true)
    );
    assert_eq!(committed(&scene.archive(), FailedMembers::Retry).deleted, 1);
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

#[test]
fn a_plan_that_is_refused_leaves_no_run() {
    let scene = Scene::archived(&many_files());
    let before = runs(&scene.archive()).unwrap();
    fs::remove_dir_all(scene.path("many")).unwrap();
    let options = PlanOptions {
        write: WriteOptions {
            deletions: Deletions::Refuse,
            ..options()
        },
        ..PlanOptions::default()
    };
    let result = plan(scene.source(), &scene.archive(), &options, &Recorder::new());
    assert!(
        matches!(result, Err(ArchiveError::UnlikelyDeletions { .. })),
        "{result:?}"
    );
    assert_eq!(runs(&scene.archive()).unwrap(), before);
    assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);
}
