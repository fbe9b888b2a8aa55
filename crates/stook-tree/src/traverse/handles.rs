//! Directories that are kept open for the tasks below them: so many at a time, and no more.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stook_sys::{Directory, FileId};

use super::node::OpenRef;

/// Most directories kept open; more are opened again from one above them. At most half of what the
/// process may open: the rest is for the tasks themselves, and for the caller.
const MOST_KEPT: usize = 512;

/// Most directories that are open because they were used last; an eighth of that is enough for a chain of any length.
const MOST_RECENT: usize = 64;

/// Workers at most, each with up to two directories open that are not counted here.
const MOST_WORKERS: usize = 128;

/// What tells a directory, and its copy, from all others.
pub(crate) type Identity = (FileId, Option<FileId>);

/// Takes one directory of what is open.
pub(crate) type Side<O> = for<'o> fn(&'o O) -> Option<&'o Directory>;

/// What is open of a directory while it is gone through: the directory, or it and its copy.
pub(crate) trait Handles: Send + Sync + Sized {
    /// Returns the directory whose names are read.
    fn listed(&self) -> &Directory;

    /// Returns how many descriptors are open.
    fn count(&self) -> usize {
        1
    }

    fn identity(&self) -> io::Result<Identity>;

    /// Opens what is below it, without links.
    fn open_beneath(&self, path: &[u8]) -> io::Result<Self>;

    /// Opens what is so many levels above it; None if that is not what is expected.
    fn open_above(&self, levels: usize, expected: &Identity) -> io::Result<Option<Self>>;
}

impl Handles for Directory {
    fn listed(&self) -> &Directory {
        self
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok((self.own_metadata()?.identity(), None))
    }

    fn open_beneath(&self, path: &[u8]) -> io::Result<Self> {
        self.open_beneath(path)
    }

    fn open_above(&self, levels: usize, expected: &Identity) -> io::Result<Option<Self>> {
        self.open_known_above(levels, expected.0)
    }
}

/// Counts the directories that are kept open.
#[derive(Debug)]
pub(crate) struct HandleBudget {
    most: usize,
    /// Directories that may be open because they were used last.
    pub(super) most_recent: usize,
    /// Files that the process may have open besides.
    others: usize,
    kept: AtomicUsize,
}

/// Open directories that are counted for as long as this lives.
#[derive(Debug)]
pub(crate) struct Kept<'b, O> {
    open: O,
    count: usize,
    budget: &'b HandleBudget,
}

impl HandleBudget {
    pub(crate) fn new() -> Self {
        let files = stook_sys::most_open_files();
        let all = MOST_KEPT.min(files / 2);
        let most_recent = MOST_RECENT.min(all / 2);
        Self {
            most: all - most_recent,
            most_recent,
            others: files - all,
            kept: AtomicUsize::new(0),
        }
    }

    /// Returns how many workers there can be, each with so many files and directories open that are not kept.
    pub(crate) fn most_workers(&self, open_files: usize) -> usize {
        MOST_WORKERS.min(self.others / 2 / open_files)
    }

    /// Keeps directories open, or gives them back if that would be too many.
    pub(crate) fn keep<O: Handles>(&self, open: O) -> Result<Kept<'_, O>, O> {
        let count = open.count();
        let more = |kept| (kept + count <= self.most).then_some(kept + count);
        let counted = self
            .kept
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match counted {
            Ok(_) => Ok(Kept {
                open,
                count,
                budget: self,
            }),
            Err(_) => Err(open),
        }
    }
}

impl<O> Deref for Kept<'_, O> {
    type Target = O;

    fn deref(&self) -> &O {
        &self.open
    }
}

impl<O> Drop for Kept<'_, O> {
    fn drop(&mut self) {
        self.budget.kept.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// An open directory: one that is open anyway, or one that was opened for the moment.
pub(crate) enum DirectoryRef<'n, O> {
    Kept(&'n Directory),
    Recent(Arc<O>, Side<O>),
    Opened(Directory),
}

impl<'n, O> DirectoryRef<'n, O> {
    /// Returns one directory of what is open, if there is that one.
    pub(super) fn of(open: OpenRef<'n, O>, side: Side<O>) -> Option<Self> {
        match open {
            OpenRef::Kept(open) => side(open).map(Self::Kept),
            OpenRef::Recent(open) => {
                side(&open)?;
                Some(Self::Recent(open, side))
            }
        }
    }
}

impl<O> Deref for DirectoryRef<'_, O> {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        match self {
            Self::Kept(directory) => directory,
            Self::Recent(open, side) => match side(open) {
                Some(directory) => directory,
                None => unreachable!("it was there when this was made"),
            },
            Self::Opened(directory) => directory,
        }
    }
}
