//! Test support: trees as data, snapshots of trees, seeded file sets, an independent writer of zstash volumes, and a
//! file system with a latency.
//!
//! This crate depends on no other stook crate, so that a fault in one of them cannot hide in the tests of it.
//! Everything is fd-relative and works below `PATH_MAX`. It is not for production: it goes for clarity, not speed,
//! except in [`fileset`].
#![expect(
    clippy::disallowed_methods,
    reason = "test support must not lean on the code under test, so it calls the system itself"
)]

pub mod doubles;
mod failure;
pub mod fileset;
pub mod oracle;
mod privileges;
mod random;
pub mod rights;
pub mod servers;
mod skip;
pub mod slowfs;
mod snapshot;
mod temporary;
mod tree;
mod walk;

pub use privileges::without_privileges;
pub use random::Random;
pub use skip::record_skip;
pub use snapshot::{Compare, Directories, Fact, Facts, Kind, Snapshot};
pub use temporary::{TempDir, TempTree, remove_tree};
pub use tree::{
    Content, Entry, Tree, block_device, can_make_devices, character_device, dir, fifo, file,
    hardlink, socket, sparse, supports_xattrs, symlink,
};
