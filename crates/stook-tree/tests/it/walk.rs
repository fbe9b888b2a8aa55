//! Walks of sound trees: every name once, with the right facts, whatever the shape and the number of threads.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use stook_sys::Links;
use stook_testkit::{Snapshot, TempTree, Tree, supports_xattrs, tree};
use stook_tree::{Filter, Pattern};

use crate::recorder::{Found, Recorder, kind_of, options};

fn torture() -> TempTree {
    let tree = Tree::torture();
    let tree = if supports_xattrs(&std::env::temp_dir()) {
        tree
    } else {
        tree.without_xattrs()
    };
    TempTree::new(&tree).unwrap()
}

fn walk(root: &Path, jobs: usize) -> Found {
    Recorder::default().walk(root, &options(jobs, Links::Refuse))
}

#[test]
fn every_entry_of_the_torture_tree_comes_with_its_facts() {
    let tree = torture();
    let found = walk(tree.path(), 2);
    let expected = Snapshot::take(tree.path()).unwrap();
    assert_eq!(found.failed(), []);
    let names: Vec<&[u8]> = found.entries.keys().map(Vec::as_slice).collect();
    let expected_names: Vec<&[u8]> = expected.entries().map(|(path, _)| path).collect();
    assert_eq!(names, expected_names);
    for (path, facts) in expected.entries() {
        let metadata = &found.entries[path];
        let path = path.escape_ascii();
        assert_eq!(kind_of(metadata), facts.kind, "{path}");
        assert_eq!(metadata.mode, facts.mode, "{path}");
        assert_eq!((metadata.uid, metadata.gid), facts.owner, "{path}");
        let mtime = i128::from(metadata.mtime.seconds) * 1_000_000_000
            + i128::from(metadata.mtime.nanoseconds);
        assert_eq!(mtime, facts.mtime_ns, "{path}");
        if kind_of(metadata) == stook_testkit::Kind::File {
            assert_eq!(metadata.size, facts.size, "{path}");
        }
        if let Some(device) = facts.device {
            assert_eq!(metadata.device, device, "{path}");
        }
    }
}

#[test]
fn find_prints_the_same_names_kinds_sizes_and_links() {
    let tree = torture();
    let printed = Command::new("find")
        .arg(tree.path())
        .args(["-mindepth", "1", "-printf", r"%y %s %n %i %P\0"])
        .output();
    let printed = match printed {
        Ok(output) if output.status.success() => output.stdout,
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{error}"),
        _ => {
            stook_testkit::skip!("there is no find with -printf");
            return;
        }
    };
    let mut expected = BTreeMap::new();
    for line in printed
        .split(|&byte| byte == 0)
        .filter(|line| !line.is_empty())
    {
        let fields: Vec<&[u8]> = line.splitn(5, |&byte| byte == b' ').collect();
        expected.insert(fields[4].to_vec(), fields[..4].join(&b' '));
    }
    let found = walk(tree.path(), 2);
    let seen: BTreeMap<Vec<u8>, Vec<u8>> = found
        .entries
        .iter()
        .map(|(path, metadata)| {
            let letter = match kind_of(metadata) {
                stook_testkit::Kind::File => 'f',
                stook_testkit::Kind::Directory => 'd',
                stook_testkit::Kind::Symlink => 'l',
                stook_testkit::Kind::Fifo => 'p',
                stook_testkit::Kind::Socket => 's',
                stook_testkit::Kind::CharacterDevice => 'c',
                stook_testkit::Kind::BlockDevice => 'b',
                _ => '?',
            };
            let line = format!(
                "{letter} {} {} {}",
                metadata.size, metadata.links, metadata.inode
            );
            (path.clone(), line.into_bytes())
        })
        .collect();
    assert!(expected.len() > 500);
    for (path, line) in &expected {
        assert_eq!(seen.get(path), Some(line), "{}", path.escape_ascii());
    }
    assert_eq!(seen.len(), expected.len());
}

#[test]
fn one_two_and_seven_threads_find_the_same() {
    let torture = torture();
    let random = TempTree::new(&Tree::random(11, 3000)).unwrap();
    for tree in [&torture, &random] {
        let one = walk(tree.path(), 1);
        for jobs in [2, 7] {
            let many = walk(tree.path(), jobs);
            assert_eq!(many.entries, one.entries);
            assert_eq!(many.listings, one.listings);
            assert_eq!(many.to_directories, one.to_directories);
            assert_eq!(many.failures, []);
        }
    }
}

#[test]
fn names_in_a_listing_are_sorted_as_bytes() {
    let tree = torture();
    let found = walk(tree.path(), 2);
    assert!(found.listings.len() > 100);
    for (path, (names, _)) in &found.listings {
        assert!(names.is_sorted_by(|a, b| a < b), "{}", path.escape_ascii());
    }
    let (odd, _) = &found.listings[&b"odd-names"[..]];
    assert!(odd.contains(&b"\xff".to_vec()) && odd.contains(&b"\n".to_vec()));
}

#[test]
fn five_thousand_levels_are_walked_to_the_bottom() {
    let tree = TempTree::new(&Tree::deep(5000)).unwrap();
    for jobs in [1, 2] {
        let found = walk(tree.path(), jobs);
        assert_eq!(found.failed(), []);
        assert_eq!(found.listings.len(), 5001);
        let bottom = [b"d/".repeat(5000).as_slice(), b"bottom"].concat();
        assert_eq!(found.entries[&bottom].size, 6);
        assert_eq!(found.entries.len(), 5002);
    }
}

#[test]
fn twenty_thousand_files_in_one_directory_are_all_found() {
    let tree = TempTree::new(&Tree::wide(20_000)).unwrap();
    let found = walk(tree.path(), 2);
    let (names, is_empty) = &found.listings[&b"wide"[..]];
    assert_eq!(names.len(), 20_000);
    assert_eq!(names[0], b"f0000000");
    assert_eq!(names[19_999], b"f0019999");
    assert!(!is_empty);
    assert_eq!(found.entries[&b"wide/f0012345"[..]].size, 17);
}

#[test]
fn links_that_are_not_followed_tell_whether_they_lead_to_a_directory() {
    let tree = TempTree::new(&Tree::links()).unwrap();
    let found = walk(tree.path(), 2);
    assert_eq!(found.failed(), []);
    let expected = [&b"only-links/link"[..], b"to-dir", b"to-dir-slash"];
    assert_eq!(found.to_directories, expected);
    assert!(!found.entries.contains_key(&b"to-dir/inside"[..]));
}

#[test]
fn links_that_are_followed_bring_what_they_lead_to() {
    let tree = TempTree::new(&tree! {
        "file" => file(b"content"),
        "dir/inside" => file(b"inside"),
        "dir/below/deep" => file(b"deep"),
        "to-file" => symlink("file"),
        "to-dir" => symlink("dir"),
        "to-link" => symlink("to-dir"),
    })
    .unwrap();
    let outside = tree.beside("outside");
    tree! { "far" => file(b"far away") }
        .write(&outside)
        .unwrap();
    std::os::unix::fs::symlink(&outside, tree.path().join("out")).unwrap();
    let found = Recorder::default().walk(tree.path(), &options(2, Links::Follow));
    assert_eq!(found.failed(), []);
    let expected = [
        "dir",
        "dir/below",
        "dir/below/deep",
        "dir/inside",
        "file",
        "out",
        "out/far",
        "to-dir",
        "to-dir/below",
        "to-dir/below/deep",
        "to-dir/inside",
        "to-file",
        "to-link",
        "to-link/below",
        "to-link/below/deep",
        "to-link/inside",
    ];
    assert_eq!(found.paths(), expected);
    assert_eq!(found.to_directories, [[0_u8; 0]; 0]);
    assert_eq!(found.entries[&b"to-file"[..]].size, 7);
    assert_eq!(found.entries[&b"out/far"[..]].size, 8);
}

#[test]
fn only_a_directory_with_nothing_in_it_is_empty() {
    let tree = TempTree::new(&tree! {
        "empty/" => dir(),
        "holds-dir/empty/" => dir(),
        "holds-link/l" => symlink("gone"),
        "holds-excluded/x.o" => file(b""),
    })
    .unwrap();
    let found = walk(tree.path(), 1);
    let empty: Vec<&Vec<u8>> = found
        .listings
        .iter()
        .filter(|(_, (_, is_empty))| *is_empty)
        .map(|(path, _)| path)
        .collect();
    assert_eq!(empty, [&b"empty"[..], b"holds-dir/empty"]);
}

#[test]
fn an_empty_root_is_one_empty_listing() {
    let tree = TempTree::new(&Tree::new()).unwrap();
    let found = walk(tree.path(), 3);
    assert_eq!(found.listings.len(), 1);
    assert_eq!(found.listings[&b""[..]], (Vec::new(), true));
}

#[test]
fn the_left_out_directory_is_found_under_every_spelling() {
    let tree = TempTree::new(&tree! {
        "a" => file(b"a"),
        "within/archive/index.db" => file(b"db"),
        "within/archive/sub/000000.tar" => file(b"tar"),
        "link-to-archive" => symlink("within/archive"),
        "other/archive/kept" => file(b"a namesake"),
    })
    .unwrap();
    let root = tree.path();
    std::os::unix::fs::symlink(root, tree.beside("root-link")).unwrap();
    let spellings = [
        root.join("within/archive"),
        root.join("within/archive/"),
        root.join("./within/./archive"),
        root.join("other/../within/archive"),
        root.join("link-to-archive"),
        tree.beside("root-link").join("within/archive"),
        tree.beside("root-link").join("link-to-archive/sub/.."),
    ];
    for spelling in &spellings {
        for (jobs, links) in [(1, Links::Refuse), (2, Links::Refuse), (2, Links::Follow)] {
            let mut options = options(jobs, links);
            options.leave_out = vec![stook_sys::exists(spelling).unwrap().unwrap().identity()];
            let found = Recorder::default().walk(root, &options);
            assert_eq!(found.failed(), []);
            let mut expected = vec![
                "a",
                "link-to-archive",
                "other",
                "other/archive",
                "other/archive/kept",
                "within",
            ];
            if links == Links::Follow {
                expected.remove(1);
            }
            assert_eq!(found.paths(), expected, "{}", spelling.display());
            assert!(
                found.listings[&b"within"[..]].1,
                "but for what is left out it is empty"
            );
        }
    }
}

#[test]
fn a_root_that_is_left_out_gives_nothing() {
    let tree = TempTree::new(&Tree::basic()).unwrap();
    let mut options = options(2, Links::Refuse);
    options.leave_out = vec![stook_sys::exists(tree.path()).unwrap().unwrap().identity()];
    let found = Recorder::default().walk(tree.path(), &options);
    assert!(found.listings.is_empty() && found.failures.is_empty());
}

#[test]
fn pruned_directories_are_told_but_not_read() {
    let tree = TempTree::new(&tree! {
        "build/x.o" => file(b"o"),
        "build/deep/er/y.o" => file(b"o"),
        "run/log" => file(b"log"),
        "run/tmp/" => dir().mode(0o750),
        "run/tmp/t" => file(b"t"),
        "link" => symlink("build"),
    })
    .unwrap();
    let exclude = ["build/*", "run/tmp/*", "link/*"];
    let filter = Filter {
        include: Vec::new(),
        exclude: exclude.map(|text| Pattern::new(text.as_bytes())).into(),
    };
    for links in [Links::Refuse, Links::Follow] {
        let found = Recorder::filtered(filter.clone()).walk(tree.path(), &options(2, links));
        assert_eq!(found.failed(), []);
        assert_eq!(
            found.paths(),
            ["build", "link", "run", "run/log", "run/tmp"]
        );
        for pruned in ["build", "run/tmp"] {
            let listing = &found.listings[pruned.as_bytes()];
            assert_eq!(listing, &(Vec::new(), false), "{pruned}");
        }
        assert_eq!(found.entries[&b"run/tmp"[..]].mode, 0o750);
    }
}

#[test]
fn a_walk_that_is_told_to_stop_does() {
    let tree = TempTree::new(&Tree::deep(50)).unwrap();
    let found = Recorder::stopping_after(10).walk(tree.path(), &options(1, Links::Refuse));
    assert_eq!(found.listings.len(), 10);
}

#[test]
fn entries_can_be_dropped_from_a_listing_and_keep_their_names() {
    struct Keeper(std::sync::Mutex<Vec<Vec<u8>>>);
    impl stook_pool::Observer for Keeper {
        type Failure = stook_tree::TreeError;

        fn failed(&self, error: &stook_tree::TreeError) {
            panic!("{error:?}");
        }
    }

    impl stook_tree::Visitor for Keeper {
        fn directory(&self, mut listing: stook_tree::Listing) {
            listing.retain(|name, entry| name.starts_with(b"f") && entry.metadata().size > 10);
            let names = listing
                .entries
                .iter()
                .map(|entry| listing.name(entry).to_vec());
            self.0.lock().unwrap().extend(names);
        }
    }
    let tree = TempTree::new(&tree! {
        "f1" => file(b"more than ten bytes"),
        "a" => file(b"more than ten bytes"),
        "f2" => file(b"few"),
        OsStr::new("f3").as_bytes() => file(b"again more than ten"),
    })
    .unwrap();
    let keeper = Keeper(std::sync::Mutex::default());
    let root = stook_sys::Directory::open(tree.path()).unwrap();
    stook_tree::walk(&root, &options(1, Links::Refuse), &keeper);
    assert_eq!(keeper.0.into_inner().unwrap(), [b"f1", b"f3"]);
}
