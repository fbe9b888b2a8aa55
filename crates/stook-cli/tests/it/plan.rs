//! `stook plan`, `build` and `commit`: every part in a process of its own, and each of the three killed at any moment.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use stook_testkit::{Compare, Random, Tree, file, hardlink};

use crate::crash::{assert_equal_archives, undisturbed};
use crate::place::{Place, Ran, wait_until};

fn tree() -> Tree {
    let mut random = Random::new(11);
    let mut tree = Tree::basic();
    tree.graft("links", &Tree::links());
    tree.insert("many/1/first", file([b'h'; 900]));
    tree.insert("many/4/second", hardlink("many/1/first"));
    for number in 0..250 {
        let len = random.index(6_000);
        tree.insert(
            format!("many/{}/f{number}", number % 5),
            file(random.bytes(len)),
        );
    }
    tree.insert("large", file(random.bytes(5 << 20)));
    tree
}

const CREATE: [&str; 5] = ["create", "src", "arc", "--volume-size", "64KiB"];
const PLAN: [&str; 5] = ["plan", "src", "arc", "--volume-size", "64KiB"];
/// In one volume.
const SMALL_PLAN: [&str; 3] = ["plan", "src", "arc"];
const COMMIT: [&str; 2] = ["commit", "arc"];

fn parts(place: &Place) -> Vec<String> {
    let names = place.names("arc/stook.plan").into_iter();
    let parts = names.filter(|name| name.starts_with("part-"));
    parts.map(|name| format!("arc/stook.plan/{name}")).collect()
}

fn build_all(place: &Place) {
    for part in parts(place) {
        place.stderr(&["build", &part, "src"]);
    }
}

#[test]
fn parts_built_in_processes_side_by_side_make_the_same_archive() {
    let place = Place::with(&tree());
    let expected = undisturbed(&place, &[&CREATE]);
    let printed = place.stdout(&PLAN);
    let parts = parts(&place);
    assert_eq!(printed.lines().collect::<Vec<_>>(), parts);
    assert!(parts.len() > 8, "{printed}");
    // Two builders for each part: one result stays.
    let builders: Vec<_> = parts
        .iter()
        .rev()
        .chain(&parts)
        .map(|part| {
            let mut command = place.command(&["build", part, "src"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for builder in builders {
        let ran = Ran::of(builder.wait_with_output().unwrap());
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    }
    let stderr = place.stderr(&COMMIT);
    assert!(stderr.contains("committed"), "{stderr}");
    assert_equal_archives(&expected, &place.path("arc"));
}

#[test]
fn others_are_told_that_the_archive_is_reserved() {
    let place = Place::with(&Tree::basic());
    place.stderr(&SMALL_PLAN);
    let refused = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(1), "{arguments:?}");
        ran.stderr
    };
    assert_snapshot!(refused(&["create", "src", "arc"]), @"
    error: cannot write `arc`: it is reserved for a plan that is not committed
    hint: `stook commit arc` takes its parts into the archive; with `--abandon` it gives them up
    ");
    assert_eq!(refused(&SMALL_PLAN), refused(&["create", "src", "arc"]));
    assert_snapshot!(refused(&COMMIT), @"
    error: cannot commit: a part is not built, the first is `arc/stook.plan/part-000000`
    hint: `stook build arc/stook.plan/part-000000 SOURCE` builds it; `--built-in` names the folder if it was built in another one, `--abandon` gives the plan up
    ");
    place.stderr(&["commit", "arc", "--abandon"]);
    assert!(!place.path("arc").exists());
    place.stderr(&["create", "src", "arc"]);
    assert_eq!(place.names("arc"), ["000000.tar", "index.db"]);
    assert_snapshot!(refused(&COMMIT), @"
    error: cannot commit `arc`: it has no plan
    hint: `stook plan SOURCE arc` makes one
    ");
}

#[test]
fn a_reserved_archive_records_no_releases_and_no_attributes() {
    let place = Place::with(&tree());
    place.stderr(&["create", "src", "arc"]);
    place.write("src/late", "new");
    place.stderr(&PLAN);
    let before = place.snapshot("src");
    for arguments in [
        &["remove", "src", "--archived-in", "arc"][..],
        &["reindex", "arc", "--attributes"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(1), "{arguments:?}");
        let reserved = "it is reserved for a plan that is not committed";
        assert!(ran.stderr.contains(reserved), "{}", ran.stderr);
    }
    let difference = before.difference(&place.snapshot("src"), &Compare::everything());
    assert_eq!(difference, [""; 0]);
}

#[test]
fn another_writer_after_the_plan_is_found_out() {
    let place = Place::with(&tree());
    place.stderr(&PLAN);
    build_all(&place);
    // As zstash would, which knows of no reservation.
    place.sql(
        "arc/index.db",
        "INSERT INTO files VALUES (1, 'a', 1, '2026-01-01 00:00:00', NULL, '000000.tar', 0);",
    );
    let ran = place.run(&COMMIT);
    assert_snapshot!(ran.stderr, @"
    error: cannot commit `arc`: it was written to after it was planned
    hint: `stook commit arc --abandon` gives the plan up; then plan again
    ");
    assert_eq!(place.names("arc"), ["index.db", "stook.plan"]);
}

#[test]
fn json_names_the_parts() {
    let place = Place::with(&Tree::basic());
    let planned = place.json(&["plan", "src", "arc", "--json"]);
    assert_eq!(planned[0]["path"], "arc/stook.plan/part-000000");
    assert_eq!(planned[1]["parts"], 1);
    let built = place.json(&["build", "arc/stook.plan/part-000000", "src", "--json"]);
    assert_eq!(built[0]["members"], planned[1]["members"]);
    let committed = place.json(&["commit", "arc", "--json"]);
    assert_eq!(committed[0]["members"], planned[1]["members"]);
    assert_eq!(committed[0]["volumes"], 1);
}

#[test]
fn a_dry_run_says_what_a_plan_would_hold() {
    let place = Place::with(&stook_testkit::tree! { "a" => file(b"hello"), "b" => file(b"bytes") });
    assert_snapshot!(place.stdout(&["plan", "src", "arc", "--dry-run"]), @"
    000000.tar             2 entries            10,240 bytes
    would plan 2 entries, 10 B, in 1 part
    ");
    let lines = place.json(&["plan", "src", "arc", "--dry-run", "--json"]);
    assert_eq!(lines[0]["type"], "volume");
    let dry = &lines[1];
    assert!(!place.path("arc").exists());
    let planned = &place.json(&["plan", "src", "arc", "--json"])[1];
    for fact in [
        "entries",
        "unchanged",
        "metadata",
        "members",
        "bytes",
        "parts",
        "deleted",
        "failed",
    ] {
        assert_eq!(dry[fact], planned[fact], "{fact}");
    }
    for (summary, reserved) in [(dry, false), (planned, true)] {
        assert_eq!(
            (&summary["reserved"], &summary["dry_run"]),
            (&reserved.into(), &(!reserved).into())
        );
    }
}

#[test]
fn a_dry_run_of_nothing_says_so() {
    let place = Place::with(&Tree::basic());
    place.stderr(&["create", "src", "arc"]);
    assert_snapshot!(place.stdout(&["plan", "src", "arc", "--dry-run"]), @"nothing to archive, so the archive would not be reserved");
}

#[test]
fn a_plan_is_given_up_only_when_nothing_else_helps() {
    let place = Place::with(&Tree::basic());
    place.stderr(&["create", "src", "arc"]);
    place.write("src/late", "late");
    place.stderr(&SMALL_PLAN);
    let refused = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(1), "{arguments:?}");
        ran.stderr
    };
    assert_snapshot!(refused(&["build", "arc/stook.plan/plan", "src"]), @"
    error: cannot use `arc/stook.plan/plan`: it is a file of a plan, but not a part
    hint: `stook build` takes a file `part-…` of a plan
    ");
    assert_snapshot!(refused(&["build", "src/late", "src"]), @"
    error: cannot use `src/late`: it does not begin like a file of a plan
    hint: `stook build` takes a file `part-…` of a plan
    ");
    let plan = place.path("arc/stook.plan");
    let part = std::fs::read(plan.join("part-000000")).unwrap();
    std::fs::write(place.path("part-000000"), &part[..part.len() - 1]).unwrap();
    assert_snapshot!(refused(&["build", "part-000000", "src"]), @"
    error: cannot use `part-000000`: it is cut off
    hint: the part in the `stook.plan` of its archive may be sound: copy it again
    ");
    let bytes = std::fs::read(plan.join("plan")).unwrap();
    let with = |place: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[place] = byte;
        std::fs::write(plan.join("plan"), bytes).unwrap();
    };
    with(9, 77);
    assert_snapshot!(refused(&COMMIT), @"
    error: cannot use `arc/stook.plan/plan`: it is of version 77, and this stook knows version 5
    hint: use the stook that made the plan
    ");
    with(40, 77);
    assert_snapshot!(refused(&COMMIT), @"
    error: cannot use `arc/stook.plan/plan`: block 0 is not as it was written
    hint: `stook commit arc --abandon` gives the plan up; then plan again
    ");
    assert_eq!(
        place.names("arc/stook.plan"),
        ["deleted", "part-000000", "plan"]
    );
}

#[test]
fn a_plan_that_cannot_be_read_has_a_way_out() {
    let place = Place::with(&Tree::basic());
    place.stderr(&["create", "src", "arc"]);
    place.write("src/late", "late");
    place.stderr(&SMALL_PLAN);
    let plan = place.path("arc/stook.plan/plan");
    std::fs::set_permissions(&plan, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let ran = place.run_as_nobody(&COMMIT);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(ran.stderr, @"
    error: cannot use `arc/stook.plan/plan`: permission denied
    hint: try again when it can be read; if it never can, move `arc/stook.plan` away, and `stook update SOURCE arc` goes on without the plan
    ");
    std::fs::rename(place.path("arc/stook.plan"), place.path("away")).unwrap();
    place.stderr(&["update", "src", "arc"]);
    place.stderr(&["check", "arc", "--volumes"]);
}

#[test]
fn a_commit_names_what_stays_of_the_plan() {
    let place = Place::with(&Tree::basic());
    place.stderr(&SMALL_PLAN);
    build_all(&place);
    place.write("arc/stook.plan/notes", "mine");
    assert_snapshot!(place.stderr(&COMMIT), @"committed 56 entries, 483 kB, in 1 volume; `stook.plan/notes` stays");
    assert_eq!(place.names("arc/stook.plan"), ["notes"]);
}

#[test]
fn what_is_wrong_with_a_plan_is_said_with_a_way_out() {
    let place = Place::with(&stook_testkit::tree! { "a" => file(b"hello"), "b" => file(b"bytes") });
    place.stderr(&["plan", "src", "arc", "--volume-size", "3KiB"]);
    build_all(&place);
    let refused = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(1), "{arguments:?}");
        ran.stderr
    };
    let rename = |from: &str, to: &str| {
        let plan = place.path("arc/stook.plan");
        std::fs::rename(plan.join(from), plan.join(to)).unwrap();
    };
    rename("built-000000", "away");
    rename("built-000001", "built-000000");
    assert_snapshot!(refused(&["build", PART, "src"]), @"
    error: cannot use `arc/stook.plan/built-000000`: it was built of part 000001 of this plan
    hint: rename it to `built-000001`, or move it away and build the part again
    ");
    rename("away", "built-000001");
    assert_snapshot!(refused(&COMMIT), @"
    error: cannot use `arc/stook.plan/built-000000`: it was built of part 000001 of this plan
    hint: rename it to `built-000001`, or move it away and build the part again
    ");
    place.write("arc/stook.plan/notes", "mine");
    place.write("arc/stook.plan/plan", "beyond recognition");
    assert_snapshot!(refused(&["update", "src", "arc"]), @"
    error: cannot use `arc/stook.plan/plan`: it does not begin like a file of a plan
    hint: `stook commit arc --abandon` gives the plan up; then plan again
    ");
    assert_snapshot!(place.stderr(&["commit", "arc", "--abandon"]), @"abandoned 2 parts; 2 built; `stook.plan/notes` was not made by stook, and stays");
    assert_snapshot!(refused(&["plan", "src", "arc"]), @"
    error: cannot plan in `arc/stook.plan`: it holds `notes`, which stook did not make
    hint: move that away, then try again; a plan needs the directory for itself
    ");
    assert_eq!(place.names("arc/stook.plan"), ["notes"]);
}

#[test]
fn a_commit_that_was_killed_at_its_end_says_that_all_is_done() {
    let place = Place::with(&Tree::basic());
    place.stderr(&SMALL_PLAN);
    build_all(&place);
    let plan = std::fs::read(place.path("arc/stook.plan/plan")).unwrap();
    place.stderr(&COMMIT);
    std::fs::create_dir(place.path("arc/stook.plan")).unwrap();
    std::fs::write(place.path("arc/stook.plan/plan"), plan).unwrap();
    assert_snapshot!(place.stderr(&COMMIT), @"everything was committed already; removed the plan");
    assert_eq!(place.names("arc"), ["000000.tar", "index.db"]);
}

#[test]
fn what_failed_is_printed_as_another_part() {
    let place = Place::with(&Tree::basic());
    place.write("src/late", "late");
    place.stderr(&SMALL_PLAN);
    std::fs::remove_file(place.path("src/late")).unwrap();
    let ran = place.run(&["build", "arc/stook.plan/part-000000", "src"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    let ran = place.run(&COMMIT);
    assert_eq!(
        (ran.status, ran.text()),
        (Some(3), "arc/stook.plan/part-000001\n")
    );
    // Nothing has to be built only to fail again.
    let ran = place.run(&["commit", "arc", "--record-failures"]);
    assert_eq!((ran.status, ran.text()), (Some(3), ""), "{}", ran.stderr);
    assert_eq!(place.names("arc"), ["000000.tar", "index.db"]);
}

/// Two files, one of which is away.
fn one_away() -> Place {
    let place = Place::with(&stook_testkit::tree! { "a" => file(b"hello"), "b" => file(b"bytes") });
    place.stderr(&SMALL_PLAN);
    std::fs::rename(place.path("src/a"), place.path("away")).unwrap();
    place
}

const PART: &str = "arc/stook.plan/part-000000";

#[test]
fn every_step_says_what_it_did_and_what_comes_next() {
    let place = one_away();
    assert_snapshot!(place.run(&["build", PART, "src"]).stderr, @"
    error: cannot open `a`: no such file or directory
    built 1 entry, 5 B; 1 failed
    hint: the same command builds the part again, in vain for files that changed after they were planned; `stook commit` puts what failed into another part, or leaves it to the next update with `--record-failures`; `--abandon` gives the plan up
    ");
    assert_snapshot!(place.run(&COMMIT).stderr, @"
    committed 1 entry, 5 B, in 1 volume; 1 part to build with what failed or did not fit
    hint: build what is left, then commit again; files that changed after they were planned fail again: `--record-failures` leaves what failed to the next update, `--abandon` gives the rest of the plan up
    ");
    assert_snapshot!(place.run(&COMMIT).stderr, @"
    error: cannot commit: a part is not built, the first is `arc/stook.plan/part-000001`
    hint: `stook build arc/stook.plan/part-000001 SOURCE` tries again what failed, in vain if it changed after it was planned; `stook commit arc --record-failures` leaves it to the next update, `--abandon` gives the plan up
    ");
    assert_snapshot!(place.run(&["commit", "arc", "--record-failures"]).stderr, @"committed 0 entries, 0 B, in 0 volumes; 1 failed");
    std::fs::rename(place.path("away"), place.path("src/a")).unwrap();
    assert_snapshot!(place.stderr(&SMALL_PLAN), @"planned 1 entry, 5 B, in 1 part; the archive is reserved until `stook commit`");
    assert_snapshot!(place.stderr(&["commit", "arc", "--abandon"]), @"abandoned 1 part with 1 entry, 5 B");
    place.stderr(&["update", "src", "arc"]);
    assert_snapshot!(place.stderr(&SMALL_PLAN), @"nothing to archive, so the archive is not reserved");
}

#[test]
fn an_abandoned_create_says_that_nothing_is_left() {
    let place = one_away();
    place.run(&["build", PART, "src"]);
    assert_snapshot!(place.stderr(&["commit", "arc", "--abandon"]), @"abandoned 1 part with 2 entries, 10 B; 1 built; the archive held nothing else, and is removed");
    assert!(!place.path("arc").exists());
}

#[test]
fn a_damaged_volume_is_told_with_what_mends_it() {
    let place = one_away();
    std::fs::rename(place.path("away"), place.path("src/a")).unwrap();
    place.stderr(&["build", PART, "src"]);
    let volume = place.path("arc/stook.plan/built-000000/000000.tar.partial");
    let mut bytes = std::fs::read(&volume).unwrap();
    bytes[700] ^= 1;
    std::fs::remove_file(&volume).unwrap();
    std::fs::write(&volume, bytes).unwrap();
    let ran = place.run(&COMMIT);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(ran.stderr, @"
    error: cannot commit `arc/stook.plan/part-000000`: what was built of it is damaged: its volume does not have the MD5 that it was built with
    hint: `stook build arc/stook.plan/part-000000 SOURCE` builds it again
    ");
    place.stderr(&["build", PART, "src"]);
    place.stderr(&COMMIT);
    place.stderr(&["check", "arc", "--volumes"]);
}

#[test]
fn a_missing_folder_of_built_parts_is_named() {
    let place = one_away();
    let ran = place.run(&["commit", "arc", "--built-in", "elsewhere"]);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(ran.stderr, @"error: cannot open `elsewhere`: no such file or directory");
}

/// Runs a command and kills it after some time, or when a file is first seen.
fn kill_once(place: &Place, arguments: &[&str], after: Duration, sight: Option<&Path>) {
    let mut command = place.command(arguments);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    wait_until(&mut child, || match sight {
        Some(path) => std::fs::symlink_metadata(path).is_ok(),
        None => started.elapsed() >= after,
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Runs a command again after kills; what it says when it was done already is fine.
fn complete(place: &Place, arguments: &[&str], done: &str) {
    let ran = place.run(arguments);
    let was_done = ran.status == Some(1) && ran.stderr.contains(done);
    assert!(
        ran.status == Some(0) || was_done,
        "{arguments:?}: {}",
        ran.stderr
    );
}

#[test]
fn each_of_the_three_may_be_killed_at_any_moment() {
    let points: usize = std::env::var("STOOK_CRASH_POINTS").map_or(4, |text| text.parse().unwrap());
    let place = Place::with(&tree());
    let expected = undisturbed(&place, &[&CREATE]);
    let mut random = Random::new(5);
    let sights = [
        "stook.plan",
        "stook.plan/plan",
        "stook.plan/commit",
        "000000.rows.partial",
        "000000.tar",
        "000001.tar.partial",
        "000004.rows.partial-journal",
        "000005.tar",
        "index.db-journal",
    ];
    let arc = place.path("arc");
    for point in 0..points {
        let mut moment = |longest: f64| Duration::from_secs_f64(longest * random.unit());
        let sight = (point % 3 != 0).then(|| arc.join(sights[point % sights.len()]));
        println!("point {point}: {sight:?}");
        kill_once(&place, &PLAN, moment(0.1), sight.as_deref());
        complete(&place, &PLAN, "it is reserved for a plan");
        for part in parts(&place) {
            if point % 2 == 0 {
                kill_once(&place, &["build", &part, "src"], moment(0.03), None);
            }
            complete(&place, &["build", &part, "src"], "never done already");
        }
        for _ in 0..3 {
            kill_once(&place, &COMMIT, moment(0.1), sight.as_deref());
        }
        complete(&place, &COMMIT, "it has no plan");
        // What a kill after the end left is gone with the next writer.
        place.stderr(&["update", "src", "arc"]);
        assert_equal_archives(&expected, &arc);
        std::fs::remove_dir_all(&arc).unwrap();
    }
}

#[test]
fn an_abandoned_commit_is_an_interrupted_run() {
    let place = Place::with(&tree());
    for sight in ["000003.rows.partial", "000002.tar", "stook.plan/commit"] {
        place.stderr(&PLAN);
        build_all(&place);
        kill_once(
            &place,
            &COMMIT,
            Duration::ZERO,
            Some(&place.path("arc").join(sight)),
        );
        // If it was too quick there is nothing to abandon.
        let ran = place.run(&["commit", "arc", "--abandon"]);
        assert!(
            ran.status == Some(0) || ran.stderr.contains("it has no plan"),
            "{}",
            ran.stderr
        );
        let ran = place.run(&CREATE);
        assert!(
            ran.status == Some(0) || ran.stderr.contains("an archive already"),
            "{}",
            ran.stderr
        );
        place.stderr(&["update", "src", "arc"]);
        place.stderr(&["check", "arc", "--volumes"]);
        place.stderr(&["extract", "arc", "--into", "out"]);
        place.assert_same_tree("src", "out");
        let names = place.names("arc");
        assert!(
            names
                .iter()
                .all(|name| name.ends_with(".tar") || name == "index.db"),
            "{names:?}"
        );
        for folder in ["arc", "out"] {
            stook_testkit::remove_tree(&place.path(folder)).unwrap();
        }
    }
}
