//! Long paths in pieces that all directories below share, so that a path is put together of few of them.

use std::sync::Arc;

/// Directories in one piece. A tree that is less deep has no pieces.
const DIRECTORIES: usize = 256;

/// The names of some directories in one another, and of those above them.
#[derive(Debug)]
pub(super) struct Stem {
    /// None if it begins at the root.
    above: Option<Arc<Self>>,
    names: Box<[u8]>,
    path_len: usize,
}

impl Drop for Stem {
    /// One after the other, as with a chain of directories.
    fn drop(&mut self) {
        let mut next = self.above.take();
        while let Some(mut stem) = next.and_then(Arc::into_inner) {
            next = stem.above.take();
        }
    }
}

impl Stem {
    /// Returns true if directories below one at this depth have one piece more.
    pub(super) fn begins_below(depth: usize) -> bool {
        depth > 0 && depth.is_multiple_of(DIRECTORIES)
    }

    /// Returns the depth of the last directory that is in the pieces of one at this depth.
    pub(super) fn depth_above(depth: usize) -> usize {
        depth - depth % DIRECTORIES
    }

    pub(super) fn new(above: Option<Arc<Self>>, names: Vec<u8>) -> Self {
        let above_len = above.as_ref().map_or(0, |stem| stem.path_len + 1);
        Self {
            above,
            path_len: above_len + names.len(),
            names: names.into(),
        }
    }

    /// Returns the length of all of it.
    pub(super) fn path_len(&self) -> usize {
        self.path_len
    }

    /// Returns the names of this piece, with slashes between them.
    pub(super) fn names(&self) -> &[u8] {
        &self.names
    }

    /// Returns a piece and all above it.
    pub(super) fn upwards(stem: Option<&Self>) -> impl Iterator<Item = &Self> {
        std::iter::successors(stem, |stem| stem.above.as_deref())
    }
}

/// A path of known length that is put together from its end.
pub(super) struct PathFromEnd {
    bytes: Vec<u8>,
    start: usize,
}

impl PathFromEnd {
    pub(super) fn new(len: usize) -> Self {
        Self {
            bytes: vec![b'/'; len],
            start: len,
        }
    }

    /// Puts names in front of those that are there, with a slash in between.
    pub(super) fn prepend(&mut self, names: &[u8]) {
        if names.is_empty() {
            return;
        }
        let end = self.start - usize::from(self.start < self.bytes.len());
        self.start = end - names.len();
        self.bytes[self.start..end].copy_from_slice(names);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
