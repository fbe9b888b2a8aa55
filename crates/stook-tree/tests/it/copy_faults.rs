//! Copies of trees that change meanwhile, that cannot be read, or that hold their own copy.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use stook_testkit::{
    Compare, Random, Snapshot, TempDir, TempTree, Tree, dir, file, tree, without_privileges,
};
use stook_tree::{CopyOptions, copy};

use crate::copying::{Mounted, Place, Recorded, options, snapshot, update};

const CHANGED: &str = "it changed while it was copied";

#[test]
fn a_tree_is_not_copied_into_itself_in_whatever_disguise() {
    let place = Place::with(&tree! { "d/e/f" => file(b"x"), "d/g" => file(b"y") });
    symlink("a", place.path("link")).unwrap();
    symlink("a/d", place.path("link-below")).unwrap();
    let before = snapshot(&place.path("."));
    let recorded = Recorded::default();
    for options in [options(2), update()] {
        let why = |from: &str, to: &str| {
            let result = copy(&place.path(from), &place.path(to), &options, &recorded);
            result.unwrap_err().to_string()
        };
        let below = "it is in the tree that is copied";
        for to in [
            "a/b",
            "a/d/b",
            "a/d/e/b",
            "link/b",
            "link-below/b",
            "a/d/../b",
            "a/./d/e/../../b//",
        ] {
            assert!(why("a", to).contains(below), "{to}: {}", why("a", to));
            assert!(why("link", to).contains(below), "{to}");
        }
        for to in ["a", "link", "a/", "a/d/..", "link-below/.."] {
            assert!(why("a", to).contains("it is the tree itself"), "{to}");
        }
        for to in ["a/d", "link-below"] {
            assert!(why("a", to).contains(below), "{to}");
        }
        assert!(why("a/d/e", "a").contains("it holds the tree"));
        assert!(why("a/d/e", "a/d").contains("it holds the tree"));
        assert!(why("a/d/g", "a/d/g").contains("it is the tree itself"));
    }
    fs::hard_link(place.path("a/d/g"), place.path("same")).unwrap();
    let error = copy(
        &place.path("a/d/g"),
        &place.path("same"),
        &update(),
        &recorded,
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("it is the tree itself"),
        "{error}"
    );
    fs::remove_file(place.path("same")).unwrap();
    let after = snapshot(&place.path("."));
    let compare = Compare::everything().without(stook_testkit::Fact::DirectoryMtime);
    assert_eq!(before.difference(&after, &compare), [""; 0]);
}

#[test]
fn a_copy_that_appears_in_the_tree_by_a_mount_is_left_out() {
    let place = Place::with(&tree! { "d/e/f" => file(b"x"), "d/g" => file(b"y") });
    fs::create_dir(place.path("elsewhere")).unwrap();
    let Some(_mounted) = Mounted::again(&place.path("a/d"), place.path("elsewhere")) else {
        return;
    };
    for options in [options(1), update()] {
        let recorded = Recorded::default();
        copy(
            &place.path("a"),
            &place.path("elsewhere/b"),
            &options,
            &recorded,
        )
        .unwrap();
        let expected = (
            place.path("a/d/b"),
            "copy",
            "it is the copy itself".to_owned(),
        );
        assert_eq!(recorded.failures(), [expected]);
        assert_eq!(place.read("elsewhere/b/d/e/f"), b"x");
        assert!(!place.exists("elsewhere/b/d/b"));
    }
}

#[test]
fn two_copies_into_one_place_at_once_are_refused() {
    let place = Place::with(&Tree::wide(300));
    let refused = AtomicUsize::new(0);
    let meanwhile = |_: u64, _: u64| {
        let recorded = Recorded::default();
        let second = copy(&place.path("a"), &place.path("b"), &update(), &recorded);
        let error = second.unwrap_err().to_string();
        assert!(error.contains("another process copies there"), "{error}");
        refused.fetch_add(1, Ordering::Relaxed);
    };
    let recorded = Recorded::watching(&meanwhile);
    place.try_copy(&options(2), &recorded);
    assert_eq!(recorded.failures(), []);
    assert!(refused.into_inner() > 0);
    place.assert_same();
}

#[test]
fn files_that_vanish_are_named_and_the_rest_is_copied() {
    let place = Place::with(&Tree::wide(100));
    let gone = |number: usize| format!("a/wide/f{number:07}");
    let is_first = AtomicBool::new(true);
    let meanwhile = |entries: u64, _: u64| {
        if entries > 0 && is_first.swap(false, Ordering::Relaxed) {
            for number in 0..100 {
                if !place.exists(&gone(number).replacen('a', "b", 1)) {
                    fs::remove_file(place.path(&gone(number))).unwrap();
                }
            }
        }
    };
    let recorded = Recorded::watching(&meanwhile);
    let copied = place.try_copy(&options(1), &recorded);
    let failures = recorded.failures();
    assert!(failures.len() > 50);
    assert_eq!(failures.len() as u64 + copied.entries, 102);
    for (path, operation, why) in failures {
        assert!(path.starts_with(place.path("a/wide")));
        assert_eq!(
            (operation, why.as_str()),
            ("open", "no such file or directory")
        );
    }
    let (left, copies) = (snapshot(&place.path("a")), snapshot(&place.path("b")));
    let compare = Compare::everything().without(stook_testkit::Fact::DirectoryMtime);
    assert_eq!(left.difference(&copies, &compare), [""; 0]);
}

/// Copies a file of 40 MB, to which this happens when a part of it is copied.
fn changed_meanwhile(place: &Place, change: &(dyn Fn(&fs::File) + Sync)) -> Recorded<'static> {
    let is_first = AtomicBool::new(true);
    let meanwhile = |_: u64, bytes: u64| {
        if bytes > 1 && is_first.swap(false, Ordering::Relaxed) {
            let file = fs::File::options().write(true).open(place.path("a/large"));
            change(&file.unwrap());
        }
    };
    let recorded = Recorded::watching(&meanwhile);
    place.try_copy(&options(1), &recorded);
    assert!(!is_first.load(Ordering::Relaxed));
    recorded.forget_meanwhile()
}

#[test]
fn files_that_shrink_grow_or_are_written_to_are_named_and_leave_nothing() {
    let changes: [&(dyn Fn(&fs::File) + Sync); 3] = [
        &|file| file.set_len(1 << 20).unwrap(),
        &|file| file.set_len(50 << 20).unwrap(),
        &|file| {
            use std::os::unix::fs::FileExt;
            file.write_all_at(b"other", 39 << 20).unwrap();
        },
    ];
    for change in changes {
        let place = Place::with(&tree! {
            "large" => file(Random::new(7).bytes(40 << 20)),
            "other" => file(b"x"),
        });
        let recorded = changed_meanwhile(&place, change);
        let expected = (place.path("a/large"), "copy", CHANGED.to_owned());
        assert_eq!(recorded.failures(), [expected]);
        assert!(!place.exists("b/large"));
        assert_eq!(place.read("b/other"), b"x");
        place.copy(&update());
        place.assert_same();
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_copied() {
    let place = TempDir::new().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let outcome = without_privileges(|| {
        let mut all = Tree::new();
        all.insert("closed/inside", file(b"1"));
        all.insert("closed/", dir().mode(0o000));
        all.insert("secret", file(b"2").mode(0o000));
        all.insert("names-only/f", file(b"3"));
        all.insert("names-only/", dir().mode(0o444));
        all.insert("open/file", file(b"4"));
        all.write(&place.join("a")).unwrap();
        let recorded = Recorded::default();
        copy(&place.join("a"), &place.join("b"), &options(2), &recorded).unwrap();
        let why = "permission denied".to_owned();
        let expected = ["closed", "names-only/f", "secret"]
            .map(|name| (place.join("a").join(name), "open", why.clone()));
        assert_eq!(recorded.failures(), expected);
        let mut found: Vec<_> = fs::read_dir(place.join("b"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        assert_eq!(found, ["names-only", "open"]);
        assert_eq!(fs::read(place.join("b/open/file")).unwrap(), b"4");
    });
    if let Err(error) = outcome {
        stook_testkit::skip!("the user cannot be changed here: {error}");
    }
}

#[test]
fn a_name_that_somebody_else_takes_meanwhile_is_not_overwritten() {
    let place = Place::with(&Tree::wide(64));
    let is_first = AtomicBool::new(true);
    let outside = place.path("outside");
    fs::write(&outside, "precious").unwrap();
    let meanwhile = |entries: u64, _: u64| {
        if entries > 0 && is_first.swap(false, Ordering::Relaxed) {
            for number in 0..64 {
                let name = place.path(&format!("b/wide/f{number:07}"));
                let _ = symlink(&outside, name);
            }
        }
    };
    let recorded = Recorded::watching(&meanwhile);
    place.try_copy(&options(1), &recorded);
    let failures = recorded.failures();
    assert!(!failures.is_empty());
    for (path, operation, why) in failures {
        assert!(path.starts_with(place.path("b/wide")));
        assert_eq!((operation, why.as_str()), ("create", "file exists"));
    }
    assert_eq!(fs::read(&outside).unwrap(), b"precious");
    place.copy(&update());
    place.assert_same();
}

fn swap_rounds() -> usize {
    std::env::var("STOOK_SWAP_ROUNDS").map_or(150, |text| text.parse().unwrap())
}

/// Exchanges a directory for a link to another place and back, until it is over.
fn swap(inner: &Path, aside: &Path, outside: &Path, is_over: &AtomicBool) -> usize {
    let mut swaps = 0;
    while !is_over.load(Ordering::Relaxed) {
        if fs::rename(inner, aside).is_ok() {
            swaps += usize::from(symlink(outside, inner).is_ok());
            let _ = fs::remove_file(inner);
            let _ = fs::rename(aside, inner);
        }
    }
    swaps
}

/// Directories of the source and of the copy are exchanged for links to precious data, and back, while it is copied.
#[test]
fn a_directory_swapped_for_a_link_leads_nowhere_outside() {
    let outside = TempTree::new(&Tree::basic()).unwrap();
    let before = Snapshot::take(outside.path()).unwrap();
    let mut tree = Tree::new();
    for name in ["a", "b", "c"] {
        for number in 0..8 {
            tree.insert(format!("{name}/d/file-{number}"), file(b"x"));
            tree.insert(format!("{name}/d/e/file-{number}"), file(b"y"));
        }
    }
    let place = Place::with(&tree);
    let (mut swaps, mut in_copy) = (0, 0);
    for round in 0..swap_rounds() {
        let side = if round % 2 == 0 { "a" } else { "b" };
        let inner = place.path(side).join("b/d");
        let aside = place.path("aside");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let swapper = scope.spawn(|| swap(&inner, &aside, outside.path(), &is_over));
            for is_update in [false, true, true] {
                let options = CopyOptions {
                    is_update,
                    ..options([1, 2, 5][round % 3])
                };
                let recorded = Recorded::default();
                let _ = copy(&place.path("a"), &place.path("b"), &options, &recorded);
            }
            is_over.store(true, Ordering::Relaxed);
            let swapped = swapper.join().unwrap();
            swaps += swapped;
            in_copy += if side == "b" { swapped } else { 0 };
        });
        let after = Snapshot::take(outside.path()).unwrap();
        assert_eq!(before.difference(&after, &Compare::everything()), [""; 0]);
        // Nothing of what is outside has come in.
        let copied = Snapshot::take(&place.path("b")).unwrap();
        for (path, _) in copied.entries() {
            let name = String::from_utf8_lossy(path);
            assert!(
                !name.contains("top.txt") && !name.contains("one.bin"),
                "{name}"
            );
        }
        stook_testkit::remove_tree(&place.path("b")).unwrap();
        if aside.exists() {
            stook_testkit::remove_tree(&aside).unwrap();
        }
    }
    println!("{swaps} swaps, {in_copy} of them in the copy");
    assert!(swaps > in_copy && in_copy > 0);
}
