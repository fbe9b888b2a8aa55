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
    /// Have the kernel read the volumes by itself, through an EROFS image that is made from the index
    ///
    /// Needs root, Linux 6.12 or newer with EROFS for plain files, and all volumes, uncompressed, in a directory of this machine. Reads
    /// cost about as much as those of any file system, and no process is left running: `umount` ends it. Nothing verifies what is
    /// read, and every user can use the mount, with the permissions of each file.
    #[arg(long)]
    pub(crate) native: bool,
    /// With --native: mount this image, which `stook export erofs` has written, if it is of this state of the archive
    #[arg(long, value_name = "IMAGE", requires = "native")]
    pub(crate) image: Option<PathBuf>,
    /// Decode N frames of compressed volumes at a time at most, ahead of readers that go forward; with 1 only what is read is
    /// decoded, one frame after the other (default: as many as there are processors, and 2 at least)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) decode_threads: Option<u16>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Fetch files that match into the cache once it is mounted, of an archive in a store; may be repeated
    ///
    /// The mount can be used meanwhile. Without --cache no more is fetched than memory has room for.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) prefetch: Vec<String>,
    /// Append the log to FILE (default: the system's log, or stderr in the foreground)
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Mount options, with commas: `allow_other`, `all_versions`, `verify`, `native`, `noexec`, `as_of=RUN|TIME`, `log=FILE`, `store=URL`,
    /// `mirror=URL`, `cache=DIR`, `cache_size=SIZE`, `offline`, `prefetch=PATTERN`, `decode_threads=N`, and those of fstab that change nothing here
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

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TalkCommand {
    /// Print numbers of requests and bytes, and how long answers took, as JSON
    Stats {
        /// Print them as Prometheus takes them
        #[arg(long)]
        prometheus: bool,
    },
    /// Print where the server's time went, by call path: in callbacks, which answer the kernel, and in threads that help
    Timers {
        /// In which form
        #[arg(long, value_name = "FORMAT", default_value = "tree")]
        format: TimersFormatArg,
        /// Print nothing: forget the times so far, and record them anew in this detail
        #[arg(long, value_name = "DETAIL", conflicts_with = "format")]
        record: Option<TimersDetailArg>,
    },
    /// Fetch files that match into the cache, and print how many files and bytes
    ///
    /// It ends when all is there, or on Ctrl-C. No more is fetched than the cache has room for.
    Prefetch {
        /// Patterns of paths below the mount point
        #[arg(required = true, value_name = "PATTERN")]
        patterns: Vec<String>,
    },
    /// Wait until nothing is being fetched or written to the cache
    Sync,
    /// Forget what is kept of volumes, in memory and in the directory of --cache
    Evict {
        /// Only what is in memory
        #[arg(long)]
        memory: bool,
    },
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
    /// The first single calls of each thread, for trace viewers; they must be recorded
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimersDetailArg {
    /// Calls and wall time: 20 ns a scope
    Wall,
    /// CPU time besides, hence the time blocked: 1 us a scope
    Cpu,
    /// The first single calls besides: 50 ns a scope
    Calls,
}
