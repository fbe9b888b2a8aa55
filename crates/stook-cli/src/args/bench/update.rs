//! `stook bench update`: what was typed.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::SaveArgs;

/// Compare archivers: create, update, check, extract
///
/// For each ordered pair (A, B) of three directories and for each tool, A is copied and archived, B is copied over it and the
/// archive updated, checked and extracted, by one worker and by two. Only the tool's commands are timed. What is
/// extracted, and what the tool lists, is compared with what was archived. With --store, all of this is done once more with
/// archives that are sent to a store, each into a folder of its own that is emptied afterwards.
///
/// With --archive, nothing is archived: dry runs of an update of that archive are timed, each with the same index, and what they would
/// add is compared. --add puts files of a directory beside those of the tree: in a replica, as the tree itself is never
/// changed. A replica has sparse files of the same names, sizes and times. Of the archive, only index.db is read.
///
/// A tool is `stook`, `tar`, `zstash`, or any NAME with a command for the shell. In commands these stand for quoted paths:
/// `{source}`, `{archive}` (a directory, empty at first), `{into}` (an empty directory to extract to) and `{stook}` (this
/// program); `{store}` stands for the place of a store, or `none`, and `{hpss}` for the same as zstash takes it; `{workers}` stands for how
/// many workers extract, and `{operation}` for create, update, check, extract, list, dry-run or changes (the names that an update would add).
/// A command without `{operation}` gets the operation, source, archive, into and workers as arguments.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchUpdateArgs {
    /// A tool: `NAME`, `NAME=COMMAND`, or `NAME:OPERATION=COMMAND` for one operation, empty if the tool does not have it; may be
    /// repeated, and ratios are against the first (default: stook and tar; with --archive, stook)
    #[arg(long = "tool", value_name = "NAME=COMMAND")]
    pub(crate) tools: Vec<String>,
    /// The three directories; none may be in another one
    #[arg(long, num_args = 3, required_unless_present = "archive", value_names = ["A", "B", "C"])]
    pub(crate) dirs: Vec<PathBuf>,
    /// Send archives also to this store: a directory, or a URL with s3, ssh, hpss or globus
    #[arg(long, value_name = "URL", conflicts_with = "archive")]
    pub(crate) store: Option<String>,
    /// Study dry runs of an update of this archive: a directory with index.db
    #[arg(long, requires = "source", conflicts_with = "dirs")]
    pub(crate) archive: Option<PathBuf>,
    /// The tree that was archived
    #[arg(long, value_name = "TREE", requires = "archive")]
    pub(crate) source: Option<PathBuf>,
    /// Study it also with the files of this directory added to a replica of the tree
    #[arg(long, value_name = "DIR", requires = "archive")]
    pub(crate) add: Option<PathBuf>,
    /// Number of passes through all pairs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeats: u32,
    /// Directory for copies, archives and extracted trees, which are removed at the end (default: beside A, or the tree)
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    /// Copy B beside A instead of over it, so that nothing is replaced: what zstash's own study does
    #[arg(long, conflicts_with = "archive")]
    pub(crate) beside: bool,
    /// Drop the caches of the whole machine before each command; needs root
    #[arg(long)]
    pub(crate) cold: bool,
    /// Include the time until everything is on disk (stook's archives always are, those of others may not be)
    #[arg(long, conflicts_with = "archive")]
    pub(crate) sync: bool,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
    /// Write the times into this new file, in the columns of zstash's study and more; with `{tool}` in its name, a file for
    /// each tool
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw the figures of `stook bench report` into this directory, as SVG: time and memory by operation, and for each tool
    /// but the first its times against the first one's, and their ratios
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
}
