//! Measures the cache alone: `cache FOLDER [ROUND_TRIP_MS] [READERS]` reads all volumes of a folder in order over a link of 1 Gbit/s,
//! cold, then from the disk, then from memory, and prints MB/s.
//!
//! Readers take parts of 128 KiB, as a kernel asks for them, each in its own share of every volume.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a measurement, run by hand"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stook_archive::VolumeStore;
use stook_mount::{CacheOptions, CachedVolumes, Layer, VolumeIdentity};
use stook_store::{HttpStore, Settings, Store};
use stook_testkit::servers::{LinkOptions, Nginx, SlowLink};

const READ: usize = 128 << 10;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap());
    let number = |text: Option<String>| text.map(|text| text.parse::<u64>().unwrap());
    let round_trip = number(arguments.next()).unwrap_or(20);
    let readers = number(arguments.next()).unwrap_or(1);
    let nginx = Nginx::start("").unwrap().unwrap();
    let mut records = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if name.ends_with(".tar") {
            std::fs::copy(file.path(), nginx.root().join(&name)).unwrap();
            let size = Some(file.metadata().unwrap().len());
            records.push(VolumeIdentity {
                name,
                size,
                md5: Some([1; 16]),
            });
        }
    }
    records.sort_by(|one, other| one.name.cmp(&other.name));
    let link = SlowLink::start(
        nginx.port(),
        LinkOptions {
            round_trip: Duration::from_millis(round_trip),
            ..LinkOptions::wide_area()
        },
    )
    .unwrap();
    let url = if round_trip == 0 {
        nginx.url()
    } else {
        link.url()
    };
    let store: Arc<dyn Store> = Arc::new(HttpStore::new(&url, &Settings::default()).unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let options = CacheOptions {
        directory: Some(scratch.path().join("cache")),
        ..CacheOptions::default()
    };
    stook_timers::enable();
    let memory = CacheOptions {
        memory_bytes: 4 << 30,
        ..options.clone()
    };
    for (state, options) in [("cold", &options), ("disk", &options), ("disk", &memory)] {
        let cache = CachedVolumes::new(vec![Arc::clone(&store)], records.clone(), options).unwrap();
        measure(state, &cache, &records, readers);
        println!("{:?}", cache.stats());
        if options.memory_bytes > 1 << 30 {
            measure("memory", &cache, &records, readers);
        }
        cache.clear(Layer::Memory);
    }
    println!("{}", stook_timers::snapshot().tree());
}

fn measure(state: &str, cache: &CachedVolumes, records: &[VolumeIdentity], readers: u64) {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for reader in 0..readers {
            scope.spawn(move || {
                let mut buffer = vec![0; READ];
                for record in records {
                    let volume = cache.open(&record.name).unwrap();
                    let size = record.size.unwrap();
                    let part = (reader * size / readers)..((reader + 1) * size / readers);
                    for offset in part.step_by(READ) {
                        volume.read_at(&mut buffer, offset).unwrap();
                    }
                }
            });
        }
    });
    let bytes: u64 = records.iter().filter_map(|record| record.size).sum();
    let seconds = begin.elapsed().as_secs_f64();
    println!("{state}: {:.0} MB/s", bytes as f64 / seconds / 1e6);
}
