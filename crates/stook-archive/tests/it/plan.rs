//! Plan, build, commit: the same archive as `create` and `update` make, wherever the parts are built, and nothing lost when one
//! of the three is repeated or fooled.

use std::fs;
use std::os::unix::fs::symlink;

use stook_archive::{
    ArchiveError, BuildOptions, CommitOptions, Dialect, FailedMembers, Jobs, PlanFileError,
    PlanOptions, WriteOptions, abandon, build_part, commit, create, plan, reindex,
};
use stook_sys::Links;
use stook_testkit::{Compare, Random, Tree, file, tree};

use crate::by_path::{runs, update};
use crate::planned::{
    assert_same_archive, build, build_all, committed, expected, many_files, names, planned,
    small_volumes,
};
use crate::recorder::Recorder;
use crate::scene::{Scene, options};

#[test]
fn parts_make_the_archive_that_create_makes() {
    for dialect in [Dialect::Stook, Dialect::Zstash] {
        let scene = Scene::new(&many_files());
        let write = small_volumes(dialect);
        let expected = expected(&scene, &write);
        let planned = planned(&scene, &scene.archive(), &write);
        assert!(planned.parts.len() > 5, "{}", planned.parts.len());
        assert!(planned.is_reserved);
        let built = build_all(&scene, &planned);
        assert_eq!(built.iter().map(|part| part.failed).sum::<u64>(), 0);
        let report = committed(&scene.archive(), FailedMembers::Retry);
        assert_eq!(
            (report.members, report.bytes),
            (planned.members, planned.bytes)
        );
        assert_eq!(report.volumes, names(&expected).len() as u64 - 1);
        assert_eq!(report.remaining, []);
        assert_same_archive(&expected, &scene.archive());
        scene.assert_clean();
    }
}

#[test]
fn parts_make_the_update_that_update_makes() {
    let scene = Scene::new(&many_files());
    let write = small_volumes(Dialect::Stook);
    let expected = expected(&scene, &write);
    create(scene.source(), &scene.archive(), &write, &Recorder::new()).unwrap();
    fs::remove_dir_all(scene.path("many/3")).unwrap();
    for number in 0..60 {
        fs::write(scene.path(&format!("many/1/new{number}")), [b'n'; 3000]).unwrap();
    }
    update(scene.source(), &expected, &write, &Recorder::new()).unwrap();
    let planned = planned(&scene, &scene.archive(), &write);
    build_all(&scene, &planned);
    let report = committed(&scene.archive(), FailedMembers::Retry);
    assert!(report.deleted > 20);
    assert_eq!(planned.deleted, report.deleted);
    assert_same_archive(&expected, &scene.archive());
    scene.assert_extracts_to_source();
}

#[test]
fn members_that_do_not_fit_into_memory_are_sorted_in_files() {
    let scene = Scene::new(&many_files());
    let write = small_volumes(Dialect::Stook);
    let in_memory = planned(&scene, &scene.beside("one"), &write);
    let options = PlanOptions {
        write,
        memory_bytes: 2_000,
    };
    let other = scene.beside("two");
    let sorted = plan(scene.source(), &other, &options, &Recorder::new()).unwrap();
    assert_eq!(sorted.parts.len(), in_memory.parts.len());
    for (one, two) in in_memory.parts.iter().zip(&sorted.parts) {
        let members = (one.members, one.bytes, one.volume_bytes);
        assert_eq!(members, (two.members, two.bytes, two.volume_bytes));
    }
    assert!(
        !names(&other.join("stook.plan"))
            .iter()
            .any(|name| name.starts_with("sorted"))
    );
    build_all(&scene, &sorted);
    committed(&other, FailedMembers::Retry);
    build_all(&scene, &in_memory);
    committed(&scene.beside("one"), FailedMembers::Retry);
    assert_same_archive(&scene.beside("one"), &other);
}

#[test]
fn a_planned_archive_is_reserved_until_it_is_abandoned() {
    let scene = Scene::new(&many_files());
    let write = small_volumes(Dialect::Stook);
    let archive = scene.archive();
    planned(&scene, &archive, &write);
    let before = stook_testkit::Snapshot::take(&archive).unwrap();
    let observer = Recorder::new();
    let is_refused =
        |result: Result<(), ArchiveError>| matches!(result, Err(ArchiveError::Planned { .. }));
    assert!(is_refused(
        create(scene.source(), &archive, &write, &observer).map(drop)
    ));
    assert!(is_refused(
        update(scene.source(), &archive, &write, &observer).map(drop)
    ));
    assert!(is_refused(
        plan(scene.source(), &archive, &PlanOptions::default(), &observer).map(drop)
    ));
    let after = stook_testkit::Snapshot::take(&archive).unwrap();
    assert_eq!(before.difference(&after, &Compare::everything()), [""; 0]);
    abandon(&archive).unwrap();
    assert!(!archive.exists());
    create(scene.source(), &archive, &write, &observer).unwrap();
    assert!(matches!(
        abandon(&archive),
        Err(ArchiveError::NoPlan { .. })
    ));
    let no_plan = commit(&archive, &CommitOptions::default(), &observer);
    assert!(matches!(no_plan, Err(ArchiveError::NoPlan { .. })));
    assert_same_archive(&expected(&scene, &write), &archive);
}

#[test]
fn an_update_that_is_planned_refuses_a_rebuilt_index() {
    let scene = Scene::archived(&many_files());
    fs::write(scene.path("new"), "new").unwrap();
    let planned = planned(&scene, &scene.archive(), &options());
    let result = reindex(&scene.archive(), Jobs::Adaptive, &Recorder::new());
    assert!(matches!(result, Err(ArchiveError::Planned { .. })));
    build_all(&scene, &planned);
    committed(&scene.archive(), FailedMembers::Retry);
    scene.assert_extracts_to_source();
}

#[test]
fn a_commit_needs_every_part() {
    let scene = Scene::new(&many_files());
    let planned = planned(&scene, &scene.archive(), &small_volumes(Dialect::Stook));
    for part in &planned.parts[1..] {
        build(&scene, &part.path, &Recorder::new());
    }
    let result = commit(
        &scene.archive(),
        &CommitOptions::default(),
        &Recorder::new(),
    );
    let Err(ArchiveError::NotBuilt { parts, .. }) = result else {
        panic!("{result:?}");
    };
    assert_eq!(parts, [planned.parts[0].path.clone()]);
    build(&scene, &planned.parts[0].path, &Recorder::new());
    committed(&scene.archive(), FailedMembers::Retry);
    let again = commit(
        &scene.archive(),
        &CommitOptions::default(),
        &Recorder::new(),
    );
    assert!(
        matches!(again, Err(ArchiveError::NoPlan { .. })),
        "{again:?}"
    );
    scene.assert_extracts_to_source();
}

#[test]
fn a_part_may_be_built_elsewhere_and_twice() {
    let scene = Scene::new(&many_files());
    let planned = planned(&scene, &scene.archive(), &small_volumes(Dialect::Stook));
    let elsewhere = scene.beside("elsewhere");
    let observer = Recorder::new();
    for part in &planned.parts {
        let build = || {
            build_part(
                &part.path,
                scene.source(),
                &elsewhere,
                &BuildOptions::default(),
                &observer,
            )
            .unwrap()
        };
        let first = build();
        assert_eq!(first, build());
        assert_eq!(first.members, part.members);
    }
    let missing = commit(&scene.archive(), &CommitOptions::default(), &observer);
    assert!(matches!(missing, Err(ArchiveError::NotBuilt { .. })));
    let options = CommitOptions {
        built_in: vec![elsewhere.clone()],
        ..CommitOptions::default()
    };
    commit(&scene.archive(), &options, &observer).unwrap();
    assert_eq!(names(&elsewhere), [""; 0]);
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

#[test]
fn files_that_change_after_the_plan_go_into_another_part() {
    let scene = Scene::new(&tree! {
        "gone" => file(b"gone"), "grows" => file(b"grows"), "shrinks" => file(b"shrinks"), "stays" => file(b"stays"),
        "turns" => file(b"turns"), "d/moves" => file(b"moves"), "d/stays" => file(b"stays"),
    });
    let archive = scene.archive();
    let planned = planned(&scene, &archive, &options());
    fs::remove_file(scene.path("gone")).unwrap();
    fs::write(scene.path("grows"), "grows and grows").unwrap();
    fs::write(scene.path("shrinks"), "s").unwrap();
    fs::remove_file(scene.path("turns")).unwrap();
    fs::create_dir(scene.path("turns")).unwrap();
    fs::rename(scene.path("d/moves"), scene.path("d/moved")).unwrap();
    let recorder = Recorder::new();
    let built = build(&scene, &planned.parts[0].path, &recorder);
    let failed = ["d/moves", "gone", "grows", "shrinks", "turns"];
    assert_eq!(recorder.failed_paths(), failed);
    assert_eq!((built.failed, built.members), (5, 3));
    let report = committed(&archive, FailedMembers::Retry);
    let [rest] = &report.remaining[..] else {
        panic!("{report:?}");
    };
    assert_eq!((rest.members, report.members), (5, 3));
    // Still reserved: what is left over is to be built, or given up.
    let refused = update(scene.source(), &archive, &options(), &Recorder::new());
    assert!(matches!(refused, Err(ArchiveError::Planned { .. })));
    let recorder = Recorder::new();
    let built = build(&scene, &rest.path, &recorder);
    assert_eq!(recorder.failed_paths(), failed);
    assert_eq!((built.members, built.volume_bytes), (0, 0));
    let report = committed(&archive, FailedMembers::Record);
    assert_eq!(
        (report.members, report.failed, report.remaining.len()),
        (0, 5, 0)
    );
    assert_eq!(runs(&archive).unwrap()[0].failed, 5);
    assert_eq!(names(&archive), ["000000.tar", "index.db"]);
    scene.update();
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

#[test]
fn a_file_that_comes_back_is_built_from_the_other_part() {
    let scene = Scene::new(&tree! { "a" => file(b"a"), "b" => file(b"b"), "c" => file(b"c") });
    let planned = planned(&scene, &scene.archive(), &options());
    let (here, away) = (scene.path("b"), scene.beside("away"));
    fs::rename(&here, &away).unwrap();
    build(&scene, &planned.parts[0].path, &Recorder::new());
    let report = committed(&scene.archive(), FailedMembers::Retry);
    fs::rename(&away, &here).unwrap();
    build(&scene, &report.remaining[0].path, &Recorder::new());
    let report = committed(&scene.archive(), FailedMembers::Retry);
    assert_eq!((report.members, report.failed), (1, 0));
    assert_eq!(
        names(&scene.archive()),
        ["000000.tar", "000001.tar", "index.db"]
    );
    scene.assert_extracts_to_source();
}

#[test]
fn members_that_are_longer_than_planned_go_into_another_part() {
    let mut tree = Tree::new();
    for number in 0..12 {
        let entry = file([b'x'; 4000]).xattr("user.stook", [b'v'; 1500]);
        tree.insert(format!("f{number:02}"), entry);
    }
    let scene = Scene::new(&tree);
    if !stook_testkit::supports_xattrs(scene.source()) {
        stook_testkit::skip!("no user attributes here");
        return;
    }
    let write = WriteOptions {
        volume_bytes: Some(40_960),
        ..options()
    };
    let planned = planned(&scene, &scene.archive(), &write);
    let built = build_all(&scene, &planned);
    let overflowed: u64 = built.iter().map(|part| part.overflowed).sum();
    assert!(overflowed > 0);
    let report = committed(&scene.archive(), FailedMembers::Record);
    let remaining: u64 = report.remaining.iter().map(|part| part.members).sum();
    assert_eq!((remaining, report.failed), (overflowed, 0));
    let mut left = report.remaining;
    while !left.is_empty() {
        for part in &left {
            build(&scene, &part.path, &Recorder::new());
        }
        left = committed(&scene.archive(), FailedMembers::Record).remaining;
    }
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

#[test]
fn a_builder_follows_no_link_that_took_the_place_of_a_directory() {
    let scene = Scene::new(&tree! { "d/secret" => file(b"secret"), "e" => file(b"e") });
    let planned = planned(&scene, &scene.archive(), &options());
    // The very file that was planned, outside of the tree.
    fs::create_dir(scene.beside("outside")).unwrap();
    fs::rename(scene.path("d/secret"), scene.beside("outside/secret")).unwrap();
    fs::remove_dir(scene.path("d")).unwrap();
    symlink(scene.beside("outside"), scene.path("d")).unwrap();
    let recorder = Recorder::new();
    build(&scene, &planned.parts[0].path, &recorder);
    assert_eq!(recorder.failed_paths(), ["d", "d/secret"]);
    let follows = BuildOptions {
        links: Links::Follow,
        ..BuildOptions::default()
    };
    let part = &planned.parts[0].path;
    let result = build_part(
        part,
        scene.source(),
        &scene.beside("b"),
        &follows,
        &recorder,
    );
    assert!(matches!(result, Err(ArchiveError::OtherLinks { .. })));
}

#[test]
fn a_damaged_part_builds_nothing() {
    let scene = Scene::new(&many_files());
    let planned = planned(&scene, &scene.archive(), &small_volumes(Dialect::Stook));
    let good = fs::read(&planned.parts[1].path).unwrap();
    let part = scene.beside("part-000001");
    let into = scene.beside("built");
    let mut random = Random::new(3);
    let flipped = (0..40).map(|_| {
        let mut bytes = good.clone();
        bytes[random.index(good.len())] ^= 1 << random.index(8);
        bytes
    });
    let cut = [0, 5, 11, 30, good.len() / 2, good.len() - 1].map(|len| good[..len].to_vec());
    for bytes in flipped.collect::<Vec<_>>().into_iter().chain(cut) {
        fs::write(&part, bytes).unwrap();
        let result = build_part(
            &part,
            scene.source(),
            &into,
            &BuildOptions::default(),
            &Recorder::new(),
        );
        assert!(
            matches!(result, Err(ArchiveError::BadPlanFile { .. })),
            "{result:?}"
        );
        // The destination is made before the part was read to its end.
        assert!(!into.exists() || names(&into).is_empty());
    }
}

#[test]
fn a_part_of_another_plan_is_refused() {
    let scene = Scene::new(&Tree::basic());
    let other = planned(&scene, &scene.beside("other"), &options());
    let ours = planned(&scene, &scene.archive(), &options());
    build_all(&scene, &other);
    let [from, to] =
        ["other", "archive"].map(|archive| scene.beside(archive).join("stook.plan/built-000000"));
    fs::rename(from, &to).unwrap();
    let result = commit(
        &scene.archive(),
        &CommitOptions::default(),
        &Recorder::new(),
    );
    assert!(
        matches!(result, Err(ArchiveError::OtherPlan { .. })),
        "{result:?}"
    );
    fs::remove_dir_all(to).unwrap();
    build_all(&scene, &ours);
    committed(&scene.archive(), FailedMembers::Retry);
    scene.assert_extracts_to_source();
}

#[test]
fn a_plan_that_cannot_be_read_still_reserves_and_can_be_abandoned() {
    let scene = Scene::archived(&Tree::basic());
    fs::write(scene.path("new"), "new").unwrap();
    planned(&scene, &scene.archive(), &options());
    let path = scene.archive().join("stook.plan/plan");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 30;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let refused = update(
        scene.source(),
        &scene.archive(),
        &options(),
        &Recorder::new(),
    );
    let Err(ArchiveError::BadPlanFile { source, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert!(matches!(source, PlanFileError::Checksum { .. }));
    abandon(&scene.archive()).unwrap();
    scene.update();
    scene.assert_extracts_to_source();
}

#[test]
fn a_directory_of_somebody_else_stays() {
    let scene = Scene::archived(&Tree::basic());
    fs::create_dir(scene.archive().join("stook.plan")).unwrap();
    fs::write(scene.archive().join("stook.plan/plan"), "a garden").unwrap();
    fs::write(scene.path("new"), "new").unwrap();
    let result = plan(
        scene.source(),
        &scene.archive(),
        &PlanOptions::default(),
        &Recorder::new(),
    );
    assert!(
        matches!(result, Err(ArchiveError::ForeignInPlan { .. })),
        "{result:?}"
    );
    let plan = fs::read(scene.archive().join("stook.plan/plan")).unwrap();
    assert_eq!(plan, b"a garden");
}
