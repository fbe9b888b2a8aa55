//! Whether the program was started with a stdout that can be written.
//!
//! Rust opens `/dev/null` before `main` for each standard descriptor that is closed, so that no file gets its number,
//! and takes what cannot be written for written. Neither leaves a trace; so this looks earlier, when the C runtime
//! calls constructors.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::stdio;

use crate::{Context, SysError, open_read_write};

static IS_UNWRITABLE: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: F_GETFL takes no argument and only asks; a number that is no descriptor is an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    let is_unwritable = flags == -1 || flags & libc::O_ACCMODE == libc::O_RDONLY;
    IS_UNWRITABLE.store(is_unwritable, Ordering::Relaxed);
}

// SAFETY: the section holds addresses of functions that are called once each before `main`; `look` ignores the
// arguments that they get, does not unwind, and needs nothing of the runtime of Rust.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Returns the width of the terminal that stdout is; None if it is none, or does not say.
pub fn stdout_columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(size.ws_col).filter(|&columns| columns > 0)
}

/// Goes on without a terminal: in a session of its own, in the root directory, with `/dev/null` in place of the standard
/// streams.
///
/// # Errors
/// The operation "open" or "go to", with the path; of a process that leads a group, "leave the session".
pub fn leave_terminal() -> Result<(), SysError> {
    rustix::process::setsid().context("leave the session", "/")?;
    rustix::process::chdir("/").context("go to", "/")?;
    let null = open_read_write(Path::new("/dev/null"))?;
    stdio::dup2_stdin(&null).context("open", "/dev/null")?;
    stdio::dup2_stdout(&null).context("open", "/dev/null")?;
    stdio::dup2_stderr(&null).context("open", "/dev/null")
}

/// Returns true if stdout was closed, or open for reading only, when the program began.
pub fn is_stdout_unwritable() -> bool {
    IS_UNWRITABLE.load(Ordering::Relaxed)
}
