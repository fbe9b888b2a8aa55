//! `stook bench report`: what was typed.

use clap::Args as ClapArgs;

/// Make one page out of results
#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {}
