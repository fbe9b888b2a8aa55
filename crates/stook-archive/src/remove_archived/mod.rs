//! `remove --archived-in`: what the archive provably holds goes from the tree; all else stays and is named.
//!
//! ```text
//!   walk      same size and mtime as a member? ──> the volumes that matter ──> each has passed a check
//!   record    the archive, locked, knows all of them as released from the tree ([`record`])
//!   removal   again, and the same MD5? ──> not changed while it was read? ──> unlink
//!             a directory in which nothing is left ──> rmdir
//! ```
//! A link goes if the archive has one with the same target, an empty directory if the archive has one of that name. Fifos, sockets
//! and devices stay: they hold nothing that could be compared.
//!
//! The removal is the usual one, and this its policy. What was proved gets a name that nobody knows, is looked at once
//! more, and goes: another file that has taken its place meanwhile gets its name back. A run that is killed in between
//! leaves such a name; its content is in the archive. Who writes through a mapping of memory is not seen: that changes
//! no time until it is written back.

mod evidence;
mod policy;
mod record;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use stook_index::{Index, NameTable};
use stook_sys::{Context, Directory, display_bytes, exists};
use stook_timers::scope;
use stook_tree::{Filter, RemoveObserver, RemoveOptions, Removed, Tree, WalkOptions, remove, walk};

use crate::ArchiveError;
use crate::archive::{Archive, Parts};
use crate::check::passed_volumes;
use crate::observer::{CountingObserver, Observer};
use crate::read::Volumes;
use evidence::{Candidates, Place};
use policy::ArchivePolicy;
use record::Recorder;
pub use record::Recording;

/// What became of the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemoveArchivedReport {
    /// What is gone.
    pub removed: Removed,
    /// Entries that stay because the archive does not provably hold them, each reported to the observer.
    pub staying: u64,
    /// Damages found in the volumes, each reported to the observer.
    pub damages: u64,
}

/// Why an entry stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staying {
    /// The archive does not have it.
    New,
    /// Its size, time, kind or content is another one.
    Changed,
    /// It changed while it was looked at.
    Changing,
    /// It is in a volume that did not pass its check.
    Unchecked,
    /// It is a fifo, a socket or a device.
    Special,
    /// It is the archive, or another one.
    Archive,
}

/// Receives what a removal of archived entries reports, on several threads at once.
pub trait RemoveArchivedObserver: RemoveObserver {
    /// Returns what receives the phases, and what the check finds.
    fn observer(&self) -> &dyn Observer;
    /// This stays; its path is as the user would write it.
    fn stays(&self, path: &[u8], why: Staying);
}

/// Removes from `tree` what `filter` selects and the archive holds with the same content, and then the directories in
/// which nothing is left. A removal that is stopped returns what it has done.
///
/// Names are those below the archived tree. If `tree` lies below the directory that was archived, it is compared with
/// that part of the archive, and a note says so.
///
/// What goes is recorded in the archive as `recording` says, before it goes.
///
/// # Errors
/// `Index` if the archive cannot be read, `Sys` if the tree cannot be opened, `CannotRecord` if another process writes to
/// the archive, or nobody may; `Interrupted`. All of them before anything went.
///
/// # Cost
/// A walk and a removal; every file that looks unchanged is read, and every volume that it is in, unless that has
/// passed its last check and not changed since. 48 bytes a row of the index, and 48 a candidate.
pub fn remove_archived<O: RemoveArchivedObserver>(
    tree: &Tree,
    archive: &mut Archive,
    filter: &Filter,
    options: &RemoveOptions,
    recording: Recording,
    observer: &O,
) -> Result<RemoveArchivedReport, ArchiveError> {
    let _scope = scope!("remove-archived");
    let counting = CountingObserver::new(observer.observer());
    let path = archive.path().to_owned();
    let Parts { index, folder, .. } = archive.parts(&counting)?;
    let Some(root) = open(tree, observer)? else {
        return Ok(RemoveArchivedReport::default());
    };
    let found = prefix_in(index, &root)?;
    let is_own_tree = found.is_some();
    let prefix = found.unwrap_or_default();
    if !prefix.is_empty() {
        counting.noted(&format!(
            "compared with `{}` in the archive",
            display_bytes(&prefix)
        ));
    }
    let mut recorder = if options.is_dry_run {
        None
    } else {
        Recorder::begin(folder, index, recording, is_own_tree, &counting)?
    };
    let place = Place {
        prefix,
        name_table: NameTable::load(index, None, options.jobs)?,
        filter,
    };
    counting.phase("compare", None, None);
    let candidates = Candidates::new(&place, observer);
    let walk_options = WalkOptions {
        jobs: options.jobs,
        ..WalkOptions::default()
    };
    walk(&root, &walk_options, &candidates);
    let mut evidence = candidates.evidence(index)?;
    let passed = passed_volumes(
        archive.parts(&counting)?,
        &evidence.volumes(),
        options.jobs,
        &counting,
    )?;
    evidence.keep_only(&passed);
    archive.index().require_unchanged()?;
    if observer.is_interrupted() {
        return Err(ArchiveError::Interrupted);
    }
    if let Some(recorder) = &mut recorder {
        recorder.record(archive.folder(), evidence.releasable())?;
    }
    counting.phase("remove", None, None);
    let policy = ArchivePolicy {
        place: &place,
        evidence: &evidence,
        volumes: Volumes::new(Arc::clone(archive.store())),
        archive: exists(&path)?.map(|metadata| metadata.identity()),
        tree,
        observer,
        is_dry_run: options.is_dry_run,
        staying: AtomicU64::new(0),
        set_aside: AtomicU64::new(0),
    };
    let removed = remove(std::slice::from_ref(tree), options, Some(&policy), observer);
    // After an interruption the next update does it.
    if let Some(recorder) = recorder.filter(|_| !observer.is_interrupted()) {
        recorder.withdraw(tree, &place, &walk_options, &counting);
    }
    Ok(RemoveArchivedReport {
        removed,
        staying: policy.staying.into_inner(),
        damages: counting.damages(),
    })
}

/// Opens the tree; None, after a report, if it is not there.
fn open<O: RemoveObserver>(tree: &Tree, observer: &O) -> Result<Option<Directory>, ArchiveError> {
    let path = tree.path();
    let refused = match tree.open() {
        Ok(root) => return Ok(Some(root)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            observer.missing(&path);
            return Ok(None);
        }
        Err(error) if stook_sys::is_no_directory(&error) => {
            io::Error::other("it is no directory, and only a tree can be compared with an archive")
        }
        Err(error) => error,
    };
    let path = Path::new(std::ffi::OsStr::from_bytes(&path));
    Ok(Err(refused).context("remove", path)?)
}

/// Returns where in the archive the tree is, if it is the directory that was archived, or lies below it. Any other tree is
/// compared with the top of the archive.
fn prefix_in(index: &Index, tree: &Directory) -> Result<Option<Vec<u8>>, ArchiveError> {
    let archived = index.config()?.path;
    let archived = Path::new(std::ffi::OsStr::from_bytes(&archived));
    if !archived.is_absolute() {
        return Ok(None);
    }
    // Where it was may be unreachable now, or something else.
    let Ok(Some(metadata)) = exists(archived) else {
        return Ok(None);
    };
    let above = tree
        .identities_upwards()
        .context("look at what is above", "the tree")?;
    let depth = above
        .iter()
        .position(|&identity| identity == metadata.identity());
    let Some(depth) = depth else {
        return Ok(None);
    };
    let path = tree.path().context("look at", "/proc/self/fd")?;
    let names: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    let below = names.len().saturating_sub(depth);
    Ok(Some(names[below..].join(&b'/')))
}
