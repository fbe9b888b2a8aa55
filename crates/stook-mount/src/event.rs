//! What happens while an archive is mounted that its owner wants to know: for a log.

use std::fmt;

use stook_archive::VolumeId;
use stook_sys::{SysError, display_bytes};

use crate::prefetch::Prefetched;

/// Something that went wrong; all else is still served.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A file cannot be read: who reads it gets `EIO`.
    Unreadable {
        /// Its path below the mount point.
        path: Vec<u8>,
        /// The volume it lies in, and where its header begins; `None` for a directory without a row.
        place: Option<(VolumeId, u64)>,
        /// Why, in one line.
        cause: String,
    },
    /// There is no control socket.
    NoControl {
        /// Why.
        error: SysError,
    },
    /// Files that were to be fetched after mounting are in the cache, as far as could be.
    Prefetched {
        /// What came of it.
        prefetched: Prefetched,
    },
    /// Nothing was fetched after mounting.
    NotPrefetched {
        /// Why, in one line.
        cause: String,
    },
    /// Names that the kernel cannot show are left out.
    LeftOut {
        /// How many.
        names: u64,
        /// One of them.
        path: Vec<u8>,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, place, cause } => {
                write!(f, "cannot read `{}`", display_bytes(path))?;
                if let Some((volume, offset)) = place {
                    write!(f, " (byte {offset} of {volume})")?;
                }
                write!(f, ": {cause}")
            }
            Self::NoControl { error } => write!(f, "nobody can talk to this mount: {error}"),
            Self::Prefetched { prefetched } => prefetched.fmt(f),
            Self::NotPrefetched { cause } => write!(f, "nothing is prefetched: {cause}"),
            Self::LeftOut { names, path } => write!(
                f,
                "left out, for names of more than 1,024 bytes: {names}, such as `{}`",
                display_bytes(path)
            ),
        }
    }
}

/// Takes events, from any thread.
pub trait Log: Send + Sync {
    /// Takes one; it must not wait for the mount.
    fn log(&self, event: &Event);
}
