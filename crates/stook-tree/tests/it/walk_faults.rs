//! Walks of trees that loop, change meanwhile, or may not be read: a named failure each, and the rest is found.

use std::io::ErrorKind;

use stook_sys::{Directory, Links};
use stook_testkit::{TempTree, Tree, tree, without_privileges};
use stook_tree::{Filter, Pattern};

use crate::recorder::{Found, Recorder, options};

#[test]
fn every_loop_is_a_failure_when_links_are_followed() {
    let tree = TempTree::new(&Tree::loops()).unwrap();
    for jobs in [1, 2, 7] {
        let found = Recorder::default().walk(tree.path(), &options(jobs, Links::Follow));
        let expected = [
            ("below-self", "look at"),
            ("dir/here", "follow"),
            ("dir/sub/root", "follow"),
            ("dir/up", "follow"),
            ("ping", "look at"),
            ("pong", "look at"),
            ("self", "look at"),
        ];
        assert_eq!(found.failed(), expected);
        assert_eq!(found.paths(), ["dir", "dir/sub", "dir/sub/file"]);
    }
}

#[test]
fn loops_are_plain_links_when_links_are_not_followed() {
    let tree = TempTree::new(&Tree::loops()).unwrap();
    let found = Recorder::default().walk(tree.path(), &options(2, Links::Refuse));
    assert_eq!(found.failed(), []);
    assert_eq!(found.entries.len(), Tree::loops().len());
}

#[test]
fn two_links_to_each_others_directories_end() {
    let tree = TempTree::new(&tree! {
        "a/to-b" => symlink("../b"),
        "b/to-a" => symlink("../a"),
    })
    .unwrap();
    let found = Recorder::default().walk(tree.path(), &options(2, Links::Follow));
    assert_eq!(
        found.failed(),
        [("a/to-b/to-a", "follow"), ("b/to-a/to-b", "follow")]
    );
    assert_eq!(found.paths(), ["a", "a/to-b", "b", "b/to-a"]);
}

/// With one thread the root is listed before any directory below it is opened.
fn walk_after(tree: &TempTree, change: impl Fn() + Sync) -> Found {
    let recorder = Recorder::acting(|path| {
        if path.is_empty() {
            change();
        }
    });
    recorder.walk(tree.path(), &options(1, Links::Refuse))
}

#[test]
fn a_directory_swapped_for_a_link_does_not_lead_outside() {
    let tree = TempTree::new(&tree! {
        "kept/file" => file(b"kept"),
        "victim/inside" => file(b"inside"),
    })
    .unwrap();
    let outside = tree.beside("outside");
    tree! { "secret" => file(b"secret") }
        .write(&outside)
        .unwrap();
    let victim = tree.path().join("victim");
    let found = walk_after(&tree, || {
        std::fs::rename(&victim, tree.beside("moved")).unwrap();
        std::os::unix::fs::symlink(&outside, &victim).unwrap();
    });
    assert_eq!(found.failed(), [("victim", "open")]);
    assert_eq!(found.paths(), ["kept", "kept/file"]);
}

#[test]
fn a_directory_swapped_for_a_fifo_is_a_failure_and_does_not_block() {
    let tree = TempTree::new(&tree! { "victim/inside" => file(b"inside") }).unwrap();
    let (victim, moved) = (tree.path().join("victim"), tree.beside("moved"));
    let fifo = tree.beside("pipes");
    tree! { "pipe" => fifo() }.write(&fifo).unwrap();
    let found = walk_after(&tree, || {
        std::fs::rename(&victim, &moved).unwrap();
        std::fs::rename(fifo.join("pipe"), &victim).unwrap();
    });
    let expected = (b"victim".to_vec(), "open", ErrorKind::NotADirectory);
    assert_eq!(found.failures, [expected]);
}

#[test]
fn a_pruned_directory_swapped_for_a_file_is_a_failure() {
    let tree = TempTree::new(&tree! { "victim/inside" => file(b"inside") }).unwrap();
    let victim = tree.path().join("victim");
    let filter = Filter {
        include: Vec::new(),
        exclude: vec![Pattern::new(b"victim/*")],
    };
    let recorder = Recorder::acting(|path| {
        if path.is_empty() {
            std::fs::rename(&victim, tree.beside("moved")).unwrap();
            std::fs::write(&victim, b"a file now").unwrap();
        }
    });
    let found = recorder
        .with_filter(filter)
        .walk(tree.path(), &options(1, Links::Refuse));
    let expected = (b"victim".to_vec(), "look at", ErrorKind::NotADirectory);
    assert_eq!(found.failures, [expected]);
    assert!(found.entries.is_empty());
}

#[test]
fn a_directory_that_vanishes_before_it_is_opened_is_a_failure() {
    let tree = TempTree::new(&tree! {
        "gone/inside" => file(b"inside"),
        "kept/file" => file(b"kept"),
    })
    .unwrap();
    let gone = tree.path().join("gone");
    let found = walk_after(&tree, || std::fs::remove_dir_all(&gone).unwrap());
    let expected = (b"gone".to_vec(), "open", ErrorKind::NotFound);
    assert_eq!(found.failures, [expected]);
    assert_eq!(found.paths(), ["kept", "kept/file"]);
}

fn walk_without_privileges(tree: &TempTree, filter: Filter) -> Option<Found> {
    let root = Directory::open(tree.path()).unwrap();
    let walked = without_privileges(|| {
        Recorder::filtered(filter).walk_open(&root, &options(2, Links::Refuse))
    });
    walked
        .inspect_err(|error| stook_testkit::skip!("the user cannot be changed here: {error}"))
        .ok()
}

#[test]
fn d12_directories_that_may_not_be_read_are_failures_and_the_rest_is_found() {
    let tree = TempTree::new(&tree! {
        "closed/" => dir().mode(0o000),
        "closed/inside" => file(b"unseen"),
        "names-only/" => dir().mode(0o444),
        "names-only/file" => file(b"name seen, facts not"),
        "names-only/sub/file" => file(b"unseen"),
        "pass-only/" => dir().mode(0o111),
        "pass-only/inside" => file(b"unseen"),
        "open/file" => file(b"seen"),
        "z" => file(b"seen").mode(0o000),
    })
    .unwrap();
    let Some(found) = walk_without_privileges(&tree, Filter::default()) else {
        return;
    };
    let expected = [
        ("closed", "open"),
        ("names-only/file", "look at"),
        ("names-only/sub", "open"),
        ("pass-only", "open"),
    ];
    assert_eq!(found.failed(), expected);
    assert!(
        found
            .failures
            .iter()
            .all(|failure| failure.2 == ErrorKind::PermissionDenied)
    );
    assert_eq!(found.paths(), ["names-only", "open", "open/file", "z"]);
    assert!(!found.listings[&b"names-only"[..]].1, "it is not empty");
}

#[test]
fn a_pruned_directory_need_not_be_readable() {
    let tree = TempTree::new(&tree! {
        "lost+found/" => dir().mode(0o000),
        "lost+found/inside" => file(b"unseen"),
        "file" => file(b"seen"),
    })
    .unwrap();
    let filter = Filter {
        include: Vec::new(),
        exclude: vec![Pattern::new(b"lost+found/")],
    };
    let Some(found) = walk_without_privileges(&tree, filter) else {
        return;
    };
    assert_eq!(found.failed(), []);
    assert_eq!(found.paths(), ["file", "lost+found"]);
}
