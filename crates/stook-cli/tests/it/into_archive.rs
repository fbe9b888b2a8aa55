//! Nothing is written into an archive but by the commands that write archives: neither by `extract` nor by `copy`.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use stook_testkit::{Tree, tree};

use crate::place::{Place, Ran};

/// A tree with the names that an archive's own files have.
fn tree_with_own_names() -> Tree {
    tree! {
        "000000.tar" => file(b"of the tree"),
        "000000.tar.partial" => file(b"of the tree"),
        "index.db" => file(b"of the tree"),
        "stook.lock" => file(b"of the tree"),
        "other" => file(b"other"),
    }
}

/// Bytes of every file below a folder, and mode and times of every directory.
fn state(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let metadata = fs::metadata(folder).unwrap();
    let facts = format!(
        "{:o} {} {}",
        metadata.mode(),
        metadata.mtime(),
        metadata.mtime_nsec()
    );
    found.insert(folder.to_str().unwrap().to_owned(), facts.into_bytes());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut state(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path.to_str().unwrap().to_owned(), bytes);
        }
    }
    found
}

/// A directory that appears in another place, too.
struct Bound<'a>(&'a Path);

impl<'a> Bound<'a> {
    fn mount(from: &Path, to: &'a Path) -> Option<Self> {
        fs::create_dir_all(to).unwrap();
        let done = Command::new("mount")
            .arg("--bind")
            .args([from, to])
            .output();
        let is_done = done.is_ok_and(|done| done.status.success());
        if !is_done {
            stook_testkit::skip!("nothing can be mounted here");
        }
        is_done.then_some(Self(to))
    }
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

fn assert_target_refused(ran: &Ran, what: &str) {
    assert_eq!(ran.status, Some(1), "{what}: {}", ran.stderr);
    assert!(
        ran.stderr.contains(": it is the archive, or in it"),
        "{what}: {}",
        ran.stderr
    );
}

#[test]
fn a_target_in_the_archive_is_refused_however_it_is_named() {
    let place = Place::with(&tree_with_own_names());
    place.stderr(&["create", "src", "arc"]);
    fs::create_dir(place.path("arc/sub")).unwrap();
    symlink("arc", place.path("link")).unwrap();
    symlink("../arc/sub", place.path("src/link")).unwrap();
    let before = state(&place.path("arc"));
    let absolute = place.path("arc").to_str().unwrap().to_owned();
    for into in [
        "arc",
        "arc/",
        "./arc/.",
        &absolute,
        "link",
        "link/new",
        "arc/sub",
        "arc/sub/new/deep",
        "arc/none/../x",
        "src/../arc",
        "arc/sub/..",
        "src/link",
        "src/link/new",
    ] {
        assert_target_refused(&place.run(&["extract", "arc", "--into", into]), into);
        assert_eq!(state(&place.path("arc")), before, "{into}");
        assert_target_refused(&place.run(&["extract", "link", "--into", into]), into);
        assert_eq!(state(&place.path("arc")), before, "{into}");
    }
    for (into, from) in [
        (".", "arc"),
        ("sub/new", "arc"),
        ("..", "arc/sub"),
        ("new", "arc/sub"),
    ] {
        let mut command = place.command(&["extract", &absolute, "--into", into]);
        let ran = Ran::of(command.current_dir(place.path(from)).output().unwrap());
        assert_target_refused(&ran, into);
        assert_eq!(state(&place.path("arc")), before, "{into} in {from}");
    }
    for from in ["arc", "arc/sub"] {
        let to = place.path("mounted");
        let Some(_mounted) = Bound::mount(&place.path(from), &to) else {
            return;
        };
        assert_target_refused(&place.run(&["extract", "arc", "--into", "mounted"]), from);
        if from == "arc" {
            assert_target_refused(&place.run(&["extract", "mounted", "--into", "arc"]), from);
            assert_target_refused(
                &place.run(&["extract", "arc", "--into", "mounted/new"]),
                from,
            );
        }
        assert_eq!(state(&place.path("arc")), before, "{from}");
    }
}

#[test]
fn a_mounted_directory_of_the_archive_is_no_place_for_a_new_target() {
    let place = Place::with(&tree_with_own_names());
    place.stderr(&["create", "src", "arc"]);
    fs::create_dir(place.path("arc/sub")).unwrap();
    let before = state(&place.path("arc"));
    let to = place.path("mounted");
    let Some(_mounted) = Bound::mount(&place.path("arc/sub"), &to) else {
        return;
    };
    let ran = place.run(&["extract", "arc", "--into", "mounted/new"]);
    assert_target_refused(&ran, "mounted/new");
    assert_eq!(state(&place.path("arc")), before);
}

#[test]
fn another_archive_is_no_target() {
    let place = Place::with(&tree_with_own_names());
    for archive in ["arc", "other", "zother", "damaged"] {
        place.stderr(&["create", "src", archive]);
    }
    fs::remove_file(place.path("zother/000000.tar")).unwrap();
    place.write("damaged/index.db", b"damaged");
    fs::create_dir(place.path("other/sub")).unwrap();
    symlink("other", place.path("link")).unwrap();
    let all = ["other", "zother", "damaged"];
    let before = all.map(|archive| state(&place.path(archive)));
    for into in [
        "other",
        "other/new",
        "other/sub/new",
        "link",
        "zother",
        "damaged",
        "src/../other",
    ] {
        for pattern in ["other", "*"] {
            let ran = place.run(&["extract", "arc", pattern, "--into", into]);
            assert_eq!(ran.status, Some(1), "{into}: {}", ran.stderr);
            let why = ": it is another archive, or in one\nhint: ";
            assert!(ran.stderr.contains(why), "{into}: {}", ran.stderr);
        }
    }
    assert_eq!(all.map(|archive| state(&place.path(archive))), before);
}

/// An archive of an archive: what is brought back first makes the target an archive.
#[test]
fn an_archive_that_is_brought_back_can_be_completed() {
    let place = Place::with(&tree! { "f" => file(b"1") });
    place.stderr(&["create", "src", "inner"]);
    place.stderr(&["create", "inner", "outer"]);
    place.stderr(&["extract", "outer", "--into", "back"]);
    fs::remove_file(place.path("back/000000.tar")).unwrap();
    place.stderr(&["extract", "outer", "--into", "back"]);
    place.assert_same_tree("inner", "back");
    place.stderr(&["check", "back"]);
    place.write("src/g", b"2");
    place.stderr(&["update", "src", "back"]);
    let ran = place.run(&["extract", "outer", "--into", "back"]);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    place.stderr(&["check", "back"]);
}

#[test]
fn files_of_the_archive_that_are_elsewhere_are_not_replaced() {
    let place = Place::with(&tree_with_own_names());
    place.stderr(&["create", "src", "arc"]);
    fs::create_dir(place.path("out")).unwrap();
    for name in ["000000.tar", "index.db"] {
        fs::rename(place.path("arc").join(name), place.path("out").join(name)).unwrap();
        symlink(format!("../out/{name}"), place.path("arc").join(name)).unwrap();
    }
    place.stderr(&["check", "arc"]);
    // An index and a volume side by side: only where one of them is left is the folder no archive of its own.
    for name in ["index.db", "000000.tar"] {
        let other = place.path("elsewhere");
        fs::rename(place.path("out").join(name), &other).unwrap();
        fs::remove_file(place.path("arc").join(name)).unwrap();
        symlink("../elsewhere", place.path("arc").join(name)).unwrap();
        let ran = place.run(&["extract", "arc", "--into", "out", "0*", "other"]);
        let is_refused = name == "000000.tar";
        assert_eq!(ran.status == Some(1), is_refused, "{}", ran.stderr);
        if !is_refused {
            let failure = "cannot extract `000000.tar`: a file of the archive is in its place";
            assert!(ran.stderr.contains(failure), "{}", ran.stderr);
            assert_eq!(ran.status, Some(3));
        }
        place.stderr(&["check", "arc"]);
        fs::remove_file(place.path("arc").join(name)).unwrap();
        fs::rename(&other, place.path("out").join(name)).unwrap();
        symlink(format!("../out/{name}"), place.path("arc").join(name)).unwrap();
    }
}

/// The archive lies in the target, and the tree has entries where it lies.
#[test]
fn members_that_would_land_in_the_archive_are_failures_and_the_rest_is_extracted() {
    let mut tree = Tree::new();
    tree.graft("arc", &tree_with_own_names());
    tree.graft("arc/sub", &tree_with_own_names());
    tree.graft("arc/new/deep", &tree_with_own_names());
    tree.graft("link", &tree_with_own_names());
    tree.graft("mounted", &tree_with_own_names());
    tree.graft("fine", &tree_with_own_names());
    tree.insert("hard", stook_testkit::file(b"another content"));
    for options in [&[][..], &["--no-directories"]] {
        let place = Place::with(&tree);
        fs::set_permissions(place.path("src/arc"), Permissions::from_mode(0o700)).unwrap();
        place.stderr(&[&["create", "src", "out/arc"][..], options].concat());
        fs::create_dir(place.path("out/arc/sub")).unwrap();
        fs::set_permissions(place.path("out/arc"), Permissions::from_mode(0o755)).unwrap();
        symlink("arc", place.path("out/link")).unwrap();
        fs::hard_link(place.path("out/arc/000000.tar"), place.path("out/hard")).unwrap();
        let to = place.path("out/mounted");
        let mounted = Bound::mount(&place.path("out/arc"), &to);
        let before = state(&place.path("out/arc"));
        for _ in 0..2 {
            let ran = place.run(&["extract", "out/arc", "--into", "out"]);
            assert_eq!(ran.status, Some(3), "{}", ran.stderr);
            for path in [
                "arc/index.db",
                "arc/000000.tar",
                "arc/sub/stook.lock",
                "arc/new/deep/other",
            ] {
                let named = ran.stderr.lines().any(|line| {
                    line.contains(&format!("`{path}`")) && line.contains("into the archive itself")
                });
                assert!(
                    named || ran.stderr.contains("more failures"),
                    "{path}: {}",
                    ran.stderr
                );
            }
            assert_eq!(state(&place.path("out/arc")), before);
        }
        assert_eq!(
            fs::read(place.path("out/hard")).unwrap(),
            b"another content"
        );
        assert_eq!(
            fs::read(place.path("out/fine/index.db")).unwrap(),
            b"of the tree"
        );
        assert!(
            mounted.is_none()
                || fs::read(to.join("index.db"))
                    .unwrap()
                    .starts_with(b"SQLite")
        );
        drop(mounted);
        place.stderr(&["check", "out/arc"]);
    }
}

#[test]
fn a_copy_into_an_archive_is_refused_however_that_is_named() {
    let place = Place::with(&tree_with_own_names());
    place.stderr(&["create", "src", "arc"]);
    place.stderr(&["create", "src", "zarc", "--compat", "zstash"]);
    fs::remove_file(place.path("zarc/000000.tar")).unwrap();
    fs::create_dir(place.path("arc/sub")).unwrap();
    symlink("arc", place.path("link")).unwrap();
    let before = (state(&place.path("arc")), state(&place.path("zarc")));
    for dest in [
        "arc",
        "link",
        "arc/sub",
        "arc/new",
        "link/new",
        "zarc",
        "zarc/new",
        "src/../arc",
    ] {
        for more in [&["--update"][..], &["--update", "--dry-run"], &[]] {
            let ran = place.run(&[&["copy", "src", dest][..], more].concat());
            let is_there = more.is_empty() && ran.stderr.contains("it is there already");
            let is_named = ran.stderr.contains("it is an archive")
                || ran.stderr.contains("it is in an archive");
            assert!(is_named || is_there, "{dest} {more:?}: {}", ran.stderr);
            assert_eq!(ran.status, Some(1), "{dest} {more:?}");
        }
    }
    for dest in ["arc/index.db", "arc/000000.tar", "link/new", "arc/sub/new"] {
        let ran = place.run(&["copy", "--update", "src/index.db", dest]);
        assert_eq!(ran.status, Some(1), "{dest}: {}", ran.stderr);
        assert!(ran.stderr.contains("an archive"), "{dest}: {}", ran.stderr);
    }
    assert_eq!(
        (state(&place.path("arc")), state(&place.path("zarc"))),
        before
    );
}

#[test]
fn an_archive_below_the_copy_stays_as_it_is_and_is_named() {
    let mut tree = Tree::new();
    tree.graft("a/arc", &tree_with_own_names());
    tree.insert("a/fine", stook_testkit::file(b"fine"));
    let place = Place::with(&tree);
    fs::create_dir_all(place.path("dest/a")).unwrap();
    place.stderr(&["create", "src", "dest/a/arc"]);
    place.write("dest/a/arc/.stook-1-1.partial", b"left");
    symlink("arc", place.path("dest/a/link")).unwrap();
    fs::create_dir(place.path("src/a/link")).unwrap();
    place.write("src/a/link/index.db", b"of the tree");
    let before = state(&place.path("dest/a/arc"));
    for more in ["--dry-run", "--quiet"] {
        let ran = place.run(&["copy", "--update", "src", "dest", more]);
        assert_eq!(ran.status, Some(3), "{}", ran.stderr);
        let failure = "cannot copy to `dest/a/arc`: it is an archive, and what is copied is none";
        assert!(ran.stderr.contains(failure), "{}", ran.stderr);
        assert_eq!(state(&place.path("dest/a/arc")), before);
    }
    assert_eq!(fs::read(place.path("dest/a/fine")).unwrap(), b"fine");
    // A link is replaced, not followed.
    assert_eq!(
        fs::read(place.path("dest/a/link/index.db")).unwrap(),
        b"of the tree"
    );
}

#[test]
fn an_archive_is_copied_and_its_copy_is_brought_up_to_date() {
    let place = Place::with(&tree! { "src/f" => file(b"1") });
    place.stderr(&["create", "src/src", "src/arc"]);
    place.stderr(&["copy", "src", "all"]);
    place.stderr(&["copy", "src/arc", "arc"]);
    place.write("src/src/g", b"2");
    place.stderr(&["update", "src/src", "src/arc"]);
    place.stderr(&["copy", "--update", "src", "all"]);
    place.stderr(&["copy", "--update", "src/arc", "arc"]);
    for copy in ["all/arc", "arc"] {
        place.assert_same_tree("src/arc", copy);
        place.stderr(&["check", copy]);
    }
    place.stderr(&["copy", "--update", "src/arc/000001.tar", "arc/000001.tar"]);
}
