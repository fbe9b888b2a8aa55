//! Files of blocks on disk: how they are opened, ended, and named in errors.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use stook_sys::open_file;

use super::blocks::{BlockReader, BlockWriter, FileRole, PlanFileError};
use crate::ArchiveError;

/// Bytes read at once: hundreds of sorted files may be open together.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Opens a file of a plan.
pub(crate) fn open_blocks(
    path: &Path,
    role: FileRole,
) -> Result<BlockReader<BufReader<File>>, PlanFileError> {
    let file = open_file(path).map_err(|error| PlanFileError::Io(error.source))?;
    BlockReader::new(BufReader::with_capacity(READ_BYTES, file), role)
}

/// Ends a file and makes it durable.
pub(crate) fn finish(blocks: BlockWriter<BufWriter<File>>) -> io::Result<()> {
    let mut file = blocks.finish()?;
    file.flush()?;
    file.get_ref().sync_all()
}

/// Names the file that an error is about.
pub(crate) fn bad_file(path: &Path) -> impl FnOnce(PlanFileError) -> ArchiveError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| ArchiveError::BadPlanFile { path, source }
}
