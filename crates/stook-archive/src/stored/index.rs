//! Copies of indices in a cache folder.
//!
//! ```text
//!   CACHE/index-STORE-VERSION/index.db      STORE, VERSION: MD5s of the name of the store and of the version
//! ```
//! A copy never changes: another version goes to another folder, and the folders of older ones are removed. Who has one of
//! them open reads on.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_md5::md5_many;
use stook_store::{Download, Store, StoreCause, StoreError, StoredFile, TransferObserver};
use stook_sys::{
    Context, Directory, NameBuffer, TemporaryNames, create_directory, exists, open_file,
    read_up_to_at, remove_file,
};

use crate::ArchiveError;
use crate::folder::INDEX;

/// How every index begins.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";

/// How often an index is fetched that is replaced meanwhile.
const ATTEMPTS: u32 = 3;

/// A copy of an index.
pub(super) struct FetchedIndex {
    /// The folder that it is in.
    pub(super) folder: PathBuf,
    /// Bytes that were fetched for it now.
    pub(super) bytes: u64,
}

/// Returns a copy of the index of a store, which has the version that the store has now.
///
/// # Errors
/// `NotAnArchive` if the store has none; `Store` if it cannot be fetched; `Sys` if the cache cannot be written.
pub(super) fn fetch_index(
    store: &dyn Store,
    cache: &Path,
    observer: &dyn TransferObserver,
) -> Result<FetchedIndex, ArchiveError> {
    let mut bytes = 0;
    for _ in 0..ATTEMPTS {
        let found = require_stat(store)?;
        let folder = cache.join(folder_name(store, &found));
        if found.version.is_some() && exists(&folder.join(INDEX))?.is_some() {
            return Ok(FetchedIndex { folder, bytes });
        }
        create_directory(cache)?;
        let temporary = TemporaryNames::new("partial").next(0);
        let partial = cache.join(OsStr::from_bytes(&temporary));
        let fetched = get(store, &found, &partial, observer);
        bytes += found.size;
        // It may have been replaced between the look and the copy.
        let is_same = fetched.is_ok() && require_stat(store)?.version == found.version;
        match fetched {
            Ok(()) if !is_database(&partial)? => {
                remove_file(&partial)?;
                return Err(failed(store, not_an_index()));
            }
            Ok(()) if is_same => {
                create_directory(&folder)?;
                stook_sys::rename(&partial, &folder.join(INDEX))?;
                remove_older(store, cache, &folder);
                return Ok(FetchedIndex { folder, bytes });
            }
            Ok(()) => remove_file(&partial)?,
            Err(error) if is_replaced(&error.cause) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(failed(store, StoreCause::Changed))
}

fn require_stat(store: &dyn Store) -> Result<StoredFile, ArchiveError> {
    let found = store.stat(INDEX)?;
    found.ok_or_else(|| ArchiveError::NotAnArchive {
        path: store.name().into(),
    })
}

fn get(
    store: &dyn Store,
    file: &StoredFile,
    path: &Path,
    observer: &dyn TransferObserver,
) -> Result<(), StoreError> {
    let download = Download {
        name: INDEX,
        path,
        size: Some(file.size),
    };
    let mut result = Ok(());
    store.get(&[download], observer, &mut |_, got| result = got)?;
    result
}

/// Returns true if a file begins as an index does.
fn is_database(path: &Path) -> Result<bool, ArchiveError> {
    let mut begin = [0; DATABASE.len()];
    let file = open_file(path)?;
    let read = read_up_to_at(&file, &mut begin, 0).context("read", path)?;
    Ok(begin[..read] == *DATABASE)
}

/// What a server says that has a page of its own for everything.
fn not_an_index() -> StoreCause {
    StoreCause::Answer {
        program: "the store".to_owned(),
        text: "a file that is no index".to_owned(),
    }
}

/// An index that was replaced has another size, mostly.
fn is_replaced(cause: &StoreCause) -> bool {
    matches!(cause, StoreCause::Changed | StoreCause::Different(_))
}

fn failed(store: &dyn Store, cause: StoreCause) -> ArchiveError {
    ArchiveError::Store(StoreError {
        operation: "get",
        file: INDEX.to_owned(),
        store: store.name().to_owned(),
        cause,
    })
}

/// Returns what the folders of all versions begin with.
fn prefix(store: &dyn Store) -> String {
    format!("index-{}-", hexadecimal(store.name()))
}

fn folder_name(store: &dyn Store, file: &StoredFile) -> String {
    let version = file.version.as_ref().map_or("", |version| &version.0);
    let version = format!("{} {version}", file.size);
    format!("{}{}", prefix(store), hexadecimal(&version))
}

fn hexadecimal(text: &str) -> String {
    let md5s = md5_many(&[text.as_bytes()]);
    let bytes = md5s.iter().flatten();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// What cannot be removed stays for the next time: it is a cache.
fn remove_older(store: &dyn Store, cache: &Path, folder: &Path) {
    let Ok(directory) = Directory::open(cache) else {
        return;
    };
    let (prefix, mut older) = (prefix(store), Vec::new());
    let listed = directory.names(&mut NameBuffer::default(), |found| {
        if found.name.starts_with(prefix.as_bytes()) {
            older.push(found.name.to_vec());
        }
    });
    if listed.is_err() {
        return;
    }
    for name in older {
        let path = cache.join(OsStr::from_bytes(&name));
        if path != folder && remove_file(&path.join(INDEX)).is_ok() {
            let _ = directory.remove_directory(&name);
        }
    }
}
