//! Plans of small trees in many parts, and what tests do with them.

use std::fs;
use std::path::{Path, PathBuf};

use stook_archive::{
    AsOf, BuildOptions, BuildReport, CommitOptions, CommitReport, Dialect, FailedMembers, Jobs,
    ListOptions, PlanOptions, PlanReport, WriteOptions, build_part, commit, create, plan,
};
use stook_testkit::{Random, Tree, file, hardlink};

use crate::by_path::{list, runs};
use crate::recorder::Recorder;
use crate::scene::{Scene, options};

/// Some hundred files in volumes of 60 KB, so that a plan has several parts.
pub(crate) fn many_files() -> Tree {
    let mut random = Random::new(7);
    // Without attributes: these make members longer than planned.
    let mut tree = Tree::basic();
    tree.graft("links", &Tree::links());
    tree.graft("odd", &Tree::odd_names());
    tree.graft("sparse", &Tree::sparse());
    tree.insert("many/1/first", file([b'h'; 900]));
    tree.insert("many/4/second", hardlink("many/1/first"));
    tree.insert("many/4/third", hardlink("many/1/first"));
    for number in 0..150 {
        let len = random.index(4_000);
        let name = format!("many/{}/f{number}", number % 7);
        tree.insert(name, file(random.bytes(len)));
    }
    tree.insert("large", file(random.bytes(5 << 20)));
    tree
}

pub(crate) fn small_volumes(dialect: Dialect) -> WriteOptions {
    let is_stook = dialect == Dialect::Stook;
    WriteOptions {
        volume_bytes: Some(60_000),
        dialect,
        directories: is_stook,
        xattrs: is_stook,
        ..options()
    }
}

pub(crate) fn planned(scene: &Scene, archive: &Path, write: &WriteOptions) -> PlanReport {
    let options = PlanOptions {
        write: write.clone(),
        ..PlanOptions::default()
    };
    plan(scene.source(), archive, &options, &Recorder::new()).unwrap()
}

pub(crate) fn build(scene: &Scene, part: &Path, observer: &Recorder<'_>) -> BuildReport {
    let options = BuildOptions {
        jobs: Jobs::Fixed(3),
        ..BuildOptions::default()
    };
    build_part(
        part,
        scene.source(),
        part.parent().unwrap(),
        &options,
        observer,
    )
    .unwrap()
}

/// Builds all parts, the last one first.
pub(crate) fn build_all(scene: &Scene, planned: &PlanReport) -> Vec<BuildReport> {
    let parts = planned.parts.iter().rev();
    parts
        .map(|part| build(scene, &part.path, &Recorder::new()))
        .collect()
}

pub(crate) fn committed(archive: &Path, failures: FailedMembers) -> CommitReport {
    let options = CommitOptions {
        failures,
        ..CommitOptions::default()
    };
    commit(archive, &options, &Recorder::new()).unwrap()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn rows(archive: &Path) -> Vec<String> {
    let options = ListOptions {
        patterns: Vec::new(),
        as_of: AsOf::Now,
        all_versions: true,
    };
    let mut rows = Vec::new();
    list(archive, &options, &Recorder::new(), |row| {
        rows.push(format!("{:?}", row.to_row()));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    rows
}

pub(crate) fn assert_same_archive(expected: &Path, found: &Path) {
    assert_eq!(names(expected), names(found));
    for name in names(expected).iter().filter(|name| name.contains(".tar")) {
        let is_same = fs::read(expected.join(name)).unwrap() == fs::read(found.join(name)).unwrap();
        assert!(is_same, "{name} differs");
    }
    assert_eq!(rows(expected), rows(found));
    let runs_of = |archive| {
        let runs = runs(archive).unwrap().into_iter();
        runs.map(|run| {
            (
                run.id,
                run.command,
                run.first_file,
                run.last_file,
                run.failed,
            )
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(runs_of(expected), runs_of(found));
}

/// Creates an archive of the scene in one process, as `expected`.
pub(crate) fn expected(scene: &Scene, write: &WriteOptions) -> PathBuf {
    let expected = scene.beside("expected");
    create(scene.source(), &expected, write, &Recorder::new()).unwrap();
    expected
}

/// Copies a folder of plain files.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in names(from) {
        if from.join(&name).is_dir() {
            copy(&from.join(&name), &to.join(&name));
        } else {
            fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }
}
