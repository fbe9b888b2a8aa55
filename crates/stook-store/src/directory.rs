//! A directory on a file system: another disk, or a mount of another machine.
//!
//! ```text
//!   put   a temporary name ──write, sync──> read back ──> rename ──> sync the directory
//! ```
//! What is put is read back before it gets its name; the pages of the file are dropped from memory first, so that the bytes
//! come from the disk where the system lets them go.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_sys::{
    Directory, FileKind, LockError, NameBuffer, Stamp, SysError, TemporaryNames, WriterLock,
    create_directory, drop_cached, exists, install, install_new, is_temporary_name, look_at,
    open_file, read_up_to_at, remove_file, utc_now,
};

use crate::error::{Difference, StoreCause, StoreError};
use crate::local_file::{Digest, NewFile, at_store, read_pieces, require_name};
use crate::store::{
    Abilities, Condition, Download, FileVersion, Proof, Store, Stored, StoredFile, Upload,
};
use crate::transfer::TransferObserver;

/// The file that one of several writers holds while it replaces a file of a known version.
const LOCK: &str = ".stook.lock";

/// How names of files end that are not whole yet.
const PARTIAL: &str = "partial";

/// After so long without a write a file that is not whole belongs to nobody.
const ABANDONED_SECONDS: i64 = 3600;

/// A directory that holds files of an archive.
#[derive(Debug)]
pub struct DirectoryStore {
    path: PathBuf,
    name: String,
    temporary: TemporaryNames,
}

impl DirectoryStore {
    /// Returns the store in a directory; it is looked at when something is asked of it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            name: stook_sys::display_path(&path),
            path,
            temporary: TemporaryNames::new(PARTIAL),
        }
    }

    fn failed(&self, operation: &'static str, file: &str) -> impl Fn(StoreCause) -> StoreError {
        let (file, store) = (file.to_owned(), self.name.clone());
        move |cause| StoreError::new(operation, &file, &store, cause)
    }

    fn inode(&self) -> Result<u64, StoreCause> {
        let metadata = look_at(&self.path).map_err(place_error)?;
        Ok(metadata.identity().1)
    }

    fn put_file(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreCause> {
        require_name(upload.name)?;
        let temporary = self.temporary.next(self.inode()?);
        let partial = self.path.join(OsStr::from_bytes(&temporary));
        let installed = write(&partial, upload, observer)
            .and_then(|()| self.install(&partial, upload))
            .inspect_err(|_| {
                // The error to report is the one of writing.
                let _ = remove_file(&partial);
            });
        installed?;
        Ok(Stored {
            proof: Proof::ReadBack,
            version: self.version(upload.name)?,
        })
    }

    /// Removes what runs left that were killed while they put a file: our own temporary names that nobody has written to
    /// for a while.
    fn remove_abandoned(&self) -> Result<(), StoreCause> {
        let directory = Directory::open(&self.path).map_err(at_store)?;
        let inode = directory.own_metadata()?.identity().1;
        let mut names = Vec::new();
        directory.names(&mut NameBuffer::default(), |found| {
            if is_temporary_name(found.name, PARTIAL, inode) {
                names.push(found.name.to_vec());
            }
        })?;
        let oldest = utc_now().seconds - ABANDONED_SECONDS;
        for name in names {
            let path = self.path.join(OsStr::from_bytes(&name));
            let metadata = exists(&path).map_err(at_store)?;
            if metadata.is_some_and(|metadata| metadata.mtime.seconds < oldest) {
                remove_file(&path).map_err(at_store)?;
            }
        }
        Ok(())
    }

    fn install(&self, partial: &Path, upload: &Upload<'_>) -> Result<(), StoreCause> {
        let path = self.path.join(upload.name);
        match upload.condition {
            Condition::Always => install(partial, &path).map_err(at_store),
            Condition::New => install_new(partial, &path).map_err(at_store),
            Condition::Unchanged(version) => {
                let _lock = WriterLock::acquire(&self.path.join(LOCK)).map_err(lock_error)?;
                if self.version(upload.name)?.as_ref() != Some(version) {
                    return Err(StoreCause::Exists);
                }
                install(partial, &path).map_err(at_store)
            }
        }
    }

    fn version(&self, name: &str) -> Result<Option<FileVersion>, StoreCause> {
        match open_file(&self.path.join(name)) {
            Ok(file) => Ok(Some(FileVersion(Stamp::of(&file)?.text()))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(at_store(error)),
        }
    }

    fn get_file(
        &self,
        download: &Download<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        require_name(download.name)?;
        let path = self.path.join(download.name);
        NewFile::write_whole(download.path, |file| {
            let digest = read_pieces(&path, at_store, observer, |piece| {
                file.append(piece)?;
                observer.transferred(piece.len() as u64);
                Ok(())
            })?;
            digest.require(download.size.unwrap_or(digest.size), None)
        })
    }

    fn list_files(&self) -> Result<Vec<StoredFile>, StoreCause> {
        let directory = match Directory::open(&self.path) {
            Ok(directory) => directory,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(at_store(error)),
        };
        let inode = directory.own_metadata()?.identity().1;
        let mut names = Vec::new();
        directory.names(&mut NameBuffer::default(), |found| {
            let is_ours =
                found.name == LOCK.as_bytes() || is_temporary_name(found.name, PARTIAL, inode);
            if let (Ok(name), false) = (std::str::from_utf8(found.name), is_ours) {
                names.push(name.to_owned());
            }
        })?;
        names.sort();
        let files = names
            .iter()
            .filter_map(|name| self.stat_file(name).transpose());
        files.collect()
    }

    fn stat_file(&self, name: &str) -> Result<Option<StoredFile>, StoreCause> {
        require_name(name)?;
        let path = self.path.join(name);
        // What is no file may be a fifo, which must not be opened.
        match exists(&path).map_err(at_store)? {
            Some(metadata) if metadata.kind == FileKind::File => Ok(Some(StoredFile {
                name: name.to_owned(),
                size: metadata.size,
                version: self.version(name)?,
            })),
            _ => Ok(None),
        }
    }

    fn read(&self, file: &StoredFile, offset: u64, buffer: &mut [u8]) -> Result<usize, StoreCause> {
        require_name(&file.name)?;
        let open = open_file(&self.path.join(&file.name)).map_err(at_store)?;
        let version = FileVersion(Stamp::of(&open)?.text());
        if file.version.as_ref().is_some_and(|known| *known != version) {
            return Err(StoreCause::Changed);
        }
        Ok(read_up_to_at(&open, buffer, offset)?)
    }
}

impl Store for DirectoryStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            gives: Proof::ReadBack,
            minimum: Proof::ReadBack,
            is_conditional: true,
            is_atomic: true,
            has_ranges: true,
            is_writable: true,
        }
    }

    fn prepare(&self) -> Result<(), StoreError> {
        let prepare = || -> Result<(), StoreCause> {
            create_directory(&self.path).map_err(at_store)?;
            let name = self.temporary.next(self.inode()?);
            let path = self.path.join(OsStr::from_bytes(&name));
            NewFile::create(&path).map_err(at_store)?;
            remove_file(&path).map_err(at_store)?;
            self.remove_abandoned()
        };
        prepare().map_err(self.failed("write to", ""))
    }

    fn put(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let put = self.put_file(upload, observer);
        put.map_err(self.failed("put", upload.name))
    }

    fn verify(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let verify = || -> Result<Stored, StoreCause> {
            require_name(file.name)?;
            let path = self.path.join(file.name);
            let version = self.version(file.name)?;
            let proof = verify_file(&path, file, observer)?;
            Ok(Stored { proof, version })
        };
        verify().map_err(self.failed("verify", file.name))
    }

    fn get(
        &self,
        downloads: &[Download<'_>],
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreError> {
        for (place, download) in downloads.iter().enumerate() {
            let got = self.get_file(download, observer);
            arrived(place, got.map_err(self.failed("get", download.name)));
        }
        Ok(())
    }

    fn read_range(
        &self,
        file: &StoredFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StoreError> {
        let read = self.read(file, offset, buffer);
        read.map_err(self.failed("read", &file.name))
    }

    fn list(&self) -> Result<Vec<StoredFile>, StoreError> {
        self.list_files().map_err(self.failed("list", ""))
    }

    fn stat(&self, name: &str) -> Result<Option<StoredFile>, StoreError> {
        self.stat_file(name).map_err(self.failed("look at", name))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let delete = || {
            require_name(name)?;
            match remove_file(&self.path.join(name)) {
                Err(error) if !error.is_not_found() => Err(at_store(error)),
                _ => Ok(()),
            }
        };
        delete().map_err(self.failed("delete", name))
    }
}

/// Writes a file of the store under a temporary name, durably, and reads it back.
fn write(
    partial: &Path,
    upload: &Upload<'_>,
    observer: &dyn TransferObserver,
) -> Result<(), StoreCause> {
    let mut file = NewFile::create(partial).map_err(at_store)?;
    let sent = read_pieces(upload.path, StoreCause::Sys, observer, |piece| {
        file.append(piece).map_err(at_store)?;
        observer.transferred(piece.len() as u64);
        Ok(())
    })?;
    file.sync().map_err(at_store)?;
    sent.require(upload.size, upload.md5)?;
    read_back(partial, observer)?.require(sent.size, Some(sent.md5))
}

fn verify_file(
    path: &Path,
    file: &Upload<'_>,
    observer: &dyn TransferObserver,
) -> Result<Proof, StoreCause> {
    if file.proof < Proof::ReadBack {
        let found = look_at(path).map_err(at_store)?.size;
        let expected = file.size;
        return match found == expected {
            true => Ok(Proof::Size),
            false => Err(StoreCause::Different(Difference::Size { expected, found })),
        };
    }
    let md5 = match file.md5 {
        Some(md5) => md5,
        None => read_pieces(file.path, StoreCause::Sys, observer, |_| Ok(()))?.md5,
    };
    read_back(path, observer)?.require(file.size, Some(md5))?;
    Ok(Proof::ReadBack)
}

fn read_back(path: &Path, observer: &dyn TransferObserver) -> Result<Digest, StoreCause> {
    drop_cached(&open_file(path).map_err(at_store)?, 0, 0);
    read_pieces(path, at_store, observer, |_| Ok(()))
}

fn place_error(error: SysError) -> StoreCause {
    match error.is_not_found() {
        true => StoreCause::NoPlace,
        false => at_store(error),
    }
}

fn lock_error(error: LockError) -> StoreCause {
    match error {
        LockError::Held { .. } => StoreCause::Exists,
        LockError::Sys(error) => at_store(error),
    }
}
