//! The folder of an archive: which file is what.
//!
//! ```text
//!   index.db               the index
//!   000000.tar             a volume
//!   000000.tar.zst         or a compressed one
//!   000001.tar.partial     the volume being written
//!   000001.rows.partial    its rows, up to the last checkpoint; also says that stook is writing it
//!   stook.lock             names the writer, only while it runs
//!   stook.plan/            the parts of a plan, until it is committed or abandoned: see `plan/directory.rs`
//! ```
//! A user's file may have one of these names, too. It is stook's own only if its content says so.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_index::{Index, Interrupt, Origin, Staging, VolumeId};
use stook_sys::{
    Context, Directory, FileId, NameBuffer, TemporaryNames, WriterLock, exists, look_at,
    require_regular,
};

use crate::ArchiveError;
use crate::plan::{PLAN_DIRECTORY, PlanDirectory};

/// The name of the index, in a folder and in a store.
pub(crate) const INDEX: &str = "index.db";

/// What lies beside the index while it is written to.
pub(crate) const JOURNAL: &str = "index.db-journal";

#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
    /// What messages call it; Some where it holds only a copy of the index, and the archive lies elsewhere.
    name: Option<PathBuf>,
    /// Ends what is done with its index.
    pub(crate) interrupt: Interrupt,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self::until(path, Interrupt::never())
    }

    /// Returns the folder; what is done with its index ends once `interrupt` is raised.
    pub(crate) fn until(path: &Path, interrupt: Interrupt) -> Self {
        Self {
            path: path.to_owned(),
            name: None,
            interrupt,
        }
    }

    /// Returns the folder of a copy of the index; messages name the archive.
    pub(crate) fn of_copy(path: &Path, name: PathBuf, interrupt: Interrupt) -> Self {
        Self {
            name: Some(name),
            ..Self::until(path, interrupt)
        }
    }

    /// Returns how messages name the archive.
    pub(crate) fn name(&self) -> &Path {
        self.name.as_deref().unwrap_or(&self.path)
    }

    /// Returns true if the archive lies elsewhere: nothing that is written here reaches it.
    pub(crate) fn is_copy(&self) -> bool {
        self.name.is_some()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.path.join(INDEX)
    }

    pub(crate) fn volume(&self, id: VolumeId) -> PathBuf {
        self.path.join(id.to_string())
    }

    pub(crate) fn partial(&self, id: VolumeId) -> PathBuf {
        // Compressed or not: the number is all that a volume has until it is complete.
        self.path.join(format!("{:06x}.tar.partial", id.0))
    }

    pub(crate) fn staging(&self, id: VolumeId) -> PathBuf {
        self.path.join(format!("{:06x}.rows.partial", id.0))
    }

    pub(crate) fn lock(&self) -> Result<WriterLock, ArchiveError> {
        WriterLock::acquire(&self.lock_path())
            .map_err(|error| ArchiveError::lock(error, &self.path))
    }

    /// Removes the lock of a run that was killed after its work was done.
    pub(crate) fn remove_stale_lock(&self) -> Result<(), ArchiveError> {
        if exists(&self.lock_path())?.is_some() {
            drop(self.lock()?);
        }
        Ok(())
    }

    fn lock_path(&self) -> PathBuf {
        self.path.join(LOCK)
    }

    /// Returns true if something has the name of the index.
    pub(crate) fn has_index(&self) -> Result<bool, ArchiveError> {
        Ok(exists(&self.index())?.is_some())
    }

    /// Returns a path in the folder for a file that has no name yet.
    pub(crate) fn temporary(&self) -> Result<PathBuf, ArchiveError> {
        let inode = look_at(&self.path)?.identity().1;
        let name = TemporaryNames::new("partial").next(inode);
        Ok(self.path.join(OsStr::from_bytes(&name)))
    }

    pub(crate) fn require_index(&self) -> Result<(), ArchiveError> {
        let found = exists(&self.index());
        if let Ok(Some(metadata)) = &found {
            return Ok(require_regular(metadata, &self.index())?);
        }
        // Says that the folder is missing, or none, before anything is said about what is in it.
        Directory::open(&self.path)?;
        found?;
        let path = self.path.clone();
        Err(if self.volumes()?.is_empty() {
            ArchiveError::NotAnArchive { path }
        } else {
            ArchiveError::NoIndex { path }
        })
    }

    /// Returns the volumes that are in the folder, in order, compressed ones too.
    pub(crate) fn volumes(&self) -> Result<Vec<VolumeId>, ArchiveError> {
        self.ids(|name| name.parse().ok())
    }

    /// Returns the volumes that an interrupted run was writing.
    pub(crate) fn unfinished(&self) -> Result<Vec<VolumeId>, ArchiveError> {
        let mut ids = self.ids(unfinished_id)?;
        ids.dedup();
        Ok(ids)
    }

    /// Returns true if the files of an unfinished volume are stook's own.
    ///
    /// Its staged rows show it. Before the first checkpoint their file is empty, and then it counts only if the index
    /// says that a run was interrupted.
    pub(crate) fn is_own_unfinished(&self, id: VolumeId, is_interrupted: bool) -> bool {
        match Staging::origin(self.staging(id)) {
            Origin::Own => true,
            Origin::Blank => is_interrupted,
            Origin::Missing | Origin::Foreign => false,
        }
    }

    /// Returns the names of what stook did not make in a folder without an index, sorted.
    pub(crate) fn foreign_entries(&self) -> Result<Vec<Vec<u8>>, ArchiveError> {
        let mut names = Vec::new();
        self.for_each_name(|name| names.push(name.to_vec()))?;
        let mut foreign = Vec::new();
        for name in names {
            if !self.is_own(&name)? {
                foreign.push(name);
            }
        }
        foreign.sort();
        Ok(foreign)
    }

    /// Returns true for what a run may have left that was killed before there was an index.
    fn is_own(&self, name: &[u8]) -> Result<bool, ArchiveError> {
        if name == LOCK.as_bytes() {
            return Ok(WriterLock::is_at(&self.lock_path()));
        }
        if name == PLAN_DIRECTORY.as_bytes() {
            return PlanDirectory::of(&self.path).is_own();
        }
        if name.starts_with(b"index.db.partial") && is_needed(name) {
            let origin = Index::unfinished_origin(self.index());
            return Ok(matches!(origin, Origin::Own | Origin::Blank));
        }
        let id = std::str::from_utf8(name).ok().and_then(unfinished_id);
        Ok(id.is_some_and(|id| self.is_own_unfinished(id, false)))
    }

    fn ids(&self, parse: impl Fn(&str) -> Option<VolumeId>) -> Result<Vec<VolumeId>, ArchiveError> {
        let mut ids = Vec::new();
        self.for_each_name(|name| ids.extend(std::str::from_utf8(name).ok().and_then(&parse)))?;
        ids.sort();
        Ok(ids)
    }

    fn for_each_name(&self, mut visit: impl FnMut(&[u8])) -> Result<(), ArchiveError> {
        let directory = Directory::open(&self.path)?;
        directory
            .names(&mut NameBuffer::default(), |found| visit(found.name))
            .context("list", &self.path)?;
        Ok(())
    }
}

const LOCK: &str = "stook.lock";

/// Returns true for a name that `create` needs for something that is not a volume.
pub(crate) fn is_needed(name: &[u8]) -> bool {
    let databases: [&[u8]; 2] = [b"index.db.partial", b"index.db"];
    let suffixes: [&[u8]; 4] = [b"", b"-journal", b"-wal", b"-shm"];
    let of_database = |database: &&[u8]| {
        name.strip_prefix(*database)
            .is_some_and(|rest| suffixes.contains(&rest))
    };
    name == LOCK.as_bytes() || databases.iter().any(of_database)
}

/// Returns the volume that a file of this name is a part of while that is written.
fn unfinished_id(name: &str) -> Option<VolumeId> {
    let journal = ["-journal", "-wal", "-shm"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix));
    let number = match journal {
        Some(database) => database.strip_suffix(".rows.partial"),
        None => name
            .strip_suffix(".rows.partial")
            .or_else(|| name.strip_suffix(".tar.partial")),
    }?;
    format!("{number}.tar").parse().ok()
}

/// Returns what a folder is known by, however its path is written; None if it is not there.
pub(crate) fn folder_id(path: &Path) -> Result<Option<FileId>, ArchiveError> {
    Ok(exists(path)?.map(|metadata| metadata.identity()))
}
