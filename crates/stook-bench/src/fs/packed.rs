//! The file set, made once and packed twice: as a plain tar and as an archive of stook.

use std::path::{Path, PathBuf};

use stook_sys::{Context, look_at, open_file, read_up_to_at};

use super::commands;
use super::options::{FsOptions, Tool};
use super::verify::{self, Count};
use crate::Observer;
use crate::error::BenchError;
use crate::fileset;
use crate::scratch::ScratchDirectory;

/// The packed file set.
#[derive(Debug)]
pub(super) struct Packed {
    /// The plain tar; made unless stook is the only tool.
    pub(super) tar: PathBuf,
    /// The archive; made if stook is a tool.
    pub(super) archive: PathBuf,
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
        let tree = work.path().join("tree");
        observer.progress(&format!("making {} files", options.files.files));
        let properties = fileset::make(&tree, &options.files, observer)?;
        let count = Count {
            files: properties.files,
            bytes: properties.bytes,
        };
        let packed = Self {
            count,
            ..Self::at(work.path())
        };
        observer.progress("packing them");
        if options.tools.iter().any(|tool| *tool != Tool::Stook) {
            commands::pack_tar(&tree, &packed.tar).succeed("while packing", observer)?;
        }
        if options.tools.contains(&Tool::Stook) {
            let job = commands::pack_archive(&options.stook, &tree, &packed.archive);
            job.succeed("while packing", observer)?;
        }
        work.clear("tree")?;
        Ok(packed)
    }

    /// Returns where it lies in the folder of the work, before anything is there.
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            tar: folder.join("set.tar"),
            archive: folder.join("set"),
            count: Count { files: 0, bytes: 0 },
        }
    }

    /// Returns the packed files that a tool uses.
    fn files(&self, tool: Tool) -> Result<Vec<PathBuf>, BenchError> {
        match tool {
            Tool::Stook => verify::files_in(&self.archive),
            Tool::System | Tool::Single => Ok(vec![self.tar.clone()]),
        }
    }

    /// Returns the bytes that a tool has to copy.
    pub(super) fn bytes(&self, tool: Tool) -> Result<u64, BenchError> {
        let sizes = self
            .files(tool)?
            .into_iter()
            .map(|file| Ok(look_at(&file)?.size));
        sizes.sum()
    }

    /// Reads what a tool will copy, so that all targets get it from memory.
    pub(super) fn warm(&self, tool: Tool) -> Result<(), BenchError> {
        let mut block = vec![0; 1 << 20];
        for path in self.files(tool)? {
            let file = open_file(&path)?;
            let mut offset = 0;
            loop {
                let len = read_up_to_at(&file, &mut block, offset).context("read", &path)?;
                offset += len as u64;
                if len < block.len() {
                    break;
                }
            }
        }
        Ok(())
    }
}
