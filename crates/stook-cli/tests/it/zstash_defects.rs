//! Defects of zstash 1.6 that its front does not have; each test has the number of the defect in its name.

use std::fs::File;
use std::io::Write;

use stook_testkit::{Random, tree};

use crate::place::{Ran, Signal, wait_until};
use crate::zstash_front::{Front, said, sample};

#[test]
fn d8_a_second_update_is_refused() {
    let front = Front::with(&sample());
    front.create();
    let mut lock = File::create(front.place.path("src/zstash/stook.lock")).unwrap();
    lock.try_lock().unwrap();
    lock.write_all(b"4711 elsewhere\n").unwrap();
    front.place.write("src/new", "new");
    let refused = front.stderr(1, &["update"]);
    assert!(refused.starts_with("ERROR: cannot write `/"), "{refused}");
    assert!(refused.contains("it is being written by process 4711 on elsewhere"));
    drop(lock);
    front.stderr(0, &["update"]);
    assert_eq!(
        front.place.names("src/zstash"),
        ["000000.tar", "000001.tar", "index.db"]
    );
}

#[test]
fn d9_after_a_kill_the_next_run_goes_on() {
    let large = Random::new(9).bytes(8 << 20).repeat(4);
    let front = Front::with(&tree! { "a" => file(b"a"), "large" => file(&large) });
    let arguments = ["zstash", "create", "--hpss=none", "."];
    let mut command = front.place.command(&arguments);
    command.current_dir(front.place.path("src"));
    let mut child = command.spawn().unwrap();
    let partial = front.place.path("src/zstash/000000.tar.partial");
    assert!(wait_until(&mut child, || partial.exists()));
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = front.run_in("src", &["create", "--hpss=none", "."]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(front.place.names("src/zstash"), ["000000.tar", "index.db"]);
    front.stderr(0, &["check"]);
}

#[test]
fn d10_a_volume_of_the_wrong_size_stops_nobody() {
    let front = Front::with(
        &tree! { "a" => file(vec![1; 9000]), "b" => file(vec![2; 9000]), "c" => file(vec![3; 9000]) },
    );
    front.stderr(0, &["create", "--hpss=none", "--maxsize=0.00001", "."]);
    let volume = front.place.path("src/zstash/000001.tar");
    crate::place::make_writable(&volume);
    File::options()
        .append(true)
        .open(volume)
        .unwrap()
        .write_all(&[0; 512])
        .unwrap();
    for workers in ["--workers=1", "--workers=2", "--workers=3"] {
        let ran = front.run_in("src", &["check", workers]);
        assert_eq!(ran.status, Some(1));
        let all = format!("{}{}", ran.text(), ran.stderr);
        assert!(all.contains("ERROR: 000001.tar: Size mismatch! Expected=20480 != 20992=actual. Difference=512.\n"), "{all}");
        assert!(
            all.contains("RuntimeError: zstash/000001.tar size does not match expected size.\n"),
            "{all}"
        );
        assert!(
            all.contains("INFO: Checking a\n") && all.contains("INFO: Checking c\n"),
            "{all}"
        );
        assert!(all.ends_with("ERROR: b in 000001.tar\nERROR: The following tar archives had errors:\nERROR: 000001.tar\n"), "{all}");
    }
}

#[test]
fn d11_the_cache_is_recognised_however_it_is_spelled() {
    for cache in ["zstash/", "./zstash", "a/../zstash", "ABSOLUTE"] {
        let front = Front::with(&tree! { "f" => file(b"f"), "a/b" => file(b"b") });
        let absolute = front.place.path("src/zstash");
        let cache = cache.replace("ABSOLUTE", absolute.to_str().unwrap());
        let option = format!("--cache={cache}");
        front.stderr(0, &["create", "--hpss=none", &option, "."]);
        front.place.write("src/g", "g");
        front.stderr(0, &["update", &option]);
        let query = "select name from files order by id";
        assert_eq!(
            front.place.sql_text("src/zstash/index.db", query),
            "f a/b g"
        );
    }
}

#[test]
fn d13_names_are_never_shown_to_a_shell() {
    let front = Front::with(&tree! {
        "x$(touch PWNED)" => symlink("a").mtime(1_500_000_000, 0),
        "with blank" => symlink("b").mtime(1_500_000_000, 0),
        "; touch PWNED" => file(b"f").mtime(1_500_000_000, 0),
    });
    front.stderr(0, &["create", "--hpss=none", "--cache=../a cache", "."]);
    front.stderr_in("out", 0, &["extract", "--cache=../a cache"]);
    front.place.assert_same_tree("src", "out");
    assert_eq!(
        front.place.names("out"),
        ["; touch PWNED", "with blank", "x$(touch PWNED)"]
    );
}

#[test]
fn d14_a_missing_index_is_an_error_and_is_not_made() {
    let front = Front::with(&sample());
    std::fs::create_dir(front.place.path("src/zstash")).unwrap();
    let text = "--hpss argument is required when local copy of database is unavailable";
    for arguments in [
        &["update"][..],
        &["update", "--hpss=none"],
        &["check"],
        &["extract", "--hpss=none"],
        &["ls"],
    ] {
        let refused = front.stderr(1, arguments);
        let end =
            format!("ERROR: {text}\nTraceback (most recent call last):\nValueError: {text}\n");
        assert!(refused.ends_with(&end), "{refused}");
    }
    assert_eq!(front.place.names("src/zstash"), [""; 0]);
}

/// zstash would write over the volumes; only its read-only bit keeps an ordinary user from that.
#[test]
fn volumes_that_are_there_are_never_written_over() {
    let front = Front::with(&sample());
    front.create();
    let before = front.place.snapshot("src/zstash");
    let refused = front.stderr(1, &["create", "--hpss=none", "."]);
    assert!(refused.contains("it is an archive already"), "{refused}");
    let compare = stook_testkit::Compare::everything();
    assert_eq!(
        before.difference(&front.place.snapshot("src/zstash"), &compare),
        [""; 0]
    );
    // An index alone is replaced, as zstash does it.
    std::fs::remove_file(front.place.path("src/zstash/000000.tar")).unwrap();
    std::fs::remove_file(front.place.path("src/z")).unwrap();
    front.create();
    let query = "select count(*) from files";
    assert_eq!(front.place.sql_text("src/zstash/index.db", query), "6");
}

#[test]
fn ctrl_c_ends_within_a_second_and_the_next_run_goes_on() {
    let large = Random::new(9).bytes(8 << 20).repeat(32);
    let front = Front::with(&tree! { "a" => file(b"a"), "large" => file(&large) });
    let arguments = ["zstash", "create", "--hpss=none", "."];
    let mut command = front.place.command(&arguments);
    command.current_dir(front.place.path("src"));
    let mut child = command.spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    let partial = front.place.path("src/zstash/000000.tar.partial");
    assert!(wait_until(&mut child, || partial.exists()));
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert_eq!(ran.text(), "SIGINT or CTRL-C detected. Exiting.\n");
    assert!(!said(&ran).contains("ERROR"), "{}", ran.stderr);
    front.create();
    front.stderr(0, &["check"]);
}

#[test]
fn a_source_that_is_none_is_named_as_zstash_does_and_a_link_to_one_stays() {
    let front = Front::with(&sample());
    let said = front.stderr(1, &["create", "--hpss=none", "nonexist"]);
    assert!(
        said.contains("ERROR: Input path should be a directory: "),
        "{said}"
    );
    assert!(said.contains("\nNotADirectoryError: "), "{said}");
    std::os::unix::fs::symlink("src", front.place.path("link")).unwrap();
    front.stderr_in(".", 0, &["create", "--hpss=none", "link"]);
    let query = "select value from config where arg = 'path'";
    let recorded = front.place.sql_text("src/zstash/index.db", query);
    assert!(recorded.ends_with("/link"), "{recorded}");
}
