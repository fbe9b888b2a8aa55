//! Volumes in stores, read in blocks through memory and disk.
//!
//! ```text
//!   reader ──> volumes.rs ──> loader.rs ──> table.rs     in memory; one fetch, however many wait for it
//!                 │              ├────────> disk/        on disk, shared by processes
//!                 │              └────────> mirrors.rs   stores, in turn, until the deadline
//!                 └──> read_ahead.rs ──> queue.rs ──> fetchers, which ask the loader
//! ```
//! A reader does its own fetching, on its own thread: no reader waits for another one's block, and there is no thread that
//! all bytes go through. A caller brings as many threads as may wait at a time.
//!
//! What is *not* promised: that a block has the bytes that its volume had when the MD5 of the index was taken. A
//! volume that is replaced by another one of the same length before it is first looked at is found out by the MD5s of its
//! members, not here.

mod block;
mod counters;
mod disk;
mod error;
mod flight;
mod key;
mod loader;
mod mirrors;
mod options;
mod prefetch;
mod queue;
mod read_ahead;
mod table;
mod volume;
mod volumes;

pub use counters::CacheStats;
pub use error::{CacheError, ReadError};
pub use key::{BLOCK_BYTES, VolumeIdentity};
pub use options::CacheOptions;
pub use prefetch::{PrefetchReport, VolumeRange};
pub use volumes::{CachedVolumes, Layer};
