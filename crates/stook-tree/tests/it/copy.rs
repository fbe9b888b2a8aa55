//! Copying trees: a copy has everything that the tree has.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use stook_testkit::{
    Snapshot, TempDir, Tree, dir, fifo, file, hardlink, sparse, supports_xattrs, tree,
    without_privileges,
};
use stook_tree::{Copied, CopyOptions, Filter, Pattern, copy};

use crate::copying::{
    Mounted, Place, Recorded, assert_copy, copied, options, path_of, snapshot, torture, update,
};

#[test]
fn a_copy_is_the_same_whatever_the_number_of_workers() {
    let place = Place::with(&torture());
    let entries = snapshot(&place.path("a")).len() as u64 + 1;
    for jobs in [1, 2, 7, 64] {
        let recorded = Recorded::default();
        let copied = place.try_copy(&options(jobs), &recorded);
        assert_eq!(recorded.failures(), []);
        assert_eq!(
            recorded.skipped(),
            [(place.path("a/special/socket"), "it is a socket".to_owned())]
        );
        assert_eq!(copied.entries, entries, "{jobs} jobs");
        assert_eq!(copied.unchanged, 0);
        place.assert_same();
        fs::rename(place.path("b"), place.path("old")).unwrap();
        stook_testkit::remove_tree(&place.path("old")).unwrap();
    }
}

#[test]
fn a_copy_on_another_file_system_is_the_same() {
    let shared = Path::new("/dev/shm");
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let place = Place::with(&torture());
    let other = TempDir::new_in(shared);
    let (Ok(other), true) = (other, device(shared) != device(&place.path("a"))) else {
        stook_testkit::skip!("there is no second file system");
        return;
    };
    if !supports_xattrs(shared) {
        stook_testkit::skip!("the second file system has no attributes");
        return;
    }
    let recorded = Recorded::default();
    copy(&place.path("a"), &other.join("b"), &options(2), &recorded).unwrap();
    assert_eq!(recorded.failures(), []);
    assert_copy(&place.path("a"), &other.join("b"));
    let back = place.path("back");
    copied(&other.join("b"), &back, &options(2));
    assert_copy(&place.path("a"), &back);
}

#[test]
fn diff_finds_no_difference() {
    let mut tree = Tree::odd_names();
    tree.graft("random", &Tree::wide(700));
    tree.graft("links", &Tree::links());
    let place = Place::with(&tree);
    place.copy(&options(2));
    let output = Command::new("diff")
        .args(["-r", "--no-dereference"])
        .args([place.path("a"), place.path("b")])
        .output();
    match output {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => stook_testkit::skip!("there is no diff: {error}"),
    }
}

#[test]
fn five_thousand_levels_are_copied() {
    for (levels, jobs) in [(5000, 1), (2500, 7)] {
        let place = Place::with(&Tree::deep(levels));
        let copied = place.copy(&options(jobs));
        assert_eq!(copied.directories, levels as u64 + 1);
        place.assert_same();
        let again = place.copy(&update());
        assert_eq!((again.entries, again.unchanged), (0, copied.entries));
    }
}

#[test]
fn a_flat_directory_of_many_files_is_copied() {
    let place = Place::with(&Tree::wide(5000));
    for jobs in [1, 2, 16] {
        let copied = place.copy(&options(jobs));
        assert_eq!(copied.entries, 5002);
        place.assert_same();
        stook_testkit::remove_tree(&place.path("b")).unwrap();
    }
}

#[test]
fn names_as_long_as_they_can_be_and_of_any_bytes_are_copied() {
    let mut tree = Tree::odd_names();
    tree.insert([&[b'd'; 255][..], b"/", &[0xff; 255]].concat(), file(b"1"));
    let place = Place::with(&tree);
    place.copy(&options(2));
    place.assert_same();
}

/// Groups of hard links in all directories, so that workers meet them in any order.
fn linked() -> Tree {
    let mut tree = Tree::hardlinks();
    for group in 0..40 {
        let first = format!("d{}/first-{group}", group % 7);
        tree.insert(&first, file(format!("group {group}")));
        for link in 0..12 {
            tree.insert(
                format!("d{link}/below/{group}-{link}"),
                hardlink(first.as_bytes()),
            );
        }
    }
    tree
}

#[test]
fn hard_links_are_kept_across_directories_whoever_meets_them_first() {
    let place = Place::with(&linked());
    for jobs in [1, 2, 7, 64] {
        let recorded = Recorded::default();
        place.try_copy(&options(jobs), &recorded);
        assert_eq!(recorded.failures(), []);
        assert_eq!(recorded.notes(), [""; 0]);
        place.assert_same();
        let again = place.copy(&update());
        assert_eq!(again.entries, 0);
        stook_testkit::remove_tree(&place.path("b")).unwrap();
    }
}

#[test]
fn holes_stay_holes() {
    let mut tree = Tree::sparse();
    tree.insert("long", sparse(&[(40 << 20, b"far out")], 80 << 20));
    let place = Place::with(&tree);
    place.copy(&options(2));
    place.assert_same();
    for name in ["hole-only", "hole-middle", "many-holes", "long"] {
        let blocks = |side: &str| place.metadata(&format!("{side}/{name}")).blocks();
        assert!(blocks("b") <= blocks("a") + 16, "{name}");
    }
}

#[test]
fn holes_of_small_files_stay_holes() {
    let place = Place::with(&tree! {
        "empty" => sparse(&[], 65_536),
        "page" => sparse(&[], 4096),
        "middle" => sparse(&[(40_960, b"x")], 100_000),
        "end" => sparse(&[(61_440, b"x")], 65_536),
        "full" => file(vec![0; 20_000]),
    });
    place.copy(&options(2));
    place.assert_same();
    for name in ["empty", "page", "middle", "end"] {
        let blocks = |side: &str| place.metadata(&format!("{side}/{name}")).blocks();
        assert!(blocks("b") <= blocks("a"), "{name}");
    }
}

#[test]
fn large_files_are_copied_whole() {
    let mut random = stook_testkit::Random::new(5);
    let mut tree = Tree::new();
    for size in [
        131_071, 131_072, 131_073, 262_144, 262_145, 9_000_000, 20_000_000,
    ] {
        tree.insert(format!("{size}"), file(random.bytes(size)));
    }
    let place = Place::with(&tree);
    let copied = place.copy(&options(2));
    assert_eq!(
        copied.bytes,
        snapshot(&place.path("a"))
            .entries()
            .map(|(_, facts)| facts.size)
            .sum::<u64>()
    );
    place.assert_same();
}

#[test]
fn a_single_file_is_copied() {
    let place =
        Place::with(&tree! { "f" => file(b"content").mode(0o640).mtime(7, 9), "p" => fifo() });
    symlink("a/f", place.path("link")).unwrap();
    for (name, kind) in [("a/f", "file"), ("link", "followed link"), ("a/p", "fifo")] {
        let to = place.path(&kind.replace(' ', "-"));
        let expected = Copied {
            entries: 1,
            bytes: if name == "a/p" { 0 } else { 7 },
            ..Copied::default()
        };
        assert_eq!(
            copied(&place.path(name), &to, &options(1)),
            expected,
            "{name}"
        );
        let recorded = Recorded::default();
        let error = copy(&place.path(name), &to, &options(1), &recorded).unwrap_err();
        assert!(error.to_string().contains("it is there already"), "{error}");
        let again = copied(&place.path(name), &to, &update());
        assert_eq!((again.entries, again.unchanged), (0, 1));
    }
    assert_eq!(place.read("followed-link"), b"content");
    let facts = |name: &str| {
        let found = place.metadata(name);
        (found.mode(), found.mtime(), found.mtime_nsec())
    };
    assert_eq!(facts("file"), facts("a/f"));
    assert_eq!(facts("fifo"), facts("a/p"));
    place.write("a/f", "newer");
    copied(&place.path("a/f"), &place.path("file"), &update());
    assert_eq!(place.read("file"), b"newer");
}

#[test]
fn a_tree_named_by_a_link_is_copied_and_links_below_are_not_followed() {
    let place = Place::with(&Tree::loops());
    symlink("a", place.path("link")).unwrap();
    copied(&place.path("link"), &place.path("b"), &options(2));
    place.assert_same();
}

#[test]
fn a_destination_named_by_a_link_is_where_the_link_leads() {
    let place = Place::with(&tree! { "f" => file(b"newer") });
    fs::create_dir(place.path("elsewhere")).unwrap();
    place.write("elsewhere/f", "old");
    symlink("elsewhere", place.path("to-tree")).unwrap();
    symlink("elsewhere/f", place.path("to-file")).unwrap();
    let recorded = Recorded::default();
    let result = |from: &str, to: &str, options: &CopyOptions| {
        copy(&place.path(from), &place.path(to), options, &recorded)
    };
    let dry = |options: CopyOptions| CopyOptions {
        is_dry_run: true,
        ..options
    };
    for (from, to) in [("a", "to-tree"), ("a/f", "to-file")] {
        for options in [options(1), dry(options(1))] {
            let error = result(from, to, &options).unwrap_err();
            assert!(error.to_string().contains("it is there already"), "{error}");
        }
        let would = result(from, to, &dry(update())).unwrap();
        assert_eq!((would.entries, would.bytes), (1, 5), "{from}");
        assert_eq!(place.read("elsewhere/f"), b"old");
        assert_eq!(
            copied(&place.path(from), &place.path(to), &update()).bytes,
            5
        );
        assert!(place.metadata(to).file_type().is_symlink());
        assert_eq!(place.read("elsewhere/f"), b"newer");
        assert_eq!(place.verify_at(from, to, &recorded).bytes, 5);
        place.write("elsewhere/f", "old");
    }
    assert_eq!(recorded.failures(), []);
}

#[test]
fn what_is_there_is_refused_in_words() {
    let place = Place::with(&tree! { "f" => file(b"x") });
    place.write("file", "x");
    fs::create_dir(place.path("empty")).unwrap();
    symlink("nowhere", place.path("dangling")).unwrap();
    let recorded = Recorded::default();
    let why = |from: &str, to: &str, options: &CopyOptions| {
        let result = copy(&place.path(from), &place.path(to), options, &recorded);
        result.unwrap_err().to_string()
    };
    assert!(why("a", "empty", &options(1)).contains("it is there already"));
    assert!(why("a", "file", &options(1)).contains("is no directory"));
    assert!(why("a", "file", &update()).contains("is no directory"));
    for options in [options(1), update()] {
        for from in ["a", "a/f"] {
            assert!(why(from, "dangling", &options).contains("leads nowhere"));
        }
        assert!(why("a/f", "new/", &options).contains("not a directory"));
    }
    for options in [options(1), update()] {
        assert!(why("a/f", "empty", &options).contains("it is a directory"));
        assert!(why("a/f", "empty/", &options).contains("it is a directory"));
    }
    assert!(why("a/f", "file", &options(1)).contains("it is there already"));
    assert!(why("none", "b", &options(1)).contains("no such file or directory"));
    assert!(why("a", "none/b", &options(1)).contains("no such file or directory"));
    let dry = CopyOptions {
        is_dry_run: true,
        ..options(1)
    };
    assert!(why("a", "empty", &dry).contains("it is there already"));
    assert_eq!(fs::read_dir(place.path("empty")).unwrap().count(), 0);
    assert_eq!(place.read("file"), b"x");
    assert_eq!(recorded.failures(), []);
}

#[test]
fn a_dry_run_counts_the_content_of_hard_links_once() {
    let place = Place::with(&tree! {
        "f" => file([7; 1000]), "g" => hardlink("f"), "d/h" => hardlink("f"), "i" => file([7; 10]),
    });
    let dry = CopyOptions {
        is_dry_run: true,
        ..options(2)
    };
    let recorded = Recorded::default();
    let would = place.try_copy(&dry, &recorded);
    let copied = place.try_copy(&options(2), &recorded);
    assert_eq!((would.bytes, would.entries), (1010, copied.entries));
    assert_eq!(copied.bytes, 1010);
    // Nor again where one of them is there.
    fs::remove_file(place.path("b/d/h")).unwrap();
    let dry = CopyOptions {
        is_dry_run: true,
        ..update()
    };
    let would = place.try_copy(&dry, &recorded);
    let copied = place.try_copy(&update(), &recorded);
    assert_eq!(recorded.failures(), []);
    assert_eq!(
        (would.entries, would.unchanged),
        (copied.entries, copied.unchanged)
    );
}

/// A copy links the other names to the one that it meets first, and that needs the content if it is missing.
#[test]
fn a_dry_run_counts_what_a_missing_name_needs() {
    for (missing, bytes) in [("f", 1000), ("d/h", 0)] {
        let place = Place::with(&tree! {
            "f" => file([7; 1000]), "d/g" => hardlink("f"), "d/h" => hardlink("f"), "i" => file([7; 10]),
        });
        place.copy(&options(1));
        fs::remove_file(place.path("b").join(missing)).unwrap();
        let real = CopyOptions {
            is_update: true,
            ..options(1)
        };
        let dry = CopyOptions {
            is_dry_run: true,
            ..real.clone()
        };
        let recorded = Recorded::default();
        let would = place.try_copy(&dry, &recorded);
        let copied = place.try_copy(&real, &recorded);
        assert_eq!(recorded.failures(), []);
        let figures = |copied: &Copied| (copied.bytes, copied.unchanged, copied.entries);
        assert_eq!(figures(&would), figures(&copied), "{missing}");
        assert_eq!(copied.bytes, bytes, "{missing}");
    }
}

#[test]
fn a_dry_run_tells_all_and_writes_nothing() {
    let place = Place::with(&torture());
    let dry = CopyOptions {
        is_dry_run: true,
        ..options(3)
    };
    let recorded = Recorded::default();
    let would = place.try_copy(&dry, &recorded);
    assert!(!place.exists("b"));
    let expected: BTreeSet<PathBuf> = snapshot(&place.path("a"))
        .entries()
        .map(|(path, _)| place.path("a").join(path_of(path)))
        .chain([place.path("a")])
        .collect();
    assert_eq!(would.entries, expected.len() as u64);
    assert_eq!(
        recorded.would_copy().into_iter().collect::<BTreeSet<_>>(),
        expected
    );
}

#[test]
fn patterns_choose_and_directories_come_with_what_is_in_them() {
    let mut tree = Tree::new();
    for name in [
        "a/x.o",
        "a/x.c",
        "b/y.o",
        "b/deep/z.c",
        "keep/w.o",
        "none/deep/n.c",
    ] {
        tree.insert(name, file(b"1"));
    }
    tree.insert("c/", dir());
    let place = Place::with(&tree);
    let run = |include: &[&str], exclude: &[&str], is_dry_run: bool| {
        let patterns = |texts: &[&str]| {
            let pattern = |text: &&str| Pattern::new(text.as_bytes());
            texts.iter().map(pattern).collect()
        };
        let options = CopyOptions {
            filter: Filter {
                include: patterns(include),
                exclude: patterns(exclude),
            },
            is_dry_run,
            ..options(2)
        };
        let recorded = Recorded::default();
        let copied = place.try_copy(&options, &recorded);
        assert_eq!(recorded.failures(), []);
        (copied, recorded.would_copy())
    };
    let cases: [(&[&str], &[&str], &[&str]); 4] = [
        (&["*.o"], &["keep/*"], &["a", "a/x.o", "b", "b/y.o"]),
        (
            &[],
            &["*.?"],
            &["a", "b", "b/deep", "c", "keep", "none", "none/deep"],
        ),
        (&["c"], &[], &["c"]),
        (&["none/*"], &["none/deep/*"], &["none", "none/deep"]),
    ];
    for (include, exclude, expected) in cases {
        let (would, named) = run(include, exclude, true);
        assert!(!place.exists("b"));
        let (copied, _) = run(include, exclude, false);
        assert_eq!(would.entries, copied.entries);
        let found = Snapshot::take(&place.path("b")).unwrap();
        let found: Vec<PathBuf> = found.entries().map(|(path, _)| path_of(path)).collect();
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(found, expected);
        let mut paths = vec![place.path("a")];
        paths.extend(expected.iter().map(|path| place.path("a").join(path)));
        assert_eq!(named, paths);
        assert_eq!(place.metadata("a").mtime(), place.metadata("b").mtime());
        stook_testkit::remove_tree(&place.path("b")).unwrap();
    }
}

#[test]
fn read_only_trees_are_copied_by_an_ordinary_user() {
    let place = TempDir::new().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let outcome = without_privileges(|| {
        let mut all = Tree::new();
        all.insert("read-only/below/file", file(b"1").mode(0o444));
        all.insert("read-only/below/", dir().mode(0o555));
        all.insert(
            "read-only/attributes",
            file(b"2").mode(0o400).xattr("user.a", b"b"),
        );
        all.insert("read-only/", dir().mode(0o555).xattr("user.c", b"d"));
        all.insert("hidden/file", file(b"3"));
        all.insert("hidden/", dir().mode(0o511));
        all.insert("pipe", fifo().mode(0o604));
        if !supports_xattrs(place.path()) {
            all = all.without_xattrs();
        }
        all.write(&place.join("a")).unwrap();
        fs::set_permissions(place.join("a"), fs::Permissions::from_mode(0o555)).unwrap();
        let first = copied(&place.join("a"), &place.join("b"), &options(2));
        assert_copy(&place.join("a"), &place.join("b"));
        let again = copied(&place.join("a"), &place.join("b"), &update());
        assert_eq!((again.entries, again.unchanged), (0, first.entries));
        assert_copy(&place.join("a"), &place.join("b"));
    });
    if let Err(error) = outcome {
        stook_testkit::skip!("the user cannot be changed here: {error}");
    }
}

#[test]
fn what_belongs_to_others_becomes_the_users_and_lends_no_rights() {
    let place = Place::with(&tree! {
        "f" => file(b"x").mode(0o6755),
        "d/" => dir().mode(0o2755),
        "l" => stook_testkit::symlink("f"),
    });
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o777)).unwrap();
    if place.metadata("a/f").uid() != 0 {
        stook_testkit::skip!("nothing belongs to another user here");
        return;
    }
    let outcome = without_privileges(|| place.copy(&options(1)));
    if let Err(error) = outcome {
        stook_testkit::skip!("the user cannot be changed here: {error}");
        return;
    }
    for (name, mode) in [("b/f", 0o755), ("b/d", 0o755), ("b/l", 0o777)] {
        let found = place.metadata(name);
        assert_eq!(
            (found.mode() & 0o7777, found.uid() != 0),
            (mode, true),
            "{name}"
        );
    }
    // The superuser sets right what the user could not.
    let again = place.copy(&update());
    assert_eq!(again.entries, 0);
    place.assert_same();
}

#[test]
fn what_is_mounted_below_is_copied_unless_it_is_left_out() {
    let place = Place::with(&tree! { "d/one/" => dir(), "d/two/" => dir(), "d/f" => file(b"x") });
    // Two file systems that number their inodes alike: device and inode make the difference.
    let one = Mounted::in_memory(place.path("a/d/one"), "1M");
    let two = Mounted::in_memory(place.path("a/d/two"), "1M");
    let (Some(_one), Some(_two)) = (one, two) else {
        return;
    };
    for name in ["one", "two"] {
        let at = |file: &str| place.path(&format!("a/d/{name}/{file}"));
        fs::write(at("file"), format!("content of {name}")).unwrap();
        fs::hard_link(at("file"), at("link")).unwrap();
    }
    let inode = |name: &str| place.metadata(name).ino();
    assert_eq!(inode("a/d/one/file"), inode("a/d/two/file"));
    place.copy(&options(2));
    place.assert_same();
    assert_eq!(place.read("b/d/one/link"), b"content of one");
    assert_eq!(place.read("b/d/two/link"), b"content of two");
    stook_testkit::remove_tree(&place.path("b")).unwrap();

    let recorded = Recorded::default();
    let within = CopyOptions {
        one_file_system: true,
        ..options(2)
    };
    place.try_copy(&within, &recorded);
    assert_eq!(recorded.failures(), []);
    let why = "something else is mounted there".to_owned();
    let expected = ["a/d/one", "a/d/two"].map(|name| (place.path(name), why.clone()));
    assert_eq!(recorded.skipped(), expected);
    assert_eq!(fs::read_dir(place.path("b/d/one")).unwrap().count(), 0);
    assert_eq!(place.read("b/d/f"), b"x");
}

#[test]
fn files_that_are_made_up_as_they_are_read_are_copied_as_they_are_read() {
    let place = Place::with(&Tree::new());
    for name in [
        "/proc/version",
        "/proc/filesystems",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        let Ok(expected) = fs::read(name) else {
            stook_testkit::skip!("there is no {name}");
            continue;
        };
        let to = place.path("made-up");
        copied(Path::new(name), &to, &options(1));
        assert_eq!(fs::read(&to).unwrap(), expected, "{name}");
        fs::remove_file(&to).unwrap();
    }
}

/// What `setfacl` would make: the owner, a named user, the group, a mask, others.
fn access_list(named: u32) -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    let entries = [
        (1, 6, u32::MAX),
        (2, 4, named),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 0, u32::MAX),
    ];
    for (tag, rights, id) in entries {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(rights));
        list.extend(u32::to_le_bytes(id));
    }
    list
}

#[test]
fn access_control_lists_are_kept_and_none_are_inherited() {
    let place = Place::with(
        &tree! { "f" => file(b"x"), "d/f" => file(b"y").mode(0o644), "plain/f" => file(b"z") },
    );
    let list = access_list(12_345);
    let set = |name: &str, list_name: &[u8]| {
        let directory = stook_sys::open_file(&place.path(name))
            .map(|file| stook_sys::set_xattr(file, list_name, &list));
        match directory {
            Ok(set) => set,
            Err(_) => {
                let directory = stook_sys::Directory::open(&place.path(name)).unwrap();
                stook_sys::set_xattr(&directory, list_name, &list)
            }
        }
    };
    let access: &[u8] = b"system.posix_acl_access";
    let default: &[u8] = b"system.posix_acl_default";
    if let Err(error) = set("a/f", access) {
        stook_testkit::skip!("no access control lists here: {error}");
        return;
    }
    set("a/d", default).unwrap();
    place.copy(&options(1));
    place.assert_same();
    assert!(
        snapshot(&place.path("b"))
            .get("f")
            .unwrap()
            .xattrs
            .contains_key(access)
    );
    stook_testkit::remove_tree(&place.path("b")).unwrap();

    // A directory that hands its list down to all that is made in it.
    set(".", default).unwrap();
    place.copy(&options(1));
    place.assert_same();
    copied(&place.path("a/plain/f"), &place.path("single"), &options(1));
    let single = stook_sys::open_file(&place.path("single")).unwrap();
    assert_eq!(stook_sys::get_xattrs(&single).unwrap(), []);
    assert_eq!(place.metadata("single").mode() & 0o777, 0o644);

    // The tree loses its lists, and gets a file where the copy hands one down.
    let source = stook_sys::Directory::open(&place.path("a/d")).unwrap();
    place.write("a/d/new", "n");
    fs::create_dir(place.path("a/d/below")).unwrap();
    for lists in [access, default] {
        for name in ["a/d/new", "a/d/below"] {
            if let Ok(file) = fs::File::open(place.path(name)) {
                let _ = stook_sys::remove_xattr(&file, lists);
            }
        }
    }
    stook_sys::remove_xattr(&source, default).unwrap();
    place.copy(&update());
    place.assert_same();
}

#[test]
fn fifos_keep_their_access_control_lists() {
    let place = Place::with(&tree! { "fifo" => fifo(), "d/f" => file(b"x") });
    let attribute = b"system.posix_acl_access";
    let list = access_list(12_345);
    let source = stook_sys::Directory::open(&place.path("a")).unwrap();
    if let Err(error) = source.set_xattr(b"fifo", attribute, &list) {
        stook_testkit::skip!("no access control lists here: {error}");
        return;
    }
    place.copy(&options(1));
    place.assert_same();
    let copy = stook_sys::Directory::open(&place.path("b")).unwrap();
    let wanted = [(attribute.to_vec(), list)];
    assert_eq!(copy.xattrs(b"fifo").unwrap(), wanted);
    assert_eq!(place.metadata("b/fifo").mode() & 0o777, 0o640);
    assert_eq!(copy.xattrs(b"d").unwrap(), []);
}
