//! An index with a row, a page or a bit that is not as it was written: `check` names it, and all else
//! that reads the archive does without that row alone.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

use stook_archive::{ArchiveError, AsOf, CheckOptions, ListOptions};
use stook_index::{Index, Mtime, VolumeId};
use stook_testkit::{Tree, file, tree};
use stook_tree::Pattern;

use crate::by_path::{cat, check, diff, list, run_counts, update};
use crate::recorder::Recorder;
use crate::scene::{Scene, options, python};

/// Runs SQL on the index of an archive; false, said aloud, where there is no Python.
fn sql(archive: &Path, statements: &str) -> bool {
    let script = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.executescript(sys.argv[2])\nc.close()";
    python(script, &[&archive.join("index.db"), Path::new(statements)]).is_some()
}

fn index_damages(archive: &Path) -> Vec<String> {
    damages(archive, &[])
}

fn damages(archive: &Path, patterns: &[&str]) -> Vec<String> {
    let recorder = Recorder::new();
    let options = CheckOptions {
        patterns: patterns
            .iter()
            .map(|pattern| Pattern::new(pattern.as_bytes()))
            .collect(),
        ..CheckOptions::default()
    };
    let report = check(archive, &options, &recorder).unwrap();
    let texts = recorder.damage_texts();
    assert_eq!(report.damages, texts.len() as u64);
    texts
}

/// Names that are listed, and what fails.
fn listed(archive: &Path, pattern: Option<&str>) -> (Vec<String>, Vec<String>) {
    let options = ListOptions {
        patterns: pattern
            .iter()
            .map(|pattern| Pattern::new(pattern.as_bytes()))
            .collect(),
        as_of: AsOf::Now,
        all_versions: false,
    };
    let recorder = Recorder::new();
    let mut names = Vec::new();
    let report = list(archive, &options, &recorder, |row| {
        names.push(String::from_utf8_lossy(row.name).into_owned());
        ControlFlow::Continue(())
    })
    .unwrap();
    let failures = recorder.failure_texts();
    assert_eq!(report.failed, failures.len() as u64);
    assert_eq!(report.members, names.len() as u64);
    (names, failures)
}

/// Two versions of `a`, and two other files.
fn two_versions() -> Scene {
    let scene = Scene::archived(&tree! {
        "a" => file(b"old"), "b" => file(b"bb"), "c" => file(b"ccc"),
    });
    scene.lay(&tree! {"a" => file(b"newer").mtime(1_700_000_000, 0)});
    scene.update();
    scene
}

#[test]
fn a_bad_row_fails_alone() {
    for (column, value, why) in [
        (
            "mtime",
            "'yesterday'",
            "its mtime is not a time of the form `YYYY-MM-DD HH:MM:SS`",
        ),
        ("md5", "'x'", "its md5 is not 32 hexadecimal digits"),
        ("size", "NULL", "its size is not a number of bytes"),
        ("tar", "'0.tar'", "its tar is not the name of a volume"),
        ("offset", "-1", "its offset is not a number of bytes"),
    ] {
        let scene = two_versions();
        let archive = scene.archive();
        let id = "(SELECT max(id) FROM files WHERE name = 'a')";
        if !sql(
            &archive,
            &format!("UPDATE files SET {column} = {value} WHERE id = {id}"),
        ) {
            return;
        }
        let place = "row 4 of `files`";
        let failure = format!("cannot read `a`: {place} in index.db: {why}");
        assert_eq!(
            listed(&archive, None),
            (vec!["b".to_owned(), "c".to_owned()], vec![failure.clone()])
        );
        assert_eq!(listed(&archive, Some("a")), (vec![], vec![failure.clone()]));
        assert_eq!(listed(&archive, Some("b")), (vec!["b".to_owned()], vec![]));

        let recorder = Recorder::new();
        let extracted = scene.extract_with(AsOf::Now, &recorder);
        assert_eq!(recorder.failure_texts(), [failure]);
        assert!(extracted.get("a").is_none() && extracted.get("b").is_some());

        let damage = format!("index.db, {place}, `a`: {why}");
        assert!(index_damages(&archive).contains(&damage), "{column}");
        assert_eq!(damages(&archive, &["b"]), [damage]);

        let error = cat(&archive, b"a", AsOf::Now, &mut Vec::new()).unwrap_err();
        assert!(
            error.is_damage() && error.to_string().contains(why),
            "{error}"
        );
        let mut content = Vec::new();
        cat(&archive, b"b", AsOf::Now, &mut content).unwrap();
        assert_eq!(content, b"bb");

        // As it was archived, but nothing says so any more.
        assert_eq!(scene.diff(), ["changed a"]);
        assert_eq!(scene.update().members, 1);
        assert_eq!(scene.diff(), [""; 0]);
        scene.assert_extracts_to_source();
    }
}

#[test]
fn a_row_without_a_name_fails_and_its_file_is_archived_again() {
    let scene = two_versions();
    let archive = scene.archive();
    if !sql(&archive, "UPDATE files SET name = NULL WHERE name = 'b'") {
        return;
    }
    let failure = "cannot read `index.db`: row 2 of `files`: it has no name";
    assert_eq!(
        listed(&archive, None),
        (
            vec!["c".to_owned(), "a".to_owned()],
            vec![failure.to_owned()]
        )
    );
    // It may be the one that was asked for.
    assert_eq!(
        listed(&archive, Some("b")),
        (vec![], vec![failure.to_owned()])
    );
    let error = cat(&archive, b"b", AsOf::Now, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}");
    let mut content = Vec::new();
    cat(&archive, b"a", AsOf::Now, &mut content).unwrap();
    assert_eq!(content, b"newer");
    let recorder = Recorder::new();
    let found = diff(
        scene.source(),
        &archive,
        &stook_archive::DiffOptions::default(),
        &recorder,
    );
    let found = found.unwrap();
    assert_eq!(recorder.failure_texts(), [failure]);
    assert_eq!(
        (found.differences.len(), found.unchanged, found.failed),
        (1, 2, 1)
    );
    assert_eq!(scene.update().members, 1);
    let mut content = Vec::new();
    cat(&archive, b"b", AsOf::Now, &mut content).unwrap();
    assert_eq!(content, b"bb");
}

#[test]
fn a_deletion_or_a_run_that_cannot_be_read_is_told() {
    let scene = two_versions();
    let archive = scene.archive();
    fs::remove_file(scene.path("b")).unwrap();
    scene.update();
    assert_eq!(listed(&archive, None).1, [""; 0]);
    if !sql(&archive, "UPDATE stook_deleted SET name = NULL") {
        return;
    }
    let (names, failures) = listed(&archive, None);
    assert_eq!(names, ["b", "c", "a"]);
    assert_eq!(
        failures,
        ["cannot read `index.db`: row 1 of `stook_deleted`: it has no name"]
    );
    assert_eq!(
        index_damages(&archive),
        ["index.db, row 1 of `stook_deleted`: its name is not text in UTF-8"]
    );
    sql(
        &archive,
        "UPDATE stook_deleted SET name = 'b'; UPDATE stook_runs SET started = 5 WHERE id = 1",
    );
    let why = "its started is not a time of the form `YYYY-MM-DD HH:MM:SS`";
    let recorder = Recorder::new();
    let (runs, failed) = run_counts(&archive, &recorder).unwrap();
    assert_eq!((runs.len(), failed), (3, 1));
    let failure = format!("cannot read `index.db`: row 1 of `stook_runs`: {why}");
    assert_eq!(recorder.failure_texts(), std::slice::from_ref(&failure));
    // The run that found the name deleted is a later one.
    assert_eq!(
        listed(&archive, None),
        (vec!["c".to_owned(), "a".to_owned()], vec![failure])
    );
    assert_eq!(
        index_damages(&archive),
        [format!("index.db, row 1 of `stook_runs`: {why}")]
    );
}

fn many_files() -> Tree {
    let mut tree = tree! {};
    for number in 0..400 {
        tree.insert(
            format!("directory/file-{number:04}"),
            file(format!("content of {number}")),
        );
    }
    tree
}

/// Overwrites the page of the index that holds a text.
fn tear_page(archive: &Path, text: &str) {
    let path = archive.join("index.db");
    let bytes = fs::read(&path).unwrap();
    let mut windows = bytes.windows(text.len());
    let at = windows
        .position(|window| window == text.as_bytes())
        .unwrap();
    let index = fs::File::options().write(true).open(&path).unwrap();
    index
        .write_all_at(&[0xa5; 4096], (at / 4096 * 4096) as u64)
        .unwrap();
}

#[test]
fn members_whose_rows_lie_on_other_pages_come_back() {
    let scene = Scene::archived(&many_files());
    let archive = scene.archive();
    tear_page(&archive, "directory/file-0200");
    let (names, failures) = listed(&archive, None);
    assert!((300..401).contains(&names.len()), "{}", names.len());
    assert_eq!(failures.len(), 1);
    let rows = "cannot read `index.db`: rows ";
    assert!(
        failures[0].starts_with(rows) && failures[0].contains("cannot be read: "),
        "{failures:?}"
    );

    let recorder = Recorder::new();
    let extracted = scene.extract_with(AsOf::Now, &recorder);
    assert_eq!(recorder.failure_texts(), failures);
    assert_eq!(extracted.len(), names.len());

    let damages = index_damages(&archive);
    assert!(
        damages
            .iter()
            .any(|damage| damage.starts_with("index.db, rows ")),
        "{damages:#?}"
    );
    assert!(
        damages
            .iter()
            .any(|damage| damage.contains("belong to no member")),
        "{damages:#?}"
    );
    let mut content = Vec::new();
    cat(&archive, b"directory/file-0399", AsOf::Now, &mut content).unwrap();
    assert_eq!(content, b"content of 399");
    let found = cat(&archive, b"directory/file-0200", AsOf::Now, &mut Vec::new());
    assert!(found.unwrap_err().is_damage());

    let recorder = Recorder::new();
    let found = diff(
        scene.source(),
        &archive,
        &stook_archive::DiffOptions::default(),
        &recorder,
    );
    let found = found.unwrap();
    assert_eq!(recorder.failure_texts(), failures);
    assert_eq!(found.differences.len(), 401 - names.len());
    // A write to pages that do not fit together might lose more.
    let before = fs::read(archive.join("index.db")).unwrap();
    let refused = update(scene.source(), &archive, &options(), &Recorder::new()).unwrap_err();
    assert!(
        refused.to_string().contains("cannot be read: "),
        "{refused}"
    );
    assert!(matches!(refused, ArchiveError::Index(error) if error.is_damage()));
    assert!(fs::read(archive.join("index.db")).unwrap() == before);
}

#[test]
fn check_says_so_when_no_member_is_affected() {
    let scene = two_versions();
    let archive = scene.archive();
    fs::remove_file(scene.path("b")).unwrap();
    scene.update();
    scene.assert_clean();
    let pristine = fs::read(archive.join("index.db")).unwrap();
    let script = "import sqlite3, sys\nfor row in sqlite3.connect(sys.argv[1]).execute('SELECT name, rootpage FROM sqlite_master WHERE name LIKE \"stook%\"'): print(*row)";
    let Some(pages) = python(script, &[&archive.join("index.db")]) else {
        return;
    };
    assert_eq!(pages.lines().count(), 12);
    for line in pages.lines() {
        let (table, page) = line.split_once(' ').unwrap();
        let start = (page.parse::<usize>().unwrap() - 1) * 4096;
        let mut bytes = pristine.clone();
        bytes[start..start + 4096].fill(0x5a);
        fs::write(archive.join("index.db"), bytes).unwrap();
        let recorder = Recorder::new();
        let checked = check(&archive, &CheckOptions::default(), &recorder);
        let has_seen = checked.is_err() || !recorder.damage_texts().is_empty();
        assert!(has_seen, "{table}");
        fs::write(archive.join("index.db"), &pristine).unwrap();
    }
    scene.assert_clean();
}

/// Columns in which another well-formed value may stand without a contradiction. docs/format.md lists them.
const UNSEEN: [&str; 4] = ["files.id", "files.rowid", "tars.id", "tars.rowid"];

/// Tells for each flip what reads differently by SQLite: nothing, columns, or that nothing reads at all.
const TRUTH: &str = r#"
import os, sqlite3, sys
pristine = open(sys.argv[1], "rb").read()
scratch = sys.argv[3]
tables = ["config", "files", "tars", "stook_meta", "stook_runs", "stook_deleted", "stook_raw_names", "stook_checks",
    "stook_attributes", "stook_frames", "stook_witnesses"]
def dump(data):
    open(scratch, "wb").write(data)
    c = sqlite3.connect("file:%s?mode=ro" % scratch, uri=True)
    c.text_factory = lambda b: ("text", b)
    found = {}
    for table in tables:
        what = "1 AS one, * FROM %s" if table == "stook_witnesses" else "rowid AS rowid, * FROM %s NOT INDEXED ORDER BY rowid"
        rows = c.execute("SELECT " + what % table)
        names = ["rowid"] + [d[0] for d in rows.description[1:]]
        found[table] = names, rows.fetchall()
    c.close()
    return found
expected = dump(pristine)
for line in open(sys.argv[2]):
    at, bit = map(int, line.split())
    data = bytearray(pristine)
    data[at] ^= 1 << bit
    try:
        found = dump(bytes(data))
    except Exception:
        print("unreadable")
        continue
    differing = set()
    for table in tables:
        (names, rows), (other_names, other_rows) = expected[table], found[table]
        if names != other_names or len(rows) != len(other_rows):
            differing.add(table + ".*")
            continue
        for row, other in zip(rows, other_rows):
            differing |= {table + "." + n for n, a, b in zip(names, row, other) if (type(a), a) != (type(b), b)}
    print(*sorted(differing))
"#;

/// An archive of two runs, with deletions, names that are not UTF-8, and checks that were passed.
fn of_two_runs() -> Scene {
    let mut tree = many_files();
    tree.insert(b"raw-\xff", file(b"name"));
    tree.insert(b"raw-\xfe-100%", file(b"name"));
    let scene = Scene::archived(&tree);
    for number in 20..26 {
        fs::remove_file(scene.path(&format!("directory/file-{number:04}"))).unwrap();
        fs::write(
            scene.path(&format!("directory/file-{:04}", number + 50)),
            b"changed",
        )
        .unwrap();
    }
    {
        use std::os::unix::ffi::OsStrExt;
        let raw = std::ffi::OsStr::from_bytes(b"raw-\xff");
        fs::remove_file(scene.source().join(raw)).unwrap();
    }
    scene.update();
    let mut index = Index::open_write(scene.archive().join("index.db")).unwrap();
    let passed = [0, 1].map(|number| {
        let stamp = format!("{number}0240 77 1700000000.000000000 1700000000.123456789");
        (VolumeId::plain(number), Some(stamp))
    });
    index
        .record_checks(&passed.into(), Mtime(1_700_000_000_000_000))
        .unwrap();
    scene
}

/// Where bytes are not zero, and their neighbours.
fn is_used(bytes: &[u8], at: usize) -> bool {
    let is_zero = |at: usize| bytes.get(at).is_none_or(|&byte| byte == 0);
    !(is_zero(at) && is_zero(at + 1) && is_zero(at.saturating_sub(1)))
}

/// The same places each time.
fn places(bytes: &[u8], count: usize) -> Vec<(usize, u32)> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap()
    };
    let mut places = Vec::new();
    while places.len() < count {
        let (at, bit) = (next() % bytes.len(), u32::try_from(next() % 8).unwrap());
        if is_used(bytes, at) || places.len() % 10 == 0 {
            places.push((at, bit));
        }
    }
    places
}

#[test]
fn check_sees_every_flipped_bit_of_an_index_that_a_second_witness_can_show() {
    let scene = of_two_runs();
    let archive = scene.archive();
    scene.assert_clean();
    let path = archive.join("index.db");
    let pristine = fs::read(&path).unwrap();
    let places = places(&pristine, FLIPS);
    let list: String = places
        .iter()
        .map(|(at, bit)| format!("{at} {bit}\n"))
        .collect();
    fs::write(scene.beside("places"), list).unwrap();
    let Some(truth) = python(
        TRUTH,
        &[&path, &scene.beside("places"), &scene.beside("scratch")],
    ) else {
        return;
    };
    assert_eq!(truth.lines().count(), FLIPS);
    let (mut seen, mut meaningless, mut excepted) = (0, 0, 0);
    let mut not_visited = Vec::new();
    for ((at, bit), differing) in places.into_iter().zip(truth.lines()) {
        let mut bytes = pristine.clone();
        bytes[at] ^= 1 << bit;
        fs::write(&path, &bytes).unwrap();
        let recorder = Recorder::new();
        let options = CheckOptions {
            whole_volumes: true,
            ..CheckOptions::default()
        };
        let checked = check(&archive, &options, &recorder);
        let has_seen = checked.is_err() || !recorder.damage_texts().is_empty();
        read_everything(&archive);
        if has_seen {
            seen += 1;
        } else if differing.is_empty() {
            meaningless += 1;
        } else if differing.split(' ').all(|column| UNSEEN.contains(&column)) {
            excepted += 1;
        } else {
            not_visited.push(format!("byte {at}, bit {bit}: {differing}"));
        }
    }
    println!("seen {seen}, of no meaning {meaningless}, excepted {excepted}");
    assert_eq!(not_visited, [""; 0]);
    assert!(
        seen > FLIPS / 2 && excepted < FLIPS / 20,
        "{seen} {excepted}"
    );
}

const FLIPS: usize = 250;

/// Whatever a flipped bit does to the index, nothing panics or goes on for ever.
fn read_everything(archive: &Path) {
    let options = ListOptions {
        patterns: Vec::new(),
        as_of: AsOf::Now,
        all_versions: false,
    };
    let _ = list(archive, &options, &Recorder::new(), |_| {
        ControlFlow::Continue(())
    });
    let _ = run_counts(archive, &Recorder::new());
    let _ = cat(archive, b"directory/file-0300", AsOf::Now, &mut Vec::new());
}
