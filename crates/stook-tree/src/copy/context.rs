//! What all parts of a copy share: how, for whom, and what has come of it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stook_sys::SysError;

use super::fault::{Fault, Side};
use super::options::{Copied, CopyObserver, CopyOptions};
use super::state::PairNode;
use crate::TreeError;
use crate::metadata::SET_ATTRIBUTES;

/// The two trees as the user would write them.
#[derive(Debug, Clone, Default)]
pub(super) struct RootPaths {
    pub(super) source: Vec<u8>,
    pub(super) copy: Vec<u8>,
}

impl RootPaths {
    /// Returns the path of what lies at `below` in one of the trees.
    fn path(&self, side: Side, below: &[u8]) -> Vec<u8> {
        let root = match side {
            Side::Source => &self.source,
            Side::Copy => &self.copy,
        };
        let mut path = root.clone();
        if !root.is_empty() && root.last() != Some(&b'/') && !below.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(below);
        path
    }

    fn error(&self, fault: Fault) -> SysError {
        let (side, operation, source) = match fault {
            Fault::Failed {
                side,
                operation,
                source,
            } => (side, operation, source),
            Fault::Stopped => (Side::Source, "copy", io::ErrorKind::Interrupted.into()),
        };
        SysError {
            operation,
            path: PathBuf::from(OsStr::from_bytes(&self.path(side, b""))),
            source,
        }
    }
}

pub(super) struct CopyContext<'a> {
    pub(super) options: &'a CopyOptions,
    pub(super) observer: &'a dyn CopyObserver,
    pub(super) has_patterns: bool,
    roots: RootPaths,
    is_full: AtomicBool,
    entries: AtomicU64,
    directories: AtomicU64,
    bytes: AtomicU64,
    unchanged: AtomicU64,
}

impl<'a> CopyContext<'a> {
    pub(super) fn new(
        options: &'a CopyOptions,
        observer: &'a dyn CopyObserver,
        roots: RootPaths,
    ) -> Self {
        Self {
            options,
            observer,
            has_patterns: !options.filter.is_empty(),
            roots,
            is_full: AtomicBool::new(false),
            entries: AtomicU64::new(0),
            directories: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            unchanged: AtomicU64::new(0),
        }
    }

    /// Turns what happened to one of the roots into an error of the whole.
    pub(super) fn error(&self, fault: Fault) -> SysError {
        self.roots.error(fault)
    }

    /// Returns true if nothing more is to be begun.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) || self.observer.is_interrupted()
    }

    /// Returns the path of `name` in this directory; with an empty name, that of the directory.
    pub(super) fn path(&self, side: Side, node: &PairNode<'_>, name: &[u8]) -> Vec<u8> {
        self.roots.path(side, &node.path(name))
    }

    pub(super) fn fail(&self, node: &PairNode<'_>, name: &[u8], fault: Fault) {
        let Fault::Failed {
            side,
            operation,
            source,
        } = fault
        else {
            return;
        };
        // Space for attributes is small: it may be used up though there is some for files.
        if operation != SET_ATTRIBUTES && is_no_space(&source) {
            self.is_full.store(true, Ordering::Relaxed);
        }
        self.note_unread(node, name);
        self.observer.failed(&TreeError {
            path: self.path(side, node, name),
            operation,
            source,
        });
    }

    /// What could not be looked into may hold what a pattern is about.
    fn note_unread(&self, node: &PairNode<'_>, name: &[u8]) {
        if self.has_patterns {
            let path = node.path(name);
            self.options.filter.note_unread(&path);
        }
    }

    pub(super) fn skip(&self, node: &PairNode<'_>, name: &[u8], why: &str) {
        self.note_unread(node, name);
        let path = self.path(Side::Source, node, name);
        self.observer.skipped(&path, why);
    }

    pub(super) fn would_copy(&self, node: &PairNode<'_>, name: &[u8]) {
        self.observer
            .would_copy(&self.path(Side::Source, node, name));
    }

    pub(super) fn count(&self, counts: &StepCounts) {
        self.entries.fetch_add(counts.entries, Ordering::Relaxed);
        self.bytes.fetch_add(counts.bytes, Ordering::Relaxed);
        self.unchanged
            .fetch_add(counts.unchanged, Ordering::Relaxed);
        self.observer
            .advanced(counts.entries + counts.unchanged, counts.unreported_bytes);
    }

    pub(super) fn count_directory(&self, is_new: bool) {
        let number = if is_new {
            self.directories.fetch_add(1, Ordering::Relaxed);
            &self.entries
        } else {
            &self.unchanged
        };
        number.fetch_add(1, Ordering::Relaxed);
        self.observer.advanced(1, 0);
    }

    pub(super) fn copied(&self) -> Copied {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Copied {
            entries: of(&self.entries),
            directories: of(&self.directories),
            bytes: of(&self.bytes),
            unchanged: of(&self.unchanged),
            is_full: self.is_full.load(Ordering::Relaxed),
        }
    }
}

fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// What came of some entries that are not directories.
#[derive(Debug, Default)]
pub(super) struct StepCounts {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) unchanged: u64,
    /// Bytes not reported while they were copied.
    pub(super) unreported_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_that_the_user_would_write() {
        let path = |root: &str, below: &str| {
            let roots = RootPaths {
                source: root.into(),
                copy: Vec::new(),
            };
            String::from_utf8(roots.path(Side::Source, below.as_bytes())).unwrap()
        };
        assert_eq!(path("tree", "a/b"), "tree/a/b");
        assert_eq!(path("tree", ""), "tree");
        assert_eq!(path("/", "a"), "/a");
        assert_eq!(path("../", "a"), "../a");
        assert_eq!(path("", "file"), "file");
    }
}
