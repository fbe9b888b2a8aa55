//! What a command costs that has next to nothing to do: threads, locks of the index, files of the kernel, syncs.
//!
//! Counted with `strace`: times say nothing on a machine that does other things as well.

use std::path::Path;

use stook_testkit::tree;

use crate::place::{Place, Ran};

/// Runs the program; returns its system calls, a line each, or None, said aloud, where they cannot be traced.
fn calls(place: &Place, traced: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let trace = place.path("trace");
    let (written_to, only) = (trace.display().to_string(), format!("trace={traced}"));
    let tracer = ["-f", "-y", "-qq", "-o", &written_to, "-e", &only];
    let all = [&tracer[..], &[env!("CARGO_BIN_EXE_stook")], arguments].concat();
    let mut command = place.command_of(Path::new("strace"), &all);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let Ok(output) = command.output() else {
        stook_testkit::skip!("strace is not there");
        return None;
    };
    let ran = Ran::of(output);
    if ran.status != Some(0) && ran.stderr.contains("ptrace") {
        stook_testkit::skip!("strace may not trace");
        return None;
    }
    assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.stderr);
    let text = std::fs::read_to_string(trace).unwrap();
    // A call that another thread interrupts has two lines; the first one has the name.
    let begun = text.lines().filter(|line| !line.contains(" resumed>"));
    Some(begun.map(ToOwned::to_owned).collect())
}

fn count(calls: &[String], wanted: &str) -> usize {
    calls.iter().filter(|call| call.contains(wanted)).count()
}

fn three_files() -> Place {
    Place::with(&tree! { "a" => file(b"a"), "b" => file(b"b"), "c" => file(b"c") })
}

#[test]
fn three_files_need_hardly_a_thread() {
    let place = three_files();
    // The first of a pool is the thread that calls; another one looks whether it is blocked.
    for (most, arguments) in [
        (1, &["walk", "src"][..]),
        // Besides: the worker that packs, the MD5 of the volume, and its sync.
        (4, &["create", "src", "arc"]),
        (1, &["check", "arc"]),
        (0, &["extract", "arc", "--into", "out"]),
        (1, &["remove", "out"]),
    ] {
        let Some(calls) = calls(&place, "clone,clone3", arguments) else {
            return;
        };
        let threads = count(&calls, "clone");
        assert!(threads <= most, "{arguments:?}: {threads} threads");
    }
}

#[test]
fn facts_of_the_machine_are_read_once() {
    let place = three_files();
    for arguments in [
        &["create", "src", "arc"][..],
        &["check", "arc"],
        &["extract", "arc", "--into", "out"],
    ] {
        let Some(calls) = calls(&place, "openat", arguments) else {
            return;
        };
        for path in ["/proc/meminfo", "cpu.max", "cpu.cfs_quota_us", "memory.max"] {
            let opened = count(&calls, &format!("{path}\""));
            // Every group above has the same file.
            let distinct: std::collections::BTreeSet<&str> = calls
                .iter()
                .filter(|call| call.contains(&format!("{path}\"")))
                .filter_map(|call| call.split('"').nth(1))
                .collect();
            assert_eq!(opened, distinct.len(), "{arguments:?}: {path}");
        }
        assert_eq!(count(&calls, "clear_refs"), 0, "{arguments:?}");
    }
}

#[test]
fn a_small_index_is_locked_a_few_times_only() {
    let place = three_files();
    place.stderr(&["create", "src", "arc"]);
    let Some(calls) = calls(&place, "fcntl", &["check", "arc"]) else {
        return;
    };
    let locks = count(&calls, "F_RDLCK, l_whence=SEEK_SET, l_start=1073741826");
    assert!(locks <= 12, "{locks} locks");
}

#[test]
fn each_sync_of_a_create_protects_something() {
    let place = three_files();
    let traced = "fsync,fdatasync,sync_file_range,rename,renameat,renameat2";
    let Some(calls) = calls(&place, traced, &["create", "src", "arc"]) else {
        return;
    };
    let folder = format!("<{}>)", place.path("arc").canonicalize().unwrap().display());
    let syncs = |of: &str| count(&calls, of);
    let trace = calls.join("\n");
    // The new index, before it gets its name, and after that its folder; the volume likewise; then two transactions, for
    // the rows and for the end of the run: the journal twice and its folder, then the index.
    assert_eq!(syncs("index.db.partial>)"), 1, "{trace}");
    assert_eq!(syncs("000000.tar.partial>)"), 1, "{trace}");
    assert_eq!(syncs("index.db-journal>)"), 4, "{trace}");
    assert_eq!(syncs("index.db>)"), 2, "{trace}");
    assert_eq!(syncs(&folder), 4, "{trace}");
    assert_eq!(syncs("sync("), 12, "{trace}");
    let position = |of: &str| calls.iter().position(|call| call.contains(of)).unwrap();
    assert!(
        position("index.db.partial>)") < position("index.db.partial\", "),
        "{trace}"
    );
    assert!(
        position("000000.tar.partial>)") < position("000000.tar.partial\", "),
        "{trace}"
    );
}
