//! zstash's front with HPSS, through a double of `hsi`; the defects of zstash 1.6 that concern it.

use std::time::{Duration, Instant};

use stook_testkit::doubles::{Double, Trouble};

use crate::place::{Ran, Signal, wait_until};
use crate::zstash_front::{Front, said, sample};

const HPSS: &str = "--hpss=/home/u/user/run";

/// A front whose `hsi` is a double.
struct Remote {
    front: Front,
    hsi: Double,
}

impl Remote {
    fn new() -> Self {
        Self {
            front: Front::with(&sample()),
            hsi: Double::hsi(),
        }
    }

    fn run_in(&self, folder: &str, arguments: &[&str]) -> Ran {
        let program = self.hsi.program();
        let variables = [("STOOK_HSI", program.to_str().unwrap())];
        self.front.run_with(folder, arguments, &variables)
    }

    /// Runs a command that must end with this status; returns what it said.
    fn said_in(&self, folder: &str, status: i32, arguments: &[&str]) -> String {
        let ran = self.run_in(folder, arguments);
        let log = self.hsi.log().join("\n");
        assert_eq!(
            ran.status,
            Some(status),
            "{arguments:?}: {}\n{log}",
            ran.stderr
        );
        said(&ran)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.front.place.names(folder)
    }

    fn create(&self) -> String {
        self.said_in("src", 0, &["create", HPSS, "."])
    }
}

#[test]
fn an_archive_goes_to_hpss_and_comes_back() {
    let remote = Remote::new();
    let created = remote.create();
    let sent = "INFO: Transferring file to HPSS: zstash/000000.tar\n";
    assert!(created.contains(sent), "{created}");
    assert!(
        created.ends_with("INFO: Transferring file to HPSS: zstash/index.db\n"),
        "{created}"
    );
    assert!(!created.contains("HPSS is unavailable"), "{created}");
    // The volume was confirmed, so it goes; the index stays.
    assert_eq!(remote.names("src/zstash"), ["index.db"]);
    let query = "select value from config where arg = 'hpss'";
    assert_eq!(
        remote.front.place.sql_text("src/zstash/index.db", query),
        "/home/u/user/run"
    );
    let checked = remote.said_in("elsewhere", 0, &["check", HPSS]);
    assert!(
        checked.starts_with("INFO: Transferring file from HPSS: zstash/index.db\n"),
        "{checked}"
    );
    assert!(checked.contains("INFO: Transferring file from HPSS: zstash/000000.tar\nINFO: zstash/000000.tar exists. Checking expected size matches actual size.\n"), "{checked}");
    assert!(checked.contains("INFO: No failures detected when checking the files."));
    assert_eq!(remote.names("elsewhere/zstash"), ["index.db"]);
    remote.said_in("out", 0, &["extract", HPSS, "--keep"]);
    assert_eq!(remote.names("out/zstash"), ["000000.tar", "index.db"]);
    std::fs::remove_dir_all(remote.front.place.path("src/zstash")).unwrap();
    std::fs::remove_dir_all(remote.front.place.path("out/zstash")).unwrap();
    let differences = remote.front.place.snapshot("src").difference(
        &remote.front.place.snapshot("out"),
        &stook_testkit::Compare::zstash(),
    );
    assert_eq!(differences, [""; 0]);
    let listed = remote.run_in("third", &["ls", HPSS, "dir/*"]);
    assert_eq!(listed.text(), "dir/x\n");
}

#[test]
fn d2_an_index_that_was_fetched_stays_and_is_sent() {
    let remote = Remote::new();
    remote.create();
    std::fs::remove_dir_all(remote.front.place.path("src/zstash")).unwrap();
    remote.front.place.write("src/new", "new");
    let updated = remote.said_in("src", 0, &["update", HPSS]);
    assert!(updated.contains("INFO: Archiving new\n"), "{updated}");
    assert_eq!(remote.names("src/zstash"), ["index.db"]);
    let again = remote.said_in("src", 0, &["update", HPSS]);
    assert_eq!(again, "INFO: Nothing to update\n");
    let listed = remote.run_in("third", &["ls", HPSS, "new"]);
    assert_eq!(listed.text(), "new\n");
}

#[test]
fn d3_the_only_copy_of_a_volume_is_not_deleted() {
    let remote = Remote::new();
    remote.create();
    remote.front.place.write("src/new", "new");
    // zstash takes this for `--hpss=none`: the volume stays here.
    remote.said_in("src", 0, &["update"]);
    assert_eq!(remote.names("src/zstash"), ["000001.tar", "index.db"]);
    for _ in 0..2 {
        remote.said_in("src", 0, &["check"]);
        assert_eq!(remote.names("src/zstash"), ["000001.tar", "index.db"]);
    }
    // What the store lacks goes there with the next update that names it.
    remote.front.place.write("src/newer", "newer");
    remote.said_in("src", 0, &["update", HPSS]);
    assert_eq!(remote.names("src/zstash"), ["index.db"]);
    remote.said_in("elsewhere", 0, &["check", HPSS]);
}

#[test]
fn a_get_that_fails_is_tried_again() {
    let remote = Remote::new();
    remote.create();
    remote.hsi.set(&Trouble {
        fail_at: Some(1),
        ..Trouble::default()
    });
    let checked = remote.said_in("src", 0, &["check"]);
    assert!(
        checked.contains("INFO: Retrying HPSS get: 1 tries remaining.\n"),
        "{checked}"
    );
    assert!(checked.contains("INFO: No failures detected when checking the files."));
}

#[test]
fn a_second_archive_does_not_take_the_place_of_the_first() {
    let remote = Remote::new();
    remote.create();
    std::fs::remove_dir_all(remote.front.place.path("src/zstash")).unwrap();
    let refused = remote.said_in("src", 1, &["create", HPSS, "."]);
    assert!(
        refused.contains("Traceback (most recent call last):\nRuntimeError: "),
        "{refused}"
    );
    remote.said_in("elsewhere", 0, &["check", HPSS]);
}

#[test]
fn without_hsi_nothing_is_lost() {
    let remote = Remote::new();
    let variables = [("STOOK_HSI", "/nonexistent/hsi")];
    let ran = remote
        .front
        .run_with("src", &["create", HPSS, "."], &variables);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("RuntimeError: "), "{}", ran.stderr);
    remote.create();
}

#[test]
fn ctrl_c_ends_a_hanging_hsi_within_a_second() {
    let remote = Remote::new();
    remote.create();
    remote.hsi.set(&Trouble {
        hang_at: Some(1),
        ignores_term: true,
        ..Trouble::default()
    });
    let mut command = remote.front.place.command(&["zstash", "check"]);
    command.current_dir(remote.front.place.path("src"));
    command.env("STOOK_HSI", remote.hsi.program());
    let mut child = command.spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    assert!(wait_until(&mut child, || remote.hsi.counters().transfers > 0));
    signal.send();
    let begun = Instant::now();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(
        (ran.status, ran.text()),
        (Some(1), "SIGINT or CTRL-C detected. Exiting.\n")
    );
    // A hang would last for ever; a second is what is promised, and the machine may be busy.
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn the_group_is_changed_through_hsi() {
    let remote = Remote::new();
    remote.create();
    remote.said_in("src", 0, &["chgrp", "-R", "e3sm", "/home/u/user/run"]);
    let log = remote.hsi.log();
    assert!(log.iter().any(|line| line.contains("chgrp -R")), "{log:?}");
}
