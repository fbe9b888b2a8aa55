//! The file set, made once and packed for each kind of tool: as a plain tar and as an archive of stook.

use std::path::{Path, PathBuf};

use stook_sys::{Context, look_at, open_file, read_up_to_at};

use super::options::FsOptions;
use super::phase::{Commands, Tool};
use crate::Observer;
use crate::error::BenchError;
use crate::fileset;
use crate::scratch::ScratchDirectory;
use crate::trees::{Count, names_in};

/// The packed file set.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) commands: Commands,
    pub(super) tar: PathBuf,
    archive: PathBuf,
    /// What an unpacked tree holds.
    pub(super) count: Count,
}

impl Packed {
    /// Makes the file set and packs it. The tree itself is not kept.
    ///
    /// # Errors
    /// What failed, or [`BenchError::Interrupted`].
    pub(super) fn make(
        options: &FsOptions,
        work: &ScratchDirectory,
        observer: &dyn Observer,
    ) -> Result<Self, BenchError> {
        observer.progress(&format!("making {} files", options.files.files));
        let made = fileset::make(&work.path().join("tree"), &options.files, observer)?;
        let packed = Self {
            commands: Commands::new(&options.stook, work.path()),
            tar: work.path().join("set.tar"),
            archive: work.path().join("set"),
            count: Count {
                files: made.files,
                bytes: made.bytes,
            },
        };
        observer.progress("packing them");
        // The tools but stook share the tar.
        let is_ours = |tool: &&Tool| **tool == Tool::Stook;
        let tools = options.tools.iter();
        for tool in [
            tools.clone().find(is_ours),
            tools.clone().find(|tool| !is_ours(tool)),
        ] {
            let job = tool.map(|tool| packed.commands.pack(*tool));
            job.map(|job| job.succeed("while packing", observer))
                .transpose()?;
        }
        work.clear("tree")?;
        Ok(packed)
    }

    /// Returns the packed files that a tool uses.
    fn files(&self, tool: Tool) -> Result<Vec<PathBuf>, BenchError> {
        match tool {
            Tool::Stook => files_in(&self.archive),
            Tool::System | Tool::Single => Ok(vec![self.tar.clone()]),
        }
    }

    /// Returns the bytes that a tool has to copy.
    pub(super) fn bytes(&self, tool: Tool) -> Result<u64, BenchError> {
        size_of(&self.files(tool)?)
    }

    /// Reads what a tool will copy, so that all targets get it from memory.
    pub(super) fn warm(&self, tool: Tool) -> Result<(), BenchError> {
        let mut block = vec![0; 1 << 20];
        for path in self.files(tool)? {
            let file = open_file(&path)?;
            let (mut offset, mut len) = (0, block.len());
            while len == block.len() {
                len = read_up_to_at(&file, &mut block, offset).context("read", &path)?;
                offset += len as u64;
            }
        }
        Ok(())
    }
}

/// Returns the bytes of some files.
pub(super) fn size_of(files: &[PathBuf]) -> Result<u64, BenchError> {
    files.iter().map(|file| Ok(look_at(file)?.size)).sum()
}

/// Returns the files of a folder of plain files, such as an archive.
///
/// # Errors
/// If it cannot be read.
pub(super) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let names = names_in(folder)?.into_iter();
    Ok(names.map(|name| folder.join(name)).collect())
}
