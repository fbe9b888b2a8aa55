//! `stook bench fileset`: what it prints, and what it refuses.

use insta::assert_snapshot;

use crate::place::{Place, Ran, Signal, wait_until};

const SMALL: [&str; 6] = ["bench", "fileset", "set", "--files", "300", "--quiet"];

#[test]
fn the_figures_are_a_table_or_one_object() {
    let place = Place::new();
    assert_snapshot!(place.stdout(&SMALL), @r"
    format      bytes  files  directories   mean   stdev  min  median     max
    ------  ---------  -----  -----------  -----  ------  ---  ------  ------
    arc     1,665,689    300            9  5,552  11,559   21   1,691  91,921
    ");
    let dry = place.json(&[
        "bench",
        "fileset",
        "other",
        "--files",
        "300",
        "--json",
        "--dry-run",
    ]);
    assert!(!place.path("other").exists());
    let made = place.json(&[
        "bench", "fileset", "other", "--files", "300", "--json", "--jobs", "3",
    ]);
    assert_eq!(made, dry);
    assert_eq!(made.len(), 1);
    assert_eq!(
        (&made[0]["format"], &made[0]["files"]),
        (&"arc".into(), &300.into())
    );
    place.assert_same_tree("set", "other");
}

#[test]
fn a_file_says_what_the_set_is_like() {
    let place = Place::new();
    place.write("four.toml", "sizes.fixed.bytes = 4096\n[tree]\ndepth = 1\n");
    let arguments = [
        "bench",
        "fileset",
        "set",
        "--files",
        "10",
        "--spec",
        "four.toml",
        "--json",
    ];
    let made = &place.json(&arguments)[0];
    assert_eq!(
        (&made["format"], &made["bytes"]),
        (&"four".into(), &40_960.into())
    );
    place.write("wrong.toml", "[tree]\ndepth = 2\nfan_out = \"wide\"\n");
    let wrong = place.run(&[
        "bench",
        "fileset",
        "new",
        "--files",
        "10",
        "--spec",
        "wrong.toml",
    ]);
    assert_eq!(wrong.status, Some(2));
    assert_snapshot!(wrong.stderr, @r#"error: cannot use `wrong.toml`, line 3, `fan_out = "wide"`: invalid type: string "wide", expected u64"#);
    assert!(!place.path("new").exists());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    let refused = |arguments: &[&str]| {
        let ran = place.run(&[&["bench", "fileset"], arguments].concat());
        (ran.status, ran.stderr)
    };
    let (status, text) = refused(&["set", "--files", "0"]);
    assert_eq!(
        (status, text.as_str()),
        (Some(2), "error: a file set needs at least one file\n")
    );
    let (status, text) = refused(&["set", "--files", "9", "--spec", "ark"]);
    assert_eq!(status, Some(2));
    assert_snapshot!(text, @"error: there is no spec `ark`: it is neither one of `arc`, `flat`, `deep` nor a file");
    let (status, text) = refused(&["set", "--files", "9", "--spec", "gone.toml"]);
    let expected = "error: cannot open `gone.toml`: no such file or directory\n";
    assert_eq!((status, text.as_str()), (Some(1), expected));
    assert!(!place.path("set").exists());
    std::fs::create_dir(place.path("mine")).unwrap();
    place.write("mine/file", "mine");
    let (status, text) = refused(&["mine", "--files", "9"]);
    let expected = "error: `mine` is not empty\nhint: a file set needs a new or empty directory\n";
    assert_eq!((status, text.as_str()), (Some(1), expected));
}

#[test]
fn what_was_made_before_an_interruption_is_removed() {
    let place = Place::new();
    let arguments = [
        "bench", "fileset", "set", "--files", "1000000", "--jobs", "2",
    ];
    let mut child = place.command(&arguments).spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    let file = place.path("set/d00000/d00");
    assert!(
        wait_until(&mut child, || file.exists()),
        "it ended too soon"
    );
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.text()), (Some(130), ""));
    assert_eq!(ran.stderr, "removing what was made\nerror: interrupted\n");
    assert!(!place.path("set").exists());
}
