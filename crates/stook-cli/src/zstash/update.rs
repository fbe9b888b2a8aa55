//! `update`: what is new or changed below the working directory, into its archive.

use std::path::Path;

use stook_archive::{
    Archive, ArchiveError, Change, DiffOptions, Difference, OpenOptions, PullOptions, StoreOptions,
    WriteOptions, diff, pull,
};
use stook_sys::exists;
use stook_tree::split;

use super::argparse::Values;
use super::context::Context;
use super::create::put_index;
use super::error::FrontError;
use super::messages;
use super::phases::Phase;
use super::resume::announce_waiting;
use super::settings::{Cache, INDEX, hpss};
use super::store::{is_zstashs, recorded_place, store};
use super::write::{WriteReporter, write_options};
use crate::output::Data;

pub(crate) fn update(values: &Values, context: &Context) -> Result<(), FrontError> {
    let source = stook_sys::absolute(Path::new("."))?;
    let typed = hpss(values);
    let cache = Cache::of(values, &source);
    let log = &context.log;
    log.debug("Opening index database");
    let typed_store = store(typed.as_deref().unwrap_or("none"), false)?;
    let mut reporter = WriteReporter::new(context, &cache, values);
    require_index(&cache, typed_store.as_ref(), context, &reporter)?;
    let mut archive = open(&cache)?;
    let hpss = match typed {
        Some(typed) => typed,
        // zstash takes no place on record here; one that it does not know is of no use to it anyway.
        None => Some(recorded_place(&archive)?)
            .filter(|place| !is_zstashs(place))
            .unwrap_or_else(|| "none".to_owned()),
    };
    let keep = values.switch("keep") || hpss == "none";
    let store = store(&hpss, keep)?;
    reporter.has_store = store.is_some();
    let options = write_options(values, store)?;
    let config = archive.config()?;
    log.debug(&messages::running("update"));
    for line in messages::settings(&config.path, &hpss, config.maxsize.into(), keep) {
        log.debug(&line);
    }
    log.debug(messages::GATHERING);
    if values.switch("dry_run") {
        return dry_run(&source, &mut archive, &options, context, &reporter);
    }
    let has_waiting = announce_waiting(context, &cache, options.store.as_ref())?;
    let updated = stook_archive::update(&source, &mut archive, &options, &reporter);
    if let Some(refusal) = reporter.refusal(messages::BROKEN_LINK_UPDATE) {
        return Err(refusal);
    }
    let report = updated?;
    context.phases.begin(Phase::Commit);
    context.phases.count(report.entries, report.members);
    let failed = reporter.failed_paths();
    if report.members == 0 && failed.is_empty() {
        log.info(messages::NOTHING_TO_UPDATE);
        if has_waiting {
            put_index(context, &cache, reporter.has_store);
        }
        return Ok(());
    }
    put_index(context, &cache, reporter.has_store);
    if !failed.is_empty() {
        log.warning(messages::SOME_FAILED);
    }
    for path in failed {
        log.error(&messages::archiving(&path));
    }
    Ok(())
}

pub(crate) fn open(cache: &Cache) -> Result<Archive, FrontError> {
    let options = OpenOptions {
        scratch: Some(std::env::temp_dir()),
        ..OpenOptions::default()
    };
    let archive = Archive::open(&cache.folder, &options)?;
    if archive.zstd_level()?.is_some() {
        let path = cache.folder.clone();
        return Err(ArchiveError::CompressedForZstash { path }.into());
    }
    Ok(archive)
}

/// Fetches the index if it is not here. Without a place to fetch it from nothing is made.
pub(crate) fn require_index(
    cache: &Cache,
    store: Option<&StoreOptions>,
    context: &Context,
    observer: &dyn stook_archive::Observer,
) -> Result<(), FrontError> {
    if exists(&cache.index())?.is_some() {
        return Ok(());
    }
    let Some(store) = store else {
        context.log.error(messages::NO_INDEX);
        return Err(FrontError::raised("ValueError", messages::NO_INDEX));
    };
    let path = cache.path_of(INDEX);
    context.log.info(&messages::fetching(&path));
    let only_index = PullOptions {
        volumes: None,
        only_index: true,
    };
    pull(&cache.folder, store, &only_index, observer)?;
    Ok(())
}

fn dry_run(
    source: &Path,
    archive: &mut Archive,
    options: &WriteOptions,
    context: &Context,
    reporter: &WriteReporter<'_>,
) -> Result<(), FrontError> {
    context.phases.begin(Phase::Compare);
    let compared = DiffOptions {
        filter: options.filter.clone(),
        links: options.links,
        time_tolerance: options.time_tolerance,
        compare_metadata: false,
        directories: false,
        ..DiffOptions::default()
    };
    let report = diff(source, archive, &compared, reporter)?;
    let is_wanted = |it: &&Difference| matches!(it.change, Change::New | Change::Changed { .. });
    let differences = report.differences.iter().filter(is_wanted);
    let mut paths: Vec<&[u8]> = differences.map(|it| it.path.as_slice()).collect();
    // A directory is empty, and sorts as if it held something.
    paths.sort_by_key(|path| (split(path), *path));
    context.phases.count(report.entries, paths.len() as u64);
    if paths.is_empty() {
        context.log.info(messages::NOTHING_TO_UPDATE);
        return Ok(());
    }
    context.log.flush();
    let mut data = Data::new();
    let print = || {
        data.line(messages::LIST)?;
        for path in paths {
            let line = [path, b"\n"].concat();
            std::io::Write::write_all(data.bytes(), &line)?;
        }
        data.flush()
    };
    print().map_err(FrontError::Output)
}
