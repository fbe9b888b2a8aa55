//! `stook bench update`: what was typed.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::SaveArgs;

/// Compare archivers: create, update, check, extract
///
/// For each ordered pair (A, B) of three directories and for each tool, A is copied and archived, B is copied over it and the
/// archive updated, checked and extracted, by one worker and by two. Only the tool's commands are timed. What is
/// extracted, and what the tool lists, is compared with what was archived.
///
/// A tool is `stook`, `tar`, `zstash`, or any NAME with a command for the shell. In commands these stand for quoted paths:
/// `{source}`, `{archive}` (a directory, empty at first), `{into}` (an empty directory to extract to) and `{stook}` (this
/// program); `{workers}` stands for how many workers extract, and `{operation}` for create, update, check, extract or list.
/// A command without `{operation}` gets the operation, source, archive, into and workers as arguments.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchUpdateArgs {
    /// A tool: `NAME`, `NAME=COMMAND`, or `NAME:OPERATION=COMMAND` for one operation, empty if the tool does not have it; may be
    /// repeated, and ratios are against the first
    #[arg(long = "tool", value_name = "NAME=COMMAND", default_values = ["stook", "tar"])]
    pub(crate) tools: Vec<String>,
    /// The three directories; none may be in another one
    #[arg(long, num_args = 3, required = true, value_names = ["A", "B", "C"])]
    pub(crate) dirs: Vec<PathBuf>,
    /// Number of passes through all pairs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeats: u32,
    /// Directory for copies, archives and extracted trees, which are removed at the end (default: beside A)
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    /// Copy B beside A instead of over it, so that nothing is replaced: what zstash's own study does
    #[arg(long)]
    pub(crate) beside: bool,
    /// Drop the caches of the whole machine before each command; needs root
    #[arg(long)]
    pub(crate) cold: bool,
    /// Include the time until everything is on disk (stook's archives always are, those of others may not be)
    #[arg(long)]
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
