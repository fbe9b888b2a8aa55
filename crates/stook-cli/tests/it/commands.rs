//! The main flow through the program, step by step, and the exit status of each end.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use stook_testkit::{Random, Tree, tree};

use crate::place::{Place, Ran, make_writable};

pub(crate) fn sample_tree() -> Tree {
    tree! {
        "a" => file(b"hello\n"),
        "b" => file(b"bytes of b\n"),
        "d/" => dir(),
        "d/deep" => file([7; 3000]),
        "empty/" => dir(),
        "link" => symlink("d/deep"),
    }
}

/// A source with an archive of two runs: `a` has changed, `b` is gone, `new` has come.
pub(crate) fn updated() -> Place {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    place.write("src/a", "hello again\n");
    place.write("src/new", "new\n");
    std::fs::remove_file(place.path("src/b")).unwrap();
    place
}

#[test]
fn the_main_flow_says_what_it_does_on_stderr_and_nothing_on_stdout() {
    let place = Place::with(&sample_tree());
    let quiet_on_stdout = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert_eq!(ran.text(), "", "{arguments:?}");
        ran.stderr
    };
    assert_snapshot!(quiet_on_stdout(&["create", "src", "arc"]), @"archived 6 entries, 3.0 kB, in 1 volume");
    assert_snapshot!(quiet_on_stdout(&["update", "src", "arc"]), @"nothing to archive, 6 entries unchanged");
    place.write("src/a", "hello again\n");
    place.write("src/new", "new\n");
    std::fs::remove_file(place.path("src/b")).unwrap();
    let diff = place.run(&["diff", "src", "arc"]);
    assert_eq!(diff.status, Some(0));
    assert_snapshot!(diff.text(), @r"
    changed  a
    deleted  b
    new      new
    ");
    assert_snapshot!(diff.stderr, @"1 new, 1 changed, 1 deleted, 4 unchanged");
    assert_snapshot!(quiet_on_stdout(&["update", "src", "arc"]), @"archived 2 entries, 16 B, in 1 volume; 4 unchanged; 1 deleted");
    assert_snapshot!(quiet_on_stdout(&["check", "arc"]), @"checked 8 members, 3.0 kB, in 2 volumes: no damage");
    assert_snapshot!(quiet_on_stdout(&["check", "arc", "--volumes"]), @"checked 8 members, 3.0 kB, in 2 volumes: no damage");
    assert_snapshot!(quiet_on_stdout(&["extract", "arc", "--into", "out"]), @"extracted 6 entries, 3.0 kB");
    assert_snapshot!(quiet_on_stdout(&["extract", "arc", "--into", "out"]), @"extracted 0 entries, 0 B; 6 were there already");
    place.assert_same_tree("src", "out");
    assert_snapshot!(quiet_on_stdout(&["reindex", "arc"]), @"indexed 8 members, 3.0 kB, in 2 volumes");
    assert_eq!(place.names("arc"), ["000000.tar", "000001.tar", "index.db"]);
    assert_snapshot!(quiet_on_stdout(&["update", "src", "arc"]), @"nothing to archive, 6 entries unchanged");
}

#[test]
fn another_mode_is_said_and_archived_on_request() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    place.set_mode("src/a", 0o600);
    place.set_mode("src/d/deep", 0o4755);
    let diff = place.run(&["diff", "src", "arc", "--exit-code"]);
    assert_eq!(diff.status, Some(1));
    assert_snapshot!(diff.text(), @r"
    metadata a: mode 0644 -> 0600
    metadata d/deep: mode 0644 -> 4755
    ");
    assert_snapshot!(diff.stderr, @"0 new, 0 changed, 0 deleted, 4 unchanged; 2 with another mode or owner");
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @r"
    note: only mode or owner of 2 entries changed
    hint: `--metadata` archives them again
    nothing to archive, 4 entries unchanged; 2 with another mode or owner
    ");
    let ignoring = ["diff", "src", "arc", "--no-metadata", "--exit-code"];
    assert_snapshot!(place.stderr(&ignoring), @"0 new, 0 changed, 0 deleted, 6 unchanged");
    assert_snapshot!(place.stderr(&["update", "src", "arc", "--compat", "zstash"]), @"nothing to archive, 5 entries unchanged");
    assert_snapshot!(place.stderr(&["update", "src", "arc", "--metadata"]), @"archived 2 entries, 3.0 kB, in 1 volume; 4 unchanged");
    assert_snapshot!(place.stderr(&["diff", "src", "arc", "--exit-code"]), @"0 new, 0 changed, 0 deleted, 6 unchanged");
}

#[test]
fn what_is_archived_with_another_mode_may_be_removed() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    place.set_mode("src/a", 0o600);
    place.stderr(&["remove", "src", "--archived-in", "arc"]);
    assert_eq!(place.names("src"), [""; 0]);
}

#[test]
fn an_older_state_comes_back() {
    let place = updated();
    place.stderr(&["update", "src", "arc"]);
    assert_snapshot!(place.stdout(&["list", "arc"]), @r"
    link
    d
    d/deep
    empty
    a
    new
    ");
    assert_snapshot!(place.stdout(&["list", "arc", "--as-of", "1"]), @r"
    a
    b
    link
    d
    d/deep
    empty
    ");
    assert_snapshot!(place.stdout(&["list", "arc", "--all"]), @r"
    a
    b
    link
    d
    d/deep
    empty
    a
    new
    ");
    assert_eq!(place.stdout(&["cat", "arc", "a"]), "hello again\n");
    assert_eq!(
        place.stdout(&["cat", "arc", "a", "--as-of", "1"]),
        "hello\n"
    );
    assert_eq!(
        place.stdout(&["cat", "arc", "b", "--as-of", "1"]),
        "bytes of b\n"
    );
    assert_eq!(place.run(&["cat", "arc", "b"]).status, Some(1));
    place.stderr(&["extract", "arc", "--as-of", "1", "--into", "old"]);
    let old = Place::with(&sample_tree());
    let difference = old.snapshot("src").difference(
        &place.snapshot("old"),
        &stook_testkit::Compare::everything(),
    );
    // The root's own time is not archived; all below it came back.
    assert_eq!(difference, [""; 0]);
    assert_eq!(
        place.stdout(&["list", "arc", "--as-of", "2100-01-01"]),
        place.stdout(&["list", "arc"])
    );
}

#[test]
fn list_shows_rows_and_runs() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    assert_snapshot!(long_list(&place), @r"
    -rw-r--r-- me/us                        6 2020-09-13 12:26:40.123457 b1946ac92492d2347c6235b4d2611184 000000.tar            0 a
    -rw-r--r-- me/us                       11 2020-09-13 12:26:40.123457 21e0ea7813e14cbe01f04059f287230a 000000.tar         2048 b
    lrwxrwxrwx me/us                        0 2020-09-13 12:26:40.123457 -                                000000.tar         4096 link -> d/deep
    drwxr-xr-x me/us                        0 2020-09-13 12:26:40.123457 -                                000000.tar         5632 d
    -rw-r--r-- me/us                     3000 2020-09-13 12:26:40.123457 c9b1bae2bf93c8b9b87b914640dc969c 000000.tar         7168 d/deep
    drwxr-xr-x me/us                        0 2020-09-13 12:26:40.123457 -                                000000.tar        11776 empty
    ");
    assert_snapshot!(place.stdout(&["list", "arc", "d/*", "?"]), @r"
    a
    b
    d
    d/deep
    ");
    assert_eq!(place.stdout(&["list", "arc", "-0", "d*"]), "d\0d/deep\0");
    let runs = place.stdout(&["list", "arc", "--runs"]);
    let words: Vec<&str> = runs.split_whitespace().collect();
    assert_eq!(words[..2], ["1", "create"]);
    assert_eq!(words[6..], ["6", "added", "0", "deleted", "0", "failed"]);
}

/// What `list -l` shows, with other names for who runs the test.
fn long_list(place: &Place) -> String {
    let row = &place.rows(&["list", "arc", "--json"])[0];
    let owner = format!(
        "{}/{}",
        row["user"].as_str().unwrap(),
        row["group"].as_str().unwrap()
    );
    let text = place.stdout(&["list", "arc", "-l"]);
    text.replace(&format!("{owner:<17}"), &format!("{:<17}", "me/us"))
}

#[test]
fn list_tells_links_apart_and_what_nobody_tells() {
    let place = Place::with(&tree! {
        "first" => file(b"shared"),
        "pipe" => fifo(),
        "second" => hardlink("first"),
        "sym" => symlink("no\nwhere"),
        "sym2" => symlink(b"\xff"),
    });
    place.stderr(&["create", "src", "arc"]);
    let ends = |text: &str| -> Vec<(String, String)> {
        let line = |line: &str| {
            let name = line.split(".tar").nth(1).unwrap().trim_start();
            let name = name.split_once(' ').unwrap().1;
            (line[..10].to_owned(), name.to_owned())
        };
        text.lines().map(line).collect()
    };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |&(mode, name): &(&str, &str)| (mode.to_owned(), name.to_owned());
        pairs.iter().map(owned).collect()
    };
    let expected = pairs(&[
        ("-rw-r--r--", "first"),
        ("prw-r--r--", "pipe"),
        ("-rw-r--r--", "second link to first"),
        ("lrwxrwxrwx", r"sym -> no\nwhere"),
        ("lrwxrwxrwx", r"sym2 -> \xff"),
    ]);
    assert_eq!(ends(&place.stdout(&["list", "arc", "-l"])), expected);
    let rows = place.rows(&["list", "arc", "--json"]);
    assert_eq!(rows[1]["kind"], "fifo");
    assert_eq!(
        (&rows[2]["kind"], &rows[2]["target"]),
        (&"file".into(), &"first".into())
    );
    assert_eq!(rows[3]["target"], "no\nwhere");
    assert_eq!(rows[4]["target_hex"], "ff");
    // Not in the index, and then in no volume either.
    place.sql("arc/index.db", "delete from stook_attributes");
    assert_eq!(ends(&place.stdout(&["list", "arc", "-l"])), expected);
    std::fs::remove_file(place.path("arc/000000.tar")).unwrap();
    let unknown = ends(&place.stdout(&["list", "arc", "-l"]));
    assert_eq!(unknown[2], ("??????????".to_owned(), "second".to_owned()));
    let row = &place.rows(&["list", "arc", "--json"])[2];
    for field in ["kind", "mode", "uid", "gid", "user", "group", "target"] {
        assert!(row[field].is_null(), "{field}");
    }
    assert_eq!(row["size"], 6);
}

#[test]
fn names_are_escaped_for_people_and_exact_for_programs() {
    let place = Place::with(&tree! {
        "line\nbreak" => file(b"1"),
        b"not utf-8 \xff" => file(b"2"),
        "tab\tstop" => file(b"3"),
    });
    place.stderr(&["create", "src", "arc"]);
    assert_snapshot!(place.stdout(&["list", "arc"]), @r"
    line\nbreak
    not utf-8 \xff
    tab\tstop
    ");
    assert_eq!(
        place.run(&["list", "arc", "-0"]).stdout,
        b"line\nbreak\0not utf-8 \xff\0tab\tstop\0"
    );
    let rows = place.json(&["list", "arc", "--json"]);
    assert_eq!(rows[0]["path"], "line\nbreak");
    assert_eq!(rows[1]["path_hex"], "6e6f74207574662d3820ff");
    assert!(rows[2].get("path_hex").is_none());
}

#[test]
fn cat_gives_every_byte_as_it_is() {
    let mut bytes = Random::new(5).bytes(9 << 20);
    bytes.extend((0..=255).collect::<Vec<u8>>());
    let place = Place::with(&tree! {
        "large" => file(&bytes),
        "holes" => sparse(&[(1 << 20, b"data")], 3 << 20),
        "empty" => file(b""),
    });
    place.stderr(&["create", "src", "arc"]);
    assert!(place.run(&["cat", "arc", "large"]).stdout == bytes);
    assert!(
        place.run(&["cat", "arc", "holes"]).stdout
            == std::fs::read(place.path("src/holes")).unwrap()
    );
    assert!(place.run(&["cat", "arc", "empty"]).stdout.is_empty());
}

#[test]
fn a_reader_that_goes_away_ends_a_command_silently() {
    let place = Place::with(&tree! { "large" => file(Random::new(6).bytes(3 << 20)) });
    for number in 0..3000 {
        place.write(&format!("src/{number:0100}"), "");
    }
    place.stderr(&["create", "src", "arc"]);
    for arguments in [
        &["cat", "arc", "large"][..],
        &["list", "arc", "-l"],
        &["list", "arc", "--json"],
    ] {
        let mut child = place.command(arguments).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        drop(stdout);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(
            (ran.status, ran.stderr.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = place
        .command(&["cat", "arc", "a"])
        .stdout(full)
        .output()
        .unwrap();
    let ran = Ran::of(output);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(ran.stderr, @"error: cannot write the output: no space left on device");
}

#[test]
fn quiet_leaves_only_data_and_errors() {
    let place = updated();
    for arguments in [
        &["update", "src", "arc", "--quiet"][..],
        &["check", "arc", "-q"],
        &["extract", "arc", "--into", "out", "-q"],
        &["reindex", "arc", "-q"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(
            (ran.status, ran.text(), ran.stderr.as_str()),
            (Some(0), "", ""),
            "{arguments:?}"
        );
    }
    assert_eq!(place.stdout(&["diff", "src", "arc", "-q"]), "");
    assert_ne!(place.stdout(&["list", "arc", "-q"]), "");
    assert!(
        place
            .run(&["cat", "arc", "none", "-q"])
            .stderr
            .starts_with("error: ")
    );
}

#[test]
fn a_file_that_cannot_be_read_gives_status_3_and_leaves_the_rest() {
    let place = Place::with(&sample_tree());
    std::fs::set_permissions(place.root(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for (name, mode) in [("a", 0), ("empty", 0)] {
        std::fs::set_permissions(
            place.path("src").join(name),
            std::fs::Permissions::from_mode(mode),
        )
        .unwrap();
    }
    let ran = place.run_as_nobody(&["create", "src", "arc"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    let mut lines: Vec<&str> = ran.stderr.lines().collect();
    lines.sort_unstable();
    assert_snapshot!(lines.join("\n"), @r"
    archived 4 entries, 3.0 kB, in 1 volume; 2 failed
    error: cannot open `a`: permission denied
    error: cannot open `empty`: permission denied
    ");
    assert_snapshot!(place.stdout(&["list", "arc"]), @r"
    b
    link
    d
    d/deep
    ");
    place.stderr(&["check", "arc"]);
    let runs = place.json(&["list", "arc", "--runs", "--json"]);
    assert_eq!(runs[0]["failed"], 2);
    // Once they can be read, they come in.
    for (name, mode) in [("a", 0o644), ("empty", 0o755)] {
        std::fs::set_permissions(
            place.path("src").join(name),
            std::fs::Permissions::from_mode(mode),
        )
        .unwrap();
    }
    std::fs::set_permissions(
        place.path("arc/index.db"),
        std::fs::Permissions::from_mode(0o666),
    )
    .unwrap();
    assert_snapshot!(place.stderr(&["update", "src", "arc"]), @"archived 2 entries, 6 B, in 1 volume; 4 unchanged");
}

#[test]
fn a_socket_is_named_as_skipped_and_is_no_failure() {
    let place = Place::with(&tree! { "a" => file(b"x"), "s" => socket() });
    assert_snapshot!(place.stderr(&["create", "src", "arc"]), @r"
    skipped `s`: it is a socket
    archived 1 entry, 1 B, in 1 volume
    ");
    assert_eq!(place.stdout(&["list", "arc"]), "a\n");
}

#[test]
fn a_flipped_byte_gives_status_4_and_is_named() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    let volume = place.path("arc/000000.tar");
    let rows = place.json(&["list", "arc", "--json", "a"]);
    let at = usize::try_from(rows[0]["offset"].as_u64().unwrap()).unwrap();
    let mut bytes = std::fs::read(&volume).unwrap();
    let content = bytes[at..]
        .windows(5)
        .position(|window| window == b"hello")
        .unwrap();
    bytes[at + content] ^= 1;
    make_writable(&volume);
    std::fs::write(&volume, bytes).unwrap();
    let ran = place.run(&["check", "arc"]);
    assert_eq!((ran.status, ran.text()), (Some(4), ""));
    assert_snapshot!(ran.stderr, @r"
    error: 000000.tar at byte 0, `a`: its content does not have the MD5 in the index
    checked 6 members, 3.0 kB, in 1 volume: 1 damage
    ");
    let cat = place.run(&["cat", "arc", "a"]);
    assert_eq!(cat.status, Some(4));
    assert_snapshot!(cat.stderr, @"error: cannot read `a`: it is damaged: its content does not have the MD5 in the index");
    let extracted = place.run(&["extract", "arc", "--into", "out"]);
    assert_eq!(extracted.status, Some(3));
    assert_snapshot!(extracted.stderr, @r"
    error: cannot extract `a`: its content does not have the MD5 in the index
    extracted 5 entries, 3.0 kB; 1 failed
    ");
    assert!(!place.path("out/a").exists());
    assert_eq!(std::fs::read(place.path("out/b")).unwrap(), b"bytes of b\n");
}

#[test]
fn help_and_version_are_data() {
    let place = Place::new();
    let version = place.stdout(&["--version"]);
    assert_eq!(version, format!("stook {}\n", env!("CARGO_PKG_VERSION")));
    let help = place.stdout(&["--help"]);
    for command in [
        "create", "update", "diff", "check", "list", "cat", "extract", "reindex", "walk",
    ] {
        assert!(help.contains(&format!("  {command} ")), "{command}\n{help}");
        let own = place.stdout(&[command, "--help"]);
        assert!(own.contains(&format!("Usage: stook {command}")), "{own}");
    }
}

#[test]
fn a_search_through_many_rows_is_noted() {
    let place = Place::with(&tree! { "a" => file(b"hello") });
    place.stderr(&["create", "src", "arc"]);
    let searches = [["cat", "arc", "a"], ["list", "arc", "a"]];
    for search in searches {
        assert_eq!(place.run(&search).stderr, "");
    }
    // As zstash adds them: no hashes of their names.
    place.sql(
        "arc/index.db",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
         insert into files (name, size, mtime, md5, tar, offset)
         select 'x' || i, 0, '2020-01-01 00:00:00', null, '000000.tar', 0 from n",
    );
    for search in searches {
        let ran = place.run(&search);
        assert_eq!(ran.status, Some(0));
        assert_eq!(
            ran.stderr,
            "note: names were searched for in 100000 rows, one after the other\n\
             hint: the next `stook update` adds an index of names\n"
        );
    }
}
