//! The catalogue: it is the tree that was archived, for archives of any writer, and damaged ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use proptest::prelude::*;
use stook_archive::{
    Archive, ArchiveError, AsOf, Catalogue, CatalogueOptions, EntryId, Jobs, LocalFolder,
    MemberKind, Observer, OpenOptions, RunId, Silent, StatSource, VolumeBytes, VolumeStore,
    WriteOptions,
};
use stook_index::{Config, Deleted, Index, Mtime, NewRow, Row, Selection, Volume, VolumeId};
use stook_sys::SysError;
use stook_testkit::{Facts, Kind, Snapshot, TempDir, Tree, file, tree};

use crate::attribute_blocks::sql;
use crate::by_path::fill_attributes;
use crate::crafted::{Crafted, write_archive};
use crate::folder::{as_zstash, bytes_in, newest_rows};
use crate::generated;
use crate::recorder::Recorder;
use crate::resuming::Stopper;
use crate::scene::{Scene, options};

fn open(archive: &Path) -> Archive {
    Archive::open(archive, &OpenOptions::default()).unwrap()
}

fn load_as_of(archive: &Path, as_of: AsOf, observer: &dyn Observer) -> Catalogue {
    let options = CatalogueOptions {
        as_of,
        jobs: Jobs::Fixed(3),
        ..CatalogueOptions::default()
    };
    open(archive).catalogue(&options, observer).unwrap()
}

/// Loads the newest state and expects nothing to be left out.
fn load(archive: &Path) -> Catalogue {
    let recorder = Recorder::new();
    let catalogue = load_as_of(archive, AsOf::Now, &recorder);
    assert_eq!(recorder.failure_texts(), [""; 0]);
    assert_eq!(recorder.damage_texts(), [""; 0]);
    assert_eq!((catalogue.failures(), catalogue.damages()), (0, 0));
    catalogue
}

fn entries(catalogue: &Catalogue) -> impl Iterator<Item = EntryId> + '_ {
    (0..).map_while(|number| catalogue.entry(number))
}

/// The paths of all entries but the root, sorted.
fn paths(catalogue: &Catalogue) -> Vec<String> {
    let below = entries(catalogue).skip(1);
    let mut paths: Vec<String> = below
        .map(|entry| catalogue.path(entry).escape_ascii().to_string())
        .collect();
    paths.sort();
    paths
}

fn at(catalogue: &Catalogue, path: &str) -> EntryId {
    catalogue.find(path.as_bytes()).expect(path)
}

fn content(catalogue: &Catalogue, path: &str) -> Vec<u8> {
    let reader = catalogue.reader(at(catalogue, path)).unwrap();
    let mut bytes = vec![0; usize::try_from(reader.size()).unwrap()];
    reader.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Every entry is found by its path, is among its parent's children, and these are sorted.
fn assert_consistent(catalogue: &Catalogue) {
    for (number, entry) in entries(catalogue).enumerate() {
        assert_eq!(entry.number() as usize, number);
        assert_eq!(catalogue.find(&catalogue.path(entry)), Some(entry));
        let children: Vec<EntryId> = catalogue.children(entry).collect();
        let names: Vec<&[u8]> = children
            .iter()
            .map(|&child| catalogue.name(child))
            .collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
        for (cursor, &child) in children.iter().enumerate() {
            assert_eq!(catalogue.parent(child), Some(entry));
            assert_eq!(catalogue.child(entry, catalogue.name(child)), Some(child));
            let rest: Vec<EntryId> = catalogue.children_from(entry, cursor).collect();
            assert_eq!(rest, children[cursor..]);
        }
        assert_eq!(catalogue.children_from(entry, children.len() + 1).len(), 0);
        let kind = catalogue.stat(entry).kind;
        assert!(children.is_empty() || kind == Some(MemberKind::Directory));
        assert!(
            catalogue
                .kind(entry)
                .is_none_or(|known| Some(known) == kind)
        );
    }
    let below: usize = entries(catalogue)
        .map(|entry| catalogue.children(entry).len())
        .sum();
    assert_eq!(below + 1, catalogue.len());
    assert!(
        catalogue
            .entry(u32::try_from(catalogue.len()).unwrap())
            .is_none()
    );
    assert_eq!(catalogue.parent(EntryId::ROOT), None);
    assert_eq!(catalogue.find(b""), Some(EntryId::ROOT));
}

fn kind_of(kind: Kind) -> MemberKind {
    match kind {
        Kind::File => MemberKind::File,
        Kind::Directory => MemberKind::Directory,
        Kind::Symlink => MemberKind::Symlink,
        Kind::Fifo => MemberKind::Fifo,
        Kind::CharacterDevice => MemberKind::CharDevice,
        Kind::BlockDevice => MemberKind::BlockDevice,
        other => panic!("{other} is not archived"),
    }
}

fn assert_same(catalogue: &Catalogue, entry: EntryId, facts: &Facts) {
    let stat = catalogue.stat(entry);
    let path = catalogue.path(entry).escape_ascii().to_string();
    assert_eq!(stat.kind, Some(kind_of(facts.kind)), "{path}");
    if stat.source == StatSource::Path {
        assert_eq!(facts.kind, Kind::Directory, "{path}");
        return;
    }
    assert_eq!(stat.mode, facts.mode, "{path}");
    assert_eq!(
        (stat.uid, stat.gid),
        (facts.owner.0.into(), facts.owner.1.into())
    );
    let target = facts.target.as_deref().unwrap_or_default();
    assert_eq!(stat.size, facts.size + target.len() as u64, "{path}");
    assert_eq!(*catalogue.target(entry), *target, "{path}");
    assert_eq!(stat.device, facts.device.unwrap_or_default(), "{path}");
    let time = i128::from(stat.mtime.seconds) * 1_000_000_000 + i128::from(stat.mtime.nanoseconds);
    // Headers in zstash's dialect have Python's doubles.
    let tolerance = i128::from(stat.source == StatSource::Header) * 1000;
    assert!((time - facts.mtime_ns).abs() <= tolerance, "{path}: {time}");
}

/// Names that share a file have one inode number, and as many links as names; all others have a number of their own.
fn assert_same_links(catalogue: &Catalogue, snapshot: &Snapshot) {
    let mut names: BTreeMap<u64, BTreeSet<Vec<u8>>> = BTreeMap::new();
    let mut expected: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for entry in entries(catalogue).skip(1) {
        let path = catalogue.path(entry);
        let facts = snapshot.get(&path).unwrap();
        let first = facts
            .first_link
            .clone()
            .filter(|_| facts.kind == Kind::File);
        expected
            .entry(first.unwrap_or_else(|| path.clone()))
            .or_default()
            .insert(path.clone());
        names
            .entry(catalogue.inode(entry))
            .or_default()
            .insert(path);
    }
    let found: BTreeSet<_> = names.values().cloned().collect();
    assert_eq!(found, expected.values().cloned().collect());
    for entry in entries(catalogue).skip(1) {
        let stat = catalogue.stat(entry);
        assert_eq!(stat.links as usize, names[&stat.inode].len());
    }
}

fn assert_is_tree(catalogue: &Catalogue, source: &Path) {
    assert_consistent(catalogue);
    let mut snapshot = Snapshot::take(source).unwrap();
    snapshot.retain(|_, facts| facts.kind != Kind::Socket);
    let is_stored = |path: &[u8]| catalogue.find(path).is_some();
    for (path, facts) in snapshot.entries() {
        // Without directories in the archive, empty ones are there all the same, and no others but those in use.
        assert!(is_stored(path), "{}", path.escape_ascii());
        assert_same(catalogue, catalogue.find(path).unwrap(), facts);
    }
    assert_eq!(catalogue.len(), snapshot.len() + 1);
    assert_same_links(catalogue, &snapshot);
}

#[test]
fn a_catalogue_is_the_tree_that_was_archived() {
    let scene = Scene::archived(&Tree::torture());
    let catalogue = load(&scene.archive());
    assert_is_tree(&catalogue, scene.source());
    for row in newest_rows(&scene.archive()) {
        let entry = catalogue.find(&row.name).unwrap();
        assert_eq!(catalogue.row_of(entry), Some(row.clone()));
        assert_eq!(catalogue.row_id(entry), Some(row.id));
        let Ok(reader) = catalogue.reader(entry) else {
            assert!(row.md5.is_none() && catalogue.content_at(entry).is_none());
            continue;
        };
        assert_eq!(reader.size(), row.size);
        let volume = fs::File::open(scene.archive().join(row.volume.to_string())).unwrap();
        let member = stook_volume::decode(&volume, row.offset).unwrap().unwrap();
        let stat = catalogue.stat(entry);
        assert_eq!(
            catalogue.content_at(entry),
            Some((row.volume, member.data_offset))
        );
        assert_eq!(stat.is_sparse, member.header.sparse.is_some());
        assert_eq!(stat.has_xattrs, !member.header.xattrs.is_empty());
        let (uname, gname) = catalogue.owner_names(entry);
        assert_eq!(
            (&*uname, &*gname),
            (&member.header.uname[..], &member.header.gname[..])
        );
    }
}

#[test]
fn random_trees_come_back_without_rows_for_directories_too() {
    for (seed, options) in [(1, options()), (2, as_zstash())] {
        let mut tree = Tree::random(seed, 300);
        tree.insert("a/b/c/deep", file(b"x"));
        let scene = Scene::new(&tree);
        scene.create_with(&options, &Silent);
        assert_is_tree(&load(&scene.archive()), scene.source());
    }
}

#[test]
fn a_directory_without_a_row_has_a_number_of_its_own_and_the_latest_time_in_it() {
    let scene = Scene::new(&tree! {
        "d/old" => file(b"1").mtime(1_600_000_000, 0),
        "d/e/new" => file(b"2").mtime(1_700_000_000, 5000),
        "f/x" => file(b"3").mtime(1_500_000_000, 0),
    });
    scene.create_with(&as_zstash(), &Silent);
    let catalogue = load(&scene.archive());
    let directories = ["", "d", "d/e", "f"].map(|path| at(&catalogue, path));
    let numbers: BTreeSet<u64> = directories
        .iter()
        .map(|&entry| catalogue.inode(entry))
        .collect();
    assert_eq!(numbers.len(), 4);
    assert!(numbers.iter().all(|number| number >> 63 == 1));
    for &entry in &directories {
        let stat = catalogue.stat(entry);
        assert_eq!((stat.kind, stat.mode), (Some(MemberKind::Directory), 0o755));
        assert_eq!((stat.source, stat.links), (StatSource::Path, 1));
        assert_eq!(
            (catalogue.row_id(entry), catalogue.row_of(entry)),
            (None, None)
        );
        assert!(matches!(
            catalogue.reader(entry),
            Err(ArchiveError::NotAFile { .. })
        ));
    }
    let seconds = directories.map(|entry| catalogue.stat(entry).mtime.seconds);
    assert_eq!(
        seconds,
        [1_700_000_000, 1_700_000_000, 1_700_000_000, 1_500_000_000]
    );
    // The number follows from the path, whatever else is in the archive.
    scene.lay(&tree! {"b" => file(b"more"), "d/e/more" => file(b"more")});
    scene.update_with(&as_zstash(), &Silent);
    let later = load(&scene.archive());
    for (entry, path) in directories.into_iter().zip(["", "d", "d/e", "f"]) {
        assert_eq!(later.inode(at(&later, path)), catalogue.inode(entry));
    }
    let old = at(&catalogue, "d/old");
    assert_eq!(later.inode(at(&later, "d/old")), catalogue.inode(old));
    assert_eq!(
        catalogue.inode(old),
        catalogue.row_id(old).unwrap().0.unsigned_abs()
    );
}

#[test]
fn states_are_those_of_their_runs() {
    let scene = Scene::new(&tree! {
        "gone/only" => file(b"1"), "kept" => file(b"old"), "d/a" => file(b"a"),
    });
    scene.create_with(
        &WriteOptions {
            directories: false,
            ..options()
        },
        &Silent,
    );
    let first = AsOf::Run(scene.last_run());
    fs::remove_dir_all(scene.path("gone")).unwrap();
    scene.lay(&tree! {"kept" => file(b"newer"), "new" => file(b"n")});
    scene.update_with(
        &WriteOptions {
            directories: false,
            ..options()
        },
        &Silent,
    );
    let archive = scene.archive();
    let before = load_as_of(&archive, first, &Silent);
    assert_eq!(paths(&before), ["d", "d/a", "gone", "gone/only", "kept"]);
    assert_eq!(content(&before, "kept"), b"old");
    // A directory goes with the last name in it.
    let now = load(&archive);
    assert_eq!(paths(&now), ["d", "d/a", "kept", "new"]);
    assert_eq!(content(&now, "kept"), b"newer");
    assert_ne!(
        now.row_id(at(&now, "kept")),
        before.row_id(at(&before, "kept"))
    );
    // A name that is deleted and archived again is there.
    scene.lay(&tree! {"gone/only" => file(b"again")});
    scene.update_with(
        &WriteOptions {
            directories: false,
            ..options()
        },
        &Silent,
    );
    assert_eq!(content(&load(&archive), "gone/only"), b"again");
    assert_consistent(&now);
    let unknown = CatalogueOptions {
        as_of: AsOf::Run(RunId(99)),
        ..CatalogueOptions::default()
    };
    assert!(open(&archive).catalogue(&unknown, &Silent).is_err());
}

#[test]
fn released_names_are_there() {
    let scene = Scene::archived(&tree! {"a" => file(b"a"), "b" => file(b"b")});
    let archive = scene.archive();
    let row = newest_rows(&archive).remove(0);
    let mut index = Index::open_write(archive.join("index.db")).unwrap();
    assert_eq!(index.record_releases(&[row.id]).unwrap(), 1);
    drop(index);
    fs::remove_file(scene.path("a")).unwrap();
    scene.lay(&tree! {"c" => file(b"c")});
    scene.update();
    assert_eq!(paths(&load(&archive)), ["a", "b", "c"]);
}

#[test]
fn names_that_shared_a_file_and_no_longer_do_have_numbers_of_their_own() {
    let scene = Scene::archived(&tree! {
        "a" => file(b"shared"), "b" => hardlink("a"), "c" => hardlink("a"), "z" => file(b"z"),
    });
    let catalogue = load(&scene.archive());
    let [a, b, c] = ["a", "b", "c"].map(|path| catalogue.stat(at(&catalogue, path)));
    assert_eq!((a.inode, b.inode, c.inode), (a.inode, a.inode, a.inode));
    assert_eq!([a.links, b.links, c.links], [3; 3]);
    // The first name gets another file; the others still share theirs.
    fs::remove_file(scene.path("a")).unwrap();
    scene.lay(&tree! {"a" => file(b"another")});
    scene.update();
    let later = load(&scene.archive());
    assert_is_tree(&later, scene.source());
    assert_eq!(later.stat(at(&later, "b")).links, 2);
    // And where it is deleted.
    fs::remove_file(scene.path("a")).unwrap();
    scene.update();
    let last = load(&scene.archive());
    assert_is_tree(&last, scene.source());
}

#[test]
fn names_of_one_file_share_a_number_whichever_of_them_each_run_took_for_the_first() {
    let scene = Scene::archived(&tree! {"a" => file(b"shared"), "b" => hardlink("a")});
    // The next run archives `a` again, and names `0` as its first; of `b` the first stays `a`.
    sql(
        &scene.archive(),
        "UPDATE files SET mtime = '2001-01-01 00:00:00' WHERE name = 'a'",
    );
    fs::hard_link(scene.path("a"), scene.path("0")).unwrap();
    scene.update();
    let catalogue = load(&scene.archive());
    assert_is_tree(&catalogue, scene.source());
    assert_eq!(catalogue.stat(at(&catalogue, "b")).links, 3);
}

#[test]
fn released_names_below_what_is_no_directory_any_more_are_gone() {
    let scene =
        Scene::archived(&tree! {"d/a" => file(b"a"), "d/e/b" => file(b"b"), "c" => file(b"c")});
    let archive = scene.archive();
    let rows = newest_rows(&archive);
    let below = rows.iter().filter(|row| row.name.starts_with(b"d"));
    let mut below: Vec<_> = below.map(|row| row.id).collect();
    below.sort();
    let mut index = Index::open_write(archive.join("index.db")).unwrap();
    assert_eq!(index.record_releases(&below).unwrap(), 4);
    drop(index);
    fs::remove_dir_all(scene.path("d")).unwrap();
    scene.lay(&tree! {"d" => symlink("c")});
    scene.update();
    assert_is_tree(&load(&archive), scene.source());
    fs::remove_file(scene.path("d")).unwrap();
    scene.lay(&tree! {"d/new" => file(b"new")});
    scene.update();
    assert_is_tree(&load(&archive), scene.source());
}

/// A local folder that counts how often a volume is opened.
#[derive(Debug)]
struct Counted {
    folder: LocalFolder,
    opened: Arc<AtomicUsize>,
}

impl VolumeStore for Counted {
    fn open(&self, name: &str) -> Result<Arc<dyn VolumeBytes>, SysError> {
        self.opened.fetch_add(1, Relaxed);
        self.folder.open(name)
    }
}

#[test]
fn attributes_that_the_index_lacks_are_read_from_headers_when_asked_for() {
    let scene = Scene::new(&Tree::links());
    scene.lay(&tree! {"d/e/f" => file(b"x").mode(0o4711), "hard" => hardlink("d/e/f")});
    scene.create_with(&as_zstash(), &Silent);
    let archive = scene.archive();
    if !sql(&archive, "DELETE FROM stook_attributes") {
        return;
    }
    let opened = Arc::new(AtomicUsize::new(0));
    let store = Counted {
        folder: LocalFolder::new(&archive),
        opened: Arc::clone(&opened),
    };
    let options = OpenOptions {
        store: Some(Arc::new(store)),
        ..OpenOptions::default()
    };
    let mut opened_archive = Archive::open(&archive, &options).unwrap();
    let catalogue = opened_archive
        .catalogue(&CatalogueOptions::default(), &Silent)
        .unwrap();
    let file = at(&catalogue, "d/e/f");
    assert_eq!(catalogue.kind(file), Some(MemberKind::File));
    assert_eq!(catalogue.content_at(file), None);
    assert_eq!(opened.load(Relaxed), 0);
    let before: Vec<_> = entries(&catalogue)
        .map(|entry| catalogue.stat(entry))
        .collect();
    assert_eq!(opened.load(Relaxed), 1);
    assert_consistent(&catalogue);
    for (path, facts) in scene.snapshot().entries() {
        assert_same(&catalogue, catalogue.find(path).unwrap(), facts);
    }
    // The same once the index has them, but for links, which one header does not tell.
    fill_attributes(&archive, Jobs::Fixed(3), &Silent).unwrap();
    let filled = load(&archive);
    assert_eq!(filled.len(), catalogue.len());
    for (entry, before) in entries(&filled).zip(before) {
        let mut after = filled.stat(entry);
        if before.source == StatSource::Header {
            assert_eq!(after.source, StatSource::Index);
            after.source = StatSource::Header;
        }
        (after.links, after.inode) = (before.links, before.inode);
        assert_eq!(after, before);
    }
    assert_eq!(filled.stat(at(&filled, "hard")).links, 2);
}

#[test]
fn rows_of_volumes_that_are_elsewhere_keep_what_the_index_tells() {
    let scene = Scene::new(&tree! {
        "d/file" => file(b"content").mtime(1_600_000_000, 0), "d/link" => symlink("file"),
    });
    scene.create_with(&as_zstash(), &Silent);
    let archive = scene.archive();
    if !sql(&archive, "DELETE FROM stook_attributes") {
        return;
    }
    fs::rename(archive.join("000000.tar"), scene.beside("on-tape")).unwrap();
    let catalogue = load(&archive);
    let stat = catalogue.stat(at(&catalogue, "d/file"));
    assert_eq!(
        (stat.kind, stat.source),
        (Some(MemberKind::File), StatSource::Row)
    );
    assert_eq!((stat.size, stat.mtime.seconds), (7, 1_600_000_000));
    let link = at(&catalogue, "d/link");
    assert_eq!(
        (catalogue.stat(link).kind, catalogue.kind(link)),
        (None, None)
    );
    assert_eq!(*catalogue.target(link), *b"");
    assert!(matches!(
        catalogue.reader(at(&catalogue, "d/file")),
        Err(ArchiveError::Sys(_))
    ));
    assert_consistent(&catalogue);
}

#[test]
fn archives_of_zstash_are_shown_as_their_headers_have_them() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/zstash");
    let mut members = 0;
    for case in fs::read_dir(cases).unwrap() {
        let case = case.unwrap().path();
        if !case.is_dir() {
            continue;
        }
        let directory = TempDir::new().unwrap();
        let archive = directory.join("archive");
        fs::create_dir(&archive).unwrap();
        for (name, bytes) in bytes_in(&case.join("archive")) {
            fs::write(archive.join(name), bytes).unwrap();
        }
        let catalogue = load_as_of(&archive, AsOf::Now, &Silent);
        assert_consistent(&catalogue);
        for row in newest_rows(&archive) {
            let entry = catalogue.find(&row.name).unwrap();
            assert_eq!(catalogue.row_of(entry), Some(row.clone()));
            let stat = catalogue.stat(entry);
            assert_eq!(Mtime::from(stat.mtime), row.mtime);
            assert!(matches!(stat.source, StatSource::Header | StatSource::Row));
            members += usize::from(stat.source == StatSource::Header);
        }
        assert_eq!(catalogue.failures(), 0);
    }
    assert!(members > 20, "{members}");
}

/// An index without volumes.
struct Rows {
    folder: TempDir,
    index: Index,
    volumes: u64,
}

impl Rows {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let config = Config {
            hpss: "none".to_owned(),
            maxsize: 1 << 30,
            path: b"/nowhere".to_vec(),
        };
        let index = Index::create(folder.join("index.db"), &config).unwrap();
        Self {
            folder,
            index,
            volumes: 0,
        }
    }

    /// Adds a run: files with these names, in a volume of their own, and what it found deleted.
    fn run(&mut self, names: &[&[u8]], deleted: &[&[u8]]) -> RunId {
        let run = self.index.begin_run("update", Mtime(0)).unwrap();
        let rows = (0..).zip(names).map(|(number, name)| NewRow {
            name,
            size: number,
            mtime: Mtime(1_600_000_000_000_000),
            md5: Some([7; 16]),
            offset: number * 512,
        });
        let (id, size, md5) = (VolumeId::plain(self.volumes), 0, None);
        self.volumes += 1;
        if !names.is_empty() {
            let volume = Volume { id, size, md5 };
            self.index.commit_volume(&volume, rows, None).unwrap();
        }
        let deleted = deleted.iter().copied();
        self.index.finish_run(run, Mtime(1), 0, deleted).unwrap();
        run
    }

    fn load(&self, as_of: AsOf) -> (Catalogue, Vec<String>) {
        let recorder = Recorder::new();
        let catalogue = load_as_of(self.folder.path(), as_of, &recorder);
        let failures = recorder.failure_texts();
        assert_eq!(catalogue.failures(), failures.len() as u64);
        assert_consistent(&catalogue);
        (catalogue, failures)
    }
}

#[test]
fn names_that_extract_would_refuse_are_left_out_and_told() {
    let mut rows = Rows::new();
    let long = [b'x'; 70_000];
    rows.run(
        &[
            b"fine", b"../out", b"/abs", b"a/../b", b"", b".", b"/", b"nul\0x", b"nul\0/x", &long,
            b"..",
        ],
        &[],
    );
    let (catalogue, mut failures) = rows.load(AsOf::Now);
    assert_eq!(paths(&catalogue), ["fine"]);
    assert_eq!(failures.len(), 10);
    failures.retain(|failure| failure.len() < 1000);
    assert_eq!(
        failures,
        [
            "cannot show ``: it has no name",
            "cannot show `.`: it has no name",
            "cannot show `..`: its name leads outside of the target",
            "cannot show `../out`: its name leads outside of the target",
            "cannot show `/`: its name is an absolute path",
            "cannot show `/abs`: its name is an absolute path",
            "cannot show `a/../b`: its name leads outside of the target",
            r"cannot show `nul\x00/x`: its name has a NUL byte in it",
            r"cannot show `nul\x00x`: its name has a NUL byte in it",
        ]
    );
    // Once they are deleted there is nothing to tell.
    rows.run(
        &[],
        &[
            b"../out", b"/abs", b"a/../b", b"", b".", b"/", b"nul\0x", b"nul\0/x", &long,
        ],
    );
    assert_eq!(
        rows.load(AsOf::Now).1,
        ["cannot show `..`: its name leads outside of the target"]
    );
}

#[test]
fn names_that_extract_would_put_elsewhere_are_there() {
    let folder = TempDir::new().unwrap();
    let archive = folder.join("archive");
    let members = [
        Crafted::file("a//b", b"first"),
        Crafted::file("c/./d", b"second"),
        Crafted::file("e/f", b"older"),
        Crafted::file("e/.//f", b"newer"),
    ];
    write_archive(&archive, stook_archive::Dialect::Zstash, &members);
    let catalogue = load(&archive);
    assert_eq!(paths(&catalogue), ["a", "a/b", "c", "c/d", "e", "e/f"]);
    assert_eq!(content(&catalogue, "a/b"), b"first");
    assert_eq!(content(&catalogue, "c/d"), b"second");
    assert_eq!(content(&catalogue, "e/f"), b"newer");
    let names = ["a/b", "e/f"].map(|path| catalogue.row_of(at(&catalogue, path)).unwrap().name);
    assert_eq!(names, [b"a//b".to_vec(), b"e/.//f".to_vec()]);
    assert_eq!(catalogue.find(b"./a///b/"), Some(at(&catalogue, "a/b")));
    assert_eq!(catalogue.find(b"a/../a/b"), None);
    assert_consistent(&catalogue);
}

#[test]
fn a_file_with_the_name_of_a_directory_is_left_out_and_told() {
    let mut rows = Rows::new();
    rows.run(&[b"a", b"a/b", b"d/e/f", b"d/e"], &[]);
    let (catalogue, failures) = rows.load(AsOf::Now);
    assert_eq!(paths(&catalogue), ["a", "a/b", "d", "d/e", "d/e/f"]);
    assert_eq!(catalogue.row_id(at(&catalogue, "a")), None);
    assert_eq!(
        failures,
        [
            "cannot show `a`: a directory has the same name",
            "cannot show `d/e`: a directory has the same name",
        ]
    );
    // Nothing is in the way once the rest is gone.
    rows.run(&[], &[b"a/b", b"d/e"]);
    let (catalogue, failures) = rows.load(AsOf::Now);
    assert_eq!(paths(&catalogue), ["a", "d", "d/e", "d/e/f"]);
    assert!(catalogue.row_id(at(&catalogue, "a")).is_some());
    assert_eq!(failures, [""; 0]);
}

#[test]
fn rows_that_make_no_sense_are_left_out_and_told() {
    let mut rows = Rows::new();
    rows.run(&[b"a", b"b", b"c", b"d/e"], &[]);
    rows.run(&[b"a", b"c"], &[]);
    rows.run(&[b"x"], &[b"c"]);
    // Rows 5 and 6 are the newest of `a` and `c`; `c` is deleted. Row 4 is all that is in `d`. Row 7 loses its name.
    let damage = "UPDATE files SET mtime = 'soon' WHERE id IN (1, 4, 5, 6); UPDATE files SET name = NULL WHERE id = 7;";
    if !sql(rows.folder.path(), damage) {
        return;
    }
    let (catalogue, failures) = rows.load(AsOf::Now);
    assert_eq!(paths(&catalogue), ["b"]);
    let told = |row: &str| failures.iter().any(|failure| failure.contains(row));
    assert_eq!(failures.len(), 3, "{failures:?}");
    assert!(told("`a`: row 5 of `files`") && told("`d/e`: row 4 of `files`") && told("row 7"));
}

#[test]
fn pages_that_cannot_be_read_are_told_and_the_rest_is_there() {
    let folder = TempDir::new().unwrap();
    generated::write_index(folder.path(), 20_000);
    let index = folder.join("index.db");
    let whole = load(folder.path());
    let mut bytes = fs::read(&index).unwrap();
    let page = bytes.len() / 4096 / 4 * 4096;
    bytes[page..page + 4096].fill(0x5a);
    fs::write(&index, bytes).unwrap();
    let recorder = Recorder::new();
    let catalogue = load_as_of(folder.path(), AsOf::Now, &recorder);
    assert!(catalogue.failures() > 0);
    assert!(catalogue.len() < whole.len() && catalogue.len() > whole.len() - 200);
    assert_consistent(&catalogue);
}

#[test]
fn damaged_attributes_are_told_and_read_from_headers() {
    let mut tree = Tree::new();
    for number in 0..5000 {
        tree.insert(format!("f{number:04}"), file(b"x"));
    }
    let scene = Scene::archived(&tree);
    let archive = scene.archive();
    let pristine = fs::read(archive.join("index.db")).unwrap();
    for damage in [
        "UPDATE stook_attributes SET data = zeroblob(9) WHERE id = 2",
        "UPDATE stook_attributes SET crc = crc + 1 WHERE id = 2",
        "UPDATE stook_attributes SET first = -5 WHERE id = 2",
    ] {
        fs::write(archive.join("index.db"), &pristine).unwrap();
        if !sql(&archive, damage) {
            return;
        }
        let recorder = Recorder::new();
        let catalogue = load_as_of(&archive, AsOf::Now, &recorder);
        let told = recorder.damage_texts();
        assert!(
            told.len() == 1 && told[0].contains("row 2 of `stook_attributes`"),
            "{told:?}"
        );
        assert_eq!((catalogue.failures(), catalogue.damages()), (0, 1));
        let of_header = |entry| catalogue.stat(entry).source == StatSource::Header;
        assert_eq!(
            entries(&catalogue)
                .filter(|&entry| of_header(entry))
                .count(),
            904
        );
        for (path, facts) in scene.snapshot().entries() {
            assert_same(&catalogue, catalogue.find(path).unwrap(), facts);
        }
    }
}

/// Descriptors of this process on the index of an archive.
fn open_indexes(archive: &Path) -> usize {
    let index = fs::canonicalize(archive.join("index.db")).unwrap();
    let links = fs::read_dir("/proc/self/fd").unwrap();
    links
        .filter_map(|link| fs::read_link(link.unwrap().path()).ok())
        .filter(|path| *path == index)
        .count()
}

#[test]
fn a_catalogue_needs_no_index_and_does_not_change_while_the_archive_does() {
    let scene = Scene::archived(&tree! {"a" => file(b"first"), "d/b" => file(b"b")});
    let archive = scene.archive();
    let mut opened = open(&archive);
    let catalogue = opened
        .catalogue(&CatalogueOptions::default(), &Silent)
        .unwrap();
    assert_eq!(open_indexes(&archive), 1);
    drop(opened);
    assert_eq!(open_indexes(&archive), 0);
    let before = paths(&catalogue);
    let stats: Vec<_> = entries(&catalogue)
        .map(|entry| catalogue.stat(entry))
        .collect();
    scene.lay(&tree! {"a" => file(b"second"), "new" => file(b"n")});
    fs::remove_dir_all(scene.path("d")).unwrap();
    scene.update();
    assert_eq!(paths(&catalogue), before);
    let again: Vec<_> = entries(&catalogue)
        .map(|entry| catalogue.stat(entry))
        .collect();
    assert_eq!(again, stats);
    assert_eq!(content(&catalogue, "a"), b"first");
    assert_eq!(content(&catalogue, "d/b"), b"b");
    let now = load(&archive);
    assert_eq!(paths(&now), ["a", "new"]);
    assert_eq!(content(&now, "a"), b"second");
}

#[test]
fn an_entry_takes_at_most_100_bytes_beyond_its_name() {
    const MEMBERS: u64 = 120_000;
    let folder = TempDir::new().unwrap();
    generated::write_index(folder.path(), MEMBERS);
    let catalogue = load(folder.path());
    assert!(catalogue.len() as u64 > MEMBERS);
    let beyond = catalogue.heap_bytes() - catalogue.name_bytes();
    assert!(beyond <= 100 * catalogue.len(), "{beyond}");
    // What it counts is all there is: names and 76 bytes of columns at least.
    assert!(beyond >= 76 * catalogue.len(), "{beyond}");
    assert_eq!(
        catalogue.stat(at(&catalogue, "part-000/set-000001")).source,
        StatSource::Index
    );
}

#[test]
fn loading_ends_when_it_is_interrupted() {
    let folder = TempDir::new().unwrap();
    generated::write_index(folder.path(), 1000);
    let stopped = open(folder.path()).catalogue(&CatalogueOptions::default(), &Stopper::after(0));
    assert!(matches!(stopped, Err(ArchiveError::Interrupted)));
}

#[test]
fn an_empty_archive_has_a_root() {
    let rows = Rows::new();
    let (catalogue, _) = rows.load(AsOf::Now);
    assert_eq!(catalogue.len(), 1);
    let stat = catalogue.stat(EntryId::ROOT);
    assert_eq!(
        (stat.kind, stat.mtime.seconds),
        (Some(MemberKind::Directory), 0)
    );
    assert_eq!(catalogue.path(EntryId::ROOT), b"");
}

/// What a catalogue must show, told from a selection of rows: a path for each name, unless it is a directory, too.
fn model(rows: &[Row]) -> BTreeMap<Vec<u8>, i64> {
    let mut newest = BTreeMap::new();
    for row in rows {
        let parts = row.name.split(|&byte| byte == b'/');
        let parts: Vec<&[u8]> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
        let is_bad = row.name.starts_with(b"/") || parts.contains(&&b".."[..]) || parts.is_empty();
        if !is_bad {
            newest.insert(parts.join(&b'/'), row.id.0);
        }
    }
    let is_directory = |path: &[u8]| {
        newest.keys().any(|other: &Vec<u8>| {
            other
                .strip_prefix(path)
                .is_some_and(|rest| rest.first() == Some(&b'/'))
        })
    };
    let shown = newest.iter().filter(|(path, _)| !is_directory(path));
    shown.map(|(path, id)| (path.clone(), *id)).collect()
}

const NAMES: [&[u8]; 14] = [
    b"a", b"a/b", b"a/b/c", b"a/c", b"b", b"b/", b"b/./a", b"c//d", b"c/d", b"/a", b"../a", b"d",
    b"d/e/f/g", b"",
];

fn some_names() -> impl Strategy<Value = Vec<&'static [u8]>> {
    prop::collection::vec(prop::sample::select(&NAMES[..]), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_catalogue_agrees_with_a_selection_in_every_state(
        runs in prop::collection::vec((some_names(), some_names()), 1..6),
    ) {
        let mut rows = Rows::new();
        let states: Vec<RunId> = runs.iter().map(|(new, gone)| rows.run(new, gone)).collect();
        for as_of in states.into_iter().map(AsOf::Run).chain([AsOf::Now]) {
            let selection = Selection::of(&rows.index, as_of, Deleted::Hide, &|_| true).unwrap();
            let mut chosen = Vec::new();
            rows.index.selected(&selection, |row| {
                chosen.push(row.to_row());
                ControlFlow::Continue(())
            }).unwrap();
            let (catalogue, _) = rows.load(as_of);
            let found: BTreeMap<Vec<u8>, i64> = entries(&catalogue)
                .filter_map(|entry| Some((catalogue.path(entry), catalogue.row_id(entry)?.0)))
                .collect();
            prop_assert_eq!(found, model(&chosen));
        }
    }
}
