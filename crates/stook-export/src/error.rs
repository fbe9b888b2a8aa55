//! What ends an export, and why a file is not in one.

use std::path::PathBuf;
use std::sync::Arc;

use stook_archive::{ArchiveError, Cause, Failure, VolumeId};
use stook_sys::{SysError, display_path};

/// An error that ended an export, or a native mount.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The archive cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// What was printed could not be written.
    #[error("cannot write the output: {}", stook_sys::cause(.0))]
    Output(#[source] std::io::Error),
    /// Volumes are compressed: their bytes are nowhere as they were archived.
    #[error("cannot export from {}: compressed volumes hold no file as it is", listed(.volumes))]
    Compressed {
        /// The volumes.
        volumes: Vec<VolumeId>,
    },
    /// Volumes are not in the archive's folder.
    #[error("cannot export from `{}`: {} not there", display_path(path), are(.volumes))]
    Missing {
        /// The folder.
        path: PathBuf,
        /// The volumes.
        volumes: Vec<VolumeId>,
    },
    /// A volume is not as long as the index says, or does not end with a whole block.
    #[error("cannot export from {volume}: it has {found} bytes, {}", expected(*.recorded))]
    VolumeSize {
        /// The volume.
        volume: VolumeId,
        /// Its bytes.
        found: u64,
        /// The bytes that the index says; `None` if it says nothing.
        recorded: Option<u64>,
    },
    /// EROFS counts blocks of 512 bytes in 32 bits.
    #[error("cannot export from {volume}: it has {bytes} bytes, EROFS reaches 2 TiB of a volume")]
    VolumeTooLong {
        /// The volume.
        volume: VolumeId,
        /// Its bytes.
        bytes: u64,
    },
    /// EROFS counts volumes in 16 bits.
    #[error("cannot export {volumes} volumes: EROFS has room for 65,535")]
    TooManyVolumes {
        /// How many there are.
        volumes: usize,
    },
    /// EROFS counts blocks of the image in 32 bits.
    #[error("cannot export so many entries: the image would be longer than EROFS allows")]
    ImageTooLong,
    /// The place of the volumes is no text, as references must be.
    #[error("cannot refer to `{}`: its path is not UTF-8", display_path(path))]
    NotText {
        /// The folder.
        path: PathBuf,
    },
    /// The volumes lie where nobody else can read a part of one.
    #[error("cannot refer to volumes in `{place}`: no other program reads parts of files there")]
    NoRanges {
        /// The place.
        place: String,
    },
    /// A part of an archive would be overwritten.
    #[error("cannot write `{}`: it is a part of the archive", display_path(path))]
    OverArchive {
        /// What was to be written.
        path: PathBuf,
    },
    /// No array of Zarr's format 2 is selected, which the Parquet form is for.
    #[error("cannot write references as Parquet: no array of Zarr format 2 is selected")]
    NoArray,
    /// A group or array of Zarr says of itself what makes no sense.
    #[error("cannot read `{path}` as metadata of Zarr: {why}")]
    BadZarr {
        /// The member.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// An image cannot be mounted with this archive.
    #[error("cannot use the image `{}`: {why}", display_path(path))]
    Image {
        /// The image.
        path: PathBuf,
        /// Why.
        #[source]
        why: BadImage,
    },
    /// So many files would be missing in a native mount.
    #[error("cannot mount it natively: {} cannot be shown", number_of_files(*.files))]
    Incomplete {
        /// How many, each reported to the observer.
        files: u64,
    },
    /// Only root may have the kernel read an image.
    #[error("cannot mount it natively: only root can")]
    NotRoot,
    /// The kernel has no EROFS.
    #[error("cannot mount it natively: the kernel {kernel} has no EROFS")]
    NoErofs {
        /// Its version.
        kernel: String,
    },
    /// The kernel mounts only devices, or the image lies where it cannot be read as one.
    #[error(
        "cannot mount it natively: the kernel {kernel} takes no image in `{}`",
        display_path(path)
    )]
    NoPlainFiles {
        /// Its version.
        kernel: String,
        /// The folder of the image.
        path: PathBuf,
    },
}

/// Why an image does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadImage {
    /// stook has not written it.
    #[error("stook has not written it")]
    Foreign,
    /// It is of another version.
    #[error("its version is {0}")]
    Version(u32),
    /// It shows another state of the archive.
    #[error("it shows {image}, the archive has {archive}")]
    OtherState {
        /// The state in the image.
        image: crate::ImageState,
        /// The state that is wanted.
        archive: crate::ImageState,
    },
    /// A volume is not the one that it was made for.
    #[error("it was made for {recorded} bytes of {volume}, there are {found}")]
    OtherVolume {
        /// The volume's name.
        volume: String,
        /// The bytes of it that the image knows.
        recorded: u64,
        /// The bytes that it has.
        found: u64,
    },
    /// Its volumes are not those of the archive.
    #[error("it was made for other volumes than the archive has")]
    OtherVolumes,
}

/// Why a file is not in an export.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A reference is one piece of a volume.
    #[error("it is sparse, and a reference cannot tell its holes")]
    Sparse,
    /// Its volume is compressed.
    #[error("its volume {0} is compressed")]
    Compressed(VolumeId),
    /// Neither the index nor the volume says where its content begins.
    #[error("neither the index nor its header says where its content is")]
    Unknown,
    /// The index says a place that the volume does not have.
    #[error("it would end behind {0}")]
    BehindVolume(VolumeId),
    /// Its name is no text.
    #[error("its name is not UTF-8")]
    NotText,
    /// EROFS knows only blocks.
    #[error("a part of it does not begin at a block of its volume")]
    Unaligned,
    /// Its holes divide it into more pieces than an image is to have.
    #[error("its holes divide it into {0} pieces, of which an image has room for 1,048,576")]
    TooManyChunks(u64),
    /// The kernel takes no longer one.
    #[error("its name is longer than 255 bytes")]
    LongName,
    /// Its extended attributes cannot be read.
    #[error("its extended attributes cannot be read")]
    UnknownXattrs,
    /// Its extended attributes are too long together, or one of them is.
    #[error("its extended attributes are too long")]
    LongXattrs,
    /// It is neither metadata of Zarr's format 2 nor a chunk of such an array.
    #[error("it is no part of an array of Zarr format 2")]
    NotZarr,
}

impl Refusal {
    /// Returns the failure of a file.
    pub(crate) fn of(self, operation: &'static str, path: &[u8]) -> Failure {
        Failure {
            operation,
            path: path.to_vec(),
            cause: Cause::Refused(Arc::new(self)),
        }
    }
}

fn listed(volumes: &[VolumeId]) -> String {
    const MOST: usize = 8;
    let mut names: Vec<String> = volumes.iter().take(MOST).map(ToString::to_string).collect();
    if volumes.len() > MOST {
        names.push(format!("{} more", volumes.len() - MOST));
    }
    names.join(", ")
}

fn are(volumes: &[VolumeId]) -> String {
    let verb = if volumes.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", listed(volumes))
}

fn expected(recorded: Option<u64>) -> String {
    match recorded {
        Some(recorded) => format!("the index says {recorded}"),
        None => "which is no whole number of blocks".to_owned(),
    }
}

fn number_of_files(number: u64) -> String {
    match number {
        1 => "a file".to_owned(),
        number => format!("{number} files"),
    }
}
