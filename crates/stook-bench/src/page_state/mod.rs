//! What the kernel holds of files in memory: making it forget, and proving that it did.
//!
//! Of some files, the pages and the names are asked for (`Inputs`). Asking for pages needs an open file, and opening
//! reads its inode; so what is to be cold is opened before the caches are dropped and asked after it, then closed and
//! dropped once more, and only then are the names asked for, which opens nothing.

mod gather;
mod inputs;
mod mapped;
mod method;

pub(crate) use gather::{named_paths, words_that_are_paths};
pub(crate) use inputs::{Inputs, Reads, Shares};
pub(crate) use method::drop_pages_of;
pub use method::{Method, drop_all};

/// Of what is to be cold, at most this share may be in memory.
pub(crate) const COLD_AT_MOST: f64 = 0.01;
/// Of what is to be hot, at least this share must be in memory.
pub(crate) const HOT_AT_LEAST: f64 = 0.99;

#[cfg(test)]
mod tests;
