//! Blocks on disk, shared by processes that know nothing of each other.
//!
//! ```text
//!   CACHE/blocks/layout        budget and number of shards that the files are laid out for
//!   CACHE/blocks/3f/...        a shard: the blocks whose key falls there (shard.rs)
//! ```
//! - Each shard has its own lock and an equal part of the budget, so that writers rarely meet, and none has to know the whole.
//! - Nothing is synced: after a crash a block may be damaged, which its CRC shows, and it is fetched again.
//! - The time of a file is when it was used last, to the minute.
//! - A failure here never fails a reader: what cannot be read is fetched, what cannot be written is not cached.

mod layout;
mod ledger;
mod private;
mod shard;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stook_sys::{
    Context, Directory, FileKind, Links, SysError, append_at, effective_user, lock, metadata,
    set_mtime, try_lock, utc_now,
};

use super::block::{Block, HEADER_BYTES, Origin};
use super::counters::Counters;
use super::error::CacheError;
use super::key::BlockKey;
use layout::Layout;
use shard::{Shard, Written, block_name, path};

/// How exactly the time of the last use is kept: reading a block need not write anything each time.
const RECENCY_SECONDS: i64 = 60;

/// How long nothing is written after the disk was full.
const PAUSE: Duration = Duration::from_secs(1);

/// The block cache of a directory.
#[derive(Debug)]
pub(super) struct DiskCache {
    root: Directory,
    layout: Layout,
    counters: Arc<Counters>,
    /// Until then nothing is written: the disk was full.
    pause_end: Mutex<Option<Instant>>,
}

impl DiskCache {
    /// Opens the cache in a directory, which is made if it is missing; what is too much for the budget is removed.
    ///
    /// # Errors
    /// `TooSmall`, `Owner`, `Mode`, `NoDirectory`, `Form`, `NoLocks`; `Sys`.
    ///
    /// # Cost
    /// A few system calls; where another budget was on record, one for each block that the directory holds.
    pub(super) fn open(
        directory: &Path,
        budget: u64,
        counters: Arc<Counters>,
    ) -> Result<Self, CacheError> {
        let layout = Layout::for_budget(budget)?;
        let cache = private::open_private(directory)?;
        let blocks = directory.join("blocks");
        let root = private::open_private_in(&cache, b"blocks", &blocks)?;
        let lock = root.open_or_create_file(b"lock", 0o600);
        let lock = lock.context("open", blocks.join("lock"))?;
        if try_lock(&lock).is_err() {
            return Err(CacheError::NoLocks {
                path: directory.into(),
            });
        }
        let opened = Self {
            root,
            layout,
            counters,
            pause_end: Mutex::default(),
        };
        // Another process may be at it: then it does what there is to do for its own budget, and writes of this one
        // make room in the shards that they go to.
        if layout::read(&opened.root, directory)? != Some(layout) {
            opened.fit(&blocks)?;
            opened.record_layout(&blocks)?;
        }
        drop(lock);
        Ok(opened)
    }

    /// On a full disk nothing is written for now, as with blocks; the next one to open the cache records the layout.
    fn record_layout(&self, blocks: &Path) -> Result<(), SysError> {
        match layout::write(&self.root, &self.layout) {
            Err(error) if is_full(&error) => {
                self.pause();
                Ok(())
            }
            written => written.context("write", blocks.join("layout")),
        }
    }

    fn pause(&self) {
        *lock(&self.pause_end) = Some(Instant::now() + PAUSE);
    }

    /// Returns a block if it is there, of this length and undamaged, and came from where it may come from.
    pub(super) fn read(
        &self,
        key: &BlockKey,
        len: usize,
        accepts: impl FnOnce(Origin) -> bool,
    ) -> Option<Block> {
        let _scope = stook_timers::scope!("cache read");
        let found = self.read_file(key, len);
        let block = found.filter(|block| accepts(block.origin()));
        match &block {
            Some(block) => {
                self.counters.disk_hits.increase();
                self.counters.disk_bytes.add(block.len() as u64);
            }
            None => self.counters.disk_misses.increase(),
        }
        block
    }

    /// Returns how many bytes of blocks fit for sure: blocks are spread over the shards by chance.
    pub(super) fn room(&self) -> u64 {
        self.layout.shard_bytes * self.layout.shards as u64 / 4 * 3
    }

    /// Returns true if a file has the name of the block.
    pub(super) fn has(&self, key: &BlockKey) -> bool {
        let found = self.root.metadata(&self.path_of(key), Links::Refuse);
        found.is_ok()
    }

    /// Keeps a block, if there is room for it.
    pub(super) fn write(&self, key: &BlockKey, block: &Block) {
        let _scope = stook_timers::scope!("cache write");
        let is_paused = lock(&self.pause_end).is_some_and(|end| Instant::now() < end);
        if is_paused || !self.try_write(key, block) {
            self.counters.not_written.increase();
            return;
        }
        self.counters.disk_writes.increase();
        self.counters.disk_written_bytes.add(block.len() as u64);
    }

    /// Removes all blocks.
    pub(super) fn clear(&self) {
        for number in 0..self.layout.shards {
            // What is locked or cannot be removed stays: it is a cache.
            let _ = self.in_shard(number, |shard| shard.evict_to(0));
        }
    }

    fn read_file(&self, key: &BlockKey, len: usize) -> Option<Block> {
        let file = self
            .root
            .open_file(&self.path_of(key), Links::Refuse)
            .ok()?;
        let damaged = || self.counters.damaged_blocks.increase();
        let found = metadata(&file).ok()?;
        let size = HEADER_BYTES + len;
        if found.kind != FileKind::File
            || found.size != size as u64
            || found.uid != effective_user()
        {
            damaged();
            return None;
        }
        let mut bytes = Vec::with_capacity(size);
        let read = append_at(&file, &mut bytes, size, 0);
        let block = read.ok().and_then(|_| Block::from_file(bytes, key, len));
        if block.is_none() {
            damaged();
            return None;
        }
        let now = utc_now();
        if now.seconds.abs_diff(found.mtime.seconds) >= RECENCY_SECONDS.unsigned_abs() {
            // A cache that cannot be written to is still good for reading.
            let _ = set_mtime(&file, now);
        }
        block
    }

    /// Returns true if the block is there now.
    fn try_write(&self, key: &BlockKey, block: &Block) -> bool {
        let number = self.shard_of(key);
        let budget = self.layout.shard_bytes;
        let write = |shard: &mut Shard<'_>| shard.write(key, block, budget);
        let mut written = self.in_shard(number, write);
        if matches!(&written, Err(error) if is_full(error)) {
            // Something else has filled the disk: give back half of the shard, then it may do for this one.
            let _ = self.in_shard(number, |shard| shard.evict_share(2));
            written = self.in_shard(number, write);
        }
        if matches!(&written, Err(error) if is_full(error)) {
            self.pause();
        }
        matches!(written, Ok(Some(Written::Done)))
    }

    /// Does something with a locked shard; None if somebody else keeps it locked.
    fn in_shard<T>(
        &self,
        number: usize,
        work: impl FnOnce(&mut Shard<'_>) -> std::io::Result<T>,
    ) -> std::io::Result<Option<T>> {
        let Some(mut shard) = Shard::lock(&self.root, shard_name(number))? else {
            return Ok(None);
        };
        let done = work(&mut shard);
        self.counters.disk_evicted.add(shard.evicted());
        // After a failure nothing goes on record: the next one looks at the files.
        let done = done?;
        shard.close()?;
        Ok(Some(done))
    }

    /// Removes what is too much for the budget: of shards beyond the last one everything.
    fn fit(&self, path: &Path) -> Result<(), CacheError> {
        for number in 0..layout::MOST_SHARDS {
            let name = shard_name(number);
            if self.root.metadata(name.as_bytes(), Links::Refuse).is_err() {
                continue;
            }
            let is_used = number < self.layout.shards;
            let budget = if is_used { self.layout.shard_bytes } else { 0 };
            self.in_shard(number, |shard| shard.evict_to(budget))
                .context("write", path.join(&name))?;
        }
        Ok(())
    }

    fn shard_of(&self, key: &BlockKey) -> usize {
        key.spread() % self.layout.shards
    }

    fn path_of(&self, key: &BlockKey) -> Vec<u8> {
        path(&shard_name(self.shard_of(key)), &block_name(key))
    }
}

fn shard_name(number: usize) -> String {
    format!("{number:02x}")
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}
