//! Runs one command and tells what it took.
//!
//! Wall time runs from just before the command is started until the kernel reports its end. CPU time and memory are
//! those that the kernel counted for the command and for all of its children that it waited for. How long it waited for a
//! processor is known of a command with one thread, and bounded by what the whole machine waited for any other. The command has a process
//! group of its own, so that Ctrl-C ends the bench, which then ends the group; stdin is empty, stdout goes nowhere unless
//! it is kept, and the end of stderr is kept for the message if it fails. Both go to memory, not through pipes: no thread
//! of ours runs while the command is timed, and nothing waits for children that keep a pipe open. What is measured is
//! started by a small process of its own, see `launcher`.

mod launcher;
mod pressure;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use stook_sys::{Child, Context, Ended, Signal, display_bytes, read_up_to_at};

use crate::Observer;
use crate::error::BenchError;
use crate::record::{Sample, WAITED_SHARE};
use launcher::{Figures, Report, launching, wait_once};
pub use launcher::{launch, set_launcher};
use pressure::Pressure;

/// How often the bench looks whether the user wants an end. The end of the command itself is seen at once.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time between asking a command to end and ending it.
const GRACE: Duration = Duration::from_secs(5);
/// Time for a recorder to write what it has.
const WRITING: Duration = Duration::from_secs(60);
/// As much of stderr is kept, from its end.
const KEPT_STDERR: u64 = 4 << 10;
/// As much of stdout is kept, from its beginning.
const KEPT_STDOUT: u64 = 1 << 30;

/// What becomes of a command's stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    /// It goes to `/dev/null`.
    #[default]
    Dropped,
    /// It is kept in memory, up to 1 GiB.
    Kept,
}

/// A command that is to be run.
#[derive(Debug, Clone, Default)]
pub struct Job {
    /// The program, looked for in `PATH` if it has no slash, and its arguments.
    pub command: Vec<OsString>,
    /// Where it runs; here, if None.
    pub directory: Option<PathBuf>,
    /// Variables that are set besides those that the bench has.
    pub environment: Vec<(OsString, OsString)>,
    /// What becomes of stdout.
    pub output: Output,
    /// What becomes of stderr, of which the end is kept in any case.
    pub log: Output,
}

/// How a run went.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Wall time.
    pub real: Duration,
    /// CPU time in user space, with the children's.
    pub user: Duration,
    /// CPU time in the kernel, with the children's.
    pub system: Duration,
    /// The most memory that one of the processes held, in bytes: at least what the launcher held, see [`set_launcher`].
    pub peak_bytes: u64,
    /// Bytes that were read from devices for it; not what a server or another process read for it.
    pub read_bytes: u64,
    /// How long it waited for a processor, or the bench to see its end; None of a command with several threads or children.
    pub run_delay: Option<Duration>,
    /// The share of the run in which some program of the machine waited for a processor.
    pub waited_share: Option<f64>,
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote on stdout, if that is kept.
    pub stdout: Vec<u8>,
    /// The end of what it wrote on stderr.
    pub stderr: String,
    /// All that it wrote on stderr, if that is kept.
    pub log: Vec<u8>,
}

impl Job {
    /// Returns a command, in the words of the user.
    pub fn new<S: Into<OsString>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Returns a command line for the shell, `sh -c`.
    pub fn shell(line: &str) -> Self {
        Self::new(["sh", "-c", line])
    }

    /// Returns the command as a user would type it.
    pub fn text(&self) -> String {
        use std::os::unix::ffi::OsStrExt;
        let words = match self.command.as_slice() {
            // The line is what the user typed.
            [sh, option, line] if sh == "sh" && option == "-c" => std::slice::from_ref(line),
            words => words,
        };
        let words = words.iter().map(|word| display_bytes(word.as_bytes()));
        words.collect::<Vec<String>>().join(" ")
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    /// [`BenchError::Start`] if there is no such program, [`BenchError::Interrupted`] if the user wants an end: then all
    /// of the command's group has been ended. A command that fails is no error here, see [`Job::succeed`].
    pub fn run(&self, observer: &dyn Observer) -> Result<Ran, BenchError> {
        let running = self.start_measured()?;
        loop {
            if let Some((ended, run_delay)) = wait_once(&running.child, LOOK_EVERY)? {
                return running.finish(Ended { run_delay, ..ended });
            }
            if observer.is_stopped() {
                end(&running.child, Signal::TERM, GRACE)?;
                return Err(BenchError::Interrupted);
            }
        }
    }

    /// As [`Job::run`], for a command that records something until it is interrupted, and then writes what it has: after
    /// the longest time, or when the user wants an end, its group gets SIGINT.
    ///
    /// # Errors
    /// [`BenchError::Start`] if there is no such program. An end that the user wants is no error here.
    pub(crate) fn record(
        &self,
        longest: Option<Duration>,
        observer: &dyn Observer,
    ) -> Result<Ran, BenchError> {
        let running = self.start()?;
        match running.wait(longest, observer)? {
            Some(ended) => running.finish(ended),
            None => running.interrupt(),
        }
    }

    /// Starts the command by itself: a recorder, of which only what it writes counts.
    ///
    /// # Errors
    /// [`BenchError::Start`] if there is no such program.
    pub(crate) fn start(&self) -> Result<Running, BenchError> {
        let (program, arguments) = self.words()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        self.start_as(command, None)
    }

    /// Starts the command by way of the launcher, if there is one.
    fn start_measured(&self) -> Result<Running, BenchError> {
        self.words()?;
        match launching(&self.command).map_err(|source| self.not_started(source))? {
            Some((command, report)) => self.start_as(command, Some(report)),
            None => self.start(),
        }
    }

    fn start_as(&self, mut command: Command, report: Option<File>) -> Result<Running, BenchError> {
        let stderr = stook_sys::memory_file()?;
        let stdout = (self.output == Output::Kept)
            .then(stook_sys::memory_file)
            .transpose()?;
        self.prepare(&mut command, &stderr, stdout.as_ref())
            .map_err(|source| self.not_started(source))?;
        let pressure = Pressure::begin();
        let started = Instant::now();
        let child = command.spawn().map_err(|source| self.not_started(source))?;
        Ok(Running {
            text: self.text(),
            child: Child::watch(child.id())?,
            started,
            pressure,
            report,
            stderr,
            stdout,
            keeps_log: self.log == Output::Kept,
        })
    }

    /// As [`Job::run`], for a command that must succeed.
    ///
    /// # Errors
    /// Those of [`Job::run`], and [`BenchError::Command`] if it fails; `when` tells the user which run it was.
    pub fn succeed(&self, when: &str, observer: &dyn Observer) -> Result<Ran, BenchError> {
        let ran = self.run(observer)?;
        if ran.status.success() {
            return Ok(ran);
        }
        Err(self.failed(when, &ran))
    }

    /// Returns that the command failed in this run.
    pub(crate) fn failed(&self, when: &str, ran: &Ran) -> BenchError {
        BenchError::Command {
            command: self.text(),
            when: when.to_owned(),
            ending: ending(ran.status),
            stderr: ran.stderr.clone(),
        }
    }

    fn words(&self) -> Result<(&OsString, &[OsString]), BenchError> {
        let none = || BenchError::usage("no command was given");
        self.command.split_first().ok_or_else(none)
    }

    fn prepare(
        &self,
        command: &mut Command,
        stderr: &File,
        stdout: Option<&File>,
    ) -> std::io::Result<()> {
        command
            .envs(self.environment.iter().cloned())
            .process_group(0)
            .stderr(stderr.try_clone()?);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        match stdout {
            Some(file) => command.stdout(file.try_clone()?),
            None => command.stdout(Stdio::null()),
        };
        Ok(())
    }

    fn not_started(&self, source: std::io::Error) -> BenchError {
        BenchError::Start {
            command: self.text(),
            source,
        }
    }
}

/// A command that has been started.
#[derive(Debug)]
pub(crate) struct Running {
    text: String,
    child: Child,
    started: Instant,
    pressure: Pressure,
    /// Where the launcher writes what the command took.
    report: Option<File>,
    stderr: File,
    stdout: Option<File>,
    keeps_log: bool,
}

impl Running {
    /// Waits for so long, or until the user wants an end; returns the end of the command if it came first. After that
    /// there is no other one to wait for.
    pub(crate) fn wait(
        &self,
        longest: Option<Duration>,
        observer: &dyn Observer,
    ) -> Result<Option<Ended>, BenchError> {
        let begun = Instant::now();
        loop {
            let left = longest.map(|longest| longest.saturating_sub(begun.elapsed()));
            let look = LOOK_EVERY.min(left.unwrap_or(LOOK_EVERY));
            if let Some(ended) = self.child.wait(look)? {
                return Ok(Some(ended));
            }
            if left == Some(Duration::ZERO) || observer.is_stopped() {
                return Ok(None);
            }
        }
    }

    /// Interrupts the command's group, which lets a recorder write what it has.
    pub(crate) fn interrupt(self) -> Result<Ran, BenchError> {
        let ended = end(&self.child, Signal::INT, WRITING)?;
        self.finish(ended)
    }

    /// Returns how the run went that ended so. What the launcher saw goes before what its own end shows; one that was killed
    /// saw nothing.
    pub(crate) fn finish(self, ended: Ended) -> Result<Ran, BenchError> {
        let real = self.started.elapsed();
        let waited_share = self.pressure.share();
        let report = self.report.map(|file| Report::read(&file)).transpose();
        let figures = match report.context("read", "the launcher's report")?.flatten() {
            Some(Report::Ended(figures)) => figures,
            Some(Report::NotStarted(errno)) => {
                let source = std::io::Error::from_raw_os_error(errno);
                return Err(BenchError::Start {
                    command: self.text,
                    source,
                });
            }
            None => Figures::of(&ended, real, ended.run_delay),
        };
        let stdout = self.stdout.map(|file| kept(&file, 0, KEPT_STDOUT));
        let log = self.keeps_log.then(|| kept(&self.stderr, 0, KEPT_STDOUT));
        Ok(Ran {
            real: figures.real,
            user: figures.user,
            system: figures.system,
            peak_bytes: figures.peak_bytes,
            read_bytes: figures.read_bytes,
            run_delay: figures.run_delay,
            waited_share,
            status: ExitStatus::from_raw(figures.raw_status),
            stdout: stdout.transpose()?.unwrap_or_default(),
            stderr: last_lines(&self.stderr)?,
            log: log.transpose()?.unwrap_or_default(),
        })
    }
}

impl Ran {
    /// Returns the first line of what it wrote on stdout.
    pub(crate) fn first_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.stdout);
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// Returns the figures of the run as a sample without labels.
    pub fn sample(&self, round: u32) -> Sample {
        let proof = self
            .waited_share
            .map(|share| (WAITED_SHARE.to_owned(), share.into()));
        Sample {
            round,
            real_seconds: self.real.as_secs_f64(),
            user_seconds: self.user.as_secs_f64(),
            system_seconds: self.system.as_secs_f64(),
            peak_bytes: Some(self.peak_bytes),
            run_delay_seconds: self.run_delay.map(|delay| delay.as_secs_f64()),
            proof: proof.into_iter().collect(),
            ..Sample::default()
        }
    }
}

/// Signals the group, and kills it if it has not ended after so long; what the command left behind of it goes, too.
fn end(child: &Child, signal: Signal, patience: Duration) -> Result<Ended, BenchError> {
    child.signal_group(signal);
    let mut ended = child.wait(patience)?;
    while ended.is_none() {
        child.signal_group(Signal::KILL);
        ended = child.wait(GRACE)?;
    }
    child.signal_group(Signal::KILL);
    Ok(ended.expect("the loop ends with one"))
}

/// Returns in words how a command ended.
pub(crate) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "it did not end".to_owned(),
    }
}

fn kept(file: &File, from: u64, most: u64) -> Result<Vec<u8>, BenchError> {
    let len = file
        .metadata()
        .context("look at", "output of a command")?
        .len()
        .saturating_sub(from)
        .min(most);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let read = read_up_to_at(file, &mut bytes, from).context("read", "output of a command")?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Returns what a command wrote into a file in memory, as text.
pub(crate) fn kept_text(file: &File) -> Result<String, BenchError> {
    Ok(String::from_utf8_lossy(&kept(file, 0, KEPT_STDOUT)?).into_owned())
}

/// Returns the end of what a command wrote into a file in memory.
pub(crate) fn last_lines(file: &File) -> Result<String, BenchError> {
    let len = file
        .metadata()
        .context("look at", "output of a command")?
        .len();
    let bytes = kept(file, len.saturating_sub(KEPT_STDERR), KEPT_STDERR)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may have lost its beginning.
    let text = match text.split_once('\n') {
        Some((_, rest)) if len > KEPT_STDERR => rest,
        _ => &text,
    };
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
