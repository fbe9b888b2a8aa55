//! Bad input: one line that names operation, path and cause, a hint where one helps, the right exit code, and
//! nothing changed on disk.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use stook_testkit::{Compare, Tree, tree};

use crate::place::{Place, Ran};

fn small_tree() -> Tree {
    tree! {
        "a" => file(b"hello\n"),
        "d/" => dir(),
        "d/b" => file(b"b\n"),
        "link" => symlink("a"),
    }
}

/// A source, `src`, and its finished archive, `arc`.
pub(crate) fn archived() -> Place {
    let place = Place::with(&small_tree());
    place.stderr(&["create", "src", "arc"]);
    place
}

/// Runs a command that must be refused; returns its status and its words.
pub(crate) fn refused(place: &Place, arguments: &[&str]) -> String {
    refused_as(place, arguments, |place| place.run(arguments))
}

fn refused_as(place: &Place, arguments: &[&str], run: impl FnOnce(&Place) -> Ran) -> String {
    let before = place.snapshot(".");
    let ran = run(place);
    let changes = before.difference(&place.snapshot("."), &Compare::everything());
    assert_eq!(changes, [""; 0], "{arguments:?} changed something");
    assert_eq!(ran.text(), "", "{arguments:?}");
    assert_well_put(&ran.stderr);
    format!("status {}\n{}", ran.status.unwrap(), ran.stderr)
}

/// An error is one line, a hint another one, and neither ends in a period or is a `Debug` text.
fn assert_well_put(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    assert!((1..=2).contains(&lines.len()), "{text}");
    assert!(lines[0].starts_with("error: "), "{text}");
    assert!(
        lines.get(1).is_none_or(|line| line.starts_with("hint: ")),
        "{text}"
    );
    for line in lines {
        assert!(!line.ends_with('.'), "{line}");
        assert!(
            !line.contains("os error") && !line.contains(" { "),
            "{line}"
        );
    }
}

#[test]
fn a_source_that_is_missing_or_a_file_is_refused() {
    let place = archived();
    place.write("file", "x");
    assert_snapshot!(refused(&place, &["create", "none", "new"]), @r"
    status 1
    error: cannot open `none`: no such file or directory
    ");
    assert_snapshot!(refused(&place, &["create", "file", "new"]), @r"
    status 1
    error: cannot open `file`: not a directory
    ");
    assert_snapshot!(refused(&place, &["update", "none", "arc"]), @r"
    status 1
    error: cannot open `none`: no such file or directory
    ");
    assert_snapshot!(refused(&place, &["diff", "file", "arc"]), @r"
    status 1
    error: cannot open `file`: not a directory
    ");
}

#[test]
fn create_does_not_touch_a_finished_archive() {
    let place = archived();
    assert_snapshot!(refused(&place, &["create", "src", "arc"]), @r"
    status 1
    error: cannot create `arc`: it is an archive already
    hint: `stook update SOURCE arc` adds what has changed
    ");
    assert_snapshot!(refused(&place, &["create", "src", "arc", "--dry-run"]), @r"
    status 1
    error: cannot create `arc`: it is an archive already
    hint: `stook update SOURCE arc` adds what has changed
    ");
}

#[test]
fn an_archive_is_not_its_own_source() {
    let place = archived();
    assert_snapshot!(refused(&place, &["create", "src", "src"]), @r"
    status 1
    error: cannot archive `src` into itself
    ");
    assert_snapshot!(refused(&place, &["update", "src", "./d/../src/."]), @r"
    status 1
    error: cannot open `./d/../src/.`: no such file or directory
    ");
    std::fs::create_dir(place.path("d")).unwrap();
    assert_snapshot!(refused(&place, &["create", "src", "./d/../src/."]), @r"
    status 1
    error: cannot archive `src` into itself
    ");
    assert_snapshot!(refused(&place, &["update", "src", "./d/../src/."]), @r"
    status 1
    error: cannot open `./d/../src/.`: it is not an archive, it has no index.db
    hint: `stook create SOURCE ./d/../src/.` makes one
    ");
}

#[test]
fn an_archive_below_a_file_is_refused() {
    let place = archived();
    place.write("file", "x");
    assert_snapshot!(refused(&place, &["create", "src", "file/arc"]), @r"
    status 1
    error: cannot look at `file/arc`: not a directory
    ");
    assert_snapshot!(refused(&place, &["create", "src", "file"]), @r"
    status 1
    error: cannot open `file`: not a directory
    ");
    assert_snapshot!(refused(&place, &["extract", "arc", "--into", "file"]), @r"
    status 1
    error: cannot create `file`: not a directory
    ");
    assert_snapshot!(refused(&place, &["extract", "arc", "--into", "file/out"]), @r"
    status 1
    error: cannot create `file/out`: not a directory
    ");
}

#[test]
fn a_folder_without_write_permission_is_refused() {
    let place = archived();
    std::fs::create_dir(place.path("closed")).unwrap();
    let set_mode = |name: &str, mode| {
        std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(".", 0o755);
    set_mode("closed", 0o555);
    set_mode("arc", 0o555);
    let closed = |arguments: &[&str]| {
        // Root may write everywhere; nobody may not.
        refused_as(&place, arguments, |place| place.run_as_nobody(arguments))
    };
    assert_snapshot!(closed(&["create", "src", "closed/arc"]), @r"
    status 1
    error: cannot create `closed/arc`: permission denied
    ");
    assert_snapshot!(closed(&["create", "src", "closed"]), @r"
    status 1
    error: cannot create `closed/stook.lock`: permission denied
    ");
    assert_snapshot!(closed(&["extract", "arc", "--into", "closed/out"]), @r"
    status 1
    error: cannot create `closed/out`: permission denied
    ");
    place.write("src/new", "new");
    assert_snapshot!(closed(&["update", "src", "arc"]), @r"
    status 1
    error: cannot create `arc/stook.lock`: permission denied
    ");
    assert_snapshot!(closed(&["reindex", "arc"]), @r"
    status 1
    error: cannot create `arc/stook.lock`: permission denied
    ");
}

#[test]
fn a_folder_that_is_no_archive_is_refused_by_every_command() {
    let place = archived();
    std::fs::create_dir(place.path("empty")).unwrap();
    place.write("file", "x");
    assert_snapshot!(refused(&place, &["list", "none"]), @r"
    status 1
    error: cannot open `none`: no such file or directory
    ");
    assert_snapshot!(refused(&place, &["list", "file"]), @r"
    status 1
    error: cannot open `file`: not a directory
    ");
    assert_snapshot!(refused(&place, &["list", "empty"]), @r"
    status 1
    error: cannot open `empty`: it is not an archive, it has no index.db
    hint: `stook create SOURCE empty` makes one
    ");
    assert_snapshot!(refused(&place, &["reindex", "none"]), @r"
    status 1
    error: cannot open `none`: no such file or directory
    ");
    assert_snapshot!(refused(&place, &["reindex", "file"]), @r"
    status 1
    error: cannot open `file`: not a directory
    ");
    assert_snapshot!(refused(&place, &["reindex", "empty"]), @r"
    status 1
    error: cannot reindex `empty`: it has no volumes
    ");
    for folder in ["none", "file", "empty"] {
        let expected = refused(&place, &["list", folder]);
        for arguments in [
            &["check", folder][..],
            &["cat", folder, "a"],
            &["extract", folder, "--into", "out"],
            &["diff", "src", folder],
            &["update", "src", folder],
        ] {
            assert_eq!(refused(&place, arguments), expected, "{arguments:?}");
        }
    }
}

#[test]
fn cat_names_what_it_cannot_print() {
    let place = archived();
    assert_snapshot!(refused(&place, &["cat", "arc", "none"]), @r"
    status 1
    error: cannot find `none` in `arc`: no member has this path
    hint: `stook list arc` shows what is there
    ");
    assert_snapshot!(refused(&place, &["cat", "arc", "d"]), @r"
    status 1
    error: cannot print `d`: it is not a regular file
    ");
    assert_snapshot!(refused(&place, &["cat", "arc", "link"]), @r"
    status 1
    error: cannot print `link`: it is not a regular file
    ");
}

#[test]
fn a_pattern_that_matches_nothing_is_an_error() {
    let place = archived();
    assert_snapshot!(refused(&place, &["list", "arc", "nothing"]), @r"
    status 1
    error: cannot find `nothing` in `arc`: no member matches
    hint: a pattern is compared with whole paths; `*/nothing` finds that name in any directory
    ");
    assert_snapshot!(refused(&place, &["list", "arc", "*.nc"]), @r"
    status 1
    error: cannot find `*.nc` in `arc`: no member matches
    ");
    for arguments in [
        &["check", "arc", "nothing"][..],
        &["list", "arc", "--all", "nothing"],
        &["extract", "arc", "a", "nothing", "--into", "out"],
    ] {
        assert_eq!(
            refused(&place, arguments),
            refused(&place, &["list", "arc", "nothing"]),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_state_that_never_was_is_an_error() {
    let place = archived();
    assert_snapshot!(refused(&place, &["list", "arc", "--as-of", "7"]), @r"
    status 1
    error: cannot go back to run 7 in `arc`: it has no such run
    hint: `stook list --runs arc` shows the runs
    ");
    assert_snapshot!(refused(&place, &["list", "arc", "--as-of", "1999-12-31"]), @r"
    status 1
    error: cannot go back to 1999-12-31 23:59:59.999999 in `arc`: no run had finished by then
    hint: `stook list --runs arc` shows the runs
    ");
    assert_snapshot!(refused(&place, &["list", "arc", "--as-of", "yesterday"]), @r"
    status 2
    error: cannot use `yesterday` for --as-of: it is neither the number of a run nor a time such as 2026-11-21T18:30
    ");
    assert_snapshot!(refused(&place, &["cat", "arc", "a", "--as-of", ""]), @r"
    status 2
    error: cannot use `` for --as-of: it is neither the number of a run nor a time such as 2026-11-21T18:30
    ");
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused() {
    let place = archived();
    assert_snapshot!(refused(&place, &[]), @r"
    status 2
    error: no command was given
    hint: `stook --help` lists them
    ");
    assert_snapshot!(refused(&place, &["creat", "src", "new"]), @r"
    status 2
    error: unrecognized subcommand `creat`
    hint: a similar subcommand exists: `create`
    ");
    assert_snapshot!(refused(&place, &["create", "src", "new", "--exlude", "x"]), @r"
    status 2
    error: unexpected argument `--exlude` found
    hint: a similar argument exists: `--exclude`
    ");
    assert_snapshot!(refused(&place, &["create", "src", "new", "--volume-size", "10XB"]), @r"
    status 2
    error: cannot use `10XB` for --volume-size: `XB` is not a unit; use K, M, G, T, P (or KiB, MiB and so on) for powers of 1024, KB, MB, GB, TB, PB for powers of 1000
    ");
    assert_snapshot!(refused(&place, &["create", "src", "new", "--volume-size", "0B"]), @r"
    status 2
    error: cannot use `0B` for --volume-size: it must be at least one byte
    ");
    assert_snapshot!(refused(&place, &["create", "src", "new", "--jobs", "0"]), @r"
    status 2
    error: invalid value `0` for `--jobs <N>`: 0 is not in 1..=1024
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&place, &["create", "src", "new", "--jobs", "many"]), @r"
    status 2
    error: invalid value `many` for `--jobs <N>`: invalid digit found in string
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&place, &["create", "src"]), @r"
    status 2
    error: the following required arguments were not provided: <ARCHIVE>
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&place, &["extract", "arc"]), @r"
    status 2
    error: the following required arguments were not provided: --into <DIR>
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&place, &["list", "arc", "-q", "-v"]), @r"
    status 2
    error: the argument `--quiet` cannot be used with `--verbose`
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&place, &["list", "arc", "--timings=table"]), @r"
    status 2
    error: invalid value `table` for `--timings[=<FORMAT>]` [possible values: tree, cpu, json, folded, svg, trace]
    hint: a similar value exists: `trace`
    ");
    assert_snapshot!(refused(&place, &["list", "arc", "--timings-to", "t"]), @r"
    status 2
    error: the following required arguments were not provided: --timings[=<FORMAT>]
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&place, &["completions", "csh"]), @r"
    status 2
    error: invalid value `csh` for `<SHELL>` [possible values: bash, elvish, fish, powershell, zsh]
    hint: a similar value exists: `zsh`
    ");
}

#[test]
fn names_in_messages_cannot_break_the_line() {
    let place = archived();
    assert_snapshot!(refused(&place, &["cat", "arc", "a\nb\u{1b}[2J"]), @r"
    status 1
    error: cannot find `a\nb\x1b[2J` in `arc`: no member has this path
    hint: `stook list arc` shows what is there
    ");
    assert_snapshot!(refused(&place, &["list", "no\nne"]), @r"
    status 1
    error: cannot open `no\nne`: no such file or directory
    ");
}

#[test]
fn a_kernel_for_md5_that_there_is_not() {
    let place = archived();
    let check = |kernel: &str| {
        let mut command = place.command(&["check", "arc"]);
        command.env("STOOK_MD5_KERNEL", kernel);
        Ran::of(command.output().unwrap())
    };
    let refused = refused_as(&place, &["check"], |_| check("fast"));
    assert_snapshot!(refused, @r"
    status 2
    error: cannot use `fast` for STOOK_MD5_KERNEL: the kernels are avx512, avx2, portable, scalar
    ");
    for kernel in ["portable", "scalar"] {
        assert_eq!(check(kernel).status, Some(0), "{kernel}");
    }
}
