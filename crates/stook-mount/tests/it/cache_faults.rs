//! What stores do wrong, and what comes of it: the right bytes, or an error, never a mixture.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use stook_archive::VolumeStore;
use stook_mount::{CacheOptions, CachedVolumes};
use stook_store::Store;
use stook_testkit::Random;
use stook_testkit::servers::{Canned, LinkOptions, Nginx, Request, SlowLink};

use crate::cache_scene::{
    BLOCK, Recorded, Sample, directory, http, nginx, options, parse_range, read, serve, try_read,
    with_disk,
};

/// A server that does this with a request for a range, and serves all others.
fn server(
    sample: &Sample,
    answer: impl Fn(&Request, &mut TcpStream, &[u8]) + Send + Sync + 'static,
) -> (Canned, Arc<dyn Store>) {
    let bytes = Arc::clone(&sample.bytes);
    let server = Canned::start(move |request, stream| match request.header("range") {
        Some(_) => answer(request, stream, &bytes),
        None => serve(request, stream, &bytes, "\"one\""),
    });
    let store = http(&server.url());
    (server, store)
}

fn send(stream: &mut TcpStream, head: &str, body: &[u8]) {
    // The client may be gone.
    let _ = write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(body);
}

/// Options that give up soon.
fn impatient() -> CacheOptions {
    CacheOptions {
        deadline: Duration::from_millis(700),
        ..options()
    }
}

#[test]
fn a_missing_volume_is_an_error_and_the_others_are_read() {
    let (one, two) = (
        Sample::new(3 * BLOCK),
        Sample::named("000001.tar", 2 * BLOCK),
    );
    let Some(nginx) = nginx(&[&two]) else {
        return;
    };
    let records = vec![one.record.clone(), two.record.clone()];
    let stores = vec![http(&nginx.url())];
    let cache = CachedVolumes::new(stores, records, &options()).unwrap();
    let volume = cache.open("000000.tar").unwrap();
    for _ in 0..3 {
        let error = try_read(&*volume, 0, 10).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
    // It is not asked for each time.
    assert_eq!(nginx.requests().unwrap().len(), 1);
    let volume = cache.open("000001.tar").unwrap();
    assert!(read(&*volume, 0, 2 * BLOCK) == *two.bytes);
    let error = cache.open("000002.tar").unwrap_err();
    assert!(
        error.is_not_found() && error.to_string().contains(&nginx.url()),
        "{error}"
    );
}

#[test]
fn a_volume_of_another_length_is_refused() {
    let sample = Sample::new(3 * BLOCK);
    let shorter = Sample::new(2 * BLOCK);
    let Some(nginx) = nginx(&[&shorter]) else {
        return;
    };
    let (_cache, volume) = sample.open(vec![http(&nginx.url())], &options());
    let error = try_read(&*volume, 0, 10).unwrap_err();
    let url = nginx.url();
    assert_eq!(
        error.to_string(),
        format!("`000000.tar` in `{url}` has 524288 bytes, and 786432 in the index")
    );
    // Another mirror has it.
    let folder = sample.folder();
    let stores = vec![http(&nginx.url()), directory(folder.path())];
    let (_cache, volume) = sample.open(stores, &options());
    assert!(read(&*volume, 0, 3 * BLOCK) == *sample.bytes);
}

#[test]
fn answers_with_other_bytes_are_never_given_out() {
    let sample = Sample::new(6 * BLOCK);
    let wrong: [fn(&Request, &mut TcpStream, &[u8]); 4] = [
        // Another range than was asked for.
        |_, stream, bytes| {
            let head = format!(
                "206 Partial Content\r\nETag: \"one\"\r\nContent-Range: bytes 0-99/{}\r\nContent-Length: 100",
                bytes.len()
            );
            send(stream, &head, &bytes[..100]);
        },
        // The whole file, which is too large to be read for a part.
        |_, stream, _| {
            send(
                stream,
                "200 OK\r\nETag: \"one\"\r\nContent-Length: 99999999",
                b"",
            );
        },
        // Less than was promised.
        |request, stream, bytes| {
            let (first, last) = request.header("range").and_then(parse_range).unwrap();
            let head = format!(
                "206 Partial Content\r\nETag: \"one\"\r\nContent-Range: bytes {first}-{last}/{}\r\nContent-Length: {}",
                bytes.len(),
                last - first + 1
            );
            send(stream, &head, &bytes[first..first + 1000]);
        },
        // Another server.
        |_, stream, _| {
            let head = "302 Found\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0";
            send(stream, head, b"");
        },
    ];
    let folder = sample.folder();
    for (number, answer) in wrong.into_iter().enumerate() {
        let (_server, store) = server(&sample, answer);
        let (_cache, volume) = sample.open(vec![Arc::clone(&store)], &impatient());
        let error = try_read(&*volume, 2 * BLOCK, 100).unwrap_err();
        assert!(!error.to_string().is_empty(), "{number}");
        // The same with a mirror behind it.
        let (cache, volume) = sample.open(vec![store, directory(folder.path())], &options());
        assert!(read(&*volume, 0, 6 * BLOCK) == *sample.bytes, "{number}");
        assert!(cache.stats().failovers > 0, "{number}");
    }
}

#[test]
fn small_files_are_read_from_servers_that_ignore_ranges_and_redirects_are_followed() {
    let sample = Sample::new(3 * BLOCK);
    let (_server, store) = server(&sample, |request, stream, bytes| {
        if request.target == "/000000.tar" {
            send(
                stream,
                "307 Temporary Redirect\r\nLocation: /there\r\nContent-Length: 0",
                b"",
            );
            return;
        }
        let head = format!("200 OK\r\nETag: \"one\"\r\nContent-Length: {}", bytes.len());
        send(stream, &head, bytes);
    });
    let (_cache, volume) = sample.open(vec![store], &options());
    assert!(read(&*volume, BLOCK + 7, BLOCK) == sample.bytes[BLOCK + 7..2 * BLOCK + 7]);
}

#[test]
fn a_server_that_stalls_is_left_for_a_mirror() {
    let sample = Sample::new(4 * BLOCK);
    let (_stalled, store) = server(&sample, |request, stream, bytes| {
        let (first, last) = request.header("range").and_then(parse_range).unwrap();
        let head = format!(
            "206 Partial Content\r\nETag: \"one\"\r\nContent-Range: bytes {first}-{last}/{}\r\nContent-Length: {}",
            bytes.len(),
            last - first + 1
        );
        // Some of it, and then nothing.
        send(stream, &head, &bytes[first..first + BLOCK + 5]);
        let _ = stream.flush();
        std::thread::sleep(Duration::from_secs(30));
    });
    let mirror = Recorded::start(&sample, Duration::ZERO);
    let (cache, volume) = sample.open(vec![store, mirror.store()], &options());
    assert!(read(&*volume, 0, 4 * BLOCK) == *sample.bytes);
    // The first block had arrived, and is not fetched again.
    assert_eq!(mirror.asked(), [(1, 4)]);
    assert_eq!(cache.stats().failovers, 1);
    // The mirror that answered is the first one to be asked now.
    cache.clear(stook_mount::Layer::Memory);
    assert!(read(&*volume, 0, 4 * BLOCK) == *sample.bytes);
    assert_eq!(mirror.asked()[1..], [(0, 4)]);
    assert_eq!(cache.stats().failovers, 1);
}

#[test]
fn a_server_that_dies_and_comes_back_is_waited_for() {
    let sample = Sample::new(12 * BLOCK);
    let Some(mut nginx) = nginx(&[&sample]) else {
        return;
    };
    let (cache, volume) = sample.open(vec![http(&nginx.url())], &options());
    assert!(read(&*volume, 0, BLOCK) == sample.bytes[..BLOCK]);
    nginx.kill();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&*volume, 2 * BLOCK, 3 * BLOCK));
        std::thread::sleep(Duration::from_millis(600));
        nginx.restart().unwrap();
        assert!(reading.join().unwrap() == sample.bytes[2 * BLOCK..5 * BLOCK]);
    });
    assert!(cache.stats().retries > 0);
    // One that stays away is an error in time, and what was read is still there.
    let folder = sample.folder();
    nginx.kill();
    let (_cache, volume) = sample.open(vec![http(&nginx.url())], &impatient());
    let error = try_read(&*volume, 0, 10).unwrap_err();
    assert!(error.to_string().contains("connection refused"), "{error}");
    let stores = vec![http(&nginx.url()), directory(folder.path())];
    let (_cache, volume) = sample.open(stores, &impatient());
    assert!(read(&*volume, 0, 12 * BLOCK) == *sample.bytes);
}

#[test]
fn readers_of_a_failed_block_get_its_error_and_the_next_one_tries_again() {
    let sample = Sample::new(2 * BLOCK);
    let fails = Arc::new(AtomicBool::new(true));
    let count = Arc::new(AtomicUsize::new(0));
    let (is_failing, asked) = (Arc::clone(&fails), Arc::clone(&count));
    let (_server, store) = server(&sample, move |request, stream, bytes| {
        asked.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        if is_failing.load(Ordering::Relaxed) {
            send(stream, "403 Forbidden\r\nContent-Length: 0", b"");
        } else {
            serve(request, stream, bytes, "\"one\"");
        }
    });
    let (cache, volume) = sample.open(vec![store], &options());
    std::thread::scope(|scope| {
        let reading = [(); 6].map(|()| scope.spawn(|| try_read(&*volume, 7, 10)));
        for reading in reading {
            let error = reading.join().unwrap().unwrap_err();
            assert!(error.to_string().contains("access denied"), "{error}");
        }
    });
    // Those that came while it was asked for did not ask again.
    assert!(count.load(Ordering::Relaxed) < 6, "{count:?}");
    fails.store(false, Ordering::Relaxed);
    assert!(read(&*volume, 7, 10) == sample.bytes[7..17]);
    assert!(cache.stats().failures > 0);
}

#[test]
fn mirrors_have_validators_of_their_own() {
    let sample = Sample::new(8 * BLOCK);
    let tagged = |tag: &'static str, fails_on: usize| {
        let bytes = Arc::clone(&sample.bytes);
        Canned::start(move |request, stream| {
            // As a server would that is told to give one state only.
            let wanted = request.header("if-match");
            let range = request.header("range").and_then(parse_range);
            if wanted.is_some_and(|wanted| wanted != tag) {
                send(stream, "412 Precondition Failed\r\nContent-Length: 0", b"");
            } else if range.is_some_and(|(first, _)| first / BLOCK % 2 == fails_on) {
                send(stream, "503 Service Unavailable\r\nContent-Length: 0", b"");
            } else {
                serve(request, stream, &bytes, tag);
            }
        })
    };
    // Each of them has a half of the blocks only.
    let (one, other) = (tagged("\"one\"", 0), tagged("\"other\"", 1));
    let stores = vec![http(&one.url()), http(&other.url())];
    let single = CacheOptions {
        request_bytes: BLOCK as u64,
        ..options()
    };
    let (cache, volume) = sample.open(stores, &single);
    for number in 0..8 {
        let range = number * BLOCK..(number + 1) * BLOCK;
        assert!(read(&*volume, range.start, BLOCK) == sample.bytes[range]);
    }
    assert!(cache.stats().failovers > 0);
}

#[test]
fn a_volume_that_changes_is_an_error_and_never_a_mixture() {
    let sample = Sample::new(8 * BLOCK);
    let changed = Random::new(99).bytes(8 * BLOCK);
    let Some(nginx) = nginx(&[&sample]) else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let (cache, volume) = sample.open(vec![http(&nginx.url())], &with_disk(scratch.path()));
    assert!(read(&*volume, 0, 2 * BLOCK) == sample.bytes[..2 * BLOCK]);
    replace(&nginx, &changed);
    let error = try_read(&*volume, BLOCK, 2 * BLOCK).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the file has changed in the store"),
        "{error}"
    );
    // What was read before is still what it was.
    assert!(read(&*volume, 0, 2 * BLOCK) == sample.bytes[..2 * BLOCK]);
    // The right bytes again are another state: it is not looked at anew.
    replace(&nginx, &sample.bytes);
    try_read(&*volume, 4 * BLOCK, 10).unwrap_err();
    drop((cache, volume));
    // With a mirror it is no error.
    let folder = sample.folder();
    let stores = vec![http(&nginx.url()), directory(folder.path())];
    let (_cache, volume) = sample.open(stores, &options());
    assert!(read(&*volume, 0, BLOCK) == sample.bytes[..BLOCK]);
    replace(&nginx, &changed);
    assert!(read(&*volume, 0, 8 * BLOCK) == *sample.bytes);
}

#[test]
fn blocks_of_two_states_of_a_volume_are_never_mixed() {
    let sample = Sample::new(8 * BLOCK);
    let changed = Random::new(99).bytes(8 * BLOCK);
    let Some(mut nginx) = nginx(&[&sample]) else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let options = with_disk(scratch.path());
    let open = |url: &str, options: &CacheOptions| sample.open(vec![http(url)], options);
    let (_cache, volume) = open(&nginx.url(), &options);
    assert!(read(&*volume, 0, 4 * BLOCK) == sample.bytes[..4 * BLOCK]);
    // Another volume of the same length: the blocks of the first one are not used by who can ask.
    replace(&nginx, &changed);
    let (cache, volume) = open(&nginx.url(), &options);
    assert!(read(&*volume, 2 * BLOCK, 4 * BLOCK) == changed[2 * BLOCK..6 * BLOCK]);
    assert_eq!(
        (cache.stats().disk_hits, cache.stats().store_blocks),
        (0, 4)
    );
    // Who cannot ask goes on with the state that it began with.
    let offline = CacheOptions {
        is_offline: true,
        ..options.clone()
    };
    let (_cache, volume) = open(&nginx.url(), &offline);
    assert!(read(&*volume, BLOCK, BLOCK) == sample.bytes[BLOCK..2 * BLOCK]);
    let error = try_read(&*volume, 2 * BLOCK, 10).unwrap_err();
    assert!(error.to_string().contains("is not in the cache"), "{error}");
    let (_cache, volume) = open(&nginx.url(), &offline);
    assert!(read(&*volume, 2 * BLOCK, 4 * BLOCK) == changed[2 * BLOCK..6 * BLOCK]);
    try_read(&*volume, BLOCK, 10).unwrap_err();
    // A server that comes back with another state than the blocks that were given out is refused.
    let url = nginx.url();
    nginx.kill();
    let (_cache, volume) = open(&url, &options);
    assert!(read(&*volume, BLOCK, BLOCK) == sample.bytes[BLOCK..2 * BLOCK]);
    nginx.restart().unwrap();
    let error = try_read(&*volume, 7 * BLOCK, 10).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the file has changed in the store"),
        "{error}"
    );
    assert!(read(&*volume, 0, 2 * BLOCK) == sample.bytes[..2 * BLOCK]);
}

/// Puts other bytes under the name of the volume; nginx tells versions apart by size and second.
fn replace(nginx: &Nginx, bytes: &[u8]) {
    let path = nginx.root().join("000000.tar");
    let new = nginx.root().join("new");
    std::fs::write(&new, bytes).unwrap();
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    let file = std::fs::File::options().write(true).open(&new).unwrap();
    file.set_modified(before + Duration::from_secs(5)).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn a_cut_connection_is_made_again_over_a_slow_link() {
    let sample = Sample::new(40 * BLOCK);
    let Some(nginx) = nginx(&[&sample]) else {
        return;
    };
    let link = SlowLink::start(
        nginx.port(),
        LinkOptions {
            round_trip: Duration::from_millis(20),
            bytes_per_second: Some(40_000_000),
        },
    );
    let link = link.unwrap();
    let ahead = CacheOptions {
        read_ahead_bytes: 4 << 20,
        fetchers: 8,
        ..options()
    };
    let (cache, volume) = sample.open(vec![http(&link.url())], &ahead);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let reads = (0..sample.bytes.len()).step_by(100_000);
            reads
                .flat_map(|offset| read(&*volume, offset, 100_000))
                .collect::<Vec<u8>>()
        });
        while !reading.is_finished() {
            std::thread::sleep(Duration::from_millis(60));
            if cache.stats().store_blocks < 30 {
                link.cut();
            }
        }
        assert!(reading.join().unwrap() == *sample.bytes);
    });
    assert!(cache.stats().read_ahead_blocks > 0);
}
