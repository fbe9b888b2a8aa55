//! How the slow file system behaves in time: each request takes its latency, many take it at once, and it ends.

use crate::slow::{Slow, is_mounted, slow};
use rustix::fs::{AtFlags, CWD, statat};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use stook_testkit::slowfs::{Op, Options, SlowFs};
use stook_testkit::{TempTree, Tree, tree};

/// Paths of new files below the mount that nobody has asked for yet.
fn files(slow: &Slow, count: usize) -> Vec<PathBuf> {
    Tree::wide(count).write(slow.source.path()).unwrap();
    (0..count)
        .map(|number| slow.path(format!("wide/f{number:07}")))
        .collect()
}

#[test]
fn each_request_takes_its_time() {
    let options = Options::new(Duration::from_millis(3)).op(Op::Open, Duration::from_millis(40));
    let Some(slow) = slow(&options) else {
        return;
    };
    let files = files(&slow, 20);
    let start = Instant::now();
    for file in &files {
        fs::symlink_metadata(file).unwrap();
    }
    assert!(start.elapsed() >= 20 * Duration::from_millis(3));
    assert!(slow.fs.statistics().count(Op::Lookup) >= 20);
    let start = Instant::now();
    let file = File::open(&files[0]).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(40));
    let start = Instant::now();
    drop(file);
    assert!(
        start.elapsed() >= Duration::from_millis(3),
        "a close is a flush"
    );
    let statistics = slow.fs.unmount().unwrap();
    assert_eq!(statistics.count(Op::Open), 1);
    assert_eq!(statistics.count(Op::Flush), 1);
    assert!(statistics.to_json().contains("\"open\":1"));
}

fn stat_at_once(slow: &Slow, threads: usize, each: usize) {
    let files = files(slow, threads * each);
    // The directory itself, so that the threads need not all ask for it.
    fs::symlink_metadata(slow.path("wide")).unwrap();
    thread::scope(|scope| {
        for chunk in files.chunks(each) {
            scope.spawn(move || {
                for file in chunk {
                    statat(CWD, file, AtFlags::SYMLINK_NOFOLLOW).unwrap();
                }
            });
        }
    });
}

#[test]
fn many_requests_are_in_flight_at_once() {
    let Some(slow) = slow(&Options::new(Duration::from_millis(20))) else {
        return;
    };
    stat_at_once(&slow, 64, 5);
    let most = slow.fs.statistics().most_in_flight();
    assert!((32..=64).contains(&most), "{most}");
}

#[test]
fn a_queue_limits_what_is_in_flight() {
    let latency = Duration::from_millis(5);
    for slots in [1, 4] {
        let options = Options::new(latency).queue(NonZeroUsize::new(slots).unwrap());
        let Some(slow) = slow(&options) else {
            return;
        };
        let start = Instant::now();
        stat_at_once(&slow, 16, 4);
        let most = slow.fs.statistics().most_in_flight();
        assert_eq!(most, slots);
        assert!(start.elapsed() >= latency * 64 / u32::try_from(slots).unwrap());
    }
}

#[test]
fn the_mount_ends_with_its_guard_even_when_it_is_used() {
    let Some(slow) = slow(&Options::new(Duration::from_millis(1))) else {
        return;
    };
    fs::write(slow.path("file"), b"x").unwrap();
    let Slow {
        fs,
        source,
        mountpoint,
    } = slow;
    assert!(is_mounted(mountpoint.path()));
    let used = File::open(mountpoint.join("file")).unwrap();
    drop(fs);
    assert!(!is_mounted(mountpoint.path()));
    assert_eq!(std::fs::read_dir(mountpoint.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read(source.join("file")).unwrap(), b"x");
    drop(used);
}

#[test]
fn a_mount_that_was_taken_away_is_no_error() {
    let Some(slow) = slow(&Options::new(Duration::ZERO)) else {
        return;
    };
    slow.fs.unmounter().unmount().unwrap();
    slow.fs.unmounter().unmount().unwrap();
    assert!(!is_mounted(slow.mountpoint.path()));
    slow.fs.wait().unwrap();
}

#[test]
fn what_cannot_be_mounted_says_why() {
    let directory =
        TempTree::new(&tree! { "source/inside/" => dir(), "file" => file(b"") }).unwrap();
    let options = Options::new(Duration::ZERO);
    let at = |name: &str| directory.path().join(name);
    let inside = SlowFs::mount(&at("source"), &at("source/inside"), &options).unwrap_err();
    assert_eq!(inside.kind(), ErrorKind::InvalidInput);
    let missing = SlowFs::mount(&at("missing"), &at("source"), &options).unwrap_err();
    assert!(missing.to_string().contains("missing`"), "{missing}");
    let file = SlowFs::mount(&at("file"), &at("source"), &options).unwrap_err();
    assert!(file.to_string().contains("open the directory"), "{file}");
}
