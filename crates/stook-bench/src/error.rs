//! What ends a bench early.

use std::path::PathBuf;

use stook_sys::SysError;

use crate::remedy::Remedy;

/// Why a bench ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] stook_store::StoreError),
    /// A command could not be started.
    #[error("cannot run `{command}`: {}", stook_sys::cause(.source))]
    Start {
        /// The command, as the user would type it.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// A command failed in one of its runs.
    #[error("`{command}` failed {when}: {ending}{}", quoted(.stderr))]
    Command {
        /// The command, as the user would type it.
        command: String,
        /// In which run, such as `in round 2, cold`.
        when: String,
        /// How it ended, such as `exit status 1`.
        ending: String,
        /// The end of what it wrote on stderr.
        stderr: String,
    },
    /// Something else failed in one of the runs.
    #[error("{when}: {source}")]
    During {
        /// In which run, such as `in round 2, untar on a with stook`.
        when: String,
        /// What.
        source: Box<BenchError>,
    },
    /// A program that is needed is not there, or may not do what it must.
    #[error("{what}")]
    Missing {
        /// What is missing, and for what.
        what: String,
        /// What to install or to set.
        remedy: Remedy,
    },
    /// What was asked for makes no sense.
    #[error("{what}")]
    Usage {
        /// Why not.
        what: String,
        /// What would make sense, if that is known.
        remedy: Option<Remedy>,
    },
    /// A tool has no command for what every tool must do.
    #[error("the tool `{tool}` has no command for {operation}")]
    NoToolCommand {
        /// The tool.
        tool: String,
        /// The operation, as the user would type it.
        operation: &'static str,
    },
    /// The measurement cannot be made as it was asked for.
    #[error("{what}")]
    Refused {
        /// Why not.
        what: String,
        /// What would help, if anything is known to.
        remedy: Option<Remedy>,
    },
    /// A file of results cannot be read.
    #[error("cannot read `{}`, line {line}: {why}", stook_sys::display_path(.path))]
    Results {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A file of results was written by a newer version.
    #[error("cannot read `{}`: its format is {found}, and this version knows up to {known}", stook_sys::display_path(.path))]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that is known.
        known: u32,
    },
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// Returns what would help, if anything is known to.
    pub fn remedy(&self) -> Option<&Remedy> {
        match self {
            Self::During { source, .. } => source.remedy(),
            Self::Missing { remedy, .. } => Some(remedy),
            Self::Usage { remedy, .. } | Self::Refused { remedy, .. } => remedy.as_ref(),
            _ => None,
        }
    }

    /// Returns that what was asked for makes no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::Usage {
            what: what.into(),
            remedy: None,
        }
    }

    /// Returns the same where it is known what would make sense.
    pub(crate) fn usage_with(remedy: Remedy, what: impl Into<String>) -> Self {
        Self::Usage {
            what: what.into(),
            remedy: Some(remedy),
        }
    }

    /// Returns that there is nothing to measure.
    pub(crate) fn no_rounds() -> Self {
        Self::usage_with(Remedy::AskForRounds, "zero rounds measure nothing")
    }

    /// Returns that the measurement cannot be made, where nothing is known to help.
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            remedy: None,
        }
    }

    /// Returns that the measurement cannot be made as it was asked for.
    pub(crate) fn refused_with(remedy: Remedy, what: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            remedy: Some(remedy),
        }
    }
}

/// The lines of a command's stderr below the error, or nothing.
fn quoted(stderr: &str) -> String {
    let lines = stderr.trim_end().lines();
    lines.map(|line| format!("\n  {line}")).collect()
}
