//! Deleted names, earlier states, and what include and exclude have to do with either.

use std::fs;

use stook_archive::{ArchiveError, AsOf, Mtime, RunId, Version, When, WriteOptions};
use stook_testkit::{Tree, tree};
use stook_tree::{Filter, Pattern};

use crate::by_path::{cat, open, runs, state_at};
use crate::recorder::Recorder;
use crate::scene::{Scene, all_facts, content, names, options};

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts
        .iter()
        .map(|text| Pattern::new(text.as_bytes()))
        .collect()
}

#[test]
fn versions_of_a_name_are_those_of_all_runs() {
    let scene = Scene::archived(&tree! {"a" => file(b"1"), "b" => file(b"b")});
    scene.lay(&tree! {"a" => file(b"22")});
    scene.update();
    fs::remove_file(scene.path("a")).unwrap();
    scene.update();
    scene.lay(&tree! {"a" => file(b"333")});
    scene.update();
    let archive = open(&scene.archive()).unwrap();
    let found = archive.versions(b"a").unwrap();
    let version = |version: &Version| (version.row.size, version.run.as_ref().map(|run| run.id.0));
    let versions: Vec<_> = found.versions.iter().map(version).collect();
    assert_eq!(versions, [(3, Some(4)), (2, Some(2)), (1, Some(1))]);
    assert_eq!((found.scanned, found.damages.len()), (0, 0));
    assert!(archive.versions(b"none").unwrap().versions.is_empty());
}

#[test]
fn deleted_files_are_recorded_left_out_and_brought_back_by_an_earlier_state() {
    let scene = Scene::archived(&tree! {
        "keep" => file(b"keep"),
        "gone" => file(b"gone"),
        "dir/gone" => file(b"gone too"),
        "dir/keep" => file(b"keep too"),
        "dir-gone/a/b" => file(b"deep"),
    });
    let before = scene.snapshot();
    fs::remove_file(scene.path("gone")).unwrap();
    fs::remove_file(scene.path("dir/gone")).unwrap();
    fs::remove_dir_all(scene.path("dir-gone")).unwrap();
    let expected = [
        "changed dir",
        "deleted dir-gone",
        "deleted dir-gone/a",
        "deleted dir-gone/a/b",
        "deleted dir/gone",
        "deleted gone",
    ];
    assert_eq!(scene.diff(), expected);
    let report = scene.update();
    assert_eq!((report.deleted, report.members), (5, 1));
    assert_eq!(scene.diff(), [""; 0]);
    assert_eq!(
        names(&scene.archive(), AsOf::Now, false),
        ["keep", "dir/keep", "dir"]
    );
    assert_eq!(names(&scene.archive(), AsOf::Now, true).len(), 9);
    scene.assert_extracts_to_source();
    let missing = cat(&scene.archive(), b"gone", AsOf::Now, &mut Vec::new());
    assert!(matches!(missing, Err(ArchiveError::NotInState { .. })));

    let first = state_at(&scene.archive(), When::Run(RunId(1))).unwrap();
    let difference = before.difference(&scene.extract(first), &all_facts());
    assert_eq!(difference, [""; 0]);
    let mut bytes = Vec::new();
    cat(&scene.archive(), b"gone", first, &mut bytes).unwrap();
    assert_eq!(bytes, b"gone");

    // A name that comes back is there again, and stays absent from the state in between.
    scene.lay(&tree! {"gone" => file(b"back")});
    assert_eq!(scene.update().deleted, 0);
    assert_eq!(content(&scene, "gone"), b"back");
    let second = state_at(&scene.archive(), When::Run(RunId(2))).unwrap();
    assert!(scene.extract(second).get("gone").is_none());
    assert!(state_at(&scene.archive(), When::Run(RunId(9))).is_err());
}

#[test]
fn a_state_is_found_by_the_time_at_which_its_run_had_finished() {
    let scene = Scene::archived(&tree! {"f" => file(b"one")});
    scene.lay(&tree! {"f" => file(b"second")});
    scene.update();
    let archive = scene.archive();
    let finished: Vec<Mtime> = runs(&archive)
        .unwrap()
        .iter()
        .map(|run| run.finished.unwrap())
        .collect();
    assert!(finished[0] < finished[1]);
    let at = |micros: i64| state_at(&archive, When::Time(Mtime(micros)));
    assert!(matches!(
        at(finished[0].0 - 1),
        Err(ArchiveError::NoSuchRun { .. })
    ));
    assert_eq!(at(finished[0].0).unwrap(), AsOf::Run(RunId(1)));
    assert_eq!(at(finished[1].0 - 1).unwrap(), AsOf::Run(RunId(1)));
    assert_eq!(at(i64::MAX).unwrap(), AsOf::Run(RunId(2)));
    let size = |as_of| scene.extract(as_of).get("f").unwrap().size;
    assert_eq!(size(at(finished[0].0).unwrap()), 3);
    assert_eq!(size(at(finished[1].0).unwrap()), 6);
}

fn filtered(include: &[&str], exclude: &[&str]) -> WriteOptions {
    WriteOptions {
        filter: Filter {
            include: patterns(include),
            exclude: patterns(exclude),
        },
        ..options()
    }
}

fn simulation() -> Tree {
    tree! {
        "run/a.nc" => file(b"a"),
        "run/b.log" => file(b"b"),
        "run/tmp/c.nc" => file(b"c"),
        "run/tmp/deep/d.nc" => file(b"d"),
        "top.nc" => file(b"top"),
    }
}

#[test]
fn include_and_exclude_choose_by_whole_paths() {
    for (include, exclude, expected) in [
        (
            &["*.nc"][..],
            &[][..],
            &["top.nc", "run/a.nc", "run/tmp/c.nc", "run/tmp/deep/d.nc"][..],
        ),
        (&["run/*"], &["run/tmp/"], &["run/a.nc", "run/b.log"]),
        (
            &["run"],
            &["run/tmp/deep"],
            &["run", "run/a.nc", "run/b.log", "run/tmp", "run/tmp/c.nc"],
        ),
        (&["run/tmp/deep/d.nc"], &[], &["run/tmp/deep/d.nc"]),
        (&["*.nc"], &["*/?.nc"], &["top.nc"]),
        (&[], &["*/*[!c]"], &["top.nc", "run", "run/a.nc"]),
        (&["nothing"], &[], &[]),
    ] {
        let scene = Scene::new(&simulation());
        scene.create_with(&filtered(include, exclude), &Recorder::new());
        let mut found = names(&scene.archive(), AsOf::Now, false);
        found.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{include:?} {exclude:?}");
    }
}

#[test]
fn names_that_the_filter_leaves_out_never_count_as_deleted() {
    let scene = Scene::archived(&simulation());
    let all = names(&scene.archive(), AsOf::Now, false).len();
    fs::remove_dir_all(scene.path("run/tmp")).unwrap();
    fs::remove_file(scene.path("top.nc")).unwrap();
    for (include, exclude) in [
        (&[][..], &["run/tmp", "top.nc"][..]),
        (&[], &["run", "top.nc"]),
        (&["run/a.nc", "run/b.log"], &[]),
        (&["nothing"], &[]),
        (&[], &["*"]),
    ] {
        let report = scene.update_with(&filtered(include, exclude), &Recorder::new());
        assert_eq!(report.deleted, 0, "{include:?} {exclude:?}");
        let left = names(&scene.archive(), AsOf::Now, false).len();
        assert_eq!(left, all, "{include:?} {exclude:?}");
    }
    let report = scene.update_with(&filtered(&["*.nc"], &["top*"]), &Recorder::new());
    assert_eq!(report.deleted, 2);
    assert_eq!(scene.update().deleted, 3);
    scene.assert_extracts_to_source();
}
