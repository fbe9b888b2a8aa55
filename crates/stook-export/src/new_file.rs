//! A file that gets its name when it is whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_archive::VolumeId;
use stook_sys::{
    Context, SysError, TemporaryNames, create_new_file, install, look_at, remove_file,
};

use crate::ExportError;

const BUFFER_BYTES: usize = 1 << 20;

/// A file under a temporary name beside its own, which goes if it is dropped before it is finished.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    partial: PathBuf,
    pub(crate) out: BufWriter<File>,
    is_finished: bool,
}

impl NewFile {
    /// # Errors
    /// "look at" with the folder, "create" with the temporary name.
    pub(crate) fn create(path: &Path) -> Result<Self, SysError> {
        let folder = folder_of(path);
        let inode = look_at(folder)?.identity().1;
        let name = TemporaryNames::new("partial").next(inode);
        let partial = folder.join(OsStr::from_bytes(&name));
        let file = create_new_file(&partial)?;
        Ok(Self {
            path: path.to_owned(),
            partial,
            out: BufWriter::with_capacity(BUFFER_BYTES, file),
            is_finished: false,
        })
    }

    /// Makes it durable, and gives it its name, in the place of what has it.
    ///
    /// # Errors
    /// "write" with the temporary name, and as [`install`].
    pub(crate) fn finish(mut self) -> Result<(), SysError> {
        std::io::Write::flush(&mut self.out)
            .and_then(|()| self.out.get_ref().sync_all())
            .context("write", &self.partial)?;
        install(&self.partial, &self.path)?;
        self.is_finished = true;
        Ok(())
    }

    /// Returns where it is until it is finished.
    pub(crate) fn partial(&self) -> &Path {
        &self.partial
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // Why it was not finished is the error that counts.
            let _ = remove_file(&self.partial);
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Requires that a file to be written is no part of the archive.
pub(crate) fn require_not_of(archive: &Path, path: &Path) -> Result<(), ExportError> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let is_volume = std::str::from_utf8(name).is_ok_and(|name| name.parse::<VolumeId>().is_ok());
    if !is_volume && !name.starts_with(b"index.db") {
        return Ok(());
    }
    let identity = |folder: &Path| look_at(folder).map(|facts| facts.identity());
    match (identity(archive), identity(folder_of(path))) {
        (Ok(archive), Ok(folder)) if archive == folder => Err(ExportError::OverArchive {
            path: path.to_owned(),
        }),
        _ => Ok(()),
    }
}
