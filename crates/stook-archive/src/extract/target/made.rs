//! Directories that are made for something in them, before their own member comes.
//!
//! One that has a member is private until the end: the member may say that others have no business there, and what is in
//! it is there first. One without a member is like any new directory.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use stook_index::{RowId, RowRef, Selection};

use crate::mutex::lock;
use crate::safe_path::safe_path;

/// Names of members without content, directories among them, by their hashes, with the last row of each.
#[derive(Debug, Default)]
pub(in crate::extract) struct NamesWithoutContent(Mutex<HashMap<u64, RowId>>);

impl NamesWithoutContent {
    /// Adds the name of a row that may be that of a directory.
    pub(in crate::extract) fn add(&self, row: &RowRef<'_>) {
        if row.md5.is_none()
            && let Ok(path) = safe_path(row.name)
        {
            let mut names = lock(&self.0);
            let last = names.entry(hash_of(&path)).or_insert(row.id);
            *last = row.id.max(*last);
        }
    }

    /// Keeps the names whose members will come: others were deleted, or are something else now.
    pub(in crate::extract) fn keep_selected(&self, selection: &Selection) {
        lock(&self.0).retain(|_, row| selection.contains(*row));
    }
}

/// By the hashes of their paths: all paths that lead to a long one would take the square of its length.
#[derive(Debug)]
pub(super) struct MadeDirectories {
    expected: HashSet<u64>,
    made: Mutex<HashSet<u64>>,
}

impl MadeDirectories {
    pub(super) fn new(expected: NamesWithoutContent) -> Self {
        Self {
            expected: stook_sys::into_inner(expected.0).into_keys().collect(),
            made: Mutex::default(),
        }
    }

    /// Returns the mode to make a directory with.
    pub(super) fn mode(&self, path: &PathHash) -> u32 {
        if self.expected.contains(&path.0) {
            0o700
        } else {
            0o777
        }
    }

    pub(super) fn insert(&self, path: &PathHash) {
        lock(&self.made).insert(path.0);
    }

    /// The member of a directory has come; returns true if the directory was made before.
    pub(super) fn take(&self, path: &[u8]) -> bool {
        lock(&self.made).remove(&hash_of(path))
    }
}

/// The hash of a path that is gone down, name by name or at once: FNV-1a, which takes byte after byte.
pub(super) struct PathHash(u64);

impl PathHash {
    const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;

    /// Begins with these names, each with its slash.
    pub(super) fn of_beginning(names: &[u8]) -> Self {
        let mut hash = Self(Self::EMPTY);
        hash.add(names);
        hash
    }

    pub(super) fn down(&mut self, component: &[u8]) {
        self.add(component);
        self.add(b"/");
    }

    fn add(&mut self, bytes: &[u8]) {
        let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(Self::PRIME);
        self.0 = bytes.iter().fold(self.0, step);
    }
}

/// Returns the hash of a path without empty components.
fn hash_of(path: &[u8]) -> u64 {
    let mut hash = PathHash::of_beginning(b"");
    hash.down(path);
    hash.0
}
