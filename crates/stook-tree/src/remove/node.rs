//! Directories on their way out: which are open, and how to reach those that are not.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_sys::Directory;

use crate::chain::{Link, way_to};
use crate::held::{Held, Holder, Reached};

/// Down to this depth directories are held open while there is work below them.
const ALL_HELD: usize = 256;
/// Below it only every so many: any other is reached from one of them in one system call, or two.
const HELD_STRIDE: usize = 64;

/// A directory that is being emptied. The last one to leave it removes it.
#[derive(Debug)]
pub(super) struct Node<'r> {
    /// None for the directory that holds the tree.
    pub(super) parent: Option<Arc<Self>>,
    /// Its name in there. Of the holding directory: what to write in front of the tree's name.
    pub(super) name: Box<[u8]>,
    depth: usize,
    open: Option<Open<'r>>,
    /// How often it was emptied before, and was not empty then.
    pub(super) attempts: u32,
    stays: AtomicBool,
}

#[derive(Debug)]
enum Open<'r> {
    Holding(Directory),
    Held(Held<'r>),
}

impl Deref for Open<'_> {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        match self {
            Self::Holding(directory) => directory,
            Self::Held(held) => held,
        }
    }
}

impl<'r> Node<'r> {
    /// Returns the directory that holds a tree; `prefix` is what to write in front of its names.
    pub(super) fn holding(directory: Directory, prefix: &[u8]) -> Self {
        Self {
            parent: None,
            name: prefix.into(),
            depth: 0,
            open: Some(Open::Holding(directory)),
            attempts: 0,
            stays: AtomicBool::new(false),
        }
    }

    /// Returns a directory below `parent`, not held open yet.
    pub(super) fn below(parent: Arc<Self>, name: Box<[u8]>, attempts: u32) -> Self {
        Self {
            depth: parent.depth + 1,
            parent: Some(parent),
            name,
            open: None,
            attempts,
            stays: AtomicBool::new(false),
        }
    }

    /// Holds it open if there is work below it that is the faster for it; else closes it.
    pub(super) fn hold(&mut self, directory: Directory, holder: &'r Holder) {
        if self.depth <= ALL_HELD || self.depth.is_multiple_of(HELD_STRIDE) {
            self.open = holder.hold(directory).ok().map(Open::Held);
        }
    }

    /// Closes it, and tells which one it is.
    pub(super) fn close(self) -> (Option<Arc<Self>>, Box<[u8]>) {
        drop(self.open);
        (self.parent, self.name)
    }

    /// Notes that something in it stays, so that it cannot be removed.
    pub(super) fn keep(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    pub(super) fn stays(&self) -> bool {
        self.stays.load(Ordering::Relaxed)
    }

    pub(super) fn is_holding(&self) -> bool {
        self.parent.is_none()
    }

    /// Returns the nearest open directory, and the way from there to `name` in this one.
    pub(super) fn nearest(&self, name: &[u8]) -> (&Directory, Vec<u8>) {
        let (base, way) = way_to(self, name, |node| node.open.is_some());
        match &base.open {
            Some(open) => (open, way),
            None => unreachable!("the holding directory is open"),
        }
    }

    /// Returns the directory, opened again if it is not held open.
    pub(super) fn reach(&self) -> io::Result<Reached<'_>> {
        match (&self.open, &self.parent) {
            (Some(open), _) => Ok(Reached::Held(open)),
            (None, Some(parent)) => {
                let (base, path) = parent.nearest(&self.name);
                base.open_beneath(&path).map(Reached::Opened)
            }
            (None, None) => unreachable!("the holding directory is open"),
        }
    }

    /// Returns the path of `name` in this directory, as the user would write it.
    pub(super) fn path(&self, name: &[u8]) -> Vec<u8> {
        let (holding, path) = way_to(self, name, Self::is_holding);
        [&holding.name, path.as_slice()].concat()
    }

    /// Returns the path of `name` below the tree; empty for the tree itself.
    pub(super) fn path_in_tree(&self, name: &[u8]) -> Vec<u8> {
        if self.is_holding() {
            return Vec::new();
        }
        let is_root = |node: &Self| node.parent.as_deref().is_some_and(Self::is_holding);
        way_to(self, name, is_root).1
    }
}

impl Link for Node<'_> {
    fn above(&self) -> Option<&Self> {
        self.parent.as_deref()
    }

    fn name(&self) -> &[u8] {
        &self.name
    }
}
