//! `stook bench fileset`: what was typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Create a reproducible tree of small files
///
/// Names, content, modes and times depend on the spec, the seed and the number of files only; a smaller set is the
/// beginning of a larger one. The figures of the set are printed: how many files and bytes, and mean, standard
/// deviation, least, median and greatest size. If the set cannot be completed, DIR is removed, unless it
/// was there before.
#[derive(Debug, ClapArgs)]
pub(crate) struct FilesetArgs {
    /// The directory to fill; created if missing, else it must be empty
    pub(crate) dir: PathBuf,
    /// Number of files
    #[arg(long, value_name = "N")]
    pub(crate) files: u64,
    /// Kind of file set: `arc`, `flat`, `deep`, or a file that describes one
    ///
    /// `arc` has the sizes of a cluster's scratch, log-normal with median 1,785 bytes, half of the files text and half
    /// incompressible, 1 to 99 of them in a directory. `flat` has all files in one directory, `deep` in chains of 50
    /// directories. docs/bench/fileset.toml is an example of a file.
    #[arg(long, value_name = "SPEC|FILE.toml", default_value = "arc")]
    pub(crate) spec: OsString,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 7)]
    pub(crate) seed: u64,
    /// Leave out the content: files of the same sizes and times that take no room, as a stand-in for a tree of terabytes
    #[arg(long)]
    pub(crate) sparse: bool,
    /// Print the statistics, and create nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Number of workers (default: adapts to the storage, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}
