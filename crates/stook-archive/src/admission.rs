//! Whether a folder may become an archive, and the index that makes it one.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use stook_index::{Config, Index, RunId};
use stook_sys::{Directory, exists};
use stook_volume::Dialect;

use crate::ArchiveError;
use crate::folder::is_needed;
use crate::observer::{Note, Observer};
use crate::plan::{DEFAULT_VOLUME_BYTES, refuse_planned};
use crate::session::Session;
use crate::transfer::StoreOptions;

impl Session<'_> {
    /// Returns the index of an interrupted run, or None if nothing is there yet.
    pub(crate) fn creatable(&self) -> Result<Option<Index>, ArchiveError> {
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

    /// Returns the index of what is there, None if nothing is yet; and the command that a plan stands for.
    pub(crate) fn index_to_plan(&self) -> Result<(Option<Index>, &'static str), ArchiveError> {
        match self.creatable() {
            Err(ArchiveError::Exists { .. }) => Ok((Some(self.folder.open_index()?), "update")),
            other => Ok((other?, "create")),
        }
    }

    /// Refuses to write while the archive is reserved for a plan, or in a form that is not its own.
    pub(crate) fn refuse_planned(&self, index: Option<&Index>) -> Result<(), ArchiveError> {
        // What the archive cannot be is refused first.
        self.zstd(index)?;
        index.map_or(Ok(()), |index| refuse_planned(self.folder.path(), index))
    }

    /// Refuses a folder for a new archive that holds what stook did not make.
    fn admit_other_files(&self) -> Result<(), ArchiveError> {
        let found = self.folder.foreign_entries()?;
        let is_allowed = self.options.allows_other_files || self.options.dialect == Dialect::Zstash;
        if !is_allowed && !found.iter().all(|name| is_log(name)) {
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

    /// Makes the index of a new archive, in which the run has begun.
    pub(crate) fn make_index(&self, command: &str) -> Result<(Index, RunId), ArchiveError> {
        let source = match &self.options.recorded_source {
            Some(source) => source.clone(),
            None => stook_sys::absolute(&self.source_path)?,
        };
        let config = Config {
            hpss: self
                .options
                .store
                .as_ref()
                .map_or("none", StoreOptions::zstash_name)
                .to_owned(),
            maxsize: self.options.volume_bytes.unwrap_or(DEFAULT_VOLUME_BYTES),
            path: source.into_os_string().into_vec(),
        };
        let made = self
            .folder
            .create_index(&config, command, self.options.zstd)?;
        if self.options.zstd.is_some() {
            self.observer.note(&Note::Compressed);
        }
        Ok(made)
    }
}

/// Returns true for the names that shells and batch systems give to the output of a run: `| tee ARCHIVE/create.log`.
fn is_log(name: &[u8]) -> bool {
    let endings: [&[u8]; 3] = [b".log", b".out", b".err"];
    endings.iter().any(|ending| name.ends_with(ending))
}
