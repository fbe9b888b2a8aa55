//! Walks that need more directories at once than may be open: parents are opened from the root again.

use std::path::{Path, PathBuf};
use std::process::Command;

use stook_sys::Links;
use stook_testkit::{Snapshot, TempTree, Tree, dir, file};
use stook_tree::{Filter, Pattern};

use crate::recorder::{Recorder, options};

/// Says to the process that it runs under the limit, and where the tree is.
const UNDER_LIMIT: &str = "STOOK_TEST_TREE_UNDER_LIMIT";

/// Levels in one another, each with two siblings that wait while the first goes deeper: as many parents
/// want to stay open.
fn comb(levels: usize) -> Tree {
    let mut tree = Tree::new();
    let mut path = Vec::new();
    for _ in 0..levels {
        tree.insert([&path, &b"m/file"[..]].concat(), file(b"m"));
        tree.insert([&path, &b"z/"[..]].concat(), dir());
        path.extend_from_slice(b"d/");
    }
    tree.insert([&path, &b"bottom"[..]].concat(), file(b"bottom"));
    tree
}

/// Names of 20 letters bring the path to the bottom over `PATH_MAX` long before the last level.
fn long_comb(levels: usize) -> Tree {
    let mut tree = Tree::new();
    let mut path = Vec::new();
    for _ in 0..levels {
        tree.insert([&path, &b"m/file"[..]].concat(), file(b"m"));
        tree.insert([&path, &b"pruned/inside"[..]].concat(), file(b"p"));
        path.extend_from_slice(b"directory-of-the-way/");
    }
    tree
}

#[test]
fn more_waiting_directories_than_may_stay_open_are_all_walked() {
    let tree = TempTree::new(&comb(800)).unwrap();
    for jobs in [1, 7] {
        let found = Recorder::default().walk(tree.path(), &options(jobs, Links::Refuse));
        assert_eq!(found.failed(), []);
        // Each level has `m`, `m/file`, `z` and `d`; at the end there is one file more.
        assert_eq!(found.entries.len(), 800 * 4 + 1);
    }
}

#[test]
fn directories_far_down_are_reached_and_pruned_from_the_root() {
    let tree = TempTree::new(&long_comb(700)).unwrap();
    let filter = Filter {
        include: Vec::new(),
        exclude: vec![Pattern::new(b"*pruned/*")],
    };
    let expected = Snapshot::take(tree.path()).unwrap();
    let inside = expected
        .entries()
        .filter(|(path, _)| path.ends_with(b"/inside"));
    assert_eq!(inside.count(), 700);
    for links in [Links::Refuse, Links::Follow] {
        let found = Recorder::filtered(filter.clone()).walk(tree.path(), &options(2, links));
        assert_eq!(found.failed(), []);
        let seen: Vec<&[u8]> = found.entries.keys().map(Vec::as_slice).collect();
        let expected: Vec<&[u8]> = expected
            .entries()
            .map(|(path, _)| path)
            .filter(|path| !path.ends_with(b"/inside"))
            .collect();
        assert_eq!(seen.len(), expected.len());
        assert!(seen == expected);
    }
}

/// What is walked under a limit: parents that want to stay open, and beside each a directory that is split.
fn many_large(levels: usize) -> Tree {
    let mut tree = comb(levels);
    for level in 0..40 {
        for number in 0..300 {
            let path = format!("{}large/{number}", "d/".repeat(level));
            tree.insert(path, file(b""));
        }
    }
    tree
}

/// Returns the tree, if this is a process of [`passes_under_limit`].
pub(crate) fn tree_under_limit() -> Option<PathBuf> {
    std::env::var_os(UNDER_LIMIT).map(PathBuf::from)
}

/// Runs one of these tests in a process that may have so many files open.
pub(crate) fn passes_under_limit(limit: usize, test: &str, tree: &Path) {
    let output = Command::new("sh")
        .args([
            "-c",
            r#"ulimit -n "$2" && exec "$0" --exact "$1" --nocapture"#,
        ])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .arg(limit.to_string())
        .env(UNDER_LIMIT, tree)
        // Directories are entered by inode number: in memory that is the order in which they were made, so calls can be
        // counted. On a disk that others write to as well it is any.
        .env("TMPDIR", "/dev/shm")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{limit}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_limit_of_64_or_256_open_files_is_kept() {
    if let Some(root) = tree_under_limit() {
        for jobs in [1, 2, 64, 1024] {
            let found = Recorder::default().walk(&root, &options(jobs, Links::Refuse));
            assert_eq!(found.failed(), []);
            assert_eq!(found.entries.len(), 600 * 4 + 1 + 40 * 301);
        }
        return;
    }
    let tree = TempTree::new(&many_large(600)).unwrap();
    for limit in [64, 256] {
        let test = "limits::a_limit_of_64_or_256_open_files_is_kept";
        passes_under_limit(limit, test, tree.path());
    }
}
