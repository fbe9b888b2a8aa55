//! Whole trees: a mount has what was archived, name by name and fact by fact.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use stook_archive::{
    Archive, CatalogueOptions, OpenOptions, Silent, Versions, WriteOptions, update,
};
use stook_mount::{MountOptions, Shown};
use stook_testkit::{Compare, Fact, Kind, Snapshot, TempDir, Tree, tree};

use crate::scene::{Mount, Scene, has_fuse};

/// Sockets are not archived.
fn snapshot_without_sockets(root: &Path) -> Snapshot {
    let mut snapshot = Snapshot::take(root).unwrap();
    snapshot.retain(|_, facts| facts.kind != Kind::Socket);
    snapshot
}

#[test]
fn a_torture_tree_is_the_same_in_the_mount() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&Tree::torture());
    let mount = scene.mount();
    // Twice: the second time the kernel answers.
    for _ in 0..2 {
        let mut expected = snapshot_without_sockets(scene.source());
        let mut found = Snapshot::take(mount.path()).unwrap();
        assert!(found.len() > 500);
        let facts = Compare::everything();
        let difference = expected.difference(&found, &facts.clone().without(Fact::Links));
        assert_eq!(difference, [""; 0]);
        // Of links and fifos the archive has each name by itself.
        expected.retain(|_, facts| facts.kind == Kind::File);
        found.retain(|_, facts| facts.kind == Kind::File);
        assert_eq!(expected.difference(&found, &facts), [""; 0]);
    }
    assert_eq!(mount.lines(), [""; 0]);
    mount.unmount();
}

#[test]
fn diff_finds_no_difference() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&Tree::random(7, 400));
    let mount = scene.mount();
    let output = Command::new("diff")
        .args(["-r", "--no-dereference", "--exclude=*fifo*"])
        .args([scene.source(), mount.path()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // `diff` says of two fifos that they are fifos.
    let differences = text.lines().filter(|line| !line.ends_with("is a fifo"));
    assert_eq!(differences.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn numbers_of_inodes_stay_and_hard_links_share_them() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {
        "a" => file(b"one"), "b" => hardlink("a"), "c" => hardlink("a"), "d/e" => file(b"other"),
    });
    let numbers = |mount: &Mount| {
        let names = ["a", "b", "c", "d", "d/e"];
        names.map(|name| fs::metadata(mount.join(name)).unwrap().ino())
    };
    let mount = scene.mount();
    let before = numbers(&mount);
    assert_eq!((before[0], before[0]), (before[1], before[2]));
    assert_eq!(fs::metadata(mount.join("b")).unwrap().nlink(), 3);
    let mut all: Vec<u64> = before.into_iter().collect();
    all.push(fs::metadata(mount.path()).unwrap().ino());
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4);
    mount.unmount();

    tree! {"z" => file(b"new")}.write(scene.source()).unwrap();
    let mut archive = Archive::open(&scene.archive(), &OpenOptions::default()).unwrap();
    update(
        scene.source(),
        &mut archive,
        &WriteOptions::default(),
        &Silent,
    )
    .unwrap();
    assert_eq!(numbers(&scene.mount()), before);
}

/// The state is that of the moment of mounting; a writer does not wait for it.
#[test]
fn an_archive_can_be_updated_while_it_is_mounted() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {"a" => file(b"old"), "b" => file(b"stays")});
    let mount = scene.mount();
    let mut archive = Archive::open(&scene.archive(), &OpenOptions::default()).unwrap();
    tree! {"a" => file(b"newer"), "c" => file(b"added")}
        .write(scene.source())
        .unwrap();
    update(
        scene.source(),
        &mut archive,
        &WriteOptions::default(),
        &Silent,
    )
    .unwrap();
    assert_eq!(fs::read(mount.join("a")).unwrap(), b"old");
    assert_eq!(fs::read(mount.join("b")).unwrap(), b"stays");
    assert!(!mount.join("c").exists());
    let again = scene.mount();
    assert_eq!(fs::read(again.join("a")).unwrap(), b"newer");
    assert_eq!(fs::read(again.join("c")).unwrap(), b"added");
}

#[test]
fn archives_of_zstash_are_shown() {
    if !has_fuse() {
        return;
    }
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../stook-archive/tests/fixtures/zstash");
    for case in [
        "basic",
        "gnu-format",
        "hard-links",
        "no-tars-table",
        "odd-names",
        "volumes",
    ] {
        let case = fixtures.join(case);
        let mount = Mount::of(&case.join("archive"));
        let mut found = Snapshot::take(mount.path()).unwrap();
        // It was deleted in the tree, which zstash does not record.
        found.retain(|path, _| path != b"a/one.bin" || !case.ends_with("volumes"));
        let expected = Snapshot::read_expected(&case.join("expected.json")).unwrap();
        let none: [&str; 0] = [];
        assert_eq!(
            expected.difference(&found, &Compare::zstash()),
            none,
            "{case:?}"
        );
        mount.unmount();
    }
}

#[test]
fn the_size_of_the_whole_is_known() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {"a" => file([1; 10_000]), "b" => hardlink("a")});
    let mount = scene.mount();
    let output = Command::new("stat")
        .args(["--file-system", "--format=%b %a %s %c"])
        .arg(mount.path())
        .output()
        .unwrap();
    // Blocks, free ones, bytes of one, and files with the root.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "3 0 4096 3\n");
}

/// All versions of all files, deleted ones, too, for the one who mounts.
#[test]
fn every_version_is_in_a_directory_that_is_not_listed() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(
        &tree! {"a" => file(b"one"), "gone" => file(b"deleted"), "d/b" => file(b"b")},
    );
    tree! {"a" => file(b"second")}
        .write(scene.source())
        .unwrap();
    fs::remove_file(scene.source().join("gone")).unwrap();
    let mut archive = Archive::open(&scene.archive(), &OpenOptions::default()).unwrap();
    update(
        scene.source(),
        &mut archive,
        &WriteOptions::default(),
        &Silent,
    )
    .unwrap();
    let mut load = |versions| {
        let options = CatalogueOptions {
            versions,
            ..CatalogueOptions::default()
        };
        archive.catalogue(&options, &Silent).unwrap()
    };
    let shown = Shown {
        main: load(Versions::Newest),
        versions: Some(load(Versions::All)),
    };
    let mount = Mount::at(TempDir::new().unwrap(), shown, &MountOptions::default());
    let names = |directory: &str| {
        let entries = fs::read_dir(mount.join(directory)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(""), ["a", "d"]);
    assert_eq!(names(".stook"), ["a", "d", "gone"]);
    assert_eq!(names(".stook/d"), ["b"]);
    let contents = |directory: &str| {
        let names = names(directory).into_iter();
        let paths = names.map(|name| mount.join(directory).join(name));
        let mut contents: Vec<String> = paths
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        contents.sort_unstable();
        contents
    };
    assert_eq!(contents(".stook/a"), ["one", "second"]);
    assert_eq!(contents(".stook/gone"), ["deleted"]);
    assert_eq!(fs::read(mount.join("a")).unwrap(), b"second");
    let closed = fs::metadata(mount.join(".stook")).unwrap();
    assert_eq!(closed.mode() & 0o777, 0o700);
    assert_ne!(closed.ino(), fs::metadata(mount.path()).unwrap().ino());
}
