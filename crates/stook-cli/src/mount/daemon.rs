//! The process that serves a mount after the command has ended.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use stook_sys::{Context, leave_terminal};

use super::helper;
use crate::args::Common;
use crate::exit::{CliError, Ending};
use crate::output;

/// What the process is called that serves a mount: it is started by that name.
pub(crate) const CHILD_NAME: &str = "stook-mount";

/// What it says once it is mounted.
const MOUNTED: &str = "mounted\n";

/// Returns true in that process.
pub(crate) fn is_child() -> bool {
    let program = std::env::args_os().next().unwrap_or_default();
    Path::new(&program).file_name() == Some(CHILD_NAME.as_ref())
}

/// Starts it with the words of this process, and waits until it has mounted, or failed: then it has said why.
pub(crate) fn start(common: &Common) -> Result<Ending, CliError> {
    let words = helper::words(std::env::args_os());
    let program = "/proc/self/exe";
    let mut child = Command::new(program)
        .arg0(CHILD_NAME)
        .args(words.iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("run", program)?;
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        // What cannot be read was not said.
        let _ = stdout.read_to_string(&mut said);
    }
    if said == MOUNTED {
        if common.timings.is_some() {
            output::message("the server of the mount records its time; `stook talk` prints it");
        }
        return Ok(Ending::Done);
    }
    let status = child.wait().context("wait for", program)?;
    Ok(ending_of(status.code()))
}

fn ending_of(status: Option<i32>) -> Ending {
    let endings = [Ending::Usage, Ending::Damage, Ending::Interrupted];
    let is_it = |ending: &Ending| Some(i32::from(ending.status())) == status;
    endings.into_iter().find(is_it).unwrap_or(Ending::Failed)
}

/// Lets the command end, and goes on without it and its terminal.
pub(crate) fn say_mounted() -> Result<(), CliError> {
    let mut stdout = std::io::stdout();
    // A command that was ended does not want to know.
    let _ = stdout.write_all(MOUNTED.as_bytes());
    let _ = stdout.flush();
    Ok(leave_terminal()?)
}
