//! What was typed behind `walk`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{FilterArgs, PATTERNS};

/// Print every entry of a tree, or figures about all of them
///
/// One line for each: the tree itself, directories, and all that is in them. The order is that in which they
/// are found, another one each time; names are printed as they are. A tree that is named by a link is walked.
///
/// In a format, {mtime} is in seconds since 1970 with nine decimals, {mode} is octal, {type} is one of f d l p s c b;
/// {{ and }} are braces.
///
/// All conditions must hold together: --type f --larger-than 1GiB --newer-than 2d --include '*.nc'. They are about
/// what is printed or counted; directories are looked into, whether they are or not. What name and type
/// rule out is not looked at any further.
///
/// Sizes are those of the content of regular files, and a file with several names counts once for each of them. The
/// median of an even number of sizes is the larger of the two in the middle; the standard deviation is
/// that of all files, not of a sample. An extension is what follows the last dot, up to 14 bytes that are not a number.
///
/// A subtree would gain from being archived if it has 1,000 files or more of less than 1 MiB on average. It is
/// named itself, and nothing below it; unless parts right below it, each with a twentieth of all files or
/// more, hold four fifths of it: then these are named, or parts of them.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct WalkArgs {
    /// The tree to walk
    pub(crate) tree: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only entries of these types: f file, d directory, l link, p fifo, s socket, c and b devices; may be repeated
    #[arg(
        long = "type",
        value_name = "TYPE,..",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(crate) kinds: Vec<KindLetter>,
    /// Only regular files of more bytes than this
    #[arg(long, value_name = "SIZE")]
    pub(crate) larger_than: Option<String>,
    /// Only what has changed since: a time (2026-11-21, 2026-11-21T18:30, in UTC, or with an offset such as +01:00;
    /// @SECONDS since 1970), an age (30min, 12h, 2d, 1w), or file:PATH for the time of another file
    #[arg(long, value_name = "TIME|AGE|file:PATH")]
    pub(crate) newer_than: Option<OsString>,
    /// What to print of an entry: text with {path}, {size}, {mtime}, {inode}, {type}, {mode}, {links} (default: {path})
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<OsString>,
    /// End entries with NUL instead of a line break
    #[arg(short = '0', long)]
    pub(crate) null: bool,
    /// Print figures instead of entries: numbers, sizes, extensions, largest directories, what to archive
    #[arg(long, conflicts_with_all = ["format", "null"])]
    pub(crate) summary: bool,
    /// Number of workers (default: as many as the storage asks for, up to 128)
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
