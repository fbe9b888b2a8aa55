//! Options of a cache.

use std::path::PathBuf;
use std::time::Duration;

/// Options of a cache; every field has a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOptions {
    /// The directory for blocks on disk (`--cache`); it is made, for this user alone, if it is missing. Several processes
    /// share it. None: no blocks on disk.
    pub directory: Option<PathBuf>,
    /// What all files of that directory may take on the disk, in bytes (`--cache-size`). Processes that share a
    /// directory should be told the same: the last one that opens it removes what is too much for it.
    pub disk_bytes: u64,
    /// Memory for blocks, in bytes. Blocks on their way to a reader come on top.
    pub memory_bytes: u64,
    /// Bytes of adjacent blocks that are asked for by one request, at most.
    pub request_bytes: u64,
    /// How far ahead of a sequential reader blocks are fetched, in bytes, at most; 0: they are not.
    pub read_ahead_bytes: u64,
    /// Threads that fetch ahead of readers, and the later parts of large reads; 0: every reader fetches for itself.
    pub fetchers: usize,
    /// How long a reader waits for a block while stores fail and may come back. A request that a store has begun ends by
    /// the store's own limit, `idle_timeout` of its settings.
    pub deadline: Duration,
    /// Whether nothing is asked of stores (`--offline`): what is not in the cache is an error then.
    pub is_offline: bool,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            directory: None,
            disk_bytes: 10 << 30,
            memory_bytes: 64 << 20,
            // At 1 Gbit/s a request takes 8 ms: little beside a round trip of 20 ms, and worth it.
            request_bytes: 1 << 20,
            // Three times what is on its way at 1 Gbit/s and 20 ms.
            read_ahead_bytes: 8 << 20,
            fetchers: 8,
            deadline: Duration::from_secs(60),
            is_offline: false,
        }
    }
}

impl CacheOptions {
    /// Returns options for a command that reads an archive once: it says itself what it will read.
    pub fn for_commands() -> Self {
        Self {
            memory_bytes: 48 << 20,
            read_ahead_bytes: 0,
            ..Self::default()
        }
    }
}
