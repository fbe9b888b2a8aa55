//! `stook bench fs`: what was typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::SaveArgs;

/// Compare how well file systems handle small files
///
/// A set of small files is made once, packed as a plain tar and as an archive, and then, on each target: copied there,
/// unpacked, found, looked at, read, packed, copied and removed. Every phase is done by each of three tools: `system`
/// (cp, tar, find, xargs with cat, rm), `stook`, and `single`, one thread that does one operation after the other and times
/// each of them. `stook` reads the files in place, from the archive, with the MD5 of each.
///
/// All is made in a folder of its own below each target, and removed at the end, also after a failure or Ctrl-C. Before
/// each run what was written is brought to the disk, untimed; the run itself does not wait for that, unless its program
/// does. After a run the tree is counted.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchFsArgs {
    /// Directories, each on a file system to measure
    #[arg(required = true, value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Number of files
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) files: u64,
    /// Kind of file set, as in `stook bench fileset`: `arc`, `flat`, `deep`, or a file that describes one
    #[arg(long, value_name = "SPEC|FILE.toml", default_value = "arc")]
    pub(crate) spec: OsString,
    /// Seed of the random numbers; the same seed gives the same files
    #[arg(long, value_name = "S", default_value_t = 7)]
    pub(crate) seed: u64,
    /// Number of measurements of everything
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) rounds: u32,
    /// Phases to measure; what they need is done untimed (default: all)
    #[arg(long, value_name = "PHASE,..", value_delimiter = ',')]
    pub(crate) phases: Vec<PhaseName>,
    /// Tools to compare (default: all)
    #[arg(long, value_name = "TOOL,..", value_delimiter = ',')]
    pub(crate) tools: Vec<ToolName>,
    /// Drop the caches of the whole machine before every phase; needs root
    #[arg(long)]
    pub(crate) cold: bool,
    /// Directory in which the files are created and packed (default: the one for temporary files)
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
}

/// A phase, in the order in which they are done.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PhaseName {
    /// The packed files are copied to the target
    Copy,
    /// They are unpacked there
    Untar,
    /// All names are found
    Find,
    /// Size and time of every entry are looked at
    Stat,
    /// Every file is read
    Read,
    /// The tree is packed
    Tar,
    /// The tree is copied within the target
    CopyTree,
    /// The tree is removed
    Delete,
}

/// A tool.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ToolName {
    /// cp, tar, find, xargs, cat, rm
    System,
    /// This program
    Stook,
    /// One thread that times every operation
    Single,
}
