//! Processes that share a cache and are killed while they use it: it never grows beyond its budget, and never gives out other
//! bytes.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stook_archive::{VolumeBytes, VolumeStore};
use stook_mount::{CacheOptions, CachedVolumes, VolumeIdentity};
use stook_testkit::Random;

use crate::cache_reads::blocks_in;
use crate::cache_scene::{BLOCK, NAME, directory, options, read};

const PROCESSES: u64 = 8;
const KILLS: usize = 40;
const BUDGET: u64 = 20 << 20;
/// Ten times the budget.
const BLOCKS: u64 = 800;
/// Tells the child where the volume and the cache lie.
const FOLDER: &str = "STOOK_TEST_FOLDER";
const SEED: &str = "STOOK_TEST_SEED";

/// What the index says; the MD5 is made up, since nobody compares it here.
fn record() -> VolumeIdentity {
    VolumeIdentity {
        name: NAME.to_owned(),
        size: Some(BLOCKS * BLOCK as u64),
        md5: Some([7; 16]),
    }
}

fn open(folder: &Path, read_ahead_bytes: u64) -> (CachedVolumes, Arc<dyn VolumeBytes>, File) {
    let volumes = folder.join("volumes");
    let file = File::open(volumes.join(NAME)).unwrap();
    let stores = vec![directory(volumes)];
    let options = CacheOptions {
        read_ahead_bytes,
        fetchers: 8,
        ..shared(folder)
    };
    let cache = CachedVolumes::new(stores, vec![record()], &options).unwrap();
    let volume = cache.open(NAME).unwrap();
    (cache, volume, file)
}

fn shared(folder: &Path) -> CacheOptions {
    CacheOptions {
        directory: Some(folder.join("cache")),
        disk_bytes: BUDGET,
        memory_bytes: 4 << 20,
        ..options()
    }
}

#[test]
#[ignore = "run by the test below, as a process to be killed"]
fn child_that_reads() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let (_cache, volume, file) = open(&folder, 2 << 20);
    let mut random = Random::new(seed);
    for _ in 0..1_000_000 {
        let number = usize::try_from(random.below(BLOCKS - 8)).unwrap();
        for offset in (number * BLOCK..(number + 8) * BLOCK).step_by(BLOCK / 2) {
            let mut expected = [0; 1000];
            file.read_exact_at(&mut expected, offset as u64).unwrap();
            assert!(read(&*volume, offset, 1000) == expected, "{offset}");
        }
    }
}

fn start(folder: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cache_processes::child_that_reads", "--ignored"])
        .env(FOLDER, folder)
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns what `du` says.
fn used(cache: &Path) -> u64 {
    let output = Command::new("du")
        .args(["-s", "-B1"])
        .arg(cache)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace()
        .next()
        .map_or(0, |bytes| bytes.parse().unwrap())
}

#[test]
fn killed_processes_keep_the_budget_and_leave_a_sound_cache() {
    let folder = tempfile::tempdir().unwrap();
    let volumes = folder.path().join("volumes");
    std::fs::create_dir(&volumes).unwrap();
    let mut file = File::create(volumes.join(NAME)).unwrap();
    for number in 0..BLOCKS {
        file.write_all(&Random::new(number).bytes(BLOCK)).unwrap();
    }
    let cache = folder.path().join("cache");
    let mut children: Vec<Child> = (0..PROCESSES)
        .map(|seed| start(folder.path(), seed))
        .collect();
    let (mut random, mut most) = (Random::new(1), 0);
    let begin = Instant::now();
    while most < BUDGET / 2 && begin.elapsed() < Duration::from_secs(60) {
        most = most.max(used(&cache));
        std::thread::sleep(Duration::from_millis(5));
    }
    for kill in 0..KILLS {
        for _ in 0..4 {
            most = most.max(used(&cache));
            assert!(most <= BUDGET, "{most}");
            std::thread::sleep(Duration::from_millis(random.below(15)));
        }
        let place = usize::try_from(random.below(PROCESSES)).unwrap();
        let child = &mut children[place];
        // One that ended by itself has read other bytes.
        assert!(child.try_wait().unwrap().is_none(), "a reader failed");
        child.kill().unwrap();
        child.wait().unwrap();
        *child = start(folder.path(), 100 + kill as u64);
    }
    for child in &mut children {
        assert!(child.try_wait().unwrap().is_none(), "a reader failed");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(most > BUDGET / 2, "the cache was never used: {most}");
    require_sound(folder.path());
}

/// Every block that is there has the right bytes.
fn require_sound(folder: &Path) {
    let (cache, volume, file) = open(folder, 0);
    let blocks = blocks_in(&folder.join("cache"));
    assert!(blocks.len() > 40, "{}", blocks.len());
    for path in &blocks {
        let name = path.file_name().unwrap().to_str().unwrap();
        let number = usize::from_str_radix(&name[33..], 16).unwrap();
        let mut expected = vec![0; BLOCK];
        file.read_exact_at(&mut expected, (number * BLOCK) as u64)
            .unwrap();
        assert!(read(&*volume, number * BLOCK, BLOCK) == expected, "{name}");
    }
    let stats = cache.stats();
    assert_eq!((stats.damaged_blocks, stats.fetches), (0, 0), "{stats:?}");
    assert_eq!(stats.disk_hits, blocks.len() as u64);
    assert!(used(&folder.join("cache")) <= BUDGET);
}
