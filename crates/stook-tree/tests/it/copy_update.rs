//! Copies that go on: what differs is copied, what is half done never looks done, and nothing is lost.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::Duration;

use stook_testkit::slowfs::{Options, SlowFs, unavailable};
use stook_testkit::{Random, Tree, file, tree};
use stook_tree::CopyOptions;

use crate::copying::{Mounted, Place, Recorded, copied, options, snapshot, torture, update};

/// Sets the time of one file to that of another.
fn give_time(place: &Place, from: &str, to: &str) {
    let mtime = place.metadata(from).modified().unwrap();
    let file = fs::File::options()
        .write(true)
        .open(place.path(to))
        .unwrap();
    file.set_modified(mtime).unwrap();
}

#[test]
fn an_update_of_what_is_the_same_copies_nothing() {
    let place = Place::with(&torture());
    let first = place.try_copy(&options(2), &Recorded::default());
    let changed = |name: &str| place.metadata(name).ctime_nsec();
    let before = changed("b/basic/top.txt");
    let again = place.try_copy(&update(), &Recorded::default());
    assert_eq!((again.entries, again.unchanged), (0, first.entries));
    assert_eq!(changed("b/basic/top.txt"), before);
    place.assert_same();
    let dry = CopyOptions {
        is_dry_run: true,
        ..update()
    };
    let recorded = Recorded::default();
    let would = place.try_copy(&dry, &recorded);
    assert_eq!((would.entries, would.unchanged), (0, first.entries));
    assert_eq!(recorded.would_copy(), [""; 0].map(std::path::PathBuf::from));
}

#[test]
fn an_update_copies_what_differs_and_keeps_what_only_the_copy_has() {
    let place = Place::with(&Tree::random(3, 400));
    place.copy(&options(2));
    let names = snapshot(&place.path("a"));
    let files: Vec<String> = names
        .entries()
        .filter(|(_, facts)| facts.kind == stook_testkit::Kind::File && facts.first_link.is_none())
        .map(|(path, _)| String::from_utf8(path.to_vec()).unwrap())
        .collect();
    place.write(&format!("a/{}", files[0]), "longer or shorter than before");
    fs::remove_file(place.path(&format!("a/{}", files[1]))).unwrap();
    let mode = fs::Permissions::from_mode(0o751);
    fs::set_permissions(place.path(&format!("a/{}", files[2])), mode).unwrap();
    fs::create_dir(place.path("a/new")).unwrap();
    place.write("a/new/file", "new");
    place.write("b/only-here", "kept");

    let dry = CopyOptions {
        is_dry_run: true,
        ..update()
    };
    let recorded = Recorded::default();
    place.try_copy(&dry, &recorded);
    let mut expected =
        [&files[0], &files[2], "new", "new/file"].map(|name| place.path("a").join(name));
    expected.sort();
    assert_eq!(recorded.would_copy(), expected);
    assert!(!place.exists("b/new"));

    let copied = place.copy(&update());
    // The changed file, and the new directory with its file; a mode is no copy.
    assert_eq!((copied.entries, copied.directories), (3, 1));
    assert_eq!(place.read("b/only-here"), b"kept");
    assert!(place.exists(&format!("b/{}", files[1])));
    for name in ["only-here", &files[1]] {
        fs::remove_file(place.path("b").join(name)).unwrap();
    }
    place.copy(&update());
    place.assert_same();
}

#[test]
fn a_reader_keeps_the_whole_file_that_an_update_replaces() {
    let old = Random::new(1).bytes(3_000_000);
    let place = Place::with(&tree! { "f" => file(&old) });
    place.copy(&options(1));
    let mut reader = fs::File::open(place.path("b/f")).unwrap();
    place.write("a/f", "new");
    // A killed run left a part of it.
    let inode = |name: &str| place.metadata(name).ino();
    let leftover = |inode| {
        let name = stook_sys::TemporaryNames::new("partial").next(inode);
        format!("b/{}", String::from_utf8(name).unwrap())
    };
    let (own, from_elsewhere) = (leftover(inode("b")), leftover(inode("a")));
    place.write(&own, "half");
    let users = [
        "b/.stook-like",
        "b/.stook-my-notes.partial",
        "b/.stook-1-2.partial",
        "b/.stook-00000000000000000000000000000000.partial",
        &from_elsewhere,
    ];
    for name in users {
        place.write(name, "not ours");
    }
    place.copy(&update());
    assert_eq!(place.read("b/f"), b"new");
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert!(read == old);
    assert!(!place.exists(&own));
    for name in users {
        assert_eq!(place.read(name), b"not ours", "{name}");
    }
}

#[test]
fn names_like_leftovers_are_copied_and_stay() {
    let place = Place::with(
        &tree! { ".stook-9-9.partial" => file(b"mine"), "d/.stook-1-1.partial/" => dir() },
    );
    place.copy(&options(1));
    let again = place.copy(&update());
    assert_eq!(again.entries, 0);
    place.assert_same();
}

#[test]
fn what_became_something_else_is_replaced() {
    let place = Place::with(&tree! {
        "was-file/below" => file(b"1"),
        "was-link" => file(b"2"),
        "was-fifo" => stook_testkit::symlink("was-link"),
        "was-empty" => file(b"3"),
        "was-full" => file(b"4"),
        "other-target" => stook_testkit::symlink("new"),
    });
    fs::create_dir(place.path("b")).unwrap();
    place.write("b/was-file", "x");
    symlink(place.path("a"), place.path("b/was-link")).unwrap();
    symlink("old", place.path("b/other-target")).unwrap();
    tree! { "was-fifo" => fifo() }
        .write(&place.path("b"))
        .unwrap();
    fs::create_dir(place.path("b/was-empty")).unwrap();
    fs::create_dir_all(place.path("b/was-full/precious")).unwrap();
    let recorded = Recorded::default();
    place.try_copy(&update(), &recorded);
    let why = "a directory is in its place, and is not empty".to_owned();
    assert_eq!(
        recorded.failures(),
        [(place.path("b/was-full"), "replace", why)]
    );
    assert!(place.exists("b/was-full/precious"));
    fs::remove_dir_all(place.path("b/was-full")).unwrap();
    place.copy(&update());
    place.assert_same();
}

#[test]
fn hard_links_are_set_right_by_an_update() {
    let place = Place::with(&tree! {
        "one" => file(b"shared"),
        "d/two" => hardlink("one"),
        "e/three" => file(b"alone"),
    });
    place.copy(&options(1));
    // In the copy, two is a file of its own, and three another name of one.
    fs::remove_file(place.path("b/d/two")).unwrap();
    place.write("b/d/two", "stale");
    fs::remove_file(place.path("b/e/three")).unwrap();
    fs::hard_link(place.path("b/one"), place.path("b/e/three")).unwrap();
    place.copy(&update());
    place.assert_same();
    // A change of one name does not reach through to another.
    place.write("a/e/three", "newer");
    place.copy(&update());
    place.assert_same();
    assert_eq!(place.read("b/one"), b"shared");
}

#[test]
fn a_mode_that_is_set_right_does_not_reach_through_a_link_that_the_tree_has_no_more() {
    let place = Place::with(&tree! { "one" => file(b"same"), "two" => hardlink("one") });
    place.copy(&options(1));
    // Two becomes a file of its own, with the same content and time.
    fs::remove_file(place.path("a/two")).unwrap();
    place.write("a/two", "same");
    give_time(&place, "a/one", "a/two");
    fs::set_permissions(place.path("a/two"), fs::Permissions::from_mode(0o600)).unwrap();
    place.copy(&update());
    place.assert_same();
    assert_eq!(place.copy(&update()).entries, 0);
}

#[test]
fn a_copy_that_is_told_to_stop_stops_and_goes_on_later() {
    let mut tree = Tree::wide(3000);
    tree.graft("more", &Tree::random(5, 600));
    let place = Place::with(&tree);
    for stop_after in [1, 700, 2500] {
        let recorded = Recorded::stopping_after(stop_after, u64::MAX);
        let some = place.try_copy(&options(2), &recorded);
        assert_eq!(recorded.failures(), []);
        assert!((stop_after..tree.len() as u64).contains(&some.entries));
        // What is not done does not look done.
        assert_ne!(
            place.metadata("a").modified().unwrap(),
            place.metadata("b").modified().unwrap()
        );
        let rest = place.copy(&update());
        assert!(rest.unchanged > 0 || stop_after == 1, "{rest:?}");
        place.assert_same();
        stook_testkit::remove_tree(&place.path("b")).unwrap();
    }
}

#[test]
fn a_large_file_that_is_stopped_leaves_nothing() {
    let place = Place::with(&tree! { "f" => file(Random::new(2).bytes(40 << 20)) });
    let recorded = Recorded::stopping_after(1, 1);
    let some = place.try_copy(&options(1), &recorded);
    assert_eq!(recorded.failures(), []);
    assert_eq!((some.entries, some.bytes), (0, 0));
    assert_eq!(fs::read_dir(place.path("b")).unwrap().count(), 0);
    place.copy(&update());
    place.assert_same();
}

#[test]
fn a_file_of_the_right_size_and_another_time_is_copied_again() {
    let place = Place::with(&tree! { "half" => file(b"whole"), "touched" => file(b"touch") });
    fs::create_dir(place.path("b")).unwrap();
    // What a kill leaves of a file with holes: the right size, and not yet its time.
    place.write("b/half", "\0\0\0\0\0");
    let copied = place.copy(&update());
    assert_eq!(copied.entries, 2);
    place.assert_same();
}

#[test]
fn verify_finds_what_an_update_cannot_see() {
    let mut random = Random::new(4);
    let place = Place::with(&tree! {
        "small" => file(b"0123456789"),
        "large" => file(random.bytes(10_000_000)),
        "d/same" => file(random.bytes(300_000)),
        "d/empty" => file(b""),
        "link" => stook_testkit::symlink("small"),
        "pipe" => fifo(),
        "long" => file(random.bytes(262_144)),
        "gone" => file(b"gone"),
    });
    place.copy(&options(2));
    let recorded = Recorded::default();
    let verified = place.verify(&recorded);
    assert_eq!(recorded.failures(), []);
    assert_eq!((verified.entries, verified.bytes), (8, 10_562_158));

    let flip = |name: &str, at: usize| {
        let (copy, original) = (format!("b/{name}"), format!("a/{name}"));
        let mut content = place.read(&copy);
        content[at] ^= 1;
        place.write(&copy, content);
        give_time(&place, &original, &copy);
    };
    flip("small", 9);
    flip("large", 9_000_000);
    let mut long = place.read("b/long");
    long.push(0);
    place.write("b/long", long);
    fs::remove_file(place.path("b/gone")).unwrap();
    fs::remove_file(place.path("b/link")).unwrap();
    symlink("large", place.path("b/link")).unwrap();
    let recorded = Recorded::default();
    place.verify(&recorded);
    let failure = |name: &str, why: &str| (place.path("b").join(name), "verify", why.to_owned());
    assert_eq!(
        recorded.failures(),
        [
            failure("gone", "it is not there"),
            failure("large", "it differs at byte 9000000"),
            failure("link", "it leads to another place"),
            failure(
                "long",
                "it goes on after byte 262144, where the original ends"
            ),
            failure("small", "it differs at byte 9"),
        ]
    );
    // The two with the right size and time are not seen by an update.
    let again = place.copy(&update());
    assert_eq!(again.entries, 3);
    let recorded = Recorded::default();
    place.verify(&recorded);
    assert_eq!(recorded.failures().len(), 2);
}

#[test]
fn a_full_disk_ends_the_copy_and_leaves_nothing_that_looks_done() {
    let mut random = Random::new(6);
    let mut tree = Tree::new();
    for number in 0..300 {
        let content = random.bytes(20_000);
        tree.insert(format!("d{}/f{number}", number % 3), file(content));
    }
    tree.insert("large", file(random.bytes(3 << 20)));
    let place = Place::with(&tree);
    fs::create_dir(place.path("disk")).unwrap();
    let Some(disk) = Mounted::in_memory(place.path("disk"), "2M") else {
        return;
    };
    let (from, to) = (place.path("a"), place.path("disk/b"));
    for jobs in [1, 4] {
        let recorded = Recorded::default();
        let some = stook_tree::copy(&from, &to, &options(jobs), &recorded).unwrap();
        assert!(some.is_full);
        let failures = recorded.failures();
        assert!((1..=jobs).contains(&failures.len()), "{failures:?}");
        for (_, operation, why) in &failures {
            assert!(
                ["write", "create", "copy"].contains(operation),
                "{operation}"
            );
            assert_eq!(why, "no space left on device");
        }
        // Whatever has size and time of the original has its content.
        let (originals, copies) = (snapshot(&from), snapshot(&to));
        for (path, facts) in copies.entries() {
            let original = originals.get(path).unwrap();
            if (facts.size, facts.mtime_ns) == (original.size, original.mtime_ns) {
                assert_eq!(facts.md5, original.md5);
            }
        }
        let again = Recorded::default();
        assert!(
            stook_tree::copy(&from, &to, &update(), &again)
                .unwrap()
                .is_full
        );
        disk.grow("20M");
        copied(&from, &to, &update());
        crate::copying::assert_copy(&from, &to);
        stook_testkit::remove_tree(&to).unwrap();
        disk.grow("2M");
    }
}

#[test]
fn what_gets_lost_as_it_is_closed_does_not_look_done() {
    if let Some(why) = unavailable() {
        stook_testkit::skip!("{why}");
        return;
    }
    let place = Place::with(&tree! { "small" => file(b"x"), "large" => file(vec![7; 300_000]) });
    for name in ["remote", "mounted"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    let to = place.path("mounted/b");
    let mount = |options: Options| {
        SlowFs::mount(&place.path("remote"), &place.path("mounted"), &options).unwrap()
    };
    let losing = mount(Options::new(Duration::ZERO).losing_writes());
    let recorded = Recorded::default();
    let some = stook_tree::copy(&place.path("a"), &to, &options(1), &recorded).unwrap();
    assert!(some.is_full);
    assert_eq!(some.bytes, 0);
    let (_, operation, why) = &recorded.failures()[0];
    assert_eq!(
        (*operation, why.as_str()),
        ("write", "no space left on device")
    );
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    drop(losing);
    let _mounted = mount(Options::new(Duration::ZERO));
    assert_eq!(copied(&place.path("a"), &to, &update()).bytes, 300_001);
}

#[test]
fn attributes_that_the_copy_cannot_hold_are_named_once() {
    let mut tree = Tree::new();
    for number in 0..20 {
        let entry = file(b"x").xattr("user.a", b"1").xattr("user.b", b"2");
        tree.insert(format!("f{number}"), entry);
    }
    if !stook_testkit::supports_xattrs(&std::env::temp_dir()) {
        stook_testkit::skip!("the file system of the tests takes no attributes");
        return;
    }
    let place = Place::with(&tree);
    fs::create_dir(place.path("bare")).unwrap();
    let Some(_bare) = Mounted::of_kind("ramfs", place.path("bare")) else {
        return;
    };
    let recorded = Recorded::default();
    let copied = stook_tree::copy(
        &place.path("a"),
        &place.path("bare/b"),
        &options(2),
        &recorded,
    )
    .unwrap();
    let failures = recorded.failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    let (_, operation, why) = &failures[0];
    assert_eq!(*operation, "set the attributes of");
    assert_eq!(
        why,
        "the file system takes no attributes `user.*`; others are not named"
    );
    assert_eq!(copied.entries, 20);
    assert_eq!(fs::read_dir(place.path("bare/b")).unwrap().count(), 20);
}
