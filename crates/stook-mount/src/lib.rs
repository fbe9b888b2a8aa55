//! Archives as read-only directories: nothing is extracted, every file is read from its volume.
//!
//! ```text
//!   kernel ──requests──> few threads ──> worker pool ──> members ──> bytes of volumes ──> block cache ──> store
//! ```

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod cache;

pub use cache::{
    BLOCK_BYTES, CacheError, CacheOptions, CacheStats, CachedVolumes, Layer, PrefetchReport,
    ReadError, VolumeIdentity, VolumeRange,
};
