//! `stook mount`: what is typed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{AsOfArgs, SourceArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct MountArgs {
    /// The archive: a directory with index.db and volumes, or a URL (http, https, s3, ssh)
    pub(crate) archive: PathBuf,
    /// The directory to mount on
    pub(crate) mountpoint: PathBuf,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    /// Stay in the foreground, and write the log to stderr; Ctrl-C unmounts
    #[arg(long, short = 'f')]
    pub(crate) foreground: bool,
    /// Let other users use the mount, with the permissions of each file
    ///
    /// For users other than root, `user_allow_other` in /etc/fuse.conf must allow it.
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Show all versions of all files, deleted ones, too, in the directory .stook of the mount, which is not listed
    ///
    /// There is a directory for each file, and in it a file `row-17` for each version; `stook list --all --long` and the attribute
    /// user.stook.md5 tell them apart. Only the user who mounts can enter it.
    #[arg(long)]
    pub(crate) all_versions: bool,
    /// Compare content with its MD5 before it is given out; what is damaged cannot be read
    ///
    /// Files of up to 64 MiB are read as a whole before their first byte is given out. A larger file is verified while it is
    /// read in order, and its end cannot be read if it is damaged; if it is read in another order it is not verified.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Decode N frames of compressed volumes at a time at most, ahead of readers that go forward; with 1 only what is read is
    /// decoded, one frame after the other (default: as many as there are processors, and 2 at least)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) decode_threads: Option<u16>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Append the log to FILE (default: the system's log, or stderr in the foreground)
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Mount options, with commas: `allow_other`, `all_versions`, `verify`, `noexec`, `as_of=RUN|TIME`, `log=FILE`, `store=URL`,
    /// `cache=DIR`, `cache_size=SIZE`, `offline`, `decode_threads=N`, and those of fstab that change nothing here
    #[arg(short = 'o', value_name = "OPTIONS", action = clap::ArgAction::Append)]
    pub(crate) options: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TalkArgs {
    /// The directory that an archive is mounted on
    pub(crate) mountpoint: PathBuf,
    #[command(subcommand)]
    pub(crate) command: TalkCommand,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum TalkCommand {
    /// Print numbers of requests and bytes, and how long answers took, as JSON
    Stats {
        /// Print them as Prometheus takes them
        #[arg(long)]
        prometheus: bool,
    },
    /// Print where the server's time went, by call path
    Timers {
        /// In which form
        #[arg(long, value_name = "FORMAT", default_value = "tree")]
        format: TimersFormatArg,
    },
    /// Forget what is kept of volumes in a store, in memory and in the directory of --cache
    Evict,
    /// Unmount, if nobody uses it
    Quit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimersFormatArg {
    /// An indented table
    Tree,
    /// One JSON object
    Json,
    /// Folded stacks with own time in microseconds, for flame-graph programs
    Folded,
    /// A flame graph of the folded stacks, for a browser
    Svg,
}
