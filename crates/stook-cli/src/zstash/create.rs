//! `create`: a new archive of a folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use stook_archive::{
    Archive, ArchiveError, StatusReport, StoreOptions, TransferError, WriteOptions, status,
};
use stook_sys::{
    Context as _, Directory, FileKind, NameBuffer, create_directory, exists, look_at, remove_file,
};

use super::argparse::Values;
use super::context::Context;
use super::error::FrontError;
use super::messages;
use super::phases::Phase;
use super::resume::announce_waiting;
use super::settings::{Cache, INDEX, hpss};
use super::store::store;
use super::write::{WriteReporter, write_options};

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;

pub(crate) fn create(values: &Values, context: &Context) -> Result<(), FrontError> {
    let typed = values.text("path").unwrap_or(b".");
    let typed = Path::new(OsStr::from_bytes(typed));
    let source = abspath(typed)?;
    let resolved = stook_sys::absolute(typed);
    let hpss = hpss(values).unwrap_or_else(|| "none".to_owned());
    let maxsize = maxsize(values)?;
    let log = &context.log;
    log.debug(&messages::running("create"));
    let keep = values.switch("keep") || hpss == "none";
    for line in messages::settings(source.as_os_str().as_bytes(), &hpss, maxsize, keep) {
        log.debug(&line);
    }
    let is_directory =
        |path: &PathBuf| look_at(path).is_ok_and(|found| found.kind == FileKind::Directory);
    let Some(resolved) = resolved.ok().filter(is_directory) else {
        let text = messages::not_a_directory(source.as_os_str().as_bytes());
        log.error(&text);
        return Err(FrontError::raised("NotADirectoryError", text));
    };
    let cache = Cache::of(values, &resolved);
    let store = store(&hpss, keep)?;
    let mut reporter = WriteReporter::new(context, &cache, values);
    reporter.has_store = store.is_some();
    let records = reporter.records.errors(reporter.on_duplicate);
    let options = WriteOptions {
        volume_bytes: Some(u64::try_from(maxsize).unwrap_or(0)),
        volume_md5: reporter.records_volumes,
        records_volumes: reporter.records_volumes,
        record_errors: records,
        recorded_source: Some(source),
        ..write_options(values, store)?
    };
    make_room(&cache, options.store.as_ref())?;
    create_directory(&cache.folder)?;
    announce_waiting(context, &cache, options.store.as_ref())?;
    log.debug(messages::GATHERING);
    let created = stook_archive::create(&resolved, &cache.folder, &options, &reporter);
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

/// Returns a path as Python's `os.path.abspath` does: links in it stay.
fn abspath(path: &Path) -> Result<PathBuf, FrontError> {
    let base = stook_sys::absolute(Path::new("."))?;
    let mut found = PathBuf::new();
    for component in base.join(path).components() {
        match component {
            Component::ParentDir => {
                found.pop();
            }
            Component::CurDir => {}
            other => found.push(other),
        }
    }
    Ok(found)
}

/// zstash removes an index that is there, and writes over its volumes. Here an index goes only where no volume is, so that nothing
/// that may be the only copy is lost: an ordinary user's zstash ends there, too, because volumes are read-only. One whose
/// volumes are in a store stays until that has an index, too, and the new place is known to take the archive.
fn make_room(cache: &Cache, store: Option<&StoreOptions>) -> Result<(), FrontError> {
    let index = cache.index();
    if exists(&index)?.is_none() || has_volumes(cache)? {
        return Ok(());
    }
    let options = stook_archive::OpenOptions::default();
    if let Ok(archive) = Archive::open(&cache.folder, &options) {
        let status = status(&archive, None)?;
        if is_unfinished(&archive) || is_goal(&status, store) {
            return Ok(());
        }
        if !is_replaceable(&status) {
            let path = cache.folder.clone();
            return Err(ArchiveError::Exists { path }.into());
        }
    }
    if let Some(store) = store {
        store.store.prepare()?;
        if store.store.stat(INDEX)?.is_some() {
            let store = store.store.name().to_owned();
            return Err(ArchiveError::from(TransferError::HoldsArchive { store }).into());
        }
    }
    Ok(remove_file(&index)?)
}

/// Returns true if an interrupted `create` left it, which the next one goes on with.
fn is_unfinished(archive: &Archive) -> bool {
    let runs = archive.runs();
    runs.is_ok_and(|runs| runs.last().is_some_and(|run| run.finished.is_none()))
}

/// Returns true if volumes were sent to this very store: `create` goes on with what is left, or refuses.
fn is_goal(status: &StatusReport, store: Option<&StoreOptions>) -> bool {
    let is_same = store.is_some_and(|store| status.place.as_ref() == Some(&store.place));
    let has_sent = status
        .volumes
        .iter()
        .any(|volume| volume.transfer.is_some());
    is_same && (has_sent || status.is_index_current.is_some())
}

/// Returns true if its store has all that it says, or it knows of none.
fn is_replaceable(status: &StatusReport) -> bool {
    let is_sent = status.is_index_current == Some(true);
    status.place.is_none() || is_sent && status.volumes.iter().all(|it| !it.is_missing(false))
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
