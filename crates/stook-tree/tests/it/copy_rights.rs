//! Who may open a copy: owners, modes, access control lists and attributes, at the end and on the way there.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use stook_sys::{Directory, Xattr};
use stook_testkit::rights::{self, ACCESS, CAPABILITY, DEFAULT, capability, list};
use stook_testkit::{Random, tree, without_privileges};

use crate::copying::{Mounted, Place, Recorded, options, update};

/// The user and the group of threads without privileges.
const NOBODY: u32 = 65_534;

fn folder(place: &Place, name: &str) -> (Directory, Vec<u8>) {
    let path = place.path(name);
    let name = path.file_name().unwrap().as_encoded_bytes().to_vec();
    (Directory::open(path.parent().unwrap()).unwrap(), name)
}

/// Sets an attribute; false, and said aloud, where that is not possible.
fn can_set(place: &Place, name: &str, attribute: &[u8], value: &[u8]) -> bool {
    let (folder, name) = folder(place, name);
    let set = folder.set_xattr(&name, attribute, value);
    if let Err(error) = &set {
        let attribute = String::from_utf8_lossy(attribute);
        stook_testkit::skip!("`{attribute}` cannot be set here: {error}");
    }
    set.is_ok()
}

fn remove(place: &Place, name: &str, attribute: &[u8]) {
    let (folder, name) = folder(place, name);
    folder.remove_xattr(&name, attribute).unwrap();
}

fn xattrs(place: &Place, name: &str) -> Vec<Xattr> {
    let (folder, name) = folder(place, name);
    folder.xattrs(&name).unwrap()
}

fn set_mode(place: &Place, name: &str, mode: u32) {
    rights::set_mode(&place.path(name), mode);
}

/// Lets everybody reach what is in the place.
fn open_up(place: &Place) {
    for name in [".", "a"] {
        set_mode(place, name, 0o755);
    }
}

/// Returns true if a user without privileges can read a file; `None`, said aloud, if that cannot be found out.
fn is_open_to_nobody(path: &Path) -> Option<bool> {
    if !stook_sys::is_root() {
        stook_testkit::skip!("only the superuser can become another user");
        return None;
    }
    let opened = without_privileges(|| fs::File::open(path).is_ok());
    opened
        .inspect_err(|error| stook_testkit::skip!("the user cannot be changed here: {error}"))
        .ok()
}

/// Asserts that a verification names these differences, and none after an update.
fn assert_set_right(place: &Place, expected: &[(&str, &str)]) {
    let recorded = Recorded::default();
    place.verify(&recorded);
    let found = recorded.failures();
    let found: Vec<_> = found
        .iter()
        .map(|(path, _, why)| (path.clone(), why.as_str()))
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, why)| (place.path(name), *why))
        .collect();
    assert_eq!(found, expected);
    let copied = place.copy(&update());
    assert_eq!((copied.entries, copied.bytes), (0, 0));
    place.assert_same();
    let recorded = Recorded::default();
    place.verify(&recorded);
    assert_eq!(recorded.failures(), []);
}

#[test]
fn an_update_does_not_bring_a_revoked_entry_back_to_life() {
    let place = Place::with(&tree! { "f" => file(b"secret") });
    open_up(&place);
    let masked = list(6, (NOBODY, 6), 0, 0, 0);
    if !can_set(&place, "a/f", ACCESS, &masked) {
        return;
    }
    place.copy(&options(1));
    assert_eq!(xattrs(&place, "b/f"), [(ACCESS.to_vec(), masked)]);
    remove(&place, "a/f", ACCESS);
    set_mode(&place, "a/f", 0o660);
    assert_set_right(&place, &[("b/f", "its access control list differs")]);
    assert_eq!(xattrs(&place, "b/f"), []);
    if let Some(is_open) = is_open_to_nobody(&place.path("b/f")) {
        assert!(!is_open);
    }
}

#[test]
fn capabilities_survive_a_change_of_the_owner() {
    let place = Place::with(&tree! { "f" => file(b"x"), "g" => file(b"y") });
    if !(can_set(&place, "a/f", CAPABILITY, &capability())
        && can_set(&place, "a/g", CAPABILITY, &capability()))
    {
        return;
    }
    place.copy(&options(1));
    place.assert_same();
    chown(place.path("a/f"), Some(12), Some(34)).unwrap();
    assert!(can_set(&place, "a/f", CAPABILITY, &capability()));
    remove(&place, "a/g", CAPABILITY);
    let expected = [
        ("b/f", "its owner differs"),
        ("b/g", "its attributes differ"),
    ];
    assert_set_right(&place, &expected);
    assert_eq!(xattrs(&place, "b/f"), [(CAPABILITY.to_vec(), capability())]);
    assert_eq!(xattrs(&place, "b/g"), []);
}

#[test]
fn lists_and_attributes_alone_are_carried_over() {
    let place = Place::with(&tree! {
        "attribute" => file(b"1").xattr("user.old", b"old").xattr("user.same", b"same"),
        "d/list" => file(b"2"),
        "mode" => file(b"3").mode(0o640),
        "pipe" => fifo(),
        "same" => file(b"4").xattr("user.same", b"same"),
    });
    place.copy(&options(2));
    let shared = list(6, (NOBODY, 4), 4, 4, 0);
    if !(can_set(&place, "a/d/list", ACCESS, &shared)
        && can_set(&place, "a/d", DEFAULT, &shared)
        && can_set(&place, "a/pipe", ACCESS, &shared)
        && can_set(&place, "a/attribute", b"user.new", b"new"))
    {
        return;
    }
    remove(&place, "a/attribute", b"user.old");
    set_mode(&place, "a/mode", 0o604);
    let dry = stook_tree::CopyOptions {
        is_dry_run: true,
        ..update()
    };
    let recorded = Recorded::default();
    place.try_copy(&dry, &recorded);
    let expected = ["attribute", "d/list", "mode", "pipe"];
    assert_eq!(
        recorded.would_copy(),
        expected.map(|name| place.path("a").join(name))
    );
    let expected = [
        ("b/attribute", "its attributes differ"),
        ("b/d", "its attributes differ"),
        ("b/d/list", "its access control list differs"),
        ("b/mode", "its mode differs"),
        ("b/pipe", "its access control list differs"),
    ];
    assert_set_right(&place, &expected);
    // And back again, with a list on a directory, too.
    remove(&place, "a/d/list", ACCESS);
    remove(&place, "a/d", DEFAULT);
    assert!(can_set(&place, "a/d", ACCESS, &shared));
    let expected = [
        ("b/d", "its access control list differs"),
        ("b/d/list", "its access control list differs"),
    ];
    assert_set_right(&place, &expected);
}

#[test]
fn links_fifos_and_devices_keep_their_attributes() {
    let place = Place::with(&tree! {
        "link" => symlink("nowhere"),
        "pipe" => fifo(),
        "plain" => symlink("pipe"),
    });
    let node = folder(&place, "a/null").0;
    let kind = stook_sys::FileKind::CharDevice;
    if let Err(error) = node.create_node(b"null", kind, (1, 3)) {
        stook_testkit::skip!("devices cannot be made here: {error}");
        return;
    }
    for name in ["a/link", "a/pipe", "a/null"] {
        if !can_set(&place, name, b"trusted.note", b"kept") {
            return;
        }
    }
    place.copy(&options(1));
    place.assert_same();
    assert!(place.metadata("b/null").file_type().is_char_device());
    for name in ["b/link", "b/pipe", "b/null"] {
        let expected = [(b"trusted.note".to_vec(), b"kept".to_vec())];
        assert_eq!(xattrs(&place, name), expected, "{name}");
    }
    assert!(can_set(&place, "a/link", b"trusted.note", b"changed"));
    chown(place.path("a/pipe"), Some(12), Some(34)).unwrap();
    let expected = [
        ("b/link", "its attributes differ"),
        ("b/pipe", "its owner differs"),
    ];
    assert_set_right(&place, &expected);
}

#[test]
fn nodes_inherit_no_lists_from_a_copy_that_was_there() {
    let place = Place::with(&tree! { "old" => file(b"x") });
    place.copy(&options(1));
    let handed_down = list(6, (NOBODY, 6), 6, 6, 6);
    if !can_set(&place, "b", DEFAULT, &handed_down) {
        return;
    }
    tree! { "pipe" => fifo().mode(0o660), "new" => file(b"y").mode(0o660) }
        .write(&place.path("a"))
        .unwrap();
    place.copy(&update());
    place.assert_same();
    assert_eq!(xattrs(&place, "b/pipe"), []);
}

#[test]
fn a_copy_without_its_list_is_open_to_nobody_else() {
    let place = Place::with(&tree! { "f" => file(b"x"), "g" => file(b"y"), "pipe" => fifo() });
    for name in ["a/f", "a/g", "a/pipe"] {
        if !can_set(&place, name, ACCESS, &list(6, (12_345, 6), 0, 6, 0)) {
            return;
        }
        assert_eq!(place.metadata(name).mode() & 0o777, 0o660);
    }
    fs::create_dir(place.path("bare")).unwrap();
    let Some(_bare) = Mounted::of_kind("ramfs", place.path("bare")) else {
        return;
    };
    let recorded = Recorded::default();
    let to = place.path("bare/b");
    stook_tree::copy(&place.path("a"), &to, &options(1), &recorded).unwrap();
    let why = "the file system takes no access control lists; others are not named";
    assert_eq!(recorded.failures().len(), 1, "{:?}", recorded.failures());
    assert_eq!(recorded.failures()[0].2, why);
    for name in ["f", "g", "pipe"] {
        let mode = fs::symlink_metadata(to.join(name)).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
}

#[test]
fn a_directory_that_was_closed_is_closed_before_anything_new_is_in_it() {
    let place = Place::with(&tree! { "d/old" => file(b"x"), "e/old" => file(b"x") });
    place.copy(&options(1));
    set_mode(&place, "a/d", 0o700);
    let listed = can_set(&place, "a/e", ACCESS, &list(7, (12_345, 5), 0, 5, 0));
    for name in ["d", "e"] {
        for number in 0..40 {
            place.write(&format!("a/{name}/{number}"), "new");
        }
    }
    let seen = AtomicU64::new(0);
    let look = |_: u64, _: u64| {
        for (name, open) in [("d", 0), ("e", 0o070)] {
            let is_new = place.exists(&format!("b/{name}/0"));
            if is_new && (name == "d" || listed) {
                let mode = place.metadata(&format!("b/{name}")).mode() & 0o077;
                // The list comes with the last step.
                assert_eq!(mode & !open, 0, "{name}: {mode:o}");
                seen.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let recorded = Recorded::watching(&look);
    place.try_copy(&update(), &recorded);
    assert_eq!(recorded.forget_meanwhile().failures(), []);
    assert!(seen.load(Ordering::Relaxed) > 0);
    place.assert_same();
}

#[test]
fn a_copy_of_a_foreign_groups_file_lets_no_other_group_in() {
    let place = Place::with(&tree! {
        "f" => file(b"x").mode(0o664),
        "new-group-denied" => file(b"y").mode(0o604),
        "d/" => stook_testkit::dir().mode(0o775),
    });
    set_mode(&place, ".", 0o777);
    let is_foreign = place.metadata("a/f").gid() == 0 && stook_sys::is_root();
    if !is_foreign {
        stook_testkit::skip!("nothing belongs to another group here");
        return;
    }
    for options in [options(1), update()] {
        let copied = without_privileges(|| place.copy(&options));
        if let Err(error) = copied {
            stook_testkit::skip!("the user cannot be changed here: {error}");
            return;
        }
        let mode = |name: &str| place.metadata(name).mode() & 0o777;
        assert_eq!(mode("b/f"), 0o644);
        assert_eq!(mode("b/new-group-denied"), 0o600);
        assert_eq!(mode("b/d"), 0o755);
    }
    // What the user cannot set is no difference for the user, but one for the superuser.
    let recorded = Recorded::default();
    without_privileges(|| {
        // It can be read through its copy alone.
        place.verify(&recorded)
    })
    .unwrap();
    assert_eq!(recorded.failures(), []);
    let recorded = Recorded::default();
    place.verify(&recorded);
    assert_eq!(recorded.failures().len(), 4);
    place.copy(&update());
    place.assert_same();
}

/// Rights that all keep a user without privileges out. Mixed with one another, most of them let that user in.
fn closed_states() -> Vec<(u32, u32, u32, Option<Vec<u8>>)> {
    vec![
        (0, 0, 0o660, None),
        (0, 0, 0o600, Some(list(6, (NOBODY, 6), 0, 0, 0))),
        (0, NOBODY, 0o606, None),
        (NOBODY, 0, 0o060, None),
        (0, 0, 0o664, Some(list(6, (NOBODY, 0), 6, 6, 4))),
        (NOBODY, NOBODY, 0o006, None),
        (0, 0, 0o670, Some(list(6, (12_345, 7), 0, 7, 0))),
    ]
}

#[test]
fn nobody_opens_a_copy_that_neither_its_old_nor_its_new_rights_let_in() {
    let place = Place::with(&tree! { "f" => file(b"secret"), "d/g" => file(b"secret") });
    open_up(&place);
    if !can_set(&place, "a/f", ACCESS, &list(6, (12_345, 4), 4, 4, 0)) {
        return;
    }
    if is_open_to_nobody(&place.path("a/f")).is_none() {
        return;
    }
    let states = closed_states();
    let take_on = |name: &str, (uid, gid, mode, list): &(u32, u32, u32, Option<Vec<u8>>)| {
        remove(&place, name, ACCESS);
        chown(place.path(name), Some(*uid), Some(*gid)).unwrap();
        set_mode(&place, name, *mode);
        if let Some(list) = list {
            assert!(can_set(&place, name, ACCESS, list));
        }
    };
    let take_on_both = |state| {
        take_on("a/f", state);
        take_on("a/d", state);
    };
    take_on_both(&states[0]);
    place.copy(&options(1));
    let is_over = AtomicBool::new(false);
    let (file, directory) = (place.path("b/f"), place.path("b/d/g"));
    let watch = || {
        let (mut looks, mut opened) = (0_u64, Vec::new());
        while !is_over.load(Ordering::Relaxed) {
            for path in [&file, &directory] {
                let found = fs::File::open(path);
                if found.is_ok() {
                    opened.push(path.clone());
                }
            }
            if fs::OpenOptions::new().append(true).open(&file).is_ok() {
                opened.push(file.clone());
            }
            looks += 1;
        }
        (looks, opened)
    };
    let (looks, opened) = thread::scope(|scope| {
        let watching = scope.spawn(|| without_privileges(watch).unwrap());
        let mut random = Random::new(11);
        for _ in 0..150 {
            let next = usize::try_from(random.below(states.len() as u64)).unwrap();
            take_on_both(&states[next]);
            place.copy(&update());
        }
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    place.assert_same();
    assert!(looks > 100, "{looks}");
    assert_eq!(opened, [""; 0].map(std::path::PathBuf::from));
}
