//! The names of a directory, in memory that a worker uses again from directory to directory.

use std::cell::RefCell;
use std::io;

use stook_sys::{Directory, FileKind, NameBuffer};
use stook_timers::scope;

use super::listing::NamePlace;

/// A name as the directory holds it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) place: NamePlace,
    /// Its kind, where the file system tells it with the name.
    pub(super) kind: Option<FileKind>,
    pub(super) inode: u64,
}

/// All names of a directory.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) bytes: Vec<u8>,
    pub(super) all: Vec<Name>,
    buffer: NameBuffer,
}

/// Memory for more bytes of names than this goes back to the allocator.
const MOST_KEPT: usize = 1 << 20;

thread_local! {
    static KEPT: RefCell<Option<Names>> = const { RefCell::new(None) };
}

impl Names {
    /// Calls `work` with the worker's own memory for names.
    pub(super) fn with<R>(work: impl FnOnce(&mut Self) -> R) -> R {
        let mut names = KEPT.take().unwrap_or_default();
        let result = work(&mut names);
        if names.bytes.capacity() > MOST_KEPT {
            (names.bytes, names.all) = (Vec::new(), Vec::new());
        }
        KEPT.set(Some(names));
        result
    }

    /// Reads all names, in the order of the directory.
    pub(super) fn read(&mut self, directory: &Directory) -> io::Result<()> {
        let _scope = scope!("list");
        let Self { bytes, all, buffer } = self;
        bytes.clear();
        all.clear();
        let mut is_too_large = false;
        let result = directory.names(buffer, |entry| {
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
            return result.and(Err(io::Error::other(
                "more than 4 GiB of names in one directory",
            )));
        }
        result
    }
}
