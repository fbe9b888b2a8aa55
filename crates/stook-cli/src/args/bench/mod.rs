//! `stook bench`: what was typed.

mod cache;
mod fileset;
mod fs;
mod pair;
mod report;
mod update;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

pub(crate) use cache::BenchCacheArgs;
pub(crate) use fileset::FilesetArgs;
pub(crate) use fs::{BenchFsArgs, PhaseName, ToolName};
pub(crate) use pair::BenchPairArgs;
pub(crate) use report::ReportArgs;
pub(crate) use update::BenchUpdateArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Fileset(FilesetArgs),
    Fs(BenchFsArgs),
    Cache(BenchCacheArgs),
    Update(BenchUpdateArgs),
    Report(ReportArgs),
    Pair(BenchPairArgs),
}

/// Where samples go besides the tables; with `--json` they are printed instead of tables.
#[derive(Debug, ClapArgs)]
pub(crate) struct SaveArgs {
    /// Write every sample to this new file at once, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
}
