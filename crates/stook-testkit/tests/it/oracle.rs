//! The oracle must write the very bytes that zstash 1.6.0 wrote.
//!
//! The golden volumes are unpacked with Python's `tarfile` and archived again. Owners come back only for root, so
//! others skip the comparison of bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use stook_testkit::oracle::{Oracle, OracleRow};
use stook_testkit::{Compare, Kind, Snapshot, TempDir, TempTree, Tree, tree};

fn fixture(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stook-archive/tests/fixtures/zstash")
        .join(case)
}

/// Returns the rows, or nothing (with a line that says so) where there is no Python.
fn run(oracle: &Oracle, source: &Path, volumes: &Path) -> Option<Vec<OracleRow>> {
    match oracle.write(source, volumes) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            stook_testkit::skip!("python3 is not installed");
            None
        }
        rows => Some(rows.unwrap()),
    }
}

/// Unpacks volumes of a golden archive, in order, with owners and times; tells whether that worked out fully.
fn unpack(case: &str, volumes: &[&str], into: &Path) -> bool {
    let program = r"
import os, sys, tarfile
for path in sys.argv[2:]:
    with tarfile.open(path) as volume:
        volume.extractall(sys.argv[1])
        for link in filter(tarfile.TarInfo.issym, volume):
            os.utime(os.path.join(sys.argv[1], link.name), (link.mtime, link.mtime), follow_symlinks=False)
";
    let paths = volumes
        .iter()
        .map(|name| fixture(case).join("archive").join(name));
    let Ok(status) = Command::new("python3")
        .args(["-W", "ignore", "-c", program])
        .arg(into)
        .args(paths)
        .status()
    else {
        stook_testkit::skip!("python3 is not installed");
        return false;
    };
    assert!(status.success());
    if rustix::process::geteuid().is_root() {
        return true;
    }
    stook_testkit::skip!("only root can restore the owners of the golden archives");
    false
}

/// Returns the lines of `zstash ls -l` for these volumes, without the ids.
fn golden_rows(case: &str, volumes: &[&str]) -> Vec<Vec<u8>> {
    let text = std::fs::read(fixture(case).join("ls-l.txt")).unwrap();
    let lines = text
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter(|line| !line.is_empty());
    let rows = lines.filter_map(|line| {
        let fields: Vec<&[u8]> = line.splitn(2, |byte| *byte == b'\t').collect();
        fields.get(1).map(|rest| rest.to_vec())
    });
    rows.filter(|row| {
        volumes
            .iter()
            .any(|name| contains(row, format!("\t{name}\t").as_bytes()))
    })
    .collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn as_listed(row: &OracleRow) -> Vec<u8> {
    let md5 = row.md5.as_deref().unwrap_or("None");
    let rest = format!(
        "\t{}\t{}\t{md5}\t{}\t{}\t",
        row.size, row.mtime, row.volume, row.offset
    );
    [row.name.as_slice(), rest.as_bytes()].concat()
}

fn assert_rewrites(case: &str, volumes: &[&str], oracle: &Oracle) {
    let directory = TempDir::new().unwrap();
    let (source, written) = (directory.join("source"), directory.join("written"));
    if !unpack(case, volumes, &source) {
        return;
    }
    let Some(rows) = run(oracle, &source, &written) else {
        return;
    };
    for name in volumes {
        let golden = std::fs::read(fixture(case).join("archive").join(name)).unwrap();
        let ours = std::fs::read(written.join(name)).unwrap();
        assert!(
            ours == golden,
            "{case}/{name}: {} bytes instead of {}",
            ours.len(),
            golden.len()
        );
    }
    if !rows.iter().any(|row| row.name.contains(&b'\n')) {
        let listed: Vec<Vec<u8>> = rows.iter().map(as_listed).collect();
        assert_eq!(listed, golden_rows(case, volumes), "{case}");
    }
}

#[test]
fn rewrites_one_volume_byte_for_byte() {
    assert_rewrites("basic", &["000000.tar"], &Oracle::default());
    assert_rewrites("odd-names", &["000000.tar"], &Oracle::default());
    assert_rewrites("no-tars-table", &["000000.tar"], &Oracle::default());
}

#[test]
fn splits_volumes_as_zstash_does() {
    let names: Vec<String> = (0..FIRST_UPDATE)
        .map(|number| format!("{number:06x}.tar"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_rewrites(
        "volumes",
        &names,
        &Oracle {
            maxsize: Some(21_474),
            ..Oracle::default()
        },
    );
}

/// The golden archive `volumes` was created with this many volumes; the rest came with its updates.
const FIRST_UPDATE: u32 = 8;

#[test]
fn golden_contents_match_their_expected_facts() {
    let directory = TempDir::new().unwrap();
    let source = directory.join("source");
    if unpack("basic", &["000000.tar"], &source) {
        let expected = Snapshot::read_expected(&fixture("basic").join("expected.json")).unwrap();
        let unpacked = Snapshot::take(&source).unwrap();
        assert_eq!(expected.difference(&unpacked, &Compare::zstash()), [""; 0]);
    }
}

#[test]
fn every_expected_file_can_be_read() {
    for case in std::fs::read_dir(fixture("")).unwrap() {
        let file = case.unwrap().path().join("expected.json");
        if file.exists() {
            assert!(
                !Snapshot::read_expected(&file).unwrap().is_empty(),
                "{}",
                file.display()
            );
        }
    }
}

#[test]
fn order_is_by_directory_then_name() {
    let tree = tree! {
        "a.txt" => file(b""), "b" => file(b""), "A/f" => file(b""), "a/f" => file(b""), "a-b/f" => file(b""),
        "a.b/f" => file(b""), "a/z/f" => file(b""), "z/" => dir(), "to-dir" => symlink("a"), "archive/x" => file(b""),
    };
    let written = TempTree::new(&tree).unwrap();
    let oracle = Oracle {
        exclude: Some(written.path().join("archive")),
        ..Oracle::default()
    };
    let Some(rows) = run(&oracle, written.path(), &written.path().join("archive")) else {
        return;
    };
    let names: Vec<&str> = rows
        .iter()
        .map(|row| std::str::from_utf8(&row.name).unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "a.txt", "b", "A/f", "a/f", "a-b/f", "a.b/f", "a/z/f", "to-dir", "z"
        ]
    );
}

#[test]
fn hard_links_carry_their_data_and_sockets_are_skipped() {
    let tree = tree! {
        "a" => file(b"shared"), "b" => hardlink("a"), "s" => socket(), b"raw-\xff" => file(b"r"), "p" => fifo(),
    };
    let written = TempTree::new(&tree).unwrap();
    let volumes = written.beside("volumes");
    let Some(rows) = run(&Oracle::default(), written.path(), &volumes) else {
        return;
    };
    let by_name: BTreeMap<&[u8], &OracleRow> =
        rows.iter().map(|row| (row.name.as_slice(), row)).collect();
    assert_eq!(by_name.len(), 4);
    assert_eq!(
        (by_name[&b"b"[..]].size, &by_name[&b"b"[..]].md5),
        (6, &by_name[&b"a"[..]].md5)
    );
    assert!(by_name.contains_key(&b"raw-\xff"[..]));
    let volume = std::fs::read(volumes.join("000000.tar")).unwrap();
    let header = usize::try_from(by_name[&b"b"[..]].offset).unwrap() + 1024;
    assert_eq!(
        (volume[header + 156], &volume[header + 512..header + 518]),
        (b'1', &b"shared"[..])
    );
}

#[test]
fn an_update_archives_only_the_named_paths_into_the_next_volume() {
    let written = TempTree::new(&Tree::basic()).unwrap();
    let only = Some(vec![b"old".to_vec(), b"a/one.bin".to_vec()]);
    let oracle = Oracle {
        first_volume: 0x1f,
        only,
        ..Oracle::default()
    };
    let Some(rows) = run(&oracle, written.path(), &written.beside("volumes")) else {
        return;
    };
    let rows: Vec<(&[u8], &str)> = rows
        .iter()
        .map(|row| (row.name.as_slice(), row.volume.as_str()))
        .collect();
    assert_eq!(
        rows,
        [(&b"old"[..], "00001f.tar"), (b"a/one.bin", "00001f.tar")]
    );
    let missing = Oracle::default().write(&written.beside("missing"), &written.beside("none"));
    assert!(missing.is_err_and(|error| error.to_string().contains("FileNotFoundError")));
}

#[test]
fn the_torture_tree_goes_in_whole() {
    let written = TempTree::new(&Tree::torture().without_xattrs()).unwrap();
    let Some(rows) = run(
        &Oracle::default(),
        written.path(),
        &written.beside("volumes"),
    ) else {
        return;
    };
    let listed: BTreeSet<Vec<u8>> = rows.into_iter().map(|row| row.name).collect();
    let snapshot = Snapshot::take(written.path()).unwrap();
    let parents: BTreeSet<&[u8]> = snapshot
        .entries()
        .filter_map(|(path, _)| parent_of(path))
        .collect();
    let archived = snapshot
        .entries()
        .filter(|(path, facts)| facts.kind != Kind::Socket && !parents.contains(path));
    assert_eq!(listed, archived.map(|(path, _)| path.to_vec()).collect());
}

fn parent_of(path: &[u8]) -> Option<&[u8]> {
    path.iter()
        .rposition(|byte| *byte == b'/')
        .map(|end| &path[..end])
}
