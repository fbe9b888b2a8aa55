//! Directories that stay open for the tasks below them: so many at a time, and no more.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use stook_sys::Directory;

/// Most directories held open; more are opened again from one above them. At most half of what the
/// process may open: the rest is for the tasks themselves, and for the caller.
const MOST_HELD: usize = 512;

/// Workers at most, each with up to two directories open that it does not hold.
const MOST_WORKERS: usize = 128;

/// Counts directories that are held open.
#[derive(Debug)]
pub(crate) struct Holder {
    most: usize,
    /// Files that the process may have open besides.
    others: usize,
    held: AtomicUsize,
}

/// A directory that is held open, or several of them, and counted.
#[derive(Debug)]
pub(crate) struct Held<'h, T = Directory> {
    opened: T,
    directories: usize,
    holder: &'h Holder,
}

impl Holder {
    pub(crate) fn new() -> Self {
        let files = stook_sys::most_open_files();
        let most = MOST_HELD.min(files / 2);
        Self {
            most,
            others: files - most,
            held: AtomicUsize::new(0),
        }
    }

    /// Returns how many workers there can be, each with so many files and directories open that are not held.
    pub(crate) fn most_workers(&self, open_files: usize) -> usize {
        MOST_WORKERS.min(self.others / 2 / open_files)
    }

    /// Holds a directory open, or gives it back if that would be too many.
    pub(crate) fn hold(&self, directory: Directory) -> Result<Held<'_>, Directory> {
        self.hold_together(directory, 1)
    }

    /// Holds so many directories open, or gives them back if that would be too many.
    pub(crate) fn hold_together<T>(&self, opened: T, directories: usize) -> Result<Held<'_, T>, T> {
        let more = |held| (held + directories <= self.most).then_some(held + directories);
        let counted = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match counted {
            Ok(_) => Ok(Held {
                opened,
                directories,
                holder: self,
            }),
            Err(_) => Err(opened),
        }
    }
}

/// An open directory: one that is held, or one that was opened for the moment.
pub(crate) enum Reached<'n> {
    Held(&'n Directory),
    Opened(Directory),
}

impl Deref for Reached<'_> {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        match self {
            Self::Held(directory) => directory,
            Self::Opened(directory) => directory,
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.opened
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.holder
            .held
            .fetch_sub(self.directories, Ordering::Relaxed);
    }
}
