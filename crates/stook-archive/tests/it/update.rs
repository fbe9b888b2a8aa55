//! `update`: what counts as changed, what zstash adds, and nothing at all when nothing has changed.

use std::fs;
use std::path::Path;

use stook_archive::{AsOf, Deletions, ExtractOptions, WriteOptions};
use stook_testkit::{Compare, Snapshot, Tree, tree};

use crate::by_path::{extract, runs, update};
use crate::recorder::Recorder;
use crate::scene::{Scene, all_facts, content, names, options, python};

const SECOND: i64 = 1_700_000_000;

#[test]
fn an_edit_within_the_same_second_that_keeps_the_size_is_found() {
    let at = |nanoseconds, text: &str| tree! {"f" => file(text).mtime(SECOND, nanoseconds), "g" => file("g")};
    let scene = Scene::archived(&at(100_000_000, "one"));
    scene.lay(&at(100_001_000, "two"));
    assert_eq!(scene.diff(), ["changed f"]);
    assert_eq!(scene.update().members, 1);
    assert_eq!(content(&scene, "f"), b"two");
    assert_eq!(scene.update().members, 0);
}

#[test]
fn an_mtime_that_went_back_is_found_once() {
    let at = |seconds, text: &str| tree! {"f" => file(text).mtime(seconds, 5_000)};
    let scene = Scene::archived(&at(SECOND, "new"));
    scene.lay(&at(SECOND - 1_000_000, "old"));
    assert_eq!(scene.update().members, 1);
    assert_eq!(content(&scene, "f"), b"old");
    for _ in 0..2 {
        assert_eq!(scene.diff(), [""; 0]);
        let report = scene.update();
        assert_eq!((report.members, report.volumes), (0, 0));
    }
    assert_eq!(runs(&scene.archive()).unwrap().len(), 2);
}

#[test]
fn comparing_contents_finds_an_edit_that_kept_size_and_mtime() {
    let scene =
        Scene::archived(&tree! {"f" => file(b"one"), "g" => file(b"same"), "l" => symlink("f")});
    scene.lay(&tree! {"f" => file(b"two")});
    assert_eq!(scene.update().members, 0);
    let options = WriteOptions {
        compare_content: true,
        ..options()
    };
    let report = scene.update_with(&options, &Recorder::new());
    assert_eq!((report.members, report.unchanged), (1, 2));
    assert_eq!(content(&scene, "f"), b"two");
    let report = scene.update_with(&options, &Recorder::new());
    assert_eq!((report.members, report.volumes), (0, 0));
}

#[test]
fn d01_a_further_name_never_gets_the_content_of_a_replaced_first_name() {
    let scene = Scene::archived(&tree! {
        "a" => file(b"one"),
        "b" => hardlink("a"),
        "c" => hardlink("a"),
    });
    // The same size and time as the old one: only the content tells them apart.
    scene.lay(&tree! {"a" => file(b"two")});
    let options = WriteOptions {
        compare_content: true,
        ..options()
    };
    assert_eq!(scene.update_with(&options, &Recorder::new()).members, 1);
    scene.assert_extracts_to_source();
}

#[test]
fn every_change_of_kind_is_found_and_extracted() {
    let kinds = || {
        [
            tree! {"x" => file(b"file")},
            tree! {"x" => symlink("nowhere").mtime(SECOND, 1_000)},
            tree! {"x/y/z" => file(b"below")},
            tree! {"x/" => dir().mtime(SECOND, 2_000)},
            tree! {"x" => fifo().mtime(SECOND, 3_000)},
        ]
    };
    for (from, before) in kinds().iter().enumerate() {
        for (to, after) in kinds().iter().enumerate().filter(|(to, _)| *to != from) {
            for directories in [true, false] {
                let options = WriteOptions {
                    directories,
                    // Without directories, the only archived name may be gone.
                    deletions: Deletions::Record,
                    ..options()
                };
                let compare = if directories {
                    all_facts()
                } else {
                    Compare::zstash()
                };
                let scene = Scene::new(before);
                scene.create_with(&options, &Recorder::new());
                stook_testkit::remove_tree(&scene.path("x")).unwrap();
                scene.lay(after);
                scene.update_with(&options, &Recorder::new());
                let difference = scene
                    .snapshot()
                    .difference(&scene.extract(AsOf::Now), &compare);
                assert_eq!(
                    difference, [""; 0],
                    "{from} to {to}, directories: {directories}"
                );
            }
        }
    }
}

#[test]
fn nothing_changed_means_that_no_byte_of_the_archive_changes() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/zstash");
    let scene = Scene::archived(&Tree::basic());
    let before = Snapshot::take(&scene.archive()).unwrap();
    for compare_content in [false, true] {
        let options = WriteOptions {
            compare_content,
            ..options()
        };
        let report = scene.update_with(&options, &Recorder::new());
        assert_eq!(report.unchanged, report.entries);
        assert_eq!((report.members, report.volumes, report.deleted), (0, 0, 0));
    }
    assert_eq!(scene.diff(), [""; 0]);
    let after = Snapshot::take(&scene.archive()).unwrap();
    let compare = Compare::everything();
    assert_eq!(before.difference(&after, &compare), [""; 0]);

    // An archive of zstash, updated from what it extracts to.
    let tree = scene.beside("tree-of-zstash");
    let archive = scene.beside("archive-of-zstash");
    copy_archive(&fixtures.join("basic/archive"), &archive);
    extract(
        &archive,
        &tree,
        &ExtractOptions::default(),
        &Recorder::new(),
    )
    .unwrap();
    let before = Snapshot::take(&archive).unwrap();
    let options = WriteOptions {
        directories: false,
        ..options()
    };
    let report = update(&tree, &archive, &options, &Recorder::new()).unwrap();
    assert_eq!((report.members, report.deleted), (0, 0));
    let after = Snapshot::take(&archive).unwrap();
    assert_eq!(before.difference(&after, &compare), [""; 0]);
}

fn copy_archive(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let name = name.to_str().unwrap();
        if name == "index.db"
            || Path::new(name)
                .extension()
                .is_some_and(|ending| ending == "tar")
        {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// Writes a volume and its rows as zstash's update does.
const ZSTASH_UPDATE: &str = "
import hashlib, os, sqlite3, sys, tarfile
from datetime import datetime, timezone
archive, source = sys.argv[1:]
os.chdir(source)
con = sqlite3.connect(os.path.join(archive, 'index.db'), detect_types=sqlite3.PARSE_DECLTYPES)
cur = con.cursor()
cur.execute('select distinct tar from files')
name = '{0:06x}.tar'.format(max(int(row[0][0:6], 16) for row in cur.fetchall()) + 1)
rows = []
with tarfile.open(os.path.join(archive, name), 'w', format=tarfile.PAX_FORMAT) as tar:
    for path in ['later.txt', 'shared.txt']:
        offset = tar.offset
        tar.add(path)
        data = open(path, 'rb').read()
        mtime = datetime.fromtimestamp(os.lstat(path).st_mtime, timezone.utc).replace(tzinfo=None)
        rows.append((path, len(data), mtime, hashlib.md5(data).hexdigest(), name, offset))
whole = open(os.path.join(archive, name), 'rb').read()
cur.execute('insert into tars values (NULL,?,?,?)', (name, len(whole), hashlib.md5(whole).hexdigest()))
con.commit()
cur.executemany('insert into files values (NULL,?,?,?,?,?,?)', rows)
con.commit()
";

#[test]
fn what_zstash_adds_is_taken_as_archived() {
    let scene = Scene::archived(&tree! {"shared.txt" => file(b"one"), "gone.txt" => file(b"gone")});
    let first = scene.last_run();
    fs::remove_file(scene.path("gone.txt")).unwrap();
    scene.update();
    scene.lay(&tree! {
        "shared.txt" => file(b"second").mtime(SECOND, 123_456_789),
        "later.txt" => file(b"later").mtime(SECOND, 999_999_500),
    });
    if python(ZSTASH_UPDATE, &[&scene.archive(), scene.source()]).is_none() {
        return;
    }
    assert_eq!(scene.diff(), [""; 0]);
    assert_eq!(scene.update().members, 0);
    scene.assert_clean();
    let compare = Compare::everything().mtime_tolerance_ns(1000);
    let difference = scene
        .snapshot()
        .difference(&scene.extract(AsOf::Now), &compare);
    assert_eq!(difference, [""; 0]);
    assert_eq!(
        names(&scene.archive(), AsOf::Run(first), false),
        ["gone.txt", "shared.txt"]
    );
    // stook goes on after it: the next volume has the next number.
    fs::remove_file(scene.path("later.txt")).unwrap();
    scene.lay(&tree! {"shared.txt" => file(b"third")});
    let report = scene.update();
    assert_eq!((report.members, report.deleted), (1, 1));
    assert_eq!(
        scene.archive_files(),
        ["000000.tar", "000001.tar", "000002.tar", "index.db"]
    );
    assert_eq!(content(&scene, "shared.txt"), b"third");
    scene.assert_extracts_to_source();
}
