//! Whether what a tool made is all there: a tool that fails in silence is not a fast one.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_sys::{Context, Directory, FileKind, NameBuffer, display_path};
use stook_tree::{Detail, Entry, Listing, TreeError, Visitor, WalkOptions, walk};

use crate::error::BenchError;

/// Files and bytes of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    /// Regular files.
    pub(super) files: u64,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// Counts the files of a tree.
///
/// # Errors
/// The first failure of the walk.
pub(super) fn count(tree: &Path) -> Result<Count, BenchError> {
    let counter = Counter::default();
    let options = WalkOptions {
        detail: Detail::Facts,
        sorted: false,
        ..WalkOptions::default()
    };
    walk(&Directory::open(tree)?, &options, &counter);
    let failed = counter.failed.into_inner();
    if let Some(error) = failed.unwrap_or_else(std::sync::PoisonError::into_inner) {
        let path = tree.join(std::ffi::OsStr::from_bytes(&error.path));
        return Err(Err::<(), _>(error.source)
            .context(error.operation, path)
            .expect_err("it is one")
            .into());
    }
    Ok(Count {
        files: counter.files.into_inner(),
        bytes: counter.bytes.into_inner(),
    })
}

#[derive(Default)]
struct Counter {
    files: AtomicU64,
    bytes: AtomicU64,
    failed: Mutex<Option<TreeError>>,
}

impl stook_pool::Observer for Counter {
    type Failure = TreeError;

    fn failed(&self, error: &TreeError) {
        let mut failed = self
            .failed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.get_or_insert_with(|| error.clone());
    }
}

impl Visitor for Counter {
    fn directory(&self, listing: Listing) {
        let all = listing.entries.iter().map(Entry::metadata);
        let files = all.filter(|facts| facts.kind == FileKind::File);
        let (number, bytes) = files.fold((0, 0), |(number, bytes), facts| {
            (number + 1, bytes + facts.size)
        });
        self.files.fetch_add(number, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Returns the error of a tree that does not hold what it must.
pub(super) fn differs(tree: &Path, found: Count, expected: Count) -> BenchError {
    BenchError::Refused {
        what: format!(
            "`{}` holds {} files of {} bytes, and not {} of {}",
            display_path(tree),
            found.files,
            found.bytes,
            expected.files,
            expected.bytes
        ),
        hint: None,
    }
}

/// Returns the files of a folder of plain files, such as an archive.
///
/// # Errors
/// If it cannot be read.
pub(super) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let mut files = Vec::new();
    let names = Directory::open(folder)?.names(&mut NameBuffer::default(), |found| {
        files.push(folder.join(std::ffi::OsStr::from_bytes(found.name)));
    });
    names.context("list", folder)?;
    Ok(files)
}
