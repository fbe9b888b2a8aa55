//! `plan`: what will be archived, as parts that can be built anywhere.
//!
//! Nothing of the tree is held in memory but what the survey has not sorted yet: about 100 MB, the names of files with
//! several, and what the archive holds of an update (40 bytes a name). `create` and `update` take the same steps, and
//! keep the members in memory instead.

use std::io::BufWriter;
use std::path::Path;

use stook_index::{Index, NameTable, RunId};
use stook_sys::{
    Context, Owners, create_directory, create_new_file, exists, sync_directory, utc_now,
};
use stook_timers::scope;

use super::Plan;
use super::abandon::{remove_empty, undo};
use super::block_file::finish;
use super::blocks::{BlockWriter, Encode, FileRole, MAX_BLOCK};
use super::directory::PlanDirectory;
use super::member::Member;
use super::part::{PartHeader, PlanId};
use super::parts_writer::{PartNumbers, PartsWriter, PlannedPart};
use super::plan_file::{Base, Made, PlanFile};
use super::sorted::{Merge, Sorter};
use crate::ArchiveError;
use crate::create::WriteOptions;
use crate::mutex::into_inner;
use crate::not_visited::NotVisited;
use crate::observer::Observer;
use crate::session::{Recovered, Session, withdraw_releases};
use crate::survey::Survey;

/// How to plan a create or an update.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// How members and volumes are written. What is about workers concerns the plan alone; `is_dry_run` and checkpoints mean
    /// nothing here.
    pub write: WriteOptions,
    /// Bytes of members in memory past which they are sorted in files: about 128 a member.
    pub memory_bytes: usize,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            write: WriteOptions::default(),
            memory_bytes: 128 << 20,
        }
    }
}

/// What a plan holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanReport {
    /// Entries found in the source.
    pub entries: u64,
    /// Those that the archive holds as they are.
    pub unchanged: u64,
    /// Those of them whose mode or owner is another one, and which are not archived again.
    pub metadata_changed: u64,
    /// Members to write.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Names that `commit` will record as deleted.
    pub deleted: u64,
    /// Files that failed, each reported to the observer.
    pub failed: u64,
    /// The parts, in the order of the volumes they become.
    pub parts: Vec<PlannedPart>,
    /// True if the archive is reserved now, until `commit` or `abandon`; false if there is nothing to archive or to record.
    pub is_reserved: bool,
}

/// Plans to create the archive, or to update it if it is there.
///
/// The plan is a directory in the archive's folder, with a file for each volume. From now on the archive is reserved: all
/// other writers are refused until [`commit`](crate::commit) or [`abandon`](crate::abandon), from this process or any other.
/// Volumes that an interrupted run began are completed first. If there is nothing to do, nothing is reserved, and a new
/// archive is not made.
///
/// # Errors
/// Those of [`create`](crate::create) and [`update`](crate::update); `Planned` if there is a plan already.
///
/// # Cost
/// One walk. Memory: `memory_bytes`, 64 KiB for each file of sorted members, some 100 bytes for each file with several
/// names, 40 bytes for each row of an archive that is there. Disk: 30 bytes and its name for each member, twice while
/// members are sorted in files.
pub fn plan(
    source: &Path,
    archive: &Path,
    options: &PlanOptions,
    observer: &dyn Observer,
) -> Result<PlanReport, ArchiveError> {
    let session = Session::new(source, archive, &options.write, observer)?;
    let (index, _) = session.index_to_plan()?;
    session.refuse_planned(index.as_ref())?;
    let makes_folder = exists(archive)?.is_none();
    create_directory(archive)?;
    let planned = plan_locked(&session, options, makes_folder);
    let is_reserved = planned.as_ref().is_ok_and(|report| report.is_reserved);
    if makes_folder && !is_reserved {
        // An error that led here is the one to report.
        let removed = remove_empty(archive);
        if planned.is_ok() {
            removed?;
        }
    }
    planned
}

fn plan_locked(
    session: &Session<'_>,
    options: &PlanOptions,
    makes_folder: bool,
) -> Result<PlanReport, ArchiveError> {
    let _lock = session.folder.lock()?;
    let (index, command) = session.index_to_plan()?;
    session.refuse_planned(index.as_ref())?;
    let index = match index {
        Some(_) => Some(session.folder.open_index_to_write()?),
        None => None,
    };
    let directory = PlanDirectory::of(session.folder.path());
    let foreign = directory.remove()?;
    directory.make(foreign)?;
    let planned = Planner {
        session,
        directory: &directory,
        options,
        command,
        makes_folder,
    }
    .plan(index);
    if !planned.as_ref().is_ok_and(|report| report.is_reserved) {
        // The error that led here is the one to report.
        let removed = directory.remove();
        if planned.is_ok() {
            removed?;
        }
    }
    planned
}

struct Planner<'a> {
    session: &'a Session<'a>,
    directory: &'a PlanDirectory,
    options: &'a PlanOptions,
    command: &'static str,
    makes_folder: bool,
}

/// What is new or changed.
struct Found {
    survey: Survey,
    /// The members that did not fit into memory, with all others.
    merge: Option<Merge>,
}

impl Planner<'_> {
    fn plan(&self, index: Option<Index>) -> Result<PlanReport, ArchiveError> {
        let session = self.session;
        let recovered = session.recover_completely(index)?;
        let sorter = Sorter::new(self.directory, self.options.memory_bytes);
        let mut found = session.survey(&recovered, Some(&sorter))?;
        sorter.require_sound()?;
        let not_visited = NotVisited::new(&found, &session.options.filter);
        session.refuse_unlikely_deletions(&recovered, &not_visited)?;
        let Recovered {
            index,
            unfinished,
            name_table,
            ..
        } = recovered;
        let mut index = index.map(into_inner);
        if let Some(index) = &mut index {
            withdraw_releases(index, name_table.as_ref(), &session.source)?;
        }
        let mut report = PlanReport {
            entries: found.entries,
            unchanged: found.unchanged,
            metadata_changed: found.metadata_changed,
            ..PlanReport::default()
        };
        if let (Some(index), Some(name_table)) = (&index, &name_table) {
            report.deleted = self.write_deleted(index, name_table, &not_visited)?;
        }
        let merge = sorter.finish(&mut found.groups)?;
        let is_idle = merge.is_none() && found.groups.is_empty() && report.deleted == 0;
        if is_idle {
            if let (Some(index), Some(run)) = (&mut index, unfinished) {
                // All that the interrupted run had left to do is done.
                index.finish_run(run.id, utc_now().into(), session.observer.failures(), [])?;
            }
            report.failed = session.observer.failures();
            return Ok(report);
        }
        let found = Found {
            survey: found,
            merge,
        };
        self.reserve(index, unfinished.map(|run| run.id), found, &mut report)?;
        Ok(report)
    }

    /// Begins the run, and writes the plan. After an error nothing of both is left.
    fn reserve(
        &self,
        index: Option<Index>,
        unfinished: Option<RunId>,
        found: Found,
        report: &mut PlanReport,
    ) -> Result<(), ArchiveError> {
        let session = self.session;
        let mut made = Made {
            folder: self.makes_folder,
            index: index.is_none(),
            run: false,
        };
        let (mut index, begun) = match index {
            Some(index) => (index, unfinished),
            None => {
                let (index, run) = session.make_index(self.command)?;
                (index, Some(run))
            }
        };
        let begun = match begun {
            Some(run) => Ok(run),
            None => index.begin_run(self.command, utc_now().into()),
        };
        made.run = unfinished.is_none() && begun.is_ok();
        let run = *begun.as_ref().unwrap_or(&RunId(0));
        let written = begun
            .map_err(ArchiveError::from)
            .and_then(|run| self.write_plan(&index, run, made, found, report));
        if written.is_err() {
            // The error that led here is the one to report.
            let _ = undo(&session.folder, index, run, made);
        }
        written
    }

    fn write_plan(
        &self,
        index: &Index,
        run: RunId,
        made: Made,
        found: Found,
        report: &mut PlanReport,
    ) -> Result<(), ArchiveError> {
        let session = self.session;
        let header = self.header(run, index)?;
        let owners = Owners::default();
        let mut parts = PartsWriter::new(self.directory, header, PartNumbers::from(0), &owners);
        self.write_parts(found, &mut parts)?;
        report.parts = parts.finish()?;
        report.members = report.parts.iter().map(|part| part.members).sum();
        report.bytes = report.parts.iter().map(|part| part.bytes).sum();
        report.failed = session.observer.failures();
        self.directory.write(&PlanFile {
            header,
            generation: 0,
            base: Base::of(index)?,
            parts: 0..u32::try_from(report.parts.len()).unwrap_or(u32::MAX),
            deleted: report.deleted,
            failed: report.failed,
            members: report.members,
            bytes: report.bytes,
            made,
        })?;
        sync_directory(session.folder.path())?;
        report.is_reserved = true;
        Ok(())
    }

    fn write_parts(&self, found: Found, parts: &mut PartsWriter<'_>) -> Result<(), ArchiveError> {
        let _scope = scope!("write parts");
        let survey = found.survey;
        let Some(mut merge) = found.merge else {
            let plan = Plan::from(survey);
            return plan.places().try_for_each(|place| {
                self.session.require_going_on()?;
                parts.add(&plan.member(place))
            });
        };
        while let Some(piece) = merge.next_piece(&survey.link_names)? {
            self.session.require_going_on()?;
            let piece = std::sync::Arc::new(piece);
            for entry in piece.group.entries() {
                parts.add(&Member::of_part(piece.clone(), entry))?;
            }
        }
        Ok(())
    }

    /// Writes the names that are gone; returns how many.
    fn write_deleted(
        &self,
        index: &Index,
        name_table: &NameTable,
        not_visited: &NotVisited<'_>,
    ) -> Result<u64, ArchiveError> {
        let path = self.directory.deleted();
        let file = BufWriter::new(create_new_file(&path)?);
        let mut blocks = BlockWriter::new(file, FileRole::Deleted).context("write", &path)?;
        let (mut count, mut block, mut written) = (0, Vec::new(), Ok(()));
        let keeps = self.session.options.deletions == crate::deletions::Deletions::Keep;
        if name_table.not_visited() > 0 && !keeps {
            index.not_visited_names(name_table, |name| {
                if !not_visited.is_deleted(name) {
                    return;
                }
                if block.len() + name.len() + 8 > MAX_BLOCK {
                    let result = blocks.write(b'D', &block);
                    written = std::mem::replace(&mut written, Ok(())).and(result);
                    block.clear();
                }
                block.bytes(name);
                count += 1;
            })?;
        }
        let written = written.and_then(|()| {
            blocks.write(b'D', &block)?;
            finish(blocks)
        });
        written.context("write", &path)?;
        Ok(count)
    }

    fn header(&self, run: RunId, index: &Index) -> Result<PartHeader, ArchiveError> {
        let session = self.session;
        let (options, now) = (session.options, utc_now());
        let root = session
            .source
            .own_metadata()
            .context("look at", &session.source_path)?;
        let nanoseconds = now.seconds.wrapping_mul(1_000_000_000);
        Ok(PartHeader {
            plan: PlanId {
                run: run.0,
                made: nanoseconds.wrapping_add(now.nanoseconds.into()),
            },
            number: 0,
            dialect: options.dialect,
            links: options.links,
            xattrs: options.xattrs,
            takes_md5: options.volume_md5,
            read_only: options.read_only_volumes,
            is_retry: false,
            zstd: session.zstd(Some(index))?,
            limit: session.splitter(index)?.limit,
            filesystem: root.filesystem,
        })
    }
}
