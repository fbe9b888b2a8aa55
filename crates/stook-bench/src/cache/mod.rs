//! A command with cold, warm and hot caches, the state proved before each run.
//!
//! ```text
//! once          for each command: make it cold, run it untimed: which files does it read, which pages does it leave?
//!               drop all: which of these stay? They prove nothing and are left out.
//! each round    for each command, the first of them by turns:  cold > prove > run    warm > prove > run    hot > prove > run
//!               then: are its files what they were? In round 1, too: does it still print as many lines?
//! ```
//! Without hooks, warm is what a file system without a cache on disk has in between: names and inodes in memory, data not.
//! With them, hooks make what lies on disk, and all that the kernel holds is dropped for cold and for warm.

mod measured;
mod mounted;
mod outcome;
mod server;
mod states;
mod tables;
mod traced;
mod warnings;

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::BenchError;
use crate::job::Job;
use crate::mount_server::MountServer;
use crate::page_state::Method;
use crate::record::Sample;
use crate::{Observer, cache::measured::MeasuredCommand};

pub use outcome::CacheOutcome;
pub use server::{Watch, server_of};
pub(crate) use states::{pairs, place, ratios};
pub use tables::CacheTables;

/// What is in memory when a command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// Nothing.
    Cold,
    /// Not the data; what a hook leaves on disk, or names and inodes.
    Warm,
    /// Everything.
    Hot,
}

impl State {
    const ALL: [Self; 3] = [Self::Cold, Self::Warm, Self::Hot];

    fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Hot => "hot",
        }
    }
}

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// The command.
    pub command: Job,
    /// The same work on local files, to compare with.
    pub local: Option<Job>,
    /// How often each command runs in each state.
    pub rounds: u32,
    /// Empties all caches that are not the kernel's, before each cold run.
    pub cold_hook: Option<Job>,
    /// Empties those of them that are in memory, before each warm run.
    pub warm_hook: Option<Job>,
    /// The process that works for the command, if there is one.
    pub watch: Option<Watch>,
    /// The server of a mount that the command reads, which is watched and made to forget what it keeps.
    pub server: Option<Arc<dyn MountServer>>,
    /// Files and trees that the command reads; it is watched for them if there are none.
    pub files: Vec<PathBuf>,
}

impl CacheOptions {
    /// Returns those for a command, with nothing else.
    pub fn new(command: Job, rounds: u32) -> Self {
        Self {
            command,
            local: None,
            rounds,
            cold_hook: None,
            warm_hook: None,
            watch: None,
            server: None,
            files: Vec::new(),
        }
    }

    /// Whether anything is kept that is not the kernel's.
    fn has_hooks(&self) -> bool {
        let has_disk = self.server.as_ref().is_some_and(|server| server.has_disk());
        self.cold_hook.is_some() || self.warm_hook.is_some() || has_disk
    }
}

/// Runs the commands in all states and all rounds.
///
/// The samples have the label `state`: `cold`, `warm`, `hot`, and `local cold` and so on for the local command.
///
/// # Errors
/// [`BenchError::Refused`] if a state cannot be made or does not hold, or a command changes what it reads;
/// [`BenchError::Command`] if a command or a hook fails.
///
/// # Cost
/// Two to four more runs of each command than there are samples.
pub fn cache(options: &CacheOptions, observer: &dyn Observer) -> Result<CacheOutcome, BenchError> {
    if options.rounds == 0 {
        return Err(BenchError::no_rounds());
    }
    let method = Method::available();
    let server = options.server.as_ref();
    let server = server.map(|server| Watch::Process(server.process()));
    let watch = options.watch.as_ref().or(server.as_ref());
    let watched = watch.map(server::Watched::new).transpose()?;
    let mut commands = vec![MeasuredCommand::measured(options, method, observer)?];
    commands.extend(MeasuredCommand::local(options, method, observer)?);
    let mut samples = Vec::new();
    for round in 1..=options.rounds {
        // Whatever the first one leaves behind, the second one has it every other time.
        let is_odd = round % 2 == 1;
        let (first, second) = commands.split_at(1);
        let order = if is_odd {
            [first, second]
        } else {
            [second, first]
        };
        for command in order.into_iter().flatten() {
            let run = Round {
                number: round,
                of: options.rounds,
                watched: watched.as_ref(),
            };
            run.measure(command, &mut samples, observer)?;
        }
    }
    Ok(CacheOutcome::new(samples, &commands, options, method))
}

/// One of the rounds.
struct Round<'a> {
    number: u32,
    of: u32,
    watched: Option<&'a server::Watched>,
}

impl Round<'_> {
    fn measure(
        &self,
        command: &MeasuredCommand<'_>,
        samples: &mut Vec<Sample>,
        observer: &dyn Observer,
    ) -> Result<(), BenchError> {
        for &state in command.states() {
            if observer.is_stopped() {
                return Err(BenchError::Interrupted);
            }
            let label = command.label(state);
            observer.progress(&format!("round {} of {}: {label}", self.number, self.of));
            let sample = self.run(command, state, observer)?;
            observer.sampled(&sample);
            samples.push(sample);
        }
        let when = format!("round {}", self.number);
        command.require_same_files(&when)?;
        if self.number == 1 {
            command.require_same_output(observer)?;
        }
        Ok(())
    }

    fn run(
        &self,
        command: &MeasuredCommand<'_>,
        state: State,
        observer: &dyn Observer,
    ) -> Result<Sample, BenchError> {
        let when = format!("round {}, {}", self.number, command.label(state));
        let mut proof = command.make(state, &when, observer)?;
        let watched = self.watched.filter(|_| !command.is_local());
        let server = command.server();
        let figures = server.map(|server| server.figures()).transpose()?;
        let before = watched.map(server::Watched::before).transpose()?;
        let ran = command.job().succeed(&format!("in {when}"), observer)?;
        let served = before.map(|before| before.served()).transpose()?;
        if let (Some(server), Some(before)) = (server, figures) {
            proof.extend(mounted::proof(&before, &server.figures()?, &ran));
        }
        proof.insert("read_bytes".to_owned(), ran.read_bytes.into());
        let mut sample = ran.sample(self.number);
        sample.served_seconds = served.map(|served| served.as_secs_f64());
        if watched.is_some() {
            // What served it may have waited, too.
            sample.run_delay_seconds = None;
        }
        sample
            .labels
            .insert("state".to_owned(), command.label(state));
        sample.proof.extend(proof);
        Ok(sample)
    }
}
