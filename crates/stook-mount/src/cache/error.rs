//! Why a cache cannot be used, and why bytes of a volume cannot be had.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use stook_archive::Cause;
use stook_store::{StoreCause, StoreError};
use stook_sys::{SysError, display_path};

/// Why a cache was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The directory belongs to somebody else, who could change what is read from it.
    #[error(
        "cannot use `{}` as a cache: it belongs to user {owner}, not to user {user}",
        display_path(path)
    )]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user who opens it.
        user: u32,
    },
    /// Others may look into the directory, or write to it.
    #[error(
        "cannot use `{}` as a cache: its mode is {mode:04o}, and must be 0700",
        display_path(path)
    )]
    Mode {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is not a directory; a symbolic link is none.
    #[error(
        "cannot use `{}` as a cache: it is not a directory",
        display_path(path)
    )]
    NoDirectory {
        /// The path.
        path: PathBuf,
    },
    /// Its files have a form that this version does not know.
    #[error(
        "cannot use `{}` as a cache: another version of stook made it",
        display_path(path)
    )]
    Form {
        /// The directory.
        path: PathBuf,
    },
    /// The file system has no locks, by which processes share the directory.
    #[error(
        "cannot use `{}` as a cache: its file system has no locks",
        display_path(path)
    )]
    NoLocks {
        /// The directory.
        path: PathBuf,
    },
    /// The budget is not enough for the least number of blocks.
    #[error("a cache needs {least} bytes at least, not {bytes}")]
    TooSmall {
        /// What was given.
        bytes: u64,
        /// What is needed.
        least: u64,
    },
}

/// Why bytes of a volume cannot be had.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A store failed, and every other one.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// What a store has under the name is not the volume of the index.
    #[error("`{name}` in `{store}` has {found} bytes, and {expected} in the index")]
    Size {
        /// The volume.
        name: String,
        /// The store.
        store: String,
        /// The length in the index.
        expected: u64,
        /// The length in the store.
        found: u64,
    },
    /// Nothing is asked of stores, and the block is not in the cache.
    #[error("`{name}` from byte {offset} on is not in the cache, and stores are not asked")]
    NotCached {
        /// The volume.
        name: String,
        /// Where the block begins.
        offset: u64,
    },
    /// Nothing is asked of stores, and only they could tell what the volume is: its MD5 is not on record.
    #[error("the index has no MD5 of `{name}`, so that a store must be asked for it")]
    Unidentified {
        /// The volume.
        name: String,
    },
    /// There is no store to ask.
    #[error("there is no store that `{name}` could be read from")]
    NoStore {
        /// The volume.
        name: String,
    },
    /// The cache is being closed.
    #[error("interrupted")]
    Closed,
}

impl ReadError {
    /// Returns true if the volume is not where it should be.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Store(error) if matches!(error.cause, StoreCause::NotFound))
    }

    /// Returns it as the error of a read, out of which an operation on the archive takes its cause. Never `Interrupted`,
    /// which readers repeat.
    pub(super) fn into_io(self) -> io::Error {
        let kind = match self.is_not_found() {
            true => io::ErrorKind::NotFound,
            false => io::ErrorKind::Other,
        };
        let cause = match self {
            Self::Store(error) => Cause::Store(error),
            other => Cause::Source(Arc::new(other)),
        };
        io::Error::new(kind, cause)
    }
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}
