//! What goes wrong with a database that is not damage in it.

use std::path::PathBuf;

use stook_sys::{SysError, display_path};

/// An operation on a database that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZodbError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The file is empty, or of another format.
    #[error("`{}` is no Data.fs: {}", display_path(path), beginning(*size))]
    NotDataFs {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        size: u64,
    },
    /// A process has the database open for writing.
    #[error("`{}` is locked: the database is open in {}", display_path(path), holder.as_ref().map_or("another process".to_owned(), |pid| format!("process {pid}")))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The number of the process, as it wrote it.
        holder: Option<String>,
    },
    /// The saved index cannot be used.
    #[error("cannot use `{}`: {cause}", display_path(path))]
    SavedIndex {
        /// The file of the index.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: SavedIndexError,
    },
    /// The file was exchanged or cut off while it was read.
    #[error("`{}` was changed while it was read", display_path(path))]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The references of the current objects take more numbers than there are.
    #[error("`{}` has too many objects: 2^32 at most", display_path(path))]
    TooMany {
        /// The file.
        path: PathBuf,
    },
    /// The caller wanted an end.
    #[error("interrupted")]
    Interrupted,
}

fn beginning(size: u64) -> &'static str {
    if size == 0 {
        "it is empty"
    } else {
        "it does not begin with `FS30`"
    }
}

/// Why a saved index cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedIndexError {
    /// A pickle of a dictionary: ZODB 3.10 and before. ZODB itself can convert it.
    #[error("it has the format of ZODB 3.10 and before")]
    OldFormat,
    /// The file ends too early.
    #[error("it ends in the middle of an entry, at byte {offset}")]
    CutOff {
        /// Where more was expected.
        offset: u64,
    },
    /// Something other than an index.
    #[error("byte {offset} is nothing that an index has there")]
    Format {
        /// Where the unexpected byte is.
        offset: u64,
    },
    /// Entries that do not come in order, or come twice.
    #[error("its entries are not in order at byte {offset}")]
    Order {
        /// Where the entries in question begin.
        offset: u64,
    },
    /// An entry with a position where no record can be.
    #[error("an entry leads to {position}, where no record can be")]
    Position {
        /// What the entry says.
        position: u64,
    },
}
