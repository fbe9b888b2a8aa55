//! The cache on disk: budget, order of eviction, what others do to its files, a full disk.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use stook_sys::Timestamp;

use super::*;
use crate::cache::key::VolumeKey;

const BLOCK: usize = 256 << 10;

const ORIGIN: Origin = Origin {
    store: 7,
    validator: 8,
};

struct Scene {
    folder: tempfile::TempDir,
    budget: u64,
}

impl Scene {
    fn new(budget: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, budget }
    }

    fn directory(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn open(&self) -> DiskCache {
        DiskCache::open(&self.directory(), self.budget, Arc::default()).unwrap()
    }

    /// Returns what `du` says.
    fn used(&self) -> u64 {
        let output = Command::new("du")
            .args(["-s", "-B1"])
            .arg(self.directory())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    }
}

fn key(number: u64) -> BlockKey {
    let volume = VolumeKey([3; 16]);
    BlockKey { volume, number }
}

fn content(number: u64) -> Vec<u8> {
    stook_testkit::Random::new(number).bytes(BLOCK)
}

/// Returns the file of a block.
fn file(cache: &DiskCache, scene: &Scene, number: u64) -> PathBuf {
    let path = String::from_utf8(cache.path_of(&key(number))).unwrap();
    scene.directory().join("blocks").join(path)
}

fn read(cache: &DiskCache, number: u64, len: usize) -> Option<Block> {
    cache.read(&key(number), len, |origin| origin == ORIGIN)
}

fn write(cache: &DiskCache, number: u64, content: &[u8]) {
    cache.write(&key(number), &Block::new(content.to_vec(), ORIGIN));
}

fn has(cache: &DiskCache, number: u64) -> bool {
    let block = read(cache, number, BLOCK);
    block.is_some_and(|block| *block == *content(number))
}

#[test]
fn blocks_stay_for_the_next_process() {
    let scene = Scene::new(64 << 20);
    let cache = scene.open();
    for number in 0..40 {
        assert!(read(&cache, number, BLOCK).is_none());
        write(&cache, number, &content(number));
    }
    write(&cache, 100, b"the end of a volume");
    drop(cache);
    let cache = scene.open();
    assert!((0..40).all(|number| has(&cache, number)));
    assert_eq!(*read(&cache, 100, 19).unwrap(), *b"the end of a volume");
    assert!(read(&cache, 100, 18).is_none());
    assert_eq!(cache.counters.disk_hits.get(), 41);
    assert_eq!(cache.counters.damaged_blocks.get(), 1);
    cache.clear();
    assert!(!(0..40).any(|number| has(&cache, number)));
}

#[test]
fn the_budget_holds_and_what_is_used_stays() {
    let scene = Scene::new(8 << 20);
    let cache = scene.open();
    for number in 0..100 {
        write(&cache, number, &content(number));
        assert!(scene.used() <= scene.budget, "{number}: {}", scene.used());
        // As if the first one were used all the time, and the others long ago.
        let used = |number, seconds| {
            let name = cache.path_of(&key(number));
            let seconds = utc_now().seconds - seconds;
            cache
                .root
                .set_mtime(
                    &name,
                    Timestamp {
                        seconds,
                        nanoseconds: 0,
                    },
                )
                .unwrap();
        };
        used(number, 10_000 - i64::try_from(number).unwrap());
        assert!(has(&cache, 0), "{number}");
    }
    let kept = (0..100).filter(|number| has(&cache, *number)).count();
    assert!((20..=31).contains(&kept), "{kept}");
    assert_eq!(cache.counters.disk_evicted.get(), 100 - kept as u64);
    assert_eq!(cache.counters.not_written.get(), 0);
}

#[test]
fn a_smaller_budget_removes_what_is_too_much() {
    let mut scene = Scene::new(64 << 20);
    let cache = scene.open();
    (0..200).for_each(|number| write(&cache, number, &content(number)));
    assert!(scene.used() > 40 << 20);
    scene.budget = 6 << 20;
    let cache = scene.open();
    assert!(scene.used() <= scene.budget, "{}", scene.used());
    write(&cache, 500, &content(500));
    assert!(has(&cache, 500));
    let text = std::fs::read_to_string(scene.directory().join("blocks/layout")).unwrap();
    assert_eq!(text, "stook blocks 1\nbytes 6291456\nshards 1\n");
    std::fs::write(scene.directory().join("blocks/layout"), "stook blocks 2\n").unwrap();
    let error = DiskCache::open(&scene.directory(), 6 << 20, Arc::default()).unwrap_err();
    assert!(matches!(error, CacheError::Form { .. }), "{error}");
}

#[test]
fn planted_and_damaged_blocks_are_not_used_and_replaced() {
    let scene = Scene::new(64 << 20);
    let cache = scene.open();
    for number in 0..8 {
        write(&cache, number, &content(number));
    }
    let of = |number| file(&cache, &scene, number);
    // A block of another place; a flipped bit; one cut off; an empty one; a link; a directory; a fifo.
    std::fs::copy(of(7), of(0)).unwrap();
    let mut bytes = std::fs::read(of(1)).unwrap();
    bytes[100_000] ^= 1;
    std::fs::write(of(1), bytes).unwrap();
    std::fs::write(of(2), &std::fs::read(of(2)).unwrap()[..BLOCK]).unwrap();
    std::fs::write(of(3), b"").unwrap();
    let replace = |number| std::fs::remove_file(of(number)).unwrap();
    replace(4);
    symlink(of(7), of(4)).unwrap();
    replace(5);
    std::fs::create_dir(of(5)).unwrap();
    replace(6);
    assert!(
        Command::new("mkfifo")
            .arg(of(6))
            .status()
            .unwrap()
            .success()
    );
    assert!(!(0..7).any(|number| read(&cache, number, BLOCK).is_some()));
    // A link is as good as nothing.
    assert_eq!(cache.counters.damaged_blocks.get(), 6);
    for number in 0..7 {
        write(&cache, number, &content(number));
        assert_eq!(has(&cache, number), number != 5, "{number}");
    }
    assert!(has(&cache, 7));
    assert_eq!(cache.counters.not_written.get(), 1);
}

#[test]
fn what_killed_processes_left_is_removed_and_counted() {
    let scene = Scene::new(8 << 20);
    let cache = scene.open();
    (0..40).for_each(|number| write(&cache, number, &content(number)));
    let shard = scene.directory().join("blocks/00");
    // Killed while it wrote a block, and before it recorded anything.
    std::fs::write(shard.join("partial"), content(1)).unwrap();
    std::fs::write(shard.join("lock"), [0; 16]).unwrap();
    write(&cache, 100, &content(100));
    assert!(has(&cache, 100));
    assert!(!shard.join("partial").exists());
    assert!(scene.used() <= scene.budget);
    // A file of somebody else stays, and is counted.
    std::fs::write(shard.join("notes"), vec![1; 6 << 20]).unwrap();
    std::fs::write(shard.join("lock"), b"").unwrap();
    write(&cache, 101, &content(101));
    assert!(has(&cache, 101));
    assert!(scene.used() <= scene.budget, "{}", scene.used());
    std::fs::write(shard.join("notes"), vec![1; 9 << 20]).unwrap();
    std::fs::write(shard.join("lock"), b"").unwrap();
    write(&cache, 102, &content(102));
    assert!(!has(&cache, 102));
    assert_eq!(cache.counters.not_written.get(), 1);
}

#[test]
fn who_finds_a_shard_locked_does_not_wait_long() {
    let scene = Scene::new(8 << 20);
    let cache = scene.open();
    let locked = Shard::lock(&cache.root, shard_name(0)).unwrap().unwrap();
    write(&cache, 1, &content(1));
    assert!(!has(&cache, 1));
    assert_eq!(cache.counters.not_written.get(), 1);
    locked.close().unwrap();
    write(&cache, 1, &content(1));
    assert!(has(&cache, 1));
}

/// A small file system of its own; unmounted when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: PathBuf, megabytes: u64) -> Option<Self> {
        std::fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "none"])
            .arg(&path);
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        if !is_mounted {
            stook_testkit::skip!("no file system can be mounted here");
            return None;
        }
        Some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_makes_room_and_then_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path().join("small"), 8) else {
        return;
    };
    let directory = disk.0.join("cache");
    let cache = DiskCache::open(&directory, 64 << 20, Arc::default()).unwrap();
    for number in 0..100 {
        write(&cache, number, &content(number));
    }
    // Some shards gave back blocks of theirs.
    assert!(cache.counters.disk_evicted.get() > 0);
    let kept = (0..100).filter(|number| has(&cache, *number)).count();
    assert!(kept > 10, "{kept}");
    assert_eq!(cache.counters.damaged_blocks.get(), 0);
    // Somebody else takes all that is left.
    cache.clear();
    let filled = std::fs::write(disk.0.join("other"), vec![1; 16 << 20]);
    filled.unwrap_err();
    *lock(&cache.pause_end) = None;
    let before = cache.counters.not_written.get();
    write(&cache, 200, &content(200));
    assert!(!has(&cache, 200));
    assert_eq!(cache.counters.not_written.get(), before + 1);
    let late = DiskCache::open(&disk.0.join("late"), 64 << 20, Arc::default()).unwrap();
    write(&late, 200, &content(200));
    assert!(!has(&late, 200));
    std::fs::remove_file(disk.0.join("other")).unwrap();
    *lock(&cache.pause_end) = None;
    write(&cache, 200, &content(200));
    assert!(has(&cache, 200));
}
