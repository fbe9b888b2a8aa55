//! How to walk, and the visitor of what is found.

use stook_pool::{Jobs, Observer};
use stook_sys::{FileId, FileKind, Links};

use super::listing::Listing;
use crate::TreeError;

/// How to walk.
#[derive(Debug, Clone)]
pub struct WalkOptions {
    /// How many directories are looked at together.
    pub jobs: Jobs,
    /// What to do with symbolic links within the tree.
    pub links: Links,
    /// Directories to leave out, by identity: however they are spelled, they are found.
    pub leave_out: Vec<FileId>,
    /// How much to find out.
    pub detail: Detail,
    /// Sort the entries of each listing by name; else they come in no particular order.
    pub sorted: bool,
    /// Return a directory that may not be read, as one that was not read, besides reporting the failure.
    pub unreadable: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self {
            jobs: Jobs::Adaptive,
            links: Links::Refuse,
            leave_out: Vec::new(),
            detail: Detail::LinkTargets,
            sorted: true,
            unreadable: false,
        }
    }
}

/// How much a walk finds out about each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Its kind, which most file systems return with the name; all other facts may be zero.
    Kinds,
    /// All its facts.
    Facts,
    /// Also whether a symbolic link leads to a directory.
    LinkTargets,
}

/// Receives what a walk finds, on several threads at once.
pub trait Visitor: Observer<Failure = TreeError> {
    /// Returns how many bytes of a path, from its beginning, are looked at: longer paths, but those of failures and of
    /// what is left out, may be cut off there. All paths of a very deep tree are much to put together.
    fn longest_path(&self) -> usize {
        usize::MAX
    }
    /// Returns true if the directory need not be looked into.
    fn prunes(&self, _path: &[u8]) -> bool {
        false
    }
    /// Returns true to leave out an entry that is not a directory. It is then not passed on, and not examined where the
    /// file system returns kinds with names.
    fn skips(&self, _directory: &[u8], _name: &[u8], _kind: FileKind) -> bool {
        false
    }
    /// Takes the path of a directory that is left out by its identity.
    fn left_out(&self, _path: &[u8]) {}
    /// Takes one listed directory.
    fn directory(&self, listing: Listing);
}
