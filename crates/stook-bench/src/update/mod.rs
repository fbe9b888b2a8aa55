//! The before-and-after study of programs that archive: three directories, six ordered pairs of them, every tool, repeats.
//!
//! ```text
//!   round ──> pair (A, B) ──> tool (the first one another in each round)
//!     copy A ──> create ──> copy B over it ──> update ──> check ──> list ──> extract, 1 worker ──> extract, 2 workers
//!                                                                    compared with the source, as is what is extracted
//! ```
//! Only the commands are timed, one at a time, each when all that was written before is on the disk. Every run has a fresh
//! source and a fresh archive.
//!
//! # Source
//! The procedure and the first six columns of the CSV are those of zstash's performance study.

mod archived;
mod compare;
mod csv;
mod log;
mod numbers;
mod replica;
mod run;
mod sources;
mod stores;
mod tables;
mod tool;
mod tree_digest;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

pub use archived::{ArchivedOptions, ArchivedStudy};
pub use csv::{csv_header, csv_row};
pub(crate) use numbers::{Numbers, Pair};
pub use stores::StudyStore;
pub use tables::tables;
pub use tool::{Operation, Tool};

use crate::error::BenchError;
use crate::job::{Job, Output};
use crate::record::{Header, Kind};
use crate::remedy::Remedy;
use crate::scratch::ScratchDirectory;
use crate::{Observer, page_state};
use run::Rounds;
use sources::Source;

/// Where the second directory of a pair goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Placement {
    /// Over the first: what has the same path is replaced.
    #[default]
    Over,
    /// Beside the first, each in a directory of its own: nothing is replaced.
    Beside,
}

/// What is in the kernel's caches when a command begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Caches {
    /// What the copy and the commands before left there.
    #[default]
    Hot,
    /// Nothing.
    Cold,
}

/// When a command is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// When it ends.
    #[default]
    Ended,
    /// When all that it wrote is on the disk, too: some tools see to that themselves, and some do not.
    OnDisk,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct UpdateOptions {
    /// The programs; ratios are against the first.
    pub tools: Vec<Tool>,
    /// The program for the place `{stook}`.
    pub stook: PathBuf,
    /// The directories.
    pub directories: [PathBuf; 3],
    /// How often all pairs are gone through.
    pub repeats: u32,
    /// Where to make the work directory; beside the first of the directories, if None.
    pub work: Option<PathBuf>,
    /// Where the second directory of a pair goes.
    pub placement: Placement,
    /// What is in the caches.
    pub caches: Caches,
    /// When a command is over.
    pub finish: Finish,
    /// Where archives are sent in one half of the runs; there is no such half if None.
    pub store: Option<StudyStore>,
}

/// A study that can be made.
#[derive(Debug)]
pub struct UpdateStudy {
    options: UpdateOptions,
    sources: Vec<Source>,
    holder: PathBuf,
    header: Header,
}

impl UpdateStudy {
    /// Looks at the directories and the tools, and writes nothing.
    ///
    /// # Errors
    /// [`BenchError::Sys`] for a directory that cannot be read, [`BenchError::Store`] for a store that cannot be written, [`BenchError::Refused`] for directories in each other, a
    /// work directory in one of them, too little free space, or caches that may not be dropped; [`BenchError::Missing`] for a tool
    /// that is not installed, [`BenchError::NoToolCommand`] for one that cannot create, update or extract,
    /// [`BenchError::Usage`] for none at all, or none repeats.
    pub fn prepare(
        options: UpdateOptions,
        started: &str,
        observer: &dyn Observer,
    ) -> Result<Self, BenchError> {
        if options.tools.is_empty() || options.repeats == 0 {
            let why = "there must be a tool, and one repeat at least";
            return Err(BenchError::usage(why));
        }
        let needed = [Operation::Create, Operation::Update, Operation::Extract];
        options
            .tools
            .iter()
            .try_for_each(|tool| tool.require(&needed))?;
        if let Some(store) = &options.store {
            store.prepare()?;
        }
        let sources = Source::all(&options.directories, observer)?;
        let holder = sources::holder(options.work.as_deref(), &sources)?;
        sources::require_free_space(&holder, &sources)?;
        let mut header = Header::new(Kind::Update, started);
        header.programs = versions(&options.tools, &options.stook)?;
        header.options = described(&options, &sources);
        header.files = Some(sources::properties(&sources));
        if options.caches == Caches::Cold {
            page_state::drop_all()?;
        }
        Ok(Self {
            options,
            sources,
            holder,
            header,
        })
    }

    /// Returns what holds for all samples.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Makes the study; returns how many trees and lists were not those of their source; the observer got a warning for each.
    ///
    /// # Errors
    /// [`BenchError::Command`] with the first command that fails, [`BenchError::Refused`] if one changes its source,
    /// [`BenchError::Sys`] if a directory cannot be copied, [`BenchError::Interrupted`]. The work directory is gone then, too.
    pub fn run(&self, observer: &dyn Observer) -> Result<u64, BenchError> {
        let place = ScratchDirectory::make(&self.holder)?;
        let unequal = Rounds::new(self, &place, observer).and_then(Rounds::run);
        let stays = self.options.store.as_ref().and_then(StudyStore::what_stays);
        if let Some(stays) = stays {
            observer.warning(&stays);
        }
        observer.progress("removing what was made");
        if let Err(error) = place.remove() {
            observer.warning(&error.to_string());
        }
        unequal
    }
}

/// Asks the tools for their versions; of those that are not built in, the command stands for it.
fn versions(tools: &[Tool], stook: &Path) -> Result<BTreeMap<String, String>, BenchError> {
    let version = |tool: &Tool| {
        let Some(job) = tool.version(stook) else {
            return Ok(tool.line(Operation::Create).unwrap_or_default().to_owned());
        };
        let job = Job {
            output: Output::Kept,
            ..job
        };
        let ran = job.run(&())?;
        if ran.status.success() {
            return Ok(ran.first_line());
        }
        let (name, why) = (&tool.name, ran.stderr.lines().last().unwrap_or("it fails"));
        Err(BenchError::Missing {
            what: format!("cannot run the tool `{name}`: {why}"),
            remedy: Remedy::InstallOrGiveCommand(name.clone()),
        })
    };
    let versions = tools
        .iter()
        .map(|tool| Ok((tool.name.clone(), version(tool)?)));
    versions.collect()
}

/// The options as results have them.
fn described(options: &UpdateOptions, sources: &[Source]) -> BTreeMap<String, serde_json::Value> {
    let labels: Vec<&str> = sources.iter().map(|source| &*source.label).collect();
    let names: Vec<&str> = options.tools.iter().map(|tool| &*tool.name).collect();
    let described = [
        ("dirs", json!(labels)),
        ("tools", json!(names)),
        ("repeats", json!(options.repeats)),
        ("beside", json!(options.placement == Placement::Beside)),
        ("cold", json!(options.caches == Caches::Cold)),
        ("sync", json!(options.finish == Finish::OnDisk)),
        (
            "store",
            json!(options.store.as_ref().map(|store| &store.url)),
        ),
    ];
    described
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

#[cfg(test)]
mod tests;
