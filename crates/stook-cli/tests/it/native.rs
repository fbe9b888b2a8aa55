//! `stook mount --native` and `stook export erofs`: what the kernel shows of the volumes, and what is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use stook_testkit::{Compare, Fact, Kind, Snapshot, Tree, skip, tree};

use crate::place::{Place, Ran};

/// Unmounts what a test has mounted.
struct Point<'p>(&'p Place);

impl<'p> Point<'p> {
    fn of(place: &'p Place) -> Self {
        let _ = fs::create_dir(place.path("point"));
        Self(place)
    }

    fn unmount(self) {
        let status = Command::new("umount").arg(self.0.path("point")).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Point<'_> {
    fn drop(&mut self) {
        // Mostly nothing is mounted there any more.
        let _ = Command::new("umount")
            .args(["-l", "-q"])
            .arg(self.0.path("point"))
            .stderr(Stdio::null())
            .status();
    }
}

/// Mounts natively, with a cache of the place's own.
fn native(place: &Place, arguments: &[&str]) -> Ran {
    let words = [&["mount", "--native"], arguments].concat();
    let mut command = place.command(&words);
    Ran::of(
        command
            .env("XDG_CACHE_HOME", place.path("cache"))
            .output()
            .unwrap(),
    )
}

fn mounted<'p>(place: &'p Place, arguments: &[&str]) -> Point<'p> {
    let point = Point::of(place);
    let ran = native(place, &[arguments, &["point"]].concat());
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{}", ran.text());
    point
}

fn options_of(place: &Place) -> Option<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let point = place.path("point");
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(1) == point.to_str())?;
    line.split(' ').nth(3).map(ToOwned::to_owned)
}

/// Returns true if archives can be mounted natively here; says so if not.
fn has_native() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let place = archived(&tree! {"a" => file(b"a")});
        let point = Point::of(&place);
        let ran = native(&place, &["arc", "point"]);
        drop(point);
        let known = ["only root can", "has no EROFS", "takes no image in"];
        let is_known = known.iter().any(|text| ran.stderr.contains(text));
        assert!(ran.status == Some(0) || is_known, "{}", ran.stderr);
        is_known.then_some(ran.stderr)
    });
    if let Some(reason) = reason {
        skip!(
            "no native mounts here: {}",
            reason.lines().next().unwrap_or("")
        );
    }
    reason.is_none()
}

fn archived(tree: &Tree) -> Place {
    let place = Place::with(tree);
    place.stderr(&["create", "src", "arc"]);
    place
}

/// Sockets are not archived.
fn snapshot_of_source(place: &Place) -> Snapshot {
    let mut snapshot = place.snapshot("src");
    snapshot.retain(|_, facts| facts.kind != Kind::Socket);
    snapshot
}

#[test]
fn a_torture_tree_is_the_same_in_a_native_mount() {
    if !has_native() {
        return;
    }
    let place = archived(&Tree::torture());
    let point = mounted(&place, &["arc"]);
    let options = options_of(&place).unwrap();
    for option in ["ro", "nosuid", "nodev"] {
        assert!(options.split(',').any(|found| found == option), "{options}");
    }
    let (mut expected, mut found) = (snapshot_of_source(&place), place.snapshot("point"));
    assert!(found.len() > 500);
    let facts = Compare::everything();
    let but_links = facts.clone().without(Fact::Links);
    assert_eq!(expected.difference(&found, &but_links), [""; 0]);
    // Of links and fifos the archive has each name by itself.
    expected.retain(|_, facts| facts.kind == Kind::File);
    found.retain(|_, facts| facts.kind == Kind::File);
    assert_eq!(expected.difference(&found, &facts), [""; 0]);
    // The image has no name any more.
    assert_eq!(
        fs::read_dir(place.path("cache/stook/images"))
            .unwrap()
            .count(),
        0
    );
    let folder = fs::metadata(place.path("cache/stook/images")).unwrap();
    assert_eq!(folder.mode() & 0o777, 0o700);
    point.unmount();
}

#[test]
fn diff_finds_no_difference_in_a_native_mount() {
    if !has_native() {
        return;
    }
    let place = Place::with(&Tree::random(11, 400));
    place.stderr(&["create", "src", "arc", "--volume-size", "100KB"]);
    assert!(place.names("arc").len() > 3);
    let _point = mounted(&place, &["arc"]);
    let output = Command::new("diff")
        .args(["-r", "--no-dereference", "--exclude=*fifo*", "src", "point"])
        .current_dir(place.root())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // `diff` says of two fifos that they are fifos.
    let differences = text.lines().filter(|line| !line.ends_with("is a fifo"));
    assert_eq!(differences.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn archives_of_zstash_are_mounted_natively() {
    if !has_native() {
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
        let place = Place::new();
        let case = fixtures.join(case);
        let point = mounted(&place, &[case.join("archive").to_str().unwrap()]);
        let mut found = place.snapshot("point");
        // It was deleted in the tree, which zstash does not record.
        found.retain(|path, _| path != b"a/one.bin" || !case.ends_with("volumes"));
        let expected = Snapshot::read_expected(&case.join("expected.json")).unwrap();
        let difference = expected.difference(&found, &Compare::zstash());
        assert_eq!(difference, [""; 0], "{case:?}");
        point.unmount();
    }
}

#[test]
fn names_that_lead_elsewhere_are_not_in_an_image() {
    if !has_native() {
        return;
    }
    let place = archived(&tree! {
        "a" => file(b"a"), "b" => file(b"b"), "c" => file(b"c"), "d/e" => file(b"e"), "f" => file(b"f"),
        "g" => file(b"g"), "~" => file(b"~"), "!" => file(b"!"), "-" => file(b"-"),
    });
    place.sql(
        "arc/index.db",
        "update files set name = '../outside' where name = 'a'; update files set name = '/etc/passwd' where name = 'b';
         update files set name = 'd' where name = 'c'; update files set name = 'g' where name = 'f';
         delete from files where name = 'd' and md5 is null;",
    );
    let point = Point::of(&place);
    let ran = native(&place, &["arc", "point"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    for text in [
        "`../outside`",
        "`/etc/passwd`",
        "`d`: a directory has the same name",
    ] {
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
    }
    assert_eq!(place.names("point"), ["!", "-", "d", "g", "~"]);
    assert_eq!(place.names("point/d"), ["e"]);
    for name in ["!", "-", "g", "~", "d/e"] {
        let content = fs::read(place.path("point").join(name)).unwrap();
        assert_eq!(content, &name.as_bytes()[name.len() - 1..], "{name}");
    }
    point.unmount();
}

/// Round trips of names: every length, and every first byte, around the places of `.` and `..`.
#[test]
fn names_of_all_lengths_and_bytes_are_found() {
    if !has_native() {
        return;
    }
    let mut tree = Tree::new();
    for len in 1..=255 {
        tree.insert(
            format!("lengths/{}", "n".repeat(len)),
            stook_testkit::file(b""),
        );
    }
    for byte in (1..=255_u8).filter(|byte| !b"./".contains(byte)) {
        tree.insert(
            [b"bytes/", &[byte][..]].concat(),
            stook_testkit::file([byte]),
        );
        tree.insert(
            [b"bytes/", &[byte, b'.'][..]].concat(),
            stook_testkit::file(b""),
        );
        tree.insert([b"bytes/.", &[byte][..]].concat(), stook_testkit::file(b""));
        tree.insert(
            [b"bytes/..", &[byte][..]].concat(),
            stook_testkit::file(b""),
        );
    }
    let place = archived(&tree);
    let point = mounted(&place, &["arc"]);
    // Listed, and each of them looked up.
    place.assert_same_tree("src", "point");
    point.unmount();
}

#[test]
fn the_kernel_heeds_access_lists_and_modes() {
    if !has_native() {
        return;
    }
    let place = archived(&tree! {
        "listed" => file(b"for one group"), "secret" => file(b"x").mode(0o600), "closed/a" => file(b"x"),
    });
    let set = Command::new("setfacl")
        .args(["-m", "u:1234:rw,g::---,o::---"])
        .arg(place.path("src/listed"))
        .status();
    if !set.is_ok_and(|status| status.success()) {
        return skip!("setfacl is not installed, or does not work here");
    }
    place.set_mode("src/closed", 0o700);
    place.stderr(&["update", "src", "arc", "--metadata"]);
    fs::set_permissions(place.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let point = mounted(&place, &["arc"]);
    let reads = |user: &str, group: &str, name: &str| {
        let ran = Command::new("setpriv")
            .args(["--reuid", user, "--regid", group, "--clear-groups", "cat"])
            .arg(place.path("point").join(name))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        ran.unwrap().success()
    };
    assert!(reads("1234", "1234", "listed"));
    // The group's bits are the mask of the list, and let nobody in.
    assert!(!reads("4321", "0", "listed"));
    assert!(!reads("4321", "4321", "secret"));
    assert!(!reads("4321", "4321", "closed/a"));
    point.unmount();
}

#[test]
fn holes_stay_holes_and_too_many_are_refused() {
    if !has_native() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("src")).unwrap();
    let written = |name: &str, at: &[u64], size: u64| {
        use std::os::unix::fs::FileExt;
        let file = fs::File::create(place.path("src").join(name)).unwrap();
        file.set_len(size).unwrap();
        for &at in at {
            file.write_all_at(&[7; 4096], at).unwrap();
        }
    };
    written("holes", &[0, 1 << 20, (1 << 28) - 4096], 1 << 28);
    written("empty", &[], 1 << 28);
    place.stderr(&["create", "src", "arc"]);
    let point = mounted(&place, &["arc"]);
    assert_eq!(
        fs::metadata(place.path("point/empty")).unwrap().len(),
        1 << 28
    );
    let compared = Command::new("cmp")
        .args(["src/holes", "point/holes"])
        .current_dir(place.root())
        .status();
    assert!(compared.unwrap().success());
    point.unmount();

    // Its MD5 is taken of all of it, so no more than it takes.
    written("many", &[4096], (1 << 32) + 8192);
    place.stderr(&["update", "src", "arc"]);
    let ran = native(&place, &["arc", "point"]);
    assert_eq!(ran.status, Some(1));
    for text in [
        "`many`: its holes divide it into 1048578 pieces",
        "error: cannot mount it natively: a file cannot be shown",
        "hint: without --native",
    ] {
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
    }
    assert_eq!(options_of(&place), None);
    let ran = place.run(&["export", "erofs", "arc", "image"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
}

#[test]
fn an_image_of_another_state_or_of_other_volumes_is_refused() {
    if !has_native() {
        return;
    }
    let place = archived(&tree! {"a" => file(b"one"), "d/b" => file([7; 5000])});
    // In the archive, too: it is just a file there.
    let said = place.stderr(&["export", "erofs", "arc", "arc/image"]);
    assert!(said.starts_with("wrote an image of 4 inodes"), "{said}");
    let point = mounted(&place, &["--image", "arc/image", "arc"]);
    place.assert_same_tree("src", "point");
    point.unmount();

    let refused = |text: &str| {
        let ran = native(&place, &["--image", "arc/image", "arc", "point"]);
        assert_eq!(ran.status, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        assert_eq!(options_of(&place), None);
    };
    tree! {"new" => file(b"x")}
        .write(&place.path("src"))
        .unwrap();
    place.stderr(&["update", "src", "arc"]);
    refused("`arc/image`: it shows run 1, last id");
    let point = mounted(&place, &["--image", "arc/image", "--as-of", "1", "arc"]);
    assert!(!place.path("point/new").exists());
    point.unmount();

    place.stderr(&["export", "erofs", "arc", "arc/image"]);
    place.set_mode("arc/000000.tar", 0o644);
    let volume = fs::OpenOptions::new()
        .write(true)
        .open(place.path("arc/000000.tar"))
        .unwrap();
    let len = volume.metadata().unwrap().len();
    volume.set_len(len - 512).unwrap();
    refused(&format!(
        "it was made for {len} bytes of 000000.tar, there are {}",
        len - 512
    ));
    let ran = native(&place, &["arc", "point"]);
    assert_eq!(ran.status, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("the index says"), "{}", ran.stderr);
    volume.set_len(len).unwrap();

    // An image in the archive is never taken by itself.
    fs::write(place.path("arc/image"), b"no image").unwrap();
    refused("stook has not written it");
    mounted(&place, &["arc"]).unmount();
}

#[test]
fn what_does_not_fit_a_native_mount_is_said() {
    if !has_native() {
        return;
    }
    let place = archived(&tree! {"a" => file([1; 100])});
    place.stderr(&["create", "--zstd", "src", "compressed"]);
    fs::create_dir(place.path("point")).unwrap();
    for (arguments, status, text) in [
        (
            &["--verify", "arc"][..],
            2,
            "cannot use `--verify` for --native: the kernel verifies nothing",
        ),
        (&["--cache", "c", "arc"], 2, "cannot use `--cache`"),
        (&["--all-versions", "arc"], 2, "an image shows one state"),
        (&["--foreground", "arc"], 2, "no process serves the mount"),
        (
            &["--store", "s", "arc"],
            2,
            "must be in the archive's folder",
        ),
        (&["http://localhost/arc"], 2, "a folder of this machine"),
        (
            &["compressed"],
            1,
            "000000.tar.zst: compressed volumes hold no file as it is",
        ),
        (&["missing"], 1, "missing"),
    ] {
        let ran = native(&place, &[arguments, &["point"]].concat());
        assert_eq!(ran.status, Some(status), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(text), "{arguments:?}: {}", ran.stderr);
    }
    let ran = native(&place, &["arc", "arc"]);
    assert!(
        ran.stderr.contains("the archive lies in it"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["export", "erofs", "arc", "arc/index.db"]);
    assert!(
        ran.stderr.contains("it is a part of the archive"),
        "{}",
        ran.stderr
    );
    fs::rename(place.path("arc/000000.tar"), place.path("away")).unwrap();
    let ran = native(&place, &["arc", "point"]);
    assert!(
        ran.stderr.contains("000000.tar is not there\nhint: "),
        "{}",
        ran.stderr
    );
    assert_eq!(options_of(&place), None);
}

#[test]
fn an_image_in_memory_is_refused_with_advice() {
    if !has_native() {
        return;
    }
    let memory = Path::new("/dev/shm");
    let Ok(folder) = stook_testkit::TempDir::new_in(memory) else {
        return skip!("there is no /dev/shm");
    };
    let place = archived(&tree! {"a" => file(b"a")});
    let point = Point::of(&place);
    let mut command = place.command(&["mount", "--native", "arc", "point"]);
    let ran = Ran::of(
        command
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .unwrap(),
    );
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("takes no image in"), "{}", ran.stderr);
    assert!(ran.stderr.contains("XDG_CACHE_HOME"), "{}", ran.stderr);
    drop(point);
}
