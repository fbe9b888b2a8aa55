//! `stook bench fs`: what was typed.

use clap::Args as ClapArgs;

/// Compare directories on several file systems as a place for small files
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchFsArgs {}
