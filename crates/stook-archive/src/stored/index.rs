//! Copies of indices in a cache folder.
//!
//! ```text
//!   CACHE/index-STORE-VERSION/index.db      STORE, VERSION: MD5s of the name of the store and of the version
//! ```
//! A copy never changes: another version goes to another folder, and the folders of older ones are removed. Who has one of
//! them open reads on.
//!
//! A copy is of one state: the version is the same before and after, no journal lies beside the index, and SQLite finds that its
//! pages fit together. If they do not, it is fetched once more; then it is damaged where it lies, and is taken as it is.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_index::{Interrupt, Structure};
use stook_md5::md5_many;
use stook_store::{Download, Store, StoreCause, StoreError, StoredFile, TransferObserver};
use stook_sys::{
    Context, Directory, NameBuffer, TemporaryNames, create_directory, exists, open_file,
    read_up_to_at, remove_file,
};

use crate::ArchiveError;
use crate::archive::structure_of_copy;
use crate::folder::{INDEX, JOURNAL};

/// How every index begins.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";

/// How often an index is fetched that is replaced meanwhile.
const ATTEMPTS: u32 = 3;

/// A copy of an index.
#[derive(Debug)]
pub(super) struct FetchedIndex {
    /// How messages name the archive.
    pub(super) name: PathBuf,
    /// The folder that it is in.
    pub(super) folder: PathBuf,
    /// Bytes that were fetched for it now.
    pub(super) bytes: u64,
}

/// Returns a copy of the index of a store, which has the version that the store has now.
///
/// # Errors
/// `NotAnArchive` if the store has none; `BeingWritten`; `Store` if it cannot be fetched; `Sys` if the cache cannot be
/// written.
pub(super) fn fetch_index(
    store: &dyn Store,
    cache: &Path,
    interrupt: &Interrupt,
    observer: &dyn TransferObserver,
) -> Result<FetchedIndex, ArchiveError> {
    let (mut bytes, mut was_damaged) = (0, false);
    let name = || PathBuf::from(store.name());
    for _ in 0..ATTEMPTS {
        let found = require_stat(store)?;
        let folder = cache.join(folder_name(store, &found));
        if found.version.is_some() && exists(&folder.join(INDEX))?.is_some() {
            return Ok(FetchedIndex {
                name: name(),
                folder,
                bytes,
            });
        }
        create_directory(cache)?;
        let temporary = TemporaryNames::new("partial").next(0);
        let partial = cache.join(OsStr::from_bytes(&temporary));
        let fetched = get(store, &found, &partial, observer);
        bytes += found.size;
        match fetched {
            Ok(()) if !is_database(&partial)? => {
                remove_file(&partial)?;
                return Err(failed(store, not_an_index()));
            }
            Ok(()) => {}
            Err(error) if is_replaced(&error.cause) => continue,
            Err(error) => return Err(error.into()),
        }
        match state_of(store, &found, &partial, interrupt) {
            Ok(CopyState::Whole) => {}
            // Damaged twice, it is so where it lies.
            Ok(CopyState::Damaged) if was_damaged => {}
            Ok(state) => {
                remove_file(&partial)?;
                was_damaged = state == CopyState::Damaged;
                continue;
            }
            Err(error) => {
                // There is an error already.
                let _ = remove_file(&partial);
                return Err(error);
            }
        }
        create_directory(&folder)?;
        stook_sys::rename(&partial, &folder.join(INDEX))?;
        remove_older(store, cache, &folder);
        return Ok(FetchedIndex {
            name: name(),
            folder,
            bytes,
        });
    }
    Err(failed(store, StoreCause::Changed))
}

/// What was fetched of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyState {
    /// One state of it.
    Whole,
    /// It was replaced between the look and the copy.
    Replaced,
    /// Its pages do not fit together.
    Damaged,
}

/// Returns what a copy is, after it was fetched.
///
/// # Errors
/// `BeingWritten` if a journal lies beside the index; `Store` if that cannot be seen.
fn state_of(
    store: &dyn Store,
    before: &StoredFile,
    copy: &Path,
    interrupt: &Interrupt,
) -> Result<CopyState, ArchiveError> {
    // An empty one is left by programs that do not remove it.
    let journal = match store.stat(JOURNAL) {
        // Some servers say so of whatever is not there.
        Err(error) if matches!(error.cause, StoreCause::Denied) => None,
        looked => looked?,
    };
    if journal.is_some_and(|journal| journal.size > 0) {
        let path = store.name().into();
        return Err(ArchiveError::BeingWritten { path });
    }
    // After the look for a journal: a writer that has ended since then has left another version.
    if require_stat(store)?.version != before.version {
        return Ok(CopyState::Replaced);
    }
    Ok(match structure_of_copy(copy, interrupt) {
        Structure::Sound => CopyState::Whole,
        Structure::Damaged => CopyState::Damaged,
    })
}

/// Returns the copy of the index of a store that was fetched last, whatever the store has now.
///
/// # Errors
/// `NotFetched` if there is none.
pub(super) fn newest_copy(store: &dyn Store, cache: &Path) -> Result<FetchedIndex, ArchiveError> {
    let name = PathBuf::from(store.name());
    let fetched_at = |folder: &PathBuf| {
        let found = exists(&folder.join(INDEX)).ok().flatten();
        found.map(|found| found.mtime)
    };
    let copies = copies_of(store, cache).into_iter();
    let newest = copies
        .filter_map(|folder| Some((fetched_at(&folder)?, folder)))
        .max();
    match newest {
        Some((_, folder)) => Ok(FetchedIndex {
            name,
            folder,
            bytes: 0,
        }),
        None => Err(ArchiveError::NotFetched { path: name }),
    }
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
    for path in copies_of(store, cache) {
        if path != folder && remove_file(&path.join(INDEX)).is_ok() {
            let name = path.file_name().unwrap_or_default();
            let _ = directory.remove_directory(name.as_bytes());
        }
    }
}

/// Returns the folders of all copies of the index of a store; none if the cache cannot be looked at.
fn copies_of(store: &dyn Store, cache: &Path) -> Vec<PathBuf> {
    let (prefix, mut copies) = (prefix(store), Vec::new());
    let Ok(directory) = Directory::open(cache) else {
        return copies;
    };
    let listed = directory.names(&mut NameBuffer::default(), |found| {
        if found.name.starts_with(prefix.as_bytes()) {
            copies.push(cache.join(OsStr::from_bytes(found.name)));
        }
    });
    match listed {
        Ok(()) => copies,
        Err(_) => Vec::new(),
    }
}
