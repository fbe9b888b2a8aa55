//! Directories that are kept open for the tasks below them: so many at a time, and no more.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use stook_sys::Directory;

/// Most directories kept open; more are opened again from one above them. At most half of what the
/// process may open: the rest is for the tasks themselves, and for the caller.
const MOST_KEPT: usize = 512;

/// Workers at most, each with up to two directories open that are not counted here.
const MOST_WORKERS: usize = 128;

/// What is open of a directory while it is gone through: the directory, or it and its copy.
pub(crate) trait Handles: Send + Sync {
    /// Returns the directory whose names are read.
    fn listed(&self) -> &Directory;

    /// Returns how many descriptors are open.
    fn count(&self) -> usize {
        1
    }
}

impl Handles for Directory {
    fn listed(&self) -> &Directory {
        self
    }
}

/// Counts the directories that are kept open.
#[derive(Debug)]
pub(crate) struct HandleBudget {
    most: usize,
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
        let most = MOST_KEPT.min(files / 2);
        Self {
            most,
            others: files - most,
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

/// An open directory: one that is kept open, or one that was opened for the moment.
pub(crate) enum DirectoryRef<'n> {
    Kept(&'n Directory),
    Opened(Directory),
}

impl Deref for DirectoryRef<'_> {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        match self {
            Self::Kept(directory) => directory,
            Self::Opened(directory) => directory,
        }
    }
}
