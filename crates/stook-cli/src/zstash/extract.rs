//! `extract` and `check`: members that are chosen by patterns or volumes, into the working directory, or only read.
//!
//! Where all volumes are here they are read at once, on all workers. What comes from a store comes volume by volume, so that the
//! cache holds one of them at a time.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_archive::{
    Archive, ExtractOptions, Jobs, RowId, RowRef, Selection, Silent, VolumeId, extract_selected,
    verify_selected,
};
use stook_sys::{exists, remove_file};

use super::argparse::Values;
use super::context::Context;
use super::error::FrontError;
use super::glob::Glob;
use super::log::{Level, Log};
use super::messages;
use super::phases::Phase;
use super::report::{Place, Report};
use super::settings::{Cache, hpss};
use super::store::{recorded_place, store};
use super::tars::Tars;
use super::update::{open, require_index};
use super::volumes::Fetcher;

/// zstash takes what differs by less than a second for the same; times have microseconds.
const TIME_TOLERANCE: u64 = 999_999;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Extract,
    Check,
}

impl Verb {
    fn command(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Check => "check",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Extract => "Extracting",
            Self::Check => "Checking",
        }
    }

    pub(crate) fn doing(self) -> &'static str {
        match self {
            Self::Extract => "extracting",
            Self::Check => "checking",
        }
    }
}

/// Which rows are meant.
enum Wanted {
    Tars(Tars),
    Files(Vec<(Vec<u8>, Glob, AtomicBool)>),
}

impl Wanted {
    fn of(values: &Values) -> Result<Self, FrontError> {
        let files = values.texts("files");
        let Some(tars) = values.text("tars") else {
            let pattern = |text: &Vec<u8>| (text.clone(), Glob::new(text), AtomicBool::new(false));
            return Ok(Self::Files(files.iter().map(pattern).collect()));
        };
        if files != [b"*".to_vec()] {
            return Err(FrontError::raised("ValueError", messages::TARS_AND_FILES));
        }
        Ok(Self::Tars(Tars::parse(tars)?))
    }

    /// A pattern that matches the name of a volume means all that is in it.
    fn matches(&self, row: &RowRef<'_>, volume: &[u8]) -> bool {
        let files = match self {
            Self::Tars(tars) => return tars.matches(row.volume),
            Self::Files(files) => files,
        };
        let mut is_any = false;
        for (_, glob, has_matched) in files {
            if glob.matches(row.name) || glob.matches(volume) {
                has_matched.store(true, Ordering::Relaxed);
                is_any = true;
            }
        }
        is_any
    }

    fn report_unmatched(&self, context: &Context) {
        if let Self::Files(files) = self {
            let unmatched = files.iter().filter(|it| !it.2.load(Ordering::Relaxed));
            for (pattern, ..) in unmatched {
                context.log.info(&messages::no_matches(pattern));
            }
        }
    }
}

pub(crate) fn extract(values: &Values, context: &Context, verb: Verb) -> Result<(), FrontError> {
    let log = &context.log;
    let cache = Cache::of(values, Path::new(""));
    let keep = values.switch("keep");
    let typed = hpss(values);
    log.debug("Opening index database");
    let typed_place = typed.as_deref().unwrap_or("none");
    let typed_store = store(typed_place, keep)?;
    if typed.is_some() && typed_store.is_none() && exists(&cache.index())?.is_none() {
        log.info(messages::GET_UNAVAILABLE);
    }
    require_index(&cache, typed_store.as_ref(), context, &Silent)?;
    let mut archive = open(&cache)?;
    let config = archive.config()?;
    let hpss = match typed {
        Some(typed) => typed,
        None => recorded_place(&archive)?,
    };
    let store = store(&hpss, keep)?;
    log.debug(&messages::running(verb.command()));
    let keep = keep || store.is_none();
    for line in messages::settings(&config.path, &hpss, config.maxsize.into(), keep) {
        log.debug(&line);
    }
    context.phases.begin(Phase::Gather);
    let wanted = Wanted::of(values)?;
    let selection = select(&archive, &wanted)?;
    wanted.report_unmatched(context);
    if selection.is_empty() {
        let text = messages::NOTHING_TO_EXTRACT;
        return Err(FrontError::raised("FileNotFoundError", text));
    }
    context.phases.count(selection.len(), 0);
    context.phases.begin(Phase::Plan);
    let order = places(&mut archive, &selection)?;
    let workers = values.integer("workers");
    let members_log = if workers > 1 {
        log.debug(&format!(
            "Running zstash {} with multiprocessing",
            verb.command()
        ));
        Log::of_workers()
    } else {
        Log::new(log.shows_debug())
    };
    let fetcher = Fetcher::new(
        context,
        &cache,
        store.as_ref(),
        archive.volume_records()?,
        values,
    );
    let mut run = Run {
        report: Report::new(context, members_log, verb, &cache, order),
        archive,
        selection,
        fetcher,
        verb,
        jobs: jobs(values.is_given("workers").then_some(workers)),
        keep,
    };
    run.run()?;
    context.phases.begin(Phase::Commit);
    // Lines of workers wait; those of others must not get between them.
    run.report.flush();
    log.debug("Closing index database");
    run.report.finish();
    Ok(())
}

/// As many as help, unless a bound was given.
fn jobs(bound: Option<i128>) -> Jobs {
    bound.map_or(Jobs::Adaptive, |bound| {
        Jobs::Fixed(u16::try_from(bound.max(1)).unwrap_or(u16::MAX).into())
    })
}

fn select(archive: &Archive, wanted: &Wanted) -> Result<Selection, FrontError> {
    let last = RefCell::new((None, String::new()));
    let matches = |row: &RowRef<'_>| {
        let (volume, name) = &mut *last.borrow_mut();
        if *volume != Some(row.volume) {
            *volume = Some(row.volume);
            *name = row.volume.to_string();
        }
        wanted.matches(row, name.as_bytes())
    };
    Ok(archive.select_newest(&matches, &Silent)?)
}

fn places(archive: &mut Archive, selection: &Selection) -> Result<Vec<Place>, FrontError> {
    let mut places = Vec::new();
    archive.rows(selection, |row| {
        places.push(Place {
            volume: row.volume,
            offset: row.offset,
            id: row.id,
        });
        ControlFlow::Continue(())
    })?;
    places.sort_unstable();
    Ok(places)
}

struct Run<'a> {
    archive: Archive,
    selection: Selection,
    fetcher: Fetcher<'a>,
    report: Report<'a>,
    verb: Verb,
    jobs: Jobs,
    keep: bool,
}

impl Run<'_> {
    fn run(&mut self) -> Result<(), FrontError> {
        let volumes = self.report.volumes();
        if self.fetcher.store.is_none() {
            return self.run_on(&volumes);
        }
        for volume in volumes {
            self.run_on(&[volume])?;
        }
        Ok(())
    }

    /// Works on the members of these volumes; those of one that cannot be used fail.
    fn run_on(&mut self, volumes: &[VolumeId]) -> Result<(), FrontError> {
        let (mut good, mut fetched) = (Vec::new(), Vec::new());
        for &volume in volumes {
            let mut lines = Vec::new();
            match self.fetcher.require(volume, &mut lines) {
                Ok(is_fetched) => {
                    self.report.open(volume, lines);
                    good.push(volume);
                    fetched.extend(is_fetched.then_some(volume));
                }
                Err(_) if self.fetcher.context.is_interrupted() => {
                    return Err(FrontError::Interrupted);
                }
                Err(error) => {
                    lines.extend(error.login_hint().map(|hint| (Level::Error, hint)));
                    let members = self.members_of(volume)?;
                    self.report.fail_volume(volume, lines, &error, members);
                }
            }
        }
        let done = self.work(&good, volumes);
        for volume in fetched {
            // Only what this run has fetched: another volume may be the only copy.
            if !self.keep {
                remove_file(&self.fetcher.path(volume))?;
            }
        }
        done
    }

    fn members_of(&mut self, volume: VolumeId) -> Result<Vec<(RowId, Vec<u8>)>, FrontError> {
        let chosen = self.selection_in(&[volume])?;
        let mut members = Vec::new();
        self.archive.rows(&chosen, |row| {
            members.push((row.id, row.name.to_vec()));
            ControlFlow::Continue(())
        })?;
        Ok(members)
    }

    /// Returns the chosen members that lie in these volumes.
    fn selection_in(&self, volumes: &[VolumeId]) -> Result<Selection, FrontError> {
        let matches = |row: &RowRef<'_>| {
            volumes.binary_search(&row.volume).is_ok() && self.selection.contains(row.id)
        };
        Ok(self.archive.select_newest(&matches, &Silent)?)
    }

    fn work(&mut self, good: &[VolumeId], all: &[VolumeId]) -> Result<(), FrontError> {
        if good.is_empty() {
            return Ok(());
        }
        let some;
        let selection = if good.len() == self.report.volumes().len() && good == all {
            &self.selection
        } else {
            some = self.selection_in(good)?;
            &some
        };
        match self.verb {
            Verb::Check => {
                verify_selected(&mut self.archive, selection, self.jobs, &self.report)?;
            }
            Verb::Extract => {
                let options = ExtractOptions {
                    jobs: self.jobs,
                    time_tolerance: TIME_TOLERANCE,
                    ..ExtractOptions::default()
                };
                let here = Path::new(".");
                extract_selected(&mut self.archive, here, selection, &options, &self.report)?;
            }
        }
        Ok(())
    }
}
