//! A command that is measured: what it reads, the states that it is run in, and how each is made and proved.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use stook_sys::{Forget, ResidencyQuery};

use super::traced::run_traced;
use super::{CacheOptions, State, mounted};
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Output};
use crate::mount_server::MountServer;
use crate::page_state::{Inputs, Method, Shares, drop_all, drop_pages_of, named_paths};
use crate::proof::{self, Wanted};
use crate::remedy::Remedy;

/// How often a state is made before it counts as one that does not hold: other programs drop caches and read files, too.
const ATTEMPTS: usize = 5;
/// Between two attempts, so that other programs come to an end.
const PAUSE: Duration = Duration::from_millis(50);
/// As many pages and as many names of files that are only known from watching the command may be back in memory, however
/// few there are: programs that start read some files of the system, and those of others start all the time.
const MAY_COME_BACK: (u64, u64) = (64, 16);

/// A command and what is known of it.
pub(super) struct MeasuredCommand<'a> {
    job: &'a Job,
    options: &'a CacheOptions,
    is_local: bool,
    /// Which files the user said are read; none if they are found out.
    named: &'a [PathBuf],
    method: Method,
    states: Vec<State>,
    inputs: Inputs,
    /// How many lines it printed before the first round.
    lines: String,
}

impl<'a> MeasuredCommand<'a> {
    /// Returns the command that is measured, after untimed runs.
    pub(super) fn measured(
        options: &'a CacheOptions,
        method: Method,
        observer: &dyn Observer,
    ) -> Result<Self, BenchError> {
        let states = match method {
            // Names and inodes stay, so warm would be what cold is.
            Method::Fadvise if !options.has_hooks() => vec![State::Cold, State::Hot],
            _ => State::ALL.to_vec(),
        };
        if let Some(hook) = &options.cold_hook {
            hook.succeed("before the untimed run", observer)?;
        }
        Self::surveyed(
            &options.command,
            &options.files,
            options,
            states,
            method,
            observer,
        )
    }

    /// Returns the local command, if there is one: it has no hooks, so nothing but the kernel's caches.
    pub(super) fn local(
        options: &'a CacheOptions,
        method: Method,
        observer: &dyn Observer,
    ) -> Result<Option<Self>, BenchError> {
        let states = match method {
            Method::DropCaches if !options.has_hooks() => State::ALL.to_vec(),
            _ => vec![State::Cold, State::Hot],
        };
        let Some(job) = &options.local else {
            return Ok(None);
        };
        let local = Self::surveyed(job, &[], options, states, method, observer)?;
        Ok(Some(Self {
            is_local: true,
            ..local
        }))
    }

    /// Runs the command from the cold state, and finds out what it reads, if that is not named, and how much it prints.
    fn surveyed(
        job: &'a Job,
        named: &'a [PathBuf],
        options: &'a CacheOptions,
        states: Vec<State>,
        method: Method,
        observer: &dyn Observer,
    ) -> Result<Self, BenchError> {
        observer.progress(&format!("a first run, untimed: `{}`", job.text()));
        let when = "in the untimed run before round 1";
        if method == Method::DropCaches {
            drop_all()?;
        }
        let mut paths = first_run(job, named, when, observer)?;
        if let Some(server) = options.server.as_ref().filter(|_| named.is_empty()) {
            paths.extend(named_paths(&server.files(), observer)?);
        }
        if method == Method::Fadvise {
            // Only now it is known what to drop.
            drop_pages_of(&paths)?;
            job.succeed(when, observer)?;
        }
        let run_again = || job.succeed(when, observer).map(drop);
        let inputs = Inputs::after_a_run(&paths, method, ResidencyQuery::Cachestat, run_again)?;
        let command = Self {
            job,
            options,
            is_local: false,
            named,
            method,
            states,
            inputs,
            lines: lines_of(job, observer)?,
        };
        command.warn_of_what_is_not_proved(observer)?;
        Ok(command)
    }

    fn warn_of_what_is_not_proved(&self, observer: &dyn Observer) -> Result<(), BenchError> {
        if self.inputs.count() > 0 {
            return Ok(());
        }
        let what = format!(
            "nothing that `{}` reads can be both dropped and asked for{}",
            self.job.text(),
            self.inputs.left_out()
        );
        if self.is_named() || !self.inputs.can_drop(self.method) {
            return Err(BenchError::refused_with(Remedy::NameOtherInputs, what));
        }
        observer.warning(&format!("{what}: the states are not proved"));
        Ok(())
    }

    /// Whether the user said which files are read.
    fn is_named(&self) -> bool {
        !self.named.is_empty()
    }

    pub(super) fn job(&self) -> &Job {
        self.job
    }

    pub(super) fn states(&self) -> &[State] {
        &self.states
    }

    pub(super) fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    pub(super) fn is_local(&self) -> bool {
        self.is_local
    }

    pub(super) fn label(&self, state: State) -> String {
        format!(
            "{}{}",
            if self.is_local { "local " } else { "" },
            state.name()
        )
    }

    /// Makes a state and proves it; returns the proof for the sample.
    ///
    /// # Errors
    /// [`BenchError::Refused`] if it does not hold, those of [`Job::succeed`] for a hook.
    pub(super) fn make(
        &self,
        state: State,
        when: &str,
        observer: &dyn Observer,
    ) -> Result<BTreeMap<String, Value>, BenchError> {
        if let Some(hook) = self.hook(state) {
            hook.succeed(&format!("before {when}"), observer)?;
        }
        if let Some(server) = self.server() {
            mounted::make(&**server, state, when)?;
        }
        let mut attempt = 1;
        let shares = loop {
            let shares = self.made(state, attempt)?;
            if self.wrong(state, &shares).is_none() || attempt == ATTEMPTS {
                break shares;
            }
            attempt += 1;
            std::thread::sleep(PAUSE);
            if self.has_names(state) {
                self.job
                    .succeed(&format!("in an untimed run before {when}"), observer)?;
            }
        };
        let wrong = self.wrong(state, &shares);
        if let Some(wrong) = wrong.filter(|_| !self.is_tolerable(state, &shares)) {
            self.require_same_files(when)?;
            return Err(self.does_not_hold(when, &wrong));
        }
        let mut proof = proof::described(&self.inputs, &shares);
        proof.insert("method".to_owned(), self.method.name().into());
        proof.insert("attempts".to_owned(), attempt.into());
        Ok(proof)
    }

    /// Returns the server of the mount that it reads.
    pub(super) fn server(&self) -> Option<&Arc<dyn MountServer>> {
        self.options.server.as_ref().filter(|_| !self.is_local)
    }

    fn hook(&self, state: State) -> Option<&Job> {
        let hook = match state {
            State::Cold => self.options.cold_hook.as_ref(),
            State::Warm => self.options.warm_hook.as_ref(),
            State::Hot => None,
        };
        hook.filter(|_| !self.is_local)
    }

    /// Whether names and inodes are to be in memory: hot, and warm without hooks.
    fn has_names(&self, state: State) -> bool {
        state == State::Hot || (state == State::Warm && !self.options.has_hooks())
    }

    fn made(&self, state: State, attempt: usize) -> Result<Shares, BenchError> {
        let what = match state {
            State::Hot => return self.inputs.ask(),
            _ if self.has_names(state) => Forget::Data,
            _ => Forget::Everything,
        };
        // Programs and libraries come into use while the bench runs. Of files that the user named, none may.
        if attempt > 1 && !self.is_named() {
            return self.inputs.forget_unless_mapped(self.method, what);
        }
        self.inputs.forget(self.method, what)
    }

    /// What is to be in memory: of pages, and of names, which stay if only data can be dropped.
    fn wanted(&self, state: State) -> (Wanted, Wanted) {
        let pages = match state {
            State::Hot => Wanted::InMemory,
            _ => Wanted::NotInMemory,
        };
        let names = match self.method {
            _ if self.has_names(state) => Wanted::InMemory,
            Method::DropCaches => Wanted::NotInMemory,
            Method::Fadvise => Wanted::Anywhere,
        };
        (pages, names)
    }

    fn wrong(&self, state: State, shares: &Shares) -> Option<String> {
        let (pages, names) = self.wanted(state);
        proof::wrong(shares, pages, names)
    }

    /// Whether little enough is in memory of files that the user has not named; tables and warnings show it.
    fn is_tolerable(&self, state: State, shares: &Shares) -> bool {
        let (pages, names) = shares.counts;
        if state == State::Hot || self.is_named() || pages > MAY_COME_BACK.0 {
            return false;
        }
        match self.has_names(state) {
            true => proof::wrong(shares, Wanted::Anywhere, Wanted::InMemory).is_none(),
            false => names <= MAY_COME_BACK.1,
        }
    }

    fn does_not_hold(&self, when: &str, wrong: &str) -> BenchError {
        let (files, text) = (self.inputs.count(), self.job.text());
        let what = format!(
            "{when}: the state does not hold: of what `{text}` reads (files looked at: {files}), {wrong}"
        );
        BenchError::refused_with(Remedy::KeepInputsIdle, what)
    }

    /// Makes sure that the command found what it found in its first run.
    ///
    /// # Errors
    /// [`BenchError::Refused`] that names a file that has changed. Hooks may change what the user has named.
    pub(super) fn require_same_files(&self, when: &str) -> Result<(), BenchError> {
        if self.is_named() && self.options.has_hooks() {
            return Ok(());
        }
        let Some(path) = self.inputs.changed() else {
            return Ok(());
        };
        let what = format!(
            "{when}: `{}`, which `{}` reads, has changed since its first run",
            stook_sys::display_path(path),
            self.job.text()
        );
        Err(BenchError::refused_with(Remedy::KeepInputsAsTheyAre, what))
    }

    /// Makes sure that the command still prints as much as before the first round.
    ///
    /// # Errors
    /// [`BenchError::Refused`] if not, those of [`Job::succeed`].
    pub(super) fn require_same_output(&self, observer: &dyn Observer) -> Result<(), BenchError> {
        let lines_now = lines_of(self.job, observer)?;
        if lines_now == self.lines {
            return Ok(());
        }
        let what = format!(
            "`{}` printed {} lines before round 1, and {lines_now} after it: it does not do the same each time",
            self.job.text(),
            self.lines
        );
        Err(BenchError::refused_with(Remedy::DropOutput, what))
    }
}

fn first_run(
    job: &Job,
    named: &[PathBuf],
    when: &str,
    observer: &dyn Observer,
) -> Result<Vec<PathBuf>, BenchError> {
    if named.is_empty() {
        return run_traced(job, when, observer);
    }
    job.succeed(when, observer)?;
    // The run may have filled a cache that is among them.
    named_paths(named, observer)
}

/// Returns how many lines a command prints, as `wc` has it. They go through a pipe, as there may be any number of them:
/// not to memory, and not to `/dev/null`, for which some programs leave their work undone.
fn lines_of(job: &Job, observer: &dyn Observer) -> Result<String, BenchError> {
    let shell = ["sh", "-c", "\"$@\" | wc -l", "sh"].map(OsString::from);
    let counted = Job {
        command: shell
            .into_iter()
            .chain(job.command.iter().cloned())
            .collect(),
        output: Output::Kept,
        ..job.clone()
    };
    let ran = counted.succeed("when its lines were counted", observer)?;
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}
