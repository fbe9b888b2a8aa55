//! Removing trees: what goes, what stays, and what is said of it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use stook_pool::Jobs;
use stook_testkit::{
    Compare, Snapshot, TempDir, TempTree, Tree, dir, fifo, file, tree, without_privileges,
};
use stook_tree::{
    Filter, Guard, Pattern, RemoveObserver, RemoveOptions, Removed, TreeError, remove,
};

/// Records every call.
#[derive(Default)]
struct Recorded {
    failures: Mutex<Vec<(PathBuf, String)>>,
    would_remove: Mutex<Vec<PathBuf>>,
    missing: AtomicUsize,
    removed: AtomicU64,
    /// Entries after which the removal is to stop.
    stop_after: Option<u64>,
}

impl stook_pool::Observer for Recorded {
    type Failure = TreeError;

    fn advanced(&self, entries: u64, _bytes: u64) {
        self.removed.fetch_add(entries, Ordering::Relaxed);
    }

    fn failed(&self, error: &TreeError) {
        let recorded = (path_of(&error.path), stook_sys::cause(&error.source));
        self.failures.lock().unwrap().push(recorded);
    }

    fn is_interrupted(&self) -> bool {
        self.stop_after
            .is_some_and(|most| self.removed.load(Ordering::Relaxed) >= most)
    }
}

impl RemoveObserver for Recorded {
    fn would_remove(&self, path: &[u8]) {
        self.would_remove.lock().unwrap().push(path_of(path));
    }

    fn missing(&self, _path: &[u8]) {
        self.missing.fetch_add(1, Ordering::Relaxed);
    }
}

impl Recorded {
    fn failures(self) -> Vec<(PathBuf, String)> {
        let mut failures = self.failures.into_inner().unwrap();
        failures.sort();
        failures
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

fn options() -> RemoveOptions {
    RemoveOptions {
        jobs: Jobs::Fixed(3),
        ..RemoveOptions::default()
    }
}

fn run(path: &Path, options: &RemoveOptions, recorded: &Recorded) -> Removed {
    let guard = Guard::new(true, true).unwrap();
    remove(&[guard.admit(path).unwrap()], options, None, recorded)
}

fn removed_with(path: &Path, filter: &Filter) -> Removed {
    let guard = Guard::new(true, true).unwrap();
    let trees = [guard.admit(path).unwrap()];
    remove(&trees, &options(), Some(filter), &Recorded::default())
}

/// Removes without a failure.
fn removed(path: &Path, options: &RemoveOptions) -> Removed {
    let recorded = Recorded::default();
    let removed = run(path, options, &recorded);
    assert_eq!(removed.entries, recorded.removed.load(Ordering::Relaxed));
    assert_eq!(recorded.failures(), []);
    removed
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts
        .iter()
        .map(|text| Pattern::new(text.as_bytes()))
        .collect()
}

/// Entries below a directory, and directories among them.
fn counts(root: &Path) -> (u64, u64) {
    let snapshot = Snapshot::take(root).unwrap();
    let directories = snapshot
        .entries()
        .filter(|(_, facts)| facts.kind == stook_testkit::Kind::Directory)
        .count();
    (snapshot.len() as u64, directories as u64)
}

#[test]
fn everything_goes_and_is_counted_whatever_the_number_of_workers() {
    for jobs in [1, 2, 7, 64] {
        let place = TempDir::new().unwrap();
        let tree = place.path().join("tree");
        fs::create_dir(&tree).unwrap();
        Tree::torture().write(&tree).unwrap();
        let (entries, directories) = counts(&tree);
        let options = RemoveOptions {
            jobs: Jobs::Fixed(jobs),
            ..options()
        };
        let expected = Removed {
            entries: entries + 1,
            directories: directories + 1,
        };
        assert_eq!(removed(&tree, &options), expected, "{jobs} jobs");
        assert!(!tree.exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

#[test]
fn links_go_and_what_they_lead_to_stays() {
    let outside = TempTree::new(&Tree::basic()).unwrap();
    let before = Snapshot::take(outside.path()).unwrap();
    let place = TempDir::new().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    symlink(outside.path(), tree.join("to-outside")).unwrap();
    symlink(outside.path().join("none"), tree.join("dangling")).unwrap();
    removed(&tree, &options());
    let link = place.path().join("link");
    symlink(outside.path(), &link).unwrap();
    let expected = Removed {
        entries: 1,
        directories: 0,
    };
    assert_eq!(removed(&link, &options()), expected);
    assert!(fs::symlink_metadata(&link).is_err());
    let after = Snapshot::take(outside.path()).unwrap();
    assert_eq!(
        before.difference(&after, &Compare::everything()),
        [""; 0],
        "outside is as it was"
    );
}

#[test]
fn trees_may_be_files_and_may_be_missing() {
    let place = TempDir::new().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::write(path("file"), "x").unwrap();
    fs::create_dir(path("directory")).unwrap();
    let guard = Guard::new(true, true).unwrap();
    let names = ["file", "missing", "directory", "missing/below"];
    let trees = names.map(|name| guard.admit(&path(name)).unwrap());
    let recorded = Recorded::default();
    let expected = Removed {
        entries: 2,
        directories: 1,
    };
    assert_eq!(remove(&trees, &options(), None, &recorded), expected);
    assert_eq!(recorded.missing.load(Ordering::Relaxed), 2);
    assert_eq!(recorded.failures(), []);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_tree_deeper_than_directories_may_be_open_and_paths_be_long() {
    let place = TempDir::new().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let mut levels = Tree::new();
    let mut path = Vec::new();
    for _ in 0..3000 {
        levels.insert([&path, &b"file"[..]].concat(), fifo());
        levels.insert([&path, &b"side/"[..]].concat(), dir());
        path.extend_from_slice(b"one-level-down/");
    }
    levels.write(&tree).unwrap();
    let expected = Removed {
        entries: 1 + 2999 + 2 * 3000,
        directories: 1 + 2999 + 3000,
    };
    assert_eq!(removed(&tree, &options()), expected);
    assert!(!tree.exists());
}

#[test]
fn a_dry_run_tells_all_and_removes_nothing() {
    let place = TempDir::new().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    Tree::torture().write(&tree).unwrap();
    let before = Snapshot::take(&tree).unwrap();
    let options = RemoveOptions {
        is_dry_run: true,
        ..options()
    };
    let recorded = Recorded::default();
    let would = run(&tree, &options, &recorded);
    assert_eq!(would.entries, before.len() as u64 + 1);
    let named: BTreeSet<PathBuf> = recorded
        .would_remove
        .into_inner()
        .unwrap()
        .into_iter()
        .collect();
    let mut expected: BTreeSet<PathBuf> = before
        .entries()
        .map(|(path, _)| tree.join(path_of(path)))
        .collect();
    expected.insert(tree.clone());
    assert_eq!(named, expected);
    let after = Snapshot::take(&tree).unwrap();
    assert_eq!(before.difference(&after, &Compare::everything()), [""; 0]);
}

#[test]
fn patterns_choose_and_a_directory_with_something_in_it_stays() {
    let place = TempDir::new().unwrap();
    let tree = place.path().join("tree");
    let names = ["a/x.o", "a/x.c", "b/y.o", "b/deep/z.o", "c/", "keep/w.o"];
    let write = || {
        let mut all = Tree::new();
        for name in names {
            all.insert(
                name,
                if name.ends_with('/') {
                    dir()
                } else {
                    file(b"1")
                },
            );
        }
        fs::create_dir(&tree).unwrap();
        all.write(&tree).unwrap();
    };
    let left = || {
        let mut left: Vec<String> = Snapshot::take(&tree)
            .unwrap()
            .entries()
            .map(|(path, _)| String::from_utf8_lossy(path).into_owned())
            .collect();
        left.sort();
        left
    };
    let removed_of = |include: &[&str], exclude: &[&str]| {
        let filter = Filter {
            include: patterns(include),
            exclude: patterns(exclude),
        };
        removed_with(&tree, &filter).entries
    };
    write();
    assert_eq!(removed_of(&["*.o"], &["keep/*"]), 3);
    assert_eq!(
        left(),
        ["a", "a/x.c", "b", "b/deep", "c", "keep", "keep/w.o"]
    );
    removed_of(&[], &["keep/*"]);
    assert_eq!(left(), ["keep", "keep/w.o"]);
    removed(&tree, &options());
    assert!(!tree.exists());
}

#[test]
fn patterns_match_a_tree_that_is_no_directory_by_its_name() {
    let place = TempDir::new().unwrap();
    let path = |name: &str| place.path().join(name);
    for name in ["a.keep", "a.o"] {
        fs::write(path(name), "x").unwrap();
    }
    let filter = Filter {
        include: Vec::new(),
        exclude: patterns(&["*.keep"]),
    };
    assert_eq!(removed_with(&path("a.keep"), &filter).entries, 0);
    assert_eq!(removed_with(&path("a.o"), &filter).entries, 1);
    let kept = RemoveOptions {
        keep_root: true,
        ..options()
    };
    let recorded = Recorded::default();
    run(&path("a.keep"), &kept, &recorded);
    assert_eq!(recorded.failures().len(), 1);
    assert!(path("a.keep").exists());
}

#[test]
fn directories_above_need_not_be_readable() {
    let place = TempDir::new().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let outcome = without_privileges(|| {
        let home = place.path().join("home");
        fs::create_dir_all(home.join("tree/d")).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o311)).unwrap();
        removed(&home.join("tree"), &options());
        fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    });
    if let Err(error) = outcome {
        stook_testkit::skip!("the user cannot be changed here: {error}");
    }
}

#[test]
fn the_root_may_be_kept() {
    let tree = TempTree::new(&Tree::basic()).unwrap();
    let options = RemoveOptions {
        keep_root: true,
        ..options()
    };
    let (entries, directories) = counts(tree.path());
    let expected = Removed {
        entries,
        directories,
    };
    assert_eq!(removed(tree.path(), &options), expected);
    assert_eq!(fs::read_dir(tree.path()).unwrap().count(), 0);
}

#[test]
fn names_as_long_as_they_can_be_and_of_any_bytes_go() {
    let mut tree = Tree::odd_names();
    tree.insert([b'n'; 255], file(b"1"));
    tree.insert([&[b'd'; 255][..], b"/", &[0xff; 255]].concat(), file(b"1"));
    let place = TempDir::new().unwrap();
    let root = place.path().join("tree");
    fs::create_dir(&root).unwrap();
    tree.write(&root).unwrap();
    removed(&root, &options());
    assert!(!root.exists());
}

#[test]
fn what_may_not_be_removed_is_named_and_the_rest_goes() {
    let place = TempDir::new().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let tree = place.path().join("tree");
    let outcome = without_privileges(|| {
        let mut all = Tree::new();
        all.insert("closed/inside", file(b"1"));
        all.insert("read-only/a", file(b"1"));
        all.insert("read-only/b", file(b"1"));
        all.insert("empty-and-closed/", dir());
        all.insert("open/file", file(b"1"));
        fs::create_dir(&tree).unwrap();
        all.write(&tree).unwrap();
        let set = |name: &str, mode| {
            fs::set_permissions(tree.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        set("closed", 0o000);
        set("empty-and-closed", 0o000);
        set("read-only", 0o555);
        let recorded = Recorded::default();
        run(&tree, &options(), &recorded);
        let failures = recorded.failures();
        let paths: Vec<_> = failures.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(
            paths,
            ["closed", "read-only/a", "read-only/b"].map(|name| tree.join(name))
        );
        assert!(failures.iter().all(|(_, why)| why == "permission denied"));
        let left: BTreeSet<_> = fs::read_dir(&tree)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["closed", "read-only"].map(Into::into).into());
        let forced = RemoveOptions {
            force_chmod: true,
            ..options()
        };
        assert_eq!(removed(&tree, &forced).entries, 6);
        assert!(!tree.exists());
    });
    if let Err(error) = outcome {
        stook_testkit::skip!("the user cannot be changed here: {error}");
    }
}

#[test]
fn a_directory_of_directories_is_given_permissions_too_but_not_what_holds_the_tree() {
    let place = TempDir::new().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let holder = place.path().join("holder");
    let outcome = without_privileges(|| {
        fs::create_dir_all(holder.join("tree/of/empty")).unwrap();
        fs::create_dir_all(holder.join("tree/of/directories")).unwrap();
        fs::write(holder.join("file"), "1").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&holder.join("tree/of"), 0o555);
        set(&holder, 0o555);
        let forced = RemoveOptions {
            force_chmod: true,
            ..options()
        };
        for (name, gone) in [("tree", 3), ("file", 0)] {
            let recorded = Recorded::default();
            assert_eq!(run(&holder.join(name), &forced, &recorded).entries, gone);
            let denied = (holder.join(name), "permission denied".to_owned());
            assert_eq!(recorded.failures(), [denied]);
        }
        let mode = fs::metadata(&holder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o555);
        set(&holder, 0o755);
    });
    if let Err(error) = outcome {
        stook_testkit::skip!("the user cannot be changed here: {error}");
    }
}

#[test]
fn two_that_give_permissions_at_once_both_end_well() {
    let place = TempDir::new().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let outcome = without_privileges(|| {
        let tree = place.path().join("tree");
        let forced = RemoveOptions {
            force_chmod: true,
            ..options()
        };
        for _ in 0..50 {
            for number in 0..30 {
                let closed = tree.join(format!("{number}/closed"));
                fs::create_dir_all(closed.join("empty")).unwrap();
                fs::write(closed.join("file"), "1").unwrap();
                fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
            }
            let (recorded, other) = (Recorded::default(), Recorded::default());
            std::thread::scope(|scope| {
                scope.spawn(|| run(&tree, &forced, &other));
                run(&tree, &forced, &recorded);
            });
            assert_eq!((recorded.failures(), other.failures()), (vec![], vec![]));
            assert!(!tree.exists());
        }
    });
    if let Err(error) = outcome {
        stook_testkit::skip!("the user cannot be changed here: {error}");
    }
}

#[test]
fn an_immutable_file_is_named_with_what_the_system_said() {
    let place = TempDir::new().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "x").unwrap();
    fs::write(tree.join("other"), "x").unwrap();
    let chattr = |flag: &str| {
        let set = Command::new("chattr")
            .arg(flag)
            .arg(tree.join("file"))
            .output();
        set.is_ok_and(|output| output.status.success())
    };
    if !chattr("+i") {
        stook_testkit::skip!("files cannot be made immutable here");
        return;
    }
    let recorded = Recorded::default();
    let gone = run(&tree, &options(), &recorded);
    assert!(chattr("-i"));
    assert_eq!(gone.entries, 1);
    let failures = recorded.failures();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].0, tree.join("file"));
    assert_eq!(failures[0].1, "operation not permitted");
    removed(&tree, &options());
}

#[test]
fn a_slash_at_the_end_names_a_directory() {
    let tree = tree! { "file" => file(b"x"), "d/in" => file(b"y") };
    let tree = TempTree::new(&tree).unwrap();
    symlink("d", tree.path().join("link")).unwrap();
    let guard = Guard::new(true, true).unwrap();
    for name in ["file/", "link/", "link//"] {
        let error = guard.admit(&tree.path().join(name)).unwrap_err();
        let expected = format!(
            "cannot remove `{}`: not a directory",
            tree.path().join(name).display()
        );
        assert_eq!(error.to_string(), expected);
    }
    assert!(guard.admit(&tree.path().join("missing/")).is_ok());
    assert_eq!(removed(&tree.path().join("d/"), &options()).entries, 2);
}

#[test]
fn a_dry_run_names_the_mount_points_that_a_removal_would_leave() {
    let place = TempDir::new().unwrap();
    let tree = place.path().join("tree");
    for name in ["d/mounted", "other"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    for name in ["d/file", "file", "d/other"] {
        fs::write(tree.join(name), "x").unwrap();
    }
    let points = ["d/file", "d/mounted"].map(|name| tree.join(name));
    let mount = |program: &str, arguments: &[&Path]| {
        let run = Command::new(program).args(arguments).output();
        run.is_ok_and(|output| output.status.success())
    };
    let bind = |from: &str, to: &Path| mount("mount", &[Path::new("--bind"), &tree.join(from), to]);
    if !bind("file", &points[0]) || !bind("other", &points[1]) {
        stook_testkit::skip!("nothing can be mounted here");
        return;
    }
    let all = |is_dry_run| {
        let recorded = Recorded::default();
        let options = RemoveOptions {
            one_file_system: false,
            is_dry_run,
            ..options()
        };
        let removed = run(&tree, &options, &recorded);
        (removed, recorded.failures())
    };
    let (dry, real) = (all(true), all(false));
    for point in &points {
        assert!(mount("umount", &[point]));
    }
    let named: Vec<&PathBuf> = real.1.iter().map(|(path, _)| path).collect();
    assert_eq!(named, points.iter().collect::<Vec<_>>());
    assert_eq!(dry, real);
    removed(&tree, &options());
}

#[test]
fn what_is_mounted_below_stays_unless_wanted() {
    let place = TempDir::new().unwrap();
    let (tree, other) = (place.path().join("tree"), place.path().join("other"));
    let mounted = tree.join("d/mounted");
    fs::create_dir_all(&mounted).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("precious"), "x").unwrap();
    fs::write(tree.join("d/file"), "x").unwrap();
    let mount = |program: &str, arguments: &[&Path]| {
        let run = Command::new(program).args(arguments).output();
        run.is_ok_and(|output| output.status.success())
    };
    if !mount("mount", &[Path::new("--bind"), &other, &mounted]) {
        stook_testkit::skip!("nothing can be mounted here");
        return;
    }
    let recorded = Recorded::default();
    run(&tree, &options(), &recorded);
    let failures = recorded.failures();
    let refused = Guard::new(true, true).unwrap().admit(&mounted);
    let still_there = other.join("precious").exists();
    let all = RemoveOptions {
        one_file_system: false,
        ..options()
    };
    let recorded_all = Recorded::default();
    run(&tree, &all, &recorded_all);
    assert!(mount("umount", &[&mounted]));
    assert_eq!(
        failures,
        [(
            mounted.clone(),
            "something else is mounted there".to_owned()
        )]
    );
    assert!(still_there);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("something is mounted there")
    );
    assert!(!other.join("precious").exists());
    let failures = recorded_all.failures();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].0, mounted);
    assert_eq!(failures[0].1, "device or resource busy");
    removed(&tree, &options());
}

#[test]
fn protected_places_are_refused_in_words() {
    let guard = Guard::new(true, true).unwrap();
    let why = |path: &str| guard.admit(Path::new(path)).unwrap_err().to_string();
    assert!(why("/").contains("it is the root"));
    assert!(why("//").contains("it is the root"));
    for name in [".", "..", "../", "src/.", "src/.."] {
        assert!(why(name).contains("its name is `.` or `..`"), "{name}");
    }
    let working = std::env::current_dir().unwrap();
    for above in working
        .ancestors()
        .take_while(|path| path.parent().is_some())
    {
        let recorded = why(above.to_str().unwrap());
        assert!(recorded.contains("working directory"), "{recorded}");
    }
    assert!(why("/proc").contains("something is mounted there"));
    assert!(why("").contains("it has no name"));
    let free = Guard::new(false, false).unwrap();
    assert!(free.admit(Path::new("/proc")).is_ok());
    assert!(free.admit(&working).is_ok());
}

#[test]
fn two_at_once_both_end_well() {
    for _ in 0..20 {
        let place = TempDir::new().unwrap();
        let tree = place.path().join("tree");
        fs::create_dir(&tree).unwrap();
        Tree::random(7, 300).write(&tree).unwrap();
        let (recorded, other) = (Recorded::default(), Recorded::default());
        let both = std::thread::scope(|scope| {
            let second = scope.spawn(|| run(&tree, &options(), &other));
            let first = run(&tree, &options(), &recorded);
            first.entries + second.join().unwrap().entries
        });
        assert!(both > 0);
        assert_eq!((recorded.failures(), other.failures()), (vec![], vec![]));
        assert!(!tree.exists());
    }
}

#[test]
fn a_tree_that_is_written_to_all_the_time_ends_with_a_word_about_it() {
    let place = TempDir::new().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir_all(tree.join("busy")).unwrap();
    let is_over = AtomicBool::new(false);
    let failures = std::thread::scope(|scope| {
        for writer in 0..2 {
            let (tree, is_over) = (&tree, &is_over);
            scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let _ = fs::create_dir_all(tree.join("busy"));
                    let _ = fs::write(tree.join(format!("busy/{writer}-{number}")), "x");
                    number += 1;
                }
            });
        }
        let mut failures = Vec::new();
        // Each ends; whether it came to an empty directory in between is up to the writers.
        for _ in 0..20 {
            let recorded = Recorded::default();
            run(&tree, &options(), &recorded);
            failures.extend(recorded.failures());
        }
        is_over.store(true, Ordering::Relaxed);
        failures
    });
    for (_, why) in &failures {
        assert!(
            why.contains("another process") || why.contains("not a directory"),
            "{why}"
        );
    }
    removed(&tree, &options());
}

/// A directory of the tree is exchanged for a link to precious data, and back, while it is removed.
#[test]
fn a_directory_swapped_for_a_link_leads_nowhere_outside() {
    let rounds = std::env::var("STOOK_SWAP_ROUNDS").map_or(300, |text| text.parse().unwrap());
    let outside = TempTree::new(&Tree::basic()).unwrap();
    let before = Snapshot::take(outside.path()).unwrap();
    let place = TempDir::new().unwrap();
    let (tree, aside) = (place.path().join("tree"), place.path().join("aside"));
    let swaps = AtomicUsize::new(0);
    for round in 0..rounds {
        fs::create_dir(&tree).unwrap();
        for name in ["a", "b", "c"] {
            fs::create_dir_all(tree.join(name).join("d/e")).unwrap();
            for number in 0..8 {
                fs::write(tree.join(name).join(format!("d/file-{number}")), "x").unwrap();
            }
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let swapper = scope.spawn(|| {
                let inner = tree.join("b/d");
                while !is_over.load(Ordering::Relaxed) {
                    if fs::rename(&inner, &aside).is_ok() {
                        if symlink(outside.path(), &inner).is_ok() {
                            swaps.fetch_add(1, Ordering::Relaxed);
                        }
                        let _ = fs::remove_file(&inner);
                        let _ = fs::rename(&aside, &inner);
                    }
                }
            });
            let jobs = [1, 2, 5][round % 3];
            let options = RemoveOptions {
                jobs: Jobs::Fixed(jobs),
                force_chmod: round % 2 == 0,
                ..options()
            };
            run(&tree, &options, &Recorded::default());
            is_over.store(true, Ordering::Relaxed);
            swapper.join().unwrap();
        });
        let after = Snapshot::take(outside.path()).unwrap();
        assert_eq!(before.difference(&after, &Compare::everything()), [""; 0]);
        for left in [&tree, &aside] {
            if fs::symlink_metadata(left).is_ok() {
                removed(left, &options());
            }
        }
    }
    assert!(swaps.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_removal_that_is_told_to_stop_stops_and_leaves_no_holes_in_its_account() {
    let place = TempDir::new().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    Tree::wide(5000).write(&tree).unwrap();
    let all = counts(&tree).0 + 1;
    let recorded = Recorded {
        stop_after: Some(1000),
        ..Recorded::default()
    };
    let gone = run(&tree, &options(), &recorded).entries;
    assert!((1000..all).contains(&gone), "{gone} of {all}");
    assert_eq!(recorded.failures(), []);
    assert_eq!(counts(&tree).0 + 1, all - gone);
    removed(&tree, &options());
}
