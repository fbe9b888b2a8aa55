//! What a visitor skips is not in the listing, and directories are walked all the same.

use stook_sys::{FileKind, Links};
use stook_testkit::{TempTree, Tree, file, symlink};
use stook_tree::{Detail, WalkOptions};

use crate::recorder::{Recorder, options};

/// Small directories, a large one, and links to a file and to a directory.
fn tree() -> TempTree {
    let mut tree = Tree::new();
    for number in 0..500 {
        let ending = if number % 5 == 0 { "keep" } else { "skip" };
        tree.insert(format!("large/{number}.{ending}"), file(b"1"));
    }
    tree.insert("large/d.skip/file.keep", file(b"1"));
    tree.insert("small/only.skip", file(b"1"));
    tree.insert("to-file.keep", symlink("small/only.skip"));
    tree.insert("to-directory.skip", symlink("small"));
    TempTree::new(&tree).unwrap()
}

fn skips(directory: &[u8], name: &[u8], kind: FileKind) -> bool {
    assert_ne!(kind, FileKind::Directory);
    assert!(
        [
            &b""[..],
            b"large",
            b"large/d.skip",
            b"small",
            b"to-directory.skip"
        ]
        .contains(&directory)
    );
    name.ends_with(b".skip") || kind == FileKind::Symlink
}

#[test]
fn entries_are_skipped_by_name_and_kind() {
    let tree = tree();
    for detail in [Detail::Kinds, Detail::Facts] {
        for jobs in [1, 7] {
            let options = WalkOptions {
                detail,
                ..options(jobs, Links::Refuse)
            };
            let found = Recorder::skipping(skips).walk(tree.path(), &options);
            assert_eq!(found.failed(), []);
            let paths = found.paths();
            let files = paths.iter().filter(|path| path.ends_with(".keep"));
            assert_eq!(files.count(), 101);
            let others: Vec<&String> = paths
                .iter()
                .filter(|path| !path.ends_with(".keep"))
                .collect();
            assert_eq!(others, ["large", "large/d.skip", "small"]);
            let (names, is_empty) = &found.listings[&b"small"[..]];
            assert!(names.is_empty() && !is_empty);
        }
    }
}

#[test]
fn a_link_that_is_followed_is_of_the_kind_that_it_leads_to() {
    let tree = tree();
    let found = Recorder::skipping(skips).walk(tree.path(), &options(2, Links::Follow));
    assert_eq!(found.failed(), []);
    assert_eq!(found.entries[&b"to-file.keep"[..]].kind, FileKind::File);
    assert!(found.listings.contains_key(&b"to-directory.skip"[..]));
}
