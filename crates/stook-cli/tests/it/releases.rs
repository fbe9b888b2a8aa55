//! Releases: what `remove --archived-in` takes from a tree stays in the newest state of its archive.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use insta::assert_snapshot;

use crate::commands::sample_tree;
use crate::place::{Place, Ran};

/// A tree as `src`, a copy of it as `before`, and its archive as `arc`.
fn archived() -> Place {
    let place = Place::with(&sample_tree());
    place.stderr(&["copy", "src", "before"]);
    place.stderr(&["create", "src", "arc"]);
    place
}

fn purge(place: &Place, tree: &str, more: &[&str]) -> Ran {
    let arguments = ["remove", "--archived-in", "arc", "--keep-root", tree];
    place.run(&[&arguments, more].concat())
}

fn released(place: &Place) -> String {
    place.sql_text(
        "arc/index.db",
        "select name from stook_released order by name",
    )
}

fn runs(place: &Place) -> String {
    place.sql_text("arc/index.db", "select count(*) from stook_runs")
}

#[test]
fn a_purged_tree_is_still_all_in_the_archive() {
    let place = archived();
    place.stderr(&["check", "arc"]);
    let listed = place.stdout(&["list", "arc"]);
    assert_snapshot!(purge(&place, "src", &[]).stderr, @"removed 6 entries, 2 of them directories; 0 stay");
    assert_eq!(place.names("src"), [""; 0]);
    assert_eq!(released(&place), "a b d d/deep empty link");
    for options in [
        &[][..],
        &["--deletions", "record"],
        &["--deletions", "refuse"],
    ] {
        let arguments = [&["update", "src", "arc"], options].concat();
        let done = place.stderr(&arguments);
        assert_eq!(done, "nothing to archive, 0 entries unchanged\n");
    }
    assert_snapshot!(place.stderr(&["diff", "src", "arc"]), @"0 new, 0 changed, 0 deleted, 0 unchanged");
    assert_eq!(place.stdout(&["list", "arc"]), listed);
    assert_eq!(runs(&place), "1");
    place.stderr(&["extract", "arc", "--into", "out"]);
    place.assert_same_tree("before", "out");
    place.stderr(&["check", "arc", "--volumes"]);
    // What comes next is archived beside it.
    place.write("src/new", "new\n");
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @"archived 1 entry, 4 B, in 1 volume");
    place.stderr(&["check", "arc", "--volumes"]);
    place.stderr(&["extract", "arc", "--into", "both"]);
    assert_eq!(place.names("both"), ["a", "b", "d", "empty", "link", "new"]);
}

#[test]
fn a_name_that_comes_back_to_the_tree_loses_its_release() {
    let place = archived();
    purge(&place, "src", &[]);
    place.stderr(&["extract", "arc", "--into", "src", "a", "b"]);
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @"nothing to archive, 2 entries unchanged");
    assert_eq!(released(&place), "d d/deep empty link");
    fs::remove_file(place.path("src/a")).unwrap();
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @"archived 0 entries, 0 B, in 0 volumes; 1 unchanged; 1 deleted");
    let listed = place.stdout(&["list", "arc"]);
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        ["b", "link", "d", "d/deep", "empty"]
    );
    place.stderr(&["check", "arc"]);
}

#[test]
fn another_version_of_a_released_name_is_not_released() {
    let place = archived();
    purge(&place, "src", &[]);
    place.write("src/a", "another\n");
    place.stderr(&["update", "src", "arc"]);
    assert_eq!(released(&place), "b d d/deep empty link");
    fs::remove_file(place.path("src/a")).unwrap();
    let ran = place.stderr(&["update", "src", "arc", "--deletions", "record"]);
    assert_snapshot!(ran, @"archived 0 entries, 0 B, in 0 volumes; 1 deleted");
}

#[test]
fn a_release_ends_below_what_is_no_directory_any_more() {
    for with_directories in [true, false] {
        for replace in [
            (|path| fs::write(path, "file\n").unwrap()) as fn(&Path),
            |path| std::os::unix::fs::symlink("a", path).unwrap(),
        ] {
            let place = released_directory(with_directories);
            let directory = place.path("src/d");
            replace(&directory);
            let ran = place.stderr(&["diff", "src", "arc"]);
            assert!(ran.contains(" 1 deleted, 4 unchanged"), "{ran}");
            let ran = place.stderr(&["update", "src", "arc"]);
            assert!(ran.ends_with("4 unchanged; 1 deleted\n"), "{ran}");
            assert_newest_is_tree(&place, "file");
            // What is a directory again is another one.
            fs::remove_file(&directory).unwrap();
            fs::create_dir(&directory).unwrap();
            place.write("src/d/new", "new\n");
            place.stderr(&["update", "src", "arc"]);
            assert_newest_is_tree(&place, "again");
            place.stderr(&["check", "arc", "--volumes"]);
        }
    }
}

#[test]
fn a_release_ends_below_a_socket() {
    let place = released_directory(false);
    let _socket = UnixListener::bind(place.path("src/d")).unwrap();
    let ran = place.stderr(&["update", "src", "arc"]);
    assert!(ran.ends_with("4 unchanged; 1 deleted\n"), "{ran}");
    let listed = place.stdout(&["list", "arc"]);
    assert!(!listed.contains("d/deep"), "{listed}");
}

/// A name whose release has ended is deleted, or is still released: never neither.
#[test]
fn a_release_is_kept_until_its_name_is_deleted() {
    let not_recorded: [&[&[&str]]; 3] = [
        &[&["plan", "src", "arc"], &["commit", "arc", "--abandon"]],
        &[&["update", "src", "arc", "--deletions", "keep"]],
        &[&["update", "src", "arc", "--exclude", "d/*"]],
    ];
    for commands in not_recorded {
        let place = released_directory(true);
        let directory = place.path("src/d");
        fs::write(&directory, "file\n").unwrap();
        for command in commands {
            place.stderr(command);
        }
        assert_eq!(released(&place), "d/deep", "{commands:?}");
        fs::remove_file(&directory).unwrap();
        fs::create_dir(&directory).unwrap();
        let ran = place.stderr(&["update", "src", "arc"]);
        assert!(!ran.contains("deleted"), "{commands:?}: {ran}");
        place.stderr(&["extract", "arc", "--into", "out"]);
        assert_eq!(place.names("out/d"), ["deep"], "{commands:?}");
    }
    let place = released_directory(true);
    fs::write(place.path("src/d"), "file\n").unwrap();
    place.stderr(&["update", "src", "arc"]);
    place.stderr(&["update", "src", "arc"]);
    assert_eq!(released(&place), "");
}

#[test]
fn a_copy_ends_no_release() {
    let place = archived();
    place.stderr(&["remove", "--archived-in", "arc", "src/d"]);
    fs::remove_dir_all(place.path("before/d")).unwrap();
    place.write("before/d", "file\n");
    let ran = place.stderr(&["update", "before", "arc"]);
    assert!(!ran.contains("deleted"), "{ran}");
    assert_eq!(released(&place), "d d/deep");
    // The file that only the copy had is gone from the tree, and nothing else.
    let ran = place.stderr(&["update", "src", "arc"]);
    assert!(ran.ends_with("4 unchanged; 1 deleted\n"), "{ran}");
    place.stderr(&["extract", "arc", "--into", "out"]);
    assert_eq!(place.names("out/d"), ["deep"]);
}

/// A tree of which a directory was released and is gone.
fn released_directory(with_directories: bool) -> Place {
    let place = Place::with(&sample_tree());
    let more: &[&str] = if with_directories {
        &[]
    } else {
        &["--no-directories"]
    };
    place.stderr(&[&["create", "src", "arc"], more].concat());
    place.stderr(&["remove", "--archived-in", "arc", "src/d"]);
    place
}

/// List, extract and diff show no more and no less than the tree has.
fn assert_newest_is_tree(place: &Place, into: &str) {
    place.stderr(&["extract", "arc", "--into", into]);
    place.assert_same_tree("src", into);
    let listed = place.stdout(&["list", "arc"]);
    assert!(!listed.contains("d/deep"), "{listed}");
    let ran = place.stderr(&["diff", "src", "arc"]);
    assert!(ran.starts_with("0 new, 0 changed, 0 deleted"), "{ran}");
}

#[test]
fn what_stays_in_the_tree_is_not_released() {
    let place = archived();
    place.write("src/d/new", "new\n");
    place.write("src/a", "hello!\n");
    let ran = purge(&place, "src", &[]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert_eq!(released(&place), "b d/deep empty link");
    let ran = purge(&place, "src", &["--dry-run"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert_eq!(released(&place), "b d/deep empty link");
}

#[test]
fn a_part_is_recorded_under_its_names_in_the_archive() {
    let place = archived();
    place.stderr(&["remove", "--archived-in", "arc", "src/d"]);
    assert_eq!(released(&place), "d d/deep");
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @"nothing to archive, 4 entries unchanged");
    place.stderr(&["extract", "arc", "--into", "out"]);
    place.assert_same_tree("before", "out");
}

#[test]
fn the_removal_of_a_copy_is_not_recorded() {
    let place = archived();
    assert_snapshot!(purge(&place, "before", &[]).stderr, @r"
    note: what is removed is not recorded: this is not the tree that the archive was created from
    hint: if it is that tree, in another place now, `--record` keeps an update from finding these names deleted
    removed 6 entries, 2 of them directories; 0 stay
    ");
    assert_eq!(released(&place), "");
    fs::remove_file(place.path("src/a")).unwrap();
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @"archived 0 entries, 0 B, in 0 volumes; 5 unchanged; 1 deleted");
}

#[test]
fn a_tree_that_was_moved_is_recorded_if_it_is_asked_for() {
    let place = archived();
    fs::rename(place.path("src"), place.path("moved")).unwrap();
    assert_snapshot!(purge(&place, "moved", &["--record"]).stderr, @"removed 6 entries, 2 of them directories; 0 stay");
    let ran = place.run(&["update", "moved", "arc"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    place.stderr(&["extract", "arc", "--into", "out"]);
    place.assert_same_tree("before", "out");
}

#[test]
fn without_a_record_nothing_goes_unless_that_is_wanted() {
    let place = archived();
    let mut lock = File::create(place.path("arc/stook.lock")).unwrap();
    lock.try_lock().unwrap();
    lock.write_all(b"4711 elsewhere\n").unwrap();
    let ran = purge(&place, "src", &[]);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(ran.stderr, @r"
    error: cannot record in `arc` what is removed: cannot write `arc`: it is being written by process 4711 on elsewhere
    hint: `--no-record` removes without that; the next update finds these names deleted then
    ");
    place.assert_same_tree("before", "src");
    assert_eq!(purge(&place, "src", &["--dry-run"]).status, Some(0));
    assert_snapshot!(purge(&place, "src", &["--no-record"]).stderr, @"removed 6 entries, 2 of them directories; 0 stay");
    drop(lock);
    assert_eq!(released(&place), "");
    let ran = place.run(&["update", "src", "arc"]);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
}

#[test]
fn an_archive_that_may_not_be_written_is_left_alone_only_if_that_is_wanted() {
    let place = archived();
    for path in ["src", "src/d", "src/empty"] {
        fs::set_permissions(place.path(path), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let removal = ["remove", "--archived-in", "arc", "--keep-root", "src"];
    let ran = place.run_as_nobody(&removal);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    let refusal = "error: cannot record in `arc` what is removed: ";
    assert!(ran.stderr.starts_with(refusal), "{}", ran.stderr);
    assert_eq!(place.names("src").len(), 5);
    let ran = place.run_as_nobody(&[&removal[..], &["--no-record"]].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(place.names("src"), [""; 0]);
}

#[test]
fn the_options_belong_to_an_archive() {
    let place = archived();
    for option in ["--record", "--no-record"] {
        let ran = place.run(&["remove", option, "src"]);
        assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    }
    place.assert_same_tree("before", "src");
}

#[test]
fn a_reindex_keeps_releases() {
    let place = archived();
    purge(&place, "src", &[]);
    place.stderr(&["reindex", "arc"]);
    assert_eq!(released(&place), "a b d d/deep empty link");
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @"nothing to archive, 0 entries unchanged");
    place.stderr(&["check", "arc"]);
}

#[test]
fn a_removal_that_is_killed_behind_its_record_does_no_harm() {
    let place = archived();
    let tracer = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2"];
    let inject = ["-e", "inject=renameat2:error=EPERM:signal=SIGKILL:when=1"];
    let stook = env!("CARGO_BIN_EXE_stook");
    let removal = [
        stook,
        "remove",
        "--archived-in",
        "arc",
        "--jobs",
        "1",
        "src",
    ];
    let all = [&tracer[..], &inject, &removal].concat();
    let mut command = place.command_of(Path::new("strace"), &all);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let Ok(output) = command.output() else {
        stook_testkit::skip!("strace is not there");
        return;
    };
    let ran = Ran::of(output);
    if !ran.stderr.is_empty() {
        stook_testkit::skip!("strace may not trace");
        return;
    }
    assert_eq!(ran.status, None);
    place.assert_same_tree("before", "src");
    assert_eq!(released(&place), "a b d d/deep empty link");
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @"nothing to archive, 6 entries unchanged");
    assert_eq!(released(&place), "");
    fs::remove_file(place.path("src/a")).unwrap();
    let ran = place.stderr(&["update", "src", "arc"]);
    assert!(ran.ends_with("; 1 deleted\n"), "{ran}");
}

#[test]
fn an_update_of_a_copy_leaves_the_releases_of_the_tree() {
    let place = archived();
    purge(&place, "src", &[]);
    let purged = released(&place);
    assert!(!purged.is_empty());
    place.stderr(&["update", "before", "arc"]);
    assert_eq!(released(&place), purged);
    place.stderr(&["update", "src", "arc", "--deletions", "record"]);
    place.stderr(&["extract", "arc", "--into", "out"]);
    place.assert_same_tree("before", "out");
}

#[test]
fn a_check_misses_the_table_of_releases_and_those_of_names() {
    for table in ["stook_released", "stook_name_segments", "stook_name_parts"] {
        let place = archived();
        place.sql("arc/index.db", &format!("DROP TABLE {table}"));
        let ran = place.run(&["check", "arc"]);
        assert_eq!(ran.status, Some(4), "{table}: {}", ran.stderr);
        let file = place.stdout(&["list", "arc"]);
        let file = file.lines().next().unwrap();
        assert_eq!(place.run(&["list", "arc", file]).status, Some(0), "{table}");
    }
}
