//! Sparse files that claim more zeros than anybody waits for: named, not hashed, and every command can be ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_archive::{
    ArchiveError, BaseObserver, CheckOptions, Dialect, ExtractOptions, Failure, Interrupt, Jobs,
    Observer, ReindexOptions, Silent, WriteOptions, create, reindex,
};
use stook_testkit::TempDir;

use crate::by_path::{check, extract};
use crate::crafted::{Crafted, write_archive};
use crate::recorder::Recorder;
use crate::scene::names;

const HUGE: u64 = 1 << 62;

/// A file of nothing but a hole.
fn hole(name: &str, size: u64) -> Crafted {
    let mut crafted = Crafted::file(name, b"");
    crafted.header.size = size;
    crafted.header.sparse = Some(Vec::new());
    crafted
}

fn archive_of(place: &TempDir, members: &[Crafted]) -> PathBuf {
    let archive = place.join("archive");
    write_archive(&archive, Dialect::Stook, members);
    archive
}

fn with_huge_hole(place: &TempDir) -> PathBuf {
    let members = [
        Crafted::file("a", b"first"),
        hole("huge", HUGE),
        Crafted::file("z", b"last"),
    ];
    archive_of(place, &members)
}

const CLAIM: &str = "its sparse map claims 4611686018427387904 bytes of holes, more than the limit of 1099511627776";

#[test]
fn a_check_names_a_hole_past_the_limit_and_does_not_call_it_verified() {
    let place = TempDir::new().unwrap();
    let archive = with_huge_hole(&place);
    let patterns = || vec![stook_tree::Pattern::new(b"*")];
    for patterns in [Vec::new(), patterns()] {
        let options = CheckOptions {
            patterns,
            ..CheckOptions::default()
        };
        let recorder = Recorder::new();
        let report = check(&archive, &options, &recorder).unwrap();
        assert_eq!(recorder.damage_texts(), [""; 0]);
        assert_eq!(
            recorder.failure_texts(),
            [format!("cannot verify `huge`: {CLAIM}")]
        );
        let found = (report.members, report.unverified, report.damages);
        assert_eq!(found, (2, 1, 0));
    }
}

#[test]
fn the_limit_counts_holes_only_and_can_be_raised() {
    let place = TempDir::new().unwrap();
    let members = [hole("mebi", 1 << 20), Crafted::file("dense", &[0; 5000])];
    let archive = archive_of(&place, &members);
    let unverified = |max_hole_bytes| {
        let options = CheckOptions {
            max_hole_bytes,
            ..CheckOptions::default()
        };
        let report = check(&archive, &options, &Silent).unwrap();
        (report.unverified, report.damages)
    };
    assert_eq!(unverified(0), (1, 0));
    assert_eq!(unverified((1 << 20) - 1), (1, 0));
    // The MD5 in the index is that of nothing.
    assert_eq!(unverified(1 << 20), (0, 1));
}

#[test]
fn a_reindex_leaves_out_a_hole_past_the_limit_and_goes_on() {
    let place = TempDir::new().unwrap();
    let archive = with_huge_hole(&place);
    // The old index knows its MD5, which nobody can verify.
    let recorder = Recorder::new();
    let report = reindex(&archive, Jobs::Fixed(2), &recorder).unwrap();
    assert_eq!((report.members, report.failed, report.damages), (3, 1, 0));
    assert_eq!(
        recorder.failure_texts(),
        [format!(
            "cannot verify `huge`: {CLAIM}; its MD5 is that in the old index"
        )]
    );
    std::fs::remove_file(archive.join("index.db")).unwrap();
    let recorder = Recorder::new();
    let report = reindex(&archive, Jobs::Fixed(2), &recorder).unwrap();
    assert_eq!((report.members, report.failed, report.damages), (2, 1, 0));
    assert_eq!(
        recorder.failure_texts(),
        [format!("cannot index `huge`: {CLAIM}")]
    );
    assert_eq!(names(&archive, stook_archive::AsOf::Now, false), ["a", "z"]);
}

/// Ends the operation at the first report that holes take long, in the middle of one.
#[derive(Default)]
struct EndsAtHoles {
    flag: Arc<AtomicBool>,
    failed: std::sync::Mutex<Vec<String>>,
}

impl BaseObserver for EndsAtHoles {
    type Failure = Failure;

    fn failed(&self, failure: &Failure) {
        self.failed.lock().unwrap().push(failure.to_string());
    }
    fn is_interrupted(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

impl Observer for EndsAtHoles {
    fn hashing_holes(&self, path: &[u8], done: u64, size: u64) {
        assert_eq!(path, b"huge");
        assert!(done > 0 && done < size, "{done} of {size}");
        self.flag.store(true, Ordering::Relaxed);
    }
    fn damaged(&self, damage: &stook_archive::Damage) {
        self.failed.lock().unwrap().push(damage.to_string());
    }
    fn interrupt(&self) -> Interrupt {
        Arc::clone(&self.flag).into()
    }
}

fn assert_ends<T: std::fmt::Debug>(
    what: &str,
    operation: impl FnOnce(&EndsAtHoles) -> Result<T, ArchiveError>,
) {
    let observer = EndsAtHoles::default();
    let ended = operation(&observer);
    assert!(
        matches!(ended, Err(ArchiveError::Interrupted)),
        "{what}: {ended:?}"
    );
    assert_eq!(*observer.failed.lock().unwrap(), [""; 0], "{what}");
}

/// As long as any common file system lets a file be.
const LONGEST: u64 = 8 << 40;

#[test]
fn every_command_that_hashes_holes_says_so_and_can_be_ended() {
    let place = TempDir::new().unwrap();
    let source = place.join("source");
    std::fs::create_dir(&source).unwrap();
    let file = std::fs::File::create(source.join("huge")).unwrap();
    if let Err(error) = file.set_len(LONGEST) {
        stook_testkit::skip!("no file of 8 TiB here: {error}");
        return;
    }
    drop(file);
    let new = place.join("new");
    let options = WriteOptions::default();
    assert_ends("create", |observer| {
        create(&source, &new, &options, observer)
    });
    assert!(!new.join("000000.tar").exists());
    let archive = archive_of(
        &place,
        &[hole("huge", LONGEST), Crafted::file("z", b"last")],
    );
    let kept = std::fs::read(archive.join("index.db")).unwrap();
    let unlimited = || CheckOptions {
        max_hole_bytes: u64::MAX,
        ..CheckOptions::default()
    };
    assert_ends("check", |observer| check(&archive, &unlimited(), observer));
    let with_pattern = || CheckOptions {
        patterns: vec![stook_tree::Pattern::new(b"huge")],
        ..unlimited()
    };
    assert_ends("check huge", |observer| {
        check(&archive, &with_pattern(), observer)
    });
    let into = place.join("into");
    assert_ends("extract", |observer| {
        extract(&archive, &into, &ExtractOptions::default(), observer)
    });
    let options = || ReindexOptions {
        max_hole_bytes: u64::MAX,
        jobs: Jobs::Fixed(2),
    };
    assert_ends("reindex", |observer| reindex(&archive, options(), observer));
    assert!(std::fs::read(archive.join("index.db")).unwrap() == kept);
    assert_eq!(entries(&archive), ["000000.tar", "index.db"]);
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Ended at any moment, also in the middle of a transaction, a run is gone on with.
#[test]
fn a_run_that_is_ended_at_any_moment_is_gone_on_with() {
    let place = TempDir::new().unwrap();
    let (source, archive) = (place.join("source"), place.join("archive"));
    for number in 0..4000 {
        let folder = source.join(format!("d{}", number % 10));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("f{number}")), b"").unwrap();
    }
    let options = WriteOptions {
        volume_bytes: Some(1 << 20),
        ..WriteOptions::default()
    };
    let mut interrupted = 0;
    for milliseconds in (0..).map(|number| 3 * number * number) {
        let observer = EndsAtHoles::default();
        let flag = Arc::clone(&observer.flag);
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let timer = std::thread::spawn(move || {
            let wait = std::time::Duration::from_millis(milliseconds);
            // Also when the run has ended, which drops the sender.
            let _ = receiver.recv_timeout(wait);
            flag.store(true, Ordering::Relaxed);
        });
        let ended = create(&source, &archive, &options, &observer);
        drop(sender);
        timer.join().unwrap();
        assert_eq!(*observer.failed.lock().unwrap(), [""; 0]);
        match ended {
            Ok(_) => break,
            Err(ArchiveError::Interrupted) => interrupted += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(interrupted > 0);
    let report = check(&archive, &CheckOptions::default(), &Silent).unwrap();
    assert_eq!((report.members, report.damages), (4010, 0));
    let listed = names(&archive, stook_archive::AsOf::Now, true);
    assert_eq!(listed.len(), 4010, "each of them once");
    assert!(
        entries(&archive)
            .iter()
            .all(|name| !name.ends_with(".partial"))
    );
}
