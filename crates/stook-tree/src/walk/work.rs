//! What a walk does about each directory and each name.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Mutex};

use stook_sys::{Directory, FileId, FileKind, Links, Metadata, into_inner, lock};
use stook_timers::scope;

use super::listing::{Entry, Listing};
use super::options::{Detail, Visitor, WalkOptions};
use crate::names::{Name, Names};
use crate::traverse::{
    At, CHUNK, Entered, FoundOf, Node, NodeOf, Part, TasksOf, Traverse, Waiting,
};
use crate::{Reason, TreeError};

pub(super) struct Walk<'a, V> {
    pub(super) options: &'a WalkOptions,
    pub(super) visitor: &'a V,
}

/// What is known of a directory that was entered.
pub(super) struct State {
    /// Its identity, only where links are followed: to find loops.
    identity: Option<FileId>,
    /// As much as is wanted of its path, if that is longer, and of all paths below it.
    beginning: Option<Arc<[u8]>>,
    /// Its path and its own facts, for its listing.
    head: Mutex<Option<(Vec<u8>, Metadata)>>,
}

/// A listing in the making.
pub(super) struct Draft {
    path: Vec<u8>,
    metadata: Metadata,
    found: Mutex<Entries>,
}

/// What was found of some names.
pub(super) struct Entries {
    all: Vec<Entry>,
    is_empty: bool,
}

/// What is behind a name.
enum Kind {
    Directory,
    Skipped,
    Entry {
        metadata: Metadata,
        leads_to_directory: bool,
    },
}

type WalkNode<'t> = Node<'t, Directory, State>;

/// What a walk looks at.
#[derive(Clone, Copy)]
enum Place<'a, 't> {
    Root,
    /// A name in a directory; the directory itself if that is empty.
    In(&'a WalkNode<'t>, &'a [u8]),
}

impl<'a, 't> Place<'a, 't> {
    fn parent(self) -> Option<&'a WalkNode<'t>> {
        match self {
            Self::Root => None,
            Self::In(parent, _) => Some(parent),
        }
    }

    /// Returns its path below the root, all of it.
    fn path(self) -> Vec<u8> {
        match self {
            Self::Root => Vec::new(),
            Self::In(parent, name) => parent.path(name),
        }
    }
}

impl<'t, V: Visitor> Traverse<'t> for Walk<'_, V> {
    type Open = Directory;
    type Data = State;
    type Collected = Draft;
    type Step = Entries;

    const STEP: usize = 256;

    fn is_interrupted(&self) -> bool {
        self.visitor.is_interrupted()
    }

    fn enter(&self, waiting: &Waiting<'t, Directory, State>) -> Option<Entered<Directory, State>> {
        let Waiting { node, name, .. } = waiting;
        let at = Place::In(node, name);
        let path = self.path_of(at);
        let own_metadata = || self.metadata_of(node, name);
        if self.visitor.prunes(&path) {
            self.pass_over(at, path, own_metadata());
            return None;
        }
        let opened = {
            let _scope = scope!("open");
            let (base, way) = node.nearest(name);
            self.open(&base, &way)
        };
        let (open, data) = self.entered(at, path, opened, own_metadata)?;
        Some(Entered {
            open,
            data,
            is_listed: true,
        })
    }

    fn most_names(&self, _node: &WalkNode<'t>) -> usize {
        usize::MAX
    }

    fn list_failed(&self, node: &WalkNode<'t>, error: io::Error) -> bool {
        self.fail(Place::In(node, b""), "list", error);
        true
    }

    fn begin_names(
        &self,
        node: &WalkNode<'t>,
        _open: &Directory,
        names: &Names,
        _part: Part,
    ) -> Option<Draft> {
        let (path, metadata) = lock(&node.data.head).take()?;
        Some(Draft {
            path,
            metadata,
            // What is found in a small directory comes at once, and is taken as it is.
            found: Mutex::new(Entries::with_capacity(match names.all.len() {
                0..=CHUNK => 0,
                many => many,
            })),
        })
    }

    fn order(&self, names: &mut Names) -> usize {
        if self.options.detail == Detail::Kinds {
            // Without system calls there is nothing to share.
            return names.all.len();
        }
        match names.all.len() {
            0..=CHUNK => 0,
            _ => names.sort_by_inode(),
        }
    }

    fn timed(&self, run: impl FnOnce()) {
        let _scope = scope!("stat");
        run();
    }

    fn begin_step(&self, names: usize) -> Entries {
        Entries::with_capacity(names)
    }

    fn entry(
        &self,
        at: &At<'_, 't, Self>,
        name: &Name,
        step: &mut Entries,
        found: &mut FoundOf<'t, Self>,
    ) {
        let (directory, path) = (at.open, at.collected.path.as_slice());
        let bytes = name.place.of(at.bytes);
        match self.kind_of(directory, path, bytes, name.kind) {
            Ok(Kind::Directory) if self.is_left_out(directory, bytes, name.inode) => {
                return self.visitor.left_out(&at.node.path(bytes));
            }
            Ok(Kind::Directory) => found.add_directory(name.inode, bytes),
            Ok(Kind::Skipped) => {}
            Ok(Kind::Entry {
                metadata,
                leads_to_directory,
            }) => {
                let entry = Entry::new(name.place, &metadata, leads_to_directory);
                step.all.push(entry);
            }
            // Removed since it was listed: as if it had never been there.
            Err(_) if has_vanished(directory, bytes) => return,
            Err(source) => self.fail(Place::In(at.node, bytes), "look at", source),
        }
        step.is_empty = false;
    }

    fn end_step(&self, at: &At<'_, 't, Self>, mut step: Entries) {
        let mut found = lock(&at.collected.found);
        found.is_empty &= step.is_empty;
        if found.all.capacity() == 0 {
            found.all = step.all;
        } else {
            found.all.append(&mut step.all);
        }
    }

    fn end_names(&self, _node: &NodeOf<'t, Self>, collected: Draft, bytes: Cow<'_, [u8]>) {
        if self.visitor.is_interrupted() {
            // It may lack entries.
            return;
        }
        let Entries { all, is_empty } = into_inner(collected.found);
        let mut names = bytes.into_owned();
        names.shrink_to_fit();
        let mut listing = Listing {
            path: collected.path,
            metadata: collected.metadata,
            entries: all,
            is_empty,
            names,
        };
        if self.options.sorted {
            listing.sort();
        }
        listing.entries.shrink_to_fit();
        self.visitor.directory(listing);
    }

    fn leave(
        &self,
        node: WalkNode<'t>,
        _open: Option<Directory>,
        _tasks: &TasksOf<'t, Self>,
    ) -> Option<Arc<WalkNode<'t>>> {
        node.close().0
    }
}

impl Entries {
    fn with_capacity(entries: usize) -> Self {
        Self {
            all: Vec::with_capacity(entries),
            is_empty: true,
        }
    }
}

impl<V: Visitor> Walk<'_, V> {
    /// Opens the root once more, so that its names are read from the beginning; None if nothing more is to be done.
    pub(super) fn root<'t>(&self, root: &Directory) -> Option<Arc<WalkNode<'t>>> {
        if self.visitor.is_interrupted() {
            return None;
        }
        let own_metadata = || root.own_metadata();
        if self.visitor.prunes(b"") {
            self.pass_over(Place::Root, Vec::new(), own_metadata());
            return None;
        }
        let opened = {
            let _scope = scope!("open");
            self.open(root, b"")
        };
        let (open, data) = self.entered(Place::Root, Vec::new(), opened, own_metadata)?;
        Some(Arc::new(Node::root(open, b"", data)))
    }

    fn open(&self, base: &Directory, path: &[u8]) -> io::Result<Directory> {
        match self.options.links {
            Links::Follow => base.open_following(path),
            Links::Refuse => base.open_beneath(path),
        }
    }

    /// Returns the facts about a directory that is not opened itself.
    fn metadata_of(&self, parent: &WalkNode<'_>, name: &[u8]) -> io::Result<Metadata> {
        match parent.nearest(b"") {
            (above, way) if way.is_empty() => above.metadata(name, self.options.links),
            (base, way) => self.open(&base, &way)?.metadata(name, self.options.links),
        }
    }

    /// Returns the path, or the beginning of it.
    fn path_of(&self, at: Place<'_, '_>) -> Vec<u8> {
        match at.parent().and_then(|node| node.data.beginning.as_deref()) {
            Some(beginning) => beginning.to_vec(),
            None => {
                let mut path = at.path();
                path.truncate(self.visitor.longest_path());
                path
            }
        }
    }

    /// Returns what is known of a directory that was opened, unless it is reported instead.
    fn entered(
        &self,
        at: Place<'_, '_>,
        path: Vec<u8>,
        opened: io::Result<Directory>,
        own_metadata: impl FnOnce() -> io::Result<Metadata>,
    ) -> Option<(Directory, State)> {
        let directory = match opened {
            Ok(directory) => directory,
            Err(source) => {
                self.report_closed(at, path, source, own_metadata);
                return None;
            }
        };
        let metadata = match self.own_metadata(&directory) {
            Ok(metadata) => metadata,
            Err(source) => {
                self.fail(at, "look at", source);
                return None;
            }
        };
        let identity = metadata.identity();
        if self.options.leave_out.contains(&identity) {
            self.visitor.left_out(&at.path());
            return None;
        }
        let follows = self.options.links == Links::Follow;
        if follows && is_above(identity, at.parent()) {
            let source = Reason::LinkLoop.into();
            self.fail(at, "follow", source);
            return None;
        }
        let beginning = match at.parent().and_then(|node| node.data.beginning.clone()) {
            None if path.len() == self.visitor.longest_path() => Some(path.as_slice().into()),
            other => other,
        };
        let state = State {
            beginning,
            identity: follows.then_some(identity),
            head: Mutex::new(Some((path, metadata))),
        };
        Some((directory, state))
    }

    /// The directory could not be opened.
    fn report_closed(
        &self,
        at: Place<'_, '_>,
        path: Vec<u8>,
        source: io::Error,
        own_metadata: impl FnOnce() -> io::Result<Metadata>,
    ) {
        let is_reported =
            self.options.unreadable && source.kind() == io::ErrorKind::PermissionDenied;
        if is_reported {
            // In a directory that may be read but not entered, only kinds can be found out.
            let metadata = if self.options.detail == Detail::Kinds {
                Ok(Metadata::of_kind(FileKind::Directory))
            } else {
                own_metadata()
            };
            if let Ok(metadata) = metadata {
                self.visitor.directory(Listing::unread(path, metadata));
            }
        }
        self.fail(at, "open", source);
    }

    /// Reports a directory without looking into it; so it may be one that cannot be opened.
    fn pass_over(&self, at: Place<'_, '_>, path: Vec<u8>, metadata: io::Result<Metadata>) {
        match metadata {
            Ok(metadata) if metadata.kind != FileKind::Directory => {
                self.fail(at, "look at", io::ErrorKind::NotADirectory.into());
            }
            Ok(metadata) if self.options.leave_out.contains(&metadata.identity()) => {
                self.visitor.left_out(&at.path());
            }
            Ok(metadata) => self.visitor.directory(Listing::unread(path, metadata)),
            Err(source) => self.fail(at, "look at", source),
        }
    }

    fn own_metadata(&self, directory: &Directory) -> io::Result<Metadata> {
        let is_needed = self.options.detail > Detail::Kinds
            || !self.options.leave_out.is_empty()
            || self.options.links == Links::Follow;
        if is_needed {
            directory.own_metadata()
        } else {
            Ok(Metadata::of_kind(FileKind::Directory))
        }
    }

    fn kind_of(
        &self,
        directory: &Directory,
        path: &[u8],
        name: &[u8],
        kind: Option<FileKind>,
    ) -> io::Result<Kind> {
        let links = self.options.links;
        // A link that is followed is of the kind that it leads to.
        let known = kind.filter(|&kind| kind != FileKind::Symlink || links == Links::Refuse);
        let skips = |kind| self.visitor.skips(path, name, kind);
        let metadata = match known {
            Some(FileKind::Directory) => return Ok(Kind::Directory),
            Some(kind) if skips(kind) => return Ok(Kind::Skipped),
            Some(kind) if self.options.detail == Detail::Kinds => Metadata::of_kind(kind),
            _ => directory.metadata(name, links)?,
        };
        if metadata.kind == FileKind::Directory {
            return Ok(Kind::Directory);
        }
        if known.is_none() && skips(metadata.kind) {
            return Ok(Kind::Skipped);
        }
        let leads_to_directory = metadata.kind == FileKind::Symlink
            && self.options.detail == Detail::LinkTargets
            && directory
                .metadata(name, Links::Follow)
                .is_ok_and(|target| target.kind == FileKind::Directory);
        Ok(Kind::Entry {
            metadata,
            leads_to_directory,
        })
    }

    /// Only an inode number that agrees is worth a system call. A mount point has another one in the
    /// listing; it is found when it is opened.
    fn is_left_out(&self, directory: &Directory, name: &[u8], inode: u64) -> bool {
        let is_any = |identity: &FileId| identity.1 == inode;
        self.options.leave_out.iter().any(is_any)
            && directory
                .metadata(name, self.options.links)
                .is_ok_and(|metadata| self.options.leave_out.contains(&metadata.identity()))
    }

    fn fail(&self, at: Place<'_, '_>, operation: &'static str, source: io::Error) {
        self.visitor.failed(&TreeError {
            path: at.path(),
            operation,
            source,
        });
    }
}

/// Returns true if a directory is one of those that lead to itself.
fn is_above(identity: FileId, parent: Option<&WalkNode<'_>>) -> bool {
    let mut above = std::iter::successors(parent, |node| node.parent());
    above.any(|node| node.data.identity == Some(identity))
}

fn has_vanished(directory: &Directory, name: &[u8]) -> bool {
    directory
        .metadata(name, Links::Refuse)
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
