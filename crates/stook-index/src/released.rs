//! What was released from a tree, while an update goes through that tree.
//!
//! A release says that the tree could have the file where it was. Once something else than a directory has the place of a
//! directory above it, the tree could not: the release has ended, and the name counts as any other that is gone. Such
//! places are noted while many threads go through the tree. That is in memory only: the release itself is kept until the
//! deletion of its name is recorded, which an update may not do, or not reach.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::IndexError;
use crate::id_set::IdSet;
use crate::index::Index;
use crate::name::{NameHash, NameHasher};
use crate::releases::Release;
use crate::types::RowId;

/// Rows that are released from a tree, and the directories that they were in.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// Rows that are as their releases say: newest of their names, or not.
    rows: IdSet,
    /// Rows with a release that names another member.
    void: Vec<RowId>,
    /// The directory of each row that is not in the root, ascending by row.
    directory_of: Vec<(i64, u32)>,
    directories: Directories,
    /// True if a directory was replaced: else there is no need to look at them.
    has_replaced: AtomicBool,
}

impl Released {
    /// # Cost
    /// 16 bytes a release, and about 50 for each directory above one.
    pub(crate) fn load(index: &Index, hasher: &NameHasher) -> Result<Self, IndexError> {
        let mut released = Self::default();
        let mut rows = Vec::new();
        index.releases(|release| match release {
            Release::Held(row, name) => {
                rows.push(row.0);
                let directory = released.directories.number(parent(name), hasher);
                let place = directory.map(|directory| (row.0, directory));
                released.directory_of.extend(place);
            }
            Release::Void(row) => released.void.push(row),
        })?;
        released.rows = IdSet::new(rows);
        Ok(released)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.ends().is_none()
    }

    /// Returns true if a row has a release that names its member, ended or not.
    pub(crate) fn contains(&self, row: i64) -> bool {
        self.rows.contains(row)
    }

    /// Returns true if a row is released, and the tree could still have it.
    ///
    /// # Cost
    /// A step for each directory above it once a directory was replaced.
    pub(crate) fn holds(&self, row: i64) -> bool {
        self.rows.contains(row) && !self.has_ended(row)
    }

    fn has_ended(&self, row: i64) -> bool {
        if !self.has_replaced.load(Ordering::Relaxed) {
            return false;
        }
        let place = self
            .directory_of
            .binary_search_by_key(&row, |place| place.0);
        place.is_ok_and(|at| self.directories.is_replaced(self.directory_of[at].1))
    }

    /// The tree has something else than a directory at this path: releases below it end.
    pub(crate) fn end_below(&self, path: &[u8], hasher: &NameHasher) {
        if self.directories.replace(path, hasher) {
            self.has_replaced.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the rows that are released, ascending, and then those with a release of another member.
    pub(crate) fn all(&self) -> impl Iterator<Item = RowId> + '_ {
        let rows = self.rows.iter().map(RowId);
        rows.chain(self.void.iter().copied())
    }
}

/// All directories above what is released, but for the root.
#[derive(Debug, Default)]
struct Directories {
    numbers: HashMap<NameHash, u32>,
    /// Each comes behind the one that it is in.
    list: Vec<ReleasedDirectory>,
}

#[derive(Debug)]
struct ReleasedDirectory {
    parent: Option<u32>,
    is_replaced: AtomicBool,
}

impl Directories {
    /// Returns the number of a directory, which is given with those above it that have none; `None` for the root.
    ///
    /// Not recursive, and no further up than to one that is known: a path may have 30,000 components.
    fn number(&mut self, path: &[u8], hasher: &NameHasher) -> Option<u32> {
        let (mut unknown, mut path, mut known) = (Vec::new(), path, None);
        while known.is_none() && !path.is_empty() {
            let hash = hasher.hash(path);
            known = self.numbers.get(&hash).copied();
            if known.is_none() {
                unknown.push(hash);
            }
            path = parent(path);
        }
        for hash in unknown.into_iter().rev() {
            let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
            self.list.push(ReleasedDirectory {
                parent: known,
                is_replaced: AtomicBool::new(false),
            });
            self.numbers.insert(hash, number);
            known = Some(number);
        }
        known
    }

    /// Notes that a directory was replaced; returns false if it is none of these.
    fn replace(&self, path: &[u8], hasher: &NameHasher) -> bool {
        if self.list.is_empty() {
            return false;
        }
        let Some(&number) = self.numbers.get(&hasher.hash(path)) else {
            return false;
        };
        self.list[number as usize]
            .is_replaced
            .store(true, Ordering::Relaxed);
        true
    }

    /// Returns true if a directory, or one above it, was replaced.
    fn is_replaced(&self, number: u32) -> bool {
        let get = |number: u32| &self.list[number as usize];
        let mut path =
            std::iter::successors(Some(get(number)), |directory| directory.parent.map(get));
        path.any(|directory| directory.is_replaced.load(Ordering::Relaxed))
    }
}

fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    &path[..slash.unwrap_or(0)]
}
