//! Who may open what was extracted: access control lists, capabilities and modes, taken together.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use stook_archive::{ExtractOptions, Jobs};
use stook_sys::Directory;
use stook_testkit::{tree, without_privileges};

use crate::folder::extract_to;
use crate::scene::Scene;

const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";
const CAPABILITY: &[u8] = b"security.capability";

/// Returns a list with a named user.
fn list(owner: u16, named: (u32, u16), group: u16, mask: u16, others: u16) -> Vec<u8> {
    let entries = [
        (1_u16, owner, u32::MAX),
        (2, named.1, named.0),
        (4, group, u32::MAX),
        (16, mask, u32::MAX),
        (32, others, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

/// `cap_net_raw` of version 2, permitted and effective.
fn capability() -> Vec<u8> {
    let words = [0x0200_0001_u32, 1 << 13, 0, 0, 0];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

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

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
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
