//! A full disk: a clear error, an archive that is still valid, and the same command completes once there is room.

use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use stook_testkit::{Random, Tree, file};

use crate::crash::{assert_equal_archives, undisturbed};
use crate::place::{Place, Ran, names};

/// A small file system in memory, unmounted when dropped.
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// None, said aloud, where nothing can be mounted.
    pub(crate) fn mount(path: PathBuf, size: &str) -> Option<Self> {
        std::fs::create_dir(&path).unwrap();
        let output = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=755"),
                "stook-test",
            ])
            .arg(&path)
            .output();
        match output {
            Ok(output) if output.status.success() => Some(Self { path }),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                stook_testkit::skip!("cannot mount a small disk: {}", why.trim());
                None
            }
            Err(error) => {
                stook_testkit::skip!("cannot run mount: {error}");
                None
            }
        }
    }

    fn grow(&self, size: &str) {
        self.remount(&format!("size={size}"));
    }

    pub(crate) fn make_read_only(&self) {
        self.remount("ro");
    }

    fn remount(&self, option: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{option}")])
            .arg(&self.path)
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What stays mounted shows when the folder cannot be removed.
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

/// About 4 MB in 400 files.
fn large_tree(seed: u64) -> Tree {
    let mut random = Random::new(seed);
    let mut tree = Tree::new();
    for number in 0..400 {
        tree.insert(
            format!("d{}/f{number}", number % 4),
            file(random.bytes(10_000)),
        );
    }
    tree
}

/// What may stay after a command ended on a full disk: index.db, volumes, and what it can go on from.
fn assert_tidy(archive: &Path) {
    for name in names(archive) {
        let is_ours = name == "index.db"
            || name.ends_with(".tar")
            || name.ends_with(".tar.partial")
            || name.ends_with(".rows.partial");
        assert!(is_ours, "{:?}", names(archive));
    }
}

/// Runs a command on a full disk, which must fail well; returns its words.
fn fails_for_room(place: &Place, arguments: &[&str]) -> String {
    let ran = place.run(arguments);
    assert_eq!((ran.status, ran.text()), (Some(1), ""), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    ran.stderr
}

#[test]
fn a_create_on_a_full_disk_leaves_a_valid_archive_and_completes_later() {
    for (options, members_stay) in [
        // Eight are built at a time.
        (&["--volume-size", "100KiB"][..], true),
        (&["--volume-size", "500KiB"], false),
        (&["--checkpoint-size", "64KiB"], false),
        (&[], false),
    ] {
        let place = Place::with(&large_tree(1));
        let Some(disk) = SmallDisk::mount(place.path("disk"), "2m") else {
            return;
        };
        let create = |archive| [&["create", "src", archive][..], options].concat();
        let expected = undisturbed(&place, &[&create("arc")]);
        let words = fails_for_room(&place, &create("disk/arc"));
        assert!(
            words.contains("no space left on device") || words.contains("disk is full"),
            "{words}"
        );
        assert_tidy(&place.path("disk/arc"));
        place.stderr(&["check", "disk/arc"]);
        let held = place.stdout(&["list", "disk/arc"]).lines().count();
        assert_eq!(held > 0, members_stay, "{held} members");
        disk.grow("20m");
        place.stderr(&create("disk/arc"));
        assert_equal_archives(&expected, &place.path("disk/arc"));
    }
}

#[test]
fn the_error_of_a_full_disk_says_what_to_do() {
    let place = Place::with(&large_tree(2));
    let Some(_disk) = SmallDisk::mount(place.path("disk"), "2m") else {
        return;
    };
    assert_snapshot!(fails_for_room(&place, &["create", "src", "disk/arc"]), @r"
    error: cannot write `disk/arc/000000.tar.partial`: no space left on device
    hint: the archive is valid; make room and run the same command again, it goes on from there
    ");
}

#[test]
fn an_update_on_a_full_disk_keeps_what_was_there() {
    let place = Place::with(&large_tree(3));
    let Some(disk) = SmallDisk::mount(place.path("disk"), "6m") else {
        return;
    };
    place.stderr(&["create", "src", "disk/arc"]);
    let before = place.stdout(&["list", "disk/arc", "-l"]);
    large_tree(4).write(&place.path("src/more")).unwrap();
    fails_for_room(&place, &["update", "src", "disk/arc"]);
    assert_tidy(&place.path("disk/arc"));
    assert_eq!(place.stdout(&["list", "disk/arc", "-l"]), before);
    place.stderr(&["check", "disk/arc", "--volumes"]);
    disk.grow("20m");
    place.stderr(&["update", "src", "disk/arc"]);
    assert_eq!(
        names(&place.path("disk/arc")),
        ["000000.tar", "000001.tar", "index.db"]
    );
    place.stderr(&["extract", "disk/arc", "--into", "out"]);
    place.assert_same_tree("src", "out");
}

/// With more and more pages to spare, the disk gets full at every step: index, lock, volume, checkpoint, commit.
#[test]
fn wherever_the_disk_gets_full_the_run_completes_later() {
    let mut random = Random::new(5);
    let mut tree = Tree::new();
    for number in 0..40 {
        tree.insert(format!("f{number}"), file(random.bytes(2000)));
    }
    let place = Place::with(&tree);
    let options = [
        "--volume-size",
        "40KiB",
        "--checkpoint-size",
        "16KiB",
        "--jobs",
        "1",
    ];
    let expected = undisturbed(
        &place,
        &[&[&["create", "src", "arc"][..], &options].concat()],
    );
    let Some(disk) = SmallDisk::mount(place.path("disk"), "400k") else {
        return;
    };
    let create = [&["create", "src", "disk/arc"][..], &options].concat();
    let mut failures = 0;
    for room in (0..60).step_by(2).map(|pages| pages * 4096) {
        // A file that takes all but so much of the disk.
        let ballast = place.path("disk/ballast");
        let size = (400 << 10) - room;
        let wrote = std::fs::write(&ballast, vec![0; size]);
        if wrote.is_err() {
            // The folder itself takes a page.
            continue;
        }
        let ran = place.run(&create);
        if ran.status != Some(0) {
            failures += 1;
            assert_eq!(ran.status, Some(1), "{room}: {}", ran.stderr);
            assert!(ran.stderr.lines().count() == 2, "{room}: {}", ran.stderr);
            assert_tidy(&place.path("disk/arc"));
            if place.path("disk/arc/index.db").exists() {
                place.stderr(&["check", "disk/arc"]);
            }
        }
        std::fs::remove_file(&ballast).unwrap();
        if ran.status != Some(0) {
            place.stderr(&create);
        }
        assert_equal_archives(&expected, &place.path("disk/arc"));
        std::fs::remove_dir_all(place.path("disk/arc")).unwrap();
    }
    drop(disk);
    assert!(failures > 10, "{failures}");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_like_any_other() {
    let place = Place::with(&large_tree(6));
    let expected = undisturbed(&place, &[&["create", "src", "arc"]]);
    // The limit is in blocks of 512 bytes; without the trap the system would kill the process.
    let script = "trap '' XFSZ && ulimit -f 2000 && exec \"$0\" create src arc";
    let mut shell = place.command_of(Path::new("/bin/sh"), &["-c", script]);
    let ran = Ran::of(shell.arg(env!("CARGO_BIN_EXE_stook")).output().unwrap());
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert_snapshot!(ran.stderr, @"error: cannot write `arc/000000.tar.partial`: file too large");
    assert_tidy(&place.path("arc"));
    place.stderr(&["check", "arc"]);
    place.stderr(&["create", "src", "arc"]);
    assert_equal_archives(&expected, &place.path("arc"));
}
