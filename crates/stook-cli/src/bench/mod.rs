//! `stook bench`: one file for each bench; what they tell on the way, and where their samples go.

mod cache;
mod fileset;
mod fs;
mod observer;
mod pair;
mod report;
mod results;
mod update;

pub(crate) use observer::BenchObserver;

use crate::args::{BenchArgs, BenchCommand, Common};
use crate::exit::{CliError, Ending};

pub(crate) fn bench(args: &BenchArgs, common: &Common) -> Result<Ending, CliError> {
    // Not its path: a user may run a program from a folder that nobody else may enter.
    stook_bench::set_launcher("/proc/self/exe".into());
    match &args.command {
        BenchCommand::Fileset(args) => fileset::fileset(args, common),
        BenchCommand::Fs(args) => fs::fs(args, common),
        BenchCommand::Cache(args) => cache::cache(args, common),
        BenchCommand::Update(args) => update::update(args, common),
        BenchCommand::Report(args) => report::report(args, common),
        BenchCommand::Pair(args) => pair::measure(args, common),
    }
}
