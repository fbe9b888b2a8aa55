//! What was typed. Help, man pages, completions and `docs/commands.md` all come from here.

#![expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user types"
)]

mod bench;
mod conflict;
mod export;
mod mount;
mod patterns;
mod plan;
mod profile;
mod store;
mod walk;
mod zodb;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::Styles;
use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use stook_archive::ZstdLevel;

pub(crate) use bench::{
    BenchArgs, BenchCacheArgs, BenchCommand, BenchFsArgs, BenchPairArgs, BenchUpdateArgs,
    FilesetArgs, PhaseName, ReportArgs, SaveArgs, ToolName,
};
pub(crate) use export::{ErofsArgs, ExportArgs, ExportCommand, RefsArgs, RefsFormatArg};
pub(crate) use mount::{MountArgs, TalkArgs, TalkCommand, TimersDetailArg, TimersFormatArg};
pub(crate) use patterns::{FilterArgs, PATTERNS};
pub(crate) use plan::{BuildArgs, CommitArgs, PlanArgs};
pub(crate) use profile::{CacheArg, ProfileArgs};
pub(crate) use store::{
    FetchArgs, ProofArg, PullArgs, PushArgs, SendArgs, SourceArgs, StatusArgs, StoreCacheArgs,
};
pub(crate) use walk::{KindLetter, WalkArgs};
pub(crate) use zodb::{ZodbArgs, ZodbCommand, ZodbDataArgs, ZodbReferencesArgs, ZodbReindexArgs};

/// How every command ends.
pub(crate) const EXIT_STATUS: &str = "\
Exit status:\n\
0 done, 1 failed (or `diff --exit-code` found differences), 2 wrong usage, 3 finished but some files failed (each is \
named) or were kept by `remove --archived-in`, 4 damage was found, 75 ended by SIGTERM or SIGUSR1 while sending to a store (the same command goes \
on), 130 interrupted.";

/// Store trees of millions of small files as a few big ones
///
/// stook archives a tree into plain tar volumes with an SQLite index, updates the archive in seconds, checks it, and
/// extracts files from it. It also walks, copies and removes trees, and measures storage. stook and zstash read each
/// other's archives.
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
    /// Show the time of each phase; -vv also names every file, -vvv also traces decisions
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print only data and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Hide the progress bar
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    /// Print JSON, one object per line; docs/json.md describes the objects
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Measure where the time goes, and print it at the end as `tree`, `cpu`, `json`, `folded`, `svg` or `trace`
    #[arg(long, global = true, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "tree")]
    pub(crate) timings: Option<TimingsFormat>,
    /// Write the timings to FILE instead of stderr
    #[arg(long, global = true, value_name = "FILE", requires = "timings")]
    pub(crate) timings_to: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TimingsFormat {
    /// An indented table
    Tree,
    /// The table with CPU time and blocked time; costs two system calls per measurement
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

// The options of a command are made up when it is built: those of one command, unless all are to be described. What its help
// begins with is known before, so it stands here, and neither with its options nor with those it shares with others.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Archive a tree
    ///
    /// Creates the directory ARCHIVE with the volumes 000000.tar, 000001.tar and so on, and index.db.
    /// An interrupted run continues where it stopped when the same command is given again.
    Create(CreateArgs),
    /// Add what has changed in a tree to its archive
    ///
    /// New and changed files go into new volumes; older versions stay in the archive. A file counts as
    /// changed if its size, its kind, or its modification time to the microsecond differs. If only its
    /// mode or owner changed it is counted, and archived again with `--metadata`. Names that
    /// are gone are recorded as deleted. An update stops before it writes anything if the tree is empty,
    /// if less than 1 % of its names are in the archive, or if more than half of 100 or more names are
    /// gone; `--deletions` decides what to do then. With --include and --exclude, only selected names
    /// count.
    Update(UpdateArgs),
    /// Show how a tree differs from an archive
    ///
    /// A line for each entry that is `new`, `changed` (size, kind or time, to the microsecond), `deleted`, or has another
    /// mode, owner or group (`metadata`, with the archived and the present values). An owner is the same with the archived
    /// number or the archived name.
    Diff(DiffArgs),
    /// Check an archive for damage
    ///
    /// Checks the whole index, then reads every byte of the volumes once: the MD5 of every file, every header
    /// against the index, and all that lies between. Ends with status 4 if anything is not as it was written,
    /// else with 3 if a sparse file was not verified because its holes are too large.
    Check(CheckArgs),
    /// List the members of an archive
    ///
    /// Times are in UTC.
    List(ListArgs),
    /// Print the content of one file in an archive
    Cat(CatArgs),
    /// Extract files from an archive
    ///
    /// Files that exist already with the same size and time are left alone, so an interrupted extraction continues when it
    /// is started again. Nothing is written outside of the target directory, and nothing into an archive: a target inside of
    /// an archive is refused, and a member that would be written into the archive itself fails.
    Extract(ExtractArgs),
    /// Mount an archive as a read-only directory
    ///
    /// Nothing is extracted: every file is read from its volume when it is read. What is shown is the state of the moment of
    /// mounting; the archive may be updated meanwhile, and is mounted again to see that. The command ends once it is mounted;
    /// `umount MOUNTPOINT`, or for users `fusermount3 -u MOUNTPOINT`, ends the mount, as does SIGTERM to its process. Needs FUSE, and for users
    /// the program `fusermount3`.
    ///
    /// Called by the name mount.stook, the program takes what mount(8) gives to its helpers, so that fstab can name an archive:
    /// `ARCHIVE MOUNTPOINT stook ro,allow_other 0 0`.
    Mount(MountArgs),
    /// Write a view of an archive for other programs
    ///
    /// They read the volumes themselves; stook is not needed any more. docs/export.md shows how.
    Export(ExportArgs),
    /// Ask the server of a mount
    ///
    /// It answers its user, and root, through a socket in /run/user/UID/stook (of root, /run/stook) or /tmp/stook-UID.
    Talk(TalkArgs),
    /// Rebuild index.db from the volumes
    ///
    /// Damage is reported, and everything that can be read is indexed. Ends with status 4 if anything is damaged, else with
    /// 3 if the MD5 of a sparse file was not computed because its holes are too large: the file then keeps the MD5 of the
    /// old index, or is left out.
    Reindex(ReindexArgs),
    /// Send to the store what it lacks
    ///
    /// Sends the volumes of ARCHIVE that the store does not hold, then index.db, and removes the local volumes that it
    /// has sent once the store has confirmed them, unless --keep-volumes is given. SIGTERM and SIGUSR1 end it with status 75; the same command goes on.
    Push(PushArgs),
    /// Fetch an archive from its store
    ///
    /// Fetches index.db if the store has a later state of it, and the volumes that are not here, each compared with its MD5.
    Pull(PullArgs),
    /// Show which volume is where, and how that is known
    ///
    /// One line for each volume: whether it is here, whether the store holds it, how and when that was proved, and whether
    /// the local one may be deleted. Asks the store if the archive has one. Works while another process writes the archive.
    Status(StatusArgs),
    /// Plan a create or an update whose parts are built anywhere
    ///
    /// Walks the tree, and writes a file for each volume into ARCHIVE/stook.plan: which members go into it. `stook build` makes
    /// the volume of one part, on any machine that sees the tree and the part, and `stook commit` takes all of them into the
    /// archive. The result is that of `stook create`, or of `stook update` if the archive is there.
    ///
    /// Prints the path of each part, a line each. Until it is committed or abandoned, the archive is reserved: `create`, `update`
    /// and `reindex` are refused.
    Plan(PlanArgs),
    /// Build one part of a plan
    ///
    /// Writes the volume and its rows into a folder `built-000003` beside the part, or in the folder that --into names. A part
    /// that was built there already is not built again. Files that failed are named, and the status is 3: `stook commit`
    /// gives them another part.
    Build(BuildArgs),
    /// Take the built parts of a plan into the archive
    ///
    /// All parts must be built. Prints the path of each part that is to be built and committed in addition, with files that
    /// failed or did not fit; the status is 3 then, and the archive stays reserved. A commit that was interrupted goes on when
    /// it is given again.
    Commit(CommitArgs),
    /// Print every entry of a tree, or statistics about them
    ///
    /// Prints one line for the tree itself and for each entry below it, in no particular order and without escaping names. If
    /// TREE is a symbolic link, the directory that it points to is walked.
    ///
    /// In a format, {mtime} is in seconds since 1970 with nine decimals, {mode} is octal, {type} is one of f d l p s c b;
    /// {{ and }} are braces.
    ///
    /// An entry must meet all conditions: --type f --larger-than 1GiB --newer-than 2d --include '*.nc'. They select what is
    /// printed or counted; directories are searched in any case. Entries that their name or type rules out cost no further
    /// system call.
    ///
    /// Sizes are those of the content of regular files, and a file with several names counts once for each of them. The
    /// median of an even number of sizes is the larger of the two in the middle; the standard deviation is
    /// that of all files, not of a sample. An extension is what follows the last dot, up to 14 bytes that are not a number.
    ///
    /// A subtree is worth archiving if it has 1,000 files or more of less than 1 MiB on average. It is listed as a whole,
    /// unless subdirectories that each have at least a twentieth of all files together hold four fifths of it: then these
    /// are listed instead.
    Walk(WalkArgs),
    /// Copy a tree, or one file
    ///
    /// DEST becomes a copy of TREE: `stook copy a b` creates b, never b/a. Content, holes, times, modes, owners (as root),
    /// extended attributes, access control lists, symbolic and hard links, fifos and devices are copied; sockets and access
    /// times are not. Only root can copy the attributes of links, fifos and devices. If a copy cannot get the group of its
    /// original, group and others get only the permissions that both have in the original.
    ///
    /// If TREE or DEST is a symbolic link, its target is used; a dangling DEST is refused. Links below TREE are copied, not
    /// followed, and mounted file systems are copied, too. What cannot be copied is reported, the rest is copied, and the exit
    /// status is 3.
    ///
    /// Nothing is copied into an archive except another archive, such as its newer state with --update: a DEST that is an
    /// archive or inside of one is refused, and an archive below DEST is left as it is, which counts as a failure.
    Copy(CopyArgs),
    /// Remove trees
    ///
    /// Removes the trees and everything below them. Links are removed, not followed, and nothing outside of a tree is
    /// touched, whatever other programs do to it meanwhile. What cannot be removed is reported, the rest is removed, and the
    /// exit status is 3. A tree that does not exist is not an error.
    ///
    /// The root directory, the working directory and its parents, mount points, and archives are refused before anything is
    /// removed. An archive inside of a tree is kept and reported as a failure. `--with-archives` removes both.
    Remove(RemoveArgs),
    /// Measure file systems and commands
    Bench(BenchArgs),
    /// Rebuild, check and explain a ZODB database, Data.fs
    Zodb(ZodbArgs),
    /// Show where a command spends its time
    ///
    /// Runs CMD once to record where its threads run and where they are blocked, and once more to count its system calls;
    /// --on-cpu, --off-cpu and --syscalls select some of this. Prints tables, and writes
    /// flame graphs (SVG, for a browser) and folded stacks into a folder. CMD reads nothing, its output is dropped; if it
    /// fails, the profile is of what ran, and the status is 1. Ctrl-C ends it, and the profile is of what ran, too.
    ///
    /// Needs `perf`, and for system calls `strace`. If one is missing or not allowed, a hint says what
    /// to install or to set; without options the rest is shown, and the exit status is 3.
    Profile(ProfileArgs),
    /// Take zstash's command line
    ///
    /// Everything behind `stook zstash` is read as zstash 1.6 reads it: `stook zstash create --hpss=none .` is `zstash create
    /// --hpss=none .`, with zstash's messages, on archives that both programs read. `stook zstash -h` lists the commands. If the
    /// program is called by the name zstash, that does the same. The exit status is 0, 1 or 2: 1 also if files failed or a
    /// check found damage, where zstash says 0; with `STOOK_ZSTASH_EXIT=0` it is zstash's.
    #[command(disable_help_flag = true)]
    Zstash(ZstashArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Write the man pages into a directory
    Man(ManArgs),
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

impl Command {
    /// Returns true if the command can print JSON: not one whose stdout is the bytes of a file.
    pub(crate) fn has_json(&self) -> bool {
        self.name_in_json().is_some() || matches!(self, Self::Bench(_))
    }

    /// Returns true if the command writes nothing but its output: after an interruption there is nothing to go on with.
    pub(crate) fn only_reads(&self) -> bool {
        use Command::{Cat, Check, Diff, Export, List, Status, Walk};
        matches!(
            self,
            Cat(_) | Check(_) | Diff(_) | Export(_) | List(_) | Status(_) | Walk(_)
        )
    }

    /// Returns true if the command may have an archive open, a bench for instance.
    pub(crate) fn has_archive(&self) -> bool {
        use Command::{Completions, Copy, Man, Reference, Remove, Talk, Walk, Zodb};
        match self {
            Remove(args) => args.archived_in.is_some(),
            Walk(_) | Copy(_) | Talk(_) | Zodb(_) | Completions(_) | Man(_) | Reference => false,
            _ => true,
        }
    }

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
            Self::Push(_) => "push",
            Self::Pull(_) => "pull",
            Self::Status(_) => "status",
            Self::Plan(_) => "plan",
            Self::Build(_) => "build",
            Self::Commit(_) => "commit",
            Self::Walk(_) => "walk",
            Self::Copy(_) => "copy",
            Self::Remove(_) => "remove",
            Self::Profile(_) => "profile",
            Self::Bench(args) => match args.command {
                BenchCommand::Fileset(_) => "bench fileset",
                BenchCommand::Report(_) => "bench report",
                BenchCommand::Fs(_)
                | BenchCommand::Cache(_)
                | BenchCommand::Update(_)
                | BenchCommand::Pair(_) => {
                    return None;
                }
            },
            Self::Export(args) => match &args.command {
                ExportCommand::Erofs(_) => "export erofs",
                // Without a file, stdout is for the references.
                ExportCommand::Refs(args) if args.to.is_some() => "export refs",
                ExportCommand::Refs(_) => return None,
            },
            Self::Zodb(args) => match args.command {
                ZodbCommand::Reindex(_) => "zodb reindex",
                ZodbCommand::Check(_) => "zodb check",
                ZodbCommand::Analyze(_) => "zodb analyze",
                ZodbCommand::References(_) => "zodb references",
            },
            Self::Cat(_)
            | Self::Mount(_)
            | Self::Talk(_)
            | Self::Zstash(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Reference => return None,
        })
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct WriteArgs {
    /// The directory to archive
    pub(crate) source: PathBuf,
    /// The archive: a directory with index.db and volumes
    pub(crate) archive: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Maximum volume size, such as 100GiB (default: 256GiB, or as the archive was created)
    #[arg(long, value_name = "SIZE")]
    pub(crate) volume_size: Option<String>,
    /// Archive what symbolic links point to, instead of the links
    #[arg(long)]
    pub(crate) follow_symlinks: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Number of workers (default: adapts to the storage, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Do not compute the MD5 of whole volumes
    #[arg(long)]
    pub(crate) no_volume_md5: bool,
    /// Archive all directories with mode and times (the default, except with --compat zstash)
    #[arg(long, overrides_with = "no_directories")]
    pub(crate) directories: bool,
    /// Archive only empty directories
    #[arg(long)]
    pub(crate) no_directories: bool,
    /// Make finished volumes read-only (the default)
    #[arg(long, overrides_with = "no_read_only_volumes")]
    pub(crate) read_only_volumes: bool,
    /// Leave finished volumes writable
    #[arg(long)]
    pub(crate) no_read_only_volumes: bool,
    /// Leave out extended attributes and access control lists
    #[arg(long)]
    pub(crate) no_xattrs: bool,
    /// Create the archive in a directory that has other files in it; they are left alone
    ///
    /// Without this option such a directory is refused, except with --compat zstash, and if all of them are logs (names that end in .log, .out or .err). A file that stook did not create is
    /// never removed or changed, whatever its name. `update` always leaves other files alone.
    #[arg(long)]
    pub(crate) allow_other_files: bool,
    /// Write volumes byte for byte like another program
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compat: Option<Compat>,
    /// What to do about names that are gone from the tree (default: record, unless too many are gone; with --compat
    /// zstash: keep)
    #[arg(long, value_name = "WHAT")]
    pub(crate) deletions: Option<DeletionsArg>,
    /// Bytes between two checkpoints, from which an interrupted run continues (default: 1GiB)
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
    /// Keep them in the newest state
    Keep,
    /// Stop before writing anything if there are any
    Refuse,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) compression: CompressionArgs,
    #[command(flatten)]
    pub(crate) send: SendArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) send: SendArgs,
    #[command(flatten)]
    pub(crate) compared: ComparedArgs,
}

// How the volumes of a new archive are stored.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompressionArgs {
    /// Compress volumes with zstd, at this level from 1 to 22 (default: 3)
    ///
    /// Volumes are called 000000.tar.zst then, and `zstd -d` makes plain tar files of them. Any file can be read without the rest. `update` goes on
    /// at the same level. zstash cannot read such an archive. --volume-size counts bytes before compression.
    #[arg(
        long,
        value_name = "LEVEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "3",
        conflicts_with = "compat"
    )]
    pub(crate) zstd: Option<ZstdLevel>,
}

// What counts as changed, besides size, kind and time.
#[derive(Debug, ClapArgs)]
pub(crate) struct ComparedArgs {
    /// Compare the content of files whose size and time are unchanged
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Also archive entries of which only the mode, the owner or the group changed
    ///
    /// Without this option they are only counted. An owner is the same with the archived number or the archived name. Changes of members that only
    /// zstash has written are not seen until the next update has added their attributes to the index.
    #[arg(long)]
    pub(crate) metadata: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct DiffArgs {
    /// The directory to compare
    pub(crate) source: PathBuf,
    /// The archive: a directory with index.db and volumes
    pub(crate) archive: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Compare the content of files whose size and time are unchanged
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Do not compare mode, owner and group
    #[arg(long)]
    pub(crate) no_metadata: bool,
    /// Compare what symbolic links point to, instead of the links
    #[arg(long)]
    pub(crate) follow_symlinks: bool,
    /// Compare only empty directories
    #[arg(long)]
    pub(crate) no_directories: bool,
    /// Exit with status 1 if anything differs, and with 3 if anything could not be compared
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Number of workers (default: adapts to the storage, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct CheckArgs {
    /// The archive: a directory with index.db and volumes, or a URL (http, https, s3, ssh)
    pub(crate) archive: PathBuf,
    /// Check only members that match, and those in directories that match
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// Also verify the MD5 of whole volumes
    #[arg(long, conflicts_with = "patterns")]
    pub(crate) volumes: bool,
    #[command(flatten)]
    pub(crate) holes: HoleArgs,
    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
    /// Number of workers (default: adapts to the storage, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HoleArgs {
    /// Skip the MD5 of sparse files with larger holes than this (default: 1TiB, half an hour of work)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_hole: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct ListArgs {
    /// The archive: a directory with index.db and volumes, or a URL (http, https, s3, ssh)
    pub(crate) archive: PathBuf,
    /// List only members that match, and those in directories that match
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// Also show type and mode, owner and group, size, time (UTC), MD5, volume and offset, and where links point
    ///
    /// The index knows all of it of members that stook wrote. Of others the volumes are read; `?` stands for what neither
    /// tells. A device has its numbers in place of a size.
    #[arg(short, long)]
    pub(crate) long: bool,
    /// Also list older versions and deleted files
    #[arg(short, long)]
    pub(crate) all: bool,
    /// End each name with NUL instead of a line break, and escape nothing
    #[arg(short = '0', long, conflicts_with = "long")]
    pub(crate) null: bool,
    /// List the runs that wrote the archive, with numbers of added and deleted members
    ///
    /// Members without a run were added by zstash, or by runs that `reindex` could not recover. Times are in UTC.
    #[arg(long, conflicts_with_all = ["patterns", "all", "null", "as_of"])]
    pub(crate) runs: bool,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AsOfArgs {
    /// Use the state after this run, or at this time: 2026-11-21 (the end of that day), 2026-11-21T18:30 (both local), or
    /// with an offset such as +01:00 or Z
    #[arg(long, value_name = "RUN|TIME")]
    pub(crate) as_of: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CatArgs {
    /// The archive: a directory with index.db and volumes, or a URL (http, https, s3, ssh)
    pub(crate) archive: PathBuf,
    /// Path of the file in the archived tree
    pub(crate) path: OsString,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct ExtractArgs {
    /// The archive: a directory with index.db and volumes, or a URL (http, https, s3, ssh)
    pub(crate) archive: PathBuf,
    /// Extract only members that match, and those in directories that match
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// The directory to extract into; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) into: PathBuf,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    /// Do not replace existing files that differ
    #[arg(long)]
    pub(crate) no_overwrite: bool,
    /// Restore set-id bits, capabilities and devices (as root)
    #[arg(long)]
    pub(crate) same_permissions: bool,
    /// Leave out extended attributes and access control lists
    #[arg(long)]
    pub(crate) no_xattrs: bool,
    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
    /// Number of workers (default: adapts to the storage, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReindexArgs {
    /// The archive: a directory with index.db and volumes
    pub(crate) archive: PathBuf,
    /// Only add what headers say of members (type, mode, owner, link target) where the index lacks it
    ///
    /// Rows of the index stay as they are. `update` does this for new volumes of zstash by itself.
    #[arg(long, conflicts_with = "max_hole")]
    pub(crate) attributes: bool,
    #[command(flatten)]
    pub(crate) holes: HoleArgs,
    /// Number of workers (default: adapts to the storage, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct CopyArgs {
    /// The tree to copy
    pub(crate) tree: PathBuf,
    /// The copy; must not exist yet, except with --update
    pub(crate) dest: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Update an existing copy: replace what differs in kind, size or time, and keep what only the copy has
    ///
    /// Continues an interrupted copy, and removes its temporary files. A file is replaced only once its new version is
    /// complete. Owners, modes, access control lists and attributes are corrected; at every moment only users with access
    /// under the old or the new permissions can open a copy. A directory replaces anything else; anything else replaces only
    /// an empty directory.
    #[arg(long)]
    pub(crate) update: bool,
    /// Afterwards compare every file with its copy byte by byte, and all owners, modes, access control lists and attributes
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) verify: bool,
    /// Show what would be copied, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not copy other file systems that are mounted below the tree
    #[arg(long)]
    pub(crate) one_file_system: bool,
    /// Count and time system calls, and print a table like that of `strace -c`
    #[arg(long)]
    pub(crate) syscalls: bool,
    /// Number of workers (default: adapts to the storage, up to 128)
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
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Empty the trees, but keep their top directories
    #[arg(long)]
    pub(crate) keep_root: bool,
    /// Do not remove other file systems that are mounted below a tree (the default)
    #[arg(long, overrides_with = "no_one_file_system")]
    pub(crate) one_file_system: bool,
    /// Also remove what is on file systems that are mounted below a tree
    #[arg(long, overrides_with = "one_file_system")]
    pub(crate) no_one_file_system: bool,
    /// Add missing permissions to directories in order to empty them
    #[arg(long)]
    pub(crate) force_chmod: bool,
    /// Also remove archives: directories with an index.db and volumes
    #[arg(long)]
    pub(crate) with_archives: bool,
    /// Allow removing the root directory and the working directory
    #[arg(long)]
    pub(crate) no_preserve_root: bool,
    /// Remove only what this archive holds with the same size, time and MD5, in volumes that passed a check or were read back in their store
    ///
    /// Mode and owner may differ. Volumes that have not passed a check are checked first. Directories are removed once they are empty. What is kept is
    /// printed with the reason: `new` is not in the archive, `changed` is another version, `changing` changed meanwhile,
    /// `unchecked` is in a damaged or missing volume, `special` is a fifo, a socket or a device, `archive` is an archive. If
    /// anything is kept that is neither an archive nor excluded by a pattern, the exit status is 3.
    #[arg(long, value_name = "ARCHIVE", conflicts_with = "syscalls")]
    pub(crate) archived_in: Option<PathBuf>,
    /// Record in the archive what is removed, also if the tree has been moved since the archive was created
    ///
    /// A recorded name is gone from the tree, and still in the newest state of the archive: `update` does not record it as
    /// deleted, and `list`, `extract` and `diff` go on as if it were there. A name that `update` meets in the tree again loses
    /// its record. Without this option it is recorded if the tree is the directory that the archive was created from, or a
    /// part of it: the removal of a copy says nothing of the tree itself.
    #[arg(long, requires = "archived_in", overrides_with = "no_record")]
    pub(crate) record: bool,
    /// Do not record what is removed: the archive may be read-only, or another process may write to it
    ///
    /// The next `update` then finds the names deleted.
    #[arg(long, requires = "archived_in", overrides_with = "record")]
    pub(crate) no_record: bool,
    /// Count and time system calls, and print a table like that of `strace -c`
    #[arg(long)]
    pub(crate) syscalls: bool,
    /// Number of workers (default: adapts to the storage, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ZstashArgs {
    /// A command of zstash, and what belongs to it
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(action = ArgAction::Set)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// The directory; created if missing
    pub(crate) folder: PathBuf,
}
