//! What ends an operation. Advice is up to the program that prints it.

use std::path::{Path, PathBuf};

use stook_index::{IndexError, VolumeId};
use stook_pool::NoThread;
use stook_store::StoreError;
use stook_sys::{LockError, SysError, display_bytes, display_path};
use stook_volume::{FrameError, VolumeError, ZstdLevel};

use crate::cause::Cause;
use crate::deleted::MissingName;
use crate::deletions::UnlikelyDeletions;
use crate::plan::{DamagedPart, PlanFileError};
use crate::transfer::TransferError;
use crate::when::When;

/// An error that ended an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The store that the archive lies in failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index cannot be used.
    #[error(transparent)]
    Index(IndexError),
    /// The store of the archive does not fit it.
    #[error(transparent)]
    Transfer(Box<TransferError>),
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
    /// The volumes of the archive are compressed at another level, or not at all.
    #[error("cannot write `{}`: its volumes are {}", display_path(path), compression(*level))]
    OtherCompression {
        /// The archive.
        path: PathBuf,
        /// Its level.
        level: Option<ZstdLevel>,
    },
    /// zstash cannot read compressed volumes, so nothing is written for it beside them, or read in its name.
    #[error(
        "cannot use `{}` as zstash would: its volumes are compressed, and zstash cannot read them",
        display_path(path)
    )]
    CompressedForZstash {
        /// The archive.
        path: PathBuf,
    },
    /// A volume cannot be compressed.
    #[error("cannot compress `{}`: {source}", display_path(path))]
    NotCompressed {
        /// The volume.
        path: PathBuf,
        /// Why.
        source: FrameError,
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
    /// The folder for a new archive holds what stook did not make.
    #[error("cannot create `{}`: it holds {}", display_path(path), first_of(names))]
    OtherFiles {
        /// The folder.
        path: PathBuf,
        /// Their names, sorted.
        names: Vec<Vec<u8>>,
    },
    /// A file that stook did not make has a name that a new archive needs.
    #[error(
        "cannot write `{}`: stook did not make this file, and needs its name",
        display_path(path)
    )]
    NameTaken {
        /// The file.
        path: PathBuf,
    },
    /// The index of a stored archive has a journal beside it: what would be fetched may be of two states.
    #[error(
        "cannot open `{}`: its index is being written to, there is an index.db-journal",
        display_path(path)
    )]
    BeingWritten {
        /// The archive.
        path: PathBuf,
    },
    /// Stores are not asked, and no copy of the index is here.
    #[error(
        "cannot open `{}`: there is no copy of its index here, and stores are not asked",
        display_path(path)
    )]
    NotFetched {
        /// The archive.
        path: PathBuf,
    },
    /// The target of an extraction is in the archive.
    #[error(
        "cannot extract into `{}`: it is the archive, or in it",
        display_path(path)
    )]
    IntoArchive {
        /// The target.
        path: PathBuf,
    },
    /// The target of an extraction is in another archive.
    #[error(
        "cannot extract into `{}`: it is another archive, or in one",
        display_path(path)
    )]
    IntoOtherArchive {
        /// The target.
        path: PathBuf,
    },
    /// The observer has kept a volume out of the index.
    #[error("{0} was kept out of the index")]
    Refused(VolumeId),
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
    /// The archive is reserved for a plan.
    #[error(
        "cannot write `{}`: it is reserved for a plan that is not committed",
        display_path(path)
    )]
    Planned {
        /// The archive.
        path: PathBuf,
    },
    /// There is no plan to commit or to abandon.
    #[error("cannot commit `{}`: it has no plan", display_path(path))]
    NoPlan {
        /// The archive.
        path: PathBuf,
    },
    /// Another program has written to the archive since it was planned.
    #[error(
        "cannot commit `{}`: it was written to after it was planned",
        display_path(path)
    )]
    PlanOutdated {
        /// The archive.
        path: PathBuf,
    },
    /// Parts of a plan are not built.
    #[error(
        "cannot commit: {} not built, the first is `{}`",
        count_of(parts),
        display_path(first_path(parts))
    )]
    NotBuilt {
        /// The archive.
        archive: PathBuf,
        /// Their files.
        parts: Vec<PathBuf>,
        /// True if all members of all of them failed in a part before.
        are_retries: bool,
    },
    /// A file of a plan cannot be used.
    #[error("cannot use `{}`: {source}", display_path(path))]
    BadPlanFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: PlanFileError,
    },
    /// What was built is damaged, or is not what was planned.
    #[error("cannot commit {}", first_damaged(parts))]
    BadBuilt {
        /// The parts, in order.
        parts: Vec<DamagedPart>,
    },
    /// What was built is of another plan.
    #[error("cannot use `{}`: it is of another plan", display_path(path))]
    OtherPlan {
        /// The folder that was built.
        path: PathBuf,
    },
    /// What was built is of another part of the same plan.
    #[error(
        "cannot use `{}`: it was built of part {part:06} of this plan",
        display_path(path)
    )]
    OtherPart {
        /// The folder that was built.
        path: PathBuf,
        /// The part that it was built of.
        part: u32,
    },
    /// The plan directory holds what stook did not make.
    #[error(
        "cannot plan in `{}`: it holds {}, which stook did not make",
        display_path(path),
        first_of(names)
    )]
    ForeignInPlan {
        /// The plan directory.
        path: PathBuf,
        /// Names in it, sorted.
        names: Vec<Vec<u8>>,
    },
    /// There are too few numbers behind the last volume.
    #[error(
        "cannot add a volume to `{}`: there are too few numbers behind `{last}`",
        display_path(path)
    )]
    NoVolumeNumber {
        /// The archive.
        path: PathBuf,
        /// The last volume, in the index or by the name of a file.
        last: VolumeId,
    },
    /// A part was planned with symbolic links followed, and is built without, or the other way round.
    #[error(
        "cannot build `{}`: it was planned with another rule for symbolic links",
        display_path(path)
    )]
    OtherLinks {
        /// The part.
        path: PathBuf,
    },
    /// What is removed from a tree cannot be recorded in the archive.
    #[error("cannot record in `{}` what is removed: {source}", display_path(path))]
    CannotRecord {
        /// The archive.
        path: PathBuf,
        /// Why not.
        source: Box<Self>,
    },
    /// More names are gone from the source than are likely to have been deleted.
    #[error("cannot update `{}`: {unlikely}", display_path(archive))]
    UnlikelyDeletions {
        /// The archive, which is as it was.
        archive: PathBuf,
        /// What was found.
        unlikely: UnlikelyDeletions,
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
    /// A name or a pattern selects nothing of a state, but other states have what it matches.
    #[error(
        "cannot find `{}` in `{}`: {missing}",
        display_bytes(&missing.name),
        display_path(archive)
    )]
    NotInState {
        /// The archive.
        archive: PathBuf,
        /// Where they are.
        missing: Box<MissingName>,
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
    #[error("cannot read `{}`: it is damaged: {cause}", display_bytes(name))]
    Damaged {
        /// The member.
        name: Vec<u8>,
        /// What is wrong.
        #[source]
        cause: Cause,
    },
    /// The place that a member's volume is read from cannot give its bytes.
    #[error("cannot read `{}`: {cause}", display_bytes(name))]
    Unreadable {
        /// The member.
        name: Vec<u8>,
        /// Why not.
        #[source]
        cause: Cause,
    },
    /// Nothing to rebuild an index from.
    #[error("cannot reindex `{}`: it has no volumes", display_path(path))]
    NoVolumes {
        /// The archive.
        path: PathBuf,
    },
    /// A state that the archive does not have.
    #[error("cannot go back to {wanted} in `{}`: {}", display_path(archive), wanted.absence())]
    NoSuchRun {
        /// The run or the time asked for.
        wanted: When,
        /// The archive.
        archive: PathBuf,
    },
    /// More entries than a catalogue can number.
    #[error(
        "cannot load {entries} entries: a catalogue has less than {}",
        u32::MAX
    )]
    TooManyEntries {
        /// How many there are.
        entries: usize,
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

/// Says how volumes are compressed.
fn compression(level: Option<ZstdLevel>) -> String {
    match level {
        Some(level) => format!("compressed with zstd at level {level}"),
        None => "not compressed".to_owned(),
    }
}

impl From<IndexError> for ArchiveError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Interrupted { .. } => Self::Interrupted,
            other => Self::Index(other),
        }
    }
}

impl From<TransferError> for ArchiveError {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Store(error) => Self::Store(*error),
            other => Self::Transfer(Box::new(other)),
        }
    }
}

impl From<NoThread> for ArchiveError {
    fn from(error: NoThread) -> Self {
        Self::NoThread(error.source)
    }
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

    /// Returns that a member cannot be read: it is damaged, unless only the place of its volume failed.
    pub(crate) fn of_member(name: &[u8], cause: Cause) -> Self {
        let name = name.to_vec();
        match cause.is_of_source() {
            true => Self::Unreadable { name, cause },
            false => Self::Damaged { name, cause },
        }
    }

    /// Returns true if it was damaged data in a volume that ended the operation.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Volume { .. })
    }
}

fn first_damaged(parts: &[DamagedPart]) -> String {
    let first = parts.first().map_or(String::new(), |part| {
        format!("`{}`: {part}", display_path(&part.part))
    });
    match parts.len() {
        0 | 1 => first,
        2 => format!("{first}; so is another part"),
        count => format!("{first}; so are {} other parts", count - 1),
    }
}

fn count_of(parts: &[PathBuf]) -> String {
    match parts.len() {
        1 => "a part is".to_owned(),
        count => format!("{count} parts are"),
    }
}

fn first_path(parts: &[PathBuf]) -> &Path {
    parts.first().map_or(Path::new(""), PathBuf::as_path)
}

/// Names the first few of some files.
fn first_of(names: &[Vec<u8>]) -> String {
    const MOST: usize = 3;
    let first: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{}`", display_bytes(name)))
        .collect();
    let more = names.len().saturating_sub(MOST);
    match (first.split_last(), more) {
        (Some((last, others)), 0) if !others.is_empty() => {
            format!("{} and {last}", others.join(", "))
        }
        (_, 0) => first.join(", "),
        _ => format!("{} and {more} more", first.join(", ")),
    }
}
