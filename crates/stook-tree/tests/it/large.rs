//! Directories of so many names that several tasks look at one, and what a walk can leave undone.

use std::io::ErrorKind;

use stook_sys::{Directory, FileKind, Links, Metadata};
use stook_testkit::{TempTree, Tree, dir, file, symlink, tree, without_privileges};
use stook_tree::{Detail, WalkOptions};

use crate::recorder::{Found, Recorder, options};

/// One directory of 3,000 names of every sort, in an order that is not that of their inodes.
fn large() -> Tree {
    let mut tree = Tree::new();
    for number in 0..1000_u64 {
        let mixed = number * 7919 % 1000;
        tree.insert(format!("large/f{mixed:04}"), file(vec![b'x'; 5]));
        tree.insert(format!("large/d{mixed:04}/"), dir());
        let target = if number % 2 == 0 { "d0001" } else { "f0001" };
        tree.insert(format!("large/l{mixed:04}"), symlink(target));
    }
    tree.insert("large/d0500/inside", file(b"inside"));
    tree
}

fn walk(tree: &TempTree, options: &WalkOptions) -> Found {
    Recorder::default().walk(tree.path(), options)
}

#[test]
fn any_number_of_workers_finds_the_same_in_a_large_directory() {
    let tree = TempTree::new(&large()).unwrap();
    for links in [Links::Refuse, Links::Follow] {
        let one = walk(&tree, &options(1, links));
        assert_eq!(one.failed(), []);
        let (names, is_empty) = &one.listings[&b"large"[..]];
        assert!(names.is_sorted_by(|a, b| a < b) && !is_empty);
        let entries = if links == Links::Refuse { 2000 } else { 1500 };
        assert_eq!(names.len(), entries);
        for jobs in [2, 7, 64] {
            let many = walk(&tree, &options(jobs, links));
            assert_eq!(many.entries, one.entries);
            assert_eq!(many.listings, one.listings);
            assert_eq!(many.to_directories, one.to_directories);
        }
    }
}

#[test]
fn the_same_entries_come_without_an_order() {
    let tree = TempTree::new(&large()).unwrap();
    for jobs in [1, 7] {
        let mut options = options(jobs, Links::Refuse);
        let sorted = walk(&tree, &options);
        options.sorted = false;
        let unsorted = walk(&tree, &options);
        assert_eq!(unsorted.entries, sorted.entries);
        let (mut names, _) = unsorted.listings[&b"large"[..]].clone();
        names.sort();
        assert_eq!(names, sorted.listings[&b"large"[..]].0);
    }
}

#[test]
fn a_large_directory_without_anything_but_directories_is_not_empty() {
    let mut tree = Tree::new();
    for number in 0..700 {
        tree.insert(format!("d{number}/"), dir());
    }
    let tree = TempTree::new(&tree).unwrap();
    let found = walk(&tree, &options(2, Links::Refuse));
    assert_eq!(found.listings[&b""[..]], (Vec::new(), false));
    assert_eq!(found.listings.len(), 701);
}

#[test]
fn a_directory_is_left_out_of_a_large_one() {
    let tree = TempTree::new(&large()).unwrap();
    let left_out = stook_sys::exists(&tree.path().join("large/d0500")).unwrap();
    for jobs in [1, 7] {
        let mut options = options(jobs, Links::Refuse);
        options.leave_out = vec![left_out.unwrap().identity()];
        let found = walk(&tree, &options);
        assert_eq!(found.entries.len(), 1 + 3000 - 1);
        assert!(!found.entries.contains_key(&b"large/d0500"[..]));
    }
}

#[test]
fn a_large_directory_that_may_be_listed_but_not_searched_has_a_failure_for_every_file() {
    let mut tree = Tree::new();
    tree.insert("names-only/", dir().mode(0o444));
    for number in 0..500 {
        tree.insert(format!("names-only/f{number}"), file(b""));
    }
    let tree = TempTree::new(&tree).unwrap();
    let root = Directory::open(tree.path()).unwrap();
    let walked =
        without_privileges(|| Recorder::default().walk_open(&root, &options(7, Links::Refuse)));
    let found = match walked {
        Ok(found) => found,
        Err(error) => return stook_testkit::skip!("the user cannot be changed here: {error}"),
    };
    assert_eq!(found.failures.len(), 500);
    assert_eq!(found.listings[&b"names-only"[..]], (Vec::new(), false));
}

#[test]
fn kinds_alone_are_told_without_other_facts() {
    let tree = TempTree::new(&tree! {
        "file" => file(b"content"),
        "link" => symlink("dir"),
        "pipe" => fifo(),
        "dir/inside" => file(b"inside"),
    })
    .unwrap();
    let mut options = options(2, Links::Refuse);
    options.detail = Detail::Kinds;
    let found = walk(&tree, &options);
    let kinds: Vec<(&[u8], FileKind)> = found
        .entries
        .iter()
        .map(|(path, metadata)| (&path[..], metadata.kind))
        .collect();
    let expected = [
        (&b"dir"[..], FileKind::Directory),
        (b"dir/inside", FileKind::File),
        (b"file", FileKind::File),
        (b"link", FileKind::Symlink),
        (b"pipe", FileKind::Fifo),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(found.to_directories, [[0_u8; 0]; 0]);
    // Most file systems tell the kind with the name; then nothing else was asked.
    let of_kind = Metadata::of_kind(FileKind::File);
    let file = found.entries[&b"file"[..]];
    assert!(file == of_kind || file.size == 7);
    options.detail = Detail::Facts;
    let found = walk(&tree, &options);
    assert_eq!(found.entries[&b"file"[..]].size, 7);
    assert_eq!(found.to_directories, [[0_u8; 0]; 0]);
}

#[test]
fn a_directory_that_may_not_be_read_is_told_if_that_is_wanted() {
    let tree = TempTree::new(&tree! {
        "closed/" => dir().mode(0o000),
        "closed/inside" => file(b"unseen"),
        "file" => file(b"seen"),
    })
    .unwrap();
    let root = Directory::open(tree.path()).unwrap();
    for detail in [Detail::Kinds, Detail::Facts] {
        let mut options = options(2, Links::Refuse);
        (options.detail, options.unreadable) = (detail, true);
        let walked = without_privileges(|| Recorder::default().walk_open(&root, &options));
        let found = match walked {
            Ok(found) => found,
            Err(error) => return stook_testkit::skip!("the user cannot be changed here: {error}"),
        };
        assert_eq!(found.paths(), ["closed", "file"]);
        let failure = (b"closed".to_vec(), "open", ErrorKind::PermissionDenied);
        assert_eq!(found.failures, [failure]);
        assert_eq!(found.listings[&b"closed"[..]], (Vec::new(), false));
    }
}

#[test]
fn a_closed_directory_is_told_by_kind_where_its_facts_may_not_be_had() {
    let tree = TempTree::new(&tree! {
        "names-only/" => dir().mode(0o444),
        "names-only/sub/file" => file(b"unseen"),
    })
    .unwrap();
    let root = Directory::open(tree.path()).unwrap();
    for (detail, paths) in [
        (Detail::Kinds, &["names-only", "names-only/sub"][..]),
        (Detail::Facts, &["names-only"]),
    ] {
        let mut options = options(2, Links::Refuse);
        (options.detail, options.unreadable) = (detail, true);
        let walked = without_privileges(|| Recorder::default().walk_open(&root, &options));
        let found = match walked {
            Ok(found) => found,
            Err(error) => return stook_testkit::skip!("the user cannot be changed here: {error}"),
        };
        assert_eq!(found.paths(), paths);
        assert_eq!(found.failed(), [("names-only/sub", "open")]);
    }
}
