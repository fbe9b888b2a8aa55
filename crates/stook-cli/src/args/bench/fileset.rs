//! `stook bench fileset`: what was typed.

use clap::Args as ClapArgs;

/// Make a tree of small files, the same everywhere for a seed
#[derive(Debug, ClapArgs)]
pub(crate) struct FilesetArgs {}
