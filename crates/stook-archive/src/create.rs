//! `create` and `update`: survey, plan, pack, commit.
//!
//! Both are the same run over an archive that holds nothing yet, or something. A run that was
//! interrupted goes on when either is called again: its rows up to the last checkpoint count as
//! archived, so the survey finds just what is left to do.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stook_index::{Checkpoint, Config, Index, IndexError, Known, Mtime, RunId, Staging, VolumeId};
use stook_pool::Jobs;
use stook_sys::{Context, Directory, FileId, Links, Owners, create_directory, exists, utc_now};
use stook_timers::scope;
use stook_tree::Filter;
use stook_volume::Dialect;

use crate::ArchiveError;
use crate::folder::{Folder, is_needed};
use crate::guard::{Deletions, Guard, UnlikelyDeletions};
use crate::layout::Layout;
use crate::memory::{budget_bytes, worker_pool};
use crate::mutex::lock;
use crate::observer::{Observer, Tally};
use crate::pack::Packer;
use crate::plan::{Cutter, DEFAULT_VOLUME_BYTES, Plan, PlanSummary};
use crate::recovery::{Blank, Leftover, next_volume, recover, remove_all_unfinished};
use crate::survey::{Held, Survey, SurveyOptions, archive_order, open_source, survey};
use crate::tracks::batches;
use crate::writer::{VolumeWriter, WriterOptions, Written};

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
/// written; `Locked` if another process writes it; `UnlikelyDeletions` if it goes on with an interrupted run, and
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
        return session.dry_run(index);
    }
    create_directory(archive)?;
    let _lock = session.folder.lock()?;
    // Looked at again: another process may have made the archive meanwhile.
    let index = match session.creatable()? {
        Some(_) => Some(session.folder.open_index_to_write()?),
        None => None,
    };
    session.run(index, "create")
}

/// Archives what has changed in the tree `source` since the archive was written.
///
/// # Errors
/// As [`create`], but the archive must be there. After `UnlikelyDeletions` it is as it was.
pub fn update(
    source: &Path,
    archive: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<WriteReport, ArchiveError> {
    let session = Session::new(source, archive, options, observer)?;
    // Opened for reading first: an index that cannot be used leaves no trace of the lock.
    let index = session.folder.open_index()?;
    if options.is_dry_run {
        return session.dry_run(Some(index));
    }
    drop(index);
    let _lock = session.folder.lock()?;
    let index = session.folder.open_index_to_write()?;
    session.run(Some(index), "update")
}

struct Session<'a> {
    source: Directory,
    source_path: PathBuf,
    folder: Folder,
    options: &'a WriteOptions,
    observer: Tally<'a>,
}

impl<'a> Session<'a> {
    fn new(
        source: &Path,
        archive: &Path,
        options: &'a WriteOptions,
        observer: &'a dyn Observer,
    ) -> Result<Self, ArchiveError> {
        let session = Self {
            source: open_source(source)?,
            source_path: source.to_owned(),
            folder: Folder::until(archive, observer.interrupt()),
            options,
            observer: Tally::new(observer),
        };
        let own = session.source.own_metadata().context("look at", source)?;
        if session.archive_identity()? == Some(own.identity()) {
            return Err(ArchiveError::IntoItself {
                path: source.to_owned(),
            });
        }
        Ok(session)
    }

    fn archive_identity(&self) -> Result<Option<FileId>, ArchiveError> {
        Ok(exists(self.folder.path())?.map(|metadata| metadata.identity()))
    }

    /// Returns the index of an interrupted run, or None if nothing is there yet.
    fn creatable(&self) -> Result<Option<Index>, ArchiveError> {
        let path = self.folder.path().to_owned();
        if exists(&path)?.is_none() {
            return Ok(None);
        }
        // Says so if it is no folder.
        Directory::open(&path)?;
        if exists(&self.folder.index())?.is_some() {
            let index = self.folder.open_index()?;
            // Killed before its first run was on record, or in the middle of one.
            let is_begun = index.unfinished_run()?.is_some()
                || (index.runs()?.is_empty() && index.row_count()? == 0);
            return if is_begun {
                Ok(Some(index))
            } else {
                Err(ArchiveError::Exists { path })
            };
        }
        if !self.folder.volumes()?.is_empty() {
            return Err(ArchiveError::NoIndex { path });
        }
        self.admit_other_files()?;
        Ok(None)
    }

    /// Refuses a folder for a new archive that holds what stook did not make.
    fn admit_other_files(&self) -> Result<(), ArchiveError> {
        let found = self.folder.foreign_entries()?;
        let is_allowed = self.options.allows_other_files || self.options.dialect == Dialect::Zstash;
        if !found.is_empty() && !is_allowed {
            return Err(ArchiveError::OtherFiles {
                path: self.folder.path().to_owned(),
                names: found,
            });
        }
        match found.iter().find(|name| is_needed(name)) {
            Some(name) => Err(ArchiveError::NameTaken {
                path: self.folder.path().join(OsStr::from_bytes(name)),
            }),
            None => Ok(()),
        }
    }

    fn dry_run(&self, index: Option<Index>) -> Result<WriteReport, ArchiveError> {
        let known = index
            .as_ref()
            .map(|index| Known::load(index, None, self.options.jobs))
            .transpose()?;
        let index = index.map(Mutex::new);
        let found = self.survey(index.as_ref(), known.as_ref())?;
        let unseen = Unseen::new(&found, &self.options.filter);
        let unlikely = self.unlikely_deletions(index.as_ref(), known.as_ref(), None, &unseen)?;
        if let Some(unlikely) = unlikely {
            self.observer
                .noted(&format!("the run would stop: {unlikely}"));
        }
        let report = WriteReport {
            entries: found.entries,
            unchanged: found.unchanged,
            ..WriteReport::default()
        };
        let plan = Plan::new(found);
        let (first, limit, deleted) =
            match index.map(|index| index.into_inner().unwrap_or_else(PoisonError::into_inner)) {
                Some(index) => {
                    let deleted = self.count_deleted(&index, known.as_ref(), &unseen)?;
                    let blank = match index.unfinished_run()? {
                        Some(_) => Blank::Own,
                        None => Blank::Foreign,
                    };
                    (
                        next_volume(&self.folder, &index, blank)?,
                        index.config()?.maxsize,
                        deleted,
                    )
                }
                None => (VolumeId(0), DEFAULT_VOLUME_BYTES, 0),
            };
        let cutter = Cutter {
            dialect: self.options.dialect,
            limit: self.options.volume_bytes.unwrap_or(limit),
        };
        let plan = plan.summary(first, cutter, &Owners::default(), deleted);
        Ok(WriteReport {
            plan: Some(plan),
            failed: self.observer.failures(),
            ..report
        })
    }

    fn run(&self, index: Option<Index>, command: &str) -> Result<WriteReport, ArchiveError> {
        let unfinished = index
            .as_ref()
            .map(Index::unfinished_run)
            .transpose()?
            .flatten();
        let left = match &index {
            Some(index) => recover(&self.folder, index, unfinished.as_ref().map(|run| run.id))?,
            None => {
                remove_all_unfinished(&self.folder)?;
                Vec::new()
            }
        };
        let stagings = || left.iter().map(|(_, staging)| staging);
        let known = {
            let _scope = scope!("load index");
            index
                .as_ref()
                .map(|index| load_to_write(index, stagings(), self.options.jobs))
                .transpose()?
        };
        let index = index.map(Mutex::new);
        let found = self.survey(index.as_ref(), known.as_ref())?;
        let unseen = Unseen::new(&found, &self.options.filter);
        let unlikely =
            self.unlikely_deletions(index.as_ref(), known.as_ref(), stagings(), &unseen)?;
        if let Some(unlikely) = unlikely {
            return Err(ArchiveError::UnlikelyDeletions {
                archive: self.folder.path().to_owned(),
                unlikely,
            });
        }
        let mut report = WriteReport {
            entries: found.entries,
            unchanged: found.unchanged,
            ..WriteReport::default()
        };
        let leftovers = left
            .into_iter()
            .map(|(checkpoint, staging)| resumable(checkpoint, staging, &found))
            .collect::<Result<Vec<_>, _>>()?;
        let plan = Plan::new(found);
        let mut index = match index {
            Some(index) => index.into_inner().unwrap_or_else(PoisonError::into_inner),
            None => self.make_index()?,
        };
        let is_idle =
            plan.members == 0 && leftovers.is_empty() && unfinished.is_none() && known.is_some();
        if is_idle && self.count_deleted(&index, known.as_ref(), &unseen)? == 0 {
            report.failed = self.observer.failures();
            return Ok(report);
        }
        let run = match unfinished {
            Some(run) => run.id,
            None => index.begin_run(command, utc_now().into())?,
        };
        let written = self.write(&mut index, run, &plan, leftovers)?;
        report.members = written.members;
        report.bytes = written.bytes;
        report.volumes = written.volumes;
        report.failed = self.observer.failures();
        report.deleted = self.finish(&mut index, run, known.as_ref(), &unseen)?;
        Ok(report)
    }

    fn survey(
        &self,
        index: Option<&Mutex<Index>>,
        known: Option<&Known>,
    ) -> Result<Survey, ArchiveError> {
        self.observer.phase("survey", None, None);
        let options = SurveyOptions {
            filter: &self.options.filter,
            links: self.options.links,
            jobs: self.options.jobs,
            directories: self.options.directories,
            compare_content: self.options.compare_content,
            leave_out: self.archive_identity()?,
        };
        let held = index.zip(known).map(|(index, known)| Held { known, index });
        let found = survey(&self.source, &options, held.as_ref(), None, &self.observer);
        self.require_going_on()?;
        Ok(found)
    }

    fn unlikely_deletions<'s>(
        &self,
        index: Option<&Mutex<Index>>,
        known: Option<&Known>,
        stagings: impl IntoIterator<Item = &'s Staging>,
        unseen: &Unseen<'_>,
    ) -> Result<Option<UnlikelyDeletions>, ArchiveError> {
        let Some((index, known)) = index.zip(known) else {
            return Ok(None);
        };
        let guard = Guard {
            index: &lock(index),
            known,
            unseen,
            source: &self.source,
            tree: &self.source_path,
        };
        guard.unlikely_deletions(self.options.deletions, stagings, &self.observer)
    }

    fn count_deleted(
        &self,
        index: &Index,
        known: Option<&Known>,
        unseen: &Unseen<'_>,
    ) -> Result<u64, ArchiveError> {
        if self.options.deletions == Deletions::Keep {
            return Ok(0);
        }
        count_deleted(index, known, unseen)
    }

    fn make_index(&self) -> Result<Index, ArchiveError> {
        let config = Config {
            hpss: "none".to_owned(),
            maxsize: self.options.volume_bytes.unwrap_or(DEFAULT_VOLUME_BYTES),
            path: stook_sys::absolute(&self.source_path)?
                .as_os_str()
                .as_bytes()
                .to_vec(),
        };
        let mut index = Index::create(self.folder.index(), &config)?;
        index.set_interrupt(&self.folder.interrupt)?;
        Ok(index)
    }

    fn write(
        &self,
        index: &mut Index,
        run: RunId,
        plan: &Plan,
        leftovers: Vec<Leftover>,
    ) -> Result<Written, ArchiveError> {
        let _scope = scope!("archive");
        self.observer
            .phase("archive", Some(plan.members), Some(plan.bytes));
        let limit = self
            .options
            .volume_bytes
            .map_or_else(|| index.config().map(|config| config.maxsize), Ok)?;
        let cutter = Cutter {
            dialect: self.options.dialect,
            limit,
        };
        let options = WriterOptions {
            cutter,
            takes_md5: self.options.volume_md5,
            read_only: self.options.read_only_volumes,
            checkpoint_bytes: self.options.checkpoint_bytes,
            checkpoint_interval: self.options.checkpoint_interval,
        };
        let owners = Owners::default();
        let buffers = Arc::default();
        let packer = Packer {
            source: &self.source,
            plan,
            owners: &owners,
            observer: &self.observer,
            buffers: &buffers,
            dialect: self.options.dialect,
            links: self.options.links,
            xattrs: self.options.xattrs,
            has_noted: AtomicBool::new(false),
        };
        let layout = Layout::new(&self.folder, index, plan, cutter, &owners, &leftovers)?;
        let mut writer =
            VolumeWriter::new(&self.folder, index, run, options, &self.observer, &buffers)?;
        writer.expect(layout.volumes, layout.next);
        let resumed = leftovers.into_iter().try_for_each(|leftover| {
            let is_complete = layout.complete.contains(&leftover.checkpoint.volume);
            writer.resume(leftover, is_complete)
        });
        let result = resumed.and_then(|()| {
            worker_pool("pack", self.options.jobs).ordered(
                budget_bytes(),
                batches(plan, &layout.stretches),
                |batch, output| packer.pack(&batch, output),
                |directed| writer.take(directed.track, directed.part),
            )
        });
        // A worker that has seen the flag leaves out members: the run must not end as if they were there.
        match result
            .and_then(|()| self.require_going_on())
            .and_then(|()| writer.finish())
        {
            Ok(()) => Ok(writer.written),
            Err(error) => {
                writer.abandon(&error);
                Err(error)
            }
        }
    }

    fn require_going_on(&self) -> Result<(), ArchiveError> {
        if self.observer.is_interrupted() {
            Err(ArchiveError::Interrupted)
        } else {
            Ok(())
        }
    }

    fn finish(
        &self,
        index: &mut Index,
        run: RunId,
        known: Option<&Known>,
        unseen: &Unseen<'_>,
    ) -> Result<u64, ArchiveError> {
        let _scope = scope!("finish");
        let (now, failed) = (Mtime::from(utc_now()), self.observer.failures());
        Ok(match known {
            Some(known) if known.unseen() > 0 && self.options.deletions != Deletions::Keep => index
                .finish_run_with_unseen(run, now, failed, known, |name| unseen.is_deleted(name))?,
            _ => {
                index.finish_run(run, now, failed, [])?;
                0
            }
        })
    }
}

/// Tells which of the names that were not met in the source are gone from it.
pub(crate) struct Unseen<'a> {
    filter: &'a Filter,
    /// Paths that could not be looked at: what is below them may well be there.
    unknown: HashSet<Vec<u8>>,
    /// Entries that were met.
    pub(crate) found: u64,
    /// Their lengths: no other beginning of a path need be looked up.
    lengths: HashSet<usize>,
}

impl<'a> Unseen<'a> {
    pub(crate) fn new(survey: &Survey, filter: &'a Filter) -> Self {
        Self {
            filter,
            unknown: survey.unseen.iter().cloned().collect(),
            found: survey.entries,
            lengths: survey.unseen.iter().map(Vec::len).collect(),
        }
    }

    pub(crate) fn is_deleted(&self, name: &[u8]) -> bool {
        if !self.filter.selects(name) {
            return false;
        }
        if self.unknown.is_empty() {
            return true;
        }
        let slashes = name
            .iter()
            .enumerate()
            .filter(|&(_, &byte)| byte == b'/')
            .map(|(at, _)| at);
        let mut ancestors = std::iter::once(0).chain(slashes).chain([name.len()]);
        !ancestors.any(|end| self.lengths.contains(&end) && self.unknown.contains(&name[..end]))
    }
}

/// Reads what is known, and refuses to write to an index with damaged pages: that might make it worse.
fn load_to_write<'s>(
    index: &Index,
    stagings: impl IntoIterator<Item = &'s Staging>,
    jobs: Jobs,
) -> Result<Known, ArchiveError> {
    let known = Known::load(index, stagings, jobs)?;
    match known.damages().iter().find(|damage| damage.is_page()) {
        Some(damage) => Err(IndexError::damaged(index.path(), damage).into()),
        None => Ok(known),
    }
}

pub(crate) fn count_deleted(
    index: &Index,
    known: Option<&Known>,
    unseen: &Unseen<'_>,
) -> Result<u64, ArchiveError> {
    let mut count = 0;
    if let Some(known) = known.filter(|known| known.unseen() > 0) {
        index.unseen_names(known, |name| {
            count += u64::from(unseen.is_deleted(name));
        })?;
    }
    Ok(count)
}

/// In zstash's dialect a hard link needs to know which files the volume holds already.
fn resumable(
    checkpoint: Checkpoint,
    staging: Staging,
    found: &Survey,
) -> Result<Leftover, ArchiveError> {
    let mut names: HashMap<FileId, Vec<u8>> = HashMap::new();
    if !found.held_links.is_empty() {
        let mut staged = HashSet::new();
        staging.rows(|row| {
            staged.insert(row.name.to_vec());
            ControlFlow::Continue(())
        })?;
        for (name, identity) in found
            .held_links
            .iter()
            .filter(|(name, _)| staged.contains(name))
        {
            let first = names.entry(*identity).or_insert_with(|| name.clone());
            if archive_order(name, first).is_lt() {
                first.clone_from(name);
            }
        }
    }
    Ok(Leftover {
        checkpoint,
        staging,
        names,
    })
}
