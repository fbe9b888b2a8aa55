//! How an index is read where SQLite cannot just lock the file and undo what a crashed writer left.
//!
//! ```text
//!   locks work, no journal            the file itself
//!   journal, folder can be written    SQLite rolls it back, then the file itself
//!   journal, folder cannot            index and journal are copied privately; the copy is rolled back
//!   locks do not work, no journal     the file itself, never locked, with a stamp before and after
//! ```
//! A writer holds the lock of the archive. Where SQLite can lock, it does as well, against zstash; where it cannot, it writes without.
//!
//! A copy is made of what stayed the same from its first byte to its last: index and journal have one stamp before and
//! after. Without locks the caller asks [`Index::require_unchanged`](crate::Index::require_unchanged) when it is done.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stook_sys::{
    Context, Directory, Stamp, TemporaryNames, append_at, create_new_file, exists, open_file,
    read_up_to_at, write_all_at,
};

use crate::error::IndexError;
use crate::place::{JOURNALS, remove_database, with_suffix};

/// Bytes that are copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Where the change counter stands in a database, which every transaction raises.
const CHANGE_COUNTER: u64 = 24;

/// What an index is read from.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// The file, under SQLite's locks.
    Locked,
    /// A copy of it that nobody else knows.
    Copied(Arc<PrivateCopy>),
    /// The file, without locks: as long as it has this state.
    Unlocked(FileState),
    /// The file, without locks of SQLite, for the one who holds the lock of the archive.
    Exclusive,
}

impl Access {
    /// Returns the name under which SQLite opens the index at `path`.
    pub(crate) fn name(&self, path: &Path) -> PathBuf {
        match self {
            Self::Locked => path.to_owned(),
            Self::Copied(copy) => copy.index.clone(),
            Self::Unlocked(_) => uri(path, "immutable=1"),
            Self::Exclusive => exclusive_name(path),
        }
    }

    /// Returns the file that is read of the index at `path`.
    pub(crate) fn file<'a>(&'a self, path: &'a Path) -> &'a Path {
        match self {
            Self::Locked | Self::Unlocked(_) | Self::Exclusive => path,
            Self::Copied(copy) => &copy.index,
        }
    }

    /// Returns true if that name is a URI.
    pub(crate) fn is_uri(&self) -> bool {
        matches!(self, Self::Unlocked(_) | Self::Exclusive)
    }

    /// Requires that what was read without locks has not changed meanwhile.
    pub(crate) fn require_unchanged(&self, path: &Path) -> Result<(), IndexError> {
        match self {
            Self::Unlocked(before) if FileState::of(path)? != *before => Err(IndexError::Changed {
                path: path.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// What tells that a database was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    stamp: Stamp,
    change_counter: [u8; 4],
}

impl FileState {
    pub(crate) fn of(path: &Path) -> Result<Self, IndexError> {
        let file = open_file(path)?;
        let mut change_counter = [0; 4];
        read_up_to_at(&file, &mut change_counter, CHANGE_COUNTER).context("read", path)?;
        Ok(Self {
            stamp: Stamp::of(&file).context("look at", path)?,
            change_counter,
        })
    }
}

/// Returns true if a rollback journal lies beside the database, or may.
pub(crate) fn has_journal(path: &Path) -> bool {
    !matches!(exists(&with_suffix(path, JOURNALS[0])), Ok(None))
}

/// Returns true if the file system has no locks for this file: SQLite calls that busy, like a file that is locked.
///
/// The descriptor stays open: closing it would drop all locks that this process has on the file. So this is asked only once
/// SQLite has waited for a lock in vain.
pub(crate) fn has_no_locks(path: &Path) -> bool {
    let Ok(file) = open_file(path) else {
        return false;
    };
    let has_locks = stook_sys::has_locks(&file);
    std::mem::forget(file);
    !has_locks
}

/// A copy of an index and of its journal in a folder of its own, which goes with it.
#[derive(Debug)]
pub(crate) struct PrivateCopy {
    folder: PathBuf,
    index: PathBuf,
}

impl PrivateCopy {
    /// Copies the index at `path` into a new folder in `scratch`.
    ///
    /// # Errors
    /// `Changed` if index or journal changed meanwhile; `System` if they cannot be copied.
    pub(crate) fn make(path: &Path, scratch: &Path) -> Result<Self, IndexError> {
        let parent = Directory::open(scratch)?;
        let inode = parent.own_metadata().context("look at", scratch)?;
        let name = TemporaryNames::new("index").next(inode.identity().1);
        let folder = scratch.join(std::ffi::OsStr::from_bytes(&name));
        parent
            .create_directory(&name, 0o700)
            .context("create", &folder)?;
        let copy = Self {
            index: folder.join("index.db"),
            folder,
        };
        let files = [
            (path.to_owned(), copy.index.clone()),
            (
                with_suffix(path, JOURNALS[0]),
                with_suffix(&copy.index, JOURNALS[0]),
            ),
        ];
        let opened = files
            .iter()
            .map(|(from, _)| open_file(from))
            .collect::<Result<Vec<File>, _>>()?;
        let stamps = || -> Result<Vec<Stamp>, IndexError> {
            let look = |(file, (from, _)): (&File, &(PathBuf, PathBuf))| {
                Stamp::of(file).context("look at", from)
            };
            let stamps = opened.iter().zip(&files).map(look);
            Ok(stamps.collect::<Result<_, _>>()?)
        };
        let before = stamps()?;
        for (file, (from, to)) in opened.iter().zip(&files) {
            let copy = create_new_file(to)?;
            copy_bytes(file, &copy).context("copy", from)?;
        }
        if stamps()? != before || !has_journal(path) {
            return Err(IndexError::Changed {
                path: path.to_owned(),
            });
        }
        Ok(copy)
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        // Nobody misses what is left of a copy in a folder for such.
        let _ = remove_database(&self.index);
        if let Some((parent, name)) = self.folder.parent().zip(self.folder.file_name())
            && let Ok(parent) = Directory::open(parent)
        {
            let _ = parent.remove_directory(name.as_bytes());
        }
    }
}

fn copy_bytes(from: &File, to: &File) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut offset = 0;
    loop {
        buffer.clear();
        let count = append_at(from, &mut buffer, COPY_BYTES, offset)?;
        write_all_at(to, &buffer, offset)?;
        offset += count as u64;
        if count < COPY_BYTES {
            return Ok(());
        }
    }
}

/// Names a file for SQLite as one that it need not lock, because nobody else opens it.
pub(crate) fn exclusive_name(path: &Path) -> PathBuf {
    uri(path, "nolock=1")
}

/// Names a file for SQLite with a property: that it never changes, so that it is neither locked nor looked for a journal of; or
/// that it needs no locks.
fn uri(path: &Path, property: &str) -> PathBuf {
    use std::fmt::Write;
    // Two slashes, so that none of the path begins the name of a machine.
    let mut uri = String::from(if path.is_absolute() {
        "file://"
    } else {
        "file:"
    });
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.push('?');
    uri.push_str(property);
    uri.into()
}
