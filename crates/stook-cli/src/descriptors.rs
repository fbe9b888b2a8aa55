//! Whether the process may open as many files as a command needs: said once, before anything is begun.
//!
//! Each command gets by with this many by using fewer workers. With fewer still it would fail at file after file.

use crate::args::Command;
use crate::exit::CliError;

/// What a command gets by with that has to do with archives; 24 were enough for all of them in tests, plus what a caller
/// leaves open.
const FOR_ARCHIVES: usize = 32;

/// What those get by with that only go through trees.
const FOR_TREES: usize = 20;

/// # Errors
/// If the process may not open so many.
pub(crate) fn require(command: &Command) -> Result<(), CliError> {
    let needed = match command {
        Command::Completions(_) | Command::Man(_) | Command::Reference => 0,
        command if command.has_archive() => FOR_ARCHIVES,
        _ => FOR_TREES,
    };
    let found = stook_sys::most_open_files();
    if found >= needed {
        return Ok(());
    }
    Err(CliError::FewDescriptors { found, needed })
}
