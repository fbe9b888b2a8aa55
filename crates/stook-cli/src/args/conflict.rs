//! Options of every command may stand in front of the command or behind it, and clap compares only those that stand
//! on the same side. So conflicts with them are listed here.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::{Args, Command, ListArgs, WalkArgs};

impl Args {
    /// Returns what was typed, if it goes together.
    ///
    /// # Errors
    /// A conflict, as clap words it.
    pub(crate) fn checked(self) -> Result<Self, clap::Error> {
        match self.conflict() {
            None => Ok(self),
            Some([option, other]) => Err(Self::command().error(
                ErrorKind::ArgumentConflict,
                format!("the argument '{option}' cannot be used with '{other}'"),
            )),
        }
    }

    fn conflict(&self) -> Option<[&'static str; 2]> {
        if self.common.quiet && self.common.verbose > 0 {
            return Some(["--quiet", "--verbose"]);
        }
        if !self.common.json {
            return None;
        }
        match &self.command {
            Command::List(ListArgs { null: true, .. })
            | Command::Walk(WalkArgs { null: true, .. }) => Some(["--null", "--json"]),
            Command::Walk(WalkArgs {
                format: Some(_), ..
            }) => Some(["--format", "--json"]),
            _ => None,
        }
    }
}
