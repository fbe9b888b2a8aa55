//! Plans of which something is damaged, missing, in another place, or not of stook: it is named, and there is a way out.

use std::fs;
use std::path::Path;

use stook_archive::{
    ArchiveError, CommitOptions, CommitReport, Dialect, FailedMembers, PlanFileError, PlanOptions,
    PlanReport, WriteOptions, abandon, commit, plan,
};
use stook_testkit::{Tree, tree};

use crate::by_path::{runs, update};
use crate::planned::{
    assert_same_archive, build, build_all, committed, copy, expected, many_files, names, planned,
    small_volumes,
};
use crate::recorder::Recorder;
use crate::scene::{Scene, options};

fn try_commit(archive: &Path) -> Result<CommitReport, ArchiveError> {
    commit(archive, &CommitOptions::default(), &Recorder::new())
}

fn try_plan(scene: &Scene) -> Result<PlanReport, ArchiveError> {
    let (source, archive) = (scene.source(), scene.archive());
    plan(source, &archive, &PlanOptions::default(), &Recorder::new())
}

/// An archive, and a plan of one new file.
fn with_plan() -> (Scene, PlanReport) {
    let scene = Scene::archived(&tree! { "a" => file(b"a"), "gone" => file(b"gone") });
    fs::write(scene.path("new"), "new").unwrap();
    fs::remove_file(scene.path("gone")).unwrap();
    let planned = planned(&scene, &scene.archive(), &options());
    (scene, planned)
}

fn plan_file(scene: &Scene, name: &str) -> std::path::PathBuf {
    scene.archive().join("stook.plan").join(name)
}

#[test]
fn no_flipped_byte_of_what_was_built_is_committed() {
    let scene =
        Scene::new(&tree! { "a" => file(b"aaa"), "d/b" => file(b"bb"), "d/c" => file(b"c") });
    let archive = scene.archive();
    let planned = planned(&scene, &archive, &options());
    let part = &planned.parts[0].path;
    let built = build(&scene, part, &Recorder::new()).built;
    let pristine = scene.beside("pristine");
    copy(&built, &pristine);
    for name in ["result", "000000.rows.partial"] {
        let len = fs::read(built.join(name)).unwrap().len();
        // All of a header, and a dense sample.
        let places = (0..len).filter(|place| *place < 120 || place % 211 == 0);
        for place in places {
            let mut bytes = fs::read(pristine.join(name)).unwrap();
            bytes[place] ^= 1 << (place % 8);
            fs::remove_file(built.join(name)).unwrap();
            fs::write(built.join(name), bytes).unwrap();
            let refused = try_commit(&archive);
            let Err(ArchiveError::BadBuilt { parts }) = refused else {
                panic!("byte {place} of {name}: {refused:?}");
            };
            assert_eq!((parts.len(), &parts[0].part), (1, part));
            // What it was put aside as.
            fs::remove_dir_all(plan_file(&scene, "damaged-000000")).unwrap();
            copy(&pristine, &built);
        }
    }
    fs::write(built.join("result"), "").unwrap();
    build_all(&scene, &planned);
    committed(&archive, FailedMembers::Retry);
    assert_same_archive(&expected(&scene, &options()), &archive);
}

#[test]
fn built_parts_that_changed_places_are_told_apart_from_those_of_other_plans() {
    let scene = Scene::new(&many_files());
    let write = small_volumes(Dialect::Stook);
    let planned = planned(&scene, &scene.archive(), &write);
    build_all(&scene, &planned);
    let [one, two, away] =
        ["built-000001", "built-000002", "away"].map(|name| plan_file(&scene, name));
    let swap = || {
        fs::rename(&one, &away).unwrap();
        fs::rename(&two, &one).unwrap();
        fs::rename(&away, &two).unwrap();
    };
    swap();
    let refused = try_commit(&scene.archive()).unwrap_err();
    assert!(matches!(refused, ArchiveError::OtherPart { part: 2, .. }));
    let text = format!(
        "cannot use `{}`: it was built of part 000002 of this plan",
        one.display()
    );
    assert_eq!(refused.to_string(), text);
    swap();
    committed(&scene.archive(), FailedMembers::Retry);
    assert_same_archive(&expected(&scene, &write), &scene.archive());
}

#[test]
fn names_that_are_gone_are_not_forgotten_when_their_file_is() {
    let (scene, planned) = with_plan();
    let archive = scene.archive();
    build_all(&scene, &planned);
    let path = plan_file(&scene, "deleted");
    let pristine = fs::read(&path).unwrap();
    let other = Scene::archived(&tree! { "a" => file(b"a"), "b" => file(b"b"), "c" => file(b"c") });
    fs::remove_file(other.path("a")).unwrap();
    fs::remove_file(other.path("b")).unwrap();
    crate::planned::planned(&other, &other.archive(), &options());
    let of_other = fs::read(plan_file(&other, "deleted")).unwrap();
    let before = fs::read(archive.join("index.db")).unwrap();
    for (bytes, expected) in [
        (None, "no such file or directory"),
        (Some(vec![]), "it does not begin like a file of a plan"),
        (
            Some(pristine[..pristine.len() - 1].to_vec()),
            "it is cut off",
        ),
        (Some(of_other), "it has 2 names, 1 were planned"),
    ] {
        fs::remove_file(&path).unwrap();
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).unwrap();
        }
        let refused = try_commit(&archive).unwrap_err();
        assert!(matches!(refused, ArchiveError::BadPlanFile { .. }));
        let text = format!("cannot use `{}`: {expected}", path.display());
        assert_eq!(refused.to_string(), text);
        assert!(before == fs::read(archive.join("index.db")).unwrap());
        fs::write(&path, &pristine).unwrap();
    }
    assert_eq!(committed(&archive, FailedMembers::Retry).deleted, 1);
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

#[test]
fn what_is_not_of_stook_stays_and_is_named() {
    let (scene, planned) = with_plan();
    let archive = scene.archive();
    build_all(&scene, &planned);
    for name in ["notes", "part-list"] {
        fs::write(plan_file(&scene, name), "mine").unwrap();
    }
    let report = abandon(&archive).unwrap();
    assert_eq!(report.foreign, [b"notes".to_vec(), b"part-list".to_vec()]);
    assert_eq!(names(&archive.join("stook.plan")), ["notes", "part-list"]);
    let refused = try_plan(&scene).unwrap_err();
    let text = format!(
        "cannot plan in `{}`: it holds `notes` and `part-list`, which stook did not make",
        archive.join("stook.plan").display()
    );
    assert!(matches!(refused, ArchiveError::ForeignInPlan { .. }));
    assert_eq!(refused.to_string(), text);
    // There is nothing to give up any more.
    assert!(matches!(
        abandon(&archive),
        Err(ArchiveError::NoPlan { .. })
    ));
    scene.update();
    scene.assert_extracts_to_source();
    fs::remove_dir_all(archive.join("stook.plan")).unwrap();
    fs::write(archive.join("stook.plan"), "a file").unwrap();
    fs::write(scene.path("newer"), "newer").unwrap();
    scene.update();
    assert!(matches!(
        try_plan(&scene),
        Err(ArchiveError::NameTaken { .. })
    ));
}

#[test]
fn a_plan_that_is_damaged_beyond_recognition_reserves_until_it_is_abandoned() {
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes[0] ^= 1,
        |bytes| bytes[10] ^= 1,
        |bytes| bytes.fill(0),
        Vec::clear,
    ];
    for damage in damages {
        let (scene, _) = with_plan();
        let archive = scene.archive();
        fs::write(plan_file(&scene, "notes"), "mine").unwrap();
        let mut bytes = fs::read(plan_file(&scene, "plan")).unwrap();
        damage(&mut bytes);
        fs::write(plan_file(&scene, "plan"), bytes).unwrap();
        let updated = update(scene.source(), &archive, &options(), &Recorder::new());
        for refused in [
            updated.map(drop),
            try_plan(&scene).map(drop),
            try_commit(&archive).map(drop),
        ] {
            let Err(ArchiveError::BadPlanFile { path, source }) = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(path, &plan_file(&scene, "plan"));
            assert!(matches!(source, PlanFileError::Foreign), "{source:?}");
        }
        let report = abandon(&archive).unwrap();
        assert_eq!(
            (report.planned, report.foreign),
            (None, vec![b"notes".to_vec()])
        );
        assert_eq!(names(&archive.join("stook.plan")), ["notes"]);
        scene.update();
        scene.assert_clean();
        scene.assert_extracts_to_source();
    }
}

#[test]
fn damaged_parts_go_with_their_plan() {
    let (scene, planned) = with_plan();
    let mut bytes = fs::read(&planned.parts[0].path).unwrap();
    bytes[2] ^= 0x40;
    fs::write(&planned.parts[0].path, bytes).unwrap();
    let report = abandon(&scene.archive()).unwrap();
    assert_eq!((report.parts, report.foreign.len()), (1, 0));
    assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);
}

#[test]
fn a_commit_that_was_killed_at_its_end_is_completed() {
    for left in [&["plan", "deleted", "part-000000"][..], &["plan"]] {
        let (scene, planned) = with_plan();
        let archive = scene.archive();
        build_all(&scene, &planned);
        let before = scene.beside("before");
        copy(&archive.join("stook.plan"), &before);
        assert!(!committed(&archive, FailedMembers::Retry).was_committed);
        let (runs_before, index) = (
            runs(&archive).unwrap(),
            fs::read(archive.join("index.db")).unwrap(),
        );
        fs::create_dir(archive.join("stook.plan")).unwrap();
        for name in left {
            fs::copy(before.join(name), plan_file(&scene, name)).unwrap();
        }
        let report = try_commit(&archive).unwrap();
        assert!(report.was_committed);
        assert_eq!(
            (report.volumes, report.failed, report.remaining.len()),
            (0, 0, 0)
        );
        assert_eq!(
            scene.archive_files(),
            ["000000.tar", "000001.tar", "index.db"]
        );
        assert_eq!(runs(&archive).unwrap(), runs_before);
        assert!(index == fs::read(archive.join("index.db")).unwrap());
        assert!(matches!(
            try_commit(&archive),
            Err(ArchiveError::NoPlan { .. })
        ));
        scene.assert_extracts_to_source();
    }
}

#[test]
fn volumes_have_no_number_behind_the_last_one() {
    let scene = Scene::new(&many_files());
    let archive = scene.archive();
    let write = small_volumes(Dialect::Stook);
    let planned = planned(&scene, &archive, &write);
    build_all(&scene, &planned);
    for last in ["7fffffffffffffff.tar", "7ffffffffffffffe.tar"] {
        fs::write(archive.join(last), "").unwrap();
        let refused = try_commit(&archive);
        assert!(
            matches!(&refused, Err(error @ ArchiveError::NoVolumeNumber { .. }) if error.to_string().contains(last)),
            "{refused:?}"
        );
        fs::remove_file(archive.join(last)).unwrap();
    }
    committed(&archive, FailedMembers::Retry);
    assert_same_archive(&expected(&scene, &write), &archive);
    for number in 0..60 {
        fs::write(scene.path(&format!("many/1/new{number}")), [b'n'; 3000]).unwrap();
    }
    for write in [options(), write] {
        fs::write(archive.join("7ffffffffffffffe.tar"), "").unwrap();
        let refused = update(scene.source(), &archive, &write, &Recorder::new());
        assert!(
            matches!(refused, Err(ArchiveError::NoVolumeNumber { .. })),
            "{refused:?}"
        );
        fs::remove_file(archive.join("7ffffffffffffffe.tar")).unwrap();
    }
    scene.update();
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

#[test]
fn a_plan_counts_what_has_only_other_metadata() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::archived(&Tree::basic());
    fs::write(scene.path("new"), "new").unwrap();
    let changed = scene.path("changed");
    fs::write(&changed, "changed").unwrap();
    scene.update();
    fs::set_permissions(&changed, fs::Permissions::from_mode(0o600)).unwrap();
    let planned = planned(&scene, &scene.archive(), &WriteOptions { ..options() });
    assert_eq!(planned.metadata_changed, 1);
}
