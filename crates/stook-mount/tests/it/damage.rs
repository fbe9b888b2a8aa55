//! Volumes that are not what the index says: `EIO` for the file, a line in the log, and all else is served.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use stook_testkit::tree;

use crate::scene::{Scene, has_fuse};

/// `EIO` of Linux.
const EIO: i32 = 5;

fn errno(result: std::io::Result<Vec<u8>>) -> Option<i32> {
    result.unwrap_err().raw_os_error()
}

pub(crate) fn writable(volume: &Path) -> fs::File {
    fs::set_permissions(volume, Permissions::from_mode(0o644)).unwrap();
    let mut options = OpenOptions::new();
    options.read(true).write(true).open(volume).unwrap()
}

#[test]
fn a_short_volume_fails_what_is_missing_and_nothing_else() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {
        "a" => file(b"first"), "b" => file([1; 300_000]), "c" => file(b"last"),
    });
    writable(&scene.volume()).set_len(150_000).unwrap();
    let mount = scene.mount();
    assert_eq!(fs::read(mount.join("a")).unwrap(), b"first");
    assert_eq!(errno(fs::read(mount.join("b"))), Some(EIO));
    assert_eq!(errno(fs::read(mount.join("c"))), Some(EIO));
    // Again: the line of a file is not repeated.
    assert_eq!(errno(fs::read(mount.join("c"))), Some(EIO));
    let lines = mount.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("cannot read `b` (byte "), "{lines:?}");
    assert!(
        lines[0].contains("of 000000.tar): the volume ends before it does"),
        "{lines:?}"
    );
    assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 3);
}

#[test]
fn a_missing_volume_fails_its_files() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {"a" => file(b"first"), "d/empty" => file(b"")});
    fs::remove_file(scene.volume()).unwrap();
    let mount = scene.mount();
    assert_eq!(errno(fs::read(mount.join("a"))), Some(EIO));
    assert_eq!(fs::read(mount.join("d/empty")).unwrap(), b"");
    let lines = mount.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("000000.tar"), "{lines:?}");
}

#[test]
fn a_header_of_another_member_is_noticed() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {"a" => file(b"first"), "b" => file(b"other")});
    // The name in the header; its checksum is wrong then.
    writable(&scene.volume()).write_all_at(b"z", 0).unwrap();
    let mount = scene.mount();
    assert_eq!(errno(fs::read(mount.join("a"))), Some(EIO));
    assert_eq!(fs::read(mount.join("b")).unwrap(), b"other");
    assert_eq!(mount.lines().len(), 1);
}

/// Leaves of an index what zstash would have written.
fn as_of_zstash(index: &Path) {
    let script = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for (name,) in db.execute(\"SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'stook_%'\").fetchall():
    db.execute(f'DROP TABLE {name}')
db.commit()";
    let mut python = Command::new("python3");
    let status = python.args(["-c", script]).arg(index).status();
    assert!(status.unwrap().success());
}

#[test]
fn headers_that_cannot_be_read_for_a_while_hide_no_names_and_open_no_files() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {
        "d/link" => symlink("/etc/hosts"), "d/private" => file(b"mine").mode(0o600),
    });
    as_of_zstash(&scene.archive().join("index.db"));
    let mount = scene.mount();
    let aside = scene.archive().join("aside");
    fs::rename(scene.volume(), &aside).unwrap();
    let names = || {
        let entries = fs::read_dir(mount.join("d")).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let looked_at = |name| fs::symlink_metadata(mount.join(name)).map(|found| found.mode());
    for _ in 0..2 {
        assert_eq!(names(), ["link", "private"]);
        for name in ["d/link", "d/private"] {
            assert_eq!(looked_at(name).unwrap_err().raw_os_error(), Some(EIO));
        }
    }
    fs::rename(&aside, scene.volume()).unwrap();
    assert_eq!(looked_at("d/private").unwrap() & 0o777, 0o600);
    let target = fs::read_link(mount.join("d/link")).unwrap();
    assert_eq!(target, Path::new("/etc/hosts"));
    assert_eq!(names(), ["link", "private"]);
}
