//! What a profile is asked for, and what is done before each run.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::programs::require_program;
use crate::Observer;
use crate::error::BenchError;
use crate::job::Job;
use crate::mount_server::{Kept, MountServer};
use crate::remedy::{ProfileRemedy, Remedy};

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Functions on a processor.
    OnCpu,
    /// Stacks that threads were blocked in.
    OffCpu,
    /// System calls, how many and how long.
    SystemCalls,
}

/// How the callers of a function are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unwind {
    /// By the frame pointers of programs that keep them: quick, and cut short in those that do not.
    #[default]
    FramePointers,
    /// By the tables for exceptions and debuggers, from a copy of the stack: complete, and much more to write.
    Dwarf,
}

/// What is made of the caches before each recorded run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheState {
    /// The kernel forgets all files.
    Cold,
    /// The command runs once, then the kernel forgets all files: only what the command keeps on disk is there.
    Warm,
    /// The command runs once.
    Hot,
}

/// What is looked at.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A command, which is run.
    Command(Vec<OsString>),
    /// A process that runs already.
    Process {
        /// Its number.
        pid: u32,
        /// How long; up to its end if None.
        longest: Option<Duration>,
        /// A command that it works for: it is looked at while that runs.
        during: Option<Vec<OsString>>,
    },
}

/// What is wanted.
#[derive(Debug, Clone)]
pub struct ProfileOptions {
    /// What is looked at.
    pub subject: Subject,
    /// What is shown; all that can be if empty.
    pub views: Vec<View>,
    /// How the callers of a function are found.
    pub unwind: Unwind,
    /// What is made of the caches; nothing if None.
    pub cache: Option<CacheState>,
    /// The server of a mount, which forgets what is not there in that state.
    pub server: Option<Arc<dyn MountServer>>,
    /// A line for the shell that is run before each run, such as one that removes what the run before has made.
    pub before: Option<String>,
    /// The folder for the results, which must not be there.
    pub folder: PathBuf,
    /// Where programs are looked for, as in `PATH`.
    pub search_path: OsString,
}

impl Subject {
    pub(super) fn longest(&self) -> Option<Duration> {
        match self {
            Self::Command(_) => None,
            Self::Process { longest, .. } => *longest,
        }
    }

    /// Returns the command that is run.
    pub(super) fn job(&self) -> Option<Job> {
        let command = match self {
            Self::Command(command) => Some(command),
            Self::Process { during, .. } => during.as_ref(),
        };
        command.map(|command| Job::new(command.iter().cloned()))
    }

    /// Returns it in the words of the user.
    pub fn text(&self) -> String {
        match (self, self.job()) {
            (Self::Process { pid, .. }, Some(job)) => {
                format!("process {pid} during `{}`", job.text())
            }
            (Self::Process { pid, .. }, None) => format!("process {pid}"),
            (Self::Command(_), job) => job.map_or_else(String::new, |job| job.text()),
        }
    }

    /// Returns what a program that watches it takes at the end of its command line.
    pub(super) fn words(&self) -> Vec<OsString> {
        match self {
            Self::Command(command) => {
                let end_of_options = OsString::from("--");
                [end_of_options]
                    .into_iter()
                    .chain(command.iter().cloned())
                    .collect()
            }
            Self::Process { pid, .. } => vec!["-p".into(), pid.to_string().into()],
        }
    }

    pub(super) fn doing(&self, what: &str) -> String {
        match self {
            Self::Command(_) => format!("running `{}`, {what}", self.text()),
            Self::Process { .. } => format!("watching {}, {what}", self.text()),
        }
    }

    /// Returns that a program cannot watch the process, in the first line of its own words, as pages of advice may follow;
    /// None of a command.
    pub(super) fn not_watched(&self, program: &str, stderr: &str) -> Option<BenchError> {
        let Self::Process { pid, .. } = self else {
            return None;
        };
        let mut lines = stderr.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty() && *line != "Error:");
        let why = line.map_or(String::new(), |line| format!(": {line}"));
        let what = format!("{program} cannot watch process {pid}{why}");
        Some(BenchError::refused_with(
            Remedy::Profile(ProfileRemedy::BeSuperuser),
            what,
        ))
    }

    /// Makes sure that there is such a command or process.
    pub(super) fn require(&self, search_path: &OsStr) -> Result<(), BenchError> {
        if let Self::Process { pid, .. } = self {
            let threads = format!("/proc/{pid}/task");
            let found = stook_sys::exists(Path::new(&threads))?;
            if *pid == 0 || found.is_none() {
                return Err(BenchError::refused(format!("there is no process {pid}")));
            }
        }
        let Some(job) = self.job() else {
            return Ok(());
        };
        let program = job.command.first().map(OsString::as_os_str);
        require_program(program.unwrap_or_default(), search_path).map(drop)
    }
}

impl ProfileOptions {
    /// Runs what is to be run before, and brings the caches into the state that was asked for.
    pub(super) fn prepare(&self, observer: &dyn Observer) -> Result<(), BenchError> {
        if let (Some(CacheState::Warm | CacheState::Hot), Some(job)) =
            (self.cache, self.subject.job())
        {
            self.clear(observer)?;
            observer.progress(&self.subject.doing("so that caches are filled"));
            job.succeed("in the run that fills the caches", observer)?;
        }
        self.clear(observer)?;
        if let (Some(server), Some(state)) = (&self.server, self.cache) {
            match state {
                CacheState::Cold => server.evict(Kept::Everywhere)?,
                CacheState::Warm => server.evict(Kept::InMemory)?,
                CacheState::Hot => {}
            }
        }
        match self.cache {
            Some(CacheState::Cold | CacheState::Warm) => crate::page_state::drop_all(),
            Some(CacheState::Hot) | None => Ok(()),
        }
    }

    fn clear(&self, observer: &dyn Observer) -> Result<(), BenchError> {
        if let Some(line) = &self.before {
            Job::shell(line).succeed("before a run", observer)?;
        }
        Ok(())
    }
}
