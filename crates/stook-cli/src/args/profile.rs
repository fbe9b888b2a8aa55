//! `stook profile`: what was typed.

use clap::Args as ClapArgs;

/// Show where a command spends its time
#[derive(Debug, ClapArgs)]
pub(crate) struct ProfileArgs {}
