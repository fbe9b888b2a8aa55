//! Directories on their way: which are open, and how to reach those that are not.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use stook_sys::Directory;

use super::errand::Side;
use super::making::Facts;
use crate::chain::{Link, way_to};
use crate::held::{Held, Holder, Reached};

/// Down to this depth directories are held open while there is work below them.
const ALL_HELD: usize = 128;
/// Below it only every so many: any other is reached from one of them in one system call, or two.
const HELD_STRIDE: usize = 64;

/// A directory and its copy.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) source: Directory,
    /// None in a dry run, where there is none.
    pub(super) copy: Option<Directory>,
}

impl Pair {
    fn of(&self, side: Side) -> Option<&Directory> {
        match side {
            Side::Source => Some(&self.source),
            Side::Copy => self.copy.as_ref(),
        }
    }
}

/// A directory that is being gone through. The last one to leave it ends it.
#[derive(Debug)]
pub(super) struct Node<'h> {
    /// None for the root.
    parent: Option<Arc<Self>>,
    /// Its name in there; of the root it is empty.
    pub(super) name: Box<[u8]>,
    depth: usize,
    open: OnceLock<Open<'h>>,
    pub(super) facts: Facts,
    is_used: AtomicBool,
    is_partial: AtomicBool,
}

#[derive(Debug)]
enum Open<'h> {
    Root(Pair),
    Held(Held<'h, Pair>),
}

impl Open<'_> {
    fn pair(&self) -> &Pair {
        match self {
            Self::Root(pair) => pair,
            Self::Held(held) => held,
        }
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

impl<'h> Node<'h> {
    pub(super) fn root(pair: Pair, facts: Facts) -> Self {
        Self {
            open: OnceLock::from(Open::Root(pair)),
            ..Self::new(None, Box::default(), 0, facts)
        }
    }

    /// Returns a directory below `parent`, not held open yet.
    pub(super) fn below(parent: &Arc<Self>, name: Box<[u8]>, facts: Facts) -> Self {
        Self::new(Some(Arc::clone(parent)), name, parent.depth + 1, facts)
    }

    fn new(parent: Option<Arc<Self>>, name: Box<[u8]>, depth: usize, facts: Facts) -> Self {
        Self {
            parent,
            name,
            depth,
            open: OnceLock::new(),
            facts,
            is_used: AtomicBool::new(false),
            is_partial: AtomicBool::new(false),
        }
    }

    /// Holds it open, or gives it back if that would be too many.
    pub(super) fn hold(&self, pair: Pair, holder: &'h Holder) -> Result<(), Pair> {
        let directories = 1 + usize::from(pair.copy.is_some());
        let held = holder.hold_together(pair, directories)?;
        // Nobody else does it: the one task that has it open decides.
        let _ = self.open.set(Open::Held(held));
        Ok(())
    }

    /// Returns true if what is below it is the faster reached for it being held open.
    pub(super) fn is_worth_holding(&self) -> bool {
        self.depth <= ALL_HELD || self.depth.is_multiple_of(HELD_STRIDE)
    }

    pub(super) fn held(&self) -> Option<&Pair> {
        self.open.get().map(Open::pair)
    }

    /// Returns the root of the two trees.
    pub(super) fn root_pair(&self) -> Option<&Pair> {
        let (root, _) = way_to(self, b"", |_| false);
        root.held()
    }

    /// Returns the nearest open directory, and the way from there to `name` in this one; None if there is no copy.
    pub(super) fn nearest(&self, side: Side, name: &[u8]) -> Option<(&Directory, Vec<u8>)> {
        let (base, way) = way_to(self, name, |node| node.open.get().is_some());
        let directory = base.held()?.of(side)?;
        Some((directory, way))
    }

    /// Returns the directory, opened again if it is not held open; None if there is no copy.
    pub(super) fn reach(&self, side: Side) -> io::Result<Option<Reached<'_>>> {
        if let Some(pair) = self.held() {
            return Ok(pair.of(side).map(Reached::Held));
        }
        let nearest = self
            .parent
            .as_ref()
            .and_then(|parent| parent.nearest(side, &self.name));
        let opened = nearest.map(|(base, way)| base.open_beneath(&way).map(Reached::Opened));
        opened.transpose()
    }

    /// Returns the path of `name` in this directory below the root; with an empty name, that of the directory.
    pub(super) fn way_below_root(&self, name: &[u8]) -> Vec<u8> {
        let mut way = way_to(self, name, |_| false).1;
        if name.is_empty() {
            way.pop();
        }
        way
    }

    pub(super) fn parent(&self) -> Option<&Self> {
        self.parent.as_deref()
    }

    /// Closes it, and returns the one above.
    pub(super) fn close(self) -> Option<Arc<Self>> {
        drop(self.open);
        self.parent
    }

    /// Notes that something in it is copied, or was before.
    pub(super) fn use_it(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Notes that the work on it ended early, so that it must not look done.
    pub(super) fn leave_partial(&self) {
        self.is_partial.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_partial(&self) -> bool {
        self.is_partial.load(Ordering::Relaxed)
    }
}
