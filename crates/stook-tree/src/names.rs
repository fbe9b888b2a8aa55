//! The names of a directory, in memory that a worker uses again from directory to directory.

use std::cell::RefCell;
use std::io;

use stook_sys::{Directory, FileKind, NameBuffer};
use stook_timers::scope;

use crate::Reason;

/// Where a name is in the bytes of [`Names`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamePlace {
    pub(crate) start: u32,
    pub(crate) len: u16,
}

impl NamePlace {
    pub(crate) fn of(self, names: &[u8]) -> &[u8] {
        &names[self.start as usize..][..usize::from(self.len)]
    }
}

/// A name as the directory holds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    pub(crate) place: NamePlace,
    /// Its kind, where the file system returns it with the name.
    pub(crate) kind: Option<FileKind>,
    pub(crate) inode: u64,
}

/// All names of a directory.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) bytes: Vec<u8>,
    pub(crate) all: Vec<Name>,
    buffer: NameBuffer,
}

/// Memory for more bytes of names than this goes back to the allocator.
const MOST_KEPT: usize = 1 << 20;

thread_local! {
    static KEPT: RefCell<Option<Names>> = const { RefCell::new(None) };
}

impl Names {
    /// Calls `work` with the worker's own memory for names.
    pub(crate) fn with<R>(work: impl FnOnce(&mut Self) -> R) -> R {
        let mut names = KEPT.take().unwrap_or_default();
        let result = work(&mut names);
        if names.bytes.capacity() > MOST_KEPT {
            (names.bytes, names.all) = (Vec::new(), Vec::new());
        }
        KEPT.set(Some(names));
        result
    }

    /// Reads all names, in the order of the directory.
    pub(crate) fn read(&mut self, directory: &Directory) -> io::Result<()> {
        self.read_up_to(directory, usize::MAX).map(drop)
    }

    /// Puts the names in the order of their inodes, in which a disk has them, and directories in front; returns how many
    /// they are.
    pub(crate) fn sort_by_inode(&mut self) -> usize {
        let is_directory = |name: &Name| name.kind == Some(FileKind::Directory);
        self.all
            .sort_unstable_by_key(|name| (!is_directory(name), name.inode));
        self.all.partition_point(is_directory)
    }

    /// Reads names that were not read yet, up to about so many; true if there may be more.
    pub(crate) fn read_up_to(&mut self, directory: &Directory, most: usize) -> io::Result<bool> {
        let _scope = scope!("list");
        let Self { bytes, all, buffer } = self;
        bytes.clear();
        all.clear();
        let mut is_too_large = false;
        let result = directory.names_up_to(buffer, most, |entry| {
            let (Ok(start), Ok(len)) =
                (u32::try_from(bytes.len()), u16::try_from(entry.name.len()))
            else {
                is_too_large = true;
                return;
            };
            bytes.extend_from_slice(entry.name);
            all.push(Name {
                place: NamePlace { start, len },
                kind: entry.kind,
                inode: entry.inode,
            });
        });
        if is_too_large {
            return result.and(Err(Reason::TooManyNames.into()));
        }
        result
    }
}
