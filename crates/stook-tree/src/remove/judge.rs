//! Who decides what goes, where not everything does.

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

/// What a [`Judge`] says of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes.
    Goes,
    /// It goes, under the name that the judge has given it in the same directory.
    GoesAs(Vec<u8>),
    /// It stays, and so do the directories above it.
    Stays,
    /// It is not there any more.
    WasGone,
}

/// Decides what goes, on several threads at once. Paths are those below the tree, which is the empty path itself.
pub trait Judge: Sync {
    /// Returns true if nothing at or below this directory goes, so that it is not even opened.
    fn prunes(&self, _path: &[u8]) -> bool {
        false
    }

    /// Returns false if this directory stays with all that is in it.
    fn enters(&self, _directory: &Directory, _path: &[u8]) -> bool {
        true
    }

    /// Returns false if what is at this path stays in any case.
    fn selects(&self, _path: &[u8]) -> bool {
        true
    }

    /// Called for a directory that stays because it is an archive; returns false if that is a failure.
    fn keeps_archive(&self, _path: &[u8]) -> bool {
        false
    }

    /// Says what is to become of a candidate, which goes at once if it goes.
    fn judge(&self, candidate: &Candidate<'_>) -> Verdict;

    /// Returns true if this directory may go, in which nothing was when it was opened.
    fn releases_empty(&self, _directory: &Directory, _path: &[u8]) -> bool {
        true
    }

    /// Returns true if a directory may go in which nothing is left.
    fn releases(&self, path: &[u8]) -> bool;
}

impl Judge for Filter {
    fn prunes(&self, path: &[u8]) -> bool {
        self.prunes(path)
    }

    fn selects(&self, path: &[u8]) -> bool {
        self.selects(path)
    }

    fn judge(&self, candidate: &Candidate<'_>) -> Verdict {
        if self.selects(candidate.path) {
            Verdict::Goes
        } else {
            Verdict::Stays
        }
    }

    fn releases(&self, path: &[u8]) -> bool {
        self.selects(path)
    }
}
