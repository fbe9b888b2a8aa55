//! What the workers of a round hand one another: directories, parts of large ones, and entries that must wait.

use std::sync::Arc;

use stook_sys::FileKind;

use super::node::Node;
use crate::names::{Name, Names};

/// Entries that one task deals with; a directory of more is split.
pub(super) const CHUNK: usize = 128;

pub(super) enum Task<'h> {
    Directory(Later<'h>),
    /// A directory of which not all names have been read.
    Rest(Arc<Node<'h>>),
    Chunk(Chunk<'h>),
    Entry(Later<'h>),
}

/// Some of the names of a directory.
pub(super) struct Chunk<'h> {
    pub(super) node: Arc<Node<'h>>,
    pub(super) names: Arc<Shared>,
    pub(super) first: usize,
}

pub(super) struct Shared {
    pub(super) bytes: Vec<u8>,
    pub(super) names: Vec<Name>,
}

/// What a worker found that is for other tasks.
#[derive(Default)]
pub(super) struct Found<'h> {
    pub(super) directories: Vec<Box<[u8]>>,
    pub(super) later: Vec<Later<'h>>,
}

impl<'h> Found<'h> {
    /// Returns tasks; the last one is taken first, so that the first directory comes first.
    pub(super) fn into_tasks(self, node: &Arc<Node<'h>>) -> Vec<Task<'h>> {
        let directories = self.directories.into_iter().rev().map(|name| {
            Task::Directory(Later {
                node: Arc::clone(node),
                name,
            })
        });
        let later = self.later.into_iter().map(Task::Entry);
        directories.chain(later).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.later.is_empty()
    }
}

/// An entry that is dealt with later, by any worker.
#[derive(Debug)]
pub(super) struct Later<'h> {
    pub(super) node: Arc<Node<'h>>,
    pub(super) name: Box<[u8]>,
}

/// Puts the names in the order of their inodes, in which a disk has them; directories go to the front, and
/// their names into `directories`. Returns how many they are.
pub(super) fn sort_out(names: &mut Names, directories: &mut Vec<Box<[u8]>>) -> usize {
    let is_directory = |name: &Name| name.kind == Some(FileKind::Directory);
    names
        .all
        .sort_unstable_by_key(|name| (!is_directory(name), name.inode));
    let others = names.all.partition_point(is_directory);
    let found = names.all[..others].iter();
    directories.extend(found.map(|name| name.place.of(&names.bytes).into()));
    others
}
