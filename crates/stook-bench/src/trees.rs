//! Whole trees that a bench makes, counts and removes: the engines of `stook-tree`, with what fails kept.

use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Mutex;
use std::{ffi::OsString, path::PathBuf};

use stook_sys::{Context, Directory, FileKind, NameBuffer, SysError, into_inner, lock};
use stook_tree::{
    CopyObserver, Detail, Entry, Listing, RemoveObserver, TreeError, Visitor, WalkOptions, walk,
};

use crate::Observer;
use crate::error::BenchError;

/// What an operation on a tree failed on, in no order.
#[derive(Default)]
pub(crate) struct Failures<'a> {
    observer: Option<&'a dyn Observer>,
    all: Mutex<Vec<TreeError>>,
}

impl<'a> Failures<'a> {
    /// Returns none yet, for an operation that ends early when the user wants an end.
    pub(crate) fn of(observer: &'a dyn Observer) -> Self {
        Self {
            observer: Some(observer),
            all: Mutex::default(),
        }
    }

    /// Returns all of them.
    pub(crate) fn into_all(self) -> Vec<TreeError> {
        into_inner(self.all)
    }

    /// Returns nothing if nothing failed.
    ///
    /// # Errors
    /// [`BenchError::Sys`] with the only failure, [`BenchError::Refused`] with the first of several. Paths are put below
    /// `tree`, unless they are whole already.
    pub(crate) fn none(self, tree: &Path) -> Result<(), BenchError> {
        let all = self.into_all();
        let others = all.len().saturating_sub(1);
        let Some(first) = all.into_iter().next() else {
            return Ok(());
        };
        let first = SysError {
            operation: first.operation,
            path: tree.join(PathBuf::from(OsString::from_vec(first.path))),
            source: first.source,
        };
        match others {
            0 => Err(first.into()),
            others => Err(BenchError::refused(format!(
                "{first}; {others} more failures"
            ))),
        }
    }
}

impl stook_pool::Observer for Failures<'_> {
    type Failure = TreeError;

    fn failed(&self, error: &TreeError) {
        lock(&self.all).push(error.clone());
    }

    fn is_interrupted(&self) -> bool {
        self.observer.is_some_and(Observer::is_stopped)
    }
}

impl CopyObserver for Failures<'_> {}

impl RemoveObserver for Failures<'_> {}

/// Hands every directory of a tree to a function, which several threads call, until the observer wants an end.
///
/// # Errors
/// As [`Failures::none`], if a directory cannot be read, [`BenchError::Interrupted`] if it ended early.
pub(crate) fn each_directory(
    tree: &Path,
    detail: Detail,
    observer: &dyn Observer,
    take: impl Fn(&Listing) + Sync,
) -> Result<(), BenchError> {
    let options = WalkOptions {
        detail,
        sorted: false,
        ..WalkOptions::default()
    };
    let each = Each {
        take,
        failures: Failures::of(observer),
    };
    walk(&Directory::open(tree)?, &options, &each);
    if observer.is_stopped() {
        return Err(BenchError::Interrupted);
    }
    each.failures.none(tree)
}

struct Each<'a, F> {
    take: F,
    failures: Failures<'a>,
}

impl<F: Fn(&Listing) + Sync> stook_pool::Observer for Each<'_, F> {
    type Failure = TreeError;

    fn failed(&self, error: &TreeError) {
        self.failures.failed(error);
    }

    fn is_interrupted(&self) -> bool {
        self.failures.is_interrupted()
    }
}

impl<F: Fn(&Listing) + Sync> Visitor for Each<'_, F> {
    fn directory(&self, listing: Listing) {
        (self.take)(&listing);
    }
}

/// Returns the names in one directory, in no order.
///
/// # Errors
/// [`BenchError::Sys`] if it cannot be read.
pub(crate) fn names_in(directory: &Path) -> Result<Vec<OsString>, BenchError> {
    let mut names = Vec::new();
    let visited = Directory::open(directory)?.names(&mut NameBuffer::default(), |found| {
        names.push(OsString::from_vec(found.name.to_vec()));
    });
    visited.context("read", directory)?;
    Ok(names)
}

/// Returns the names in one directory that are numbers, such as those of processes in `/proc`.
///
/// # Errors
/// As [`names_in`].
pub(crate) fn numbers_in(directory: &Path) -> Result<Vec<u32>, BenchError> {
    let names = names_in(directory)?.into_iter();
    Ok(names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect())
}

/// Files and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Regular files.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// Counts the files of a tree.
///
/// # Errors
/// As [`each_directory`].
pub(crate) fn count(tree: &Path, observer: &dyn Observer) -> Result<Count, BenchError> {
    let total: Mutex<Count> = Mutex::default();
    each_directory(tree, Detail::Facts, observer, |listing| {
        let mut own = Count::default();
        let all = listing.entries.iter().map(Entry::metadata);
        for file in all.filter(|facts| facts.kind == FileKind::File) {
            own.files += 1;
            own.bytes += file.size;
        }
        let mut total = lock(&total);
        total.files += own.files;
        total.bytes += own.bytes;
    })?;
    Ok(into_inner(total))
}
