//! `stook export`: what is typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{AsOfArgs, PATTERNS, SourceArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    pub(crate) command: ExportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Write references for Python's fsspec
    ///
    /// For each file where it is: the URL of its volume, the first byte, how many bytes. Then
    /// `fsspec.filesystem("reference", fo=FILE)` reads files, and xarray and zarr read stores, out of the volumes without stook.
    ///
    /// Sparse files and files in compressed volumes have no such place; each is named and left out, and the status is 3, or 1 if all
    /// volumes are compressed. What is read through references is not verified.
    Refs(RefsArgs),
    /// Write an image of names and attributes that the kernel mounts
    ///
    /// An EROFS image with blocks of 512 bytes, whose files lie in the volumes: these are its further devices, in the order of
    /// their numbers. `stook mount --native` makes and mounts one by itself, and with --image takes this one.
    ///
    /// Compressed volumes and volumes of more than 2 TiB are refused. A file that cannot be shown, since its holes divide it into more than a
    /// million pieces, say, is named and left out, and the status is 3. What is read through an image is not verified.
    Erofs(ErofsArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct RefsArgs {
    /// The archive: a directory with index.db and volumes, or a URL (http, https, s3, ssh)
    pub(crate) archive: PathBuf,
    /// Refer only to files that match, and those in directories that match
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// Refer only to files below this directory of the archive, by their paths below it: of a Zarr store, its name
    #[arg(long, value_name = "DIR")]
    pub(crate) below: Option<OsString>,
    /// Write to FILE, of Parquet a new folder (default: stdout)
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// In which form (default: parquet if FILE ends in .parquet or .parq, else json)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<RefsFormatArg>,
    /// Where readers find the volumes: a URL or a path, to which a slash and the name of the volume are added
    ///
    /// Without it, that is the archive, where it was named by a URL; the folder of the archive, if all its volumes are there; or else its store.
    #[arg(long, value_name = "URL")]
    pub(crate) base: Option<String>,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RefsFormatArg {
    /// One file, of any members; it is read as a whole
    Json,
    /// A folder, of arrays of Zarr format 2 only; it is read as chunks are, so millions of them are no burden
    Parquet,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ErofsArgs {
    /// The archive: a directory with index.db and all its volumes
    pub(crate) archive: PathBuf,
    /// The image to write; replaced if it is there
    pub(crate) image: PathBuf,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
}
