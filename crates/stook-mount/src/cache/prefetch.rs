//! Fetches what will be needed before anybody reads it: into the cache on disk, or into memory where there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use stook_sys::lock;

use super::error::ReadError;
use super::mirrors::Effort;
use super::volume::CachedFile;
use super::volumes::{CachedVolumes, Shared};

/// A part of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeRange {
    /// The name of the volume.
    pub volume: String,
    /// Bytes of it.
    pub range: Range<u64>,
}

/// What came of fetching ranges.
#[derive(Debug, Default)]
pub struct PrefetchReport {
    /// Blocks that the ranges touch.
    pub blocks: u64,
    /// Blocks of them that were in the cache already.
    pub present: u64,
    /// Blocks that were fetched.
    pub fetched: u64,
    /// Bytes of these.
    pub fetched_bytes: u64,
    /// Blocks that could not be fetched.
    pub failed: u64,
    /// Blocks that were fetched, or were in memory, and could not be kept on the disk.
    pub not_kept: u64,
    /// The first reason why.
    pub error: Option<ReadError>,
    /// Whether it was asked to end before all was done.
    pub is_interrupted: bool,
}

/// A request: adjacent blocks of a volume.
struct Request {
    volume: Arc<CachedFile>,
    numbers: Range<u64>,
}

impl CachedVolumes {
    /// Fetches all blocks that ranges touch and the cache does not have, with several requests at a time, and returns what came
    /// of it. The ones that failed do not keep others from being fetched.
    ///
    /// Ranges that need more room than the cache has push each other out.
    ///
    /// # Cost
    /// Blocks that are on disk are read to see whether they are undamaged.
    pub fn prefetch(
        &self,
        ranges: &[VolumeRange],
        is_interrupted: &(dyn Fn() -> bool + Sync),
    ) -> PrefetchReport {
        let shared = self.shared();
        let mut report = PrefetchReport::default();
        let requests = plan(shared, ranges, &mut report);
        let work = Work {
            shared,
            requests: Mutex::new(requests.into_iter()),
            is_interrupted,
            has_stopped: AtomicBool::new(false),
            present: AtomicU64::new(0),
            fetched: AtomicU64::new(0),
            fetched_bytes: AtomicU64::new(0),
            not_kept: AtomicU64::new(0),
            error: Mutex::new(report.error.take()),
        };
        thread::scope(|scope| {
            for _ in 1..shared.fetchers {
                // The calling thread does what is left.
                let fetcher = thread::Builder::new().name("stook-fetch".to_owned());
                let _ = fetcher.spawn_scoped(scope, || work.run());
            }
            work.run();
        });
        report.present = work.present.into_inner();
        report.fetched = work.fetched.into_inner();
        report.not_kept = work.not_kept.into_inner();
        report.fetched_bytes = work.fetched_bytes.into_inner();
        report.is_interrupted = work.has_stopped.into_inner();
        report.error = stook_sys::into_inner(work.error);
        if !report.is_interrupted {
            report.failed = report.blocks - report.present - report.fetched;
        }
        report
    }
}

/// Merges ranges into requests, in the order of the volumes.
fn plan(shared: &Shared, ranges: &[VolumeRange], report: &mut PrefetchReport) -> Vec<Request> {
    let mut wanted: BTreeMap<&str, Vec<&Range<u64>>> = BTreeMap::new();
    for VolumeRange { volume, range } in ranges {
        wanted.entry(volume).or_default().push(range);
    }
    let mut requests = Vec::new();
    for (name, ranges) in wanted {
        let volume = match shared.open(name) {
            Ok(volume) => volume,
            Err(error) => {
                report.blocks += 1;
                report.error.get_or_insert(error);
                continue;
            }
        };
        let blocks = ranges.into_iter().flat_map(|range| volume.blocks_of(range));
        let blocks: BTreeSet<u64> = blocks.collect();
        report.blocks += blocks.len() as u64;
        let most = shared.loader.request_blocks as u64;
        let mut run: Option<Range<u64>> = None;
        let mut add = |numbers| {
            let volume = Arc::clone(&volume);
            requests.push(Request { volume, numbers });
        };
        for number in blocks {
            match &mut run {
                Some(run) if run.end == number && number - run.start < most => run.end += 1,
                _ => {
                    if let Some(full) = run.replace(number..number + 1) {
                        add(full);
                    }
                }
            }
        }
        run.into_iter().for_each(add);
    }
    requests
}

/// What the fetching threads share.
struct Work<'a> {
    shared: &'a Shared,
    requests: Mutex<std::vec::IntoIter<Request>>,
    is_interrupted: &'a (dyn Fn() -> bool + Sync),
    has_stopped: AtomicBool,
    present: AtomicU64,
    fetched: AtomicU64,
    fetched_bytes: AtomicU64,
    not_kept: AtomicU64,
    error: Mutex<Option<ReadError>>,
}

impl Work<'_> {
    fn run(&self) {
        loop {
            if (self.is_interrupted)() {
                self.has_stopped.store(true, Ordering::Relaxed);
                return;
            }
            let Some(request) = lock(&self.requests).next() else {
                return;
            };
            if let Err(error) = self.fetch(&request) {
                lock(&self.error).get_or_insert(error);
            }
        }
    }

    fn fetch(&self, request: &Request) -> Result<(), ReadError> {
        let (loader, volume) = (&self.shared.loader, &request.volume);
        let is_missing = |number: &u64| match &loader.disk {
            Some(_) if volume.is_lasting => {
                loader.read_disk(volume, &volume.block(*number)).is_none()
            }
            _ => !loader.table.is_known(&volume.block(*number)),
        };
        let all = request.numbers.end - request.numbers.start;
        let missing: Vec<u64> = request.numbers.clone().filter(is_missing).collect();
        self.present
            .fetch_add(all - missing.len() as u64, Ordering::Relaxed);
        // Others are in memory, or on their way there.
        let claim = |number: &u64| loader.table.claim_missing(volume.block(*number));
        let claimed: Vec<_> = missing.iter().filter_map(claim).collect();
        let elsewhere = missing.len() - claimed.len();
        self.present.fetch_add(elsewhere as u64, Ordering::Relaxed);
        loader.load(volume, claimed, Effort::Reader, &mut |_, block| {
            self.fetched.fetch_add(1, Ordering::Relaxed);
            self.fetched_bytes
                .fetch_add(block.len() as u64, Ordering::Relaxed);
        })?;
        missing
            .into_iter()
            .try_for_each(|number| self.keep(volume, number))
    }

    /// Has a block on the disk that is in memory.
    fn keep(&self, volume: &CachedFile, number: u64) -> Result<(), ReadError> {
        let (loader, key) = (&self.shared.loader, volume.block(number));
        let Some(disk) = loader.disk.as_ref().filter(|_| volume.is_lasting) else {
            return Ok(());
        };
        if disk.has(&key) {
            return Ok(());
        }
        for block in loader.blocks(volume, number..number + 1)? {
            disk.write(&key, &block);
        }
        if !disk.has(&key) {
            self.not_kept.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
