//! What a cache counts, and one look at all of it.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Counts that threads add to.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Count,)+
        }

        /// What a cache has done since it was opened. Names carry their units; what has none is a number.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct CacheStats {
            $($(#[doc = $doc])+ pub $name: u64,)+
            /// Bytes of blocks in memory now.
            pub memory_held_bytes: u64,
        }

        impl Counters {
            pub(super) fn look(&self, memory_held_bytes: u64) -> CacheStats {
                CacheStats { $($name: self.$name.get(),)+ memory_held_bytes }
            }
        }

        impl CacheStats {
            /// Returns every count with its name and what it means, for those who print them.
            pub fn named(&self) -> Vec<(&'static str, u64, &'static str)> {
                vec![
                    $((stringify!($name), self.$name, concat!($($doc),+).trim_ascii()),)+
                    ("memory_held_bytes", self.memory_held_bytes, "Bytes of blocks in memory now."),
                ]
            }
        }
    };
}

counters! {
    /// Blocks that a reader found in memory.
    memory_hits,
    /// Bytes that readers were given.
    given_bytes,
    /// Blocks that a reader did not find in memory.
    memory_misses,
    /// Blocks that came from the disk, read-ahead included.
    disk_hits,
    /// Bytes of blocks that came from the disk.
    disk_bytes,
    /// Blocks that were not on the disk.
    disk_misses,
    /// Requests for bytes of volumes that stores were sent.
    fetches,
    /// Blocks that came from a store, read-ahead included.
    store_blocks,
    /// Bytes of blocks that came from a store.
    store_bytes,
    /// Times that a reader waited for a block that somebody else was fetching.
    waits,
    /// Blocks that were fetched ahead of a reader.
    read_ahead_blocks,
    /// Requests that were sent again after a failure.
    retries,
    /// Requests that went to another mirror after a failure.
    failovers,
    /// Blocks that a reader could not be given.
    failures,
    /// Blocks that were dropped from memory to make room.
    memory_evicted,
    /// Blocks that were written to the disk.
    disk_writes,
    /// Bytes of blocks that were written to the disk.
    disk_written_bytes,
    /// Blocks that were removed from the disk to make room.
    disk_evicted,
    /// Files of the cache that were not what their name says, and were not used.
    damaged_blocks,
    /// Blocks that were not written to the disk: it is full, or another process keeps the place locked.
    not_written,
}

/// One count.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn increase(&self) {
        self.add(1);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_a_name_and_a_meaning() {
        let counters = Counters::default();
        counters.disk_bytes.add(7);
        let stats = counters.look(9);
        assert_eq!((stats.disk_bytes, stats.memory_held_bytes), (7, 9));
        let named = stats.named();
        assert!(named.contains(&("disk_bytes", 7, "Bytes of blocks that came from the disk.")));
        assert!(named.iter().all(|(_, _, meaning)| meaning.ends_with('.')));
    }
}
