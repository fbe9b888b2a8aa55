//! A moment in the life of an archive, as the user names it.

use std::fmt;

use stook_index::{Mtime, RunId};

/// A moment that the user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The end of a run.
    Run(RunId),
    /// A time: the end of the last run finished by then.
    Time(Mtime),
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run {run}"),
            Self::Time(time) => write!(f, "{time}"),
        }
    }
}

impl When {
    /// Returns why an archive may not have this state.
    pub(crate) fn absence(&self) -> &'static str {
        match self {
            Self::Run(_) => "it has no such run",
            Self::Time(_) => "no run had finished by then",
        }
    }
}
