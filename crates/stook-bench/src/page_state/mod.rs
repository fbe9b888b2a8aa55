//! What the kernel holds of files in memory: making it forget, and proving that it did.
//!
//! Of some files, the pages and the names are asked for (`Inputs`). Asking for pages needs an open file, and opening
//! reads its inode; so what is to be cold is opened before the caches are dropped and asked after it, then closed and
//! dropped once more, and only then are the names asked for, which opens nothing.

mod gather;
mod inputs;
mod mapped;

use stook_sys::Forget;

use crate::error::BenchError;

pub(crate) use gather::{named_paths, words_that_are_paths};
pub(crate) use inputs::{Inputs, Reads, Shares, drop_pages_of};

/// Of what is to be cold, at most this share may be in memory.
pub(crate) const COLD_AT_MOST: f64 = 0.01;
/// Of what is to be hot, at least this share must be in memory.
pub(crate) const HOT_AT_LEAST: f64 = 0.99;

/// How the kernel is made to forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Everything that the machine holds: data, names and inodes.
    DropCaches,
    /// The data of the files that are known, one after the other. Names and inodes stay.
    Fadvise,
}

impl Method {
    /// Returns the first one that this user may use.
    pub fn available() -> Self {
        if stook_sys::may_drop_caches() {
            Self::DropCaches
        } else {
            Self::Fadvise
        }
    }

    /// Returns its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::DropCaches => "drop_caches",
            Self::Fadvise => "fadvise",
        }
    }
}

/// Makes the whole machine cold: the kernel forgets data, names and inodes of all files.
///
/// # Errors
/// [`BenchError::Refused`] where this user may not.
pub fn drop_all() -> Result<(), BenchError> {
    drop_caches(Forget::Everything)
}

fn drop_caches(what: Forget) -> Result<(), BenchError> {
    stook_sys::drop_caches(what).map_err(|error| BenchError::Refused {
        what: format!("the caches cannot be dropped: {error}"),
        hint: Some("only root may drop them, and not in every container".to_owned()),
    })
}

#[cfg(test)]
mod tests;
