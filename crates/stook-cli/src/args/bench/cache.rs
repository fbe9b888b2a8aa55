//! `stook bench cache`: what was typed.

use clap::Args as ClapArgs;

/// Run a command with cold, warm and hot caches
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchCacheArgs {}
