//! `create` and `update`: what they take and give back.
//!
//! Both are the same run over an archive that holds nothing yet, or something: see `session.rs`. A run that was
//! interrupted goes on when either is called again: its rows up to the last checkpoint count as
//! archived, so the survey finds just what is left to do.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use stook_pool::Jobs;
use stook_sys::{Links, create_directory};
use stook_tree::Filter;
use stook_volume::Dialect;

use crate::ArchiveError;
use crate::archive::Archive;
use crate::guard::Deletions;
use crate::metadata_change::MetadataChanges;
use crate::observer::Observer;
use crate::plan::PlanSummary;
use crate::session::Session;

/// How to create or update an archive.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one independent switch of the command line"
)]
pub struct WriteOptions {
    /// What to archive.
    pub filter: Filter,
    /// Largest length of a volume; None: what the archive was created with.
    pub volume_bytes: Option<u64>,
    /// Whether symbolic links are followed or stored.
    pub links: Links,
    /// How many workers.
    pub jobs: Jobs,
    /// How members are written.
    pub dialect: Dialect,
    /// Store every directory, not only empty ones and those whose name the archive holds already.
    pub directories: bool,
    /// Store extended attributes and access control lists.
    pub xattrs: bool,
    /// Compare the content of files that look unchanged.
    pub compare_content: bool,
    /// What becomes of entries of which only mode or owner changed.
    pub metadata: MetadataChanges,
    /// What becomes of names that are gone from the source.
    pub deletions: Deletions,
    /// Take the MD5 of whole volumes.
    pub volume_md5: bool,
    /// Take the write bits from finished volumes.
    pub read_only_volumes: bool,
    /// Create the archive in a folder that holds other files, too. In the dialect of zstash it always may.
    pub allows_other_files: bool,
    /// Only tell what would be written.
    pub is_dry_run: bool,
    /// Most bytes between two checkpoints.
    pub checkpoint_bytes: u64,
    /// Longest time between two checkpoints.
    pub checkpoint_interval: Duration,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            volume_bytes: None,
            links: Links::Refuse,
            jobs: Jobs::Adaptive,
            dialect: Dialect::Stook,
            directories: true,
            xattrs: true,
            compare_content: false,
            metadata: MetadataChanges::default(),
            deletions: Deletions::default(),
            volume_md5: true,
            read_only_volumes: true,
            allows_other_files: false,
            is_dry_run: false,
            checkpoint_bytes: 1 << 30,
            checkpoint_interval: Duration::from_secs(60),
        }
    }
}

/// What a `create` or `update` did.
#[derive(Debug, Clone, Default)]
pub struct WriteReport {
    /// Entries found in the source.
    pub entries: u64,
    /// Those that the archive holds as they are.
    pub unchanged: u64,
    /// Entries of which only mode or owner changed, and that were not archived again.
    pub metadata_changed: u64,
    /// Members written.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Volumes committed.
    pub volumes: u64,
    /// Names recorded as deleted.
    pub deleted: u64,
    /// Files that failed, each told to the observer.
    pub failed: u64,
    /// In a dry run: what would be written.
    pub plan: Option<PlanSummary>,
}

/// Archives the tree `source` into the folder `archive`, which is made.
///
/// # Errors
/// `Exists` if a finished archive is there; `OtherFiles` if something else is, unless that is allowed; `NameTaken` if that
/// has a name that the archive needs; `Sys` if the source cannot be opened or the archive not
/// written; `Locked` if another process writes it; `Planned` if it is reserved for a plan; `UnlikelyDeletions` if it goes on with an interrupted run, and
/// [`Deletions`] do not allow what it would record; `Interrupted` if the observer asked to end.
pub fn create(
    source: &Path,
    archive: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<WriteReport, ArchiveError> {
    let session = Session::new(source, archive, options, observer)?;
    let index = session.creatable().inspect_err(|error| {
        if matches!(error, ArchiveError::Exists { .. }) {
            // A run that was killed after its last commit left it; if not, the refusal is the same.
            let _ = session.folder.remove_stale_lock();
        }
    })?;
    if options.is_dry_run {
        return session.dry_run(index.map(Mutex::new).as_ref());
    }
    session.refuse_planned(index.as_ref())?;
    create_directory(archive)?;
    let _lock = session.folder.lock()?;
    // Looked at again: another process may have made the archive meanwhile.
    let index = match session.creatable()? {
        Some(index) => {
            session.refuse_planned(Some(&index))?;
            Some(session.folder.open_index_to_write()?)
        }
        None => None,
    };
    session.run(index, "create")
}

/// Archives what has changed in the tree `source` since the archive was written.
///
/// # Errors
/// As [`create`], but the archive is there. After `UnlikelyDeletions` it is as it was.
pub fn update(
    source: &Path,
    archive: &mut Archive,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<WriteReport, ArchiveError> {
    archive.set_interrupt(observer)?;
    let session = Session::new(source, archive.path(), options, observer)?;
    if options.is_dry_run {
        let report = session.dry_run(Some(archive.shared_index()))?;
        archive.index().require_unchanged()?;
        return Ok(report);
    }
    // Asked before the lock is made: what is refused leaves no trace.
    session.refuse_planned(Some(archive.index()))?;
    let _lock = session.folder.lock()?;
    let index = session.folder.open_index_to_write()?;
    session.refuse_planned(Some(&index))?;
    session.run(Some(index), "update")
}
