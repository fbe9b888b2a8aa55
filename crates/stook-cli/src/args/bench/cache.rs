//! `stook bench cache`: what was typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::SaveArgs;

/// Run a command with cold, warm and hot caches
///
/// Each round runs the command three times, and proves before each run what is in memory:
///
/// cold: nothing; the data, names and inodes of all files are dropped, by root.
///
/// warm: names and inodes, but no data; with --cold-hook, nothing either, and what lies on disk stays.
///
/// hot: everything; it follows another run of the same command.
///
/// A first untimed run, under strace if there is one, tells which files the command reads and which of their pages it
/// leaves in memory. Of a random sample of these, at most 1 % of the pages and of the names may be in memory for what is
/// to be gone, and 99 % must be for what is to be there; else the bench ends with an error. It ends, too, if a command or a
/// hook fails, and if the command changes the files that it reads.
///
/// Other users than root may drop only the data of files, one after the other, so names and inodes stay: without hooks
/// their cold is what root's warm is, and there is no warm.
///
/// Printed are means, medians and spread; shares of the time on a processor, waiting for one, and waiting for anything else
/// (BLOCKED); ratios by least squares through the origin, and of medians with an interval of 95 %. A state that is not proved
/// has a question mark: `cold?`.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchCacheArgs {
    /// Runs of the command in each state
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: u32,
    /// Shell command that does the same work on local files, run in the same states for comparison
    #[arg(long, value_name = "CMD")]
    pub(crate) local: Option<OsString>,
    /// Shell command that empties all other caches, such as unmounting and removing a cache; run before each cold run
    #[arg(long, value_name = "CMD")]
    pub(crate) cold_hook: Option<OsString>,
    /// Shell command that empties other caches in memory, such as unmounting; run before each warm run
    #[arg(long, value_name = "CMD", requires = "cold_hook")]
    pub(crate) warm_hook: Option<OsString>,
    /// Also count the CPU time of this process, or of the one that serves this FUSE mount
    #[arg(long, value_name = "PID|MOUNT")]
    pub(crate) watch: Option<PathBuf>,
    /// The mounted archive that the command reads (default: the one that the working directory is in)
    ///
    /// Before each cold run its server forgets all it has fetched, before each warm run what is in its memory. Its CPU time is
    /// counted, and printed is what it read from where.
    #[arg(long, value_name = "DIR")]
    pub(crate) mount: Option<PathBuf>,
    /// File or tree that the command reads, or its cache on disk, used to verify the states; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
