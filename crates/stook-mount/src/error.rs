//! What keeps an archive from being mounted, or ends a mount.

use std::io;
use std::path::PathBuf;

use stook_archive::ArchiveError;
use stook_sys::{SysError, display_path};

/// An error of a mount as a whole. What goes wrong with one file is an [`Event`](crate::Event).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The archive cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A system call failed, or the program that mounts for users.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The server of an earlier mount has ended without unmounting.
    #[error(
        "cannot mount on `{}`: its server has ended, and it is still mounted",
        display_path(path)
    )]
    Stale {
        /// The mount point.
        path: PathBuf,
    },
    /// The mount would hide the archive that it shows.
    #[error("cannot mount on `{}`: the archive lies in it", display_path(path))]
    HidesArchive {
        /// The mount point.
        path: PathBuf,
    },
    /// The archive has the name under which all versions would be shown.
    #[error("cannot show all versions: the archive has a `.stook` of its own")]
    NameTaken,
    /// The mount point is no directory.
    #[error("cannot mount on `{}`: it is not a directory", display_path(path))]
    NotADirectory {
        /// The mount point.
        path: PathBuf,
    },
    /// Somebody uses the mount.
    #[error("cannot unmount `{}`: it is in use", display_path(path))]
    Busy {
        /// The mount point.
        path: PathBuf,
    },
    /// The server of a mount has refused what it was asked for.
    #[error("`{}` answers: {text}", display_path(path))]
    Answered {
        /// The mount point.
        path: PathBuf,
        /// What the server says.
        text: String,
    },
    /// What is mounted there is served by nobody who can be talked to.
    #[error(
        "cannot talk to `{}`: {}",
        display_path(path),
        stook_sys::cause(&source.source)
    )]
    NobodyListens {
        /// The mount point.
        path: PathBuf,
        /// Why its socket cannot be used.
        #[source]
        source: SysError,
    },
    /// The exchange with the kernel ended otherwise than by unmounting.
    #[error("cannot serve `{}`: {}", display_path(path), stook_sys::cause(source))]
    Served {
        /// The mount point.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}
