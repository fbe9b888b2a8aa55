//! `stook bench pair`: what was typed.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Run the same work by several programs, interleaved
///
/// What `bench/run.py` measures with. SPEC is JSON, see `docs/bench/pair.md`; samples and a summary are printed as JSON.
#[derive(Debug, ClapArgs)]
#[command(hide = true)]
pub(crate) struct BenchPairArgs {
    /// The file that says what is compared
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
}
