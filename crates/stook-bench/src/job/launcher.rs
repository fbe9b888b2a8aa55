//! Starts a command from a process that holds next to nothing.
//!
//! The kernel counts the peak of a command from its fork on, so a bench with 20 MB of samples would show up in the figures
//! of every small command. A launcher is a program that calls [`launch`] at the begin of its `main`, before it allocates:
//! `stook` itself, run once more. It forks the command, waits for it, and writes what the kernel counted.
//!
//! ```text
//! bench ──starts──> launcher ──forks──> command        stdin of the launcher: a file in memory, for the report
//!   ^                  └──report: times, peak, how it ended──┘
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stook_sys::{Child, Ended, thread_run_delay};

/// The first argument of a program that is to be a launcher; the command follows.
const ARGUMENT: &str = "--launch-measured-command";
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();

/// Has commands that are measured started by this program from now on, whose `main` calls [`launch`]. Without one the
/// caller starts them, and their peaks are at least what it holds itself.
pub fn set_launcher(program: PathBuf) {
    // A second one would be the same program.
    let _ = LAUNCHER.set(program);
}

/// Acts as a launcher if the arguments of the program say so; the program is to end with what is returned.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let command: Vec<OsString> = arguments.collect();
    Some(match measured(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// What the launcher reports.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// The error number of a command that could not be started.
    NotStarted(i32),
    Ended(Figures),
}

/// What a command took, as the kernel counted it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) real: Duration,
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) peak_bytes: u64,
    pub(super) read_bytes: u64,
    pub(super) run_delay: Option<Duration>,
    pub(super) raw_status: i32,
}

/// Returns the command that has another one launched, and the file into which it will report; None without a launcher.
pub(super) fn launching(command: &[OsString]) -> io::Result<Option<(Command, File)>> {
    let Some(launcher) = LAUNCHER.get() else {
        return Ok(None);
    };
    let report = stook_sys::memory_file().map_err(io::Error::other)?;
    let mut launching = Command::new(launcher);
    launching
        .arg(ARGUMENT)
        .args(command)
        .stdin(report.try_clone()?);
    Ok(Some((launching, report)))
}

impl Report {
    /// Reads what a launcher that has ended wrote; None if it was killed before.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        stook_sys::append_at(file, &mut bytes, len, 0)?;
        Ok(serde_json::from_slice(&bytes).ok())
    }
}

impl Figures {
    pub(super) fn of(ended: &Ended, real: Duration, run_delay: Option<Duration>) -> Self {
        Self {
            real,
            user: ended.user,
            system: ended.system,
            peak_bytes: ended.peak_bytes,
            read_bytes: ended.read_bytes,
            run_delay,
            raw_status: ended.raw_status,
        }
    }
}

fn measured(command: &[OsString]) -> io::Result<()> {
    let report = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let started = Instant::now();
    let report_of_run = match stook_sys::start_and_ignore_signals(&mut command) {
        Err(error) => Report::NotStarted(error.raw_os_error().unwrap_or(0)),
        Ok(child) => {
            let child = Child::watch(child.id()).map_err(io::Error::other)?;
            let (ended, run_delay) = wait(&child)?;
            Report::Ended(Figures::of(&ended, started.elapsed(), run_delay))
        }
    };
    Ok(serde_json::to_writer(report, &report_of_run)?)
}

/// Waits for the end; returns, too, how long the command waited for a processor, and then this thread to see its end.
fn wait(child: &Child) -> io::Result<(Ended, Option<Duration>)> {
    loop {
        if let Some((ended, run_delay)) =
            wait_once(child, LONGEST_WAIT).map_err(io::Error::other)?
        {
            return Ok((ended, run_delay));
        }
    }
}

/// Waits for so long for the end, which comes with the time that was waited for a processor: by the command, and by this
/// thread to see its end, for until then nothing was blocked.
pub(super) fn wait_once(
    child: &Child,
    longest: Duration,
) -> Result<Option<(Ended, Option<Duration>)>, stook_sys::SysError> {
    let before = thread_run_delay();
    let ended = child.wait(longest)?;
    Ok(ended.map(|ended| {
        let own = thread_run_delay().zip(before);
        let own = own.map(|(now, before)| now.saturating_sub(before));
        let run_delay = ended.run_delay.zip(own).map(|(delay, own)| delay + own);
        (ended, run_delay)
    }))
}
