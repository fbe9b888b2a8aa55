//! How a block gets from where it lies to who needs it.
//!
//! ```text
//!   blocks(range) ── claim each ──> Here ─────────────────────────────────────────────> given
//!                        ├────────> Claimed ──> disk ──> one request for adjacent ones ──> memory, then disk
//!                        └────────> Loading ──> wait for that block
//! ```
//! A thread fetches the blocks it has claimed before it waits for those of others, so threads cannot wait in a circle. A block is given as
//! soon as it has arrived, not when the request that it came with is over.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stook_store::{Difference, Store, StoreCause, StoreError, StoredFile};

use super::block::{Block, Origin};
use super::counters::Counters;
use super::disk::DiskCache;
use super::error::ReadError;
use super::flight::Outcome;
use super::key::{BLOCK_BYTES, BlockKey};
use super::mirrors::{Effort, Mirrors};
use super::table::{BlockTable, Claim, ClaimedBlock};
use super::volume::CachedFile;

/// The layers of a cache.
#[derive(Debug)]
pub(super) struct Loader {
    pub(super) table: Arc<BlockTable>,
    pub(super) disk: Option<DiskCache>,
    pub(super) mirrors: Mirrors,
    pub(super) counters: Arc<Counters>,
    /// Threads that fetch blocks, or write them to the disk.
    pub(super) loading: AtomicUsize,
    /// Adjacent blocks that are asked for at once, at most.
    pub(super) request_blocks: usize,
}

impl Loader {
    /// Returns blocks of a volume, from wherever they are.
    pub(super) fn blocks(
        &self,
        volume: &CachedFile,
        numbers: Range<u64>,
    ) -> Result<Vec<Block>, ReadError> {
        let mut found: Vec<Option<Block>> = numbers.clone().map(|_| None).collect();
        let mut is_first = true;
        loop {
            let (mut claimed, mut others) = (Vec::new(), Vec::new());
            for (number, place) in numbers.clone().zip(&mut found) {
                if place.is_some() {
                    continue;
                }
                match self.table.claim(volume.block(number)) {
                    Claim::Here(block) => *place = Some(block),
                    Claim::Claimed(claim) => claimed.push(claim),
                    Claim::Loading(flight) => others.push((place, flight)),
                }
            }
            if is_first {
                let missed = (claimed.len() + others.len()) as u64;
                self.counters.memory_misses.add(missed);
                self.counters
                    .memory_hits
                    .add(numbers.end - numbers.start - missed);
                is_first = false;
            }
            let mut arrived = Vec::new();
            self.load(volume, claimed, Effort::Reader, &mut |number, block| {
                arrived.push((number, block));
            })?;
            for (place, flight) in others {
                let _scope = stook_timers::scope!("wait for a fetch");
                self.counters.waits.increase();
                match flight.wait() {
                    Outcome::Arrived(block) => *place = Some(block),
                    Outcome::Failed(error) => return Err(error),
                    Outcome::Abandoned => {}
                }
            }
            for (number, block) in arrived {
                if let Ok(place) = usize::try_from(number - numbers.start) {
                    found[place] = Some(block);
                }
            }
            if found.iter().all(Option::is_some) {
                return Ok(found.into_iter().flatten().collect());
            }
        }
    }

    /// Fetches claimed blocks of a volume, in order, from the disk or from a mirror; each is shown when it is there.
    pub(super) fn load(
        &self,
        volume: &CachedFile,
        claimed: Vec<ClaimedBlock>,
        effort: Effort,
        arrived: &mut dyn FnMut(u64, Block),
    ) -> Result<(), ReadError> {
        if claimed.is_empty() {
            return Ok(());
        }
        let _loading = Loading::begin(&self.loading);
        let mut missing = VecDeque::new();
        for claim in claimed {
            match self.read_disk(volume, claim.key()) {
                Some(block) => {
                    arrived(claim.key().number, block.clone());
                    claim.arrived(block, effort);
                }
                None => missing.push_back(claim),
            }
        }
        while let Some(first) = missing.front().map(|claim| claim.key().number) {
            let numbers = first..first + self.request_blocks as u64;
            let is_adjacent =
                |(claim, number): &(&ClaimedBlock, u64)| claim.key().number == *number;
            let adjacent = missing.iter().zip(numbers).take_while(is_adjacent).count();
            let run: VecDeque<ClaimedBlock> = missing.drain(..adjacent).collect();
            self.fetch(volume, run, effort, arrived)?;
        }
        Ok(())
    }

    pub(super) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Relaxed) > 0
    }

    /// Returns a block from the disk.
    pub(super) fn read_disk(&self, volume: &CachedFile, key: &BlockKey) -> Option<Block> {
        let disk = self.disk.as_ref().filter(|_| volume.is_lasting)?;
        disk.read(key, volume.block_len(key.number), |origin| {
            self.mirrors.accepts(&volume.copies, origin)
        })
    }

    /// Fetches adjacent blocks with one request, or as many as it takes.
    fn fetch(
        &self,
        volume: &CachedFile,
        run: VecDeque<ClaimedBlock>,
        effort: Effort,
        arrived: &mut dyn FnMut(u64, Block),
    ) -> Result<(), ReadError> {
        let mut fetched = Vec::new();
        let mut arriving = Arriving {
            volume,
            effort,
            run,
            building: Vec::new(),
            arrived: &mut |number, block| {
                self.counters.store_blocks.increase();
                self.counters.store_bytes.add(block.len() as u64);
                fetched.push((volume.block(number), block.clone()));
                arrived(number, block);
            },
        };
        let result = self.fetch_into(&mut arriving);
        let rest = arriving.run;
        if let Some(disk) = self.disk.as_ref().filter(|_| volume.is_lasting) {
            for (key, block) in &fetched {
                disk.write(key, block);
            }
        }
        if let (Err(error), Effort::Reader) = (&result, effort) {
            self.counters.failures.add(rest.len() as u64);
            for claim in rest {
                claim.failed(error.clone());
            }
        }
        result
    }

    fn fetch_into(&self, arriving: &mut Arriving<'_>) -> Result<(), ReadError> {
        let (volume, effort) = (arriving.volume, arriving.effort);
        if self.mirrors.is_offline() {
            let first = arriving.run.front().map_or(0, |claim| claim.key().number);
            return Err(ReadError::NotCached {
                name: volume.name().to_owned(),
                offset: first * BLOCK_BYTES,
            });
        }
        let _scope = stook_timers::scope!("fetch");
        self.mirrors
            .read(&volume.copies, effort, &mut |store, file| {
                arriving.receive(store, file)
            })
    }
}

/// Counts a thread as long as it loads.
struct Loading<'a>(&'a AtomicUsize);

impl<'a> Loading<'a> {
    fn begin(threads: &'a AtomicUsize) -> Self {
        threads.fetch_add(1, Ordering::Relaxed);
        Self(threads)
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Blocks that come in one after the other.
struct Arriving<'a> {
    volume: &'a CachedFile,
    effort: Effort,
    /// Those that are missing.
    run: VecDeque<ClaimedBlock>,
    /// What there is of the first of them.
    building: Vec<u8>,
    arrived: &'a mut dyn FnMut(u64, Block),
}

impl Arriving<'_> {
    /// Receives what is missing, from the first block on that is not whole.
    fn receive(&mut self, store: &dyn Store, file: &StoredFile) -> Result<(), StoreError> {
        self.building.clear();
        let Some(first) = self.run.front().map(|claim| claim.key().number) else {
            return Ok(());
        };
        let range = self.volume.bytes_of(first..first + self.run.len() as u64);
        let expected = range.end - range.start;
        let origin = Origin {
            store: Origin::hash(store.name()),
            validator: Origin::validator_of(file),
        };
        store.read_pieces(file, range, &mut |piece| self.take(piece, origin))?;
        if self.run.is_empty() {
            return Ok(());
        }
        let missing = self.run.len() as u64 * BLOCK_BYTES;
        let found = expected.saturating_sub(missing);
        Err(StoreError {
            operation: "read",
            file: file.name.clone(),
            store: store.name().to_owned(),
            cause: StoreCause::Different(Difference::Size { expected, found }),
        })
    }

    fn take(&mut self, mut piece: &[u8], origin: Origin) {
        while let Some(first) = self.run.front() {
            let number = first.key().number;
            let len = self.volume.block_len(number);
            if self.building.capacity() < len {
                self.building.reserve_exact(len);
            }
            let count = piece.len().min(len - self.building.len());
            let (now, later) = piece.split_at(count);
            self.building.extend_from_slice(now);
            piece = later;
            if self.building.len() < len {
                return;
            }
            let block = Block::new(std::mem::take(&mut self.building), origin);
            if let Some(claim) = self.run.pop_front() {
                claim.arrived(block.clone(), self.effort);
            }
            (self.arrived)(number, block);
        }
    }
}
