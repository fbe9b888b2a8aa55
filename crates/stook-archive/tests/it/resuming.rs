//! What an interrupted command leaves must not stand in the way of an ordinary user.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_archive::{
    ArchiveError, BaseObserver, CheckOptions, ExtractOptions, Failure, Jobs, Observer, Silent,
    WriteOptions, create,
};
use stook_testkit::{Compare, Snapshot, TempDir, Tree, tree, without_privileges};

use crate::by_path::{check, extract};
use crate::scene::Scene;

/// Asks to end once a number of entries are done.
pub(crate) struct Stopper {
    after: u64,
    done: AtomicU64,
}

impl Stopper {
    pub(crate) fn after(after: u64) -> Self {
        let done = AtomicU64::new(0);
        Self { after, done }
    }
}

impl BaseObserver for Stopper {
    type Failure = Failure;

    fn is_interrupted(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.after
    }
}

impl Observer for Stopper {
    fn done(&self, _path: &[u8]) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

fn some_files() -> Tree {
    tree! {
        "d/" => dir().mode(0o555), "d/a" => file(b"a"), "d/b" => file(b"bb"), "d/c" => file(b"ccc"), "e" => file(b"e"),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn as_ordinary_user(work: impl FnOnce() + Send) {
    if let Err(error) = without_privileges(work) {
        stook_testkit::skip!("root may not change its user here: {error}");
    }
}

#[test]
fn d09_a_volume_that_lost_its_write_permission_is_gone_on_with() {
    as_ordinary_user(|| {
        let place = TempDir::new().unwrap();
        let (source, archive) = (place.join("source"), place.join("archive"));
        some_files().write(&source).unwrap();
        let options = WriteOptions::default();
        let stopped = create(&source, &archive, &options, &Stopper::after(1));
        assert!(
            matches!(stopped, Err(ArchiveError::Interrupted)),
            "{stopped:?}"
        );
        // As a kill during the last sync of the volume leaves it.
        let partial = archive.join("000000.tar.partial");
        fs::set_permissions(&partial, Permissions::from_mode(0o444)).unwrap();
        create(&source, &archive, &options, &Silent).unwrap();
        assert_eq!(names(&archive), ["000000.tar", "index.db"]);
        let checked = check(&archive, &CheckOptions::default(), &Silent).unwrap();
        assert_eq!((checked.members, checked.damages), (5, 0));
    });
}

#[test]
fn an_interrupted_extraction_goes_on_in_directories_without_write_permission() {
    as_ordinary_user(|| {
        let place = TempDir::new().unwrap();
        let (source, archive, target) = (
            place.join("source"),
            place.join("archive"),
            place.join("target"),
        );
        some_files().write(&source).unwrap();
        create(&source, &archive, &WriteOptions::default(), &Silent).unwrap();
        let options = ExtractOptions {
            jobs: Jobs::Fixed(1),
            ..ExtractOptions::default()
        };
        let stopped = extract(&archive, &target, &options, &Stopper::after(3));
        assert!(
            matches!(stopped, Err(ArchiveError::Interrupted)),
            "{stopped:?}"
        );
        assert_ne!(names(&target), Vec::<String>::new());
        // And as an extraction that had come to its end and then met a newer archive.
        fs::set_permissions(target.join("d"), Permissions::from_mode(0o555)).unwrap();
        let done = extract(&archive, &target, &options, &Silent).unwrap();
        assert_eq!(done.failed, 0);
        let (wanted, found) = (
            Snapshot::take(&source).unwrap(),
            Snapshot::take(&target).unwrap(),
        );
        assert_eq!(
            wanted.difference(&found, &Compare::everything()),
            Vec::<String>::new()
        );
    });
}

/// Of two rows with one name the later one counts, so a newer version must not go into a volume before that
/// of the older one, however its name sorts.
#[test]
fn what_changed_since_it_was_staged_comes_back_as_it_is_now() {
    let mut tree = Tree::new();
    for number in 0..400_usize {
        let content = vec![b'a'; 2500 + number % 7 * 300];
        tree.insert(format!("f{number:03}"), stook_testkit::file(content));
    }
    let options = WriteOptions {
        volume_bytes: Some(40 << 10),
        checkpoint_bytes: 1,
        ..crate::scene::options()
    };
    for after in [10, 60, 130, 200, 390] {
        let scene = Scene::new(&tree);
        let stopped = create(
            scene.source(),
            &scene.archive(),
            &options,
            &Stopper::after(after),
        );
        assert!(matches!(stopped, Err(ArchiveError::Interrupted)), "{after}");
        for number in (0..400).step_by(3) {
            fs::write(
                scene.path(&format!("f{number:03}")),
                format!("new {number}"),
            )
            .unwrap();
        }
        create(scene.source(), &scene.archive(), &options, &Silent).unwrap();
        scene.assert_clean();
        scene.assert_extracts_to_source();
    }
}

#[test]
fn an_interrupted_run_of_several_volumes_ends_as_if_undisturbed() {
    let mut tree = Tree::new();
    for number in 0..300_usize {
        let content = vec![b'a'; number * 977 % 6000];
        tree.insert(
            format!("d{}/f{number:03}", number / 50),
            stook_testkit::file(content),
        );
    }
    let options = WriteOptions {
        volume_bytes: Some(60 << 10),
        ..crate::scene::options()
    };
    let scene = Scene::new(&tree);
    let run = |archive: &Path, observer: &dyn Observer| {
        drop(create(scene.source(), archive, &options, observer));
    };
    let volumes = |archive: &Path| {
        let mut names = names(archive);
        names.retain(|name| name != "index.db");
        let volumes = names
            .into_iter()
            .map(|name| (fs::read(archive.join(&name)).unwrap(), name));
        volumes.collect::<Vec<_>>()
    };
    let undisturbed = scene.beside("undisturbed");
    run(&undisturbed, &Silent);
    assert!(volumes(&undisturbed).len() > 12);
    for after in [1, 40, 90, 170, 299] {
        let archive = scene.beside(&format!("after-{after}"));
        for further in 0..4 {
            run(&archive, &Stopper::after(after + further));
        }
        run(&archive, &Silent);
        assert!(volumes(&archive) == volumes(&undisturbed), "after {after}");
        let checked = check(&archive, &CheckOptions::default(), &Silent).unwrap();
        assert_eq!(checked.damages, 0);
    }
}
