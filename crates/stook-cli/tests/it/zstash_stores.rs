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

/// The place that was named is another archive's, and the volume here does not match the newest of its records.
#[test]
fn a_volume_from_another_place_does_not_replace_the_only_copy() {
    let front = Front::with(&sample());
    front.place.write("src/large", vec![7; 50_000]);
    let corrupt = "--for-developers-force-database-corruption";
    let wrong = "simulate_bad_size_for_most_recent";
    front.stderr(0, &["create", "--hpss=none", corrupt, wrong, "."]);
    std::fs::create_dir(front.place.path("other")).unwrap();
    front.place.write("other/o", "o");
    let place = format!("--hpss=file://{}", front.place.path("store").display());
    front.stderr_in("other", 0, &["create", &place, "."]);
    let volume = front.place.path("src/zstash/000000.tar");
    let before = std::fs::read(&volume).unwrap();
    for command in ["check", "extract"] {
        front.stderr_in("src", 1, &[command, &place]);
        assert!(std::fs::read(&volume).unwrap() == before, "{command}");
        assert_eq!(front.place.names("src/zstash"), ["000000.tar", "index.db"]);
    }
}

/// What is fetched and is not what the index says goes.
#[test]
fn a_fetched_volume_of_the_wrong_size_does_not_stay() {
    let remote = Remote::new();
    remote.create();
    remote
        .front
        .place
        .sql("src/zstash/index.db", "update tars set size = size + 1");
    let said = remote.said_in("src", 1, &["check", "--retries=0"]);
    assert!(
        said.contains("zstash/000000.tar size does not match expected size."),
        "{said}"
    );
    assert_eq!(remote.names("src/zstash"), ["index.db"]);
}

#[test]
fn a_second_create_to_the_same_place_leaves_the_index() {
    let front = Front::with(&sample());
    let place = format!("--hpss=file://{}", front.place.path("store").display());
    front.stderr(0, &["create", &place, "."]);
    let before = std::fs::read(front.place.path("src/zstash/index.db")).unwrap();
    front.stderr(1, &["create", &place, "."]);
    // Nor does one to a place that holds another archive.
    std::fs::create_dir(front.place.path("other")).unwrap();
    front.place.write("other/o", "o");
    let other = format!("--hpss=file://{}", front.place.path("second").display());
    front.stderr_in("other", 0, &["create", &other, "."]);
    front.stderr(1, &["create", &other, "."]);
    let after = std::fs::read(front.place.path("src/zstash/index.db")).unwrap();
    assert!(before == after);
    // The place is remembered.
    let checked = front.stderr(0, &["check"]);
    assert!(
        checked.contains("INFO: Transferring file from HPSS: zstash/000000.tar\n"),
        "{checked}"
    );
    front.place.write("src/new", "new");
    front.stderr(0, &["update"]);
    assert_eq!(front.place.names("src/zstash"), ["index.db"]);
    assert_eq!(
        front.place.names("store"),
        ["000000.tar", "000001.tar", "index.db"]
    );
}

/// All volumes are in HPSS, the index is not.
#[test]
fn a_create_whose_login_ended_goes_on() {
    let remote = Remote::new();
    for number in 0..4 {
        let path = format!("src/f{number}");
        remote.front.place.write(&path, vec![number; 15_000]);
    }
    let create = ["create", HPSS, "--maxsize=0.00002", "."];
    remote.hsi.set(&Trouble {
        login_bytes: Some(60_000),
        ..Trouble::default()
    });
    let said = remote.said_in("src", 1, &create);
    assert!(
        said.contains("logs in; then the same command goes on\n"),
        "{said}"
    );
    let listed = remote.run_in("src", &["ls"]).text().to_owned();
    remote.hsi.set(&Trouble::default());
    let resumed = remote.said_in("src", 0, &create);
    assert!(!resumed.contains("INFO: Archiving "), "{resumed}");
    assert!(
        resumed.contains("INFO: Transferring file to HPSS: zstash/"),
        "{resumed}"
    );
    assert_eq!(remote.run_in("src", &["ls"]).text(), listed);
    remote.said_in("elsewhere", 0, &["check", HPSS]);
}

#[test]
fn a_signal_of_a_batch_system_ends_the_front_and_leaves_no_lock() {
    let remote = Remote::new();
    remote.hsi.set(&Trouble {
        hang_at: Some(1),
        ..Trouble::default()
    });
    let mut command = remote.front.place.command(&["zstash", "create", HPSS, "."]);
    command.current_dir(remote.front.place.path("src"));
    command.env("STOOK_HSI", remote.hsi.program());
    let mut child = command.spawn().unwrap();
    let signal = Signal::ready(&child, "USR1");
    assert!(wait_until(&mut child, || remote.hsi.counters().transfers > 0));
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert_eq!(remote.names("src/zstash"), ["000000.tar", "index.db"]);
    remote.hsi.set(&Trouble::default());
    let resumed = remote.said_in("src", 0, &["create", HPSS, "."]);
    assert!(
        resumed.contains("INFO: Transferring file to HPSS: zstash/000000.tar\n"),
        "{resumed}"
    );
}

#[test]
fn an_update_of_what_is_nowhere_makes_no_folder() {
    let remote = Remote::new();
    remote.said_in("src", 1, &["update", "--cache", "nope", "--hpss=/nope"]);
    assert!(!remote.front.place.path("src/nope").exists());
}
