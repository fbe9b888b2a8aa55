//! Why a file failed, and what is wrong in an archive: one typed list for both.
//!
//! A cause keeps what the system said (see [`Cause::errno`]), so callers can tell kinds apart without reading text. It
//! names no option and no command: advice is up to the program that prints it.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use stook_index::{IndexDamage, Mtime, VolumeId};
use stook_store::{StoreCause, StoreError};
use stook_sys::{SysError, display_bytes};
use stook_volume::{FrameError, VolumeError};

use crate::ArchiveError;

/// Why something failed, or what is wrong with it. Cheap to clone: many members may fail for one reason.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// A system call failed, or a file ended early.
    #[error("{}", stook_sys::cause(.0))]
    Io(#[source] Arc<io::Error>),
    /// A system call failed on another file than the one the failure is about.
    #[error("{0}")]
    Sys(#[source] Arc<SysError>),
    /// An operation of the store failed.
    #[error("{0}")]
    Store(#[source] Arc<StoreError>),
    /// The place that volumes are read from cannot give the bytes: nothing is known of what they are.
    #[error("{0}")]
    Source(#[source] Arc<dyn Error + Send + Sync>),
    /// What is written has no room for it, or no way to say it.
    #[error("{0}")]
    Refused(#[source] Arc<dyn Error + Send + Sync>),
    /// The headers of a member cannot be read or written.
    #[error("{0}")]
    Member(#[source] Arc<VolumeError>),
    /// The user ended the operation.
    #[error("interrupted")]
    Interrupted,

    /// The file is not the one that was there before.
    #[error("another file took its place {since}")]
    Replaced {
        /// Since when.
        since: Since,
    },
    /// The size of the file changed.
    #[error(
        "it {} from {before} to {now} bytes {since}",
        if now > before { "grew" } else { "shrank" }
    )]
    Resized {
        /// Bytes when it was found.
        before: u64,
        /// Bytes after it was read.
        now: u64,
        /// Since when.
        since: Since,
    },
    /// The modification time of the file changed.
    #[error("it changed {since}")]
    Modified {
        /// Since when.
        since: Since,
    },
    /// The file ended before the size that it had.
    #[error("it shrank while it was read")]
    Shrank,

    /// A path of more bytes than the system allows.
    #[error("its path is longer than 65,535 bytes")]
    PathTooLong,
    /// A member's name begins with a slash.
    #[error("its name is an absolute path")]
    AbsolutePath,
    /// A member's name has `..` in it.
    #[error("its name leads outside of the target")]
    OutsideTarget,
    /// A member's name is empty.
    #[error("it has no name")]
    NoName,
    /// A member's name has a NUL byte in it.
    #[error("its name has a NUL byte in it")]
    NulInName,
    /// A member's name is that of a directory, too.
    #[error("a directory has the same name")]
    IsDirectoryToo,
    /// It would be written into the archive that is read.
    #[error("it would be written into the archive itself")]
    IntoArchive,
    /// What is there must not be replaced.
    #[error("something else is there, and nothing may be overwritten")]
    NotOverwritten,
    /// A directory is where a file would go.
    #[error("a directory is in its place")]
    DirectoryInPlace,
    /// A file of the archive is where a file would go.
    #[error("a file of the archive is in its place")]
    ArchiveInPlace,
    /// A device is made only by the superuser, and only on request.
    #[error("only the superuser can create a device, and only on request")]
    DeviceRefused,

    /// There is no member where the index says.
    #[error("there is no member, but the end of the volume")]
    NoMember,
    /// Another member is there.
    #[error("the member there is `{}`", display_bytes(.0))]
    OtherMember(Vec<u8>),
    /// Header and index differ in the size.
    #[error("its header says {header} bytes, the index says {index}")]
    OtherSize {
        /// Bytes in the header.
        header: u64,
        /// Bytes in the index.
        index: u64,
    },
    /// Header and index differ in the kind of file.
    #[error("the header and the index differ in what kind of file it is")]
    OtherKind,
    /// Header and index differ in the modification time.
    #[error("its header says it was changed at {header}, the index says {index}")]
    OtherTime {
        /// Time in the header.
        header: Mtime,
        /// Time in the index.
        index: Mtime,
    },
    /// A fault of a member, with where it is.
    #[error("{cause} (byte {offset} of {volume})")]
    At {
        /// The fault.
        #[source]
        cause: Box<Cause>,
        /// Where the member begins.
        offset: u64,
        /// The volume.
        volume: VolumeId,
    },
    /// The content is not what was archived.
    #[error("its content does not have the MD5 in the index")]
    WrongMd5,
    /// The content is not what was archived, as far as the index before says.
    #[error("its content does not have the MD5 in the old index")]
    WrongOldMd5,
    /// A sparse member claims more zeros than are hashed.
    #[error("its sparse map claims {holes} bytes of holes, more than the limit of {limit}")]
    TooManyHoles {
        /// Bytes of holes.
        holes: u64,
        /// Most bytes that are hashed.
        limit: u64,
    },
    /// The MD5 was not taken, so that of the index before is kept.
    #[error("{0}; its MD5 is that in the old index")]
    OldMd5Kept(#[source] Box<Cause>),
    /// Padding that is not zeros.
    #[error("its padding is not zeros")]
    DirtyPadding,
    /// A header without the CRC that all others of the volume have.
    #[error("its header has lost its CRC")]
    NoHeaderCrc,
    /// A member begins before the end of the one before.
    #[error("it overlaps the member before")]
    Overlap,
    /// A member that the volume has no longer.
    #[error("it is in the old index, but not in the volume")]
    Lost,

    /// The volume is not there.
    #[error("the volume is missing")]
    VolumeMissing,
    /// The volume is neither in the folder nor, as a whole, in the store.
    #[error("it is neither here nor in the store")]
    NotInStore,
    /// The volume is not there, and the index before knew members of it.
    #[error("the volume is missing: {0} members of the old index are lost")]
    MembersLost(u64),
    /// The volume cannot be used.
    #[error("cannot {operation} the volume: {}", stook_sys::cause(source))]
    VolumeUnusable {
        /// What was tried, as a verb.
        operation: &'static str,
        /// Why it failed.
        source: Arc<io::Error>,
    },
    /// The volume cannot be used, so none of its members gets into the new index.
    #[error("{0}; its members are left out")]
    VolumeLeftOut(#[source] Box<Cause>),
    /// The volume is out of reach, which says nothing about its bytes.
    #[error("{0}")]
    OutOfReach(#[source] Box<Cause>),
    /// Bytes of the volume cannot be read.
    #[error("cannot read: {}", stook_sys::cause(.0))]
    Unreadable(#[source] Arc<io::Error>),
    /// The rest of the volume cannot be read.
    #[error("cannot read: {0}; members behind this place are left out")]
    RestLeftOut(#[source] Box<Cause>),
    /// A frame of a compressed volume cannot be read.
    #[error("the frame at byte {stored} of the file {volume} is damaged: {source}")]
    BadFrame {
        /// The volume.
        volume: VolumeId,
        /// Where it begins in the file.
        stored: u64,
        /// Where it ends in the uncompressed volume.
        end: u64,
        /// What is wrong with it.
        #[source]
        source: Arc<FrameError>,
    },
    /// The index is wrong about the frames of a volume.
    #[error("its frames do not lie where the index says")]
    OtherFrames,
    /// The frames of a volume cannot be written, or what says where they lie is wrong.
    #[error("{0}")]
    Frames(#[source] Arc<FrameError>),
    /// Bytes that are no member, and are passed over.
    #[error("{reason}; {len} bytes are skipped")]
    Skipped {
        /// What is wrong with them.
        #[source]
        reason: Arc<VolumeError>,
        /// How many.
        len: u64,
    },
    /// The volume is longer or shorter than when it was written.
    #[error("the volume has {found} bytes, the index says {index}")]
    VolumeResized {
        /// Bytes of the file.
        found: u64,
        /// Bytes in the index.
        index: u64,
    },
    /// The volume as a whole is not what was written.
    #[error("the MD5 of the whole volume is not the one in the index")]
    WrongVolumeMd5,
    /// A member that is longer than its place.
    #[error("the volume ends, or the next member begins, before the last member does")]
    EndsEarly,
    /// Bytes between members.
    #[error("{0} bytes belong to no member that the index knows")]
    Stray(u64),
    /// Bytes after the last member.
    #[error("after the last member there is something other than zeros")]
    NotZeros,
    /// Too few zeros after the last member.
    #[error("the volume is cut off: {0} bytes follow the last member")]
    CutOff(u64),

    /// Rows of the index that cannot be read.
    #[error("{}", in_index(.0))]
    Index(Box<IndexDamage>),
    /// Rows of the index that cannot be read, and may be about a newer version of the member.
    #[error("what became of it later may be there: {}", place_in_index(.0))]
    MayBeNewer(Box<IndexDamage>),
}

/// Since when a file is not what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The same operation found it.
    Found,
    /// It was planned, by an operation before.
    Planned,
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Found => "while it was archived",
            Self::Planned => "after it was planned",
        })
    }
}

/// A damage that is about a name is printed behind it, any other one behind the name of the file.
fn in_index(damage: &IndexDamage) -> String {
    if damage.name.is_some() {
        return place_in_index(damage);
    }
    format!("{}: {}", damage.place().unwrap_or_default(), damage.what)
}

fn place_in_index(damage: &IndexDamage) -> String {
    let place = damage.place().unwrap_or_default();
    format!("{place} in index.db: {}", damage.what)
}

impl Cause {
    /// Returns the error number of the system call that failed, if it was one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io(error)
            | Self::Unreadable(error)
            | Self::VolumeUnusable { source: error, .. } => error.raw_os_error(),
            Self::Sys(error) => error.source.raw_os_error(),
            Self::Member(error) | Self::Skipped { reason: error, .. } => match &**error {
                VolumeError::Io { source, .. } => source.raw_os_error(),
                _ => None,
            },
            Self::At { cause, .. }
            | Self::OldMd5Kept(cause)
            | Self::VolumeLeftOut(cause)
            | Self::OutOfReach(cause)
            | Self::RestLeftOut(cause) => cause.errno(),
            _ => None,
        }
    }

    /// Returns true if it is about the place that bytes come from, not about the bytes.
    pub fn is_of_source(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Source(_))
    }

    pub(crate) fn unreadable(error: &io::Error) -> Self {
        let cause = match Self::from(error) {
            Self::Io(error) => Self::Unreadable(error),
            other => other,
        };
        cause.where_reached(error)
    }

    pub(crate) fn volume_unusable(operation: &'static str, error: &io::Error) -> Self {
        let cause = Self::VolumeUnusable {
            operation,
            source: Arc::new(copy_of(error)),
        };
        cause.where_reached(error)
    }

    fn where_reached(self, error: &io::Error) -> Self {
        match is_out_of_reach(error) {
            true => Self::OutOfReach(Box::new(self)),
            false => self,
        }
    }

    /// Returns true if it says nothing about the bytes of a volume.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        match self {
            Self::OutOfReach(_) => true,
            Self::Io(error) => is_out_of_reach(error),
            Self::Store(error) => !is_about_bytes(error),
            _ => false,
        }
    }
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        typed(&error).unwrap_or_else(|| Self::Io(Arc::new(error)))
    }
}

impl From<&io::Error> for Cause {
    fn from(error: &io::Error) -> Self {
        typed(error).unwrap_or_else(|| Self::Io(Arc::new(copy_of(error))))
    }
}

/// A cause may travel inside of an error of `std::io`.
impl From<Cause> for io::Error {
    fn from(cause: Cause) -> Self {
        Self::other(cause)
    }
}

impl From<StoreError> for Cause {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl From<&SysError> for Cause {
    fn from(error: &SysError) -> Self {
        Self::Sys(Arc::new(SysError {
            operation: error.operation,
            path: error.path.clone(),
            source: copy_of(&error.source),
        }))
    }
}

impl From<FrameError> for Cause {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io { source, .. } => source.into(),
            other => Self::Frames(Arc::new(other)),
        }
    }
}

impl From<VolumeError> for Cause {
    fn from(error: VolumeError) -> Self {
        match error {
            VolumeError::Io { source, .. } => source.into(),
            other => Self::Member(Arc::new(other)),
        }
    }
}

/// Returns true if a read failed for want of a right, a server or time.
fn is_out_of_reach(error: &io::Error) -> bool {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return true;
    }
    let Some(inner) = error.get_ref() else {
        return false;
    };
    if let Some(error) = inner.downcast_ref::<StoreError>() {
        return !is_about_bytes(error);
    }
    match inner.downcast_ref::<Cause>() {
        Some(Cause::Store(error)) => !is_about_bytes(error),
        Some(Cause::Interrupted) => true,
        Some(_) => false,
        None => inner.is::<ArchiveError>(),
    }
}

fn is_about_bytes(error: &StoreError) -> bool {
    use StoreCause::{Changed, Different, NotFound};
    matches!(error.cause, Changed | Different(_) | NotFound)
}

fn typed(error: &io::Error) -> Option<Cause> {
    error.get_ref()?.downcast_ref::<Cause>().cloned()
}

/// Errors of the system are a number, and copied without loss; of others there is the kind and the text.
fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn an_error_number_survives_every_wrapping() {
        let no_space = || io::Error::from_raw_os_error(28);
        let sys = SysError {
            operation: "open",
            path: Path::new("a").to_owned(),
            source: no_space(),
        };
        for cause in [
            Cause::from(no_space()),
            Cause::from(&no_space()),
            Cause::unreadable(&no_space()),
            Cause::volume_unusable("open", &no_space()),
            Cause::from(&sys),
            Cause::VolumeLeftOut(Box::new(Cause::from(no_space()))),
            Cause::from(VolumeError::Io {
                offset: 7,
                source: no_space(),
            }),
        ] {
            assert_eq!(cause.errno(), Some(28), "{cause:?}");
            assert!(cause.source().is_some(), "{cause:?}");
        }
        assert_eq!(Cause::WrongMd5.errno(), None);
    }

    #[test]
    fn a_cause_comes_back_out_of_an_io_error() {
        let travelled = Cause::from(&io::Error::from(Cause::IntoArchive));
        assert!(matches!(travelled, Cause::IntoArchive));
        let missing = io::Error::new(io::ErrorKind::NotFound, "no such file");
        let of_source = Cause::Source(Arc::new(missing));
        let travelled = Cause::from(&io::Error::new(io::ErrorKind::NotFound, of_source));
        assert!(travelled.is_of_source() && !Cause::WrongMd5.is_of_source());
        assert_eq!(travelled.to_string(), "no such file");
        let text = Cause::from(io::Error::other("ended early"));
        assert_eq!(
            (text.to_string(), text.errno()),
            ("ended early".to_owned(), None)
        );
    }
}
