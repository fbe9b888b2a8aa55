//! One run of `create` or `update`: recover, survey, write, finish.
//!
//! ```text
//!   recover   what an interrupted run left; what the archive holds
//!   survey    one walk of the source: what is new or changed, what is gone; the guard in front of deletions
//!   write     workers pack members, the writer commits volumes
//!   finish    the run and the names that are gone, in one transaction
//! ```
//! `plan` does the first two and keeps what it found in files; `commit` does the last.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use stook_index::{Checkpoint, Index, IndexError, Mtime, NameTable, Run, RunId, Staging};
use stook_pool::Jobs;
use stook_sys::{Context, Directory, FileId, Owners, utc_now};
use stook_timers::scope;
use stook_volume::{Dialect, ZstdLevel};

use crate::ArchiveError;
use crate::attributes::fill_new_volumes;
use crate::cause::Since;
use crate::commit_queue::Target;
use crate::compress::{Compressor, encoding_of};
use crate::create::{WriteOptions, WriteReport};
use crate::deletions::{Deletions, UnlikelyDeletions};
use crate::folder::{Folder, folder_id};
use crate::guard::{Guard, is_copy};
use crate::layout::Layout;
use crate::memory::{budget_bytes, worker_pool};
use crate::mutex::{into_inner, lock};
use crate::not_visited::{NotVisited, count_deleted};
use crate::observer::{CountingObserver, Note, Observer, require_going_on};
use crate::pack::Packer;
use crate::plan::{
    Batch, DEFAULT_VOLUME_BYTES, Plan, PlanDirectory, Sorter, VolumeSplitter, interleave,
};
use crate::recovery::{PartialVolume, recover, remove_all_unfinished, resumable};
use crate::survey::{Held, Survey, SurveyOptions, open_source, survey};
use crate::transfer::{Uploads, require_spool, store_folder, with_store};
use crate::writer::{VolumeWriter, WriterOptions, Written};

/// Batches that are looked at before workers begin: if there are fewer, so are the workers.
const FIRST_BATCHES: usize = 16;

pub(crate) struct Session<'a> {
    pub(crate) source: Directory,
    pub(crate) source_path: PathBuf,
    pub(crate) folder: Folder,
    pub(crate) options: &'a WriteOptions,
    pub(crate) observer: CountingObserver<'a>,
}

/// What was in the archive when the run began.
pub(crate) struct Recovered {
    /// None if there is no archive yet.
    pub(crate) index: Option<Mutex<Index>>,
    /// The run to go on with.
    pub(crate) unfinished: Option<Run>,
    partial_volumes: Vec<(Checkpoint, Staging)>,
    pub(crate) name_table: Option<NameTable>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
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
            observer: CountingObserver::new(observer),
        };
        let own = session.source.own_metadata().context("look at", source)?;
        if session.own_folders()?.contains(&own.identity()) {
            return Err(ArchiveError::IntoItself {
                path: source.to_owned(),
            });
        }
        Ok(session)
    }

    /// Returns the folders of the archive and of its store, which are never archived.
    pub(crate) fn own_folders(&self) -> Result<Vec<FileId>, ArchiveError> {
        let place = self.options.store.as_ref().map(|store| &*store.place);
        let folders = [folder_id(self.folder.path())?, store_folder(place)?];
        Ok(folders.into_iter().flatten().collect())
    }

    /// Creates or updates the archive, and sends its volumes where it has a store.
    pub(crate) fn run_and_send(
        &self,
        index: Option<Index>,
        command: &str,
    ) -> Result<WriteReport, ArchiveError> {
        let Some(store) = &self.options.store else {
            return self.run(index, command, None);
        };
        require_spool(store, self.volume_limit(index.as_ref())?)?;
        let (report, sent) = with_store(
            &self.folder,
            store,
            &self.observer,
            index,
            |index, uploads| self.run(index, command, Some(uploads)),
        )?;
        Ok(WriteReport {
            sent: Some(sent),
            failed: self.observer.failures(),
            ..report
        })
    }

    /// Creates or updates the archive.
    fn run(
        &self,
        index: Option<Index>,
        command: &str,
        uploads: Option<&Uploads<'_>>,
    ) -> Result<WriteReport, ArchiveError> {
        // Of a plan that was committed or given up when its process was killed.
        PlanDirectory::of(self.folder.path()).remove()?;
        let recovered = self.recover(index)?;
        let found = self.survey(&recovered, None)?;
        self.observer.step("plan");
        let not_visited = NotVisited::new(&found, &self.options.filter);
        self.refuse_unlikely_deletions(&recovered, &not_visited)?;
        let mut report = WriteReport {
            entries: found.entries,
            unchanged: found.unchanged,
            metadata_changed: found.metadata_changed,
            ..WriteReport::default()
        };
        let Recovered {
            index,
            unfinished,
            partial_volumes,
            name_table,
        } = recovered;
        let partial_volumes = partial_volumes
            .into_iter()
            .map(|(checkpoint, staging)| resumable(checkpoint, staging, &found))
            .collect::<Result<Vec<_>, _>>()?;
        let plan = Plan::from(found);
        let (mut index, begun) = match index.map(into_inner) {
            Some(index) => (index, unfinished.map(|run| run.id)),
            None => self
                .make_index(command)
                .map(|(index, run)| (index, Some(run)))?,
        };
        let is_idle = plan.members == 0 && partial_volumes.is_empty() && begun.is_none();
        if is_idle && self.count_deleted(&index, name_table.as_ref(), &not_visited)? == 0 {
            withdraw_releases(&mut index, name_table.as_ref(), &self.source)?;
            report.failed = self.observer.failures();
            return Ok(report);
        }
        let run = match begun {
            Some(run) => run,
            None => index.begin_run(command, utc_now().into())?,
        };
        let written = self.write(&mut index, run, &plan, partial_volumes, uploads)?;
        report.members = written.members;
        report.bytes = written.bytes;
        report.volumes = written.volumes;
        report.failed = self.observer.failures();
        self.observer.step("commit");
        report.deleted = self.finish(&mut index, run, name_table.as_ref(), &not_visited)?;
        // The run is safe by now, whatever the volumes of others are like.
        fill_new_volumes(&self.folder, &mut index, self.options.jobs, &self.observer)?;
        if !self.options.records_volumes {
            index.drop_volume_records()?;
        }
        Ok(report)
    }

    /// Finds what an interrupted run left, and what the archive holds.
    pub(crate) fn recover(&self, index: Option<Index>) -> Result<Recovered, ArchiveError> {
        let Some(index) = index else {
            remove_all_unfinished(&self.folder)?;
            return Ok(Recovered {
                index: None,
                unfinished: None,
                partial_volumes: Vec::new(),
                name_table: None,
            });
        };
        let unfinished = index.unfinished_run()?;
        let run = unfinished.as_ref().map(|run| run.id);
        let partial_volumes = recover(&self.folder, &index, run)?;
        self.observer.step("load index");
        let name_table = {
            let _scope = scope!("load index");
            let stagings = partial_volumes.iter().map(|(_, staging)| staging);
            load_to_write(&index, stagings, self.options)?
        };
        Ok(Recovered {
            index: Some(Mutex::new(index)),
            unfinished,
            partial_volumes,
            name_table: Some(name_table),
        })
    }

    /// As [`Self::recover`], and volumes that were begun are completed: nothing more comes into them.
    pub(crate) fn recover_completely(
        &self,
        index: Option<Index>,
    ) -> Result<Recovered, ArchiveError> {
        let recovered = self.recover(index)?;
        let Recovered {
            index: Some(index),
            unfinished: Some(run),
            partial_volumes,
            name_table,
        } = recovered
        else {
            return Ok(recovered);
        };
        if partial_volumes.is_empty() {
            return Ok(Recovered {
                index: Some(index),
                unfinished: Some(run),
                partial_volumes,
                name_table,
            });
        }
        let nothing = Survey::default();
        let partial_volumes = partial_volumes
            .into_iter()
            .map(|(checkpoint, staging)| resumable(checkpoint, staging, &nothing))
            .collect::<Result<Vec<_>, _>>()?;
        let mut index = into_inner(index);
        self.write(
            &mut index,
            run.id,
            &Plan::from(nothing),
            partial_volumes,
            None,
        )?;
        self.recover(Some(index))
    }

    /// Walks the source once.
    pub(crate) fn survey(
        &self,
        recovered: &Recovered,
        sorter: Option<&Sorter>,
    ) -> Result<Survey, ArchiveError> {
        self.survey_against(
            recovered.index.as_ref(),
            recovered.name_table.as_ref(),
            sorter,
        )
    }

    pub(crate) fn survey_against(
        &self,
        index: Option<&Mutex<Index>>,
        name_table: Option<&NameTable>,
        sorter: Option<&Sorter>,
    ) -> Result<Survey, ArchiveError> {
        self.observer.phase("survey", None, None);
        let leave_out = self.own_folders()?;
        let options = SurveyOptions {
            filter: &self.options.filter,
            links: self.options.links,
            jobs: self.options.jobs,
            directories: self.options.directories,
            time_tolerance: self.options.time_tolerance,
            compare_content: self.options.compare_content,
            metadata: self.options.metadata,
            leave_out: &leave_out,
            sorter,
        };
        let held = index
            .zip(name_table)
            .map(|(index, name_table)| Held::new(name_table, index, &self.source));
        let found = survey(&self.source, &options, held.as_ref(), None, &self.observer);
        self.require_going_on()?;
        if found.metadata_changed > 0 {
            self.observer
                .note(&Note::MetadataChanged(found.metadata_changed));
        }
        Ok(found)
    }

    /// Stops before anything is written if too many names are gone.
    pub(crate) fn refuse_unlikely_deletions(
        &self,
        recovered: &Recovered,
        not_visited: &NotVisited<'_>,
    ) -> Result<(), ArchiveError> {
        let stagings = recovered.partial_volumes.iter().map(|(_, staging)| staging);
        let (index, name_table) = (recovered.index.as_ref(), recovered.name_table.as_ref());
        match self.unlikely_deletions(index, name_table, stagings, not_visited)? {
            None => Ok(()),
            Some(unlikely) => Err(ArchiveError::UnlikelyDeletions {
                archive: self.folder.path().to_owned(),
                unlikely,
            }),
        }
    }

    pub(crate) fn unlikely_deletions<'s>(
        &self,
        index: Option<&Mutex<Index>>,
        name_table: Option<&NameTable>,
        stagings: impl IntoIterator<Item = &'s Staging>,
        not_visited: &NotVisited<'_>,
    ) -> Result<Option<UnlikelyDeletions>, ArchiveError> {
        let Some((index, name_table)) = index.zip(name_table) else {
            return Ok(None);
        };
        let guard = Guard {
            index: &lock(index),
            name_table,
            not_visited,
            source: &self.source,
            tree: &self.source_path,
        };
        guard.unlikely_deletions(self.options.deletions, stagings, &self.observer)
    }

    pub(crate) fn count_deleted(
        &self,
        index: &Index,
        name_table: Option<&NameTable>,
        not_visited: &NotVisited<'_>,
    ) -> Result<u64, ArchiveError> {
        if self.options.deletions == Deletions::Keep {
            return Ok(0);
        }
        count_deleted(index, name_table, not_visited)
    }

    /// Returns the rule by which volumes end, for an archive whose settings name this length.
    pub(crate) fn splitter(&self, index: &Index) -> Result<VolumeSplitter, ArchiveError> {
        Ok(VolumeSplitter {
            dialect: self.options.dialect,
            limit: self.volume_limit(Some(index))?,
            encoding: encoding_of(self.zstd(Some(index))?),
        })
    }

    /// Returns at which level volumes are compressed, if they are: as the archive was created.
    pub(crate) fn zstd(&self, index: Option<&Index>) -> Result<Option<ZstdLevel>, ArchiveError> {
        let wanted = self.options.zstd;
        let level = match index {
            Some(index) => index.zstd_level()?.and_then(ZstdLevel::new),
            None => wanted,
        };
        let path = || self.folder.path().to_owned();
        if level.is_some() && self.options.dialect == Dialect::Zstash {
            return Err(ArchiveError::CompressedForZstash { path: path() });
        }
        if wanted.is_some() && wanted != level {
            let path = path();
            return Err(ArchiveError::OtherCompression { path, level });
        }
        Ok(level)
    }

    fn volume_limit(&self, index: Option<&Index>) -> Result<u64, ArchiveError> {
        match (self.options.volume_bytes, index) {
            (Some(limit), _) => Ok(limit),
            (None, Some(index)) => Ok(index.config()?.maxsize),
            (None, None) => Ok(DEFAULT_VOLUME_BYTES),
        }
    }

    pub(crate) fn write(
        &self,
        index: &mut Index,
        run: RunId,
        plan: &Plan,
        partial_volumes: Vec<PartialVolume>,
        uploads: Option<&Uploads<'_>>,
    ) -> Result<Written, ArchiveError> {
        let _scope = scope!("archive");
        self.observer
            .phase("archive", Some(plan.members), Some(plan.bytes));
        let options = WriterOptions::new(self.options, self.splitter(index)?);
        let owners = Owners::default();
        let buffers = Arc::default();
        let compressor = self.zstd(Some(&*index))?.map(Compressor::new);
        let packer = Packer {
            source: &self.source,
            owners: &owners,
            observer: &self.observer,
            buffers: &buffers,
            dialect: self.options.dialect,
            compressor: compressor.as_ref(),
            links: self.options.links,
            xattrs: self.options.xattrs,
            since: Since::Found,
            compares_filesystems: true,
            has_noted: AtomicBool::new(false),
        };
        let folder = &self.folder;
        let layout = Layout::new(
            folder,
            index,
            plan,
            options.splitter,
            &owners,
            &partial_volumes,
            &uploads.map(Uploads::taken).unwrap_or_default(),
        )?;
        let target = Target::Index {
            index,
            run,
            record_errors: &self.options.record_errors,
            uploads,
        };
        let mut writer = VolumeWriter::new(folder, target, options, &self.observer, &buffers)?;
        writer.expect(layout.volumes, layout.next);
        let resumed = partial_volumes.into_iter().try_for_each(|partial| {
            let is_complete = layout.complete.contains(&partial.checkpoint.volume);
            writer.resume(partial, is_complete)
        });
        let result = resumed.and_then(|()| {
            let batches = interleave(plan, &layout.ranges, options.splitter.encoding);
            pack_all(&packer, &mut writer, self.options.jobs, batches)
        });
        match result {
            Ok(()) => Ok(writer.written),
            Err(error) => {
                writer.abandon(&error);
                Err(error)
            }
        }
    }

    pub(crate) fn require_going_on(&self) -> Result<(), ArchiveError> {
        require_going_on(&self.observer)
    }

    /// Records that the run has ended, and which names are gone.
    fn finish(
        &self,
        index: &mut Index,
        run: RunId,
        name_table: Option<&NameTable>,
        not_visited: &NotVisited<'_>,
    ) -> Result<u64, ArchiveError> {
        let _scope = scope!("finish");
        let (now, failed) = (Mtime::from(utc_now()), self.observer.failures());
        withdraw_releases(index, name_table, &self.source)?;
        let name_table = name_table.filter(|name_table| name_table.not_visited() > 0);
        Ok(match name_table {
            Some(name_table) if self.options.deletions != Deletions::Keep => {
                let is_deleted = |name: &[u8]| not_visited.is_deleted(name);
                index.finish_run_with_not_visited(run, now, failed, name_table, is_deleted)?
            }
            _ => {
                index.finish_run(run, now, failed, [])?;
                0
            }
        })
    }
}

/// Has workers pack the members, and the writer take them, to the end of the last volume.
pub(crate) fn pack_all<'p>(
    packer: &Packer<'_>,
    writer: &mut VolumeWriter<'_>,
    jobs: Jobs,
    mut batches: impl Iterator<Item = Batch<'p>> + Send,
) -> Result<(), ArchiveError> {
    let is_interrupted = || packer.observer.is_interrupted();
    let first: Vec<Batch<'p>> = batches.by_ref().take(FIRST_BATCHES).collect();
    let mut pool = worker_pool("pack", jobs);
    if first.len() < FIRST_BATCHES {
        // These are all. The empty ones that end volumes are no work.
        pool = pool.at_most(first.iter().filter(|it| !it.members.is_empty()).count());
    }
    pool.until(&is_interrupted).ordered(
        budget_bytes(),
        first.into_iter().chain(batches),
        |batch, output| packer.pack(&batch, output),
        |directed| writer.take(directed.stream, directed.piece),
    )?;
    // A worker that has seen the flag leaves out members: the run must not end as if they were there.
    require_going_on(packer.observer)?;
    writer.finish()
}

/// Reads what is known, and refuses to write to an index with damaged pages: that might make it worse.
fn load_to_write<'s>(
    index: &Index,
    stagings: impl IntoIterator<Item = &'s Staging>,
    options: &WriteOptions,
) -> Result<NameTable, ArchiveError> {
    let name_table = options.metadata.load_names(index, stagings, options.jobs)?;
    match name_table.damages().iter().find(|damage| damage.is_page()) {
        Some(damage) => Err(IndexError::damaged(index.path(), damage).into()),
        None => Ok(name_table),
    }
}

/// Names that were released from the tree lose that if they are in the tree again, have a newer version, or are recorded as
/// deleted; unless the source is a copy of the tree.
pub(crate) fn withdraw_releases(
    index: &mut Index,
    name_table: Option<&NameTable>,
    source: &Directory,
) -> Result<(), ArchiveError> {
    if is_copy(index, source) {
        return Ok(());
    }
    let lost = name_table.map(NameTable::lost_releases).unwrap_or_default();
    Ok(index.withdraw_releases(&lost)?)
}
