//! The study of an archive that exists: how long it takes to find out what an update would add, and what that is.
//!
//! ```text
//!   round ──> state of the tree ──> tool (the first one another in each round)
//!     a copy of index.db ──> dry run, timed                              round 1: another copy ──> what would be added, compared
//!   states: source   the tree itself
//!           replica  its names, sizes and times, in sparse files
//!           added    another replica, with those of the added files
//! ```
//! Neither the archive nor the tree is ever written: tools get a copy of the index, and files are added to a replica. What the
//! replica shows without them, beside the tree itself, tells what it is worth.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::json;
use stook_sys::{Context, Directory, display_path};

use super::compare::Listed;
use super::log::Logged;
use super::replica::replicate;
use super::run::settle;
use super::sources::{Source, holder};
use super::tool::{Operation, Tool};
use super::tree_digest::{digest, paths_below};
use super::{Caches, Finish, versions};
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Output};
use crate::page_state;
use crate::record::{Header, Kind, Sample, labels};
use crate::remedy::Remedy;
use crate::scratch::ScratchDirectory;
use crate::space::Need;
use crate::template::Places;

const INDEX: &str = "index.db";
/// What SQLite keeps beside an index that is being written, or was when its writer died.
const JOURNAL: &str = "index.db-journal";
/// Where the added files are in the replica.
const ADDED: &str = "stook-bench-added";

/// What to measure.
#[derive(Debug, Clone)]
pub struct ArchivedOptions {
    /// The programs; ratios are against the first.
    pub tools: Vec<Tool>,
    /// The program for the place `{stook}`.
    pub stook: PathBuf,
    /// The archive, of which only `index.db` is read.
    pub archive: PathBuf,
    /// The tree that was archived.
    pub source: PathBuf,
    /// A directory with files that are added.
    pub add: Option<PathBuf>,
    /// How often all is gone through.
    pub repeats: u32,
    /// Where to make the work directory; beside the source, if None.
    pub work: Option<PathBuf>,
    /// What is in the caches.
    pub caches: Caches,
}

/// A study that can be made.
#[derive(Debug)]
pub struct ArchivedStudy {
    options: ArchivedOptions,
    /// The tree, and the directory with added files.
    sources: Vec<Source>,
    holder: PathBuf,
    header: Header,
}

impl ArchivedStudy {
    /// Looks at the archive, the directories and the tools, and writes nothing.
    ///
    /// # Errors
    /// [`BenchError::Sys`] for what cannot be read, [`BenchError::Refused`] for an archive in the source or one that is being
    /// written, directories in each other, too little free space, or caches that may not be dropped; [`BenchError::Missing`]
    /// for a tool that is not installed, [`BenchError::NoToolCommand`] for one without dry run,
    /// [`BenchError::Usage`] for none at all, or none repeats.
    pub fn prepare(
        options: ArchivedOptions,
        started: &str,
        observer: &dyn Observer,
    ) -> Result<Self, BenchError> {
        if options.tools.is_empty() || options.repeats == 0 {
            let why = "there must be a tool, and one repeat at least";
            return Err(BenchError::usage(why));
        }
        for tool in &options.tools {
            tool.require(&[Operation::DryRun])?;
        }
        let paths = [Some(&options.source), options.add.as_ref()];
        let paths: Vec<PathBuf> = paths.into_iter().flatten().cloned().collect();
        let sources = Source::all(&paths, observer)?;
        refuse_archive(&options.archive, &sources[0])?;
        let holder = holder(options.work.as_deref(), &sources)?;
        let index = stook_sys::look_at(&options.archive.join(INDEX))?;
        needed(index.size, &sources).require(&holder, Remedy::NameOtherWorkDirectory)?;
        let mut header = Header::new(Kind::Update, started);
        header.programs = versions(&options.tools, &options.stook)?;
        header.options = described(&options, &sources);
        header.files = Some(super::sources::properties(&sources));
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

    /// Makes the study; returns how many lists were not as expected; the observer got a warning for each.
    ///
    /// # Errors
    /// [`BenchError::Command`] with the first command that fails, [`BenchError::Refused`] if the source changes,
    /// [`BenchError::Sys`] if the replica cannot be made, [`BenchError::Interrupted`]. The work directory is gone then, too.
    pub fn run(&self, observer: &dyn Observer) -> Result<u64, BenchError> {
        let place = ScratchDirectory::make(&self.holder)?;
        let unequal = self.run_in(&place, observer);
        observer.progress("removing what was made");
        if let Err(error) = place.remove() {
            observer.warning(&error.to_string());
        }
        unequal
    }

    fn run_in(&self, place: &ScratchDirectory, observer: &dyn Observer) -> Result<u64, BenchError> {
        let before = digest(&self.options.source, observer)?;
        let mut rounds = Rounds {
            study: self,
            place,
            observer,
            states: self.states(place, observer)?,
            lists: BTreeMap::new(),
            unequal: 0,
        };
        for round in 1..=self.options.repeats {
            rounds.round(round)?;
        }
        if digest(&self.options.source, observer)? != before {
            let source = display_path(&self.options.source);
            let what = format!("`{source}` has changed since the study began");
            return Err(BenchError::refused_with(Remedy::CopyFirst, what));
        }
        Ok(rounds.unequal)
    }

    /// Makes the replicas, if files are added.
    fn states(
        &self,
        place: &ScratchDirectory,
        observer: &dyn Observer,
    ) -> Result<Vec<State>, BenchError> {
        let mut states = vec![State {
            name: "source",
            tree: stook_sys::absolute(&self.options.source)?,
            files: self.sources[0].files(),
            bytes: self.sources[0].bytes(),
        }];
        let Some(added) = self.sources.get(1) else {
            return Ok(states);
        };
        observer.progress("making two replicas of the source, without content");
        for name in ["replica", "added"] {
            let tree = place.path().join(name);
            let left_out = replicate(&self.options.source, &tree, observer)?;
            if left_out > 0 && name == "replica" {
                let text = format!("the replica lacks {left_out} sockets, fifos and devices");
                observer.warning(&text);
            }
            let source = &states[0];
            let (files, bytes) = (source.files, source.bytes);
            states.push(State {
                name,
                tree,
                files,
                bytes,
            });
        }
        let state = &mut states[2];
        let root = Directory::open(&state.tree)?;
        let own = root.own_metadata().context("look at", &state.tree)?;
        replicate(&added.path, &state.tree.join(ADDED), observer)?;
        let set = root.set_own_mtime(own.mtime);
        set.context("set the time of", &state.tree)?;
        state.files += added.files();
        state.bytes += added.bytes();
        Ok(states)
    }
}

/// Only a copy of the index is used, so an archive in its source can be named by one elsewhere.
fn refuse_archive(archive: &Path, source: &Source) -> Result<(), BenchError> {
    let opened = Directory::open(archive)?;
    let shown = display_path(archive);
    let above = opened.identities_upwards();
    if above
        .context("look at what is above", archive)?
        .contains(&source.identity)
    {
        let within = display_path(&source.path);
        let what = format!("`{shown}` is in `{within}`, and would be found as new files");
        return Err(BenchError::refused_with(Remedy::CopyIndex, what));
    }
    match stook_sys::exists(&archive.join(JOURNAL))? {
        None => Ok(()),
        Some(_) => Err(BenchError::refused(format!(
            "`{shown}` is being written, or has `{JOURNAL}` of a run that was killed"
        ))),
    }
}

/// Two copies of the index at once, and two replicas.
fn needed(index_bytes: u64, sources: &[Source]) -> Need {
    // What an inode and a name take of a file system that makes them one by one.
    const ENTRY: u64 = 512;
    let entries = |source: &Source| source.summary.counts.entries;
    let made = match sources {
        [source, added] => 2 * entries(source) + entries(added),
        _ => 0,
    };
    Need {
        bytes: 2 * index_bytes + made * ENTRY,
        inodes: made,
    }
}

fn described(options: &ArchivedOptions, sources: &[Source]) -> BTreeMap<String, serde_json::Value> {
    let labels: Vec<&str> = sources.iter().map(|source| &*source.label).collect();
    let names: Vec<&str> = options.tools.iter().map(|tool| &*tool.name).collect();
    let described = [
        ("archive", json!(display_path(&options.archive))),
        ("dirs", json!(labels)),
        ("tools", json!(names)),
        ("repeats", json!(options.repeats)),
        ("cold", json!(options.caches == Caches::Cold)),
    ];
    described
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// A tree that is compared with the index.
struct State {
    name: &'static str,
    tree: PathBuf,
    files: u64,
    bytes: u64,
}

struct Rounds<'a> {
    study: &'a ArchivedStudy,
    place: &'a ScratchDirectory,
    observer: &'a dyn Observer,
    states: Vec<State>,
    /// What the first tool would add, by the state.
    lists: BTreeMap<&'static str, BTreeSet<Vec<u8>>>,
    unequal: u64,
}

impl Rounds<'_> {
    fn round(&mut self, round: u32) -> Result<(), BenchError> {
        let tools = &self.study.options.tools;
        for state in 0..self.states.len() {
            for at in 0..tools.len() {
                // The lists of the first tool come first in round 1; then each tool is the first one in turn.
                let tool = &tools[(at + round as usize - 1) % tools.len()];
                let mut sample = self.timed(tool, state, round)?;
                if let (1, Some(listed)) = (round, self.listed(tool, state)?) {
                    listed.note(&mut sample);
                    self.report(tool, &self.states[state], &listed);
                    self.unequal += u64::from(!listed.difference.is_none());
                }
                self.observer.sampled(&sample);
            }
        }
        Ok(())
    }

    fn timed(&self, tool: &Tool, state: usize, round: u32) -> Result<Sample, BenchError> {
        let state = &self.states[state];
        let options = &self.study.options;
        let when = format!(
            "round {round} of {}: {}, {}",
            options.repeats, state.name, tool.name
        );
        self.observer.progress(&when);
        let archive = self.fresh_archive()?;
        let job = self.job(tool, Operation::DryRun, state, &archive);
        let job = job.expect("`prepare` has looked for it");
        settle(&archive, options.caches)?;
        let ran = job.succeed(&format!("in {when}"), self.observer)?;
        let mut sample = ran.sample(round);
        sample.labels = labels([
            ("tool", &tool.name),
            ("create", &display_path(&options.archive)),
            ("update", state.name),
            ("operation", Operation::DryRun.word()),
        ]);
        Logged::read(&ran.log).note(&mut sample);
        sample.files = Some(state.files);
        sample.bytes = Some(state.bytes);
        Ok(sample)
    }

    /// Copies the index to where nothing else is.
    fn fresh_archive(&self) -> Result<PathBuf, BenchError> {
        self.place.clear("archive")?;
        let archive = self.place.make_directory("archive")?;
        let (from, to) = (self.study.options.archive.join(INDEX), archive.join(INDEX));
        let (mut source, mut copy) = (
            stook_sys::open_file(&from)?,
            stook_sys::create_new_file(&to)?,
        );
        std::io::copy::<File, File>(&mut source, &mut copy).context("copy", &from)?;
        Ok(archive)
    }

    fn job(&self, tool: &Tool, operation: Operation, state: &State, archive: &Path) -> Option<Job> {
        let places = Places::default()
            .with("stook", &self.study.options.stook)
            .with("store", "none")
            .with("hpss", "none")
            .with("source", &state.tree)
            .with("archive", archive)
            .with("into", "")
            .with("workers", "1");
        tool.job(operation, places, Finish::Ended)
    }

    /// Returns what a tool would add, beside what is expected: of the first tool, for a replica what it said of the source, with the
    /// added files; of others, what the first tool said.
    fn listed(&mut self, tool: &Tool, at: usize) -> Result<Option<Listed>, BenchError> {
        let archive = self.fresh_archive()?;
        let state = &self.states[at];
        let Some(job) = self.job(tool, Operation::Changes, state, &archive) else {
            return Ok(None);
        };
        let job = Job {
            output: Output::Kept,
            ..job
        };
        let when = format!("in the list of {}, {}", state.name, tool.name);
        let ran = job.succeed(&when, self.observer)?;
        let paths = paths_below(&state.tree, self.observer)?;
        let names = super::compare::names(&ran.stdout, &paths);
        let own: BTreeSet<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
        let is_first = *tool == self.study.options.tools[0];
        let expected = match (is_first, self.lists.get("source")) {
            (true, None) => own.clone(),
            (true, Some(source)) => {
                let is_added = |(path, is_directory): &(&Vec<u8>, &bool)| {
                    !**is_directory && path.starts_with(format!("{ADDED}/").as_bytes())
                };
                let added = paths.iter().filter(is_added).map(|(path, _)| path);
                source.iter().chain(added).cloned().collect()
            }
            (false, _) => self.lists.get(state.name).unwrap_or(&own).clone(),
        };
        let listed = Listed::new(&expected.iter().map(Vec::as_slice).collect(), &names);
        if is_first {
            self.lists.insert(state.name, own);
        }
        Ok(Some(listed))
    }

    fn report(&self, tool: &Tool, state: &State, listed: &Listed) {
        if !listed.difference.is_none() {
            let (first, name) = (&self.study.options.tools[0].name, &tool.name);
            let expected = match name == first {
                true => format!("what {name} lists of the source, with the added files"),
                false => format!("the list of {first}"),
            };
            let (state, how) = (state.name, listed.difference.text());
            let text = format!("{state}, {name}: the list is not {expected}: {how}");
            self.observer.warning(&text);
        }
    }
}
