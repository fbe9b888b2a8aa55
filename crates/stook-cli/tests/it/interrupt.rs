//! SIGINT and SIGTERM: the run ends with status 130, and the same command goes on from there.

use stook_testkit::{Random, tree};

use crate::crash::{assert_equal_archives, slow_tree, undisturbed};
use crate::place::{Place, Ran, Signal, wait_until};

/// Starts a command, sends the signal as soon as `name` is in the archive, and returns how it ended.
fn interrupted(place: &Place, arguments: &[&str], name: &str, signal_name: &str) -> Ran {
    let mut child = place.command(arguments).spawn().unwrap();
    let signal = Signal::ready(&child, signal_name);
    let file = place.path("arc").join(name);
    assert!(
        wait_until(&mut child, || file.exists()),
        "it ended too soon"
    );
    signal.send();
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn an_interrupted_create_goes_on_from_there() {
    let create = ["create", "src", "arc", "--volume-size", "20KiB"];
    let place = Place::with(&slow_tree());
    let undisturbed = undisturbed(&place, &[&create]);
    for signal_name in ["INT", "TERM"] {
        let ran = interrupted(&place, &create, "000003.tar", signal_name);
        assert_eq!((ran.status, ran.text()), (Some(130), ""), "{}", ran.stderr);
        assert_eq!(
            ran.stderr,
            "error: interrupted\nhint: the same command may be given again; what is done already is not done twice\n"
        );
        assert!(!place.path("arc/stook.lock").exists());
        // What is there already can be used.
        place.stderr(&["check", "arc"]);
        let held = place.json(&["list", "arc", "--json"]).len() as u64;
        assert!(held > 0);
        let done = place.json(&[&create[..], &["--json"]].concat());
        let summary = done.last().unwrap();
        assert!(
            summary["members"].as_u64().unwrap() <= slow_tree().len() as u64 - held,
            "{summary}"
        );
        assert_equal_archives(&undisturbed, &place.path("arc"));
        std::fs::remove_dir_all(place.path("arc")).unwrap();
    }
}

#[test]
fn an_interrupted_update_goes_on_when_create_or_update_is_called() {
    let place = Place::with(&tree! { "first" => file(b"first") });
    place.stderr(&["create", "src", "arc", "--volume-size", "20KiB"]);
    slow_tree().write(&place.path("src/more")).unwrap();
    place.copy("arc", "kept");
    let update = ["update", "src", "arc"];
    place.stderr(&update);
    std::fs::rename(place.path("arc"), place.path("undisturbed")).unwrap();
    for command in ["update", "create"] {
        place.copy("kept", "arc");
        let ran = interrupted(&place, &update, "000003.tar", "INT");
        assert_eq!(ran.status, Some(130), "{}", ran.stderr);
        place.stderr(&[command, "src", "arc"]);
        assert_equal_archives(&place.path("undisturbed"), &place.path("arc"));
        std::fs::remove_dir_all(place.path("arc")).unwrap();
    }
}

/// A file of terabytes must not have to end first.
#[test]
fn a_large_file_can_be_interrupted() {
    let place = Place::with(&tree! {
        "a" => file(b"small"),
        "large" => file(Random::new(3).bytes(8 << 20).repeat(12)),
        "z" => file(b"small"),
    });
    let create = ["create", "src", "arc", "--jobs", "1"];
    let undisturbed = undisturbed(&place, &[&create]);
    let mut child = place.command(&create).spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    let partial = place.path("arc/000000.tar.partial");
    let begun = || std::fs::metadata(&partial).is_ok_and(|found| found.len() > 4 << 20);
    assert!(wait_until(&mut child, begun), "it ended too soon");
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, Some(130), "{}", ran.stderr);
    // The small file before it was kept, and nothing of the large one.
    assert_eq!(
        place.names("arc"),
        ["000000.rows.partial", "000000.tar.partial", "index.db"]
    );
    assert!(std::fs::metadata(&partial).unwrap().len() < 1 << 20);
    let done = place.json(&[&create[..], &["--json"]].concat());
    assert_eq!(done[0]["members"], 2);
    assert_equal_archives(&undisturbed, &place.path("arc"));
}

#[test]
fn an_interrupted_extraction_goes_on_from_there() {
    let place = Place::with(&slow_tree());
    place.stderr(&["create", "src", "arc"]);
    let extract = ["extract", "arc", "--into", "out", "--jobs", "1"];
    let mut child = place.command(&extract).spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    let any = || !place.names("out").is_empty();
    assert!(wait_until(&mut child, any), "it ended too soon");
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    // It may have been done already: what counts is that the next run completes it.
    assert!(matches!(ran.status, Some(0 | 130)), "{}", ran.stderr);
    place.stderr(&extract);
    place.assert_same_tree("src", "out");
}
