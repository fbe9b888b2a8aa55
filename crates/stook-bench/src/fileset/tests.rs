//! File sets as they are found on the disk, and what becomes of those that cannot be completed.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stook_testkit::{Compare, Snapshot, TempDir};

use super::*;
use crate::testing::Quiet;

fn options(name: &str, files: u64) -> FilesetOptions {
    FilesetOptions {
        spec: Spec::named(name).unwrap(),
        files,
        seed: 7,
        jobs: Jobs::Fixed(2),
        filling: Filling::default(),
    }
}

#[test]
fn holes_have_the_sizes_and_times_of_content() {
    use std::os::unix::fs::MetadataExt;
    let folder = TempDir::new().unwrap();
    let holes = FilesetOptions {
        spec: Spec::parse(
            "sizes.fixed.bytes = 50_000_000_000",
            Path::new("large.toml"),
        )
        .unwrap(),
        filling: Filling::Hole,
        ..options("arc", 40)
    };
    let (path, quiet) = (folder.join("holes"), Quiet::default());
    assert_eq!(
        make(&path, &holes, &quiet).unwrap().bytes,
        2_000_000_000_000
    );
    let first = std::fs::read_dir(&path).unwrap().next().unwrap().unwrap();
    let inner = std::fs::read_dir(first.path()).unwrap().next().unwrap();
    let files = std::fs::read_dir(inner.unwrap().path()).unwrap();
    for file in files.map(|file| file.unwrap().metadata().unwrap()) {
        assert_eq!((file.len(), file.blocks()), (50_000_000_000, 0));
        assert!(file.mtime() < 1_735_689_600, "before 2025");
    }
}

fn made(folder: &TempDir, name: &str, options: &FilesetOptions) -> (Properties, Snapshot) {
    let path = folder.join(name);
    let properties = make(&path, options, &Quiet::default()).unwrap();
    (properties, Snapshot::take(&path).unwrap())
}

/// FNV-1a of everything about every entry.
fn digest(snapshot: &Snapshot) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325;
    for (path, facts) in snapshot.entries() {
        let content = (facts.kind == stook_testkit::Kind::File).then_some((facts.size, &facts.md5));
        let text = format!("{path:?} {:o} {} {content:?}", facts.mode, facts.mtime_ns);
        for byte in text.bytes() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    digest
}

#[test]
fn the_same_seed_gives_the_same_tree_whatever_the_workers() {
    let folder = TempDir::new().unwrap();
    for name in Spec::NAMES {
        let by_workers = [Jobs::Fixed(1), Jobs::Fixed(7), Jobs::Adaptive].map(|jobs| {
            let options = FilesetOptions {
                jobs,
                ..options(name, 600)
            };
            made(&folder, &format!("{name} {jobs:?}"), &options)
        });
        for (properties, snapshot) in &by_workers[1..] {
            assert_eq!(*properties, by_workers[0].0);
            let difference = by_workers[0].1.difference(snapshot, &Compare::everything());
            assert_eq!(difference, [""; 0], "{name}");
        }
    }
}

/// Sets must stay what they are: results of years are compared. If this fails, the making has changed.
#[test]
fn a_set_is_the_same_on_every_machine_and_in_every_version() {
    let folder = TempDir::new().unwrap();
    let digests = Spec::NAMES.map(|name| digest(&made(&folder, name, &options(name, 700)).1));
    assert_eq!(
        digests,
        [
            16_528_018_626_301_819_857,
            16_628_365_179_369_885_905,
            5_972_831_178_702_110_709
        ]
    );
}

#[test]
fn sets_of_other_seeds_have_nothing_in_common() {
    let folder = TempDir::new().unwrap();
    let of_seeds = [7, 8].map(|seed| {
        let options = FilesetOptions {
            seed,
            ..options("arc", 300)
        };
        let (_, snapshot) = made(&folder, &seed.to_string(), &options);
        let facts = snapshot.entries().map(|(_, facts)| facts.clone());
        facts.collect::<Vec<_>>()
    });
    let [one, other] = of_seeds;
    for facts in &one {
        let same = |them: &&stook_testkit::Facts| {
            them.mtime_ns == facts.mtime_ns || (facts.md5.is_some() && them.md5 == facts.md5)
        };
        assert_eq!(other.iter().find(same), None);
    }
}

#[test]
fn a_smaller_set_is_the_beginning_of_a_larger_one() {
    let folder = TempDir::new().unwrap();
    for name in ["arc", "deep"] {
        let (_, small) = made(&folder, &format!("{name} small"), &options(name, 300));
        let (_, large) = made(&folder, &format!("{name} large"), &options(name, 900));
        for (path, facts) in small.entries() {
            let of_large = large.get(path).unwrap();
            if facts.md5.is_some() {
                assert_eq!(facts, of_large);
            } else {
                assert_eq!(facts.mtime_ns, of_large.mtime_ns);
            }
        }
    }
}

#[test]
fn the_figures_are_those_of_what_is_on_the_disk() {
    let folder = TempDir::new().unwrap();
    for name in Spec::NAMES {
        let (properties, snapshot) = made(&folder, name, &options(name, 901));
        let mut sizes: Vec<u64> = Vec::new();
        let mut directories = 0;
        for (path, facts) in snapshot.entries() {
            match facts.kind {
                stook_testkit::Kind::File => sizes.push(facts.size),
                _ if path.is_empty() => {}
                _ => directories += 1,
            }
        }
        sizes.sort_unstable();
        let bytes: u64 = sizes.iter().sum();
        let mean = bytes as f64 / 901.0;
        let squares: f64 = sizes.iter().map(|size| (*size as f64 - mean).powi(2)).sum();
        assert_eq!(
            (properties.files, properties.directories),
            (901, directories)
        );
        assert_eq!((properties.bytes, properties.median), (bytes, sizes[450]));
        assert_eq!((properties.min, properties.max), (sizes[0], sizes[900]));
        assert!((properties.mean - mean).abs() < 1e-6);
        assert!((properties.stdev - (squares / 901.0).sqrt()).abs() < 1e-6);
    }
}

#[test]
fn arc_keeps_to_its_distribution_for_every_seed() {
    for seed in 0..4 {
        let options = FilesetOptions {
            seed,
            ..options("arc", 100_000)
        };
        let found = properties(&options, &Quiet::default()).unwrap();
        let is_near =
            |found: f64, wanted: f64, percent: f64| (found / wanted - 1.0).abs() < percent / 100.0;
        assert!(is_near(found.mean, 7_165.0, 3.5), "{found:?}");
        assert!(is_near(found.stdev, 26_623.0, 5.0), "{found:?}");
        assert!(is_near(found.median as f64, 1_785.0, 1.0), "{found:?}");
        assert_eq!((found.min, found.max), (21, 1_258_291));
        assert!((1_900..2_200).contains(&found.directories), "{found:?}");
    }
}

#[test]
fn shapes_are_what_they_say() {
    let folder = TempDir::new().unwrap();
    let depths = Spec::NAMES.map(|name| {
        let (_, snapshot) = made(&folder, name, &options(name, 600));
        let files = snapshot.entries().filter(|(_, facts)| facts.md5.is_some());
        let depth = |path: &[u8]| path.iter().filter(|byte| **byte == b'/').count();
        let depths = files.map(|(path, _)| depth(path)).collect::<Vec<_>>();
        (*depths.iter().min().unwrap(), *depths.iter().max().unwrap())
    });
    assert_eq!(depths, [(2, 2), (0, 0), (1, 50)]);
}

#[test]
fn half_of_the_files_is_text() {
    let spec = Spec::named("arc").unwrap();
    let plan = Plan::new(&spec, 10_000, 7).unwrap();
    let texts = (0..10_000)
        .filter(|number| plan.file(*number).is_text)
        .count();
    assert!((4_800..5_200).contains(&texts), "{texts}");
}

#[test]
fn modes_do_not_depend_on_what_the_directory_hands_on() {
    let folder = TempDir::new().unwrap();
    let path = folder.join("set");
    std::fs::create_dir(&path).unwrap();
    // Directories below one with this bit get it, too.
    stook_sys::set_mode(std::fs::File::open(&path).unwrap(), 0o2750).unwrap();
    make(&path, &options("arc", 50), &Quiet::default()).unwrap();
    let snapshot = Snapshot::take(&path).unwrap();
    for (path, facts) in snapshot.entries() {
        let expected = match (path.is_empty(), facts.kind) {
            (true, _) => 0o2750,
            (_, stook_testkit::Kind::File) => 0o644,
            _ => 0o755,
        };
        assert_eq!(facts.mode, expected, "{path:?}");
    }
}

#[test]
fn nothing_is_made_of_no_files_or_in_a_directory_that_is_not_empty() {
    let folder = TempDir::new().unwrap();
    let none = make(&folder.join("new"), &options("arc", 0), &Quiet::default());
    assert!(matches!(none, Err(BenchError::Usage { .. })));
    assert!(!folder.join("new").exists());
    std::fs::write(folder.join("mine"), "mine").unwrap();
    let error = make(folder.path(), &options("arc", 9), &Quiet::default()).unwrap_err();
    assert!(error.to_string().ends_with("` is not empty"));
    assert_eq!(error.remedy(), Some(&Remedy::NameEmptyDirectory));
    assert_eq!(std::fs::read(folder.join("mine")).unwrap(), b"mine");
    let error = make(&folder.join("mine"), &options("arc", 9), &Quiet::default()).unwrap_err();
    assert!(
        error.to_string().ends_with("mine`: not a directory"),
        "{error}"
    );
    let error = make(&folder.join("a/b"), &options("arc", 9), &Quiet::default()).unwrap_err();
    assert!(matches!(error, BenchError::Sys(_)) && !folder.join("a").exists());
}

/// Does something once so many files are made, and wants an end then if that says so.
struct After<F> {
    files: u64,
    act: F,
    made: AtomicU64,
    is_stopped: AtomicBool,
    texts: Mutex<Vec<String>>,
}

impl<F: Fn() -> bool> After<F> {
    fn new(files: u64, act: F) -> Self {
        Self {
            files,
            act,
            made: AtomicU64::default(),
            is_stopped: AtomicBool::default(),
            texts: Mutex::default(),
        }
    }
}

impl<F: Fn() -> bool + Sync> Observer for After<F> {
    fn progress(&self, text: &str) {
        self.texts.lock().unwrap().push(text.to_owned());
    }

    fn warning(&self, text: &str) {
        self.progress(text);
    }

    fn advanced(&self, files: u64, _bytes: u64) {
        let before = self.made.fetch_add(files, Ordering::Relaxed);
        if before < self.files && before + files >= self.files {
            self.is_stopped.store((self.act)(), Ordering::Relaxed);
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

#[test]
fn an_interrupted_set_is_removed_but_from_a_directory_that_was_there() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.join("there")).unwrap();
    let stays = format!(
        "`{}` was there before: what was made in it stays",
        folder.join("there").display()
    );
    for (name, text) in [("there", stays.as_str()), ("new", "removing what was made")] {
        let observer = After::new(200, || true);
        let error = make(&folder.join(name), &options("arc", 5_000), &observer).unwrap_err();
        assert!(matches!(error, BenchError::Interrupted));
        assert_eq!(*observer.texts.lock().unwrap(), [text]);
    }
    assert!(std::fs::read_dir(folder.join("there")).unwrap().count() > 0);
    assert!(!folder.join("new").exists());
    let stopped = make(&folder.join("new"), &options("arc", 9), &Quiet::stopped());
    assert!(matches!(stopped, Err(BenchError::Interrupted)));
    assert!(!folder.join("new").exists());
}

/// A small file system in memory, unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where nothing can be mounted.
    fn mount(path: PathBuf, size: &str) -> Option<Self> {
        std::fs::create_dir(&path).unwrap();
        let mut command = Command::new("mount");
        command
            .args(["-t", "tmpfs", "-o", size, "stook-test"])
            .arg(&path);
        let mounted = command.output().is_ok_and(|output| output.status.success());
        if !mounted {
            stook_testkit::skip!("cannot mount a small disk");
        }
        mounted.then_some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What stays mounted shows when the folder cannot be removed.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_set_that_there_is_no_room_for_is_refused_before_anything_is_made() {
    let folder = TempDir::new().unwrap();
    for (size, what) in [
        ("size=1m", " MB are needed, "),
        ("nr_inodes=99", " inodes are needed, "),
    ] {
        let Some(disk) = SmallDisk::mount(folder.join(size), size) else {
            return;
        };
        let error = make(&disk.0.join("set"), &options("arc", 900), &Quiet::default()).unwrap_err();
        assert_eq!(error.remedy(), Some(&Remedy::MakeFewerFiles));
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(std::fs::read_dir(&disk.0).unwrap().count(), 0);
    }
}

#[test]
fn a_disk_that_gets_full_is_named_and_given_back() {
    let folder = TempDir::new().unwrap();
    let Some(disk) = SmallDisk::mount(folder.join("disk"), "size=40m") else {
        return;
    };
    let observer = After::new(200, || {
        // Somebody else takes the rest.
        let _ = std::fs::write(disk.0.join("theirs"), vec![1; 64 << 20]);
        false
    });
    // One worker, so that nothing is made meanwhile.
    let options = FilesetOptions {
        jobs: Jobs::Fixed(1),
        ..options("arc", 3_000)
    };
    let error = make(&disk.0.join("set"), &options, &observer).unwrap_err();
    let text = error.to_string();
    assert!(text.ends_with("`: no space left on device"), "{text}");
    let left = std::fs::read_dir(&disk.0).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["theirs"]);
}
