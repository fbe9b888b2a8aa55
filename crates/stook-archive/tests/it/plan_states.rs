//! States of a plan directory that a kill, damage, or the user's own files leave: each has a way out, and nothing of the user's
//! goes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use stook_archive::{
    ArchiveError, BaseObserver, BuiltDamage, BuiltVolumes, CommitOptions, CommitReport, Dialect,
    FailedMembers, Failure, Observer, PlanFileError, PlanOptions, PlanReport, abandon, commit,
    plan,
};
use stook_testkit::{tree, without_privileges};

use crate::by_path::{runs, update};
use crate::planned::{
    assert_same_archive, build, build_all, committed, copy, expected, many_files, names, planned,
    small_volumes,
};
use crate::recorder::Recorder;
use crate::scene::{Scene, options};

fn try_commit(scene: &Scene) -> Result<CommitReport, ArchiveError> {
    commit(
        &scene.archive(),
        &CommitOptions::default(),
        &Recorder::new(),
    )
}

fn try_plan(scene: &Scene) -> Result<PlanReport, ArchiveError> {
    let (source, archive) = (scene.source(), scene.archive());
    plan(source, &archive, &PlanOptions::default(), &Recorder::new())
}

fn in_plan(scene: &Scene, name: &str) -> PathBuf {
    scene.archive().join("stook.plan").join(name)
}

fn cut_off(volume: &Path) {
    let bytes = fs::read(volume).unwrap();
    fs::remove_file(volume).unwrap();
    fs::write(volume, &bytes[..512]).unwrap();
}

fn damages(refused: Result<CommitReport, ArchiveError>) -> Vec<BuiltDamage> {
    match refused {
        Err(ArchiveError::BadBuilt { parts }) => {
            parts.into_iter().map(|part| part.damage).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// An archive, and a plan of one new file.
fn with_plan() -> (Scene, PlanReport) {
    let scene = Scene::archived(&tree! { "a" => file(b"a"), "b" => file(b"b") });
    fs::write(scene.path("new"), "new").unwrap();
    let planned = planned(&scene, &scene.archive(), &options());
    (scene, planned)
}

/// Copies the archive when a commit comes to a volume: what a kill leaves there.
struct CopiesAt<'a> {
    volume: usize,
    seen: AtomicUsize,
    archive: &'a Path,
    to: &'a Path,
}

impl BaseObserver for CopiesAt<'_> {
    type Failure = Failure;

    fn advanced(&self, _entries: u64, _bytes: u64) {
        if self.seen.fetch_add(1, Ordering::Relaxed) == self.volume {
            copy(self.archive, self.to);
        }
    }
}

impl Observer for CopiesAt<'_> {}

/// Commits all that is built, and brings the archive back to where a kill before this volume leaves it.
fn killed_before(scene: &Scene, volume: usize) {
    let (archive, to) = (scene.archive(), scene.beside("killed"));
    let observer = CopiesAt {
        volume,
        seen: AtomicUsize::new(0),
        archive: &archive,
        to: &to,
    };
    let options = CommitOptions {
        // What this reads would count, too.
        volumes: BuiltVolumes::OfTheirLength,
        ..CommitOptions::default()
    };
    commit(&archive, &options, &observer).unwrap();
    fs::remove_dir_all(&archive).unwrap();
    fs::rename(&to, &archive).unwrap();
    fs::remove_file(archive.join("stook.lock")).unwrap();
    assert!(in_plan(scene, "commit").exists());
}

/// A plan of many parts, built, of which a commit was killed before this volume.
fn interrupted_commit(volume: usize) -> (Scene, PlanReport) {
    let scene = Scene::new(&many_files());
    let planned = planned(&scene, &scene.archive(), &small_volumes(Dialect::Stook));
    build_all(&scene, &planned);
    killed_before(&scene, volume);
    (scene, planned)
}

#[test]
fn what_was_decided_before_the_last_parts_stops_no_commit() {
    let scene = Scene::new(&tree! { "a" => file(b"a"), "b" => file(b"b") });
    let archive = scene.archive();
    let planned = planned(&scene, &archive, &options());
    let (here, away) = (scene.path("b"), scene.beside("away"));
    fs::rename(&here, &away).unwrap();
    build_all(&scene, &planned);
    let log = scene.beside("commit");
    let recorder = Recorder::at_phase("commit", || {
        fs::copy(in_plan(&scene, "commit"), &log).unwrap();
    });
    let report = commit(&archive, &CommitOptions::default(), &recorder).unwrap();
    // Killed before it was removed.
    fs::copy(&log, in_plan(&scene, "commit")).unwrap();
    fs::rename(&away, &here).unwrap();
    let part = &report.remaining[0].path;
    let built = build(&scene, part, &Recorder::new()).built;
    cut_off(&built.join("000000.tar.partial"));
    assert!(matches!(
        damages(try_commit(&scene))[..],
        [BuiltDamage::VolumeResized { .. }]
    ));
    build(&scene, part, &Recorder::new());
    assert_eq!(try_commit(&scene).unwrap().members, 1);
    assert_eq!(names(&archive), ["000000.tar", "000001.tar", "index.db"]);
    scene.assert_extracts_to_source();
}

#[test]
fn a_damaged_part_that_a_killed_commit_had_taken_is_built_again() {
    let (scene, planned) = with_plan();
    let built = build(&scene, &planned.parts[0].path, &Recorder::new()).built;
    fs::rename(&built, in_plan(&scene, "taken-000000")).unwrap();
    cut_off(&in_plan(&scene, "taken-000000/000000.tar.partial"));
    let again = build(&scene, &planned.parts[0].path, &Recorder::new()).built;
    assert_eq!(again, built);
    assert_eq!(damages(try_commit(&scene)).len(), 1);
    committed(&scene.archive(), FailedMembers::Retry);
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

#[test]
fn a_name_of_the_users_does_not_keep_a_damaged_part() {
    let (scene, planned) = with_plan();
    for name in ["damaged-000000", "damaged-000000-2"] {
        fs::create_dir(in_plan(&scene, name)).unwrap();
        fs::write(in_plan(&scene, name).join("notes"), "mine").unwrap();
    }
    for _ in 0..2 {
        let built = build(&scene, &planned.parts[0].path, &Recorder::new()).built;
        cut_off(&built.join("000000.tar.partial"));
        assert_eq!(damages(try_commit(&scene)).len(), 1);
        assert!(in_plan(&scene, "damaged-000000-3/result").exists());
        assert!(!in_plan(&scene, "taken-000000").exists());
    }
    build_all(&scene, &planned);
    let report = try_commit(&scene).unwrap();
    let stays = ["damaged-000000", "damaged-000000-2"];
    assert_eq!(report.foreign, stays.map(|name| name.as_bytes().to_vec()));
    assert_eq!(names(&scene.archive().join("stook.plan")), stays);
    scene.assert_extracts_to_source();
}

#[test]
fn what_is_damaged_after_a_kill_is_not_committed() {
    type Case = (fn(&Path), fn(&BuiltDamage) -> bool);
    let cases: [Case; 4] = [
        (
            |taken| cut_off(&taken.join("000000.tar.partial")),
            |damage| matches!(damage, BuiltDamage::VolumeResized { .. }),
        ),
        (
            |taken| fs::remove_file(taken.join("000000.tar.partial")).unwrap(),
            |damage| matches!(damage, BuiltDamage::VolumeMissing),
        ),
        (
            |taken| {
                let rows = taken.join("000000.rows.partial");
                let mut bytes = fs::read(&rows).unwrap();
                // In the header, where SQLite looks at nothing.
                bytes[70] ^= 1;
                fs::write(&rows, bytes).unwrap();
            },
            |damage| matches!(damage, BuiltDamage::RowsChanged),
        ),
        (
            |taken| fs::write(taken.join("000000.rows.partial-journal"), "").unwrap(),
            |damage| matches!(damage, BuiltDamage::RowsWithJournal),
        ),
    ];
    for (damage, is_expected) in cases {
        let scene = Scene::new(&tree! { "a" => file(b"a"), "b" => file(b"b") });
        let planned = planned(&scene, &scene.archive(), &options());
        build_all(&scene, &planned);
        killed_before(&scene, 0);
        damage(&in_plan(&scene, "taken-000000"));
        let found = damages(try_commit(&scene));
        assert!(is_expected(&found[0]), "{found:?}");
        build_all(&scene, &planned);
        committed(&scene.archive(), FailedMembers::Retry);
        assert_same_archive(&expected(&scene, &options()), &scene.archive());
    }
}

#[test]
fn a_journal_beside_rows_changes_none() {
    let (scene, planned) = with_plan();
    let built = build(&scene, &planned.parts[0].path, &Recorder::new()).built;
    fs::write(built.join("000000.rows.partial-wal"), "").unwrap();
    assert!(matches!(
        damages(try_commit(&scene))[..],
        [BuiltDamage::RowsWithJournal]
    ));
}

#[test]
fn a_commit_that_was_killed_goes_on_before_any_volume() {
    for volume in [0, 1, 3] {
        let (scene, planned) = interrupted_commit(volume);
        let report = try_commit(&scene).unwrap();
        assert_eq!((report.members, report.failed), (planned.members, 0));
        let write = small_volumes(Dialect::Stook);
        assert_same_archive(&expected(&scene, &write), &scene.archive());
    }
}

#[test]
fn what_is_damaged_while_volumes_move_is_left_to_the_next_update() {
    let (scene, planned) = interrupted_commit(2);
    cut_off(&in_plan(&scene, "taken-000004/000000.tar.partial"));
    let recorder = Recorder::new();
    let report = commit(&scene.archive(), &CommitOptions::default(), &recorder).unwrap();
    let lost = planned.parts[4].members;
    assert_eq!(
        (report.members, report.failed),
        (planned.members - lost, lost)
    );
    let note =
        format!("what was built of part 000004 is damaged: its {lost} members count as failed");
    assert_eq!(recorder.notes(), [note]);
    assert!(!scene.archive().join("stook.plan").exists());
    scene.update();
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

/// Something that cannot be removed as the file that it should be.
fn obstacle(scene: &Scene) -> PathBuf {
    let obstacle = in_plan(scene, "building-000000-1-1/000000.tar.partial");
    fs::create_dir_all(&obstacle).unwrap();
    obstacle
}

#[test]
fn a_plan_that_is_given_up_cannot_be_committed_any_more() {
    let (scene, planned) = with_plan();
    build_all(&scene, &planned);
    let before = runs(&scene.archive()).unwrap().len();
    let obstacle = obstacle(&scene);
    let refused = abandon(&scene.archive()).unwrap_err();
    assert!(matches!(refused, ArchiveError::Sys(_)), "{refused:?}");
    let refused = try_commit(&scene).unwrap_err();
    assert!(
        matches!(refused, ArchiveError::NoPlan { .. }),
        "{refused:?}"
    );
    fs::remove_dir(&obstacle).unwrap();
    assert_eq!(abandon(&scene.archive()).unwrap().planned, Some((1, 3)));
    assert_eq!(runs(&scene.archive()).unwrap().len(), before - 1);
    assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);
    scene.update();
    scene.assert_extracts_to_source();
}

#[test]
fn a_writer_goes_on_after_a_plan_that_is_half_given_up() {
    let (scene, _) = with_plan();
    let obstacle = obstacle(&scene);
    assert!(abandon(&scene.archive()).is_err());
    fs::remove_dir(&obstacle).unwrap();
    scene.update();
    assert_eq!(
        scene.archive_files(),
        ["000000.tar", "000001.tar", "index.db"]
    );
    scene.assert_extracts_to_source();
}

#[test]
fn a_commit_that_is_complete_names_what_it_cannot_remove() {
    let (scene, planned) = with_plan();
    build_all(&scene, &planned);
    let obstacle = obstacle(&scene);
    let report = try_commit(&scene).unwrap();
    let building = b"building-000000-1-1".to_vec();
    assert!(report.foreign.contains(&building), "{report:?}");
    assert!(runs(&scene.archive()).unwrap()[1].finished.is_some());
    let again = try_commit(&scene).unwrap();
    assert!(again.was_committed && again.foreign.contains(&building));
    fs::remove_dir(&obstacle).unwrap();
    assert_eq!(try_commit(&scene).unwrap().foreign, [b""; 0]);
    assert_eq!(
        scene.archive_files(),
        ["000000.tar", "000001.tar", "index.db"]
    );
    scene.assert_extracts_to_source();
}

#[test]
fn the_users_plan_is_not_taken_for_one_of_ours() {
    let scene = Scene::archived(&tree! { "a" => file(b"a") });
    for folder in ["built-x", "built-000000", "stook.tmp"] {
        fs::create_dir_all(in_plan(&scene, folder)).unwrap();
    }
    for name in ["part-x", "sorted-x", "part-000000", "sorted-000000"] {
        fs::write(in_plan(&scene, name), "").unwrap();
    }
    fs::create_dir(in_plan(&scene, "built-000001")).unwrap();
    fs::write(in_plan(&scene, "built-000001/result"), "of mine").unwrap();
    fs::write(in_plan(&scene, "plan"), "a garden").unwrap();
    let refused = [
        try_commit(&scene).map(drop),
        abandon(&scene.archive()).map(drop),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(ArchiveError::NoPlan { .. })));
    }
    fs::write(scene.path("new"), "new").unwrap();
    scene.update();
    let left = names(&scene.archive().join("stook.plan"));
    let mine = [
        "built-000001",
        "built-x",
        "part-x",
        "plan",
        "sorted-x",
        "stook.tmp",
    ];
    assert_eq!(left, mine);
    assert_eq!(fs::read(in_plan(&scene, "plan")).unwrap(), b"a garden");
}

#[test]
fn without_a_plan_there_is_nothing_to_abandon() {
    let makers: [fn(&Path); 5] = [
        |path| fs::write(path, "a file").unwrap(),
        |path| fs::create_dir(path).unwrap(),
        |path| symlink("nowhere", path).unwrap(),
        |path| symlink(".", path).unwrap(),
        |path| {
            fs::create_dir_all(path.join("plan")).unwrap();
        },
    ];
    for make in makers {
        let scene = Scene::archived(&tree! { "a" => file(b"a") });
        let path = scene.archive().join("stook.plan");
        make(&path);
        for refused in [
            abandon(&scene.archive()).map(drop),
            try_commit(&scene).map(drop),
        ] {
            assert!(
                matches!(refused, Err(ArchiveError::NoPlan { .. })),
                "{refused:?}"
            );
        }
        assert!(fs::symlink_metadata(&path).is_ok());
        fs::write(scene.path("new"), "new").unwrap();
        update(
            scene.source(),
            &scene.archive(),
            &options(),
            &Recorder::new(),
        )
        .unwrap();
        scene.assert_extracts_to_source();
    }
}

#[test]
fn a_link_in_the_place_of_the_plan_directory_is_named() {
    for target in ["nowhere", "."] {
        let scene = Scene::archived(&tree! { "a" => file(b"a") });
        symlink(target, scene.archive().join("stook.plan")).unwrap();
        fs::write(scene.path("new"), "new").unwrap();
        let refused = try_plan(&scene).unwrap_err();
        assert!(
            matches!(refused, ArchiveError::NameTaken { .. }),
            "{refused:?}"
        );
    }
}

#[test]
fn a_directory_in_the_place_of_the_plan_can_be_given_up() {
    let (scene, _) = with_plan();
    fs::remove_file(in_plan(&scene, "plan")).unwrap();
    fs::create_dir(in_plan(&scene, "plan")).unwrap();
    let refused = try_commit(&scene).unwrap_err();
    assert!(
        matches!(
            refused,
            ArchiveError::BadPlanFile {
                source: PlanFileError::Foreign,
                ..
            }
        ),
        "{refused:?}"
    );
    let report = abandon(&scene.archive()).unwrap();
    assert_eq!(
        (report.planned, report.foreign),
        (None, vec![b"plan".to_vec()])
    );
    scene.update();
    scene.assert_extracts_to_source();
}

#[test]
fn a_builder_does_not_replace_what_is_the_users() {
    let (scene, planned) = with_plan();
    let path = in_plan(&scene, "built-000000");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("notes"), "mine").unwrap();
    let built = stook_archive::build_part(
        &planned.parts[0].path,
        scene.source(),
        &scene.archive().join("stook.plan"),
        &stook_archive::BuildOptions::default(),
        &Recorder::new(),
    );
    assert!(
        matches!(built, Err(ArchiveError::NameTaken { .. })),
        "{built:?}"
    );
    assert_eq!(fs::read(path.join("notes")).unwrap(), b"mine");
}

#[test]
fn parts_that_a_commit_has_taken_count_as_built() {
    let (scene, planned) = with_plan();
    let built = build(&scene, &planned.parts[0].path, &Recorder::new()).built;
    fs::rename(&built, in_plan(&scene, "taken-000000")).unwrap();
    assert_eq!(abandon(&scene.archive()).unwrap().built, 1);
}

#[test]
fn files_of_ours_that_cannot_be_read_are_not_the_users() {
    let done = without_privileges(|| {
        for name in ["plan", "part-000000", "built-000000"] {
            let (scene, planned) = with_plan();
            build_all(&scene, &planned);
            let path = in_plan(&scene, name);
            let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            mode(0o000);
            let refused = abandon(&scene.archive()).unwrap_err();
            let is_plan =
                matches!(&refused, ArchiveError::BadPlanFile { source, .. } if source.is_unread());
            assert!(
                is_plan || matches!(refused, ArchiveError::Sys(_)),
                "{refused:?}"
            );
            mode(0o700);
            committed(&scene.archive(), FailedMembers::Retry);
            scene.assert_extracts_to_source();
        }
    });
    if let Err(error) = done {
        stook_testkit::skip!("root may not change its user here: {error}");
    }
}
