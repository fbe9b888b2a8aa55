//! `plan`, `build` and `commit`: an archive written part by part, anywhere.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{ComparedArgs, CompressionArgs, PATTERNS, WriteArgs};

#[derive(Debug, ClapArgs)]
#[command(after_long_help = PATTERNS)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) compression: CompressionArgs,
    #[command(flatten)]
    pub(crate) compared: ComparedArgs,
    /// Memory for members that are not sorted yet; more are sorted in files (default: 128MiB)
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BuildArgs {
    /// The file of the part, as `stook plan` printed it
    pub(crate) part: PathBuf,
    /// The tree, as this machine sees it
    pub(crate) source: PathBuf,
    /// Where the volume goes, on the archive's file system (default: the folder of the part)
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,
    /// The plan was made with --follow-symlinks
    #[arg(long)]
    pub(crate) follow_symlinks: bool,
    /// Number of workers (default: as many as the storage asks for, up to 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CommitArgs {
    /// The archive's folder
    pub(crate) archive: PathBuf,
    /// A folder that parts were built in with `--into`; may be repeated
    #[arg(long, value_name = "FOLDER", conflicts_with = "abandon")]
    pub(crate) built_in: Vec<PathBuf>,
    /// Count files that failed as failed, and finish; without it they go into another part
    #[arg(long, conflicts_with = "abandon")]
    pub(crate) record_failures: bool,
    /// Compare built volumes by their length alone; without it each is read again, and must have the MD5 it was built with, if it was built with one
    #[arg(long, conflicts_with = "abandon")]
    pub(crate) no_verify: bool,
    /// Number of workers that read built volumes (default: up to 8)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "abandon")]
    pub(crate) jobs: Option<u16>,
    /// Give up the plan: remove its parts and what was built of them, and let others write the archive again
    #[arg(long)]
    pub(crate) abandon: bool,
}
