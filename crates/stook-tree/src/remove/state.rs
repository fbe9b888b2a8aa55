//! What is known of a directory while it is emptied, and its path.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_sys::Directory;

use crate::traverse::{DirectoryRef, Node};

/// A directory that is being emptied, below the one that holds the tree, which is the root.
pub(super) type RemoveNode<'t> = Node<'t, Directory, State>;

#[derive(Debug, Default)]
pub(super) struct State {
    /// How often it was emptied before, and was not empty then.
    pub(super) attempts: u32,
    is_kept: AtomicBool,
}

impl State {
    pub(super) fn new(attempts: u32) -> Self {
        Self {
            attempts,
            is_kept: AtomicBool::new(false),
        }
    }

    /// Notes that something in it stays, so that it cannot be removed.
    pub(super) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }
}

/// Returns the directory, opened again if it is not kept open.
pub(super) fn reach<'n>(node: &'n RemoveNode<'_>) -> io::Result<DirectoryRef<'n, Directory>> {
    match node.reach(|directory| Some(directory))? {
        Some(directory) => Ok(directory),
        None => unreachable!("there is only one side"),
    }
}

/// Returns the path of `name` in a directory, as the user would write it.
pub(super) fn written_path(node: &RemoveNode<'_>, name: &[u8]) -> Vec<u8> {
    // The name of the root is what the user wrote in front of the tree's name.
    [node.to_root().name(), &node.path(name)].concat()
}

/// Returns the path of `name` below the tree; empty for the tree itself.
pub(super) fn path_in_tree(node: &RemoveNode<'_>, name: &[u8]) -> Vec<u8> {
    if node.is_root() {
        return Vec::new();
    }
    let mut path = node.path(name);
    // The tree is the first name.
    let slash = path.iter().position(|&byte| byte == b'/');
    path.drain(..slash.map_or(path.len(), |slash| slash + 1));
    path
}
