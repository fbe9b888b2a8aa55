//! What was typed behind `walk`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{FilterArgs, PATTERNS};

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct WalkArgs {
    /// The tree to walk
    pub(crate) tree: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Select types: f file, d directory, l symbolic link, p fifo, s socket, c and b devices; may be repeated
    #[arg(
        long = "type",
        value_name = "TYPE,..",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(crate) kinds: Vec<KindLetter>,
    /// Select regular files larger than this, such as 1GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) larger_than: Option<String>,
    /// Select what was modified after a local time (2026-11-21, 2026-11-21T18:30), one with an offset (+01:00 or Z),
    /// @SECONDS since 1970, an age (30min, 12h, 2d, 1w), or the modification time of a file (file:PATH)
    #[arg(long, value_name = "TIME|AGE|file:PATH")]
    pub(crate) newer_than: Option<OsString>,
    /// Format of a line, with {path}, {size}, {mtime}, {inode}, {type}, {mode}, {links} (default: {path})
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<OsString>,
    /// End each line with NUL instead of a line break
    #[arg(short = '0', long)]
    pub(crate) null: bool,
    /// Print statistics instead of entries: numbers, sizes, extensions, largest directories, what is worth archiving
    #[arg(long, conflicts_with_all = ["format", "null"])]
    pub(crate) summary: bool,
    /// Number of workers (default: adapts to the storage, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

/// A type as `find` writes it.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum KindLetter {
    F,
    D,
    L,
    P,
    S,
    C,
    B,
}
