//! Directories that know the one above them: which are open, and the way from there to any other.

use std::io;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::handles::{DirectoryRef, HandleBudget, Handles, Kept, Side};
use super::recent::{Slot, is_way_up};
use super::stem::{PathFromEnd, Stem};

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
    /// The length of its path below the root.
    path_len: usize,
    /// The beginning of its path, if that is long.
    stem: Option<Arc<Stem>>,
    open: OnceLock<Open<'t, O>>,
    /// Where it is open for as long as it was used lately, if it is not kept open.
    slot: OnceLock<Arc<Slot<O>>>,
    /// What the operation knows of it.
    pub(crate) data: D,
}

#[derive(Debug)]
enum Open<'t, O> {
    Root(O),
    Kept(Kept<'t, O>),
}

/// What is open of a directory, for as long as this lives.
pub(crate) enum OpenRef<'n, O> {
    Kept(&'n O),
    Recent(Arc<O>),
}

impl<O> Deref for OpenRef<'_, O> {
    type Target = O;

    fn deref(&self) -> &O {
        match self {
            Self::Kept(open) => open,
            Self::Recent(open) => open,
        }
    }
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
            path_len: 0,
            stem: None,
            open: OnceLock::from(Open::Root(open)),
            slot: OnceLock::new(),
            data,
        }
    }

    /// Returns a directory below `parent` that is not kept open yet.
    pub(crate) fn below(parent: &Arc<Self>, name: Box<[u8]>, data: D) -> Self {
        let mut node = Self {
            depth: parent.depth + 1,
            path_len: parent.path_len + usize::from(!parent.is_root()) + name.len(),
            stem: parent.stem.clone(),
            parent: Some(Arc::clone(parent)),
            name,
            open: OnceLock::new(),
            slot: OnceLock::new(),
            data,
        };
        if Stem::begins_below(node.depth) {
            node.stem = Some(Arc::new(node.longer_stem()));
        }
        node
    }

    /// Returns the names from the end of the stem down to this directory, as one more piece of it.
    fn longer_stem(&self) -> Stem {
        let above = self.stem.clone();
        let above_len = above.as_ref().map_or(0, |stem| stem.path_len() + 1);
        let mut path = PathFromEnd::new(self.path_len - above_len);
        for node in self.upwards() {
            if node.depth < self.depth && Stem::begins_below(node.depth) {
                break;
            }
            path.prepend_unless_root(node);
        }
        Stem::new(above, path.into_bytes())
    }

    /// Returns this directory and all above it.
    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |node| node.parent())
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
        if let Some(slot) = self.slot.get() {
            slot.close();
        }
        (self.parent.take(), std::mem::take(&mut self.name))
    }

    /// Returns the directory that has no other one above it.
    pub(crate) fn to_root(&self) -> &Self {
        self.upwards().last().unwrap_or(self)
    }

    /// Returns what is open of it, if it is kept open.
    pub(crate) fn open(&self) -> Option<&O> {
        Some(match self.open.get()? {
            Open::Root(open) => open,
            Open::Kept(kept) => kept,
        })
    }

    /// Returns where the nearest directory above is open if it was used lately, of those that `..` leads to, and how many
    /// levels it is away. None if something is nearer that is kept open.
    pub(super) fn way_up(&self) -> Option<(&Arc<Slot<O>>, usize)> {
        let above = self.upwards().skip(1);
        let mut until = above.take_while(|node| node.open.get().is_none());
        let found = until.find(|node| is_way_up(node.depth))?;
        Some((found.slot.get()?, self.depth - found.depth))
    }

    /// Returns what is open of it, if anything is.
    pub(super) fn open_now(&self) -> Option<OpenRef<'_, O>> {
        match self.open() {
            Some(open) => Some(OpenRef::Kept(open)),
            None => self.slot.get()?.get().map(OpenRef::Recent),
        }
    }

    /// Returns the path of `name` in this directory below the root; with an empty name, that of the directory.
    ///
    /// # Cost
    /// As many bytes as the path has, and one step for 256 directories, about.
    pub(crate) fn path(&self, name: &[u8]) -> Vec<u8> {
        let slash = usize::from(!self.is_root() && !name.is_empty());
        let mut path = PathFromEnd::new(self.path_len + slash + name.len());
        path.prepend(name);
        let stem_depth = Stem::depth_above(self.depth);
        for node in self.upwards().take_while(|node| node.depth > stem_depth) {
            path.prepend_unless_root(node);
        }
        for stem in Stem::upwards(self.stem.as_deref()) {
            path.prepend(stem.names());
        }
        path.into_bytes()
    }

    /// Returns how many levels it is to the nearest open directory.
    pub(super) fn levels_to_open(&self) -> usize {
        let mut above = self.upwards();
        above.position(Self::is_open_now).unwrap_or(0)
    }

    /// Returns the nearest of those that `..` leads to, from so many levels above on, and where it is open if it was used
    /// lately.
    pub(super) fn way_up_beyond(&self, levels: usize) -> Option<(&Self, &Arc<Slot<O>>)> {
        let mut above = self.upwards().skip(levels);
        let found = above.find(|node| is_way_up(node.depth))?;
        Some((found, found.slot.get()?))
    }

    fn is_open_now(&self) -> bool {
        self.open.get().is_some() || self.slot.get().is_some_and(|slot| slot.is_open())
    }

    /// Returns what is open of the nearest directory that is, from this one upwards, and the path from there to `name` in
    /// this one.
    ///
    /// # Cost
    /// As many steps as the path has components, twice.
    pub(crate) fn nearest(&self, name: &[u8]) -> (OpenRef<'_, O>, Vec<u8>) {
        let mut len = name.len();
        for base in self.upwards() {
            if let Some(open) = base.open_now() {
                let mut path = PathFromEnd::new(len);
                path.prepend(name);
                for node in self.upwards().take_while(|node| node.depth > base.depth) {
                    path.prepend(&node.name);
                }
                return (open, path.into_bytes());
            }
            len += base.name.len() + usize::from(len > 0);
        }
        unreachable!("the root is open");
    }

    /// Returns the directory that `side` takes of what is open, opened again if this one is not open; None if
    /// `side` returns none.
    pub(crate) fn reach(&self, side: Side<O>) -> io::Result<Option<DirectoryRef<'_, O>>> {
        let (base, path) = self.nearest(b"");
        if path.is_empty() {
            return Ok(DirectoryRef::of(base, side));
        }
        let opened = side(&base).map(|base| base.open_beneath(&path).map(DirectoryRef::Opened));
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

    /// Returns where it is open from now on if it was used lately.
    pub(super) fn make_slot(&self) -> &Arc<Slot<O>> {
        self.slot.get_or_init(|| Arc::new(Slot::new(self.depth)))
    }
}

impl PathFromEnd {
    /// The name of a root is part of no path.
    fn prepend_unless_root<O, D>(&mut self, node: &Node<'_, O, D>) {
        if !node.is_root() {
            self.prepend(&node.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = Node<'static, (), ()>;

    fn below(parent: &Arc<Plain>, name: &str) -> Arc<Plain> {
        Arc::new(Plain::below(parent, name.as_bytes().into(), ()))
    }

    #[test]
    fn a_path_begins_at_the_nearest_open_directory_or_at_the_root() {
        let root = Arc::new(Plain::root((), b"not in the path", ()));
        let middle = below(&root, "middle");
        let start = below(&middle, "start");
        let from = |name: &[u8]| String::from_utf8(start.nearest(name).1).unwrap();
        assert_eq!(from(b"name"), "middle/start/name");
        assert_eq!(from(b""), "middle/start");
        let use_it = |node: &Plain| node.slot.set(Arc::new(Slot::opened(()))).unwrap();
        use_it(&middle);
        assert_eq!(from(b"name"), "start/name");
        use_it(&start);
        assert_eq!(from(b"name"), "name");
        assert_eq!(from(b""), "");
        assert_eq!(start.path(b"name"), b"middle/start/name");
        assert_eq!(start.path(b""), b"middle/start");
        assert_eq!(root.path(b"name"), b"name");
        assert_eq!(root.path(b""), b"");
        assert_eq!(start.to_root().name(), b"not in the path");
    }

    #[test]
    fn a_path_of_any_length_has_every_name_once() {
        let mut node = Arc::new(Plain::root((), b"", ()));
        let mut expected = String::new();
        for depth in 1..2_000 {
            let name = format!("d{depth}");
            node = below(&node, &name);
            expected.push_str(if depth == 1 { "" } else { "/" });
            expected.push_str(&name);
            assert_eq!(node.path(b""), expected.as_bytes());
            let inside = format!("{expected}/name");
            assert_eq!(node.path(b"name"), inside.as_bytes());
            assert_eq!(node.nearest(b"name").1, inside.as_bytes());
        }
    }

    #[test]
    fn a_chain_of_any_length_is_dropped() {
        let mut node = Arc::new(Plain::root((), b"", ()));
        for _ in 0..200_000 {
            node = below(&node, "d");
        }
        assert_eq!(node.depth(), 200_000);
        drop(node);
    }
}
