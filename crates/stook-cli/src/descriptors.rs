//! Whether the process may open as many files as a command needs: said once, before anything is begun.
//!
//! Each command gets by with this many by using fewer workers. With fewer still it would fail at file after file.

use crate::args::Command;
use crate::exit::CliError;

/// What each command that opens files gets by with; 24 were enough for all of them in tests, plus what a caller leaves open.
const NEEDED: usize = 32;

/// # Errors
/// If the process may not open so many.
pub(crate) fn require(command: &Command) -> Result<(), CliError> {
    let opens_nothing = matches!(
        command,
        Command::Completions(_) | Command::Man(_) | Command::Reference
    );
    let found = stook_sys::most_open_files();
    if opens_nothing || found >= NEEDED {
        return Ok(());
    }
    Err(CliError::FewDescriptors {
        found,
        needed: NEEDED,
    })
}
