//! The plan directory of an archive, from `plan` to the last `commit`.
//!
//! ```text
//!   ARCHIVE/stook.plan/
//!     plan              which run it is of, what the archive held then, which parts there are
//!     deleted           names that are gone from the source
//!     part-000003       the members of one volume
//!     building-000003-* a part that is being built, or whose builder was killed
//!     built-000003/     its volume, its rows, and what became of its members
//!     commit            which part becomes which volume: from here on a commit that was killed goes on
//!     sorted-000001     while the plan is made: members that did not fit into memory
//! ```
//! It is stook's own by the content of its files: each begins with the same bytes. While the run of the plan is unfinished,
//! the archive is reserved. A plan directory of any other run is what a kill left, and the next writer removes it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_index::{Index, Volume};
use stook_sys::{
    Context, Directory, Links, NameBuffer, create_new_file, exists, open_file, remove_file, rename,
    sync_directory,
};
use stook_volume::crc32;

use super::blocks::{
    BlockReader, BlockWriter, Encode, Fields, FileRole, PlanFileError, is_plan_file,
};
use super::part::{PartHeader, PlanId, bad_file};
use crate::ArchiveError;

/// Its name in the archive's folder.
pub(crate) const PLAN_DIRECTORY: &str = "stook.plan";

#[derive(Debug, Clone)]
pub(crate) struct PlanDirectory {
    path: PathBuf,
}

/// What an archive holds: nothing else may have been written between plan and commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) last_row: i64,
    /// Rows of `tars`, and the checksum of all of them.
    volumes: u64,
    checksum: u32,
}

/// The file `plan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanFile {
    /// How members are written; its number means nothing.
    pub(crate) header: PartHeader,
    /// How often parts were committed, and others put in their place.
    pub(crate) generation: u64,
    pub(crate) base: Base,
    /// Those that are to be built.
    pub(crate) parts: Range<u32>,
    /// Files that failed so far.
    pub(crate) failed: u64,
}

impl Base {
    pub(crate) fn of(index: &Index) -> Result<Self, ArchiveError> {
        let volumes = index.volume_records()?;
        Ok(Self {
            last_row: index.last_row()?,
            volumes: volumes.len() as u64,
            checksum: checksum(&volumes),
        })
    }
}

impl Base {
    /// Returns true if so many volumes and rows were added, and nothing else: the last of the volumes are those.
    pub(crate) fn is_followed_by(
        &self,
        index: &Index,
        volumes: u64,
        rows: u64,
    ) -> Result<bool, ArchiveError> {
        let records = index.volume_records()?;
        let before = usize::try_from(self.volumes).unwrap_or(usize::MAX);
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        Ok(records.len() as u64 == self.volumes.saturating_add(volumes)
            && index.last_row()? == self.last_row.saturating_add(rows)
            && checksum(records.get(..before).unwrap_or_default()) == self.checksum)
    }
}

fn checksum(volumes: &[Volume]) -> u32 {
    let mut text = Vec::new();
    for volume in volumes {
        text.number(volume.id.0);
        text.number(volume.size);
        text.bytes(volume.md5.as_ref().map_or(&[][..], |md5| md5));
    }
    crc32(&[&text])
}

impl PlanDirectory {
    pub(crate) fn of(archive: &Path) -> Self {
        let path = archive.join(PLAN_DIRECTORY);
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn deleted(&self) -> PathBuf {
        self.file("deleted")
    }

    pub(crate) fn commit_log(&self) -> PathBuf {
        self.file("commit")
    }

    pub(crate) fn part(&self, number: u32) -> PathBuf {
        self.file(&format!("part-{number:06}"))
    }

    pub(crate) fn sorted(&self, number: u32) -> PathBuf {
        self.file(&format!("sorted-{number:06}"))
    }

    /// Reads the plan; None if there is none.
    pub(crate) fn read(&self) -> Result<Option<PlanFile>, ArchiveError> {
        let path = self.file("plan");
        if exists(&path)?.is_none() {
            return Ok(None);
        }
        let read = || {
            let mut blocks = open_blocks(&path, FileRole::Plan)?;
            let plan = blocks
                .next_block()?
                .and_then(|(_, payload)| decode_plan(payload));
            let plan = plan.ok_or_else(|| blocks.malformed("it is no plan"))?;
            match blocks.next_block()? {
                None => Ok(plan),
                Some(_) => Err(blocks.malformed("there is more than one plan")),
            }
        };
        match read() {
            // A user's file of that name.
            Err(PlanFileError::Foreign) => Ok(None),
            other => other.map(Some).map_err(bad_file(&path)),
        }
    }

    /// Writes the plan, durably.
    pub(crate) fn write(&self, plan: &PlanFile) -> Result<(), ArchiveError> {
        self.replace("plan", FileRole::Plan, |blocks| {
            blocks.write(b'P', &encode_plan(plan))
        })
    }

    /// Writes a file durably, in one step.
    pub(crate) fn replace(
        &self,
        name: &str,
        role: FileRole,
        fill: impl FnOnce(&mut BlockWriter<BufWriter<File>>) -> io::Result<()>,
    ) -> Result<(), ArchiveError> {
        let (path, partial) = (self.file(name), self.file(&format!("{name}.partial")));
        remove_file(&partial)?;
        let file = BufWriter::new(create_new_file(&partial)?);
        let written = BlockWriter::new(file, role).and_then(|mut blocks| {
            fill(&mut blocks)?;
            finish(blocks)
        });
        written.context("write", &partial)?;
        rename(&partial, &path)?;
        Ok(sync_directory(&self.path)?)
    }

    /// Makes the directory, which must not be there.
    pub(crate) fn make(&self) -> Result<(), ArchiveError> {
        let (parent, name) = self.parent()?;
        match parent.create_directory(name, 0o777) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(ArchiveError::NameTaken {
                    path: self.path.clone(),
                })
            }
            other => Ok(other.context("create", &self.path)?),
        }
    }

    fn parent(&self) -> Result<(Directory, &[u8]), ArchiveError> {
        let archive = self.path.parent().unwrap_or(Path::new("."));
        Ok((Directory::open(archive)?, PLAN_DIRECTORY.as_bytes()))
    }

    /// Removes what is stook's own in it, and then itself if nothing else is left.
    pub(crate) fn remove(&self) -> Result<(), ArchiveError> {
        let Some(directory) = self.open()? else {
            return Ok(());
        };
        for name in names(&directory).context("list", &self.path)? {
            if is_own(&directory, &name) {
                remove_own(&directory, &name)
                    .context("remove", self.path.join(std::ffi::OsStr::from_bytes(&name)))?;
            }
        }
        let (parent, name) = self.parent()?;
        match parent.remove_directory(name) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            other => Ok(other.context("remove", &self.path)?),
        }
    }

    /// Returns true if it is there, and nothing in it is of somebody else.
    pub(crate) fn is_own(&self) -> bool {
        let Ok(Some(directory)) = self.open() else {
            return false;
        };
        let found = names(&directory);
        found.is_ok_and(|names| names.iter().all(|name| is_own(&directory, name)))
    }

    /// None if there is no directory of this name.
    fn open(&self) -> Result<Option<Directory>, ArchiveError> {
        let (parent, name) = self.parent()?;
        match parent.open_beneath(name) {
            Ok(directory) => Ok(Some(directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // A link or a file of that name: not ours.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(error).context("open", &self.path).map_err(Into::into),
        }
    }
}

fn names(directory: &Directory) -> io::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    directory.names(&mut NameBuffer::default(), |entry| {
        found.push(entry.name.to_vec());
    })?;
    Ok(found)
}

/// Files that a part leaves when it is built; the journal is there after a kill.
const BUILT_FILES: [&str; 4] = [
    "000000.tar.partial",
    "000000.rows.partial",
    "000000.rows.partial-journal",
    "result",
];

const RESULT_WHILE_WRITTEN: &str = "result.partial";

fn is_own(directory: &Directory, name: &[u8]) -> bool {
    if is_built(name) {
        let inner = directory.open_beneath(name);
        let is_ours = |name: &Vec<u8>| {
            let mut ours = BUILT_FILES.iter().chain([&RESULT_WHILE_WRITTEN]);
            ours.any(|ours| ours.as_bytes() == &name[..])
        };
        return inner.is_ok_and(|inner| names(&inner).is_ok_and(|names| names.iter().all(is_ours)));
    }
    let known = [&b"plan"[..], b"deleted", b"commit"];
    let base = name.strip_suffix(b".partial").unwrap_or(name);
    let is_known =
        known.contains(&base) || name.starts_with(b"part-") || name.starts_with(b"sorted-");
    is_known && begins_as_ours(directory, name)
}

fn is_built(name: &[u8]) -> bool {
    name.starts_with(b"built-") || name.starts_with(b"building-")
}

/// An empty file was made and not written yet.
fn begins_as_ours(directory: &Directory, name: &[u8]) -> bool {
    let beginning = directory.open_file(name, Links::Refuse).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(16).read_to_end(&mut bytes).map(|_| bytes)
    });
    beginning.is_ok_and(|bytes| bytes.is_empty() || is_plan_file(&bytes))
}

fn remove_own(directory: &Directory, name: &[u8]) -> io::Result<()> {
    if !is_built(name) {
        return directory.remove(name);
    }
    let inner = directory.open_beneath(name)?;
    for file in names(&inner)? {
        inner.remove(&file)?;
    }
    directory.remove_directory(name)
}

/// Removes a directory of [`is_built`]'s names with what a builder left in it.
pub(crate) fn remove_built(path: &Path) -> Result<(), ArchiveError> {
    let parent = Directory::open(path.parent().unwrap_or(Path::new(".")))?;
    let name = path.file_name().map_or(&b""[..], OsStrExt::as_bytes);
    if is_own(&parent, name) {
        remove_own(&parent, name).context("remove", path)?;
    }
    Ok(())
}

/// Opens a file of a plan.
pub(crate) fn open_blocks(
    path: &Path,
    role: FileRole,
) -> Result<BlockReader<BufReader<File>>, PlanFileError> {
    let file = open_file(path).map_err(|error| PlanFileError::Io(error.source))?;
    BlockReader::new(BufReader::with_capacity(READ_BYTES, file), role)
}

/// Bytes read at once: hundreds of sorted files may be open together.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// Ends a file and makes it durable.
pub(crate) fn finish(blocks: BlockWriter<BufWriter<File>>) -> io::Result<()> {
    let mut file = blocks.finish()?;
    file.flush()?;
    file.get_ref().sync_all()
}

fn encode_plan(plan: &PlanFile) -> Vec<u8> {
    let mut block = Vec::new();
    plan.header.encode(&mut block);
    block.number(plan.generation);
    plan.base.encode(&mut block);
    encode_range(&plan.parts, &mut block);
    block.number(plan.failed);
    block
}

fn decode_plan(payload: &[u8]) -> Option<PlanFile> {
    let mut fields = Fields(payload);
    let plan = PlanFile {
        header: PartHeader::decode(&mut fields)?,
        generation: fields.number()?,
        base: Base::decode(&mut fields)?,
        parts: decode_range(&mut fields)?,
        failed: fields.number()?,
    };
    fields.end().map(|()| plan)
}

impl Base {
    fn encode(&self, block: &mut Vec<u8>) {
        block.signed(self.last_row);
        block.number(self.volumes);
        block.number(self.checksum.into());
    }

    fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            last_row: fields.signed()?,
            volumes: fields.number()?,
            checksum: fields.number32()?,
        })
    }
}

pub(crate) fn encode_range(range: &Range<u32>, block: &mut Vec<u8>) {
    block.number(range.start.into());
    block.number(range.end.into());
}

pub(crate) fn decode_range(fields: &mut Fields<'_>) -> Option<Range<u32>> {
    let range = fields.number32()?..fields.number32()?;
    (range.start <= range.end).then_some(range)
}

impl PlanFile {
    pub(crate) fn id(&self) -> PlanId {
        self.header.plan
    }
}

/// Returns the plan that reserves an archive: that of its unfinished run.
///
/// # Cost
/// One system call if there is no plan.
pub(crate) fn reserving_plan(
    archive: &Path,
    index: &Index,
) -> Result<Option<PlanFile>, ArchiveError> {
    let directory = PlanDirectory::of(archive);
    let Some(plan) = directory.read()? else {
        return Ok(None);
    };
    let unfinished = index.unfinished_run()?;
    Ok(unfinished
        .is_some_and(|run| run.id.0 == plan.id().run)
        .then_some(plan))
}

/// Refuses to write to an archive that is reserved for a plan.
///
/// # Errors
/// `Planned`; `BadPlanFile` if the plan cannot be read: only `abandon` knows that nobody needs it.
pub(crate) fn refuse_planned(archive: &Path, index: &Index) -> Result<(), ArchiveError> {
    match reserving_plan(archive, index)? {
        None => Ok(()),
        Some(_) => Err(ArchiveError::Planned {
            path: archive.to_owned(),
        }),
    }
}
