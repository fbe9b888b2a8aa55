//! Archives as read-only directories: nothing is extracted, every file is read from its volume.
//!
//! ```text
//!   kernel ──requests──> one thread ──in memory, or in the page cache──────────────> answer      serve.rs
//!                            └──else──> workers, as many as there are requests ──> answer        workers.rs
//!
//!   Server ── tree     names, attributes, inode numbers: all in memory          tree.rs, nodes.rs, attributes.rs
//!      ├───── content  readers of members, read-ahead, verification             content.rs, readers.rs, verify.rs
//!      ├───── ahead    small files, given to the kernel before it asks           ahead.rs
//!      ├───── xattrs   of the headers, and `user.stook.*`                       xattrs.rs
//!      └───── statistics ──> control socket                                    statistics.rs, control.rs
//! ```
//! One thread takes all requests and never waits for a disk or another machine: with one client a second thread costs more
//! than it gives, since each request then wakes another one. What it can answer from memory it answers; what would wait goes
//! to a worker.
//!
//! The state that is shown is that of the moment of mounting. The kernel may keep all answers: names, attributes and
//! content never change.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod ahead;
mod attributes;
mod cache;
mod content;
mod control;
mod error;
mod event;
mod nodes;
mod prefetch;
mod readers;
mod serve;
mod server;
mod session;
mod statistics;
mod timers;
mod tree;
mod verify;
mod workers;
mod xattrs;

pub use cache::{
    BLOCK_BYTES, CacheError, CacheOptions, CacheStats, CachedVolumes, Layer, PrefetchReport,
    ReadError, VolumeIdentity, VolumeRange,
};
pub use control::{EvictedLayers, Request, TimersDetail, talk};
pub use error::MountError;
pub use event::{Event, Log};
pub use prefetch::Prefetched;
pub use session::{MountOptions, Mounted, Shown, Unmounter, require_apart};
pub use stook_sys::{Holder, Unmount};
pub use timers::{CallbackTimes, timers_tree};
