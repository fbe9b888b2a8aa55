//! `stook bench report`: what was typed.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Turn results into an HTML page
///
/// RESULTS are files that `--save` of the other benches wrote. The page needs nothing but itself: figures, tables and the raw
/// samples are in it. Runs of the same kind are also put side by side. A page that stook made before is replaced; another
/// file of that name is not.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    /// Files written by `--save`
    #[arg(required = true, value_name = "RESULTS")]
    pub(crate) results: Vec<PathBuf>,
    /// The page to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Write each figure as an SVG into this folder, too; figures of the same names are replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
}
