//! What is known of a directory and its copy while they are gone through.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_sys::{Directory, Metadata, Xattr, get_xattrs};

use super::content::Methods;
use super::fault::{At, Fault, READ_ATTRIBUTES, Side};
use crate::metadata::{Current, NewFileDefaults, Original, Owner, without_shadows};
use crate::traverse::{DirectoryRef, Handles, Identity, Node};

/// A directory of the tree, with its copy.
pub(super) type PairNode<'t> = Node<'t, Pair, DirectoryState>;

/// A directory and its copy, open.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) source: Directory,
    /// None in a dry run, where there is none.
    pub(super) copy: Option<Directory>,
}

impl Handles for Pair {
    fn listed(&self) -> &Directory {
        &self.source
    }

    fn count(&self) -> usize {
        1 + usize::from(self.copy.is_some())
    }

    fn identity(&self) -> io::Result<Identity> {
        let (source, _) = self.source.identity()?;
        let copy = self.copy.as_ref().map(Handles::identity).transpose()?;
        Ok((source, copy.map(|(copy, _)| copy)))
    }

    fn open_beneath(&self, path: &[u8]) -> io::Result<Self> {
        let copy = self.copy.as_ref().map(|copy| copy.open_beneath(path));
        Ok(Self {
            source: self.source.open_beneath(path)?,
            copy: copy.transpose()?,
        })
    }

    fn open_above(&self, levels: usize, expected: &Identity) -> io::Result<Option<Self>> {
        let Some(source) = self.source.open_known_above(levels, expected.0)? else {
            return Ok(None);
        };
        let copy = match (&self.copy, expected.1) {
            (Some(copy), Some(expected)) => copy.open_known_above(levels, expected)?,
            _ => None,
        };
        let is_whole = copy.is_some() == expected.1.is_some();
        Ok(is_whole.then_some(Self { source, copy }))
    }
}

/// Returns one of the two directories, opened again if they are not kept open; None if there is no copy.
pub(super) fn reach<'n>(
    node: &'n PairNode<'_>,
    side: Side,
) -> Result<Option<DirectoryRef<'n, Pair>>, Fault> {
    let reached = match side {
        Side::Source => node.reach(|pair| Some(&pair.source)),
        Side::Copy => node.reach(|pair| pair.copy.as_ref()),
    };
    reached.at(side, "open")
}

/// A file system, by its device.
pub(super) type FileSystem = (u32, u32);

/// What is known of a directory while it is copied.
#[derive(Debug)]
pub(super) struct DirectoryState {
    /// Those of the directory in the tree.
    pub(super) metadata: Metadata,
    /// Attributes that the copy is given at the end.
    pub(super) attributes: Vec<Xattr>,
    /// True if this run makes the copy: no one else can be in it yet.
    pub(super) is_made: bool,
    /// True if what is made in the copy gets an access control list from it.
    pub(super) lends_lists: bool,
    /// The inode number of a copy that was there already.
    pub(super) copy_inode: u64,
    pub(super) copy_filesystem: FileSystem,
    pub(super) defaults: Arc<NewFileDefaults>,
    pub(super) methods: Arc<Methods>,
    /// True once something in it is copied, or was before.
    pub(super) is_used: AtomicBool,
}

impl DirectoryState {
    /// Returns what is known of a directory without a copy that matters.
    pub(super) fn of_source(metadata: Metadata) -> Self {
        Self {
            metadata,
            attributes: Vec::new(),
            is_made: false,
            lends_lists: false,
            copy_inode: 0,
            copy_filesystem: (0, 0),
            defaults: Arc::default(),
            methods: Arc::default(),
            is_used: AtomicBool::new(false),
        }
    }

    pub(super) fn original(&self) -> Original<'_> {
        Original {
            metadata: &self.metadata,
            attributes: &self.attributes,
        }
    }

    /// Returns the owner of what was just made; `look` asks for it.
    pub(super) fn owner_of_new(
        &self,
        look: impl FnOnce() -> io::Result<Metadata>,
    ) -> Result<Owner, Fault> {
        if let Some(owner) = self.defaults.owner() {
            return Ok(owner);
        }
        let made = look().at(Side::Copy, "look at")?;
        self.defaults.learn(0, &made);
        Ok((made.uid, made.gid))
    }

    /// Notes that something in it is copied, or was before.
    pub(super) fn use_it(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}

/// The copy of a directory, as it was found.
pub(super) struct Existing {
    pub(super) metadata: Metadata,
    pub(super) attributes: Vec<Xattr>,
}

impl Existing {
    pub(super) fn at(copy: &Directory) -> Result<Self, Fault> {
        Ok(Self {
            metadata: copy.own_metadata().at(Side::Copy, "look at")?,
            attributes: without_shadows(get_xattrs(copy).at(Side::Copy, READ_ATTRIBUTES)?),
        })
    }

    pub(super) fn current(&self) -> Current<'_> {
        Current::all_of(&self.metadata, &self.attributes)
    }
}
