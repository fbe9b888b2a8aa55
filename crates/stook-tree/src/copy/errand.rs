//! What all parts of a round share: how, for whom, and what has come of it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stook_sys::SysError;

use super::node::Node;
use super::{Copied, CopyObserver, CopyOptions};
use crate::TreeError;

/// One of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Copy,
}

/// Why an entry is not done.
#[derive(Debug)]
pub(super) enum Fault {
    Failed {
        side: Side,
        /// What was tried, as a verb.
        operation: &'static str,
        source: io::Error,
    },
    /// The user does not want to wait for it.
    Stopped,
}

/// Adds side and operation to a bare error.
pub(super) trait At<T> {
    fn at(self, side: Side, operation: &'static str) -> Result<T, Fault>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, side: Side, operation: &'static str) -> Result<T, Fault> {
        self.map_err(|source| Fault::new(side, operation, source))
    }
}

impl Fault {
    pub(super) fn new(side: Side, operation: &'static str, source: io::Error) -> Self {
        Self::Failed {
            side,
            operation,
            source,
        }
    }

    /// Returns a fault of an entry of the tree.
    pub(super) fn because(operation: &'static str, why: &'static str) -> Self {
        Self::new(Side::Source, operation, io::Error::other(why))
    }
}

/// The two trees as the user would write them.
#[derive(Debug, Clone, Default)]
pub(super) struct Roots {
    pub(super) source: Vec<u8>,
    pub(super) copy: Vec<u8>,
}

impl Roots {
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

pub(super) struct Errand<'a> {
    pub(super) options: &'a CopyOptions,
    pub(super) observer: &'a dyn CopyObserver,
    pub(super) has_patterns: bool,
    roots: Roots,
    is_full: AtomicBool,
    entries: AtomicU64,
    directories: AtomicU64,
    bytes: AtomicU64,
    unchanged: AtomicU64,
}

impl<'a> Errand<'a> {
    pub(super) fn new(
        options: &'a CopyOptions,
        observer: &'a dyn CopyObserver,
        roots: Roots,
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
        self.is_full.load(Ordering::Relaxed) || self.observer.is_stopped()
    }

    /// Returns the path of `name` in this directory; with an empty name, that of the directory.
    pub(super) fn path(&self, side: Side, node: &Node<'_>, name: &[u8]) -> Vec<u8> {
        self.roots.path(side, &node.way_below_root(name))
    }

    pub(super) fn fail(&self, node: &Node<'_>, name: &[u8], fault: Fault) {
        let Fault::Failed {
            side,
            operation,
            source,
        } = fault
        else {
            return;
        };
        if operation != ATTRIBUTES && is_no_space(&source) {
            self.is_full.store(true, Ordering::Relaxed);
        }
        self.note_unread(node, name);
        self.observer.failed(TreeError {
            path: self.path(side, node, name),
            operation,
            source,
        });
    }

    /// What could not be looked into may hold what a pattern is about.
    fn note_unread(&self, node: &Node<'_>, name: &[u8]) {
        if self.has_patterns {
            let path = node.way_below_root(name);
            self.options.filter.note_unread(&path);
        }
    }

    pub(super) fn skip(&self, node: &Node<'_>, name: &[u8], why: &str) {
        self.note_unread(node, name);
        let path = self.path(Side::Source, node, name);
        self.observer.skipped(&path, why);
    }

    pub(super) fn would_copy(&self, node: &Node<'_>, name: &[u8]) {
        self.observer
            .would_copy(&self.path(Side::Source, node, name));
    }

    pub(super) fn count(&self, tally: &Tally) {
        self.entries.fetch_add(tally.entries, Ordering::Relaxed);
        self.bytes.fetch_add(tally.bytes, Ordering::Relaxed);
        self.unchanged.fetch_add(tally.unchanged, Ordering::Relaxed);
        self.observer
            .advanced(tally.entries + tally.unchanged, tally.untold_bytes);
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

/// The operation that may fail for want of room though there is some: for attributes it is small.
pub(super) const ATTRIBUTES: &str = "set the attributes of";

pub(super) const READ_ATTRIBUTES: &str = "read the attributes of";

fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// What came of some entries that are not directories.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) unchanged: u64,
    /// Bytes that the observer has not been told of while they were copied.
    pub(super) untold_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_that_the_user_would_write() {
        let path = |root: &str, below: &str| {
            let roots = Roots {
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
