//! What ends an operation, with advice where there is some.

use std::path::{Path, PathBuf};

use stook_index::IndexError;
use stook_sys::{LockError, SysError, display_bytes, display_path};
use stook_volume::VolumeError;

/// An error that ended an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The index cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A volume cannot be read.
    #[error("cannot read `{}`: {source}", display_path(path))]
    Volume {
        /// The volume's path.
        path: PathBuf,
        /// What is wrong with it.
        source: VolumeError,
    },
    /// `create` was asked to write where a finished archive is.
    #[error("cannot create `{}`: it is an archive already", display_path(path))]
    Exists {
        /// The archive.
        path: PathBuf,
    },
    /// The folder has volumes, but no index.
    #[error(
        "cannot use `{}`: it holds volumes, but no index.db",
        display_path(path)
    )]
    NoIndex {
        /// The archive.
        path: PathBuf,
    },
    /// The folder is no archive.
    #[error(
        "cannot open `{}`: it is not an archive, it has no index.db",
        display_path(path)
    )]
    NotAnArchive {
        /// The folder.
        path: PathBuf,
    },
    /// The archive is the source itself.
    #[error("cannot archive `{}` into itself", display_path(path))]
    IntoItself {
        /// The source.
        path: PathBuf,
    },
    /// Another process writes to the archive.
    #[error(
        "cannot write `{}`: it is being written by process {process} on {host}",
        display_path(path)
    )]
    Locked {
        /// The archive.
        path: PathBuf,
        /// Number of the process.
        process: String,
        /// Its machine.
        host: String,
    },
    /// No member has the name.
    #[error(
        "cannot find `{}` in `{}`: no member has this path",
        display_bytes(name),
        display_path(archive)
    )]
    NoSuchMember {
        /// The name.
        name: Vec<u8>,
        /// The archive.
        archive: PathBuf,
    },
    /// The member has no content to print.
    #[error("cannot print `{}`: it is not a regular file", display_bytes(name))]
    NotAFile {
        /// The member.
        name: Vec<u8>,
    },
    /// A pattern matches nothing.
    #[error(
        "cannot find `{}` in `{}`: no member matches",
        display_bytes(pattern),
        display_path(archive)
    )]
    NoMatch {
        /// The pattern.
        pattern: Vec<u8>,
        /// The archive.
        archive: PathBuf,
    },
    /// A member's bytes are not what was archived.
    #[error("cannot read `{}`: it is damaged: {what}", display_bytes(name))]
    Damaged {
        /// The member.
        name: Vec<u8>,
        /// What is wrong.
        what: String,
    },
    /// Nothing to rebuild an index from.
    #[error("cannot reindex `{}`: it has no volumes", display_path(path))]
    NoVolumes {
        /// The archive.
        path: PathBuf,
    },
    /// A state that the archive does not have.
    #[error("cannot go back to {wanted} in `{}`: {why}", display_path(archive))]
    NoSuchRun {
        /// The run or the time asked for.
        wanted: String,
        /// The archive.
        archive: PathBuf,
        /// Why there is no such state.
        why: &'static str,
    },
    /// The receiver of the output failed.
    #[error("cannot write the output: {}", stook_sys::cause(.0))]
    Output(#[source] std::io::Error),
    /// The system gives no more threads.
    #[error("cannot begin a thread: {}", stook_sys::cause(.0))]
    NoThread(#[source] std::io::Error),
    /// The user ended the operation.
    #[error("interrupted")]
    Interrupted,
}

impl ArchiveError {
    pub(crate) fn lock(error: LockError, archive: &Path) -> Self {
        match error {
            LockError::Held { process, host } => Self::Locked {
                path: archive.to_owned(),
                process,
                host,
            },
            LockError::Sys(error) => error.into(),
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Index(error) => return error.hint(),
            Self::Exists { path } => format!("`stook update SOURCE {}` adds what has changed", display_path(path)),
            Self::NoIndex { path } => format!("`stook reindex {}` rebuilds it from the volumes", display_path(path)),
            Self::NoSuchMember { archive, .. } => format!("`stook list {}` shows what is there", display_path(archive)),
            Self::NotAnArchive { path } => format!("`stook create SOURCE {}` makes one", display_path(path)),
            Self::NoMatch { pattern, .. } if !pattern.is_empty() && !pattern.iter().any(|byte| b"*/".contains(byte)) => {
                format!("a pattern is compared with whole paths; `*/{}` finds that name in any directory", display_bytes(pattern))
            }
            Self::NoSuchRun { archive, .. } => format!("`stook list --runs {}` shows the runs", display_path(archive)),
            Self::Sys(error) if error.is_no_space() => {
                "the archive is valid; make room and run the same command again, it goes on from there".to_owned()
            }
            Self::NoThread(_) => "raise the limit of processes, `ulimit -u`, or that of the control group, `pids.max`".to_owned(),
            _ => return None,
        })
    }

    /// Returns true if it was damaged data in a volume that ended the operation.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Volume { .. })
    }
}
