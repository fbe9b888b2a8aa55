//! `remove --archived-in`: only what the archive provably holds goes.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use stook_testkit::{file, tree};

use crate::commands::sample_tree;
use crate::place::{Place, Ran, json_lines, make_writable};

/// A tree as `src`, and its archive as `arc`.
fn archived() -> Place {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    place
}

fn remove(place: &Place, more: &[&str]) -> Ran {
    place.run(&[&["remove", "--archived-in", "arc"], more].concat())
}

/// Lines of stdout in order.
fn lines(ran: &Ran) -> Vec<&str> {
    let mut lines: Vec<&str> = ran.text().lines().collect();
    lines.sort_unstable();
    lines
}

fn set_mode(place: &Place, path: &str, mode: u32) {
    fs::set_permissions(place.path(path), Permissions::from_mode(mode)).unwrap();
}

/// Sets the time of the last change to one of `touch`'s words for it, or to that of a file.
fn touch(path: &Path, time: &str) {
    let mut touch = Command::new("touch");
    let touch = touch.args(["-h", time]).arg(path).status();
    assert!(touch.unwrap().success());
}

/// Flips a bit of the volume.
fn damage(place: &Place, at: u64) {
    let volume = place.path("arc/000000.tar");
    make_writable(&volume);
    let file = File::options().read(true).write(true).open(&volume);
    let file = file.unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn only_what_the_archive_holds_goes() {
    let place = archived();
    place.write("src/a", "hello!\n");
    place.write("src/d/new", "new\n");
    let would = remove(&place, &["--dry-run", "src"]);
    assert_eq!(would.status, Some(3), "{}", would.stderr);
    assert_eq!(
        lines(&would),
        [
            "changed   src/a",
            "new       src/d/new",
            "remove    src/b",
            "remove    src/d/deep",
            "remove    src/empty",
            "remove    src/link",
        ]
    );
    assert_snapshot!(would.stderr, @"would remove 4 entries, 1 of them directories; 2 would stay");
    assert_eq!(place.names("src"), ["a", "b", "d", "empty", "link"]);
    let ran = remove(&place, &["src"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert_eq!(lines(&ran), ["changed   src/a", "new       src/d/new"]);
    assert_snapshot!(ran.stderr, @"removed 4 entries, 1 of them directories; 2 stay");
    assert_eq!(place.names("src"), ["a", "d"]);
    assert_eq!(place.names("src/d"), ["new"]);
    assert_eq!(place.names("arc"), ["000000.tar", "index.db"]);
    place.stderr(&["update", "src", "arc"]);
    let rest = remove(&place, &["src"]);
    assert_snapshot!(rest.stderr, @"removed 4 entries, 2 of them directories; 0 stay");
    assert!(!place.path("src").exists());
    place.stderr(&["check", "arc", "--volumes"]);
}

#[test]
fn json_has_the_same_facts() {
    let place = archived();
    place.write("src/a", "hello!\n");
    let ran = remove(&place, &["--json", "src"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    let lines = json_lines(ran.text());
    let of = |kind: &str| -> Vec<_> { lines.iter().filter(|line| line["type"] == kind).collect() };
    let stays = serde_json::json!({ "type": "stays", "path": "src/a", "why": "changed" });
    assert_eq!(of("stays"), [&stays]);
    let summary = serde_json::json!({
        "type": "summary", "entries": 5, "directories": 2, "staying": 1, "failed": 0,
        "damages": 0, "dry_run": false,
    });
    assert_eq!(of("summary"), [&summary]);
}

#[test]
fn another_content_with_the_same_size_and_time_stays() {
    let place = archived();
    let path = place.path("src/b");
    let mtime = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "bytes of c\n").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(mtime).unwrap();
    let link = place.path("src/link");
    fs::rename(&link, place.path("old")).unwrap();
    symlink("d/deeq", &link).unwrap();
    touch(&link, &format!("-r{}", place.path("old").display()));
    let ran = remove(&place, &["src"]);
    assert_eq!(lines(&ran), ["changed   src/b", "changed   src/link"]);
    assert_eq!(place.names("src"), ["b", "link"]);
}

#[test]
fn an_unreadable_file_stays_and_is_a_failure() {
    let place = archived();
    place.write("src/new", "new");
    place.write("src/a", "hello!\n");
    for path in ["src", "src/d", "src/empty", "arc", "arc/index.db"] {
        set_mode(&place, path, 0o777);
    }
    set_mode(&place, "src/b", 0);
    let arguments = ["remove", "--archived-in", "arc", "--keep-root", "src"];
    let ran = place.run_as_nobody(&arguments);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert_eq!(lines(&ran), ["changed   src/a", "new       src/new"]);
    assert_snapshot!(ran.stderr, @r"
    error: cannot open `src/b`: permission denied
    removed 4 entries, 2 of them directories; 1 failed; 2 stay
    ");
    assert_eq!(place.names("src"), ["a", "b", "new"]);
}

#[test]
fn what_is_in_a_damaged_or_missing_volume_stays() {
    let place = archived();
    damage(&place, 4000);
    let all = ["a", "b", "d", "empty", "link"];
    let ran = remove(&place, &["src"]);
    assert_eq!(ran.status, Some(4), "{}", ran.stderr);
    let unchecked = |ran: &Ran| lines(ran).iter().all(|line| line.starts_with("unchecked "));
    assert!(unchecked(&ran), "{}", ran.text());
    assert_eq!(place.names("src"), all);
    fs::rename(place.path("arc/000000.tar"), place.path("away")).unwrap();
    let ran = remove(&place, &["src"]);
    assert_eq!(ran.status, Some(4), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the volume is missing"),
        "{}",
        ran.stderr
    );
    assert!(unchecked(&ran), "{}", ran.text());
    assert_eq!(place.names("src"), all);
}

/// Returns true if a removal checks the volume first.
fn checks(place: &Place) -> bool {
    let ran = remove(place, &["-v", "--dry-run", "src"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let is_check = |line: &str| line.trim_start().starts_with("check");
    ran.stderr.lines().any(is_check)
}

#[test]
fn a_check_on_record_is_believed_until_the_volume_changes() {
    let place = archived();
    assert!(checks(&place));
    assert!(!checks(&place));
    let volume = place.path("arc/000000.tar");
    let times = fs::metadata(&volume).unwrap().modified().unwrap();
    make_writable(&volume);
    let file = File::options().write(true).open(&volume).unwrap();
    file.set_modified(SystemTime::now()).unwrap();
    assert!(checks(&place));
    assert!(!checks(&place));
    // The same size and time again; only the system knows that it was touched.
    damage(&place, 4000);
    damage(&place, 4000);
    file.set_modified(times).unwrap();
    assert!(checks(&place));
}

#[test]
fn a_row_that_was_damaged_after_its_volume_passed_is_not_believed() {
    for flip in ["offset = offset + 512", "tar = '000001.tar'"] {
        let place = archived();
        place.write("src/new", "new\n");
        place.stderr(&["update", "src", "arc"]);
        assert!(checks(&place));
        assert!(!checks(&place));
        place.sql(
            "arc/index.db",
            &format!("UPDATE files SET {flip} WHERE name = 'a'"),
        );
        let ran = remove(&place, &["src"]);
        assert_eq!(ran.status, Some(4), "{flip}: {}", ran.stderr);
        assert!(place.path("src/a").exists(), "{flip}");
    }
}

#[test]
fn a_check_that_finds_damage_is_off_the_record() {
    let place = archived();
    assert!(checks(&place));
    let recorded = || place.sql_text("arc/index.db", "select volume from stook_checks");
    assert_eq!(recorded(), "000000.tar");
    damage(&place, 4000);
    assert_eq!(place.run(&["check", "arc", "b"]).status, Some(4));
    assert_eq!(recorded(), "");
    damage(&place, 4000);
    place.stderr(&["check", "arc"]);
    assert_eq!(recorded(), "");
}

#[test]
fn an_archive_that_stook_never_wrote_to_is_not_changed() {
    let place = archived();
    let all = place.sql_text(
        "arc/index.db",
        "select 'drop table ' || name || ';' from sqlite_master where name like 'stook~_%' escape '~' and type = 'table'",
    );
    place.sql("arc/index.db", &all);
    let index = || fs::read(place.path("arc/index.db")).unwrap();
    let before = index();
    place.stderr(&["check", "arc"]);
    let ran = remove(&place, &["src"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(!place.path("src").exists());
    assert!(before == index());
}

#[test]
fn patterns_protect_directories_too() {
    let place = Place::with(&tree! {
        "a/x.o" => file(b"x"),
        "b/empty/" => dir(),
        "keep/empty/" => dir(),
        "keep/w.o" => file(b"w"),
    });
    place.stderr(&["create", "src", "arc"]);
    remove(&place, &["--include", "*.o", "--exclude", "keep/*", "src"]);
    assert_eq!(place.names("src"), ["a", "b", "keep"]);
    assert_eq!(place.names("src/a"), [""; 0]);
    assert_eq!(place.names("src/keep"), ["empty", "w.o"]);
    remove(&place, &["--exclude", "keep/*", "src"]);
    // `a` has another time since it was emptied; empty as it is, that is no content.
    assert_eq!(place.names("src"), ["keep"]);
    assert_eq!(place.names("src/keep"), ["empty", "w.o"]);
}

#[test]
fn the_archive_in_the_tree_stays() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "src/arc"]);
    let ran = place.run(&["remove", "--archived-in", "src/arc", "src"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(ran.text(), "archive   src/arc\n");
    assert_eq!(place.names("src"), ["arc"]);
    place.stderr(&["extract", "src/arc", "--into", "out"]);
}

#[test]
fn another_archive_in_the_tree_stays_unless_it_is_wanted() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "src/other"]);
    place.stderr(&["create", "src", "arc"]);
    let ran = remove(&place, &["src"]);
    assert_eq!(ran.text(), "archive   src/other\n", "{}", ran.stderr);
    assert_eq!(place.names("src"), ["other"]);
    place.stderr(&["check", "src/other"]);
    let ran = remove(&place, &["src/other"]);
    assert_eq!(ran.status, Some(1));
    let ran = remove(&place, &["src", "--with-archives"]);
    assert_eq!((ran.status, ran.text()), (Some(0), ""), "{}", ran.stderr);
    assert_eq!(place.names("src"), [""; 0]);
}

#[test]
fn a_part_of_the_archived_tree_is_compared_with_that_part() {
    let place = archived();
    symlink("src", place.path("other")).unwrap();
    assert_snapshot!(place.stderr(&["remove", "--archived-in", "arc", "other/d"]), @r"
    note: compared with `d` in the archive
    removed 2 entries, 1 of them directories; 0 stay
    ");
    assert_eq!(place.names("src"), ["a", "b", "empty", "link"]);
    fs::rename(place.path("src"), place.path("moved")).unwrap();
    let moved = remove(&place, &["--dry-run", "moved/a"]);
    assert_eq!(moved.status, Some(1), "{}", moved.stderr);
    assert_snapshot!(moved.stderr, @"error: cannot remove `moved/a`: it is no directory, and only a tree can be compared with an archive");
    assert_snapshot!(remove(&place, &["moved"]).stderr, @r"
    note: what is removed is not recorded: this is not the tree that the archive was created from
    hint: if it is that tree, in another place now, `--record` keeps an update from finding these names deleted
    removed 5 entries, 2 of them directories; 0 stay
    ");
}

#[test]
fn links_and_empty_directories_of_a_part_are_found_in_the_archive() {
    let place = Place::with(&tree! {
        "part/empty/" => dir(),
        "part/link" => symlink("where"),
    });
    place.stderr(&["create", "src", "arc"]);
    let ran = remove(&place, &["src/part"]);
    assert_eq!(ran.text(), "");
    assert_eq!(place.names("src"), [""; 0]);
}

#[test]
fn special_files_stay_whether_the_archive_has_them_or_not() {
    let place = archived();
    let _socket = UnixListener::bind(place.path("src/socket")).unwrap();
    let ran = remove(&place, &["src"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert_eq!(ran.text(), "special   src/socket\n");
}

#[test]
fn trees_that_make_no_sense() {
    let place = archived();
    let two = remove(&place, &["src/a", "src/b"]);
    assert_eq!(two.status, Some(2), "{}", two.stderr);
    let missing = remove(&place, &["none"]);
    assert_eq!(missing.status, Some(0));
    assert_snapshot!(missing.stderr, @r"
    note: `none` is not there
    removed 0 entries, 0 of them directories; 0 stay
    ");
    let none = place.run(&["remove", "--archived-in", "none", "src"]);
    assert_eq!(none.status, Some(1), "{}", none.stderr);
    assert_eq!(place.names("src"), ["a", "b", "d", "empty", "link"]);
}

#[test]
fn names_of_one_file_go_together() {
    let place = Place::with(&tree! { "d0/f" => file(b"one file") });
    for number in 1..40 {
        let directory = place.path(&format!("src/d{number}"));
        fs::create_dir(&directory).unwrap();
        fs::hard_link(place.path("src/d0/f"), directory.join("f")).unwrap();
    }
    place.stderr(&["create", "src", "arc"]);
    let ran = remove(&place, &["--jobs", "4", "src"]);
    assert_eq!(ran.text(), "");
    assert!(!place.path("src").exists());
}

#[test]
fn two_at_once_both_end_well() {
    let mut many = sample_tree();
    for number in 0..500 {
        many.insert(format!("many/{}/{number}", number % 20), file(b"content"));
    }
    let place = Place::with(&many);
    place.stderr(&["create", "src", "arc"]);
    remove(&place, &["--dry-run", "src"]);
    let start = || {
        let mut command = place.command(&["remove", "--archived-in", "arc", "src", "--no-record"]);
        command.spawn().unwrap()
    };
    let both = [start(), start()].map(|child| Ran::of(child.wait_with_output().unwrap()));
    for ran in &both {
        // A directory that one of them saw empty, because the other one was at it.
        let stay = lines(ran);
        let status = if stay.is_empty() { 0 } else { 3 };
        assert_eq!(ran.status, Some(status), "{}", ran.stderr);
        assert!(
            stay.iter().all(|line| line.starts_with("changing  ")),
            "{stay:?}"
        );
    }
    assert_eq!(remove(&place, &["src"]).text(), "");
    assert!(!place.path("src").exists());
}

#[test]
fn what_takes_a_name_meanwhile_is_not_lost() {
    let place = Place::with(&tree! { "f" => file(b"archived") });
    place.stderr(&["create", "src", "arc"]);
    remove(&place, &["--dry-run", "src"]);
    let (name, old, new) = (place.path("src/f"), place.path("old"), place.path("new"));
    let mtime = fs::metadata(&name).unwrap().modified().unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let removers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        remove(&place, &["--keep-root", "--no-record", "src"]);
                    }
                })
            })
            .collect();
        for round in 0..2000 {
            fs::write(&old, "archived").unwrap();
            let file = File::options().write(true).open(&old).unwrap();
            file.set_modified(mtime).unwrap();
            fs::rename(&old, &name).unwrap();
            std::thread::sleep(Duration::from_micros(round % 400));
            fs::write(&new, "new").unwrap();
            fs::rename(&new, &name).unwrap();
            std::thread::yield_now();
            // It may have lost its name for a moment.
            let is_there = (0..1000).any(|_| {
                let is_new = fs::read(&name).is_ok_and(|content| content == b"new");
                is_new || {
                    std::thread::sleep(Duration::from_millis(1));
                    false
                }
            });
            if !is_there {
                is_done.store(true, Ordering::Relaxed);
                panic!("lost in round {round}");
            }
        }
        is_done.store(true, Ordering::Relaxed);
        drop(removers);
    });
    assert!(place.path("src/f").exists());
    // A file that was set aside cannot get its name back if the next round took it first: then it stays beside it.
    for name in place.names("src") {
        let is_aside = name.starts_with(".stook-") && name.ends_with(".removed");
        let expected = name == "f" || is_aside;
        let content = fs::read(place.path("src").join(&name)).unwrap();
        assert!(expected && content == b"new", "{name}: {content:?}");
    }
}

#[test]
fn nobody_to_read_the_list_ends_the_removal() {
    let mut many = sample_tree();
    for number in 0..3000 {
        many.insert(format!("many/{number:04}"), file(b""));
    }
    let place = Place::with(&many);
    fs::create_dir(place.path("nothing")).unwrap();
    place.stderr(&["create", "nothing", "arc"]);
    let mut command = place.command(&["remove", "--archived-in", "arc", "src", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(place.names("src/many").len(), 3000);
}
