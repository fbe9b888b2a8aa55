//! What an interrupted command leaves must not stand in the way of an ordinary user.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_archive::{
    ArchiveError, CheckOptions, ExtractOptions, Jobs, Observer, Silent, WriteOptions, check,
    create, extract,
};
use stook_testkit::{Compare, Snapshot, TempDir, Tree, tree, without_privileges};

/// Asks to end once a number of entries are done.
struct Stopper {
    after: u64,
    done: AtomicU64,
}

impl Stopper {
    fn after(after: u64) -> Self {
        let done = AtomicU64::new(0);
        Self { after, done }
    }
}

impl Observer for Stopper {
    fn done(&self, _path: &[u8]) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.after
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
        println!("skipped: root may not change its user here: {error}");
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
