//! `plan`: what will be archived, as parts that can be built anywhere.
//!
//! Nothing of the tree is held in memory but what the survey has not sorted yet: about 100 MB, the names of files with
//! several, and what the archive holds of an update (40 bytes a name). `create` and `update` take the same steps, and
//! keep the members in memory instead.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use stook_index::{Index, NameTable, RunId};
use stook_sys::{
    Context, FileId, FileKind, Links, Owners, create_directory, create_new_file, sync_directory,
    utc_now,
};
use stook_timers::scope;
use stook_volume::{Dialect, Kind, header_len, member_len, trailer_len};

use super::blocks::{BlockWriter, Encode, FileRole, MAX_BLOCK};
use super::directory::{Base, PlanDirectory, PlanFile, finish};
use super::member::{Member, PlannedMember, content_len, header_of};
use super::part::{PartHeader, PartTotals, PartWriter, PlanId};
use super::sorted::Sorter;
use super::{Plan, VolumeSplitter};
use crate::ArchiveError;
use crate::not_visited::NotVisited;
use crate::observer::Observer;
use crate::session::{Recovered, Session, into_inner, withdraw_releases};
use crate::survey::Survey;
use crate::write_options::WriteOptions;

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
    /// Members to write.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Names that `commit` will record as deleted.
    pub deleted: u64,
    /// Files that failed, each reported to the observer.
    pub failed: u64,
    /// The parts, in the order of the volumes they become. If there are none and nothing is deleted, there is nothing to
    /// commit, unless the archive is new.
    pub parts: Vec<PlannedPart>,
    /// True if the archive is reserved now, until `commit` or `abandon`.
    pub is_reserved: bool,
}

/// The members of one volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPart {
    /// Its file.
    pub path: PathBuf,
    /// Members in it.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Length of the volume in bytes, as far as metadata tells it: attributes make a member longer, holes shorter.
    pub volume_bytes: u64,
}

/// Plans to create the archive, or to update it if it is there.
///
/// The plan is a directory in the archive's folder, with a file for each volume. From now on the archive is reserved: all
/// other writers are refused until [`commit`](crate::commit) or [`abandon`](crate::abandon), from this process or any other.
/// Volumes that an interrupted run began are completed first. If there is nothing to do, nothing is reserved.
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
    create_directory(archive)?;
    let _lock = session.folder.lock()?;
    let (index, command) = session.index_to_plan()?;
    session.refuse_planned(index.as_ref())?;
    let index = match index {
        Some(_) => Some(session.folder.open_index_to_write()?),
        None => None,
    };
    let directory = PlanDirectory::of(archive);
    directory.remove()?;
    directory.make()?;
    let planned = Planner {
        session: &session,
        directory: &directory,
        options,
        command,
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
            ..PlanReport::default()
        };
        if let (Some(index), Some(name_table)) = (&index, &name_table) {
            report.deleted = self.write_deleted(index, name_table, &not_visited)?;
        }
        let merge = sorter.finish(&mut found.groups)?;
        let is_idle = merge.is_none()
            && found.groups.is_empty()
            && report.deleted == 0
            && unfinished.is_none()
            && name_table.is_some();
        if is_idle {
            report.failed = session.observer.failures();
            return Ok(report);
        }
        let mut index = match index {
            Some(index) => index,
            None => session.make_index()?,
        };
        let run = match unfinished {
            Some(run) => run.id,
            None => index.begin_run(self.command, utc_now().into())?,
        };
        let header = self.header(run, &index)?;
        let owners = Owners::default();
        let mut parts = PartsWriter::new(self.directory, header, 0, &owners);
        self.write_parts(found, merge, &mut parts)?;
        report.parts = parts.finish()?;
        report.members = report.parts.iter().map(|part| part.members).sum();
        report.bytes = report.parts.iter().map(|part| part.bytes).sum();
        report.failed = session.observer.failures();
        self.directory.write(&PlanFile {
            header,
            generation: 0,
            base: Base::of(&index)?,
            parts: 0..u32::try_from(report.parts.len()).unwrap_or(u32::MAX),
            failed: report.failed,
        })?;
        sync_directory(session.folder.path())?;
        report.is_reserved = true;
        Ok(report)
    }

    fn write_parts(
        &self,
        found: Survey,
        merge: Option<super::sorted::Merge>,
        parts: &mut PartsWriter<'_>,
    ) -> Result<(), ArchiveError> {
        let _scope = scope!("write parts");
        let Some(mut merge) = merge else {
            let plan = Plan::new(found);
            return plan.places().try_for_each(|place| {
                self.session.require_going_on()?;
                parts.add(&plan.member(place))
            });
        };
        while let Some(piece) = merge.next_piece(&found.link_names)? {
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
        let keeps = self.session.options.deletions == crate::guard::Deletions::Keep;
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
            limit: session.splitter(index)?.limit,
            filesystem: root.filesystem,
        })
    }
}

/// Writes members into parts, one volume each.
pub(crate) struct PartsWriter<'o> {
    directory: PlanDirectory,
    header: PartHeader,
    /// Number of the next part.
    next: u32,
    owners: &'o Owners,
    open: Option<OpenPart<'o>>,
    finished: Vec<PlannedPart>,
}

struct OpenPart<'o> {
    path: PathBuf,
    writer: PartWriter<'o, BufWriter<File>>,
    /// In zstash's dialect: first names of files that the volume holds, for hard links.
    names: HashMap<FileId, Vec<u8>>,
}

impl<'o> PartsWriter<'o> {
    pub(crate) fn new(
        directory: &PlanDirectory,
        header: PartHeader,
        first: u32,
        owners: &'o Owners,
    ) -> Self {
        Self {
            directory: directory.clone(),
            header,
            next: first,
            owners,
            open: None,
            finished: Vec::new(),
        }
    }

    /// Adds the next member, to the part that it fits in.
    pub(crate) fn add(&mut self, member: &Member<'_>) -> Result<(), ArchiveError> {
        let planned = member.planned();
        let dialect = self.header.dialect;
        let splitter = VolumeSplitter {
            dialect,
            limit: self.header.limit,
        };
        let header = header_of(&planned, self.owners, dialect);
        let len = member_len(&header, dialect);
        let content = content_len(&planned.metadata);
        let mut part = match self.open.take() {
            Some(part) if splitter.fits(part.writer.totals.len, len, content) => part,
            full => {
                self.close(full)?;
                self.begin()?
            }
        };
        let len = part
            .len_as_link(&planned, &self.header, self.owners)
            .unwrap_or(len);
        part.writer
            .add(member, &planned, len)
            .context("write", &part.path)?;
        self.open = Some(part);
        Ok(())
    }

    fn begin(&mut self) -> Result<OpenPart<'o>, ArchiveError> {
        let path = self.directory.part(self.next);
        let header = PartHeader {
            number: self.next,
            ..self.header
        };
        self.next += 1;
        // One that was written before a kill says nothing.
        stook_sys::remove_file(&path)?;
        let file = BufWriter::new(create_new_file(&path)?);
        let writer = PartWriter::new(file, &header, self.owners).context("write", &path)?;
        Ok(OpenPart {
            path,
            writer,
            names: HashMap::new(),
        })
    }

    fn close(&mut self, part: Option<OpenPart<'o>>) -> Result<(), ArchiveError> {
        let Some(OpenPart { path, writer, .. }) = part else {
            return Ok(());
        };
        let PartTotals {
            members,
            bytes,
            len,
        } = writer.totals;
        let file = writer.finish().context("write", &path)?;
        file.get_ref().sync_all().context("sync", &path)?;
        self.finished.push(PlannedPart {
            path,
            members,
            bytes,
            volume_bytes: len + trailer_len(len),
        });
        Ok(())
    }

    /// Returns the parts, which are durable.
    pub(crate) fn finish(mut self) -> Result<Vec<PlannedPart>, ArchiveError> {
        let open = self.open.take();
        self.close(open)?;
        sync_directory(self.directory.path())?;
        Ok(self.finished)
    }
}

impl OpenPart<'_> {
    /// zstash writes the second name of a file in a volume with the header of a hard link, and the content after it.
    fn len_as_link(
        &mut self,
        planned: &PlannedMember<'_>,
        part: &PartHeader,
        owners: &Owners,
    ) -> Option<u64> {
        let metadata = &planned.metadata;
        let can_be_link = part.dialect == Dialect::Zstash
            && part.links == Links::Refuse
            && metadata.kind == FileKind::File
            && metadata.links > 1;
        if !can_be_link {
            return None;
        }
        let mut header = header_of(planned, owners, part.dialect);
        let first = self.names.entry(metadata.identity());
        let std::collections::hash_map::Entry::Occupied(first) = first else {
            first.insert_entry(planned.path.clone());
            return None;
        };
        let len = member_len(&header, part.dialect) - header_len(&header, part.dialect);
        header.kind = Kind::HardLink;
        header.target.clone_from(first.get());
        Some(len + header_len(&header, part.dialect))
    }
}
