//! What was built of the parts: built again when that helps, verified before it is committed, and never mixed up.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use stook_archive::{
    ArchiveError, BaseObserver, BuildOptions, BuiltDamage, BuiltVolumes, CommitOptions,
    DamagedPart, Dialect, FailedMembers, Failure, Observer, PlanReport, WriteOptions, build_part,
    commit,
};
use stook_testkit::{Compare, Snapshot, Tree, file, tree};

use crate::by_path::runs;
use crate::planned::{
    assert_same_archive, build, build_all, committed, expected, many_files, names, planned,
    small_volumes,
};
use crate::recorder::Recorder;
use crate::scene::{Scene, options};

fn three_files() -> Tree {
    tree! { "a" => file(b"aaa"), "b" => file(b"bb"), "c" => file(b"c") }
}

/// Moves a file away for as long as `meanwhile` takes.
fn without<R>(scene: &Scene, name: &str, meanwhile: impl FnOnce() -> R) -> R {
    let (here, away) = (scene.path(name), scene.beside("away"));
    fs::rename(&here, &away).unwrap();
    let result = meanwhile();
    fs::rename(&away, &here).unwrap();
    result
}

fn refused(archive: &Path, options: &CommitOptions) -> ArchiveError {
    let index = || fs::read(archive.join("index.db")).unwrap();
    let before = index();
    let error = commit(archive, options, &Recorder::new()).unwrap_err();
    assert!(before == index(), "the index has changed");
    assert_eq!(names(archive), ["index.db", "stook.plan"]);
    error
}

fn damaged(archive: &Path) -> Vec<DamagedPart> {
    match refused(archive, &CommitOptions::default()) {
        ArchiveError::BadBuilt { parts } => parts,
        other => panic!("{other:?}"),
    }
}

fn volume(scene: &Scene, part: usize) -> PathBuf {
    let built = format!("stook.plan/built-{part:06}/000000.tar.partial");
    scene.archive().join(built)
}

/// Writes a file anew, whatever its rights.
fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Changes the rows of a built part, and makes its result say that they were built so: no damage does that, only somebody.
fn vouching_for_rows(built: &Path, change_rows: impl FnOnce()) {
    let md5 = || stook_md5::md5_many(&[&fs::read(built.join("000000.rows.partial")).unwrap()])[0];
    let before = md5();
    change_rows();
    change(&built.join("result"), |bytes| {
        let place = bytes.windows(16).position(|window| window == before);
        let place = place.unwrap();
        bytes[place..place + 16].copy_from_slice(&md5());
        // The first block: its length, its CRC, its kind, its payload.
        let len = usize::from(bytes[11]) + 256 * usize::from(bytes[12]);
        let crc = stook_volume::crc32(&[&[0; 8], &bytes[19..20 + len]]);
        bytes[15..19].copy_from_slice(&crc.to_le_bytes());
    });
}

/// Builds the damaged parts again, commits, and expects the archive that `create` makes.
fn assert_mended(scene: &Scene, planned: &PlanReport, write: &WriteOptions) {
    build_all(scene, planned);
    let report = committed(&scene.archive(), FailedMembers::Retry);
    assert_eq!(report.members, planned.members);
    assert_same_archive(&expected(scene, write), &scene.archive());
    scene.assert_clean();
}

#[test]
fn a_part_with_failures_is_built_again_when_its_files_can_be_read() {
    let scene = Scene::new(&three_files());
    let planned = planned(&scene, &scene.archive(), &options());
    let part = &planned.parts[0].path;
    let recorder = Recorder::new();
    let first = without(&scene, "b", || build(&scene, part, &recorder));
    assert_eq!((first.members, first.failed), (2, 1));
    assert_eq!(recorder.failed_paths(), ["b"]);
    // Still gone: it is named again.
    let recorder = Recorder::new();
    let second = without(&scene, "b", || build(&scene, part, &recorder));
    assert_eq!(
        (second, recorder.failed_paths()),
        (first, vec!["b".to_owned()])
    );
    let third = build(&scene, part, &Recorder::new());
    assert_eq!((third.members, third.failed), (3, 0));
    let plan = scene.archive().join("stook.plan");
    assert_eq!(names(&plan), ["built-000000", "part-000000", "plan"]);
    assert_eq!(
        committed(&scene.archive(), FailedMembers::Retry).remaining,
        []
    );
    assert_same_archive(&expected(&scene, &options()), &scene.archive());
}

/// Raises a flag when it is dropped.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_part_that_is_built_again_is_there_all_the_time() {
    let scene = Scene::new(&three_files());
    let planned = planned(&scene, &scene.archive(), &options());
    let part = &planned.parts[0].path;
    let built = build(&scene, part, &Recorder::new()).built;
    let [one, other] = ["one", "other"].map(|name| scene.beside(name));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&other).unwrap();
    if !stook_sys::exchange(&one, &other).unwrap() {
        stook_testkit::skip!("names cannot be exchanged here");
        return;
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        // Ends the watch also if a build panics.
        let ending = Raised(&is_done);
        let watch = threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert!(
                    fs::symlink_metadata(&built).is_ok(),
                    "for a moment it was not there"
                );
            }
        });
        for _ in 0..40 {
            without(&scene, "b", || {
                fs::remove_file(built.join("result")).unwrap();
                build(&scene, part, &Recorder::new())
            });
        }
        drop(ending);
        watch.join().unwrap();
    });
}

#[test]
fn a_part_that_is_complete_is_not_built_again() {
    let scene = Scene::new(&three_files());
    let planned = planned(&scene, &scene.archive(), &options());
    let part = &planned.parts[0].path;
    let first = build(&scene, part, &Recorder::new());
    let inode = fs::metadata(volume(&scene, 0)).unwrap().ino();
    let second = without(&scene, "b", || build(&scene, part, &Recorder::new()));
    assert_eq!(
        (first, fs::metadata(volume(&scene, 0)).unwrap().ino()),
        (second, inode)
    );
}

#[test]
fn what_was_built_before_stays_if_it_has_more_members() {
    let scene = Scene::new(&three_files());
    let planned = planned(&scene, &scene.archive(), &options());
    let part = &planned.parts[0].path;
    let first = without(&scene, "b", || build(&scene, part, &Recorder::new()));
    fs::remove_file(scene.path("b")).unwrap();
    fs::remove_file(scene.path("c")).unwrap();
    let recorder = Recorder::new();
    assert_eq!(build(&scene, part, &recorder), first);
    assert_eq!(recorder.failed_paths(), ["b", "c"]);
    let note = "what was built before stays: it has one more member";
    assert_eq!(recorder.notes(), [note]);
    let report = committed(&scene.archive(), FailedMembers::Record);
    assert_eq!((report.members, report.failed), (2, 1));
}

#[test]
fn a_volume_that_was_cut_off_is_built_again() {
    let scene = Scene::new(&many_files());
    let write = small_volumes(Dialect::Stook);
    let planned = planned(&scene, &scene.archive(), &write);
    build_all(&scene, &planned);
    let cut_off = volume(&scene, 1);
    let len = fs::metadata(&cut_off).unwrap().len();
    change(&cut_off, |bytes| bytes.truncate(bytes.len() - 512));
    let [part] = &damaged(&scene.archive())[..] else {
        panic!("one part is damaged");
    };
    let damage = format!("its volume has {} bytes, {len} were built", len - 512);
    assert_eq!(part.part, planned.parts[1].path);
    assert_eq!(part.damage.to_string(), damage);
    assert_mended(&scene, &planned, &write);
}

#[test]
fn a_volume_that_was_cut_off_is_built_again_before_any_commit() {
    let scene = Scene::new(&many_files());
    let write = small_volumes(Dialect::Stook);
    let planned = planned(&scene, &scene.archive(), &write);
    build_all(&scene, &planned);
    change(&volume(&scene, 1), |bytes| bytes.truncate(512));
    fs::remove_file(volume(&scene, 2)).unwrap();
    assert_mended(&scene, &planned, &write);
}

#[test]
fn a_flipped_bit_in_a_built_volume_is_found() {
    let scene = Scene::new(&many_files());
    let write = small_volumes(Dialect::Stook);
    let planned = planned(&scene, &scene.archive(), &write);
    build_all(&scene, &planned);
    for part in [3, 4] {
        change(&volume(&scene, part), |bytes| bytes[700] ^= 1);
    }
    let found = damaged(&scene.archive());
    assert!(
        found
            .iter()
            .all(|part| matches!(part.damage, BuiltDamage::WrongMd5))
    );
    let paths: Vec<_> = found.iter().map(|part| &part.part).collect();
    assert_eq!(paths, [&planned.parts[3].path, &planned.parts[4].path]);
    assert_mended(&scene, &planned, &write);
}

#[test]
fn who_trusts_the_volumes_need_not_read_them() {
    let scene = Scene::new(&three_files());
    let planned = planned(&scene, &scene.archive(), &options());
    build_all(&scene, &planned);
    change(&volume(&scene, 0), |bytes| bytes[700] ^= 1);
    let options = CommitOptions {
        volumes: BuiltVolumes::OfTheirLength,
        ..CommitOptions::default()
    };
    let report = commit(&scene.archive(), &options, &Recorder::new()).unwrap();
    assert_eq!(report.members, 3);
    assert!(scene.check(&Recorder::new()).damages > 0);
}

#[test]
fn every_damaged_part_is_named() {
    let scene = Scene::new(&many_files());
    let write = small_volumes(Dialect::Stook);
    let planned = planned(&scene, &scene.archive(), &write);
    let built: Vec<_> = build_all(&scene, &planned).into_iter().rev().collect();
    fs::remove_file(volume(&scene, 0)).unwrap();
    change(&built[1].built.join("result"), |bytes| bytes[40] ^= 1);
    let rows = |part: usize| built[part].built.join("000000.rows.partial");
    vouching_for_rows(&built[2].built, || {
        change(&rows(2), |bytes| bytes.truncate(5000));
    });
    vouching_for_rows(&built[3].built, || {
        fs::copy(rows(4), rows(3)).unwrap();
    });
    change(&rows(4), |bytes| bytes[100] ^= 1);
    fs::remove_file(rows(5)).unwrap();
    let found = damaged(&scene.archive());
    let damages: Vec<_> = found.iter().map(|part| &part.damage).collect();
    assert!(
        matches!(
            damages[..],
            [
                BuiltDamage::VolumeMissing,
                BuiltDamage::Result(_),
                BuiltDamage::Rows(_),
                BuiltDamage::ForeignRow,
                BuiltDamage::RowsChanged,
                BuiltDamage::RowsMissing,
            ]
        ),
        "{damages:?}"
    );
    assert_mended(&scene, &planned, &write);
}

#[test]
fn a_missing_folder_of_built_parts_is_named() {
    let scene = Scene::new(&three_files());
    planned(&scene, &scene.archive(), &options());
    let missing = scene.beside("missing");
    let options = CommitOptions {
        built_in: vec![missing.clone()],
        ..CommitOptions::default()
    };
    let error = refused(&scene.archive(), &options).to_string();
    assert_eq!(
        error,
        format!(
            "cannot open `{}`: no such file or directory",
            missing.display()
        )
    );
}

#[test]
fn failures_are_recorded_without_building_them_once_more() {
    let scene = Scene::new(&three_files());
    let archive = scene.archive();
    let planned = planned(&scene, &archive, &options());
    let part = &planned.parts[0].path;
    without(&scene, "b", || build(&scene, part, &Recorder::new()));
    let report = committed(&archive, FailedMembers::Retry);
    assert!(report.remaining[0].is_retry);
    let not_built = commit(&archive, &CommitOptions::default(), &Recorder::new());
    assert!(matches!(
        not_built,
        Err(ArchiveError::NotBuilt {
            are_retries: true,
            ..
        })
    ));
    let report = committed(&archive, FailedMembers::Record);
    assert_eq!(
        (report.members, report.failed, report.remaining.len()),
        (0, 1, 0)
    );
    assert_eq!(runs(&archive).unwrap()[0].failed, 1);
    assert_eq!(names(&archive), ["000000.tar", "index.db"]);
    assert_eq!(scene.update().members, 1);
    scene.assert_extracts_to_source();
}

#[test]
fn members_that_did_not_fit_are_not_taken_for_failures() {
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
    let archive = scene.archive();
    let write = WriteOptions {
        volume_bytes: Some(40_960),
        ..options()
    };
    let planned = planned(&scene, &archive, &write);
    let built = without(&scene, "f03", || build_all(&scene, &planned));
    assert!(
        built
            .iter()
            .any(|part| part.overflowed > 0 && part.failed > 0)
    );
    let report = committed(&archive, FailedMembers::Retry);
    let retries = report.remaining.iter().filter(|part| part.is_retry);
    assert_eq!(retries.map(|part| part.members).sum::<u64>(), 1);
    let not_built = refused_again(&archive);
    assert!(!not_built.iter().any(|part| {
        report
            .remaining
            .iter()
            .any(|remaining| remaining.is_retry && remaining.path == *part)
    }));
    let mut left = report.remaining;
    while !left.is_empty() {
        for part in left.iter().filter(|part| !part.is_retry) {
            build(&scene, &part.path, &Recorder::new());
        }
        left = committed(&archive, FailedMembers::Record).remaining;
    }
    assert_eq!(runs(&archive).unwrap()[0].failed, 1);
    assert_eq!(scene.update().members, 1);
    scene.assert_clean();
    scene.assert_extracts_to_source();
}

fn refused_again(archive: &Path) -> Vec<PathBuf> {
    let options = CommitOptions {
        failures: FailedMembers::Record,
        ..CommitOptions::default()
    };
    match commit(archive, &options, &Recorder::new()) {
        Err(ArchiveError::NotBuilt {
            parts,
            are_retries: false,
            ..
        }) => parts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_builder_does_not_replace_what_is_being_committed() {
    let scene = Scene::new(&three_files());
    let archive = scene.archive();
    let planned = planned(&scene, &archive, &options());
    let part = &planned.parts[0].path;
    without(&scene, "b", || build(&scene, part, &Recorder::new()));
    let recorder = Recorder::at_phase("verify", || {
        let again = build(&scene, part, &Recorder::new());
        assert_eq!((again.members, again.failed), (2, 1));
        // To another destination, where nothing tells of the commit.
        let elsewhere = scene.beside("elsewhere");
        let options = BuildOptions::default();
        build_part(part, scene.source(), &elsewhere, &options, &Recorder::new()).unwrap();
    });
    let options = CommitOptions {
        failures: FailedMembers::Record,
        ..CommitOptions::default()
    };
    let report = commit(&archive, &options, &recorder).unwrap();
    assert_eq!((report.members, report.failed), (2, 1));
    scene.assert_clean();
    scene.update();
    scene.assert_extracts_to_source();
}

/// Asks to end when a phase begins.
struct EndsIn(&'static str, AtomicBool);

impl BaseObserver for EndsIn {
    type Failure = Failure;

    fn is_interrupted(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }
}

impl Observer for EndsIn {
    fn phase(&self, name: &'static str, _entries: Option<u64>, _bytes: Option<u64>) {
        self.1.fetch_or(name == self.0, Ordering::Relaxed);
    }
}

#[test]
fn a_commit_that_is_interrupted_leaves_what_was_built() {
    let scene = Scene::new(&many_files());
    let archive = scene.archive();
    let write = small_volumes(Dialect::Stook);
    let planned = planned(&scene, &archive, &write);
    build_all(&scene, &planned);
    let before = Snapshot::take(&archive).unwrap();
    let observer = EndsIn("verify", AtomicBool::new(false));
    let result = commit(&archive, &CommitOptions::default(), &observer);
    assert!(
        matches!(result, Err(ArchiveError::Interrupted)),
        "{result:?}"
    );
    let after = Snapshot::take(&archive).unwrap();
    let difference = before.difference(&after, &Compare::everything());
    // Only the times of directories that names were taken from and given back to.
    assert!(
        difference
            .iter()
            .all(|line| line.contains("stook.plan`") || line.contains("mtime")),
        "{difference:?}"
    );
    committed(&archive, FailedMembers::Retry);
    assert_same_archive(&expected(&scene, &write), &archive);
}

#[test]
fn changes_since_the_plan_are_told_as_such() {
    let scene = Scene::new(&tree! {
        "grows" => file(b"grows"), "moves" => file(b"moves"), "shrinks" => file(b"shrinks"), "touched" => file(b"touched"),
    });
    let planned = planned(&scene, &scene.archive(), &options());
    fs::write(scene.path("grows"), "grows and grows").unwrap();
    fs::write(scene.path("shrinks"), "s").unwrap();
    fs::write(scene.beside("other"), "moves").unwrap();
    fs::rename(scene.beside("other"), scene.path("moves")).unwrap();
    let touched = fs::File::options()
        .write(true)
        .open(scene.path("touched"))
        .unwrap();
    touched
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    let recorder = Recorder::new();
    build(&scene, &planned.parts[0].path, &recorder);
    let expected = [
        "cannot archive `grows`: it grew from 5 to 15 bytes after it was planned",
        "cannot archive `moves`: another file took its place after it was planned",
        "cannot archive `shrinks`: it shrank from 7 to 1 bytes after it was planned",
        "cannot archive `touched`: it changed after it was planned",
    ];
    assert_eq!(recorder.failure_texts(), expected);
}
