//! The folder of an archive: which file is what.
//!
//! ```text
//!   index.db               the index
//!   000000.tar             a volume
//!   000001.tar.partial     the volume being written
//!   000001.rows.partial    its rows, up to the last checkpoint; also says that stook is writing it
//!   stook.lock             names the writer, only while it runs
//! ```

use std::path::{Path, PathBuf};

use stook_index::{Index, Interrupt, VolumeId};
use stook_sys::{Context, Directory, NameBuffer, WriterLock, exists, require_regular};

use crate::ArchiveError;

#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Ends what is done with its index.
    pub(crate) interrupt: Interrupt,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self::until(path, Interrupt::never())
    }

    /// Returns the folder; what is done with its index ends once `interrupt` is raised.
    pub(crate) fn until(path: &Path, interrupt: Interrupt) -> Self {
        let path = path.to_owned();
        Self { path, interrupt }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.path.join("index.db")
    }

    /// What a `reindex` that was killed left.
    pub(crate) fn unfinished_index(&self) -> PathBuf {
        self.path.join("index.db.partial")
    }

    pub(crate) fn volume(&self, id: VolumeId) -> PathBuf {
        self.path.join(id.to_string())
    }

    pub(crate) fn partial(&self, id: VolumeId) -> PathBuf {
        self.path.join(format!("{id}.partial"))
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
        self.path.join("stook.lock")
    }

    /// Opens the index for reading, or says that the folder is no archive.
    pub(crate) fn open_index(&self) -> Result<Index, ArchiveError> {
        self.require_index()?;
        Ok(Index::open_read_until(self.index(), &self.interrupt)?)
    }

    /// Opens the index for writing.
    pub(crate) fn open_index_to_write(&self) -> Result<Index, ArchiveError> {
        Ok(Index::open_write_until(self.index(), &self.interrupt)?)
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

    /// Returns the volumes that are in the folder, in order.
    pub(crate) fn volumes(&self) -> Result<Vec<VolumeId>, ArchiveError> {
        self.ids(|name| name.parse().ok())
    }

    /// Returns the volumes that an interrupted run was writing.
    pub(crate) fn unfinished(&self) -> Result<Vec<VolumeId>, ArchiveError> {
        let mut ids = self.ids(|name| {
            let number = name
                .strip_suffix(".rows.partial")
                .or_else(|| name.strip_suffix(".tar.partial"))?;
            format!("{number}.tar").parse().ok()
        })?;
        ids.dedup();
        Ok(ids)
    }

    fn ids(&self, parse: impl Fn(&str) -> Option<VolumeId>) -> Result<Vec<VolumeId>, ArchiveError> {
        let directory = Directory::open(&self.path)?;
        let mut ids = Vec::new();
        directory
            .names(&mut NameBuffer::default(), |found| {
                ids.extend(std::str::from_utf8(found.name).ok().and_then(&parse));
            })
            .context("list", &self.path)?;
        ids.sort();
        Ok(ids)
    }
}
