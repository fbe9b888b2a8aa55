//! What the workers of a traversal hand one another: directories, parts of large ones, and entries that must wait.

use std::sync::Arc;

use super::node::Node;
use crate::names::Name;

/// Something to be done by any worker; `B` is what is collected of the names of one directory.
pub(crate) enum Task<'t, O, D, B> {
    /// The root of this number, not opened yet.
    Root(usize),
    /// A directory that waits to be entered.
    Directory(Waiting<'t, O, D>),
    /// A directory that is kept open, and of which not all names have been read.
    Rest(Arc<Node<'t, O, D>>),
    /// Some of the names of a large directory.
    Chunk(Chunk<'t, O, D, B>),
    /// An entry that was put off.
    Entry(Waiting<'t, O, D>),
}

/// A name in a directory that waits for a worker.
#[derive(Debug)]
pub(crate) struct Waiting<'t, O, D> {
    pub(crate) node: Arc<Node<'t, O, D>>,
    pub(crate) name: Box<[u8]>,
    /// How often it was tried before.
    pub(crate) attempts: u32,
}

impl<'t, O, D> Waiting<'t, O, D> {
    pub(crate) fn new(node: &Arc<Node<'t, O, D>>, name: &[u8]) -> Self {
        Self {
            node: Arc::clone(node),
            name: name.into(),
            attempts: 0,
        }
    }
}

/// So many names from `first` on.
pub(crate) struct Chunk<'t, O, D, B> {
    pub(crate) node: Arc<Node<'t, O, D>>,
    pub(crate) batch: Arc<SharedBatch<B>>,
    pub(crate) first: usize,
    pub(crate) len: usize,
}

/// Names of a directory that several tasks go through.
pub(crate) struct SharedBatch<B> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) names: Vec<Name>,
    pub(crate) collected: B,
}

/// What a worker found in a directory that is for other tasks.
pub(crate) struct Found<'t, O, D> {
    directories: Vec<(u64, Box<[u8]>)>,
    /// Entries that are put off.
    pub(crate) later: Vec<Waiting<'t, O, D>>,
}

impl<'t, O, D> Found<'t, O, D> {
    pub(crate) fn new() -> Self {
        Self {
            directories: Vec::new(),
            later: Vec::new(),
        }
    }

    /// Adds a directory, with its inode number if that is known.
    pub(crate) fn add_directory(&mut self, inode: u64, name: &[u8]) {
        self.directories.push((inode, name.into()));
    }

    pub(crate) fn len(&self) -> usize {
        self.directories.len() + self.later.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns tasks. The last one is taken first, so that the directory of the lowest inode comes first: on a disk,
    /// directories made together lie together.
    pub(crate) fn into_tasks<B>(
        mut self,
        node: &Arc<Node<'t, O, D>>,
    ) -> impl Iterator<Item = Task<'t, O, D, B>> {
        self.directories
            .sort_by_key(|(inode, _)| std::cmp::Reverse(*inode));
        let directories = self.directories.into_iter().map(|(_, name)| {
            Task::Directory(Waiting {
                node: Arc::clone(node),
                name,
                attempts: 0,
            })
        });
        directories.chain(self.later.into_iter().map(Task::Entry))
    }
}
