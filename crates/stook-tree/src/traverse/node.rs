//! Directories that know the one above them: which are open, and the way from there to any other.

use std::io;
use std::sync::{Arc, OnceLock};

use stook_sys::Directory;

use super::handles::{DirectoryRef, HandleBudget, Handles, Kept};

/// Descriptors that one chain of directories keeps open before it skips some.
const ALL_KEPT: usize = 256;
/// Below that depth only every so many: any other is reached from one of them in one system call, or two.
const KEPT_STRIDE: usize = 64;

/// A directory of the tree, from when it is entered until all below it is done.
#[derive(Debug)]
pub(crate) struct Node<'t, O, D> {
    /// None for the root.
    parent: Option<Arc<Self>>,
    name: Box<[u8]>,
    depth: usize,
    open: OnceLock<Open<'t, O>>,
    /// What the operation knows of it.
    pub(crate) data: D,
}

#[derive(Debug)]
enum Open<'t, O> {
    Root(O),
    Kept(Kept<'t, O>),
}

impl<O, D> Drop for Node<'_, O, D> {
    /// One after the other: a chain may be longer than the stack is deep.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.parent.take();
        }
    }
}

impl<'t, O, D> Node<'t, O, D> {
    /// Returns a root, open for as long as it lives; its name is part of no path.
    pub(crate) fn root(open: O, name: &[u8], data: D) -> Self {
        Self {
            parent: None,
            name: name.into(),
            depth: 0,
            open: OnceLock::from(Open::Root(open)),
            data,
        }
    }

    /// Returns a directory below `parent` that is not kept open yet.
    pub(crate) fn below(parent: &Arc<Self>, name: Box<[u8]>, data: D) -> Self {
        Self {
            parent: Some(Arc::clone(parent)),
            name,
            depth: parent.depth + 1,
            open: OnceLock::new(),
            data,
        }
    }

    pub(crate) fn parent(&self) -> Option<&Self> {
        self.parent.as_deref()
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(crate) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// Returns how many directories are above it, the root among them.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Closes it; returns the one above, and its name there.
    pub(crate) fn close(mut self) -> (Option<Arc<Self>>, Box<[u8]>) {
        (self.parent.take(), std::mem::take(&mut self.name))
    }

    /// Returns what is open of it, if it is kept open.
    pub(crate) fn open(&self) -> Option<&O> {
        Some(match self.open.get()? {
            Open::Root(open) => open,
            Open::Kept(kept) => kept,
        })
    }

    /// Returns the first directory from this one upwards that is a base, or the root, and the path from there to `name` in
    /// this one. With an empty name it is the path of this one.
    ///
    /// # Cost
    /// As many steps as the path has components, twice.
    pub(crate) fn path_from(
        &self,
        name: &[u8],
        is_base: impl Fn(&Self) -> bool,
    ) -> (&Self, Vec<u8>) {
        let mut len = name.len();
        let mut base = self;
        while let Some(parent) = base.parent().filter(|_| !is_base(base)) {
            len += base.name.len() + usize::from(len > 0);
            base = parent;
        }
        let mut path = vec![b'/'; len];
        let mut end = len - name.len();
        path[end..].copy_from_slice(name);
        let mut node = self;
        while let Some(parent) = node.parent().filter(|_| !std::ptr::eq(node, base)) {
            end -= usize::from(end < len);
            let start = end - node.name.len();
            path[start..end].copy_from_slice(&node.name);
            end = start;
            node = parent;
        }
        (base, path)
    }

    /// Returns the path of `name` in this directory below the root; with an empty name, that of the directory.
    pub(crate) fn path(&self, name: &[u8]) -> Vec<u8> {
        self.path_from(name, |_| false).1
    }

    /// Returns what is open of the nearest directory that is, from this one upwards, and the path from there to `name` in
    /// this one.
    pub(crate) fn nearest(&self, name: &[u8]) -> (&O, Vec<u8>) {
        let (base, path) = self.path_from(name, |node| node.open.get().is_some());
        match base.open() {
            Some(open) => (open, path),
            None => unreachable!("the root is open"),
        }
    }

    /// Returns the directory that `side` takes of what is open, opened again if this one is not kept open; None if
    /// `side` returns none.
    pub(crate) fn reach(
        &self,
        side: impl for<'o> Fn(&'o O) -> Option<&'o Directory>,
    ) -> io::Result<Option<DirectoryRef<'_>>> {
        if let Some(open) = self.open() {
            return Ok(side(open).map(DirectoryRef::Kept));
        }
        let (base, path) = self.nearest(b"");
        let opened = side(base).map(|base| base.open_beneath(&path).map(DirectoryRef::Opened));
        opened.transpose()
    }
}

impl<'t, O: Handles, D> Node<'t, O, D> {
    /// Keeps it open, or gives it back if that would be too many.
    pub(crate) fn keep_open(&self, open: O, budget: &'t HandleBudget) -> Result<(), O> {
        let kept = budget.keep(open)?;
        // Nobody else does it: the one task that has it open decides.
        let _ = self.open.set(Open::Kept(kept));
        Ok(())
    }

    /// As [`Self::keep_open`], if what is below it is the faster reached for it.
    pub(crate) fn keep_open_if_useful(&self, open: O, budget: &'t HandleBudget) -> Result<(), O> {
        let is_useful =
            self.depth * open.count() <= ALL_KEPT || self.depth.is_multiple_of(KEPT_STRIDE);
        if is_useful {
            self.keep_open(open, budget)
        } else {
            Err(open)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = Node<'static, (), ()>;

    #[test]
    fn a_path_begins_at_the_nearest_base_or_at_the_root() {
        let root = Arc::new(Plain::root((), b"not in the path", ()));
        let middle = Arc::new(Plain::below(&root, (*b"middle").into(), ()));
        let start = Plain::below(&middle, (*b"start").into(), ());
        let from = |base: &'static [u8], name: &[u8]| {
            let (found, path) = start.path_from(name, |node| node.name() == base);
            (found.name().to_vec(), String::from_utf8(path).unwrap())
        };
        assert_eq!(from(b"start", b"name"), (b"start".into(), "name".into()));
        assert_eq!(from(b"start", b""), (b"start".into(), String::new()));
        let below_middle = (b"middle".to_vec(), "start/name".to_owned());
        assert_eq!(from(b"middle", b"name"), below_middle);
        assert_eq!(from(b"other", b"name").1, "middle/start/name");
        assert_eq!(from(b"other", b"").1, "middle/start");
        assert_eq!(start.path(b"name"), b"middle/start/name");
        assert_eq!(root.path(b"name"), b"name");
        assert_eq!(root.path(b""), b"");
    }

    #[test]
    fn a_chain_of_any_length_is_dropped() {
        let mut node = Arc::new(Plain::root((), b"", ()));
        for _ in 0..200_000 {
            node = Arc::new(Plain::below(&node, (*b"d").into(), ()));
        }
        assert_eq!(node.depth(), 200_000);
        drop(node);
    }
}
