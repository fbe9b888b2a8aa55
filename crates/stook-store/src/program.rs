//! Programs that reach a store: started without a shell, watched, and ended in time.
//!
//! A program gets a session of its own, without a terminal, so that it cannot ask for a password, and without the
//! variables that make the loader take other libraries, which a Python environment sets for its own programs. What
//! it writes goes to files in memory, not to pipes: a process that it leaves behind keeps nobody waiting for their end.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stook_sys::{
    Child, Context, ProcessClock, Signal, SysError, look_at, memory_file, read_all, read_up_to_at,
    start_in_own_session, write_all_at,
};

use crate::error::StoreCause;
use crate::transfer::TransferObserver;

/// Variables that a program must not inherit.
const LOADER_VARIABLES: [&str; 2] = ["LD_LIBRARY_PATH", "LD_PRELOAD"];

/// How often a running program is looked at. It and the two times below come to less than a second.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a program may take to end that was asked to.
const GRACE: Duration = Duration::from_millis(500);
/// How long a program may take to end that was killed; one that waits in the kernel for a file system is left alone.
const KILL_GRACE: Duration = Duration::from_millis(200);

/// What computes less than this part of the time only waits. Who looks 10 times a second for an answer takes 1/10,000,
/// who moves 1 MB/s about 1/500.
const IDLE_SHARE: u32 = 1000;

/// Output of a program that is kept: a list of half a million files, about.
const MOST_OUTPUT_BYTES: u64 = 64 << 20;

/// One run of a program.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// Where it lies, or its name, which is looked for along `PATH`.
    pub(crate) path: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) input: Input,
    /// Where it runs; None: where this process does.
    pub(crate) directory: Option<&'a Path>,
    /// How long it may run without a sign of progress.
    pub(crate) patience: Duration,
}

/// What a user may set for a program that reaches a store.
#[derive(Debug, Clone)]
pub struct ProgramOptions {
    /// Where it lies, or its name, which is looked for along `PATH`.
    pub path: PathBuf,
    /// Arguments in front of all others.
    pub arguments: Vec<OsString>,
    /// How long it may run without a sign of progress. Tapes are slow: a drive may be busy for long.
    pub patience: Duration,
    /// Asked during calls that have no observer: listing, say.
    pub interruption: Interruption,
}

impl ProgramOptions {
    /// Returns the usual ones for a program.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            arguments: Vec::new(),
            patience: Duration::from_secs(3600),
            interruption: Interruption::default(),
        }
    }
}

/// Says whether what runs should end.
#[derive(Clone, Default)]
pub struct Interruption(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Interruption {
    /// Returns one that asks this.
    pub fn new(is_interrupted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_interrupted)))
    }
}

impl TransferObserver for Interruption {
    fn is_interrupted(&self) -> bool {
        self.0.as_ref().is_some_and(|ask| ask())
    }
}

impl fmt::Debug for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interruption")
    }
}

/// What a program reads from its standard input.
#[derive(Debug)]
pub(crate) enum Input {
    Nothing,
    Bytes(Vec<u8>),
    /// The rest of a file, from where its descriptor stands.
    File(File),
}

/// How a program ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Program<'_> {
    /// Runs it to its end, whatever its exit code. `has_moved` is asked about every 100 ms whether something moves that
    /// the program works on. Other signs of progress are what it reads and writes, and that it computes: who moves bytes
    /// does.
    ///
    /// # Errors
    /// `NoProgram`; `Interrupted`, within a second; `Timeout` after its patience without progress; `Answer` if it
    /// writes too much.
    pub(crate) fn run(
        &self,
        observer: &dyn TransferObserver,
        has_moved: &mut dyn FnMut() -> bool,
    ) -> Result<Output, StoreCause> {
        let stdout = memory_file()?;
        let mut output = self.run_until(&stdout, MOST_OUTPUT_BYTES, observer, has_moved)?;
        output.stdout = content(&stdout)?;
        Ok(output)
    }

    /// Runs it with its output going to a file, however much that is; the output that is returned has none.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub(crate) fn run_into(
        &self,
        file: &File,
        observer: &dyn TransferObserver,
        has_moved: &mut dyn FnMut() -> bool,
    ) -> Result<Output, StoreCause> {
        self.run_until(file, u64::MAX, observer, has_moved)
    }

    fn run_until(
        &self,
        stdout: &File,
        most_bytes: u64,
        observer: &dyn TransferObserver,
        has_moved: &mut dyn FnMut() -> bool,
    ) -> Result<Output, StoreCause> {
        if observer.is_interrupted() {
            return Err(StoreCause::Interrupted);
        }
        let stderr = memory_file()?;
        let (child, clock) = self.start(stdout, &stderr)?;
        let io = PathBuf::from(format!("/proc/{}/io", clock.process()));
        let written = || -> Result<u64, StoreCause> { Ok(len(stdout)? + len(&stderr)?) };
        let (mut moved, mut known, mut computed) = (Instant::now(), None, Duration::ZERO);
        loop {
            if let Some(ended) = child.wait(LOOK_EVERY)? {
                return Ok(Output {
                    status: ExitStatus::from_raw(ended.raw_status),
                    stdout: Vec::new(),
                    stderr: content(&stderr)?,
                });
            }
            let now = (written()?, read_and_written(&io));
            // It may have ended since.
            let cpu = clock.now().unwrap_or(computed);
            let has_computed = cpu.saturating_sub(computed) > moved.elapsed() / IDLE_SHARE;
            if has_moved() || Some(now) != known || has_computed {
                (moved, known, computed) = (Instant::now(), Some(now), cpu);
            }
            let failed = if observer.is_interrupted() {
                StoreCause::Interrupted
            } else if now.0 > most_bytes {
                self.wrote_too_much()
            } else if moved.elapsed() > self.patience {
                StoreCause::Timeout(self.patience.as_secs())
            } else {
                continue;
            };
            end(&child)?;
            return Err(failed);
        }
    }

    /// Returns how messages name it: the last part of its path.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        stook_sys::display_path(Path::new(name))
    }

    fn wrote_too_much(&self) -> StoreCause {
        StoreCause::Answer {
            program: self.name(),
            text: format!("more than {MOST_OUTPUT_BYTES} bytes"),
        }
    }

    fn start(&self, stdout: &File, stderr: &File) -> Result<(Child, ProcessClock), StoreCause> {
        let duplicate = |file: &File| file.try_clone().context("start", self.path);
        let mut command = Command::new(self.path);
        command
            .args(&self.arguments)
            .stdin(self.input.open()?)
            .stdout(duplicate(stdout)?)
            .stderr(duplicate(stderr)?);
        if let Some(directory) = self.directory {
            look_at(directory)?;
            command.current_dir(directory);
        }
        for variable in LOADER_VARIABLES {
            command.env_remove(variable);
        }
        let started = start_in_own_session(&mut command);
        let mut started = started.map_err(|error| self.not_started(error))?;
        let number = started.id();
        let watched = Child::watch(number).and_then(|child| Ok((child, ProcessClock::of(number)?)));
        watched.map_err(|error| {
            // The error to report is the one of watching.
            let _ = started.kill();
            let _ = started.wait();
            error.into()
        })
    }

    fn not_started(&self, source: io::Error) -> StoreCause {
        if source.kind() == io::ErrorKind::NotFound {
            return StoreCause::NoProgram(stook_sys::display_path(self.path));
        }
        StoreCause::Sys(SysError {
            operation: "start",
            path: self.path.to_owned(),
            source,
        })
    }
}

impl Input {
    fn open(&self) -> Result<Stdio, SysError> {
        match self {
            Self::Nothing => Ok(Stdio::null()),
            Self::File(file) => Ok(file.try_clone().context("read", "a file")?.into()),
            Self::Bytes(bytes) => {
                let file = memory_file()?;
                write_all_at(&file, bytes, 0).context("write", "a file in memory")?;
                Ok(file.into())
            }
        }
    }
}

impl Output {
    /// Requires an exit code of 0.
    ///
    /// # Errors
    /// `Said` with a line of what it wrote.
    pub(crate) fn require_success(&self, program: &str) -> Result<(), StoreCause> {
        if self.status.success() {
            return Ok(());
        }
        Err(StoreCause::Said {
            program: program.to_owned(),
            text: self.line(),
        })
    }

    /// Returns the line that tells most about a failure: the last of its messages, or else of its output, or else how
    /// it ended.
    pub(crate) fn line(&self) -> String {
        let last = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let mut lines = text.lines().map(str::trim_end);
            lines.rfind(|line| !line.is_empty()).map(str::to_owned)
        };
        let line = last(&self.stderr).or_else(|| last(&self.stdout));
        line.unwrap_or_else(|| self.status.to_string())
    }
}

/// Starts a program and does not wait for it: it ends by itself, also after this process.
pub(crate) fn start_and_leave(options: &ProgramOptions, arguments: &[&str]) {
    let mut command = Command::new(&options.path);
    command.args(&options.arguments).args(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for variable in LOADER_VARIABLES {
        command.env_remove(variable);
    }
    // Who starts it does not depend on it.
    let _ = command.process_group(0).spawn();
}

/// Ends a program and what it started.
fn end(child: &Child) -> Result<(), StoreCause> {
    child.signal_group(Signal::TERM);
    let has_ended = child.wait(GRACE)?.is_some();
    child.signal_group(Signal::KILL);
    if !has_ended {
        child.wait(KILL_GRACE)?;
    }
    Ok(())
}

/// Returns how many bytes a process has read and written; 0 if that is not told.
fn read_and_written(io: &Path) -> u64 {
    let text = read_all(io).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let values = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(": ")?;
        ["rchar", "wchar"]
            .contains(&key)
            .then(|| value.parse::<u64>().ok())?
    });
    values.sum()
}

fn len(file: &File) -> Result<u64, SysError> {
    let metadata = file.metadata().context("look at", "a file in memory")?;
    Ok(metadata.len())
}

fn content(file: &File) -> Result<Vec<u8>, SysError> {
    let len = len(file)?.min(MOST_OUTPUT_BYTES);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let read = read_up_to_at(file, &mut bytes, 0).context("read", "a file in memory")?;
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
