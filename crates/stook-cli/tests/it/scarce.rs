//! Little to work with: few descriptors, little memory, any number of workers.

use std::path::{Path, PathBuf};

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

/// A control group with little memory, removed in the end.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// None, with the reason printed, where there can be none.
    fn new(megabytes: u64) -> Option<Self> {
        let bytes = (megabytes << 20).to_string();
        let name = format!("stook-test-{}", std::process::id());
        let kinds = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        for (base, limit) in kinds {
            let group = Path::new(base).join(&name);
            if is_root() && std::fs::create_dir(&group).is_ok() {
                let group = Self(group);
                if std::fs::write(group.0.join(limit), &bytes).is_ok() {
                    return Some(group);
                }
            }
        }
        println!("skipped: no control group can be made here");
        None
    }
}

impl Drop for MemoryGroup {
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
    let Some(group) = MemoryGroup::new(60) else {
        return;
    };
    let limit = format!("echo $$ > {}/cgroup.procs", group.0.display());
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
