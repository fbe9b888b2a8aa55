//! What was typed. Help, man pages, completions and `docs/commands.md` all come from here.

#![expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user types"
)]

mod bench;
mod conflict;
mod patterns;
mod profile;
mod walk;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::Styles;
use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(crate) use bench::{
    BenchArgs, BenchCacheArgs, BenchCommand, BenchFsArgs, BenchUpdateArgs, FilesetArgs, PhaseName,
    ReportArgs, SaveArgs, ToolName,
};
pub(crate) use patterns::{FilterArgs, PATTERNS};
pub(crate) use profile::{CacheArg, ProfileArgs};
pub(crate) use walk::{KindLetter, WalkArgs};

/// How every command ends.
pub(crate) const EXIT_STATUS: &str = "\
Exit status:\n\
0 done, 1 failed (or `diff --exit-code` found differences), 2 wrong usage, 3 finished but some files failed (each is \
named) or stay where `remove --archived-in` should have removed them, 4 damage was found, 130 interrupted.";

/// Keep trees of millions of small files as a few big ones
///
/// stook archives a tree into plain tar volumes with an SQLite index, updates the archive in seconds,
/// checks it, and brings files back. zstash reads what stook writes, and the other way round.
#[derive(Debug, Parser)]
#[command(name = "stook", version, after_long_help = EXIT_STATUS, styles = Styles::plain(), max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of every command.
#[derive(Debug, ClapArgs)]
pub(crate) struct Common {
    /// Show how long each phase took; twice: name every file that is done; three times: trace decisions
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print nothing but data and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Show no progress bar
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    /// Print data as JSON, one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Measure where the time goes and print it at the end: `tree`, `cpu`, `json`, `folded`, `svg` or `trace`
    #[arg(long, global = true, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "tree")]
    pub(crate) timings: Option<TimingsFormat>,
    /// Write the timings to a file instead of stderr
    #[arg(long, global = true, value_name = "FILE", requires = "timings")]
    pub(crate) timings_to: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TimingsFormat {
    /// An indented table
    Tree,
    /// The table with CPU time, and the time blocked: slower, as each scope asks the system twice
    Cpu,
    /// One JSON object
    Json,
    /// Folded stacks with own time in microseconds, for flame-graph programs
    Folded,
    /// A flame graph of the folded stacks, for a browser
    Svg,
    /// The first 20,000 calls of each thread, for Perfetto or `chrome://tracing`
    Trace,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Archive a tree
    ///
    /// The folder ARCHIVE is made; it gets the volumes 000000.tar, 000001.tar and so on, and index.db.
    /// A run that was interrupted goes on where it was when the same command is given again.
    Create(WriteArgs),
    /// Archive what has changed since
    ///
    /// New and changed files go into new volumes; older versions stay in the archive. A file counts as
    /// changed if its size, its kind, or its modification time to the microsecond differs. Names that
    /// are gone are recorded as deleted. An update stops before it writes anything if the tree is empty,
    /// if less than 1 % of its names are in the archive, or if more than half of 100 or more names are
    /// gone; `--deletions` says what is meant then. With --include and --exclude only the names count
    /// that they select.
    Update(UpdateArgs),
    /// Show how a tree differs from an archive
    Diff(DiffArgs),
    /// Look for damage in an archive
    ///
    /// Checks the whole index, then reads every byte of the volumes once: the MD5 of every file, every header
    /// against the index, and all that lies between. Ends with status 4 if anything is not as it was written,
    /// else with 3 if a file was not verified because of its holes.
    Check(CheckArgs),
    /// List what an archive holds
    List(ListArgs),
    /// Print one file of an archive
    Cat(CatArgs),
    /// Bring files back from an archive
    ///
    /// Files that are there already with the same size and time are left alone, so an extraction that
    /// was interrupted goes on when it is started again. Nothing is written outside of the target, and nothing into the
    /// archive: a target in it, or in another archive, is refused, and where it lies in the target, a member that would
    /// get there is a failure.
    Extract(ExtractArgs),
    /// Rebuild index.db from the volumes
    ///
    /// What cannot be read is named, and all else is indexed. Ends with status 4 if anything is damaged, else with 3 if
    /// the MD5 of a file was not taken because of its holes: the file then has that of the old index, or is left out.
    Reindex(ReindexArgs),
    Walk(WalkArgs),
    /// Copy a tree, or one file
    ///
    /// DEST becomes a copy of TREE: `stook copy a b` makes b, never b/a. Kept are content and holes, times, modes, owners
    /// (by the superuser), attributes and access control lists, symbolic and hard links, fifos and devices; not sockets,
    /// nor times of last access. Attributes of links, fifos and devices belong to the superuser, and only the superuser
    /// copies them. A user who cannot give a copy the group of its original gives group and others only what both have
    /// there.
    ///
    /// TREE and DEST may be symbolic links: what they lead to is meant, a tree or a file; a DEST that leads nowhere is
    /// refused. Below them no link is followed, and what is mounted there is copied, too. A file gets its time when it is complete. What cannot be copied is named, the rest is
    /// copied, and the status is 3.
    ///
    /// Nothing is copied into an archive but another one, such as its newer state with --update: a DEST that is one, or lies
    /// in one, is refused, and one below DEST stays as it is, which is a failure.
    Copy(CopyArgs),
    /// Remove trees
    ///
    /// Everything below them goes, and they themselves. Links are removed, not followed, and nothing outside of a
    /// tree is touched, whatever others do to it meanwhile. What cannot be removed is named, the rest goes, and the
    /// status is 3. A tree that is not there is no failure.
    ///
    /// The root, the working directory and all above it, mount points, and archives are refused, and then nothing is removed.
    /// An archive in a tree stays, and is named as a failure. `--with-archives` removes both.
    Remove(RemoveArgs),
    Bench(BenchArgs),
    Profile(ProfileArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Write man pages into a folder
    Man(ManArgs),
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

impl Command {
    /// Returns the name in the header of `--json`; `None` if the command prints no such lines, or results of a bench,
    /// which have a header of their own.
    pub(crate) fn name_in_json(&self) -> Option<&'static str> {
        Some(match self {
            Self::Create(_) => "create",
            Self::Update(_) => "update",
            Self::Diff(_) => "diff",
            Self::Check(_) => "check",
            Self::List(_) => "list",
            Self::Extract(_) => "extract",
            Self::Reindex(_) => "reindex",
            Self::Walk(_) => "walk",
            Self::Copy(_) => "copy",
            Self::Remove(_) => "remove",
            Self::Profile(_) => "profile",
            Self::Bench(args) => match args.command {
                BenchCommand::Fileset(_) => "bench fileset",
                BenchCommand::Report(_) => "bench report",
                BenchCommand::Fs(_) | BenchCommand::Cache(_) | BenchCommand::Update(_) => {
                    return None;
                }
            },
            Self::Cat(_) | Self::Completions(_) | Self::Man(_) | Self::Reference => return None,
        })
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct WriteArgs {
    /// The tree to archive
    pub(crate) source: PathBuf,
    /// The archive's folder
    pub(crate) archive: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Begin a new volume before one gets longer than this (default: 256GiB, or as created)
    #[arg(long, value_name = "SIZE")]
    pub(crate) volume_size: Option<String>,
    /// Archive what symbolic links lead to instead of the links
    #[arg(long)]
    pub(crate) follow_symlinks: bool,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Number of workers (default: as many as the storage asks for, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Do not take the MD5 of whole volumes
    #[arg(long)]
    pub(crate) no_volume_md5: bool,
    /// Archive every directory with its mode and times (the default, except with --compat zstash)
    #[arg(long, overrides_with = "no_directories")]
    pub(crate) directories: bool,
    /// Archive only empty directories
    #[arg(long)]
    pub(crate) no_directories: bool,
    /// Take the write permission from finished volumes (the default)
    #[arg(long, overrides_with = "no_read_only_volumes")]
    pub(crate) read_only_volumes: bool,
    /// Leave finished volumes writable
    #[arg(long)]
    pub(crate) no_read_only_volumes: bool,
    /// Leave out extended attributes and access control lists
    #[arg(long)]
    pub(crate) no_xattrs: bool,
    /// Create the archive in a folder that holds other files, too; they are left alone
    ///
    /// Without it such a folder is refused, except with --compat zstash. A file that stook did not make is never removed or
    /// changed, whatever its name. `update` leaves other files alone in any case.
    #[arg(long)]
    pub(crate) allow_other_files: bool,
    /// Write volumes byte for byte as another program does
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compat: Option<Compat>,
    /// What becomes of names that are gone from the tree (default: record, unless too many are gone; with --compat
    /// zstash: keep)
    #[arg(long, value_name = "WHAT")]
    pub(crate) deletions: Option<DeletionsArg>,
    /// Make what is written durable after this many bytes, for an interrupted run to go on from (default: 1GiB)
    #[arg(long, value_name = "SIZE")]
    pub(crate) checkpoint_size: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Compat {
    /// zstash 1.6: hard links as such, no attributes, holes filled, only empty directories
    Zstash,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DeletionsArg {
    /// Record them as deleted, however many they are
    Record,
    /// Record no deletions: they stay in the newest state
    Keep,
    /// Stop before anything is written if there are any
    Refuse,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    /// Compare the content of files whose size and time are unchanged
    #[arg(long)]
    pub(crate) checksum: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct DiffArgs {
    /// The tree to compare
    pub(crate) source: PathBuf,
    /// The archive's folder
    pub(crate) archive: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Compare the content of files whose size and time are unchanged
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Compare what symbolic links lead to instead of the links
    #[arg(long)]
    pub(crate) follow_symlinks: bool,
    /// Do not compare directories that are not empty
    #[arg(long)]
    pub(crate) no_directories: bool,
    /// End with status 1 if anything differs, and with 3 if anything could not be looked at
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Number of workers (default: as many as the storage asks for, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct CheckArgs {
    /// The archive's folder
    pub(crate) archive: PathBuf,
    /// Check only members that match, and those in directories that match
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// Take the MD5 of every whole volume, too
    #[arg(long, conflicts_with = "patterns")]
    pub(crate) volumes: bool,
    #[command(flatten)]
    pub(crate) holes: HoleArgs,
    /// Number of workers (default: as many as the storage asks for, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HoleArgs {
    /// Take the MD5 of a sparse file only if its holes have no more bytes than this (default: 1TiB, half an hour of work)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_hole: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct ListArgs {
    /// The archive's folder
    pub(crate) archive: PathBuf,
    /// List only members that match, and those in directories that match
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// Show size, time, MD5, volume and offset, too
    #[arg(short, long)]
    pub(crate) long: bool,
    /// List older versions and deleted files, too
    #[arg(short, long)]
    pub(crate) all: bool,
    /// End names with NUL instead of a line break, and escape nothing
    #[arg(short = '0', long, conflicts_with = "long")]
    pub(crate) null: bool,
    /// List the runs that wrote the archive, and what each added and deleted, instead of its members
    ///
    /// Entries that belong to no run were added by zstash, or by runs that `reindex` could not recover.
    #[arg(long, conflicts_with_all = ["patterns", "all", "null", "as_of"])]
    pub(crate) runs: bool,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AsOfArgs {
    /// The state after a run (its number) or at a time (as in 2026-11-21 or 2026-11-21T18:30, UTC)
    #[arg(long, value_name = "RUN|TIME")]
    pub(crate) as_of: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CatArgs {
    /// The archive's folder
    pub(crate) archive: PathBuf,
    /// Path of the file in the tree
    pub(crate) path: OsString,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct ExtractArgs {
    /// The archive's folder
    pub(crate) archive: PathBuf,
    /// Extract only members that match, and those in directories that match
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// The folder to extract into; it is made
    #[arg(long, value_name = "DIR")]
    pub(crate) into: PathBuf,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    /// Leave files alone that are there and differ
    #[arg(long)]
    pub(crate) no_overwrite: bool,
    /// As the superuser, bring back set-id bits, capabilities and devices
    #[arg(long)]
    pub(crate) same_permissions: bool,
    /// Leave out extended attributes and access control lists
    #[arg(long)]
    pub(crate) no_xattrs: bool,
    /// Number of workers (default: as many as the storage asks for, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReindexArgs {
    /// The archive's folder
    pub(crate) archive: PathBuf,
    #[command(flatten)]
    pub(crate) holes: HoleArgs,
    /// Number of workers (default: as many as the storage asks for, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct CopyArgs {
    /// The tree to copy
    pub(crate) tree: PathBuf,
    /// What becomes its copy; what is there already is refused without --update
    pub(crate) dest: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Copy what differs from the copy that is there: in kind, size or time. What only the copy has stays
    ///
    /// So a copy that was interrupted goes on, and what it left under a name of its own is removed. A file is replaced once
    /// its new version is complete. Owners, modes, access control lists and attributes are set right; at every moment a
    /// copy can be opened only by users that its old or its new rights let in. A directory takes the place of anything else, and anything else
    /// that of an empty directory.
    #[arg(long)]
    pub(crate) update: bool,
    /// At the end, compare every file with its copy, byte by byte, and owners, modes, lists and attributes of everything
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) verify: bool,
    /// Print what would be copied, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave out what is mounted below the tree
    #[arg(long)]
    pub(crate) one_file_system: bool,
    /// Count and time the system calls, and print them as `strace -c` does
    #[arg(long)]
    pub(crate) syscalls: bool,
    /// Number of workers (default: as many as the storage asks for, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct RemoveArgs {
    /// What to remove
    #[arg(required = true)]
    pub(crate) trees: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Empty the trees, and keep them themselves
    #[arg(long)]
    pub(crate) keep_root: bool,
    /// Leave what is mounted below a tree (the default)
    #[arg(long, overrides_with = "no_one_file_system")]
    pub(crate) one_file_system: bool,
    /// Remove what is mounted below a tree, too
    #[arg(long, overrides_with = "one_file_system")]
    pub(crate) no_one_file_system: bool,
    /// Give directories the permissions that it takes to empty them
    #[arg(long)]
    pub(crate) force_chmod: bool,
    /// Remove archives, too: directories with an index.db and volumes
    #[arg(long)]
    pub(crate) with_archives: bool,
    /// Do not refuse the root, nor the working directory
    #[arg(long)]
    pub(crate) no_preserve_root: bool,
    /// Remove only what this archive of the tree holds with the same size, time and MD5, in volumes that passed a check
    ///
    /// A volume that has not passed one is checked now. Directories go in which nothing is left. What stays is printed
    /// with the reason: `new` is not in the archive, `changed` is another version, `changing` changed meanwhile,
    /// `unchecked` is in a volume that is damaged or missing, `special` is a fifo, a socket or a device, `archive` is
    /// the archive itself, or another one. A file that takes the place of another one meanwhile stays. If anything but the
    /// archive stays that patterns do not exclude, or would stay, the status is 3.
    #[arg(long, value_name = "ARCHIVE", conflicts_with = "syscalls")]
    pub(crate) archived_in: Option<PathBuf>,
    /// Count and time the system calls, and print them as `strace -c` does
    #[arg(long)]
    pub(crate) syscalls: bool,
    /// Number of workers (default: as many as the storage asks for, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(action = ArgAction::Set)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// The folder, which is made
    pub(crate) folder: PathBuf,
}
