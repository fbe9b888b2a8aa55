//! One pass over a tree: every name and every stat, once, directory by directory.
//!
//! ```text
//!   task: a directory ──> open below its parent ──> names (getdents64) ──> statx each ──> Listing
//!                                                     └─> one task for each directory among them
//! ```
//! A task holds its parent open until it has opened itself; when too many directories are open, tasks
//! go down from the root instead. The youngest task is taken first, so few wait at any time. Listings
//! arrive on the worker threads in no particular order; entries within a listing are sorted by name.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stook_pool::Tasks;
use stook_sys::{Directory, FileId, FileKind, Links, Metadata, NameBuffer};
use stook_timers::scope;

/// How to walk.
#[derive(Debug, Clone)]
pub struct WalkOptions {
    /// Number of threads.
    pub jobs: usize,
    /// What to do with symbolic links within the tree.
    pub links: Links,
    /// A directory to leave out, by identity: however it is spelled, it is found.
    pub leave_out: Option<FileId>,
}

/// One directory with what is in it.
#[derive(Debug)]
pub struct Listing {
    /// Path below the root; empty for the root.
    pub path: Vec<u8>,
    /// The directory's own facts.
    pub metadata: Metadata,
    /// All entries that are not walked into, sorted by name: with links refused, everything but directories.
    pub entries: Vec<Entry>,
    /// True if nothing at all was found in the directory, but for what was left out.
    pub is_empty: bool,
    names: Vec<u8>,
}

/// One entry of a [`Listing`].
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    name_start: u32,
    name_len: u16,
    /// True for a symbolic link that leads to a directory.
    pub leads_to_directory: bool,
    /// Its facts: of the link itself, or of what it leads to when links are followed.
    pub metadata: Metadata,
}

/// Something in the tree that could not be looked at.
#[derive(Debug)]
pub struct WalkError {
    /// Path below the root.
    pub path: Vec<u8>,
    /// What was tried.
    pub operation: &'static str,
    /// Why it failed.
    pub source: io::Error,
}

/// Receives what a walk finds, on several threads at once.
pub trait Visitor: Sync {
    /// Returns true if the directory need not be looked into.
    fn prunes(&self, _path: &[u8]) -> bool {
        false
    }
    /// Takes one listed directory.
    fn directory(&self, listing: Listing);
    /// Takes a failure; the walk goes on.
    fn failed(&self, error: WalkError);
    /// Returns true if the walk should end early.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl Listing {
    /// A directory that was not looked into.
    fn unread(path: Vec<u8>, metadata: Metadata) -> Self {
        Self {
            path,
            metadata,
            entries: Vec::new(),
            is_empty: false,
            names: Vec::new(),
        }
    }

    /// Returns the name of one of the entries.
    pub fn name(&self, entry: &Entry) -> &[u8] {
        let start = entry.name_start as usize;
        &self.names[start..start + usize::from(entry.name_len)]
    }

    /// Keeps those entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &Entry) -> bool) {
        let names = &self.names;
        self.entries.retain(|entry| {
            let start = entry.name_start as usize;
            keep(&names[start..start + usize::from(entry.name_len)], entry)
        });
    }
}

/// Directories held open for the tasks below them; more are opened from the root again. At most half
/// of what the process may open: the rest is for the tasks themselves, and for the caller.
const MOST_OPEN: usize = 512;

struct Walk<'a, V> {
    root: &'a Directory,
    options: &'a WalkOptions,
    visitor: &'a V,
    most_open: usize,
    open: AtomicUsize,
}

struct Task<'w> {
    path: Vec<u8>,
    parent: Option<Arc<OpenParent<'w>>>,
    ancestors: Option<Arc<Ancestor>>,
}

/// A directory held open for the tasks below it; the last of them closes it.
struct OpenParent<'w> {
    directory: Directory,
    open: &'w AtomicUsize,
}

impl Drop for OpenParent<'_> {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The chain of directories above, kept only when links are followed, to find loops.
struct Ancestor {
    identity: FileId,
    above: Option<Arc<Ancestor>>,
}

/// Walks the tree below `root` and hands every directory to the visitor.
///
/// # Cost
/// For each directory: open, getdents64 until empty, one statx for itself and one for each entry
/// that is not a directory, a second one for what a symbolic link leads to, close. For a pruned one: one statx.
pub fn walk(root: &Directory, options: &WalkOptions, visitor: &impl Visitor) {
    let _scope = scope!("walk");
    let walk = Walk {
        root,
        options,
        visitor,
        most_open: MOST_OPEN.min(stook_sys::most_open_files() / 2),
        open: AtomicUsize::new(0),
    };
    let first = Task {
        path: Vec::new(),
        parent: None,
        ancestors: None,
    };
    stook_pool::recursive(options.jobs, first, |task, tasks| {
        if !visitor.is_stopped() {
            walk.run(task, tasks);
        }
    });
}

impl<V: Visitor> Walk<'_, V> {
    fn run<'w>(&'w self, task: Task<'w>, tasks: &Tasks<Task<'w>>) {
        if self.visitor.prunes(&task.path) {
            return self.pass_over(task);
        }
        let directory = match self.open(&task) {
            Ok(directory) => directory,
            Err(source) => return self.fail(task.path, "open", source),
        };
        drop(task.parent);
        let metadata = match directory.own_metadata() {
            Ok(metadata) => metadata,
            Err(source) => return self.fail(task.path, "look at", source),
        };
        if self.options.leave_out == Some(metadata.identity()) {
            return;
        }
        let ancestors = match self.with_ancestor(task.ancestors, &metadata) {
            Ok(ancestors) => ancestors,
            Err(source) => return self.fail(task.path, "follow", source),
        };
        self.list(directory, task.path, metadata, ancestors.as_ref(), tasks);
    }

    /// Reports a directory without looking into it; so it may be one that cannot be opened.
    fn pass_over(&self, task: Task<'_>) {
        let metadata = self.metadata(&task).and_then(|metadata| {
            if metadata.kind == FileKind::Directory {
                Ok(metadata)
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        });
        match metadata {
            Ok(metadata) if self.options.leave_out == Some(metadata.identity()) => {}
            Ok(metadata) => self.visitor.directory(Listing::unread(task.path, metadata)),
            Err(source) => self.fail(task.path, "look at", source),
        }
    }

    fn metadata(&self, task: &Task<'_>) -> io::Result<Metadata> {
        let name = last_name(&task.path);
        match &task.parent {
            Some(parent) => parent.directory.metadata(name, self.options.links),
            None if task.path.is_empty() => self.root.own_metadata(),
            None => {
                // With the slash at its end, which opens the same directory.
                let above = &task.path[..task.path.len() - name.len()];
                self.open_path(self.root, above)?
                    .metadata(name, self.options.links)
            }
        }
    }

    fn open(&self, task: &Task<'_>) -> io::Result<Directory> {
        let _scope = scope!("open");
        match &task.parent {
            Some(parent) => self.open_path(&parent.directory, last_name(&task.path)),
            None => self.open_path(self.root, &task.path),
        }
    }

    fn open_path(&self, base: &Directory, path: &[u8]) -> io::Result<Directory> {
        match self.options.links {
            Links::Follow => base.open_following(path),
            Links::Refuse => base.open_beneath(path),
        }
    }

    fn with_ancestor(
        &self,
        above: Option<Arc<Ancestor>>,
        own: &Metadata,
    ) -> io::Result<Option<Arc<Ancestor>>> {
        if self.options.links == Links::Refuse {
            return Ok(None);
        }
        let identity = own.identity();
        let mut next = above.as_ref();
        while let Some(ancestor) = next {
            if ancestor.identity == identity {
                return Err(io::Error::other(
                    "the link leads to a directory above itself",
                ));
            }
            next = ancestor.above.as_ref();
        }
        Ok(Some(Arc::new(Ancestor { identity, above })))
    }

    fn list<'w>(
        &'w self,
        directory: Directory,
        path: Vec<u8>,
        metadata: Metadata,
        ancestors: Option<&Arc<Ancestor>>,
        tasks: &Tasks<Task<'w>>,
    ) {
        let (found, listed) = names_of(&directory);
        let mut listing = Listing {
            path,
            metadata,
            entries: Vec::new(),
            is_empty: true,
            names: found.bytes,
        };
        if let Err(source) = listed {
            self.fail(listing.path.clone(), "list", source);
        }
        let subdirectories = self.look_at_all(&directory, &found.names, &mut listing);
        let parent = self.keep_open(directory, subdirectories.is_empty());
        let task_of = |path| Task {
            path,
            parent: parent.clone(),
            ancestors: ancestors.cloned(),
        };
        // Taken from the end: the first name is worked on first.
        tasks.extend(subdirectories.into_iter().rev().map(task_of));
        drop(parent);
        self.visitor.directory(listing);
    }

    /// Stats every name, fills the listing, and returns the paths of the directories.
    fn look_at_all(
        &self,
        directory: &Directory,
        names: &[NamedKind],
        listing: &mut Listing,
    ) -> Vec<Vec<u8>> {
        let _scope = scope!("stat");
        let mut subdirectories = Vec::new();
        for found in names {
            let name = found.name(&listing.names);
            let path = join(&listing.path, name);
            match self.look_at(directory, name, found.kind) {
                Ok(Look::Directory) if self.is_left_out(directory, name, found.inode) => continue,
                Ok(Look::Directory) => subdirectories.push(path),
                Ok(Look::Entry {
                    metadata,
                    leads_to_directory,
                }) => {
                    let (name_start, name_len) = (found.start, found.len);
                    listing.entries.push(Entry {
                        name_start,
                        name_len,
                        leads_to_directory,
                        metadata,
                    });
                }
                // Removed since it was listed: as if it had never been there.
                Err(_) if has_vanished(directory, name) => continue,
                Err(source) => self.fail(path, "look at", source),
            }
            listing.is_empty = false;
        }
        subdirectories
    }

    fn look_at(
        &self,
        directory: &Directory,
        name: &[u8],
        kind: Option<FileKind>,
    ) -> io::Result<Look> {
        if kind == Some(FileKind::Directory) {
            return Ok(Look::Directory);
        }
        let metadata = directory.metadata(name, self.options.links)?;
        if metadata.kind == FileKind::Directory {
            return Ok(Look::Directory);
        }
        let leads_to_directory = metadata.kind == FileKind::Symlink
            && directory
                .metadata(name, Links::Follow)
                .is_ok_and(|target| target.kind == FileKind::Directory);
        Ok(Look::Entry {
            metadata,
            leads_to_directory,
        })
    }

    /// Only an inode number that agrees is worth a system call. A mount point has another one in the
    /// listing; it is found when it is opened.
    fn is_left_out(&self, directory: &Directory, name: &[u8], inode: u64) -> bool {
        self.options.leave_out.is_some_and(|identity| {
            identity.1 == inode
                && directory
                    .metadata(name, self.options.links)
                    .is_ok_and(|metadata| metadata.identity() == identity)
        })
    }

    fn keep_open(&self, directory: Directory, is_leaf: bool) -> Option<Arc<OpenParent<'_>>> {
        if is_leaf || self.open.load(Ordering::Relaxed) >= self.most_open {
            return None;
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        Some(Arc::new(OpenParent {
            directory,
            open: &self.open,
        }))
    }

    fn fail(&self, path: Vec<u8>, operation: &'static str, source: io::Error) {
        self.visitor.failed(WalkError {
            path,
            operation,
            source,
        });
    }
}

enum Look {
    Directory,
    Entry {
        metadata: Metadata,
        leads_to_directory: bool,
    },
}

/// The names of a directory in one piece of memory.
struct FoundNames {
    bytes: Vec<u8>,
    names: Vec<NamedKind>,
}

#[derive(Clone, Copy)]
struct NamedKind {
    start: u32,
    len: u16,
    kind: Option<FileKind>,
    inode: u64,
}

impl NamedKind {
    fn name<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start as usize..][..usize::from(self.len)]
    }
}

/// Returns all names, sorted, and how the reading ended.
fn names_of(directory: &Directory) -> (FoundNames, io::Result<()>) {
    let _scope = scope!("list");
    thread_local! {
        static BUFFER: std::cell::RefCell<NameBuffer> = std::cell::RefCell::default();
    }
    let mut found = FoundNames {
        bytes: Vec::new(),
        names: Vec::new(),
    };
    let mut is_too_large = false;
    let mut result = BUFFER.with_borrow_mut(|buffer| {
        directory.names(buffer, |entry| {
            let (Ok(start), Ok(len)) = (
                u32::try_from(found.bytes.len()),
                u16::try_from(entry.name.len()),
            ) else {
                is_too_large = true;
                return;
            };
            found.bytes.extend_from_slice(entry.name);
            found.names.push(NamedKind {
                start,
                len,
                kind: entry.kind,
                inode: entry.inode,
            });
        })
    });
    if is_too_large {
        result = result.and(Err(io::Error::other(
            "more than 4 GiB of names in one directory",
        )));
    }
    let FoundNames { bytes, names } = &mut found;
    names.sort_unstable_by(|a, b| a.name(bytes).cmp(b.name(bytes)));
    (found, result)
}

fn has_vanished(directory: &Directory, name: &[u8]) -> bool {
    directory
        .metadata(name, Links::Refuse)
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
