//! Who may open what was extracted: access control lists, capabilities and modes, taken together.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use stook_archive::{
    BaseObserver, ExtractOptions, Failure, Jobs, MetadataChanges, Observer, Silent, WriteOptions,
};
use stook_sys::Directory;
use stook_testkit::rights::{ACCESS, CAPABILITY, DEFAULT, capability, list, mode, set_mode};
use stook_testkit::{tree, without_privileges};

use crate::by_path::extract;
use crate::folder::extract_to;
use crate::scene::{Scene, options};

/// Sets an attribute; false, and said aloud, where that is not possible.
fn can_set(folder: &Path, name: &str, attribute: &[u8], value: &[u8]) -> bool {
    let folder = Directory::open(folder).unwrap();
    let set = folder.set_xattr(name.as_bytes(), attribute, value);
    if let Err(error) = &set {
        stook_testkit::skip!("`{name}` gets no attribute here: {error}");
    }
    set.is_ok()
}

fn attribute(folder: &Path, name: &str, attribute: &[u8]) -> Option<Vec<u8>> {
    let found = Directory::open(folder)
        .unwrap()
        .xattrs(name.as_bytes())
        .unwrap();
    let found = found.into_iter().find(|(found, _)| found == attribute);
    found.map(|(_, value)| value)
}

fn one_worker() -> ExtractOptions {
    ExtractOptions {
        jobs: Jobs::Fixed(1),
        ..ExtractOptions::default()
    }
}

#[test]
fn capabilities_come_back_where_set_id_bits_do() {
    let scene = Scene::new(&tree! { "tool" => file(b"x").mode(0o755) });
    if !can_set(scene.source(), "tool", CAPABILITY, &capability()) {
        return;
    }
    scene.create();
    let into = scene.beside("plain");
    let (report, recorder) = extract_to(&scene.archive(), &into, &one_worker());
    assert_eq!(report.failed, 0);
    assert_eq!(attribute(&into, "tool", CAPABILITY), None);
    assert_eq!(
        recorder.notes(),
        ["the capabilities of a file were left out"]
    );
    let options = ExtractOptions {
        same_permissions: true,
        ..one_worker()
    };
    let into = scene.beside("same");
    let (report, recorder) = extract_to(&scene.archive(), &into, &options);
    assert_eq!(report.failed, 0);
    assert_eq!(attribute(&into, "tool", CAPABILITY), Some(capability()));
    assert_eq!(recorder.notes(), [""; 0]);
}

#[test]
fn a_mode_without_its_list_lets_nobody_more_in() {
    let scene = Scene::new(&tree! {
        "file" => file(b"secret").mode(0o600),
        "plain" => file(b"x").mode(0o660),
    });
    let named = list(6, (1001, 6), 0, 6, 0);
    if !can_set(scene.source(), "file", ACCESS, &named) {
        return;
    }
    assert_eq!(mode(&scene.path("file")), 0o660);
    scene.create();
    let options = ExtractOptions {
        xattrs: false,
        ..one_worker()
    };
    let into = scene.beside("bare");
    let (report, _) = extract_to(&scene.archive(), &into, &options);
    assert_eq!(report.failed, 0);
    assert_eq!(mode(&into.join("file")), 0o600);
    assert_eq!(mode(&into.join("plain")), 0o660);
    let into = scene.beside("whole");
    extract_to(&scene.archive(), &into, &one_worker());
    assert_eq!(attribute(&into, "file", ACCESS), Some(named));
}

#[test]
fn a_users_own_group_gets_nothing_that_a_list_gave_to_another() {
    let scene = Scene::new(&tree! {
        "file" => file(b"secret").mode(0o600),
        "name" => hardlink("file"),
        "plain" => file(b"x").mode(0o660),
    });
    let full = list(6, (1001, 4), 6, 6, 0);
    if !stook_sys::is_root() || !can_set(scene.source(), "file", ACCESS, &full) {
        stook_testkit::skip!("only root can take another user's part");
        return;
    }
    scene.create();
    let (archive, into) = (scene.archive(), scene.beside("into"));
    set_mode(archive.parent().unwrap(), 0o777);
    let done = without_privileges(|| extract_to(&archive, &into, &one_worker()).0);
    match done {
        Err(error) => stook_testkit::skip!("root may not change its user here: {error}"),
        Ok(report) => {
            assert_eq!(report.failed, 0);
            let narrowed = list(6, (1001, 4), 0, 6, 0);
            assert_eq!(attribute(&into, "file", ACCESS), Some(narrowed));
            // As tar does it.
            assert_eq!(mode(&into.join("plain")), 0o660);
            let inode = |name| fs::metadata(into.join(name)).unwrap().ino();
            assert_eq!(inode("file"), inode("name"));
        }
    }
}

#[test]
fn what_a_target_lends_to_new_files_is_not_archived_rights() {
    let scene = Scene::archived(&tree! {
        "folder" => dir().mode(0o750),
        "folder/file" => file(b"secret").mode(0o640),
        "file" => file(b"secret").mode(0o640),
        "fifo" => fifo().mode(0o640),
    });
    let into = scene.beside("into");
    fs::create_dir(&into).unwrap();
    let lent = list(7, (1001, 7), 7, 7, 7);
    if !can_set(into.parent().unwrap(), "into", DEFAULT, &lent) {
        return;
    }
    for round in ["new", "replaced"] {
        let (report, _) = extract_to(&scene.archive(), &into, &one_worker());
        assert_eq!((report.failed, report.written > 2), (0, true), "{round}");
        for name in ["file", "folder", "folder/file", "fifo"] {
            assert_eq!(attribute(&into, name, ACCESS), None, "{name}, {round}");
        }
        assert_eq!(mode(&into.join("file")), 0o640);
        assert_eq!(mode(&into.join("folder")), 0o750);
        for name in ["file", "folder/file", "fifo"] {
            fs::remove_file(into.join(name)).unwrap();
            fs::write(into.join(name), b"another content").unwrap();
        }
    }
    let options = ExtractOptions {
        xattrs: false,
        ..one_worker()
    };
    let into = scene.beside("bare");
    fs::create_dir(&into).unwrap();
    assert!(can_set(into.parent().unwrap(), "bare", DEFAULT, &lent));
    extract_to(&scene.archive(), &into, &options);
    // The archived mode is the mask of what is lent.
    let masked = list(6, (1001, 7), 7, 4, 0);
    assert_eq!(attribute(&into, "file", ACCESS), Some(masked));
}

#[test]
fn a_revoked_entry_of_a_directory_stays_revoked() {
    let scene = Scene::archived(&tree! {
        "folder" => dir().mode(0o770),
        "folder/file" => file(b"x"),
    });
    let into = scene.beside("into");
    fs::create_dir_all(into.join("folder")).unwrap();
    let revoked = list(7, (1001, 7), 7, 0, 0);
    if !can_set(&into, "folder", ACCESS, &revoked) {
        return;
    }
    let (report, _) = extract_to(&scene.archive(), &into, &one_worker());
    assert_eq!(report.failed, 0);
    assert_eq!(attribute(&into, "folder", ACCESS), None);
    assert_eq!(mode(&into.join("folder")), 0o770);
}

/// Looks at a directory while something in it is done, and at the end of the extraction.
struct Watcher<'a> {
    directory: &'a Path,
    entry: &'a [u8],
    seen: Mutex<Vec<u32>>,
}

impl BaseObserver for Watcher<'_> {
    type Failure = Failure;
}

impl Observer for Watcher<'_> {
    fn done(&self, path: &[u8]) {
        if path == self.entry {
            self.seen.lock().unwrap().push(mode(self.directory));
        }
    }
}

fn watch(scene: &Scene, into: &Path, directory: &str, options: &ExtractOptions) -> (u32, u32) {
    let directory = into.join(directory);
    let watcher = Watcher {
        directory: &directory,
        entry: b"d/secret/f",
        seen: Mutex::default(),
    };
    extract(&scene.archive(), into, options, &watcher).unwrap();
    let seen = watcher.seen.into_inner().unwrap();
    assert_eq!(seen.len(), 1);
    (seen[0], mode(&directory))
}

#[test]
fn a_directory_whose_member_comes_after_its_files_is_private_until_then() {
    for archived in [0o700, 0o500, 0o750, 0o775] {
        let scene = Scene::archived(&tree! {
            "d/secret/f" => file(b"secret").mode(0o644),
        });
        // The newest versions of the directories lie behind the file.
        set_mode(&scene.path("d/secret"), archived);
        set_mode(&scene.path("d"), 0o711);
        let again = WriteOptions {
            metadata: MetadataChanges::Archive,
            ..options()
        };
        assert!(scene.update_with(&again, &Silent).members >= 1);
        let into = scene.beside("out");
        let seen = watch(&scene, &into, "d/secret", &one_worker());
        assert_eq!(seen, (0o700, archived));
        assert_eq!(mode(&into.join("d")), 0o711);
    }
}

#[test]
fn a_directory_without_a_member_is_like_any_new_one() {
    let scene = Scene::archived(&tree! { "d/secret/f" => file(b"secret") });
    let only = ExtractOptions {
        patterns: vec![stook_tree::Pattern::new(b"d/secret/f")],
        ..one_worker()
    };
    let into = scene.beside("out");
    fs::create_dir(&into).unwrap();
    let new = into.join("new");
    fs::create_dir(&new).unwrap();
    assert_eq!(
        watch(&scene, &into, "d/secret", &only),
        (mode(&new), mode(&new))
    );
    // Nor of an archive that has members for empty directories alone.
    let scene = Scene::new(&tree! { "d/secret/f" => file(b"secret") });
    scene.create_with(&crate::folder::as_zstash(), &Silent);
    let into = scene.beside("out");
    let (seen, end) = watch(&scene, &into, "d/secret", &one_worker());
    assert_eq!((seen, end), (mode(&into), mode(&into)));
}
