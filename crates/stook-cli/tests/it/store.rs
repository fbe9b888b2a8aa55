//! `--store`, push, pull and status, with a directory as the store: what a user types, and what a kill leaves.

use std::process::Stdio;
use std::time::{Duration, Instant};

use stook_testkit::doubles::{Double, Trouble};
use stook_testkit::{Random, tree};

use crate::crash::{assert_equal_archives, points, seed, slow_tree};
use crate::place::{Place, Ran, Signal, names, wait_until};

const CREATE: [&str; 7] = [
    "create",
    "src",
    "arc",
    "--volume-size",
    "200KiB",
    "--store",
    "store",
];

#[test]
fn an_archive_goes_to_its_store_and_comes_back() {
    let place = Place::with(&slow_tree());
    let said = place.stderr(&CREATE);
    assert!(said.contains("; sent 11 volumes, "), "{said}");
    assert_eq!(place.names("arc"), ["index.db"]);
    // The store is remembered.
    place.write("src/new", b"content");
    let said = place.stderr(&["update", "src", "arc"]);
    assert!(said.contains("; sent 1 volume, "), "{said}");
    let fetched = place.stderr(&["pull", "copy", "d1/*", "--store", "store"]);
    assert!(fetched.starts_with("fetched the index, "), "{fetched}");
    place.stderr(&["pull", "copy", "--store", "store"]);
    place.stderr(&["check", "copy", "--volumes"]);
    place.stderr(&["extract", "copy", "--into", "out"]);
    place.assert_same_tree("src", "out");
}

#[test]
fn status_says_what_is_where() {
    let place = Place::with(&tree! { "a" => file(b"content") });
    place.stderr(&["create", "src", "arc"]);
    let said = place.stdout(&["status", "arc"]);
    assert!(
        said.ends_with("no store: 1 volume, 1 here, 0 proved to be there\n"),
        "{said}"
    );
    place.stderr(&["push", "arc", "--store", "store", "--keep-volumes"]);
    let lines = place.json(&["status", "arc", "--json"]);
    let volume = &lines[0];
    assert_eq!(volume["volume"], "000000.tar");
    assert_eq!(volume["proof"], "read back");
    assert_eq!(volume["safe_to_delete"], true);
    assert_eq!(lines[1]["index_current"], true);
    std::fs::remove_file(place.path("store/000000.tar")).unwrap();
    assert!(!place.stdout(&["status", "arc"]).contains("safe to delete"));
    std::fs::remove_file(place.path("arc/000000.tar")).unwrap();
    let ran = place.run(&["status", "arc"]);
    assert_eq!(ran.status, Some(3), "{}", ran.text());
    assert!(
        ran.text()
            .contains("000000.tar  10.2 kB  not here; not in the store any more; missing"),
        "{}",
        ran.text()
    );
}

#[test]
fn volumes_in_the_store_are_read_through_it() {
    let place = Place::with(&slow_tree());
    place.stderr(&CREATE);
    for _ in 0..2 {
        place.stderr(&["check", "arc", "--volumes"]);
        assert_eq!(place.names("arc"), ["index.db"]);
    }
    let content = place.stdout(&["cat", "arc", "d1/f1"]);
    assert_eq!(content, "x".repeat(2000));
    place.stderr(&["extract", "arc", "--into", "out"]);
    place.assert_same_tree("src", "out");
    assert_eq!(place.names("arc"), ["index.db"]);
}

#[test]
fn what_is_wrong_with_a_store_is_said_before_anything_is_done() {
    let place = Place::with(&tree! { "a" => file(b"content") });
    let said = |arguments: &[&str], status: i32| {
        let ran = place.run(&[&["create", "src", "arc", "--store"][..], arguments].concat());
        assert_eq!(ran.status, Some(status), "{arguments:?}: {}", ran.stderr);
        assert!(!place.path("arc/index.db").exists());
        ran.stderr
    };
    let scheme = said(&["ftp://host/path"], 2);
    assert!(
        scheme.starts_with("error: cannot use `ftp://host/path` for --store: "),
        "{scheme}"
    );
    place.write("file", b"no directory");
    let no_directory = said(&["file"], 1);
    assert!(
        no_directory.starts_with("error: cannot write to `file`: "),
        "{no_directory}"
    );
    let spool = said(
        &["store", "--spool-size", "1MiB", "--volume-size", "2MiB"],
        1,
    );
    assert_eq!(
        spool,
        "error: volumes in transfer may take 1048576 bytes, and one volume takes up to 2097152\nhint: raise `--spool-size`; an archive with a smaller `--volume-size` needs less\n"
    );
    let unknown = place.run(&["push", "src"]);
    assert_eq!(unknown.status, Some(1), "{}", unknown.stderr);
}

/// The archive's own folder holds nothing but the index.
#[test]
fn what_was_read_back_in_the_store_may_be_removed_from_the_tree() {
    let place = Place::with(
        &tree! { "a" => file(b"content"), "d/b" => file(b"more"), "l" => symlink("a") },
    );
    let create = ["create", "src", "arc", "--store", "store"];
    place.stderr(&create);
    place.write("src/new", b"not archived");
    let ran = place.run(&["remove", "src", "--archived-in", "arc"]);
    assert_eq!(ran.status, Some(3), "{}", ran.text());
    assert_eq!(ran.stdout, b"new       src/new\n");
    assert_eq!(place.names("src"), ["new"]);
    assert_eq!(place.names("arc"), ["index.db"]);

    // A volume that has changed in the store proves nothing.
    for folder in ["arc", "store"] {
        std::fs::remove_dir_all(place.path(folder)).unwrap();
    }
    std::fs::remove_file(place.path("src/new")).unwrap();
    place.write("src/a", b"content");
    place.stderr(&create);
    let volume = place.path("store/000000.tar");
    let mut bytes = std::fs::read(&volume).unwrap();
    let content = bytes.windows(7).position(|bytes| bytes == b"content");
    bytes[content.unwrap()] ^= 1;
    std::fs::remove_file(&volume).unwrap();
    std::fs::write(&volume, bytes).unwrap();
    let ran = place.run(&["remove", "src", "--archived-in", "arc"]);
    assert_eq!(ran.status, Some(4), "{}", ran.text());
    assert_eq!(place.names("src"), ["a"]);

    // Neither does one that is gone.
    std::fs::remove_file(&volume).unwrap();
    let ran = place.run(&["remove", "src", "--archived-in", "arc"]);
    assert_ne!(ran.status, Some(0), "{}", ran.text());
    assert_eq!(place.names("src"), ["a"]);
}

/// Whatever leads there: what lies in the archive's folder is no copy of itself.
#[test]
fn the_folder_of_an_archive_is_not_its_store() {
    let place = Place::with(&tree! { "a" => file(b"content") });
    place.stderr(&["create", "src", "arc"]);
    std::os::unix::fs::symlink("arc", place.path("link")).unwrap();
    let url = format!("file://{}", place.path("arc").display());
    for store in ["arc", "./arc/", "link", &url] {
        for command in [&["push", "arc"][..], &["update", "src", "arc"]] {
            let ran = place.run(&[command, &["--store", store]].concat());
            assert_eq!(ran.status, Some(1), "{}", ran.text());
            assert!(
                ran.stderr.ends_with("it is the folder of the archive\n"),
                "{}",
                ran.stderr
            );
        }
    }
    let ran = place.run(&["create", "src", "new", "--store", "new"]);
    assert_eq!(ran.status, Some(1), "{}", ran.text());
    assert_eq!(place.names("arc"), ["000000.tar", "index.db"]);
    place.stderr(&["check", "arc", "--volumes"]);
}

#[test]
fn a_store_in_the_tree_is_not_archived() {
    let place = Place::with(&tree! { "a" => file(b"content") });
    place.stderr(&["create", "src", "arc", "--store", "src/store"]);
    let said = place.stderr(&["update", "src", "arc"]);
    assert!(said.starts_with("nothing to archive"), "{said}");
    assert_eq!(place.stdout(&["diff", "src", "arc"]), "");
    let whole = place.run(&["create", "src", "other", "--store", "src"]);
    assert_eq!(whole.status, Some(1), "{}", whole.text());
    assert_eq!(place.names("src"), ["a", "store"]);
}

#[test]
fn a_store_that_changed_is_seen() {
    let place = Place::with(&tree! { "a" => file(b"content"), "b" => file(b"more") });
    let options = [
        "--volume-size",
        "1KiB",
        "--store",
        "store",
        "--keep-volumes",
    ];
    place.stderr(&[&["create", "src", "arc"][..], &options].concat());
    assert!(
        place
            .stdout(&["status", "arc"])
            .contains("; safe to delete here")
    );
    let volume = place.path("store/000000.tar");
    let bytes = std::fs::read(&volume).unwrap();
    let replace = |bytes: &[u8]| {
        std::fs::remove_file(&volume).unwrap();
        std::fs::write(&volume, bytes).unwrap();
    };

    let mut flipped = bytes.clone();
    flipped[600] ^= 1;
    replace(&flipped);
    let said = place.stdout(&["status", "arc"]);
    assert!(
        said.contains("in the store: changed since it was sent\n"),
        "{said}"
    );
    let pushed = place.run(&["push", "arc"]);
    assert_eq!(pushed.status, Some(1), "{}", pushed.text());
    assert!(
        pushed
            .stderr
            .contains("it holds another file of this name\n"),
        "{}",
        pushed.stderr
    );

    replace(&bytes[..700]);
    let said = place.stdout(&["status", "arc"]);
    assert!(said.contains("in the store: 700 B of it\n"), "{said}");
    std::fs::remove_file(place.path("arc/000000.tar")).unwrap();
    let ran = place.run(&["status", "arc"]);
    assert_eq!(ran.status, Some(3), "{}", ran.text());
    let updated = place.run(&["update", "src", "arc"]);
    assert_eq!(updated.status, Some(3), "{}", updated.text());
    assert!(
        updated
            .stderr
            .contains("it is neither here nor in the store\n"),
        "{}",
        updated.stderr
    );

    // The same bytes, written anew, are compared and are proved again.
    replace(&bytes);
    std::fs::write(place.path("arc/000000.tar"), &bytes).unwrap();
    place.stderr(&["push", "arc", "--keep-volumes"]);
    assert!(
        place
            .stdout(&["status", "arc"])
            .contains("; safe to delete here")
    );
}

/// A file system that is not mounted: nothing goes under its mount point.
#[test]
fn a_store_that_is_gone_is_not_begun_anew() {
    let place = Place::with(&tree! { "a" => file(b"content") });
    place.stderr(&["create", "src", "arc", "--store", "store"]);
    std::fs::rename(place.path("store"), place.path("elsewhere")).unwrap();
    place.write("src/new", b"new");
    for is_there in [false, true] {
        if is_there {
            std::fs::create_dir(place.path("store")).unwrap();
        }
        let ran = place.run(&["update", "src", "arc"]);
        assert_eq!(ran.status, Some(1), "{}", ran.text());
        assert!(
            ran.stderr.contains("has no index, although"),
            "{}",
            ran.stderr
        );
        assert_eq!(place.path("store").exists(), is_there);
    }
    std::fs::remove_dir(place.path("store")).unwrap();
    std::fs::rename(place.path("elsewhere"), place.path("store")).unwrap();
    place.stderr(&["update", "src", "arc"]);

    // All of it is sent again if that is asked for.
    place.stderr(&["pull", "arc"]);
    std::fs::remove_dir_all(place.path("store")).unwrap();
    place.stderr(&["push", "arc", "--change-store"]);
    place.stderr(&["check", "arc", "--volumes"]);
    assert_eq!(
        place.names("store"),
        ["000000.tar", "000001.tar", "index.db"]
    );
}

#[test]
fn readers_take_another_store_for_what_is_not_here() {
    let place = Place::with(&tree! { "a" => file(b"content") });
    place.stderr(&["create", "src", "arc", "--store", "store"]);
    std::fs::rename(place.path("store"), place.path("moved")).unwrap();
    assert_eq!(
        place.stdout(&["cat", "arc", "a", "--store", "moved"]),
        "content"
    );
    place.stderr(&["check", "arc", "--volumes", "--store", "moved"]);
    place.stderr(&["extract", "arc", "--into", "out", "--store", "moved"]);
    place.assert_same_tree("src", "out");
    let without = place.run(&["cat", "arc", "a", "--store", "none"]);
    assert_eq!(without.status, Some(1), "{}", without.text());
}

#[test]
fn one_store_may_be_spelled_in_several_ways() {
    let place = Place::with(&tree! { "a" => file(b"content") });
    place.stderr(&["create", "src", "arc", "--store", "store"]);
    std::os::unix::fs::symlink("store", place.path("link")).unwrap();
    let url = format!("file://{}/", place.path("store").display());
    for store in ["store/", "./store", "link", "arc/../store", &url] {
        place.stderr(&["update", "src", "arc", "--store", store]);
    }
    for store in ["file://host/x", "file:x", " "] {
        let ran = place.run(&["push", "arc", "--store", store]);
        assert_eq!(ran.status, Some(2), "{}", ran.text());
    }
    let ran = place.run(&["push", "arc", "--store", "None"]);
    assert_eq!(
        ran.stderr.lines().next(),
        Some("error: this archive has no store")
    );
}

/// It would be tried again for ten minutes otherwise.
#[test]
fn a_volume_that_was_damaged_here_is_not_sent() {
    let place = Place::with(&tree! { "a" => file(b"content") });
    place.stderr(&["create", "src", "arc"]);
    let volume = place.path("arc/000000.tar");
    let mut bytes = std::fs::read(&volume).unwrap();
    bytes[600] ^= 1;
    std::fs::remove_file(&volume).unwrap();
    std::fs::write(&volume, bytes).unwrap();
    let ran = place.run(&["push", "arc", "--store", "store"]);
    assert_eq!(ran.status, Some(1), "{}", ran.text());
    assert!(
        ran.stderr
            .starts_with("error: cannot send `000000.tar`: it has changed since it was written\n"),
        "{}",
        ran.stderr
    );
}

/// HPSS gives whole files only, so volumes are fetched in groups.
#[test]
fn extract_fetches_no_more_than_the_spool_takes() {
    let place = Place::with(&slow_tree());
    let hsi = Double::hsi();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        Ran::of(command.env("STOOK_HSI", hsi.program()).output().unwrap())
    };
    let create = ["create", "src", "arc", "--volume-size", "200KiB"];
    let sent = run(&[&create[..], &["--store", "hpss:/home/u/user/run"]].concat());
    assert_eq!(sent.status, Some(0), "{}", sent.stderr);
    assert_eq!(place.names("arc"), ["index.db"]);
    let gets = || {
        hsi.log()
            .iter()
            .filter(|line| line.contains("get "))
            .count()
    };
    let before = gets();
    let extract = ["extract", "arc", "--into", "out", "--spool-size", "450KiB"];
    let extracted = run(&extract);
    assert_eq!(extracted.status, Some(0), "{}", extracted.stderr);
    place.assert_same_tree("src", "out");
    assert_eq!(place.names("arc"), ["index.db"]);
    // Eleven volumes, two at a time; one alone where the second was opened first.
    let gets = gets() - before;
    assert!((6..=11).contains(&gets), "{gets}: {:#?}", hsi.log());
    let refused = run(&["check", "arc", "--spool-size", "100KiB"]);
    assert_eq!(refused.status, Some(1), "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .starts_with("error: volumes in transfer may take 102400 bytes"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_batch_system_that_ends_a_run_gets_a_status_of_its_own() {
    let place = Place::with(&slow_tree());
    for signal_name in ["TERM", "USR1"] {
        let mut child = place.command(&CREATE).spawn().unwrap();
        let signal = Signal::ready(&child, signal_name);
        let store = place.path("store/000001.tar");
        assert!(
            wait_until(&mut child, || store.exists()),
            "it ended too soon"
        );
        signal.send();
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.status, Some(75), "{}", ran.stderr);
        assert!(
            ran.stderr.starts_with("error: interrupted\nhint: "),
            "{}",
            ran.stderr
        );
        place.stderr(&CREATE);
        assert_eq!(place.names("arc"), ["index.db"]);
        for folder in ["arc", "store"] {
            std::fs::remove_dir_all(place.path(folder)).unwrap();
        }
    }
}

/// Half of the kills come at any moment, half when a file appears in the store.
#[test]
fn kill_9_during_transfers_and_the_same_command_gives_the_same_end() {
    let (points, seed) = (points(), seed());
    println!("STOOK_CRASH_SEED={seed} STOOK_CRASH_POINTS={points}");
    let mut random = Random::new(seed);
    let place = Place::with(&slow_tree());
    let begun = Instant::now();
    place.stderr(&CREATE);
    let whole = begun.elapsed();
    std::fs::rename(place.path("store"), place.path("undisturbed")).unwrap();
    let sights = names(&place.path("undisturbed"));
    for point in 0..points {
        std::fs::remove_dir_all(place.path("arc")).unwrap();
        let mut command = place.command(&CREATE);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (delay, sight) = (whole.mul_f64(random.unit()), random.index(sights.len()));
        let (at, seen) = (Instant::now(), place.path("store").join(&sights[sight]));
        wait_until(&mut child, || match point % 2 {
            0 => at.elapsed() >= delay,
            _ => seen.exists(),
        });
        child.kill().unwrap();
        child.wait().unwrap();
        println!("point {point}: {delay:?} or {}", sights[sight]);
        crate::crash::complete(&place, &CREATE);
        assert_equal_stores(&place);
        std::fs::remove_dir_all(place.path("store")).unwrap();
    }
    assert!(whole < Duration::from_secs(60));
}

/// Asserts that the store holds what an undisturbed run sent, and nothing under another name.
fn assert_equal_stores(place: &Place) {
    assert_eq!(place.names("arc"), ["index.db"]);
    // What a kill left half sent goes an hour later.
    let names = place.names("store").into_iter();
    let whole: Vec<String> = names.filter(|name| !name.starts_with(".stook-")).collect();
    assert_eq!(whole, place.names("undisturbed"));
    place.stderr(&["pull", "pulled", "--store", "store"]);
    let undisturbed = place.path("fetched");
    if !undisturbed.exists() {
        place.stderr(&["pull", "fetched", "--store", "undisturbed"]);
    }
    assert_equal_archives(&undisturbed, &place.path("pulled"));
    std::fs::remove_dir_all(place.path("pulled")).unwrap();
}

/// Volumes that are in the store alone are not lost to an index that is written anew.
#[test]
fn a_reindex_keeps_what_is_in_the_store() {
    let place = Place::with(&slow_tree());
    place.stderr(&CREATE);
    place.write("src/new", b"content");
    place.stderr(&["update", "src", "arc", "--keep-volumes"]);
    assert_eq!(place.names("arc"), ["00000b.tar", "index.db"]);
    let listed = place.stdout(&["list", "arc", "--long"]);
    let said = place.stderr(&["reindex", "arc"]);
    assert!(
        said.contains("note: 11 volumes, 000000.tar to 00000a.tar, are not here, but in `"),
        "{said}"
    );
    assert_eq!(place.stdout(&["list", "arc", "--long"]), listed);
    let lines = place.json(&["status", "arc", "--json"]);
    assert_eq!(lines[0]["proof"], "read back");
    // The store is still known, and gets the index.
    place.stderr(&["push", "arc"]);
    place.stderr(&["pull", "copy", "--store", "store"]);
    assert_eq!(place.stdout(&["list", "copy", "--long"]), listed);
    place.stderr(&["check", "copy", "--volumes"]);
}

/// Nothing but the setting of zstash tells where these volumes are.
#[test]
fn a_reindex_keeps_what_zstash_has_sent() {
    let place = Place::with(&tree! { "a" => file(b"a"), "b" => file(vec![1; 30_000]) });
    place.stderr(&["create", "src", "arc", "--volume-size", "20KiB"]);
    place.sql(
        "arc/index.db",
        "update config set value = '/home/u/user/run' where arg = 'hpss'",
    );
    let listed = place.stdout(&["list", "arc", "--long"]);
    std::fs::remove_file(place.path("arc/000000.tar")).unwrap();
    let said = place.stderr(&["reindex", "arc"]);
    assert!(
        said.contains("000000.tar is not here, but in `/home/u/user/run`: what the old index has of it stays, members: 1\n"),
        "{said}"
    );
    assert_eq!(place.stdout(&["list", "arc", "--long"]), listed);
}

/// Runs stook with a double of `hsi`.
fn with_hsi(place: &Place, hsi: &Double, arguments: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    Ran::of(command.env("STOOK_HSI", hsi.program()).output().unwrap())
}

const TO_HPSS: [&str; 7] = [
    "create",
    "src",
    "arc",
    "--volume-size",
    "200KiB",
    "--store",
    "hpss:/home/u/user/run",
];

#[test]
fn what_a_killed_pull_has_left_is_used_and_goes() {
    let (place, hsi) = (Place::with(&slow_tree()), Double::hsi());
    assert_eq!(with_hsi(&place, &hsi, &TO_HPSS).status, Some(0));
    hsi.set(&Trouble {
        hang_at: Some(5),
        ..Trouble::default()
    });
    let pull = ["pull", "copy", "--store", "hpss:/home/u/user/run"];
    let mut command = place.command(&pull);
    let mut child = command.env("STOOK_HSI", hsi.program()).spawn().unwrap();
    assert!(wait_until(&mut child, || hsi.counters().transfers >= 5));
    child.kill().unwrap();
    child.wait().unwrap();
    let left = place.names("copy");
    assert!(
        left.iter().any(|name| name.starts_with(".stook-")),
        "{left:?}"
    );
    hsi.set(&Trouble::default());
    let ran = with_hsi(&place, &hsi, &pull);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let names = place.names("copy");
    assert!(!names.iter().any(|name| name.starts_with('.')), "{names:?}");
    // Three volumes had come after the index; the index comes again.
    assert!(
        hsi.counters().transfers < 12,
        "{}",
        hsi.counters().transfers
    );
    place.stderr(&["check", "copy", "--volumes"]);
}

#[test]
fn a_fetch_that_fails_is_tried_again() {
    let (place, hsi) = (Place::with(&slow_tree()), Double::hsi());
    assert_eq!(with_hsi(&place, &hsi, &TO_HPSS).status, Some(0));
    hsi.set(&Trouble {
        fail_at: Some(4),
        ..Trouble::default()
    });
    let ran = with_hsi(&place, &hsi, &["extract", "arc", "--into", "out"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    place.assert_same_tree("src", "out");
}

#[test]
fn an_interrupted_fetch_is_no_failure_of_members_and_no_damage() {
    let (place, hsi) = (Place::with(&slow_tree()), Double::hsi());
    assert_eq!(with_hsi(&place, &hsi, &TO_HPSS).status, Some(0));
    let commands: [(&[&str], &str); 3] = [
        (&["extract", "arc", "--into", "out"], "INT"),
        (&["check", "arc"], "INT"),
        (&["pull", "arc"], "TERM"),
    ];
    for (arguments, signal_name) in commands {
        hsi.set(&Trouble {
            hang_at: Some(2),
            ..Trouble::default()
        });
        let mut command = place.command(arguments);
        let mut child = command.env("STOOK_HSI", hsi.program()).spawn().unwrap();
        let signal = Signal::ready(&child, signal_name);
        assert!(wait_until(&mut child, || hsi.counters().transfers >= 2));
        signal.send();
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.status, Some(130), "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.starts_with("error: interrupted"),
            "{}",
            ran.stderr
        );
        assert_eq!(place.names("arc"), ["index.db"], "{arguments:?}");
    }
}

#[test]
fn what_is_out_of_reach_is_not_damaged() {
    let (place, hsi) = (Place::with(&slow_tree()), Double::hsi());
    assert_eq!(with_hsi(&place, &hsi, &TO_HPSS).status, Some(0));
    hsi.set(&Trouble {
        login_operations: Some(0),
        ..Trouble::default()
    });
    let ran = with_hsi(&place, &hsi, &["check", "arc", "--volumes"]);
    assert_eq!(ran.status, Some(3), "{}", ran.text());
    assert!(!ran.stderr.contains("MD5"), "{}", ran.stderr);
}

#[test]
fn a_pull_from_nowhere_makes_no_folder() {
    let place = Place::with(&tree! {});
    let ran = place.run(&["pull", "copy", "--store", "store"]);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(!place.path("copy").exists());
}
