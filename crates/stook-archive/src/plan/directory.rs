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
//!     damaged-000003/   the same, if it is not as it was built; -2 and so on if that name is taken
//!     commit            which part becomes which volume: from here on a commit that was killed goes on
//!     given-up          the plan, while it is given up: nothing can be committed any more
//!     sorted-000001     while the plan is made: members that did not fit into memory
//! ```
//! It is stook's own by the content of its files: each begins with the same bytes. While the run of the plan is unfinished,
//! the archive is reserved. A plan directory of any other run is what a kill left, and the next writer removes it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_index::Index;
use stook_sys::{
    Context, Directory, FileKind, Links, create_new_file, exists, install, is_no_directory,
    remove_file, sync_directory,
};

use super::block_file::{bad_file, finish};
use super::blocks::{BlockReader, BlockWriter, FileRole, PlanFileError};
use super::contents::{Contents, GIVEN_UP, Origin, PLAN, name_of, names, origin, remove_own};
use super::plan_file::{PlanFile, decode_plan, encode_plan};
use crate::ArchiveError;

/// Its name in the archive's folder.
pub(crate) const PLAN_DIRECTORY: &str = "stook.plan";

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

    /// Returns where what was built goes if it is damaged: the first of several names, if others are taken.
    pub(crate) fn damaged(&self, number: u32, attempt: u32) -> PathBuf {
        match attempt {
            1 => self.file(&format!("damaged-{number:06}")),
            attempt => self.file(&format!("damaged-{number:06}-{attempt}")),
        }
    }

    pub(crate) fn sorted(&self, number: u32) -> PathBuf {
        self.file(&format!("sorted-{number:06}"))
    }

    /// Reads the plan; None if there is none, or only one that is given up.
    pub(crate) fn read(&self) -> Result<Option<PlanFile>, ArchiveError> {
        self.read_from(PLAN)
    }

    /// Reads a plan of which the removal was ended early.
    pub(crate) fn read_given_up(&self) -> Result<Option<PlanFile>, ArchiveError> {
        self.read_from(GIVEN_UP)
    }

    fn read_from(&self, name: &str) -> Result<Option<PlanFile>, ArchiveError> {
        let Some(directory) = self.open()? else {
            return Ok(None);
        };
        match read_plan(&directory, name) {
            Err(PlanFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Something of the user's that has this name.
            Err(PlanFileError::Foreign) if !self.has_own()? => Ok(None),
            other => other.map(Some).map_err(bad_file(&self.file(name))),
        }
    }

    /// Returns true if a file of a plan is there, damaged or not.
    pub(crate) fn has_own(&self) -> Result<bool, ArchiveError> {
        let contents = self.contents()?;
        Ok(contents.is_some_and(|(_, contents)| contents.is_stooks))
    }

    /// Makes sure that nothing is committed any more.
    pub(crate) fn give_up(&self) -> Result<(), ArchiveError> {
        Ok(install(&self.file(PLAN), &self.file(GIVEN_UP))?)
    }

    /// Removes the file `commit`, durably.
    pub(crate) fn remove_log(&self) -> Result<(), ArchiveError> {
        let path = self.commit_log();
        if exists(&path)?.is_some() {
            remove_file(&path)?;
            sync_directory(&self.path)?;
        }
        Ok(())
    }

    /// Writes the plan, durably.
    pub(crate) fn write(&self, plan: &PlanFile) -> Result<(), ArchiveError> {
        self.replace(PLAN, FileRole::Plan, |blocks| {
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
        let mut removed = Ok(());
        for name in &contents.own {
            if removed.is_err() && (name == PLAN.as_bytes() || name == GIVEN_UP.as_bytes()) {
                break;
            }
            let path = self.path.join(std::ffi::OsStr::from_bytes(name));
            removed = removed.and(remove_own(&directory, name).context("remove", path));
        }
        removed?;
        let (parent, name) = self.parent()?;
        match parent.remove_directory(name) {
            Err(error)
                if [io::ErrorKind::DirectoryNotEmpty, io::ErrorKind::NotFound]
                    .contains(&error.kind()) => {}
            other => other.context("remove", &self.path)?,
        }
        Ok(contents.foreign)
    }

    /// As [`PlanDirectory::remove`], once the plan is needed no more: what cannot be removed stays, too.
    pub(crate) fn clean_up(&self) -> Vec<Vec<u8>> {
        self.remove().unwrap_or_else(|_| {
            let opened = self.open().ok().flatten();
            let mut left = opened.map_or(Vec::new(), |found| names(&found).unwrap_or_default());
            left.sort();
            left
        })
    }

    /// Returns how many parts there are, and how many of them are built; for reports only.
    pub(crate) fn counts(&self) -> Result<(u64, u64), ArchiveError> {
        let Some(directory) = self.open()? else {
            return Ok((0, 0));
        };
        let names = names(&directory).context("list", &self.path)?;
        let count = |prefixes: &[&[u8]]| {
            let is_counted = |name: &&Vec<u8>| prefixes.iter().any(|p| name.starts_with(p));
            names.iter().filter(is_counted).count() as u64
        };
        Ok((count(&[b"part-"]), count(&[b"built-", b"taken-"])))
    }

    /// Returns true if it is there, and stook made all that is in it.
    pub(crate) fn is_own(&self) -> Result<bool, ArchiveError> {
        let contents = self.contents()?;
        Ok(contents.is_some_and(|(_, contents)| contents.foreign.is_empty()))
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
            Err(error) if is_no_directory(&error) => Ok(None),
            Err(error) => Err(error).context("open", &self.path).map_err(Into::into),
        }
    }
}

fn read_plan(directory: &Directory, name: &str) -> Result<PlanFile, PlanFileError> {
    let name = name.as_bytes();
    let found = directory.metadata(name, Links::Refuse);
    if found.map_err(PlanFileError::Io)?.kind != FileKind::File {
        return Err(PlanFileError::Foreign);
    }
    let file = directory.open_file(name, Links::Refuse);
    let file = file.map_err(PlanFileError::Io)?;
    let mut blocks = BlockReader::new(BufReader::new(file), FileRole::Plan)?;
    let plan = blocks
        .next_block()?
        .and_then(|(_, payload)| decode_plan(payload));
    let plan = plan.ok_or_else(|| blocks.malformed("it is no plan"))?;
    match blocks.next_block()? {
        None => Ok(plan),
        Some(_) => Err(blocks.malformed("there is more than one plan")),
    }
}

/// Returns the name of what was built of a part.
pub(crate) fn built_name(number: u32) -> String {
    format!("built-{number:06}")
}

pub(crate) fn taken_name(number: u32) -> String {
    format!("taken-{number:06}")
}

/// Removes a folder with what was built of a part. Returns false, with nothing done, if stook did not make it.
pub(crate) fn remove_built(path: &Path) -> Result<bool, ArchiveError> {
    let (parent, name) = (folder_of(path)?, name_of(path));
    if origin(&parent, name).context("look at", path)? == Origin::Foreign {
        return Ok(false);
    }
    remove_own(&parent, name).context("remove", path)?;
    Ok(true)
}

/// Refuses to replace something that stook did not build of a part.
pub(crate) fn require_built(path: &Path) -> Result<(), ArchiveError> {
    match origin(&folder_of(path)?, name_of(path)).context("look at", path)? {
        Origin::Foreign if exists(path)?.is_some() => Err(ArchiveError::NameTaken {
            path: path.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn folder_of(path: &Path) -> Result<Directory, ArchiveError> {
    Ok(Directory::open(path.parent().unwrap_or(Path::new(".")))?)
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
