//! What stook writes in its own dialect, read by Python's `tarfile` and `sqlite3`, GNU tar and bsdtar.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use stook_archive::WriteOptions;
use stook_testkit::{Compare, Fact, Kind, Snapshot, Tree};

use crate::folder::{all_rows, as_zstash, hex, volumes_in};
use crate::recorder::Recorder;
use crate::scene::{Scene, options, python};

/// Prints name, type, target and the MD5 of the content of every member of every volume, and its offset.
const READ_WITH_TARFILE: &str = r#"
import hashlib, os, sys, tarfile
folder = sys.argv[1]
for volume in sorted(name for name in os.listdir(folder) if name.endswith(".tar")):
    with tarfile.open(os.path.join(folder, volume)) as tar:
        for member in tar:
            md5 = hashlib.md5()
            if member.isreg():
                with tar.extractfile(member) as file:
                    while data := file.read(1 << 20):
                        md5.update(data)
            name = member.name.encode("utf-8", "surrogateescape").hex()
            target = member.linkname.encode("utf-8", "surrogateescape").hex()
            content = md5.hexdigest() if member.isreg() else "None"
            kind = {b"0": "file", b"1": "link", b"2": "symlink", b"3": "char", b"4": "block", b"5": "dir", b"6": "fifo"}[member.type]
            print(volume, member.offset, name, kind, content, target, sep="\t")
"#;

fn kind_of(facts: &stook_testkit::Facts) -> &'static str {
    match facts.kind {
        Kind::File => "file",
        Kind::Directory => "dir",
        Kind::Symlink => "symlink",
        Kind::Fifo => "fifo",
        Kind::CharacterDevice => "char",
        Kind::BlockDevice => "block",
        _ => "other",
    }
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn pythons_tarfile_reads_what_stook_writes() {
    let scene = Scene::new(&Tree::torture().without_xattrs());
    let write = WriteOptions {
        volume_bytes: Some(400 << 10),
        ..options()
    };
    scene.create_with(&write, &Recorder::new());
    let Some(printed) = python(READ_WITH_TARFILE, &[&scene.archive()]) else {
        return;
    };
    let source = scene.snapshot();
    let rows = all_rows(&scene.archive());
    let expected: Vec<String> = rows
        .iter()
        .map(|row| {
            let facts = source.get(&row.name).unwrap();
            let target = hex_of(facts.target.as_deref().unwrap_or_default());
            let md5 = facts.md5.as_deref().unwrap_or("None");
            let (name, kind) = (hex_of(&row.name), kind_of(facts));
            format!(
                "{}\t{}\t{name}\t{kind}\t{md5}\t{target}",
                row.volume, row.offset
            )
        })
        .collect();
    let printed: Vec<&str> = printed.lines().collect();
    for (printed, expected) in printed.iter().zip(&expected) {
        assert_eq!(printed, expected);
    }
    assert_eq!(printed.len(), expected.len());
}

/// Runs another tar program on every volume in turn; returns what it wrote to its error output.
fn extract_with(program: &mut dyn FnMut() -> Command, archive: &Path, into: &Path) -> String {
    std::fs::create_dir(into).unwrap();
    let mut messages = String::new();
    for (name, _) in volumes_in(archive) {
        let output = program()
            .envs([("LC_ALL", "C.UTF-8"), ("TZ", "UTC")])
            .arg("-xpf")
            .arg(archive.join(&name))
            .arg("-C")
            .arg(into)
            .output()
            .unwrap();
        messages += &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {messages}");
    }
    messages
}

fn has_program(program: &str, banner: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    let is_there = output.is_ok_and(|output| output.stdout.starts_with(banner.as_bytes()));
    if !is_there {
        stook_testkit::skip!("there is no {banner}");
    }
    is_there
}

/// Everything but hard links, which are files of their own to others, and sockets.
fn assert_read_back(scene: &Scene, into: &Path, facts: &Compare) {
    assert_some_read_back(scene, into, facts, |_| true);
}

/// The same, of those paths only that are wanted.
fn assert_some_read_back(
    scene: &Scene,
    into: &Path,
    facts: &Compare,
    is_wanted: impl Fn(&[u8]) -> bool,
) {
    let mut source = scene.snapshot();
    source.retain(|path, facts| facts.kind != Kind::Socket && is_wanted(path));
    let mut extracted = Snapshot::take(into).unwrap();
    extracted.retain(|path, _| is_wanted(path));
    let difference = source.difference(&extracted, &facts.clone().without(Fact::Links));
    assert_eq!(difference, [""; 0]);
}

/// The facts that a program restores for this user.
fn restorable() -> Compare {
    if stook_sys::is_root() {
        return Compare::everything().without(Fact::Xattrs);
    }
    stook_testkit::skip!("set-id bits and owners, which only root can bring back");
    Compare::content()
        .with(Fact::Mtime)
        .with(Fact::DirectoryMtime)
}

/// It finds times before 1970 and after today implausible.
fn gnu_tar(arguments: &[&str]) -> Command {
    let mut tar = Command::new("tar");
    tar.arg("--warning=no-timestamp").args(arguments);
    tar
}

/// A directory's times need the delay: in zstash's order, `a-b/f` stands between `a/f` and `a/z/f`.
#[test]
fn gnu_tar_reads_what_stook_writes() {
    if !has_program("tar", "tar (GNU tar)") {
        return;
    }
    let scene = Scene::new(&Tree::torture().without_xattrs());
    scene.create();
    let into = scene.beside("gnu");
    let mut program = || gnu_tar(&["--warning=no-unknown-keyword", "--delay-directory-restore"]);
    let messages = extract_with(&mut program, &scene.archive(), &into);
    assert_eq!(messages, "");
    assert_read_back(&scene, &into, &restorable());
}

/// Of ordinary members GNU tar has nothing to say at all.
#[test]
fn gnu_tar_reads_ordinary_members_without_a_warning() {
    if !has_program("tar", "tar (GNU tar)") {
        return;
    }
    let mut tree = Tree::basic();
    tree.graft("links", &Tree::links());
    tree.insert("links/raw", stook_testkit::symlink("not raw"));
    tree.graft("sparse", &Tree::sparse());
    tree.graft("deep", &Tree::deep(200));
    let utf_8 = "ünï-cødé/日本語";
    tree.insert(utf_8, stook_testkit::file(utf_8));
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&tree);
        scene.create_with(&dialect, &Recorder::new());
        let into = scene.beside("gnu");
        let messages = extract_with(&mut || gnu_tar(&[]), &scene.archive(), &into);
        assert_eq!(messages, "");
        assert_read_back(&scene, &into, &Compare::content());
    }
}

#[test]
fn bsdtar_reads_what_stook_writes() {
    if !has_program("bsdtar", "bsdtar") {
        return;
    }
    let scene = Scene::new(&Tree::torture().without_xattrs());
    scene.create();
    let into = scene.beside("bsd");
    extract_with(&mut || Command::new("bsdtar"), &scene.archive(), &into);
    // libarchive composes letters with their marks where the locale is UTF-8, in any other it complains.
    stook_testkit::skip!("one name with a separate mark, which bsdtar changes");
    let names = ["u\u{308}ni", "\u{fc}ni"].map(str::as_bytes);
    assert_some_read_back(&scene, &into, &Compare::content(), |path| {
        let mut components = path.split(|&byte| byte == b'/');
        !components.any(|component| names.contains(&component))
    });
}

/// In Python's `sqlite3`, as zstash uses it, every row is what it would have stored itself.
#[test]
fn pythons_sqlite_reads_the_index_as_zstash_does() {
    let scene = Scene::new(&Tree::torture().without_xattrs());
    scene.create();
    let script = "
import os, sqlite3, sys
base = sqlite3.connect(os.path.join(sys.argv[1], 'index.db'), detect_types=sqlite3.PARSE_DECLTYPES)
for id, name, size, mtime, md5, tar, offset in base.execute('select * from files order by id'):
    assert isinstance(name, str) and isinstance(size, int) and mtime.year, id
    print(name.encode().hex(), size, mtime, md5, tar, offset)
print(*base.execute('select arg from config order by arg').fetchall(), base.execute('pragma journal_mode').fetchone())
for name, size, md5 in base.execute('select name, size, md5 from tars'):
    print(name, size == os.path.getsize(os.path.join(sys.argv[1], name)), len(md5))
";
    let Some(printed) = python(script, &[&scene.archive()]) else {
        return;
    };
    let lines: Vec<&str> = printed.lines().collect();
    let rows = all_rows(&scene.archive());
    let mut stored = BTreeMap::new();
    for (row, line) in rows.iter().zip(&lines) {
        let (name, rest) = line.split_once(' ').unwrap();
        let md5 = row.md5.map_or("None".to_owned(), hex);
        let expected = format!(
            "{} {} {md5} {} {}",
            row.size, row.mtime, row.volume, row.offset
        );
        assert_eq!(rest, expected);
        if std::str::from_utf8(&row.name).is_ok() && !row.name.contains(&b'%') {
            assert_eq!(name, hex_of(&row.name));
        }
        assert_eq!(
            stored.insert(name.to_owned(), row.id),
            None,
            "two names are stored as {name}"
        );
    }
    assert_eq!(
        lines[rows.len()..],
        [
            "('hpss',) ('maxsize',) ('path',) ('delete',)",
            "000000.tar True 32"
        ]
    );
}
