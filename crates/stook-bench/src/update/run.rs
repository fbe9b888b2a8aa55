//! The rounds of a study: sources are made, commands run, and what comes of them is compared.
//!
//! What a run leaves behind stays until the end while a quarter of the free space is enough for it. Removing it at once would
//! disturb the next run: for minutes an ext4 without a journal passes over inodes that have been freed, one by one. On one,
//! 6,000 files were extracted in 3.3 s instead of 0.45 s when as many had just been removed.
//!
//! # Source
//! `recently_deleted` in `fs/ext4/ialloc.c` of Linux.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stook_sys::{Context, Directory, FreeSpace, display_path};
use stook_tree::{CopyOptions, copy};

use super::compare::{compare_list, compare_trees};
use super::log::Logged;
use super::sources::{PAIRS, Source};
use super::stores::StoreFolder;
use super::tool::{Operation, Tool};
use super::tree_digest::{TreeDigest, digest};
use super::{Caches, Placement, UpdateStudy};
use crate::error::BenchError;
use crate::job::{Job, Output};
use crate::record::{Sample, labels};
use crate::remedy::Remedy;
use crate::scratch::ScratchDirectory;
use crate::template::Places;
use crate::trees::{Count, Failures};
use crate::{Observer, page_state};

/// Reported once, if that was not enough.
const REMOVED: &str = "what runs left behind takes too much space, and is removed between runs: \
    some file systems make files more slowly for minutes after that";

/// Everything that is gone through.
pub(super) struct Rounds<'a> {
    study: &'a UpdateStudy,
    place: &'a ScratchDirectory,
    observer: &'a dyn Observer,
    /// How the source of a pair looked when it was made first, before and after the update: it is always the same.
    sources_made: BTreeMap<(usize, bool), TreeDigest>,
    pub(super) left_behind: LeftBehind,
    unequal: u64,
}

/// Directories of runs that are over.
pub(super) struct LeftBehind {
    names: Vec<String>,
    runs: u32,
    /// They are removed when less than this is left.
    pub(super) least: FreeSpace,
    is_reported: bool,
}

/// One tool on one pair in one round.
struct Run<'a> {
    study: &'a UpdateStudy,
    observer: &'a dyn Observer,
    tool: &'a Tool,
    before: &'a Source,
    after: &'a Source,
    round: u32,
    source: PathBuf,
    archive: PathBuf,
    /// Where the archive is sent, if it is.
    store: Option<StoreFolder>,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        study: &'a UpdateStudy,
        place: &'a ScratchDirectory,
        observer: &'a dyn Observer,
    ) -> Result<Self, BenchError> {
        let free = stook_sys::free_space(place.path())?;
        let three_quarters = |of: u64| of - of / 4;
        let left_behind = LeftBehind {
            names: Vec::new(),
            runs: 0,
            least: FreeSpace {
                bytes: three_quarters(free.bytes),
                inodes: free.inodes.map(three_quarters),
            },
            is_reported: false,
        };
        Ok(Self {
            study,
            place,
            observer,
            sources_made: BTreeMap::new(),
            left_behind,
            unequal: 0,
        })
    }

    /// Goes through everything; returns how many trees and lists were not those of their source.
    pub(super) fn run(mut self) -> Result<u64, BenchError> {
        let tools = &self.study.options.tools;
        for round in 1..=self.study.options.repeats {
            for pair in 0..PAIRS.len() {
                for at in 0..tools.len() {
                    // Each tool is the first one in turn, so that none has the warmer caches always.
                    let tool = &tools[(at + round as usize - 1) % tools.len()];
                    self.run_tool(tool, pair, round, None)?;
                    let store = self.study.options.store.as_ref();
                    if let Some(store) = store.filter(|store| tool.sends_to(store.places())) {
                        let folder = StoreFolder::make(store)?;
                        self.run_tool(tool, pair, round, Some(folder))?;
                    }
                }
            }
        }
        Ok(self.unequal)
    }

    fn run_tool(
        &mut self,
        tool: &'a Tool,
        pair: usize,
        round: u32,
        store: Option<StoreFolder>,
    ) -> Result<(), BenchError> {
        let (first, second) = PAIRS[pair];
        let directory = self.next_directory()?;
        let run = Run {
            study: self.study,
            observer: self.observer,
            tool,
            before: &self.study.sources[first],
            after: &self.study.sources[second],
            round,
            source: directory.join("source"),
            archive: directory.join("archive"),
            store,
        };
        let repeats = self.study.options.repeats;
        let text = format!("round {round} of {repeats}: {}, {}", run.pair(), run.name());
        self.observer.progress(&text);
        stook_sys::create_directory(&run.archive)?;
        let made = self.make_source(&run, run.before, (pair, false))?;
        run.timed("create", Operation::Create, of(run.before), &made)?;
        let made = self.make_source(&run, run.after, (pair, true))?;
        run.timed("update", Operation::Update, of(run.after), &made)?;
        let all = Count {
            files: made.files,
            bytes: made.bytes,
        };
        run.timed("check", Operation::Check, all, &made)?;
        self.extract(&run, &directory, all, &made)?;
        run.store.map_or(Ok(()), StoreFolder::clear)
    }

    /// Makes a directory for a run; what runs before have left behind goes if it takes too much space.
    fn next_directory(&mut self) -> Result<PathBuf, BenchError> {
        let behind = &mut self.left_behind;
        let free = stook_sys::free_space(self.place.path())?;
        let is_full = free.bytes < behind.least.bytes || free.inodes < behind.least.inodes;
        if is_full && !behind.names.is_empty() {
            if !behind.is_reported {
                self.observer.warning(REMOVED);
                behind.is_reported = true;
            }
            for name in behind.names.drain(..) {
                self.place.clear(&name)?;
            }
        }
        let name = behind.runs.to_string();
        behind.runs += 1;
        let made = self.place.make_directory(&name)?;
        behind.names.push(name);
        Ok(made)
    }

    /// Copies a directory into the source, which must then look as it did in the runs before.
    fn make_source(
        &mut self,
        run: &Run<'_>,
        from: &Source,
        state: (usize, bool),
    ) -> Result<TreeDigest, BenchError> {
        run.copy(from)?;
        let made = digest(&run.source, self.observer)?;
        if *self.sources_made.entry(state).or_insert(made) == made {
            return Ok(made);
        }
        let path = display_path(&from.path);
        let what = format!("`{path}` has changed since the study began");
        Err(BenchError::refused_with(Remedy::CopyFirst, what))
    }

    fn extract(
        &mut self,
        run: &Run<'_>,
        directory: &Path,
        all: Count,
        made: &TreeDigest,
    ) -> Result<(), BenchError> {
        let mut list = run.list()?;
        for (name, workers) in [("extract_seq", 1), ("extract_par", 2)] {
            if workers > 1 && !run.tool.has_workers() {
                continue;
            }
            let into = directory.join(name);
            stook_sys::create_directory(&into)?;
            let Some(job) = run.job(Operation::Extract, &into, workers) else {
                continue;
            };
            let mut sample = run.measure(name, &job, all, made)?;
            let difference = compare_trees(&run.source, &into, self.observer)?;
            difference.note(&mut sample);
            if !difference.is_none() {
                self.unequal(run, name, "the extracted tree", &difference.text());
            }
            if let Some(list) = list.take() {
                list.note(&mut sample);
                if !list.difference.is_none() {
                    self.unequal(run, "list", "the list", &list.difference.text());
                }
            }
            self.observer.sampled(&sample);
        }
        Ok(())
    }

    fn unequal(&mut self, run: &Run<'_>, operation: &str, what: &str, how: &str) {
        self.unequal += 1;
        let when = run.when(operation);
        let text = format!("{when}: {what} is not the same as the source: {how}");
        self.observer.warning(&text);
    }
}

fn of(source: &Source) -> Count {
    Count {
        files: source.files(),
        bytes: source.bytes(),
    }
}

impl Run<'_> {
    fn pair(&self) -> String {
        format!("{} -> {}", self.before.label, self.after.label)
    }

    /// The tool, and where it sends to.
    fn name(&self) -> String {
        let sent = self.store.as_ref().and(self.study.options.store.as_ref());
        match sent {
            None => self.tool.name.clone(),
            Some(store) => format!("{} ({})", self.tool.name, store.kind()),
        }
    }

    /// Says which command it is, for messages.
    fn when(&self, operation: &str) -> String {
        let (pair, round) = (self.pair(), self.round);
        format!("round {round}, {pair}, {}, {operation}", self.name())
    }

    fn copy(&self, from: &Source) -> Result<(), BenchError> {
        let dest = match self.study.options.placement {
            Placement::Over => self.source.clone(),
            Placement::Beside => {
                stook_sys::create_directory(&self.source)?;
                // Labels are no names: they may hold slashes and dots.
                let is_first = std::ptr::eq(from, self.before);
                self.source.join(if is_first { "first" } else { "second" })
            }
        };
        let options = CopyOptions {
            is_update: true,
            ..CopyOptions::default()
        };
        let failures = Failures::of(self.observer);
        let copied = copy(&from.path, &dest, &options, &failures)?;
        if self.observer.is_stopped() {
            return Err(BenchError::Interrupted);
        }
        // A source that lacks a file is none.
        failures.none(Path::new(""))?;
        if copied.is_full {
            let place = display_path(&dest);
            let what = format!("there is no free space for more in `{place}`");
            return Err(BenchError::refused_with(
                Remedy::NameOtherWorkDirectory,
                what,
            ));
        }
        Ok(())
    }

    fn job(&self, operation: Operation, into: &Path, workers: u32) -> Option<Job> {
        let store = self.store.as_ref();
        let places = Places::default()
            .with("stook", &self.study.options.stook)
            .with("store", store.map_or("none", |store| &store.url))
            .with("hpss", store.map_or("none", StoreFolder::hpss))
            .with("source", &self.source)
            .with("archive", &self.archive)
            .with("into", into)
            .with("workers", workers.to_string());
        self.tool.job(operation, places, self.study.options.finish)
    }

    /// Runs a command, if the tool has it, and tells what it took.
    fn timed(
        &self,
        name: &str,
        operation: Operation,
        handled: Count,
        made: &TreeDigest,
    ) -> Result<(), BenchError> {
        if let Some(job) = self.job(operation, Path::new(""), 1) {
            let sample = self.measure(name, &job, handled, made)?;
            self.observer.sampled(&sample);
        }
        Ok(())
    }

    /// Runs a command; the source must not change by it.
    fn measure(
        &self,
        name: &str,
        job: &Job,
        handled: Count,
        made: &TreeDigest,
    ) -> Result<Sample, BenchError> {
        settle(&self.source, self.study.options.caches)?;
        let when = format!("in {}", self.when(name));
        let ran = job.succeed(&when, self.observer)?;
        if digest(&self.source, self.observer)? != *made {
            let what = format!("`{}` changed the source {when}", job.text());
            return Err(BenchError::refused_with(Remedy::KeepSource, what));
        }
        let mut sample = ran.sample(self.round);
        sample.labels = labels([
            ("tool", &self.tool.name),
            ("create", &self.before.label),
            ("update", &self.after.label),
            ("operation", name),
        ]);
        if let Some(store) = self.store.as_ref().and(self.study.options.store.as_ref()) {
            let kind = store.kind().to_owned();
            sample.labels.insert("store".to_owned(), kind);
        }
        Logged::read(&ran.log).note(&mut sample);
        sample.files = Some(handled.files);
        sample.bytes = Some(handled.bytes);
        Ok(sample)
    }

    /// Lists the archive, if the tool can, and compares the names.
    fn list(&self) -> Result<Option<super::compare::Listed>, BenchError> {
        let Some(mut job) = self.job(Operation::List, Path::new(""), 1) else {
            return Ok(None);
        };
        job.output = Output::Kept;
        let ran = job.succeed(&format!("in {}", self.when("list")), self.observer)?;
        compare_list(&self.source, &ran.stdout, self.observer).map(Some)
    }
}

/// Waits until all that was written is on the disk, so that no command pays for another one.
pub(super) fn settle(tree: &Path, caches: Caches) -> Result<(), BenchError> {
    let place = Directory::open(tree)?;
    place.sync_file_system().context("sync", tree)?;
    match caches {
        Caches::Hot => Ok(()),
        Caches::Cold => page_state::drop_all(),
    }
}
