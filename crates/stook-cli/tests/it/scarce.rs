//! Little to work with: few descriptors, little memory, any number of workers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use stook_sys::is_root;
use stook_testkit::{Tree, file};

use crate::place::{Place, Ran};

/// Runs the program below a shell command that makes something scarce.
fn run_below(place: &Place, limit: &str, arguments: &[&str]) -> Ran {
    let script = format!("{limit} && exec \"$0\" \"$@\"");
    let program = env!("CARGO_BIN_EXE_stook");
    let arguments = [&["-c", &script, program][..], arguments].concat();
    Ran::of(
        place
            .command_of(Path::new("/bin/sh"), &arguments)
            .output()
            .unwrap(),
    )
}

fn succeeds_below(place: &Place, limit: &str, arguments: &[&str]) {
    let ran = run_below(place, limit, arguments);
    assert_eq!(
        ran.status,
        Some(0),
        "{limit}; {arguments:?}: {}",
        ran.stderr
    );
}

#[test]
fn more_workers_than_descriptors_come_down_to_what_can_be_opened() {
    let mut tree = Tree::torture().without_xattrs();
    for number in 0..500 {
        tree.insert(format!("many/d{}/f{number}", number % 37), file(b"content"));
    }
    let place = Place::with(&tree);
    for (number, descriptors) in [40, 64, 256].into_iter().enumerate() {
        let (archive, out) = (format!("arc{number}"), format!("out{number}"));
        // The hard limit, too: the program raises the other one.
        let limit = format!("ulimit -n {descriptors}");
        succeeds_below(
            &place,
            &limit,
            &["create", "src", &archive, "--jobs", "1024"],
        );
        succeeds_below(
            &place,
            &limit,
            &["update", "src", &archive, "--jobs", "1024"],
        );
        succeeds_below(&place, &limit, &["check", &archive, "--jobs", "1024"]);
        let devices = "--same-permissions";
        let extract = [
            "extract", &archive, "--into", &out, "--jobs", "1024", devices,
        ];
        succeeds_below(&place, &limit, &extract);
        let volume = |archive: &str| std::fs::read(place.path(archive).join("000000.tar")).unwrap();
        assert!(
            volume("arc0") == volume(&archive),
            "{descriptors} descriptors"
        );
    }
}

#[test]
fn too_few_descriptors_are_one_error_and_as_many_as_it_names_are_enough() {
    let mut tree = Tree::deep(60);
    tree.graft("wide", &Tree::wide(300));
    for number in 0..6 {
        tree.insert(format!("large{number}"), file(vec![number; 3 << 20]));
    }
    let place = Place::with(&tree);
    let commands: [(usize, &[&str]); 14] = [
        (32, &["create", "src", "arc", "--volume-size", "2MiB"]),
        (32, &["update", "src", "arc"]),
        (32, &["diff", "src", "arc"]),
        (32, &["check", "arc"]),
        (32, &["list", "arc"]),
        (32, &["cat", "arc", "large1"]),
        (32, &["extract", "arc", "--into", "out"]),
        (32, &["reindex", "arc"]),
        (20, &["walk", "src"]),
        (20, &["walk", "src", "--summary"]),
        (20, &["copy", "src", "b"]),
        (20, &["copy", "src", "b", "--update", "--verify"]),
        (32, &["remove", "out", "--archived-in", "arc"]),
        (20, &["remove", "out"]),
    ];
    for (needed, arguments) in commands {
        let workers: &[&str] = match arguments[0] {
            "list" | "cat" => &[],
            _ => &["--jobs", "1024"],
        };
        let arguments = [arguments, workers].concat();
        let ran = run_below(&place, "ulimit -n 8", &arguments);
        assert_eq!((ran.status, ran.text()), (Some(1), ""), "{arguments:?}");
        let expected = format!(
            "error: cannot work with 8 open files: {needed} are needed\n\
            hint: the limit is the one of `ulimit -Hn`; the administrator can raise it\n"
        );
        assert_eq!(ran.stderr, expected, "{arguments:?}");
        succeeds_below(&place, &format!("ulimit -n {needed}"), &arguments);
    }
    place.assert_same_tree("src", "b");
    assert!(!place.path("out").exists());
    // Nothing is opened for these.
    succeeds_below(&place, "ulimit -n 8", &["completions", "bash"]);
}

/// Each directory waits open for the one below it, and has entries beside it.
fn levels(count: usize) -> Tree {
    let mut tree = Tree::new();
    let path = "d/".repeat(count);
    for end in 1..=count {
        tree.insert(format!("{}f", &path[..2 * end]), file(b"1"));
        tree.insert(format!("{}side/g", &path[..2 * end]), file(b"2"));
    }
    tree
}

#[test]
fn deep_trees_are_removed_with_few_descriptors() {
    let place = Place::with(&levels(400));
    succeeds_below(&place, "ulimit -n 40", &["remove", "src", "--jobs", "3"]);
    assert!(!place.path("src").exists());
}

#[test]
fn deep_and_wide_trees_are_copied_with_few_descriptors() {
    let mut tree = levels(300);
    // Directories with so many entries are split over workers.
    tree.graft("wide", &Tree::wide(600));
    let place = Place::with(&tree);
    for jobs in ["1", "64"] {
        let copy = format!("copy{jobs}");
        let arguments = ["copy", "src", &copy, "--jobs", jobs];
        succeeds_below(&place, "ulimit -n 64", &arguments);
        place.assert_same_tree("src", &copy);
    }
}

/// A directory opened by its whole path takes as many steps as it is deep.
#[test]
fn deep_trees_are_archived_and_extracted_with_few_descriptors() {
    let place = Place::with(&levels(2_000));
    for arguments in [
        &["create", "src", "arc", "--jobs", "64"][..],
        &["check", "arc", "--jobs", "64"],
        &["extract", "arc", "--into", "out", "--jobs", "64"],
        &["diff", "out", "arc"],
        &["update", "src", "arc", "--jobs", "64"],
        &["extract", "arc", "--into", "out", "--jobs", "1"],
    ] {
        succeeds_below(&place, "ulimit -n 64", arguments);
    }
    place.assert_same_tree("src", "out");
}

#[test]
fn no_workers_at_all_are_refused_in_words() {
    let place = Place::with(&Tree::new());
    for arguments in [
        &["create", "src", "arc", "--jobs", "0"][..],
        &["extract", "arc", "--into", "out", "--jobs", "0"],
        &["check", "arc", "--jobs", "1025"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(2), "{arguments:?}");
        assert!(ran.stderr.contains("is not in 1..=1024"), "{}", ran.stderr);
    }
}

/// Where the limits of control groups are, before and since their second version.
const MEMORY: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    ("/sys/fs/cgroup", "memory.max"),
];
const THREADS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/pids", "pids.max"),
    ("/sys/fs/cgroup", "pids.max"),
];

/// A control group with a limit, removed in the end.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// None, with the reason printed, where there can be none.
    fn new(places: [(&str, &str); 2], limit: u64) -> Option<Self> {
        static GROUPS: AtomicU32 = AtomicU32::new(0);
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let name = format!("stook-test-{}-{number}", std::process::id());
        for (base, file) in places {
            let group = Path::new(base).join(&name);
            if is_root() && std::fs::create_dir(&group).is_ok() {
                let group = Self(group);
                if std::fs::write(group.0.join(file), limit.to_string()).is_ok() {
                    return Some(group);
                }
            }
        }
        stook_testkit::skip!("no control group can be made here");
        None
    }

    /// A shell command that moves the shell into the group.
    fn entered(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_control_group_smaller_than_the_buffers_is_enough() {
    let mut tree = Tree::new();
    for number in 0..40_u8 {
        tree.insert(format!("d/f{number}"), file(vec![number; 3 << 20]));
    }
    tree.insert("large", file(vec![7; 40 << 20]));
    let place = Place::with(&tree);
    let Some(group) = ControlGroup::new(MEMORY, 60 << 20) else {
        return;
    };
    let limit = group.entered();
    let volumes = ["--volume-size", "32MiB"];
    succeeds_below(
        &place,
        &limit,
        &[&["create", "src", "arc"][..], &volumes].concat(),
    );
    succeeds_below(&place, &limit, &["check", "arc", "--volumes"]);
    succeeds_below(
        &place,
        &limit,
        &["extract", "arc", "--into", "out", "--jobs", "64"],
    );
    place.assert_same_tree("src", "out");
}

#[test]
fn where_threads_are_few_the_work_is_done_with_those() {
    let mut tree = Tree::new();
    for number in 0..30_u8 {
        tree.insert(format!("d/f{number}"), file(vec![number; 300 << 10]));
    }
    let place = Place::with(&tree);
    for threads in [6, 12] {
        let Some(group) = ControlGroup::new(THREADS, threads) else {
            return;
        };
        let limit = group.entered();
        let (archive, out) = (format!("arc{threads}"), format!("out{threads}"));
        let jobs = ["--jobs", "64"];
        let volumes = ["--volume-size", "1MiB"];
        for arguments in [
            &["create", "src", &archive, volumes[0], volumes[1]][..],
            &["update", "src", &archive],
            &["check", &archive, "--volumes"],
            &["extract", &archive, "--into", &out],
        ] {
            succeeds_below(&place, &limit, &[arguments, &jobs].concat());
        }
        place.assert_same_tree("src", &out);
    }
}

#[test]
fn where_there_are_no_threads_it_says_so() {
    let place = Place::with(&Tree::torture().without_xattrs());
    let Some(group) = ControlGroup::new(THREADS, 1) else {
        return;
    };
    let ran = run_below(&place, &group.entered(), &["create", "src", "arc"]);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cannot begin a thread: "),
        "{}",
        ran.stderr
    );
    assert_eq!(place.run(&["create", "src", "arc"]).status, Some(0));
}
