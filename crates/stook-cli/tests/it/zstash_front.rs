//! `stook zstash`: what it prints, where, in which order, and what lies in the cache then, as with zstash 1.6.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use stook_testkit::{Tree, tree};

use crate::place::{Place, Ran};

pub(crate) const HELP: &str = "For help, please see https://e3sm-project.github.io/zstash. Ask questions at https://github.com/E3SM-Project/zstash/discussions/categories/q-a.\n";

/// A place with a tree `src`, where zstash's commands run.
pub(crate) struct Front {
    pub(crate) place: Place,
}

impl Front {
    pub(crate) fn with(tree: &Tree) -> Self {
        Self {
            place: Place::with(tree),
        }
    }

    /// Runs a command in a folder of the place, which is made.
    pub(crate) fn run_in(&self, folder: &str, arguments: &[&str]) -> Ran {
        self.run_with(folder, arguments, &[])
    }

    pub(crate) fn run_with(
        &self,
        folder: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Ran {
        std::fs::create_dir_all(self.place.path(folder)).unwrap();
        let arguments = [&["zstash"], arguments].concat();
        let mut command = self.place.command(&arguments);
        command.current_dir(self.place.path(folder));
        command.envs(variables.iter().copied());
        Ran::of(command.output().unwrap())
    }

    /// Runs a command in `src` that must end with this status; returns stderr behind the line about help.
    pub(crate) fn stderr(&self, status: i32, arguments: &[&str]) -> String {
        self.stderr_in("src", status, arguments)
    }

    pub(crate) fn stderr_in(&self, folder: &str, status: i32, arguments: &[&str]) -> String {
        let ran = self.run_in(folder, arguments);
        assert_eq!(ran.status, Some(status), "{arguments:?}: {}", ran.stderr);
        said(&ran)
    }

    pub(crate) fn create(&self) {
        self.stderr(0, &["create", "--hpss=none", "."]);
    }

    fn stdout(&self, arguments: &[&str]) -> String {
        let ran = self.run_in("src", arguments);
        assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.text().to_owned()
    }

    /// Names and ids of the index, in its order.
    fn names(&self) -> String {
        let query = "select name from files order by id";
        self.place.sql_text("src/zstash/index.db", query)
    }

    /// Runs SQL on the index, with Python.
    pub(crate) fn sql(&self, statements: &str) {
        self.place.sql("src/zstash/index.db", statements);
    }
}

/// Returns what a run printed on stderr behind the line about help.
pub(crate) fn said(ran: &Ran) -> String {
    let text = ran.stderr.strip_prefix(HELP);
    text.unwrap_or_else(|| panic!("{}", ran.stderr)).to_owned()
}

pub(crate) fn sample() -> Tree {
    tree! {
        "a" => file(b"a"),
        "empty" => file(b""),
        "hard" => hardlink("a"),
        "soft" => symlink("a"),
        "z" => file(b"zz"),
        "dir/x" => file(b"x"),
        "emptyd" => dir(),
    }
}

fn fixture(case: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../stook-archive/tests/fixtures/zstash")
        .join(case)
}

/// Copies a golden archive to `src/zstash`.
fn with_fixture(case: &str) -> Front {
    let front = Front::with(&tree! {});
    let (from, to) = (
        fixture(case).join("archive"),
        front.place.path("src/zstash"),
    );
    std::fs::create_dir_all(&to).unwrap();
    for name in crate::place::names(&from) {
        std::fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
    front
}

const CASES: [&str; 8] = [
    "basic",
    "duplicate-tars",
    "gnu-format",
    "hard-links",
    "no-tars-table",
    "odd-names",
    "shifted-offsets",
    "volumes",
];

#[test]
fn the_top_level_ends_as_zstash_does() {
    let front = Front::with(&tree! {});
    for (arguments, status) in [(&[][..], 2), (&["--version"], 2), (&["--", "ls"], 2)] {
        let ran = front.run_in("src", arguments);
        assert_eq!((ran.status, ran.text()), (Some(status), ""));
        assert!(
            ran.stderr
                .starts_with("usage: For v1.6.0, zstash <command> [<args>]\n")
        );
        let error = "zstash: error: the following arguments are required: command\n";
        assert!(ran.stderr.ends_with(error), "{}", ran.stderr);
    }
    let help = front.run_in("src", &["-h"]);
    assert_eq!((help.status, help.stderr.as_str()), (Some(0), ""));
    assert!(help.text().starts_with("usage: For v1.6.0"));
    let unknown = front.run_in("src", &["foo", "--hpss=none"]);
    assert_eq!((unknown.status, unknown.stderr.as_str()), (Some(1), ""));
    assert_eq!(
        unknown.text(),
        format!("Unrecognized command\n{}", help.text())
    );
    let version = front.run_in("src", &["version"]);
    assert_eq!((version.status, version.text()), (Some(0), "v1.6.0\n"));
    assert_eq!(version.stderr, HELP);
    let check = front.run_in("src", &["check", "-h"]);
    assert!(
        check
            .text()
            .starts_with("usage: zstash extract [<args>] [files]\n")
    );
    assert_eq!(
        front.stderr(2, &["create", "--no", "."]),
        "usage: zstash create [<args>] path\nzstash: error: ambiguous option: --no could match --non-blocking, --no_tars_md5\n"
    );
}

#[test]
fn the_program_may_be_called_zstash() {
    let front = Front::with(&sample());
    let link = front.place.path("zstash");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_stook"), &link).unwrap();
    let ran = Ran::of(
        front
            .place
            .command_of(&link, &["version"])
            .output()
            .unwrap(),
    );
    assert_eq!((ran.status, ran.text()), (Some(0), "v1.6.0\n"));
}

#[test]
fn create_update_check_extract_print_as_zstash() {
    let front = Front::with(&sample());
    let created = front.stderr(0, &["create", "--hpss=none", "."]);
    let md5 = front
        .place
        .sql_text("src/zstash/index.db", "select md5 from tars");
    assert_eq!(md5.len(), 32);
    let created = created.replace(&md5, "MD5");
    assert_snapshot!(created, @r#"
    INFO: Creating new tar archive 000000.tar
    INFO: Archiving a
    INFO: Archiving empty
    INFO: Archiving hard
    INFO: Archiving soft
    INFO: Archiving z
    INFO: Archiving dir/x
    INFO: Archiving emptyd
    INFO: put: HPSS is unavailable
    INFO: put: Keeping tar files locally and removing write permissions
    INFO: 'zstash/000000.tar' original mode=b"'644'"
    INFO: 'zstash/000000.tar' new mode=b"'444'"
    INFO: tar name=000000.tar, tar size=20480, tar md5=MD5
    INFO: Adding 000000.tar to the database.
    INFO: put: HPSS is unavailable
    "#);
    assert_eq!(front.place.names("src/zstash"), ["000000.tar", "index.db"]);
    // In the order of the archive: the root first, an empty directory at its own place.
    assert_eq!(front.names(), "a empty hard soft z dir/x emptyd");
    assert_eq!(front.stderr(0, &["update"]), "INFO: Nothing to update\n");
    front.place.write("src/dir/x", "changed");
    let dry = front.run_in("src", &["update", "--dry-run"]);
    assert_eq!(dry.text(), "List of files to be updated\ndir/x\n");
    assert_eq!(said(&dry), "");
    let updated = front.stderr(0, &["update"]);
    assert!(
        updated.contains(
            "INFO: Creating new tar archive 000001.tar\nINFO: Archiving dir/x\nINFO: put"
        )
    );
    assert_snapshot!(front.stderr(0, &["check", "a", "dir/x", "none"]), @r#"
    INFO: No matches for none
    INFO: zstash/000000.tar exists. Checking expected size matches actual size.
    INFO: 000000.tar: Found a single database entry.
    INFO: 000000.tar: Size check passed (20480 bytes)
    INFO: Opening tar archive zstash/000000.tar
    INFO: Checking a
    INFO: zstash/000001.tar exists. Checking expected size matches actual size.
    INFO: 000001.tar: Found a single database entry.
    INFO: 000001.tar: Size check passed (10240 bytes)
    INFO: Opening tar archive zstash/000001.tar
    INFO: Checking dir/x
    INFO: No failures detected when checking the files. If you have a log file, run "grep -i Exception <log-file>" to double check.
    "#);
    let cache = ["extract", "--cache=../src/zstash"];
    let extracted = front.stderr_in("out", 0, &cache);
    assert!(
        extracted
            .contains("INFO: Opening tar archive ../src/zstash/000000.tar\nINFO: Extracting a\n")
    );
    assert!(extracted.ends_with("INFO: No failures detected when extracting the files. If you have a log file, run \"grep -i Exception <log-file>\" to double check.\n"));
    assert_eq!(
        std::fs::read(front.place.path("out/dir/x")).unwrap(),
        b"changed"
    );
    let again = front.stderr_in("out", 0, &cache);
    for name in ["a", "empty", "hard", "z", "dir/x"] {
        let line = format!(
            "INFO: Extracting {name}\nINFO: Not extracting {name}, because it already exists on disk with the same size and modification date.\n"
        );
        assert!(again.contains(&line), "{name}: {again}");
    }
    // As zstash, which asks for the size of what they lead to.
    assert!(!again.contains("Not extracting soft") && !again.contains("Not extracting emptyd"));
}

#[test]
fn golden_archives_are_listed_as_zstash_lists_them() {
    for case in CASES {
        let front = with_fixture(case);
        let expected = std::fs::read_to_string(fixture(case).join("ls-l.txt")).unwrap();
        let listed = front.stdout(&["ls", "-l"]);
        assert_eq!(listed, expected, "{case}");
        let names: String = expected
            .lines()
            .skip(1)
            .filter(|line| line.ends_with('\t'))
            .map(|line| format!("{}\n", line.split('\t').nth(1).unwrap()))
            .collect();
        if case != "odd-names" {
            assert_eq!(front.stdout(&["ls"]), names, "{case}");
        }
    }
}

#[test]
fn golden_archives_are_checked_and_extracted() {
    for case in CASES {
        let front = with_fixture(case);
        // One has rows whose offsets are wrong, one a newest record whose size is.
        let is_damaged = ["shifted-offsets", "duplicate-tars"].contains(&case);
        let status = i32::from(is_damaged);
        for workers in ["1", "2", "5"] {
            let ran = front.run_in("src", &["check", "--workers", workers]);
            assert_eq!(ran.status, Some(status), "{case}: {}", ran.stderr);
            assert_eq!(
                ran.stderr.contains("ERROR"),
                is_damaged,
                "{case}: {}",
                ran.stderr
            );
            assert_eq!(
                ran.stderr
                    .contains("No failures detected when checking the files."),
                !is_damaged
            );
        }
        let ran = front.run_in("out", &["extract", "--cache=../src/zstash"]);
        assert_eq!(ran.status, Some(status), "{case}: {}", ran.stderr);
        if is_damaged {
            assert!(ran.stderr.contains("Traceback (most recent call last):\n"));
            assert!(
                ran.stderr
                    .contains("ERROR: Encountered an error for files:\n")
            );
            assert!(
                ran.stderr.ends_with(
                    "ERROR: The following tar archives had errors:\nERROR: 000000.tar\n"
                )
            );
            continue;
        }
        let expected = stook_testkit::Snapshot::read_expected(&fixture(case).join("expected.json"));
        let compare = stook_testkit::Compare::zstash();
        let found = front.place.snapshot("out");
        let mut found = expected.unwrap().difference(&found, &compare);
        // It is gone from the tree, which zstash does not record.
        found.retain(|line| case != "volumes" || !line.starts_with("`a/one.bin`: only in"));
        assert_eq!(found, [""; 0], "{case}");
    }
}

#[test]
fn worker_lines_come_on_stdout_in_the_order_of_the_volumes() {
    let front = with_fixture("volumes");
    let ran = front.run_in("src", &["check", "--workers=3"]);
    let opened: Vec<&str> = ran
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("INFO: Opening tar archive zstash/"))
        .collect();
    let sorted = {
        let mut sorted = opened.clone();
        sorted.sort_unstable();
        sorted
    };
    assert!(opened.len() > 5, "{}", ran.text());
    assert_eq!(opened, sorted);
    assert!(ran.text().contains("DEBUG: Valid md5: "));
    assert!(!ran.stderr.contains("Checking "), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("DEBUG: Running zstash check with multiprocessing\n")
    );
}

#[test]
fn the_database_may_lack_the_tars_table() {
    let front = with_fixture("no-tars-table");
    let listed = front.stdout(&["ls", "--tars"]);
    assert!(
        listed.ends_with("\n\ntars table does not exist\n"),
        "{listed}"
    );
    assert!(!front.stdout(&["ls"]).contains(".tar"));
    let front = Front::with(&sample());
    let created = front.stderr(0, &["create", "--hpss=None", "--no_tars_md5", "."]);
    assert!(!created.contains("tar md5"), "{created}");
    assert!(
        front
            .stdout(&["ls", "--tars", "-l"])
            .ends_with("\ntars table does not exist\n")
    );
    front.stderr(0, &["check"]);
    front.place.write("src/new", "new");
    front.stderr(0, &["update"]);
    let listed = front.stdout(&["ls", "--tars"]);
    assert!(listed.ends_with("\n\nTars:\n000001.tar\n"), "{listed}");
}

#[test]
fn tars_are_chosen_by_number() {
    let front = with_fixture("volumes");
    let opened = |tars: &str| -> Vec<String> {
        let said = front.stderr(0, &["check", &format!("--tars={tars}")]);
        let opened = said
            .lines()
            .filter_map(|line| line.strip_prefix("INFO: Opening tar archive zstash/"));
        opened.map(ToOwned::to_owned).collect()
    };
    assert_eq!(opened("000002"), ["000002.tar"]);
    // Quotes may come literally.
    assert_eq!(opened("\"000009-\""), ["000009.tar", "00000a.tar"]);
    assert_eq!(
        opened("-1,3.tar-4"),
        ["000000.tar", "000001.tar", "000003.tar", "000004.tar"]
    );
    let none = front.stderr(1, &["check", "--tars=5-3"]);
    assert_eq!(
        none,
        "Traceback (most recent call last):\nFileNotFoundError: There was nothing to extract.\n"
    );
    let both = front.stderr(1, &["check", "--tars=5", "a"]);
    assert!(both.ends_with("ValueError: If --tars is used, <files> should not be listed.\n"));
    let nothing = front.stderr(1, &["ls", "nope"]);
    assert!(nothing.ends_with("FileNotFoundError: There was nothing to ls.\n"));
}

#[test]
fn a_wrong_md5_is_named_and_the_exit_code_says_so() {
    let front = Front::with(&sample());
    front.create();
    front.sql("update files set md5 = '00000000000000000000000000000000' where name = 'z'");
    for workers in [&[][..], &["--workers=2"]] {
        let arguments = [&["check"], workers].concat();
        let ran = front.run_in("src", &arguments);
        assert_eq!(ran.status, Some(1));
        let all = format!("{}{}", ran.text(), ran.stderr);
        assert!(all.contains("ERROR: md5 mismatch for: z\nERROR: md5 of extracted file: 25ed1bcb423b0b7200f485fc5ff71c8e\nERROR: md5 of original file:  00000000000000000000000000000000\n"), "{all}");
        let end = "ERROR: Encountered an error for files:\nERROR: z in 000000.tar\nERROR: The following tar archives had errors:\nERROR: 000000.tar\n";
        assert!(all.contains(end), "{all}");
    }
    let zstashs = front.run_with("src", &["check"], &[("STOOK_ZSTASH_EXIT", "0")]);
    assert_eq!(zstashs.status, Some(0));
}

/// zstash verifies regular files only, and only their newest versions.
#[test]
fn other_wrong_md5s_do_not_count_against_a_volume() {
    let front = Front::with(&sample());
    front.create();
    front.place.write("src/z", "newer");
    front.stderr(0, &["update"]);
    front.sql("update files set md5 = '00000000000000000000000000000000' where name in ('hard', 'soft') or (name = 'z' and tar = '000000.tar')");
    for workers in [&[][..], &["--workers=2"], &["--workers=7"]] {
        let arguments = [&["check"], workers].concat();
        let ran = front.run_in("src", &arguments);
        let all = format!("{}{}", ran.text(), ran.stderr);
        assert!(!all.contains("ERROR"), "{all}");
        assert!(all.contains("WARNING: the content of the hard link hard in 000000.tar does not have the md5 on record\n"), "{all}");
        assert_eq!(ran.status, Some(1));
    }
}

#[test]
fn times_are_compared_as_by_zstash() {
    let front = Front::with(&tree! { "f" => file(b"f").mtime(1_600_000_000, 0) });
    let set = |folder: &str, nanoseconds: u64| {
        let file = std::fs::File::options()
            .write(true)
            .open(front.place.path(folder).join("f"))
            .unwrap();
        let time = std::time::UNIX_EPOCH
            + std::time::Duration::from_nanos(1_600_000_000_000_000_000 + nanoseconds);
        file.set_modified(time).unwrap();
    };
    front.create();
    front.stderr_in("out", 0, &["extract", "--cache=../src/zstash"]);
    let not_extracted = |nanoseconds| {
        set("out", nanoseconds);
        front
            .stderr_in("out", 0, &["extract", "--cache=../src/zstash"])
            .contains("Not extracting f")
    };
    assert!(not_extracted(999_999_000));
    assert!(!not_extracted(1_000_000_000));
    set("src", 1_000_000_000);
    assert_eq!(front.stderr(0, &["update"]), "INFO: Nothing to update\n");
    set("src", 1_000_001_000);
    assert!(front.stderr(0, &["update"]).contains("INFO: Archiving f\n"));
}

const FORCE: &str = "--for-developers-force-database-corruption";

/// A way to record a volume wrongly, and what is said of it.
struct Forced {
    how: &'static str,
    simulated: &'static str,
    /// On record, oldest first.
    sizes: [u64; 2],
    found: &'static str,
    status: i32,
}

const FORCED: [Forced; 4] = [
    Forced {
        how: "simulate_row_existing",
        simulated: "row existing",
        sizes: [10240, 10240],
        found: "The most recent database entry has the same size as the actual file size: 10240.",
        status: 0,
    },
    Forced {
        how: "simulate_row_existing_bad_size",
        simulated: "row existing with bad size",
        sizes: [11240, 10240],
        found: "The most recent database entry has the same size as the actual file size: 10240.",
        status: 0,
    },
    Forced {
        how: "simulate_no_correct_size",
        simulated: "no correct size",
        sizes: [11240, 12240],
        found: "No database entry matches the actual file size: 10240.",
        status: 1,
    },
    Forced {
        how: "simulate_bad_size_for_most_recent",
        simulated: "bad size for most recent entry",
        sizes: [10240, 12240],
        found: "A database entry matches the actual file size, 10240, but it is not the most recent entry.",
        status: 1,
    },
];

impl Forced {
    fn is_existing(&self) -> bool {
        self.how.contains("row_existing")
    }

    /// Creates an archive this way; returns what is said.
    fn create(&self, option: &[&str], status: i32) -> (Front, String) {
        let front = Front::with(&tree! { "f" => file(b"f") });
        let create = [&["create", "--hpss=none", FORCE, self.how], option, &["."]].concat();
        let created = front.stderr(status, &create);
        (front, created)
    }
}

#[test]
fn duplicates_are_forced_and_found() {
    for forced in FORCED {
        let (front, created) = forced.create(&[], 0);
        let simulated = forced.simulated;
        let line =
            format!("INFO: TESTING/DEBUGGING ONLY: Simulating {simulated} for 000000.tar.\n");
        assert!(created.contains(&line), "{created}");
        let warned = created.contains("WARNING: Database corruption detected! 000000.tar is already in the database.\nWARNING: Adding a new entry for 000000.tar.\n");
        assert_eq!(warned, forced.is_existing());
        let [old, new] = forced.sizes;
        let query = "select size from tars order by id";
        let sizes = front.place.sql_text("src/zstash/index.db", query);
        assert_eq!(sizes, format!("{old} {new}"));
        let checked = front.stderr(forced.status, &["check"]);
        let corrupt = format!(
            "Database corruption detected! Found 2 database entries for 000000.tar, with sizes [{new}, {old}]\n"
        );
        let found = format!("WARNING: {corrupt}INFO: 000000.tar: {}\n", forced.found);
        assert!(checked.contains(&found), "{checked}");
        if forced.status == 1 {
            assert!(
                checked.contains("INFO: get: HPSS is unavailable\n"),
                "{checked}"
            );
            assert!(
                checked.contains("INFO: Retrying HPSS get: 1 tries remaining.\n"),
                "{checked}"
            );
            assert!(
                checked.contains(
                    "RuntimeError: zstash/000000.tar size does not match expected size.\n"
                ),
                "{checked}"
            );
            assert!(checked.ends_with("ERROR: 000000.tar\n"), "{checked}");
        }
        let strict = front.stderr(1, &["check", "--error-on-duplicate-tar"]);
        assert!(strict.contains(&format!("ERROR: {corrupt}")), "{strict}");
    }
}

#[test]
fn duplicates_are_replaced_or_refused() {
    for forced in FORCED {
        let (front, created) = forced.create(&["--overwrite-duplicate-tars"], 0);
        let updated = "WARNING: Updating existing tar 000000.tar to proceed.\n";
        assert_eq!(created.contains(updated), forced.is_existing());
        if !forced.is_existing() {
            continue;
        }
        let checked = front.stderr(0, &["check"]);
        assert!(checked.contains("INFO: 000000.tar: Found a single database entry.\nINFO: 000000.tar: Size check passed (10240 bytes)\n"));
        let (front, refused) = forced.create(&["--error-on-duplicate-tar"], 1);
        assert!(refused.contains("ERROR: Database corruption detected! 000000.tar is already in the database.\nTraceback (most recent call last):\nRuntimeError: "), "{refused}");
        assert_eq!(front.names(), "");
        assert_eq!(front.place.names("src/zstash"), ["index.db"]);
    }
}

#[test]
fn a_volume_that_is_not_on_record_is_said_to_be() {
    let front = Front::with(&sample());
    front.create();
    front.sql("delete from tars");
    let checked = front.stderr(1, &["check"]);
    assert!(checked.contains("ERROR: No database entries found for 000000.tar\n"));
}

#[test]
fn a_broken_link_that_is_followed_ends_create() {
    let front = Front::with(&tree! { "good" => file(b"good"), "broken" => symlink("nowhere") });
    let create = [
        "create",
        "--hpss=none",
        "--follow-symlinks",
        "--cache=../cache",
        ".",
    ];
    let created = front.stderr(1, &create);
    assert!(created.contains("ERROR: Archiving broken\n"), "{created}");
    assert!(created.contains("FileNotFoundError: "), "{created}");
    let end = "Traceback (most recent call last):\nException: Archive creation failed due to broken symlink.\n";
    assert!(created.ends_with(end), "{created}");
    assert_eq!(front.place.names("cache"), ["index.db"]);
    let rows = front
        .place
        .sql_text("cache/index.db", "select count(*) from files");
    assert_eq!(rows, "0");
    let extracted = front.stderr_in("out", 1, &["extract", "--hpss=none", "--cache=../cache"]);
    assert!(extracted.ends_with("FileNotFoundError: There was nothing to extract.\n"));
}

#[test]
fn the_source_keeps_its_time_and_the_volumes_lose_their_write_bit() {
    use std::os::unix::fs::MetadataExt;
    let front = Front::with(&sample());
    let modified = || {
        std::fs::metadata(front.place.path("src"))
            .unwrap()
            .mtime_nsec()
    };
    let before = modified();
    front.stderr(0, &["create", "--hpss=NONE", "--cache=../cache", "."]);
    assert_eq!(modified(), before);
    let mode = std::fs::metadata(front.place.path("cache/000000.tar"))
        .unwrap()
        .mode();
    assert_eq!(mode & 0o777, 0o444);
}

#[test]
fn volumes_are_the_bytes_of_zstash() {
    let front = Front::with(&sample());
    front.stderr(0, &["create", "--hpss=none", "--cache=../cache", "."]);
    front
        .place
        .stderr(&["create", "--compat", "zstash", "src", "arc"]);
    let [one, other] = ["cache", "arc"]
        .map(|folder| std::fs::read(front.place.path(folder).join("000000.tar")).unwrap());
    assert!(one == other);
    // 20 KiB as a part of a GiB.
    let front = Front::with(
        &tree! { "a" => file(vec![1; 9000]), "b" => file(vec![2; 9000]), "c" => file(vec![3; 9000]) },
    );
    front.stderr(
        0,
        &[
            "create",
            "--hpss=none",
            "--maxsize=0.000019073486328125",
            ".",
        ],
    );
    assert_eq!(
        front.place.names("src/zstash"),
        ["000000.tar", "000001.tar", "index.db"]
    );
}

#[test]
fn patterns_are_fnmatch_and_come_in_two_lists() {
    let front = Front::with(&tree! {
        "run/x.nc" => file(b"x"),
        "run/y.log" => file(b"y"),
        "top.nc" => file(b"t"),
        "emptyd" => dir(),
    });
    for (options, expected) in [
        (&["--include=*.nc"][..], "top.nc run/x.nc"),
        (&["--include=run"], ""),
        (&["--include=run/"], "run/x.nc run/y.log"),
        (&["--include=./top.nc"], ""),
        (
            &["--include=run/,top.nc", "--exclude=*.log"],
            "top.nc run/x.nc",
        ),
        (&["--exclude=run/, top.nc"], "top.nc emptyd"),
        (&["--exclude=emptyd/"], "top.nc emptyd run/x.nc run/y.log"),
    ] {
        let _ = std::fs::remove_dir_all(front.place.path("cache"));
        let all = [
            &["create", "--hpss=none", "--cache=../cache"],
            options,
            &["."],
        ]
        .concat();
        front.stderr(0, &all);
        let query = "select name from files order by id";
        assert_eq!(
            front.place.sql_text("cache/index.db", query),
            expected,
            "{options:?}"
        );
    }
    let error = front.stderr(1, &["create", "--hpss=none", "--include=a,,b", "."]);
    assert!(error.ends_with("IndexError: string index out of range\n"));
}

#[test]
fn what_fails_is_named_at_the_end() {
    let front = Front::with(&tree! { "good" => file(b"good"), "bad" => file(b"bad").mode(0) });
    std::os::unix::fs::chown(front.place.path("src"), Some(65_534), None).ok();
    let arguments = [
        "zstash",
        "create",
        "--hpss=none",
        "--cache=../src/cache",
        "src",
    ];
    let ran = front.place.run_as_nobody(&arguments);
    if !ran.stderr.contains("WARNING") {
        return stook_testkit::skip!("nobody cannot write here: {}", ran.stderr);
    }
    assert_eq!(ran.status, Some(1));
    let said = said(&ran);
    assert!(said.contains("INFO: Archiving bad\nTraceback (most recent call last):\nPermissionError: [Errno 13] Permission denied: 'bad'\nERROR: Archiving bad\n"), "{said}");
    assert!(
        said.ends_with("WARNING: Some files could not be archived\nERROR: Failed to archive bad\n"),
        "{said}"
    );
}

#[test]
fn the_table_of_phases_ends_a_verbose_run() {
    let front = Front::with(&sample());
    for arguments in [
        &["create", "--hpss=none", "-v", "."][..],
        &["update", "--dry-run", "-v"],
        &["update", "-v"],
        &["check", "-v"],
        &["ls", "-v"],
    ] {
        let said = front.stderr(0, arguments);
        let table: Vec<&str> = said.lines().rev().take(9).collect();
        let first_words: Vec<&str> = table
            .iter()
            .rev()
            .map(|line| line.get(..10).unwrap_or(line).trim_end())
            .collect();
        assert_eq!(
            first_words,
            [
                "phase",
                "open index",
                "gather",
                "compare",
                "plan",
                "add files",
                "commit",
                "total",
                "files chec"
            ]
        );
        assert!(said.contains("DEBUG: "), "{said}");
        let seconds = |line: &str| -> f64 {
            line[10..]
                .split_whitespace()
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        let total = seconds(table[1]);
        let parts: f64 = table[2..8].iter().map(|line| seconds(line)).sum();
        assert!(parts >= 0.95 * total - 0.004, "{said}");
    }
    // And only then.
    assert!(!front.stderr(0, &["check"]).contains("DEBUG"));
}

#[test]
fn chgrp_needs_hpss() {
    let front = Front::with(&tree! {});
    assert_eq!(
        front.stderr(0, &["chgrp", "-R", "group", "none"]),
        "INFO: chgrp: HPSS is unavailable\n"
    );
}

#[test]
fn the_link_is_made_on_request_and_replaces_nothing() {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let install = |zstash: &str| {
        let stook = env!("CARGO_BIN_EXE_stook");
        let dest = place.path("dest");
        let mut command = place.command_of(&root.join(".ci/install"), &[stook]);
        Ran::of(command.arg(dest).env("ZSTASH", zstash).output().unwrap())
    };
    assert_eq!(install("").status, Some(0));
    assert_eq!(place.names("dest/bin"), ["stook"]);
    for _ in 0..2 {
        assert_eq!(install("1").status, Some(0));
        assert_eq!(place.names("dest/bin"), ["stook", "zstash"]);
    }
    let version = place.command_of(&place.path("dest/bin/zstash"), &["version"]);
    assert_eq!(Ran::of({ version }.output().unwrap()).text(), "v1.6.0\n");
    std::fs::remove_file(place.path("dest/bin/zstash")).unwrap();
    place.write("dest/bin/zstash", "another");
    let refused = install("1");
    assert_eq!(refused.status, Some(1));
    assert!(
        refused.stderr.contains("is another program, and stays"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        std::fs::read(place.path("dest/bin/zstash")).unwrap(),
        b"another"
    );
}
