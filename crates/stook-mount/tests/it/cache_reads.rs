//! Reads through the cache: the right bytes from every layer, one fetch for a block, few requests for many.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stook_archive::VolumeStore;
use stook_mount::{CacheOptions, CachedVolumes, Layer, VolumeIdentity, VolumeRange};
use stook_testkit::Random;

use crate::cache_scene::{
    BLOCK, NAME, Recorded, Sample, directory, nginx, options, read, try_read, with_disk,
};

#[test]
fn any_bytes_are_those_of_the_volume() {
    let sample = Sample::new(9 * BLOCK + 4321);
    let folder = sample.folder();
    let scratch = tempfile::tempdir().unwrap();
    let small = CacheOptions {
        memory_bytes: 3 * BLOCK as u64,
        read_ahead_bytes: 4 * BLOCK as u64,
        fetchers: 8,
        ..with_disk(scratch.path())
    };
    let none = CacheOptions {
        memory_bytes: 0,
        ..options()
    };
    for options in [options(), small, none] {
        let (_cache, volume) = sample.open(vec![directory(folder.path())], &options);
        assert_eq!(volume.len().unwrap(), sample.bytes.len() as u64);
        let mut random = Random::new(5);
        let total = sample.bytes.len() as u64;
        for _ in 0..300 {
            let offset = usize::try_from(random.below(total)).unwrap();
            let len = usize::try_from(random.below(3 * BLOCK as u64)).unwrap();
            let end = sample.bytes.len().min(offset + len);
            assert!(
                read(&*volume, offset, len) == sample.bytes[offset..end],
                "{offset} {len}"
            );
        }
        assert!(read(&*volume, 0, sample.bytes.len() + 5) == *sample.bytes);
        assert_eq!(read(&*volume, sample.bytes.len() + 7, 10), b"");
        assert_eq!(volume.read_at(&mut [0; 4], u64::MAX).unwrap(), 0);
    }
}

#[test]
fn many_readers_of_a_block_cost_one_request() {
    let sample = Sample::new(8 * BLOCK);
    let server = Recorded::start(&sample, Duration::from_millis(300));
    let (cache, volume) = sample.open(vec![server.store()], &options());
    std::thread::scope(|scope| {
        for number in 0..24 {
            let (volume, sample) = (&volume, &sample);
            scope.spawn(move || {
                let offset = 3 * BLOCK + number * 100;
                assert!(read(&**volume, offset, 4096) == sample.bytes[offset..offset + 4096]);
            });
        }
    });
    assert_eq!(server.asked(), [(3, 4)]);
    let stats = cache.stats();
    assert_eq!((stats.fetches, stats.store_blocks), (1, 1));
    assert_eq!(stats.store_bytes, BLOCK as u64);
    assert_eq!(stats.given_bytes, 24 * 4096);
    assert_eq!(stats.waits + stats.memory_hits, 23);
}

#[test]
fn adjacent_missing_blocks_come_with_one_request() {
    let sample = Sample::new(12 * BLOCK + 9);
    let server = Recorded::start(&sample, Duration::ZERO);
    let (_cache, volume) = sample.open(vec![server.store()], &options());
    read(&*volume, 3 * BLOCK, 1);
    read(&*volume, 0, 10 * BLOCK);
    // What is there is not asked for again, and no request is longer than 1 MiB.
    assert_eq!(server.asked(), [(3, 4), (0, 3), (4, 8), (8, 10)]);
    read(&*volume, 10 * BLOCK, 3 * BLOCK);
    assert_eq!(server.asked()[4..], [(10, 13)]);
}

#[test]
fn a_reader_does_not_wait_for_the_block_of_another() {
    let sample = Sample::new(8 * BLOCK);
    let is_free = Arc::new(AtomicBool::new(false));
    let (open, bytes) = (Arc::clone(&is_free), Arc::clone(&sample.bytes));
    let server = stook_testkit::servers::Canned::start(move |request, stream| {
        let range = request
            .header("range")
            .and_then(crate::cache_scene::parse_range);
        // The first block is kept back until another one has been read.
        while range.is_some_and(|(first, _)| first == 0) && !open.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        crate::cache_scene::serve(request, stream, &bytes, "\"one\"");
    });
    let store = crate::cache_scene::http(&server.url());
    let (_cache, volume) = sample.open(vec![store], &options());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| read(&*volume, 0, 10));
        assert!(read(&*volume, 5 * BLOCK, 10) == sample.bytes[5 * BLOCK..5 * BLOCK + 10]);
        assert!(!first.is_finished());
        is_free.store(true, Ordering::Relaxed);
        assert!(first.join().unwrap() == sample.bytes[..10]);
    });
}

#[test]
fn a_sequential_reader_finds_blocks_there_into_the_next_volume() {
    let one = Sample::new(20 * BLOCK);
    let two = Sample::named("000001.tar", 16 * BLOCK + 1);
    let folder = one.folder();
    two.write_to(folder.path());
    let options = CacheOptions {
        read_ahead_bytes: 8 * BLOCK as u64,
        fetchers: 8,
        ..options()
    };
    let records = vec![one.record.clone(), two.record.clone()];
    let cache = CachedVolumes::new(vec![directory(folder.path())], records, &options).unwrap();
    for sample in [&one, &two] {
        let volume = cache.open(&sample.record.name).unwrap();
        for offset in (0..sample.bytes.len()).step_by(BLOCK / 4) {
            let end = sample.bytes.len().min(offset + BLOCK / 4);
            assert!(read(&*volume, offset, BLOCK / 4) == sample.bytes[offset..end]);
            // The thread that fetches ahead gets a processor meanwhile.
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let stats = cache.stats();
    assert_eq!(stats.store_blocks, 37);
    assert!(stats.read_ahead_blocks > 10, "{stats:?}");
    assert!(stats.fetches < 37, "{stats:?}");
}

#[test]
fn what_is_prefetched_is_read_without_a_store() {
    let sample = Sample::new(30 * BLOCK);
    let Some(mut nginx) = nginx(&[&sample]) else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let online = with_disk(scratch.path());
    let stores = || vec![crate::cache_scene::http(&nginx.url())];
    let (cache, volume) = sample.open(stores(), &online);
    read(&*volume, 4 * BLOCK, 10);
    let range = |volume: &str, range: std::ops::Range<usize>| VolumeRange {
        volume: volume.to_owned(),
        range: range.start as u64..range.end as u64,
    };
    let ranges = [
        range(NAME, 2 * BLOCK + 1..5 * BLOCK),
        range(NAME, 10 * BLOCK..20 * BLOCK + 1),
        range(NAME, 15 * BLOCK..16 * BLOCK),
    ];
    let report = cache.prefetch(&ranges, &|| false);
    assert_eq!(
        (report.blocks, report.present, report.fetched, report.failed),
        (14, 1, 13, 0)
    );
    assert_eq!(report.fetched_bytes, 13 * BLOCK as u64);
    assert!(cache.prefetch(&ranges, &|| true).is_interrupted);
    let missing = cache.prefetch(&[range("000009.tar", 0..1)], &|| false);
    assert_eq!((missing.failed, missing.blocks), (1, 1));
    assert!(missing.error.unwrap().is_not_found());
    drop((cache, volume));
    let offline_stores = stores();
    nginx.kill();
    let offline = CacheOptions {
        is_offline: true,
        ..online
    };
    let (cache, volume) = sample.open(offline_stores, &offline);
    let both = [2 * BLOCK..5 * BLOCK, 10 * BLOCK..21 * BLOCK];
    for range in both {
        assert!(read(&*volume, range.start, range.len()) == sample.bytes[range]);
    }
    let error = try_read(&*volume, 25 * BLOCK + 7, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`000000.tar` from byte 6553600 on is not in the cache, and stores are not asked"
    );
    let stats = cache.stats();
    assert_eq!((stats.disk_hits, stats.fetches, stats.failures), (14, 0, 1));
    // Nobody knows what it is.
    let records = sample.unidentified();
    let unknown = CachedVolumes::new(Vec::new(), records, &offline).unwrap();
    let error = unknown.open(NAME).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the index has no MD5 of `000000.tar`"),
        "{error}"
    );
}

#[test]
fn blocks_on_disk_serve_the_next_mount_and_what_was_changed_there_does_not() {
    let sample = Sample::new(6 * BLOCK + 99);
    let server = Recorded::start(&sample, Duration::ZERO);
    let scratch = tempfile::tempdir().unwrap();
    let options = with_disk(scratch.path());
    for is_first in [true, false] {
        let (cache, volume) = sample.open(vec![server.store()], &options);
        assert!(read(&*volume, 0, 7 * BLOCK) == *sample.bytes);
        let stats = cache.stats();
        let expected = if is_first { (0, 7, 7) } else { (7, 0, 0) };
        assert_eq!(
            (stats.disk_hits, stats.store_blocks, stats.disk_writes),
            expected,
            "{stats:?}"
        );
    }
    let blocks = blocks_in(&scratch.path().join("cache"));
    assert_eq!(blocks.len(), 7);
    for (place, path) in blocks.iter().enumerate() {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[place * 20] ^= 4;
        std::fs::write(path, bytes).unwrap();
    }
    let (cache, volume) = sample.open(vec![server.store()], &options);
    assert!(read(&*volume, 0, 7 * BLOCK) == *sample.bytes);
    assert_eq!(cache.stats().damaged_blocks, 7);
    cache.clear(Layer::Memory);
    assert!(read(&*volume, 0, 7 * BLOCK) == *sample.bytes);
    assert_eq!(cache.stats().disk_hits, 7);
    cache.clear(Layer::Disk);
    assert_eq!(blocks_in(&scratch.path().join("cache")).len(), 0);
}

/// Returns the files of all blocks.
pub(crate) fn blocks_in(cache: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut blocks = Vec::new();
    for shard in std::fs::read_dir(cache.join("blocks")).unwrap() {
        let shard = shard.unwrap().path();
        if !shard.is_dir() {
            continue;
        }
        let files = std::fs::read_dir(shard)
            .unwrap()
            .map(|file| file.unwrap().path());
        blocks.extend(files.filter(|file| file.file_name().unwrap().len() > 32));
    }
    blocks.sort();
    blocks
}

#[test]
fn a_volume_without_an_md5_is_known_by_url_and_validator() {
    let sample = Sample::new(3 * BLOCK);
    let scratch = tempfile::tempdir().unwrap();
    let options = with_disk(scratch.path());
    let server = |tag: &'static str, bytes: Arc<Vec<u8>>| {
        stook_testkit::servers::Canned::start(move |request, stream| {
            crate::cache_scene::serve(request, stream, &bytes, tag);
        })
    };
    let changed = Arc::new(Random::new(77).bytes(3 * BLOCK));
    let one = server("\"one\"", Arc::clone(&sample.bytes));
    let other = server("\"other\"", Arc::clone(&changed));
    let read_all = |url: &str, records: Vec<VolumeIdentity>| {
        let stores = vec![crate::cache_scene::http(url)];
        let cache = CachedVolumes::new(stores, records, &options).unwrap();
        let volume = cache.open(NAME).unwrap();
        (read(&*volume, 0, 3 * BLOCK), cache.stats().disk_hits)
    };
    let unidentified = || sample.unidentified();
    assert!(read_all(&one.url(), unidentified()) == (sample.bytes.to_vec(), 0));
    assert!(read_all(&one.url(), Vec::new()) == (sample.bytes.to_vec(), 3));
    assert!(read_all(&other.url(), unidentified()) == (changed.to_vec(), 0));
    // Without a validator nothing outlives the process.
    let none = server("W/\"weak\"", Arc::clone(&sample.bytes));
    for _ in 0..2 {
        assert!(read_all(&none.url(), unidentified()) == (sample.bytes.to_vec(), 0));
    }
}
