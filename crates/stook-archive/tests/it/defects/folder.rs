//! D2, D3, D8, D9, D11, D14: what becomes of index.db, the volumes and the folder they lie in.

use std::fs;
use std::path::{Path, PathBuf};

use stook_archive::{
    ArchiveError, AsOf, CheckOptions, DiffOptions, ExtractOptions, Jobs, Mtime, Silent, create,
    reindex,
};
use stook_index::{Config, Index};
use stook_testkit::{Snapshot, TempDir, Tree, tree};

use crate::by_path::{cat, check, diff, extract, update};
use crate::folder::{as_zstash, assert_clean, bytes_in, files_in, volumes_in};
use crate::recorder::Recorder;
use crate::scene::{Scene, as_ordinary_user, content, names, options};

fn volumes_of(scene: &Scene) -> Vec<(String, Vec<u8>)> {
    volumes_in(&scene.archive())
}

#[test]
fn d02_an_update_never_removes_the_index_or_a_volume() {
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&Tree::basic());
        scene.create_with(&dialect, &Recorder::new());
        let before = volumes_of(&scene);
        for round in 0..3 {
            let content = "x".repeat(round + 1);
            scene.lay(&tree! { "top.txt" => file(content) });
            scene.update_with(&dialect, &Recorder::new());
            scene.update_with(&dialect, &Recorder::new());
            let after = volumes_of(&scene);
            assert_eq!(after.len(), before.len() + round + 1);
            assert!(after.starts_with(&before));
            assert!(scene.archive_files().contains(&"index.db".to_owned()));
            scene.assert_clean();
        }
    }
}

#[test]
fn d02_an_update_without_an_index_is_refused_and_changes_nothing() {
    let scene = Scene::new(&Tree::basic());
    scene.create();
    fs::remove_file(scene.archive().join("index.db")).unwrap();
    let before = bytes_in(&scene.archive());
    for operation in [update, create] {
        let error = operation(scene.source(), &scene.archive(), &options(), &Silent).unwrap_err();
        assert!(matches!(error, ArchiveError::NoIndex { .. }), "{error}");
        assert!(bytes_in(&scene.archive()) == before);
    }
}

/// An archive whose settings name a remote store: its local volumes may be the only ones there are.
#[test]
fn d03_no_operation_deletes_a_volume_whatever_the_settings_say() {
    let scene = Scene::new(&Tree::basic());
    fs::create_dir(scene.archive()).unwrap();
    let config = Config {
        hpss: "/home/of/the/archive".to_owned(),
        maxsize: 40 << 10,
        path: b"/source".to_vec(),
    };
    drop(Index::create(scene.archive().join("index.db"), &config).unwrap());
    scene.create();
    scene.lay(&tree! { "new" => file(b"only here") });
    scene.update();
    let before = bytes_in(&scene.archive());
    assert!(before.len() > 4);
    scene.assert_clean();
    scene.extract(AsOf::Now);
    scene.diff();
    content(&scene, "new");
    assert!(bytes_in(&scene.archive()) == before);
    assert_clean(&scene.archive());
    let index = Index::open_read(scene.archive().join("index.db")).unwrap();
    assert_eq!(index.config().unwrap(), config);
}

/// The second update comes while the first one is in the middle of its work.
#[test]
fn d08_of_two_updates_at_once_the_second_is_refused() {
    let scene = Scene::new(&Tree::basic());
    scene.create();
    scene.lay(&tree! { "new" => file(b"new") });
    let (source, archive) = (scene.source().to_owned(), scene.archive());
    let recorder = Recorder::at_phase("archive", || {
        for operation in [update, create] {
            let error = operation(&source, &archive, &options(), &Silent).unwrap_err();
            let text = error.to_string();
            let process = std::process::id().to_string();
            match error {
                ArchiveError::Locked {
                    process: holder, ..
                } => assert_eq!(holder, process),
                ArchiveError::Exists { .. } => {}
                _ => panic!("{text}"),
            }
        }
        let error = reindex(&archive, Jobs::Fixed(1), &Silent).unwrap_err();
        assert!(matches!(error, ArchiveError::Locked { .. }), "{error}");
    });
    let report = scene.update_with(&options(), &recorder);
    assert_eq!((report.members, report.volumes), (1, 1));
    assert_eq!(
        scene.archive_files(),
        ["000000.tar", "000001.tar", "index.db"]
    );
    let mut found = names(&scene.archive(), AsOf::Now, true);
    found.sort();
    let count = found.len();
    found.dedup();
    assert_eq!(found.len(), count, "a row is there twice");
    scene.assert_clean();
}

/// A write-protected volume that no row speaks of, as a crash of zstash leaves one.
#[test]
fn d09_a_volume_that_was_never_committed_does_not_stop_the_next_update() {
    as_ordinary_user(
        "defects::folder::d09_a_volume_that_was_never_committed_does_not_stop_the_next_update",
        || {
            let scene = Scene::new(&Tree::basic());
            scene.create();
            let stranger = scene.archive().join("000001.tar");
            fs::copy(scene.archive().join("000000.tar"), &stranger).unwrap();
            let mut permissions = fs::metadata(&stranger).unwrap().permissions();
            permissions.set_readonly(true);
            fs::set_permissions(&stranger, permissions).unwrap();
            let before = fs::read(&stranger).unwrap();
            scene.lay(&tree! { "new" => file(b"new") });
            let report = scene.update();
            assert_eq!((report.members, report.volumes), (1, 1));
            assert_eq!(content(&scene, "new"), b"new");
            assert!(fs::read(&stranger).unwrap() == before);
            let expected = ["000000.tar", "000001.tar", "000002.tar", "index.db"];
            assert_eq!(scene.archive_files(), expected);
            scene.assert_clean();
        },
    );
}

/// The same, but of ours: renamed and write-protected, killed before the commit. The marker tells.
#[test]
fn d09_our_own_volume_that_was_never_committed_is_taken_up_again() {
    let scene = Scene::new(&Tree::basic());
    scene.create();
    let undisturbed = bytes_in(&scene.archive());
    scene.lay(&tree! { "new" => file(b"new") });
    let mut index = Index::open_write(scene.archive().join("index.db")).unwrap();
    index.begin_run("update", Mtime(0)).unwrap();
    drop(index);
    fs::write(scene.archive().join("000001.tar"), b"half a volume").unwrap();
    fs::write(scene.archive().join("000001.rows.partial"), b"").unwrap();
    let report = scene.update();
    assert_eq!((report.members, report.volumes), (1, 1));
    assert_eq!(
        scene.archive_files(),
        ["000000.tar", "000001.tar", "index.db"]
    );
    assert!(volumes_of(&scene)[0] == undisturbed[0]);
    scene.assert_clean();
}

#[test]
fn d11_the_archive_is_not_archived_however_it_is_spelled() {
    let here = std::env::current_dir().unwrap();
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&Tree::basic());
        std::os::unix::fs::symlink(scene.source(), scene.beside("alias")).unwrap();
        let up = PathBuf::from("../".repeat(here.components().count()));
        let inside = scene.source().join("zstash");
        let relative = up.join(inside.strip_prefix("/").unwrap());
        let spellings = [
            inside.clone(),
            inside.join(""),
            inside.join("."),
            scene.source().join("./a/../zstash/"),
            scene.beside("alias").join("zstash"),
            relative.join(""),
            relative,
        ];
        for spelling in &spellings {
            create(scene.source(), spelling, &dialect, &Silent).unwrap();
            let first = names(&inside, AsOf::Now, true);
            assert!(
                first.iter().all(|name| !name.starts_with("zstash")),
                "{spelling:?}"
            );
            for again in &spellings {
                let report = update(scene.source(), again, &dialect, &Silent).unwrap();
                // Only the source itself has changed, and that is no member.
                assert_eq!(report.members, 0, "{spelling:?}, then {again:?}");
            }
            stook_testkit::remove_tree(&inside).unwrap();
        }
    }
}

/// Every operation that needs an index says so, and leaves the folder as it is.
fn assert_refused(archive: &Path, source: &Path) {
    let before = Snapshot::take(archive).map(|snapshot| snapshot.len()).ok();
    let into = source.join("into");
    let list = || -> Result<(), ArchiveError> {
        let options = stook_archive::ListOptions {
            patterns: Vec::new(),
            as_of: AsOf::Now,
            all_versions: true,
        };
        crate::by_path::list(archive, &options, &Recorder::new(), |_| {
            std::ops::ControlFlow::Continue(())
        })
        .map(drop)
    };
    let results = [
        check(archive, &CheckOptions::default(), &Silent).map(drop),
        extract(archive, &into, &ExtractOptions::default(), &Silent).map(drop),
        list(),
        cat(archive, b"name", AsOf::Now, &mut Vec::new()),
        diff(source, archive, &DiffOptions::default(), &Silent).map(drop),
        update(source, archive, &options(), &Silent).map(drop),
        crate::by_path::runs(archive).map(drop),
    ];
    for (number, result) in results.into_iter().enumerate() {
        let error = result.unwrap_err();
        assert!(!error.to_string().contains('\n'), "{number}: {error}");
    }
    assert!(!into.exists());
    let after = Snapshot::take(archive).map(|snapshot| snapshot.len()).ok();
    assert_eq!(after, before);
}

#[test]
fn d14_a_missing_index_is_not_made_by_looking_for_it() {
    let directory = TempDir::new().unwrap();
    let (source, archive) = (directory.join("source"), directory.join("archive"));
    Tree::basic().write(&source).unwrap();
    assert_refused(&archive, &source);
    assert!(!archive.exists());
    fs::create_dir(&archive).unwrap();
    assert_refused(&archive, &source);
    assert!(reindex(&archive, Jobs::Fixed(1), &Silent).is_err());
    assert_eq!(files_in(&archive), [""; 0]);
    fs::write(archive.join("000000.tar"), [0; 10_240]).unwrap();
    assert_refused(&archive, &source);
    assert_eq!(files_in(&archive), ["000000.tar"]);
}

/// What zstash leaves behind after it has looked for one in vain.
#[test]
fn d14_an_index_of_0_bytes_is_refused_in_words() {
    let directory = TempDir::new().unwrap();
    let (source, archive) = (directory.join("source"), directory.join("archive"));
    Tree::basic().write(&source).unwrap();
    fs::create_dir(&archive).unwrap();
    fs::write(archive.join("index.db"), b"").unwrap();
    assert_refused(&archive, &source);
    assert_eq!(bytes_in(&archive), [("index.db".to_owned(), Vec::new())]);
    let error = check(&archive, &CheckOptions::default(), &Silent).unwrap_err();
    assert!(!error.to_string().contains("no such table"), "{error}");
}
