//! What is removed and what is kept, where not everything goes.

use stook_sys::Directory;

use crate::Filter;

/// Something that is about to be removed, and is no directory.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Where it is.
    pub directory: &'a Directory,
    /// Its name in there.
    pub name: &'a [u8],
    /// Its path below the tree; the name of a tree that is no directory.
    pub path: &'a [u8],
}

/// What becomes of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is removed.
    Remove,
    /// It is removed under the name that the policy has given it in the same directory.
    RemoveAs(Vec<u8>),
    /// It is kept, and so are the directories above it.
    Keep,
    /// It is not there any more.
    AlreadyGone,
}

/// Decides what is removed, on several threads at once. Paths are those below the tree, which is the empty path itself.
pub trait RemovalPolicy: Sync {
    /// Returns true if nothing at or below this directory is removed, so that it is not even opened.
    fn prunes(&self, _path: &[u8]) -> bool {
        false
    }

    /// Returns false if this directory is kept with all that is in it.
    fn enters(&self, _directory: &Directory, _path: &[u8]) -> bool {
        true
    }

    /// Returns false if what is at this path is kept in any case.
    fn selects(&self, _path: &[u8]) -> bool {
        true
    }

    /// Called for a directory that is kept because it is an archive; returns false if that is a failure.
    fn keeps_archive(&self, _path: &[u8]) -> bool {
        false
    }

    /// Decides about a candidate, which is then removed at once, or kept.
    fn decide(&self, candidate: &Candidate<'_>) -> Decision;

    /// Returns true if this directory may be removed, which was empty when it was opened.
    fn removes_empty(&self, _directory: &Directory, _path: &[u8]) -> bool {
        true
    }

    /// Returns true if a directory may be removed in which nothing is left.
    fn removes(&self, path: &[u8]) -> bool;
}

impl RemovalPolicy for Filter {
    fn prunes(&self, path: &[u8]) -> bool {
        self.prunes(path)
    }

    fn selects(&self, path: &[u8]) -> bool {
        self.selects(path)
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Decision {
        if self.selects(candidate.path) {
            Decision::Remove
        } else {
            Decision::Keep
        }
    }

    fn removes(&self, path: &[u8]) -> bool {
        self.selects(path)
    }
}
