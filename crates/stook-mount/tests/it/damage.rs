//! Volumes that are not what the index says: `EIO` for the file, a line in the log, and all else is served.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

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
