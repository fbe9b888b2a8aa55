//! The plan directory of an archive, from `plan` to the last `commit`.
//!
//! ```text
//!   ARCHIVE/stook.plan/
//!     plan              which run it is of, what the archive held then, which parts there are
//!     deleted           names that are gone from the source
//!     part-000003       the members of one volume
//!     building-000003-* a part that is being built, or whose builder was killed
//!     built-000003/     its volume, its rows, and what became of its members
//!     taken-000003/     the same, while it is committed
//!     damaged-000003/   the same, if it is not as it was built
//!     commit            which part becomes which volume: from here on a commit that was killed goes on
//!     sorted-000001     while the plan is made: members that did not fit into memory
//! ```
//! It is stook's own by the content of its files: each begins with the same bytes. While the run of the plan is unfinished,
//! the archive is reserved. A plan directory of any other run is what a kill left, and the next writer removes it.

use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_index::Index;
use stook_sys::{
    Context, Directory, FileKind, Links, NameBuffer, create_new_file, exists, install, remove_file,
};

use super::block_file::{bad_file, finish, open_blocks};
use super::blocks::{BlockWriter, FileRole, PlanFileError, is_plan_file};
use super::plan_file::{PlanFile, decode_plan, encode_plan};
use crate::ArchiveError;

/// Its name in the archive's folder.
pub(crate) const PLAN_DIRECTORY: &str = "stook.plan";

const PLAN: &[u8] = b"plan";

#[derive(Debug, Clone)]
pub(crate) struct PlanDirectory {
    path: PathBuf,
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

    /// Returns where a part is built, unless it is built elsewhere.
    pub(crate) fn built(&self, number: u32) -> PathBuf {
        self.path.join(built_name(number))
    }

    /// Returns where what was built is while it is committed.
    pub(crate) fn taken(&self, number: u32) -> PathBuf {
        self.path.join(taken_name(number))
    }

    pub(crate) fn damaged(&self, number: u32) -> PathBuf {
        self.file(&format!("damaged-{number:06}"))
    }

    pub(crate) fn sorted(&self, number: u32) -> PathBuf {
        self.file(&format!("sorted-{number:06}"))
    }

    /// Reads the plan; None if there is none.
    pub(crate) fn read(&self) -> Result<Option<PlanFile>, ArchiveError> {
        let path = self.file("plan");
        match exists(&path) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            // A user's file has the name of the directory.
            Err(error) if error.source.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) => return Err(error.into()),
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
            Err(PlanFileError::Foreign) if !self.has_own()? => Ok(None),
            other => other.map(Some).map_err(bad_file(&path)),
        }
    }

    /// Returns true if a file of a plan is there, damaged or not.
    pub(crate) fn has_own(&self) -> Result<bool, ArchiveError> {
        let contents = self.contents()?;
        Ok(contents.is_some_and(|(_, contents)| !contents.own.is_empty()))
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
        Ok(install(&partial, &path)?)
    }

    /// Makes the directory, which must not be there; `foreign` has been left in it.
    pub(crate) fn make(&self, foreign: Vec<Vec<u8>>) -> Result<(), ArchiveError> {
        let (parent, name) = self.parent()?;
        let path = || self.path.clone();
        match parent.create_directory(name, 0o777) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(if foreign.is_empty() {
                    ArchiveError::NameTaken { path: path() }
                } else {
                    let (path, names) = (path(), foreign);
                    ArchiveError::ForeignInPlan { path, names }
                })
            }
            other => Ok(other.context("create", &self.path)?),
        }
    }

    fn parent(&self) -> Result<(Directory, &[u8]), ArchiveError> {
        let archive = self.path.parent().unwrap_or(Path::new("."));
        Ok((Directory::open(archive)?, PLAN_DIRECTORY.as_bytes()))
    }

    /// Removes what is stook's own in it, the plan last, and then itself if nothing else is left. Returns the names of what
    /// stays, sorted.
    pub(crate) fn remove(&self) -> Result<Vec<Vec<u8>>, ArchiveError> {
        let Some((directory, contents)) = self.contents()? else {
            return Ok(Vec::new());
        };
        for name in contents.own {
            remove_own(&directory, &name)
                .context("remove", self.path.join(std::ffi::OsStr::from_bytes(&name)))?;
        }
        let (parent, name) = self.parent()?;
        match parent.remove_directory(name) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            other => other.context("remove", &self.path)?,
        }
        Ok(contents.foreign)
    }

    /// Returns how many parts there are, and how many of them are built; for reports only.
    pub(crate) fn counts(&self) -> Result<(u64, u64), ArchiveError> {
        let Some(directory) = self.open()? else {
            return Ok((0, 0));
        };
        let names = names(&directory).context("list", &self.path)?;
        let count = |prefix: &[u8]| names.iter().filter(|name| name.starts_with(prefix)).count();
        Ok((count(b"part-") as u64, count(b"built-") as u64))
    }

    /// Returns true if it is there, and stook made all that is in it.
    pub(crate) fn is_own(&self) -> bool {
        let contents = self.contents();
        contents.is_ok_and(|found| found.is_some_and(|(_, contents)| contents.foreign.is_empty()))
    }

    /// Returns what is in it; None if there is no directory of this name.
    fn contents(&self) -> Result<Option<(Directory, Contents)>, ArchiveError> {
        let Some(directory) = self.open()? else {
            return Ok(None);
        };
        let contents = Contents::of(&directory).context("list", &self.path)?;
        Ok(Some((directory, contents)))
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

/// What is in a plan directory.
struct Contents {
    /// Names of what is stook's own, in the order in which they are removed.
    own: Vec<Vec<u8>>,
    /// Names of all else, sorted.
    foreign: Vec<Vec<u8>>,
}

impl Contents {
    fn of(directory: &Directory) -> io::Result<Self> {
        let mut found = names(directory)?;
        found.sort();
        let (mut own, mut foreign): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|name| is_own(directory, name));
        if let Some(place) = own.iter().position(|name| name == PLAN) {
            // As long as it is there, a removal that was killed can go on.
            let plan = own.remove(place);
            own.push(plan);
        } else if !own.is_empty()
            && is_file(directory, PLAN)
            && let Some(place) = foreign.iter().position(|name| name == PLAN)
        {
            // Beside parts it is their plan, beyond recognition. Alone it would count as the user's.
            own.insert(0, foreign.remove(place));
        }
        Ok(Self { own, foreign })
    }
}

fn is_file(directory: &Directory, name: &[u8]) -> bool {
    let metadata = directory.metadata(name, Links::Refuse);
    metadata.is_ok_and(|metadata| metadata.kind == FileKind::File)
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
    let known = [PLAN, b"deleted", b"commit"];
    let base = name.strip_suffix(b".partial").unwrap_or(name);
    let is_known =
        known.contains(&base) || name.starts_with(b"part-") || name.starts_with(b"sorted-");
    is_known && begins_as_ours(directory, name)
}

fn is_built(name: &[u8]) -> bool {
    let prefixes: [&[u8]; 4] = [b"built-", b"building-", b"taken-", b"damaged-"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the name of what was built of a part.
pub(crate) fn built_name(number: u32) -> String {
    format!("built-{number:06}")
}

pub(crate) fn taken_name(number: u32) -> String {
    format!("taken-{number:06}")
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

/// What the plan of an archive is to it.
pub(crate) enum PlanState {
    /// Its run is unfinished.
    Reserving(PlanFile),
    /// All of it is committed, and its run has ended with so many failures: a commit was killed while it removed the plan.
    Committed { failed: u64 },
}

/// Returns the state of an archive's plan; None if there is none, or what a kill left of one.
///
/// # Cost
/// One system call if there is no plan.
pub(crate) fn plan_state(archive: &Path, index: &Index) -> Result<Option<PlanState>, ArchiveError> {
    let Some(plan) = PlanDirectory::of(archive).read()? else {
        return Ok(None);
    };
    let run = plan.id().run;
    if index
        .unfinished_run()?
        .is_some_and(|found| found.id.0 == run)
    {
        return Ok(Some(PlanState::Reserving(plan)));
    }
    let ended = index.runs()?.into_iter().find(|found| found.id.0 == run);
    Ok(ended.map(|run| PlanState::Committed { failed: run.failed }))
}

/// Refuses to write to an archive that is reserved for a plan.
///
/// # Errors
/// `Planned`; `BadPlanFile` if the plan cannot be read: only `abandon` knows that nobody needs it.
pub(crate) fn refuse_planned(archive: &Path, index: &Index) -> Result<(), ArchiveError> {
    match plan_state(archive, index)? {
        Some(PlanState::Reserving(_)) => Err(ArchiveError::Planned {
            path: archive.to_owned(),
        }),
        Some(PlanState::Committed { .. }) | None => Ok(()),
    }
}
