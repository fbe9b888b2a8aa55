//! Why an operation on a tree failed where no system call did, or where the system's word for it tells too little.
//!
//! A reason travels as the source of an [`io::Error`], beside those of the system, which keep their numbers:
//! [`Reason::of`] finds it there. It names no option and no command: advice is up to the program that prints it.

use std::error::Error;
use std::{fmt, io};

use stook_sys::display_bytes;

/// Why something in a tree, or a tree, was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A link that is followed leads to a directory above itself.
    LinkLoop,
    /// The names of one directory take more than 4 GiB.
    TooManyNames,

    /// It is an archive, and archives are not removed.
    IsArchive,
    /// It is the index or a volume of an archive, and archives are not removed.
    IsPartOfArchive,
    /// It is an archive, and would be written to.
    WouldChangeArchive,
    /// It is in an archive, and would be written to.
    IsInArchive,

    /// It is the root of the system.
    IsRoot,
    /// It is the working directory, or above it.
    HoldsWorkingDirectory,
    /// The tree is a mount point.
    IsMountPoint,
    /// Something else is mounted below the tree.
    IsMountedBelow,
    /// An empty path.
    NoName,
    /// A path that ends in `.` or `..`.
    DotName,
    /// The root of a tree is to be kept, but is no directory.
    KeptRootNotADirectory,
    /// What is there changes all the time.
    ChangesAllTheTime,
    /// A directory is never empty.
    NotEmpty,
    /// A directory is never empty: a network file system keeps a removed file that is open.
    HeldOpen,

    /// The copy is there already.
    Exists,
    /// Something was made in the place of the copy just now.
    Taken,
    /// The copy would be made where a link leads that leads nowhere.
    BrokenLink,
    /// The copy is the tree.
    IsTheTree,
    /// The copy is in the tree.
    IsInTheTree,
    /// The copy holds the tree.
    HoldsTheTree,
    /// A tree cannot be copied to what is no directory.
    NotADirectory,
    /// A file cannot be copied to a directory.
    IsDirectory,
    /// Another process copies to the same place.
    Busy,
    /// A directory of the tree is the root of the copy.
    IsTheCopy,
    /// The file changed while it was copied.
    Changed,
    /// A directory with something in it has the name of what is no directory.
    DirectoryInPlace,
    /// The file system of the copy takes no access control lists; reported once.
    NoAccessLists,
    /// The file system of the copy takes no attributes of this name space; reported once.
    NoAttributes(Vec<u8>),

    /// The copy lacks it.
    Missing,
    /// The copy is of another kind.
    KindDiffers,
    /// The copy of a link leads elsewhere.
    TargetDiffers,
    /// The owner of the copy differs.
    OwnerDiffers,
    /// The access control list of the copy differs.
    AccessListDiffers,
    /// The mode of the copy differs.
    ModeDiffers,
    /// The attributes of the copy differ.
    AttributesDiffer,
    /// The content of the copy differs from this byte on.
    ContentDiffers(u64),
    /// The copy ends at this byte, and the original does not.
    EndsEarly(u64),
    /// The original ends at this byte, and the copy does not.
    GoesOn(u64),
}

impl Reason {
    /// Returns the reason in an error, if there is one.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    fn text(&self) -> &'static str {
        match self {
            Self::LinkLoop => "the link leads to a directory above itself",
            Self::TooManyNames => "more than 4 GiB of names in one directory",
            Self::IsArchive => "it is an archive",
            Self::IsPartOfArchive => "it is part of an archive",
            Self::WouldChangeArchive => "it is an archive, and what is copied is none",
            Self::IsInArchive => "it is in an archive",
            Self::IsRoot => "it is the root",
            Self::HoldsWorkingDirectory => "it is the working directory, or above it",
            Self::IsMountPoint => "something is mounted there",
            Self::IsMountedBelow => "something else is mounted there",
            Self::NoName => "it has no name",
            Self::DotName => "its name is `.` or `..`",
            Self::KeptRootNotADirectory => "it is no directory, and a root is to be kept",
            Self::ChangesAllTheTime => "another process changes it",
            Self::NotEmpty => "it is not empty: another process may be writing there",
            Self::HeldOpen => {
                "it is not empty: a `.nfs` file in it belongs to a process that has the file open"
            }
            Self::Exists => "it is there already",
            Self::Taken => "something else is there",
            Self::BrokenLink => "it is a symbolic link that leads nowhere",
            Self::IsTheTree => "it is the tree itself",
            Self::IsInTheTree => "it is in the tree that is copied",
            Self::HoldsTheTree => "it holds the tree that is copied",
            Self::NotADirectory => "it is there, and is no directory",
            Self::IsDirectory => "it is a directory",
            Self::Busy => "another process copies there",
            Self::IsTheCopy => "it is the copy itself",
            Self::Changed => "it changed while it was copied",
            Self::DirectoryInPlace => "a directory is in its place, and is not empty",
            Self::NoAccessLists => {
                "the file system takes no access control lists; others are not named"
            }
            Self::NoAttributes(_) => "the file system takes no such attributes",
            Self::Missing => "it is not there",
            Self::KindDiffers => "it is something else",
            Self::TargetDiffers => "it leads to another place",
            Self::OwnerDiffers => "its owner differs",
            Self::AccessListDiffers => "its access control list differs",
            Self::ModeDiffers => "its mode differs",
            Self::AttributesDiffer => "its attributes differ",
            Self::ContentDiffers(_) | Self::EndsEarly(_) | Self::GoesOn(_) => "its content differs",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAttributes(space) => {
                let space = display_bytes(space);
                write!(
                    f,
                    "the file system takes no attributes `{space}.*`; others are not named"
                )
            }
            Self::ContentDiffers(byte) => write!(f, "it differs at byte {byte}"),
            Self::EndsEarly(byte) => write!(f, "it ends at byte {byte}"),
            Self::GoesOn(byte) => {
                write!(f, "it goes on after byte {byte}, where the original ends")
            }
            other => f.write_str(other.text()),
        }
    }
}

impl Error for Reason {}

impl From<Reason> for io::Error {
    fn from(reason: Reason) -> Self {
        Self::other(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_found_in_the_error_that_carries_it() {
        let error = io::Error::from(Reason::EndsEarly(7));
        assert_eq!(Reason::of(&error), Some(&Reason::EndsEarly(7)));
        assert_eq!(stook_sys::cause(&error), "it ends at byte 7");
        assert_eq!(Reason::of(&io::Error::from_raw_os_error(1)), None);
        let refused = Reason::NoAttributes(b"user".to_vec());
        let text = "the file system takes no attributes `user.*`; others are not named";
        assert_eq!(refused.to_string(), text);
    }
}
