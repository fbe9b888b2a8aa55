//! Tests of trees as data: what is built is what lies on disk.

use super::{Tree, dir, file};
use crate::{Compare, Facts, Kind, Snapshot, TempDir, TempTree, supports_xattrs, tree};
use std::os::unix::ffi::OsStrExt;

fn facts_of<'a>(snapshot: &'a Snapshot, path: &[u8]) -> &'a Facts {
    snapshot.get(path).expect("the path is in the snapshot")
}

#[test]
fn every_kind_arrives_with_its_facts() {
    let tree = tree! {
        "a" => file(b"x").mode(0o600).mtime(-2, 250_000_000),
        "d/" => dir().mode(0o700).mtime(5, 6),
        "d/l" => symlink("../a").mtime(7, 8),
        "h" => hardlink("a"),
        "p" => fifo(),
        "s" => socket(),
        "big" => sparse(&[(1 << 20, b"data")], 1 << 21),
    };
    assert_eq!(tree.len(), 7);
    let written = TempTree::new(&tree).unwrap();
    let snapshot = Snapshot::take(written.path()).unwrap();
    assert_eq!(snapshot.len(), 7);
    let a = facts_of(&snapshot, b"a");
    assert_eq!(
        (a.kind, a.mode, a.size, a.mtime_ns),
        (Kind::File, 0o600, 1, -1_750_000_000)
    );
    assert_eq!(a.md5.as_deref(), Some("9dd4e461268c8034f5c8564e155c67a6"));
    let d = facts_of(&snapshot, b"d");
    assert_eq!(
        (d.kind, d.mode, d.mtime_ns),
        (Kind::Directory, 0o700, 5_000_000_006)
    );
    let link = facts_of(&snapshot, b"d/l");
    assert_eq!((link.kind, link.mtime_ns), (Kind::Symlink, 7_000_000_008));
    assert_eq!(link.target.as_deref(), Some(&b"../a"[..]));
    assert_eq!(
        facts_of(&snapshot, b"h").first_link.as_deref(),
        Some(&b"a"[..])
    );
    assert_eq!(facts_of(&snapshot, b"p").kind, Kind::Fifo);
    assert_eq!(facts_of(&snapshot, b"s").kind, Kind::Socket);
    let big = facts_of(&snapshot, b"big");
    assert_eq!((big.size, big.has_holes), (1 << 21, true));
}

#[test]
fn wrong_paths_are_reported_by_write() {
    for path in ["", "/a", "a//b", "../x", "a/./b", "a\0b", "slash/"] {
        let mut tree = Tree::new();
        tree.insert(path, file(b""));
        let directory = TempDir::new().unwrap();
        let error = tree.write(&directory.join("t")).unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::InvalidInput,
            "{path:?}: {error}"
        );
    }
    let mut tree = tree! { "a" => file(b""), "d/x" => file(b"") };
    tree.insert("a/below", file(b""));
    tree.insert("d", file(b""));
    assert_eq!(tree.faults.len(), 2);
}

#[test]
fn a_hard_link_to_nothing_is_an_error_that_names_it() {
    let error = TempTree::new(&tree! { "h" => hardlink("missing") }).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(
        error.to_string().contains("make the hard link `h`"),
        "{error}"
    );
}

#[test]
fn a_second_tree_goes_over_the_first_without_writing_through() {
    let written =
        TempTree::new(&tree! { "a" => file(b"old"), "b" => hardlink("a"), "l" => symlink("a") })
            .unwrap();
    tree! { "a" => file(b"new"), "l" => file(b"no link"), "d/x" => fifo() }
        .write(written.path())
        .unwrap();
    assert_eq!(std::fs::read(written.path().join("a")).unwrap(), b"new");
    assert_eq!(std::fs::read(written.path().join("b")).unwrap(), b"old");
    assert_eq!(std::fs::read(written.path().join("l")).unwrap(), b"no link");
    tree! { "a/" => dir() }.write(written.path()).unwrap();
    assert!(written.path().join("a").is_dir());
}

#[test]
fn named_trees_can_be_written_twice_and_are_equal() {
    let trees = [
        ("basic", Tree::basic()),
        ("deep", Tree::deep(100)),
        ("wide", Tree::wide(50)),
        ("links", Tree::links()),
        ("hardlinks", Tree::hardlinks()),
        ("odd_names", Tree::odd_names()),
        ("sparse", Tree::sparse()),
        ("loops", Tree::loops()),
        ("random", Tree::random(3, 200)),
    ];
    for (name, tree) in trees {
        let (one, two) = (TempTree::new(&tree).unwrap(), TempTree::new(&tree).unwrap());
        let (one, two) = (
            Snapshot::take(one.path()).unwrap(),
            Snapshot::take(two.path()).unwrap(),
        );
        assert_eq!(one.len(), tree.len(), "{name}");
        assert_eq!(
            one.difference(&two, &Compare::everything()),
            [""; 0],
            "{name}"
        );
    }
}

#[test]
fn deep_goes_below_path_max_and_can_be_removed() {
    let directory = TempDir::new().unwrap();
    let root = directory.join("t");
    Tree::deep(5000).write(&root).unwrap();
    let snapshot = Snapshot::take(&root).unwrap();
    assert_eq!(snapshot.len(), 5002);
    let bottom = [b"d/".repeat(5000).as_slice(), b"bottom"].concat();
    assert_eq!(facts_of(&snapshot, &bottom).size, 6);
    assert_eq!(
        facts_of(&snapshot, &b"d/".repeat(5000)[..9999]).mtime_ns,
        1_600_000_000_123_456_789
    );
    let path = directory.path().to_owned();
    directory.close().unwrap();
    assert!(!path.exists());
}

#[test]
fn torture_holds_every_kind() {
    let mut tree = Tree::torture();
    if !supports_xattrs(&std::env::temp_dir()) {
        crate::skip!("extended attributes, the temporary directory has none");
        tree = tree.without_xattrs();
    }
    let written = TempTree::new(&tree).unwrap();
    let snapshot = Snapshot::take(written.path()).unwrap();
    assert_eq!(snapshot.len(), tree.len());
    let kinds: std::collections::BTreeSet<Kind> =
        snapshot.entries().map(|(_, facts)| facts.kind).collect();
    for kind in [
        Kind::File,
        Kind::Directory,
        Kind::Symlink,
        Kind::Fifo,
        Kind::Socket,
    ] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
    assert_eq!(
        facts_of(&snapshot, b"hardlinks/hard.txt")
            .first_link
            .as_deref(),
        Some(&b"hardlinks/a.txt"[..])
    );
    assert_eq!(facts_of(&snapshot, b"modes/file-7777").mode, 0o7777);
    if super::can_make_devices() {
        assert_eq!(
            facts_of(&snapshot, b"special/far").device,
            Some((511, 70_000))
        );
    } else {
        crate::skip!("devices, this user cannot make them");
    }
}

#[test]
fn extended_attributes_arrive() {
    if !supports_xattrs(&std::env::temp_dir()) {
        crate::skip!("the temporary directory has no extended attributes");
        return;
    }
    let tree = tree! { "f" => file(b"").xattr("user.k", b"v"), "d/" => dir().xattr("user.e", b"") };
    let written = TempTree::new(&tree).unwrap();
    let snapshot = Snapshot::take(written.path()).unwrap();
    assert_eq!(
        facts_of(&snapshot, b"f")
            .xattrs
            .get(&b"user.k"[..])
            .map(Vec::as_slice),
        Some(&b"v"[..])
    );
    assert_eq!(facts_of(&snapshot, b"d").xattrs.len(), 1);
    let bare = TempTree::new(&tree.without_xattrs()).unwrap();
    let difference = snapshot.difference(
        &Snapshot::take(bare.path()).unwrap(),
        &Compare::everything(),
    );
    assert_eq!(difference.len(), 2, "{difference:?}");
}

#[test]
fn raw_names_reach_the_disk_unchanged() {
    let written = TempTree::new(&tree! { b"raw-\xff" => file(b"r") }).unwrap();
    let name = std::fs::read_dir(written.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .file_name();
    assert_eq!(name.as_bytes(), b"raw-\xff");
}

#[test]
fn entries_come_in_order_of_insertion_without_implied_directories() {
    let mut tree = tree! { "z" => file(b"z"), "a/b" => dir() };
    tree.graft("g", &tree! { "t" => file(b""), "h" => hardlink("t") });
    let paths: Vec<String> = tree
        .entries()
        .map(|(path, _)| String::from_utf8(path).unwrap())
        .collect();
    assert_eq!(paths, ["z", "a/b", "g", "g/t", "g/h"]);
    assert_eq!(tree.len(), 6);
    assert_eq!(*tree.entries().nth(4).unwrap().1, crate::hardlink("g/t"));
    assert!(Tree::default().is_empty());
    assert_ne!(dir(), file(b""));
}
