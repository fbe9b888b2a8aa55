//! `create`: a new archive of a folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stook_archive::WriteOptions;
use stook_sys::{
    Context as _, Directory, FileKind, NameBuffer, create_directory, exists, look_at, remove_file,
};

use super::argparse::Values;
use super::context::Context;
use super::error::FrontError;
use super::messages;
use super::phases::Phase;
use super::settings::{Cache, INDEX, hpss};
use super::store::store;
use super::write::{WriteReporter, write_options};

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;

pub(crate) fn create(values: &Values, context: &Context) -> Result<(), FrontError> {
    let typed = values.text("path").unwrap_or(b".");
    let source = stook_sys::absolute(Path::new(OsStr::from_bytes(typed)))?;
    let hpss = hpss(values).unwrap_or_else(|| "none".to_owned());
    let maxsize = maxsize(values)?;
    let log = &context.log;
    log.debug(&messages::running("create"));
    let keep = values.switch("keep") || hpss == "none";
    for line in messages::settings(source.as_os_str().as_bytes(), &hpss, maxsize, keep) {
        log.debug(&line);
    }
    let is_directory = look_at(&source).is_ok_and(|found| found.kind == FileKind::Directory);
    if !is_directory {
        let text = messages::not_a_directory(source.as_os_str().as_bytes());
        log.error(&text);
        return Err(FrontError::raised("NotADirectoryError", text));
    }
    let cache = Cache::of(values, &source);
    let store = store(&hpss, keep)?;
    let mut reporter = WriteReporter::new(context, &cache, values);
    reporter.has_store = store.is_some();
    let records = reporter.records.errors(reporter.on_duplicate);
    let options = WriteOptions {
        volume_bytes: Some(u64::try_from(maxsize).unwrap_or(0)),
        volume_md5: reporter.records_volumes,
        records_volumes: reporter.records_volumes,
        record_errors: records,
        ..write_options(values, store)?
    };
    create_directory(&cache.folder)?;
    make_room(&cache)?;
    log.debug(messages::GATHERING);
    let created = stook_archive::create(&source, &cache.folder, &options, &reporter);
    if let Some(refusal) = reporter.refusal(messages::BROKEN_LINK_CREATE) {
        return Err(refusal);
    }
    let report = created?;
    context.phases.begin(Phase::Commit);
    context.phases.count(report.entries, report.members);
    put_index(context, &cache, reporter.has_store);
    let failed = reporter.failed_paths();
    if !failed.is_empty() {
        log.warning(messages::SOME_FAILED);
    }
    for path in failed {
        log.error(&messages::failed_to_archive(&path));
    }
    Ok(())
}

/// What zstash says when it stores the index, which the run has done.
pub(crate) fn put_index(context: &Context, cache: &Cache, has_store: bool) {
    if has_store {
        let path = cache.path_of(INDEX);
        context.log.info(&messages::sending(&path));
    } else {
        context.log.info(messages::PUT_UNAVAILABLE);
    }
}

/// Returns the largest size of a volume in bytes, as Python computes it.
fn maxsize(values: &Values) -> Result<i128, FrontError> {
    let bytes = GIB * values.float("maxsize");
    if bytes.is_nan() {
        let text = "cannot convert float NaN to integer";
        return Err(FrontError::raised("ValueError", text));
    }
    if bytes.is_infinite() {
        let text = "cannot convert float infinity to integer";
        return Err(FrontError::raised("OverflowError", text));
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Python cuts the fraction off, too; what is too large becomes the largest"
    )]
    Ok((bytes as i128).min(i128::from(i64::MAX)))
}

/// zstash removes an index that is there, and writes over its volumes. Here an index goes only where no volume is, so that nothing
/// that may be the only copy is lost: an ordinary user's zstash ends there, too, because volumes are read-only.
fn make_room(cache: &Cache) -> Result<(), FrontError> {
    let index = cache.index();
    if exists(&index)?.is_none() || is_unfinished(cache) || has_volumes(cache)? {
        return Ok(());
    }
    Ok(remove_file(&index)?)
}

/// Returns true if an interrupted `create` left it, which the next one goes on with.
fn is_unfinished(cache: &Cache) -> bool {
    let options = stook_archive::OpenOptions::default();
    let archive = stook_archive::Archive::open(&cache.folder, &options);
    let runs = archive.and_then(|archive| archive.runs());
    runs.is_ok_and(|runs| runs.last().is_some_and(|run| run.finished.is_none()))
}

fn has_volumes(cache: &Cache) -> Result<bool, FrontError> {
    let mut found = false;
    Directory::open(&cache.folder)?
        .names(&mut NameBuffer::default(), |it| {
            found |= it.name.ends_with(b".tar") || it.name.ends_with(b".tar.zst");
        })
        .context("list", &cache.folder)?;
    Ok(found)
}
