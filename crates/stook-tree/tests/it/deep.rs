//! Chains of directories, far deeper than there are descriptors: each level takes as much as any other.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_pool::{Jobs, Observer};
use stook_sys::{Directory, Links, count_calls, counted_calls};
use stook_testkit::TempDir;
use stook_tree::{
    CopyObserver, CopyOptions, Guard, Listing, RemoveObserver, RemoveOptions, TreeError, Visitor,
    copy, remove, verify, walk,
};

use crate::limits::{passes_under_limit, tree_under_limit};
use crate::recorder::options;

/// Counts; calls an action after the first entry; and fails on nothing.
#[derive(Default)]
struct Counted<'a> {
    entries: AtomicU64,
    failures: Mutex<Vec<String>>,
    after_first: Option<&'a (dyn Fn() + Sync)>,
    longest_path: usize,
    paths: Mutex<Vec<Vec<u8>>>,
}

impl Observer for Counted<'_> {
    type Failure = TreeError;

    fn advanced(&self, entries: u64, _bytes: u64) {
        let before = self.entries.fetch_add(entries, Ordering::Relaxed);
        if before == 0
            && entries > 0
            && let Some(action) = self.after_first
        {
            action();
        }
    }

    fn failed(&self, error: &TreeError) {
        self.failures.lock().unwrap().push(error.to_string());
    }
}

impl CopyObserver for Counted<'_> {}

impl RemoveObserver for Counted<'_> {}

impl Visitor for Counted<'_> {
    fn longest_path(&self) -> usize {
        self.longest_path
    }

    fn directory(&self, listing: Listing) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.paths.lock().unwrap().push(listing.path);
    }
}

impl Counted<'_> {
    fn entries(&self) -> u64 {
        assert_eq!(self.failures.lock().unwrap().as_slice(), [""; 0]);
        self.entries.load(Ordering::Relaxed)
    }
}

const LONG_NAME: &[u8] = &[b'n'; 250];

/// Makes directories in one another, each with what `beside` makes in it; returns the last one.
fn chain(root: &Path, levels: usize, name: &[u8], beside: impl Fn(&Directory)) -> Directory {
    fs::create_dir(root).unwrap();
    let mut directory = Directory::open(root).unwrap();
    for _ in 0..levels {
        beside(&directory);
        directory.create_directory(name, 0o755).unwrap();
        directory = directory.open_beneath(name).unwrap();
    }
    directory
}

/// Nothing but the chain; or two directories that wait beside each level, the first with one more in it.
fn make(root: &Path, levels: usize, is_comb: bool) {
    chain(root, levels, LONG_NAME, |directory| {
        if is_comb {
            for name in [b"a", b"z"] {
                directory.create_directory(name, 0o755).unwrap();
            }
            let beside = directory.open_beneath(b"a").unwrap();
            beside.create_directory(b"inside", 0o755).unwrap();
        }
    });
}

fn walked(tree: &Path, jobs: usize) -> u64 {
    let counted = Counted::default();
    let root = Directory::open(tree).unwrap();
    walk(&root, &options(jobs, Links::Refuse), &counted);
    counted.entries()
}

fn removed(tree: &Path, jobs: usize) -> u64 {
    let tree = Guard::new(true, true).unwrap().admit(tree).unwrap();
    let options = RemoveOptions {
        jobs: Jobs::Fixed(jobs),
        ..RemoveOptions::default()
    };
    let counted = Counted::default();
    let removed = remove(&[tree], &options, None, &counted);
    assert_eq!(counted.entries(), removed.directories);
    removed.directories
}

/// Does everything that can be done with a tree of so many levels; returns the system calls of each operation.
fn calls(levels: usize, is_comb: bool, jobs: usize) -> [u64; 5] {
    let folder = TempDir::new().unwrap();
    let (tree, dest) = (folder.path().join("tree"), folder.path().join("copy"));
    make(&tree, levels, is_comb);
    let (observer, options) = (
        Counted::default(),
        CopyOptions {
            jobs: Jobs::Fixed(jobs),
            ..CopyOptions::default()
        },
    );
    let directories = levels as u64 * if is_comb { 4 } else { 1 } + 1;
    let operations: [&dyn Fn() -> u64; 5] = [
        &|| walked(&tree, jobs),
        &|| copy(&tree, &dest, &options, &observer).unwrap().directories,
        &|| {
            // It counts no directories.
            verify(&tree, &dest, &options, &observer).unwrap().entries + directories
        },
        &|| removed(&tree, jobs),
        &|| removed(&dest, jobs),
    ];
    let calls = operations.map(|operation| {
        let all = || counted_calls().iter().map(|call| call.calls).sum::<u64>();
        let before = all();
        assert_eq!(operation(), directories);
        all() - before
    });
    observer.entries();
    calls
}

#[test]
fn each_level_takes_as_many_calls_as_any_other() {
    if tree_under_limit().is_some() {
        count_calls();
        for is_comb in [false, true] {
            // The first levels are kept open, and take less.
            let sizes = if is_comb {
                [100, 200, 300]
            } else {
                [400, 500, 600]
            };
            let [first, second, third] = sizes.map(|levels| calls(levels, is_comb, 1));
            for operation in 0..first.len() {
                let before = second[operation] - first[operation];
                let after = third[operation] - second[operation];
                let text = format!("{before} and then {after} calls, {operation}, {is_comb}");
                assert!(after < before + before / 8, "{text}");
            }
        }
        return;
    }
    for limit in [20, 1024] {
        let test = "deep::each_level_takes_as_many_calls_as_any_other";
        passes_under_limit(limit, test, Path::new("made there"));
    }
}

#[test]
fn any_number_of_workers_gets_through_a_chain() {
    if tree_under_limit().is_some() {
        for jobs in [2, 64] {
            calls(200, true, jobs);
        }
        return;
    }
    let test = "deep::any_number_of_workers_gets_through_a_chain";
    passes_under_limit(20, test, Path::new("made there"));
}

#[test]
fn nothing_is_removed_where_a_directory_was_moved_meanwhile() {
    let folder = TempDir::new().unwrap();
    let (tree, outside) = (folder.path().join("tree"), folder.path().join("outside"));
    // The only thing that is no directory: it goes first, and then nothing has been left yet.
    let bottom = chain(&tree, 600, b"d", |_| ());
    bottom.create_file(b"file", 0o600).unwrap();
    let end = chain(&outside, 40, b"d", |_| ());
    drop((bottom, end));
    let below = |root: &Path, levels| root.join("d/".repeat(levels));
    // Just as deep there: a walk that trusts `..` goes on with directories of the right names.
    let move_away = || fs::rename(below(&tree, 430), below(&outside, 40).join("d")).unwrap();
    let counted = Counted {
        after_first: Some(&move_away),
        ..Counted::default()
    };
    let admitted = Guard::new(true, true).unwrap().admit(&tree).unwrap();
    let options = RemoveOptions {
        jobs: Jobs::Fixed(1),
        ..RemoveOptions::default()
    };
    remove(&[admitted], &options, None, &counted);
    assert!(below(&outside, 40).is_dir());
    assert!(!tree.exists());
}

#[test]
fn paths_are_cut_off_where_no_more_is_wanted_but_not_in_failures() {
    let folder = TempDir::new().unwrap();
    let tree = folder.path().join("tree");
    let bottom = chain(&tree, 300, b"dd", |_| ());
    bottom.create_directory(b"closed", 0o000).unwrap();
    let counted = Counted {
        longest_path: 100,
        ..Counted::default()
    };
    let root = Directory::open(&tree).unwrap();
    let walked = stook_testkit::without_privileges(|| {
        walk(&root, &options(2, Links::Refuse), &counted);
    });
    if let Err(error) = walked {
        return stook_testkit::skip!("the user cannot be changed here: {error}");
    }
    let whole = "dd/".repeat(300);
    let paths = counted.paths.into_inner().unwrap();
    assert_eq!(paths.len(), 301);
    for (depth, path) in paths.iter().enumerate() {
        let len = (3 * depth).saturating_sub(1);
        assert_eq!(path, &whole.as_bytes()[..len.min(100)]);
    }
    let failure = format!("cannot open `{whole}closed`: ");
    assert!(counted.failures.into_inner().unwrap()[0].starts_with(&failure));
}
