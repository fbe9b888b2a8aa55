//! Local files at either end of a transfer: read or written in pieces, hashed on the way.

use std::fs::File;
use std::io;
use std::path::Path;

use stook_md5::Md5;
use stook_sys::{
    Context, SysError, create_new_file, open_file, read_up_to_at, remove_file, write_all_at,
};

use crate::error::{Difference, StoreCause};
use crate::store::Upload;
use crate::transfer::TransferObserver;

/// Bytes that are read or written at once.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Length and MD5 of bytes that went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) size: u64,
    pub(crate) md5: [u8; 16],
}

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut md5 = Md5::new();
        md5.update(bytes);
        Self {
            size: bytes.len() as u64,
            md5: md5.finish(),
        }
    }

    /// Requires these bytes; without an MD5 only their number.
    pub(crate) fn require(&self, size: u64, md5: Option<[u8; 16]>) -> Result<(), StoreCause> {
        if self.size != size {
            return Err(StoreCause::Different(Difference::Size {
                expected: size,
                found: self.size,
            }));
        }
        if md5.is_some_and(|md5| md5 != self.md5) {
            return Err(StoreCause::Different(Difference::Hash));
        }
        Ok(())
    }
}

/// Hands a file over in pieces, in order. `cause` says whether it is a local file, or one of a store.
///
/// # Errors
/// `cause` if it cannot be read; `Interrupted`; those of `take`.
pub(crate) fn read_pieces(
    path: &Path,
    cause: fn(SysError) -> StoreCause,
    observer: &dyn TransferObserver,
    mut take: impl FnMut(&[u8]) -> Result<(), StoreCause>,
) -> Result<Digest, StoreCause> {
    let file = open_file(path).map_err(cause)?;
    let mut buffer = vec![0; PIECE_BYTES];
    let (mut size, mut md5) = (0, Md5::new());
    loop {
        if observer.is_interrupted() {
            return Err(StoreCause::Interrupted);
        }
        let read = read_up_to_at(&file, &mut buffer, size);
        let len = read.context("read", path).map_err(cause)?;
        if len == 0 {
            let md5 = md5.finish();
            return Ok(Digest { size, md5 });
        }
        md5.update(&buffer[..len]);
        take(&buffer[..len])?;
        size += len as u64;
    }
}

/// Returns the MD5 that a file must have: the one that is known, or that of the local file.
pub(crate) fn expected_md5(
    file: &Upload<'_>,
    observer: &dyn TransferObserver,
) -> Result<[u8; 16], StoreCause> {
    if let Some(md5) = file.md5 {
        return Ok(md5);
    }
    let local = read_pieces(file.path, StoreCause::Sys, observer, |_| Ok(()))?;
    Ok(local.md5)
}

/// A new file that is written from its begin to its end.
pub(crate) struct NewFile<'a> {
    path: &'a Path,
    file: File,
    size: u64,
}

impl<'a> NewFile<'a> {
    pub(crate) fn create(path: &'a Path) -> Result<Self, SysError> {
        let file = create_new_file(path)?;
        Ok(Self {
            path,
            file,
            size: 0,
        })
    }

    /// Writes a file in the place of what has its name, durably; nothing stays of one that failed.
    pub(crate) fn write_whole(
        path: &Path,
        write: impl FnOnce(&mut NewFile<'_>) -> Result<(), StoreCause>,
    ) -> Result<(), StoreCause> {
        match remove_file(path) {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
        let mut file = NewFile::create(path)?;
        let written = write(&mut file).and_then(|()| Ok(file.sync()?));
        written.inspect_err(|_| {
            // The error to report is the one of writing.
            let _ = remove_file(path);
        })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), SysError> {
        write_all_at(&self.file, bytes, self.size).context("write", self.path)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Returns the file, for a program that writes it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Makes its bytes durable.
    pub(crate) fn sync(&self) -> Result<(), SysError> {
        self.file.sync_all().context("sync", self.path)
    }
}

/// Returns an error for a name that is no plain one.
pub(crate) fn require_name(name: &str) -> Result<(), StoreCause> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(StoreCause::Name);
    }
    Ok(())
}

/// Returns the error itself of a system call that failed at the store's end.
pub(crate) fn at_store(error: SysError) -> StoreCause {
    let source: io::Error = error.source;
    source.into()
}
