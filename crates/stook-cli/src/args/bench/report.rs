//! `stook bench report`: what was typed.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Make one page out of results
///
/// RESULTS are files that `--save` of the other benches wrote. The page needs nothing but itself: figures, tables and the raw
/// samples are in it. Runs of the same kind are also put side by side. A page that stook made before is replaced; another
/// file of that name is not.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    /// Files of results
    #[arg(required = true, value_name = "RESULTS")]
    pub(crate) results: Vec<PathBuf>,
    /// Where the page goes
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Write each figure as an SVG into this folder, too; figures of the same names are replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
}
