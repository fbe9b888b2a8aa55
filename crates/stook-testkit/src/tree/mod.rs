//! Trees as data: what a test needs on disk, written down as a value.
//!
//! Nodes lie in one vector with parent numbers, not nested, so that a tree 5,000 levels deep can be built, written
//! and dropped without recursion. A wrong path is remembered and reported by [`Tree::write`], so that building needs
//! no error handling.

mod entry;
mod named;
#[cfg(test)]
mod tests;
mod write;

pub use entry::{
    Content, Entry, block_device, character_device, dir, fifo, file, hardlink, socket, sparse,
    symlink,
};
pub use named::can_make_devices;
pub use write::supports_xattrs;

use crate::failure::shown;
use std::collections::HashMap;

/// A tree of entries, not yet on disk.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    numbers: HashMap<(usize, Vec<u8>), usize>,
    faults: Vec<String>,
}

#[derive(Clone, Debug)]
struct Node {
    name: Vec<u8>,
    parent: usize,
    children: Vec<usize>,
    entry: Entry,
    explicit: bool,
}

/// Number of the root node; it has no name and is its own parent.
const ROOT: usize = 0;

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// Returns a tree with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        let root = Node {
            name: Vec::new(),
            parent: ROOT,
            children: Vec::new(),
            entry: dir(),
            explicit: true,
        };
        Self {
            nodes: vec![root],
            numbers: HashMap::new(),
            faults: Vec::new(),
        }
    }

    /// Adds `entry` at `path`; directories on the way come into being with [`dir()`]'s defaults.
    ///
    /// One slash at the end is allowed for a directory. A second entry at the same path replaces the first, unless
    /// that would turn a directory with contents into something else.
    pub fn insert(&mut self, path: impl AsRef<[u8]>, entry: Entry) -> &mut Self {
        let path = path.as_ref();
        if let Err(fault) = self.try_insert(path, entry) {
            self.faults.push(format!("`{}`: {fault}", shown(path)));
        }
        self
    }

    /// Adds all of `other` below the directory `path`.
    pub fn graft(&mut self, path: impl AsRef<[u8]>, other: &Tree) -> &mut Self {
        let prefix = path.as_ref();
        self.insert(prefix, dir());
        for (below, entry) in other.entries() {
            let mut entry = entry.clone();
            if let Content::HardLink(target) = &mut entry.content {
                *target = [prefix, b"/", target].concat();
            }
            self.insert([prefix, b"/", &below].concat(), entry);
        }
        self.faults.extend_from_slice(&other.faults);
        self
    }

    /// Returns every entry that was put in, with its path, in order of insertion.
    ///
    /// # Cost
    /// One path of full length per entry.
    pub fn entries(&self) -> impl Iterator<Item = (Vec<u8>, &Entry)> {
        self.nodes
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, node)| node.explicit)
            .map(|(number, node)| (self.path_of(number), &node.entry))
    }

    /// Returns the number of entries on disk once written, directories on the way included, the root not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Tells whether nothing was put in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tree without extended attributes, for file systems that have none.
    #[must_use]
    pub fn without_xattrs(mut self) -> Self {
        for node in &mut self.nodes {
            node.entry.xattrs.clear();
        }
        self
    }

    fn try_insert(&mut self, path: &[u8], entry: Entry) -> Result<(), &'static str> {
        let directory = entry.content == Content::Directory;
        let path = match path.strip_suffix(b"/") {
            Some(path) if directory => path,
            Some(_) => return Err("only a directory may end in a slash"),
            None => path,
        };
        let mut at = ROOT;
        let mut names = path.split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            check_name(name)?;
            if self.nodes[at].entry.content != Content::Directory {
                return Err("lies below something that is not a directory");
            }
            at = self.child(at, name);
            if names.peek().is_some() {
                continue;
            }
            if !directory && !self.nodes[at].children.is_empty() {
                return Err("would replace a directory with contents");
            }
            self.nodes[at].entry = entry;
            self.nodes[at].explicit = true;
            return Ok(());
        }
        Err("is empty")
    }

    fn child(&mut self, parent: usize, name: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(&(parent, name.to_vec())) {
            return *number;
        }
        let number = self.nodes.len();
        self.numbers.insert((parent, name.to_vec()), number);
        self.nodes[parent].children.push(number);
        self.nodes.push(Node {
            name: name.to_vec(),
            parent,
            children: Vec::new(),
            entry: dir(),
            explicit: false,
        });
        number
    }

    fn path_of(&self, number: usize) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = number;
        while at != ROOT {
            names.push(self.nodes[at].name.as_slice());
            at = self.nodes[at].parent;
        }
        names.reverse();
        names.join(&b'/')
    }
}

fn check_name(name: &[u8]) -> Result<(), &'static str> {
    match name {
        b"" => Err("has an empty name in it"),
        b"." | b".." => Err("has a dot name in it"),
        name if name.contains(&0) => Err("has a zero byte in it"),
        _ => Ok(()),
    }
}

/// Builds a [`Tree`] from `path => entry` pairs.
///
/// The constructors ([`file()`], [`dir()`], [`symlink`], ...) need not be imported.
///
/// # Examples
/// ```
/// use stook_testkit::{TempTree, tree};
/// let tree = tree! {
///     "a" => file(b"x").mode(0o600).mtime(1_700_000_000, 5),
///     "d/" => dir(),
///     "d/l" => symlink("../a"),
///     "h" => hardlink("a"),
///     b"not utf-8 \xff" => sparse(&[(4096, b"data")], 1 << 20),
/// };
/// let written = TempTree::new(&tree)?;
/// assert_eq!(std::fs::read(written.path().join("d/l"))?, b"x");
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! tree {
    ($($path:expr => $entry:expr),* $(,)?) => {{
        #[allow(unused_imports, reason = "a tree seldom needs every kind of entry")]
        use $crate::{block_device, character_device, dir, fifo, file, hardlink, socket, sparse, symlink};
        #[allow(unused_mut, reason = "the empty tree is not changed")]
        let mut tree = $crate::Tree::new();
        $(tree.insert($path, $entry);)*
        tree
    }};
}
