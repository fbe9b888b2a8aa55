//! `stook bench update`: what was typed.

use clap::Args as ClapArgs;

/// Compare programs that archive and update a tree
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchUpdateArgs {}
