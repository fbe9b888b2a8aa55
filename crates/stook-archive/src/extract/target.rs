//! The tree that `extract` writes into.
//!
//! A member's name is data from outside. It is refused if it is absolute or has a `..`; directories are
//! opened by [`Directory::open_beneath`], which follows no symbolic link, whoever made it; the last
//! component is only ever created anew or renamed over. So no name and no link in a volume, and none
//! that another process swaps in meanwhile, leads out of the target.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_index::Mtime;
use stook_pool::WorkerPool;
use stook_sys::{
    Directory, FileKind, Links, Metadata, SysError, effective_user, is_link_refused,
    is_no_directory,
};
use stook_timers::scope;
use stook_tree::{NamedTarget, OpenTarget, join, split};
use stook_volume::{Header, Kind};

use super::ContentError;
use super::metadata::{Given, Restorer, list_of};
use super::own_folder::OwnFolder;
use crate::cause::Cause;
use crate::mutex::lock;
use crate::observer::{Failure, Observer};
use crate::survey::LONGEST_PATH;

#[derive(Debug, Clone, Copy)]
pub(super) struct TargetOptions {
    pub(super) no_overwrite: bool,
    pub(super) same_permissions: bool,
    pub(super) xattrs: bool,
}

pub(super) struct Target {
    root: Directory,
    own_folder: OwnFolder,
    options: TargetOptions,
    restorer: Restorer,
    user: u32,
    /// Directories made for a file before their own member came, by the hashes of their paths: all paths that lead to
    /// a long one would take the square of its length.
    made: Mutex<HashSet<u64>>,
    /// Directories of the archive, whose facts are set at the end.
    directories: Mutex<Vec<Header>>,
    /// For a file with several names whose first one is not here: the name that took its place.
    first_names: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    temporary: AtomicU64,
}

/// The directory that was opened last: consecutive members are mostly in the same one.
#[derive(Debug, Default)]
pub(super) struct LastParent(Option<Parent>);

#[derive(Debug)]
struct Parent {
    path: Vec<u8>,
    directory: Directory,
    /// Nobody else can change what new files in it are like.
    is_ours: bool,
    /// What is made in it gets an access control list that the archive does not know.
    lends_lists: bool,
    new_files: NewFiles,
}

/// What new files of a directory are like, as seen on one: their group may come from the directory, their
/// mode from a default access control list. What is right from the start need not be set.
#[derive(Debug, Clone, Copy, Default)]
struct NewFiles {
    owner: Option<(u32, u32)>,
    /// A mode that a file gets as it was asked for.
    exact_mode: Option<u32>,
}

/// What became of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Written,
    Unchanged,
}

/// The permission bits of the owner.
const OWNER_BITS: u32 = 0o700;

impl Target {
    pub(super) fn open(
        path: &Path,
        own_folder: OwnFolder,
        options: TargetOptions,
    ) -> Result<Self, SysError> {
        Ok(Self {
            root: Directory::open(path)?,
            own_folder,
            options,
            restorer: Restorer::new(options),
            user: effective_user(),
            made: Mutex::default(),
            directories: Mutex::default(),
            first_names: Mutex::default(),
            temporary: AtomicU64::new(0),
        })
    }

    /// Makes a regular file; `fill` writes its content.
    pub(super) fn place_file(
        &self,
        header: &Header,
        mtime: Mtime,
        last: &mut LastParent,
        fill: impl FnOnce(&File) -> Result<(), ContentError>,
    ) -> Result<Outcome, Failure> {
        let (parent, name) = self.parent_of(header, last)?;
        let fail = |operation| move |error: io::Error| Failure::io(operation, &header.name, &error);
        let created = {
            let _scope = scope!("create");
            self.create(parent, &name, header)
        };
        let list = parent.lends_lists;
        let parent = &parent.directory;
        match created {
            Ok((file, given)) => {
                let filled = fill_file(&file, header, fill);
                if filled.is_err() {
                    // What is half done must not stay; the failure to tell is the first one.
                    let _ = parent.remove(&name);
                }
                filled
                    .and_then(|()| self.set_metadata(&file, header, given))
                    .map(|()| Outcome::Written)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let there = parent
                    .metadata(&name, Links::Refuse)
                    .map_err(fail("look at"))?;
                if is_same_file(&there, header.size, mtime) {
                    return Ok(Outcome::Unchanged);
                }
                self.require_replaceable(header, &there)?;
                let (temporary, file) = self.create_temporary(parent).map_err(fail("create"))?;
                let replaced = fill_file(&file, header, fill).and_then(|()| {
                    let metadata = self.set_metadata(
                        &file,
                        header,
                        Given {
                            list,
                            ..Given::default()
                        },
                    );
                    parent.rename(&temporary, &name).map_err(fail("replace"))?;
                    Ok(metadata)
                });
                if replaced.is_err() {
                    let _ = parent.remove(&temporary);
                }
                replaced?.map(|()| Outcome::Written)
            }
            Err(error) => Err(fail("create")(error)),
        }
    }

    /// Creates a file, with its mode at once if it belongs to its owner from the start.
    ///
    /// # Cost
    /// One system call; a second one where the mode is not that of the file before, to see what comes of it.
    fn create(
        &self,
        parent: &mut Parent,
        name: &[u8],
        header: &Header,
    ) -> io::Result<(File, Given)> {
        let mode = self.restorer.mode_of(header);
        let seen = parent.new_files;
        let list = parent.lends_lists;
        let owner = self.restorer.owner_of(header);
        // Nobody else may read it before it belongs to its owner.
        let has_owner = owner.is_none() || (parent.is_ours && owner == seen.owner);
        let is_plain = mode & !0o777 == 0 && header.xattrs.is_empty() && !list;
        if !has_owner || !is_plain {
            let file = parent.directory.create_file(name, 0o600)?;
            if seen.owner.is_none() {
                let found = stook_sys::metadata(&file)?;
                parent.new_files.owner = Some((found.uid, found.gid));
            }
            let owner = has_owner || owner == parent.new_files.owner;
            let mode = false;
            return Ok((file, Given { owner, mode, list }));
        }
        let file = parent.directory.create_file(name, mode)?;
        if seen.exact_mode != Some(mode) && stook_sys::metadata(&file)?.mode == mode {
            parent.new_files.exact_mode = Some(mode);
        }
        let given = Given {
            owner: true,
            mode: parent.new_files.exact_mode == Some(mode),
            list,
        };
        Ok((file, given))
    }

    /// Sets all that can be set, and returns the first failure: the content is there and stays.
    fn set_metadata(&self, file: &File, header: &Header, given: Given) -> Result<(), Failure> {
        let _scope = scope!("metadata");
        self.restorer
            .apply(&OpenTarget(file.as_fd()), header, given, || {
                stook_sys::metadata(file)
            })
            .map_err(|error| Failure::io("set the metadata of", &header.name, &error))
    }

    /// Tells what was left out.
    pub(super) fn tell_notes(&self, observer: &dyn Observer) {
        self.restorer.tell_notes(observer);
    }

    /// Makes anything but a regular file.
    pub(super) fn place_other(
        &self,
        header: &Header,
        last: &mut LastParent,
    ) -> Result<Outcome, Failure> {
        let _scope = scope!("create");
        match header.kind {
            Kind::Directory => self.place_directory(header, last),
            Kind::CharDevice | Kind::BlockDevice
                if !(self.restorer.is_root && self.options.same_permissions) =>
            {
                Err(Failure::new("create", &header.name, Cause::DeviceRefused))
            }
            _ => self.place_node(header, last),
        }
    }

    fn place_directory(&self, header: &Header, last: &mut LastParent) -> Result<Outcome, Failure> {
        let (parent, name) = self.parent_of(header, last)?;
        let path = &parent.path;
        let parent = &parent.directory;
        let outcome = match parent.create_directory(&name, 0o700) {
            Ok(()) => Outcome::Written,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.open_up(parent, &name)
                    .map_err(|error| Failure::io("open", &header.name, &error))?;
                if lock(&self.made).remove(&hash_of(&join(path, &name))) {
                    Outcome::Written
                } else {
                    Outcome::Unchanged
                }
            }
            Err(error) => return Err(Failure::io("create", &header.name, &error)),
        };
        lock(&self.directories).push(header.clone());
        Ok(outcome)
    }

    /// Makes sure that files can be made in a directory that is there already; its real mode is set at
    /// the end.
    fn open_up(&self, parent: &Directory, name: &[u8]) -> io::Result<()> {
        let directory = parent.open_beneath(name)?;
        let own = directory.own_metadata()?;
        if self.own_folder.has(own.identity()) {
            return Err(Cause::IntoArchive.into());
        }
        let mode = own.mode;
        if !self.restorer.is_root && mode & 0o700 != 0o700 {
            directory.set_own_mode(mode | 0o700)?;
        }
        Ok(())
    }

    /// A link, fifo or device: made under a temporary name if the real one is taken.
    fn place_node(&self, header: &Header, last: &mut LastParent) -> Result<Outcome, Failure> {
        let (parent, name) = self.parent_of(header, last)?;
        let list = parent.lends_lists;
        let parent = &parent.directory;
        let fail = |operation| move |error: io::Error| Failure::io(operation, &header.name, &error);
        match make_node(parent, &name, header) {
            Ok(()) => {
                self.set_node_metadata(parent, &name, header, list)
                    .map_err(fail("set the metadata of"))?;
                Ok(Outcome::Written)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let there = parent
                    .metadata(&name, Links::Refuse)
                    .map_err(fail("look at"))?;
                if is_same_node(parent, &name, &there, header) {
                    return Ok(Outcome::Unchanged);
                }
                self.require_replaceable(header, &there)?;
                let temporary = self.temporary_name();
                make_node(parent, &temporary, header).map_err(fail("create"))?;
                let metadata = self.set_node_metadata(parent, &temporary, header, list);
                let renamed = parent.rename(&temporary, &name);
                if renamed.is_err() {
                    let _ = parent.remove(&temporary);
                }
                renamed.map_err(fail("replace"))?;
                metadata.map_err(fail("set the metadata of"))?;
                Ok(Outcome::Written)
            }
            Err(error) => Err(fail("create")(error)),
        }
    }

    fn set_node_metadata(
        &self,
        directory: &Directory,
        name: &[u8],
        header: &Header,
        list: bool,
    ) -> io::Result<()> {
        let given = Given {
            list,
            ..Given::default()
        };
        let look = || directory.metadata(name, Links::Refuse);
        self.restorer
            .apply(&NamedTarget { directory, name }, header, given, look)
    }

    /// Gives an extracted file the further name that `header` says; None if there is no such file, or
    /// its name has another content in the archive.
    pub(super) fn place_link(
        &self,
        header: &Header,
        mtime: Mtime,
        has_same_content: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Outcome>, Failure> {
        let Some(first) = &header.link else {
            return Ok(None);
        };
        let first = lock(&self.first_names).get(first).unwrap_or(first).clone();
        if !has_same_content(&first) {
            return Ok(None);
        }
        let Some((first_parent, source)) = self.first_name(header, &first)? else {
            return Ok(None);
        };
        let first_name = split(&first).1;
        let is_the_file = is_same_file(&source, header.size, mtime)
            && self.restorer.is_mode_of(header, source.mode);
        if !is_the_file || first == header.name {
            return Ok(None);
        }
        let fail = |operation| move |error: io::Error| Failure::io(operation, &header.name, &error);
        let mut last = LastParent::default();
        let (parent, name) = self.parent_of(header, &mut last)?;
        let parent = &parent.directory;
        match first_parent.hard_link(first_name, parent, &name) {
            Ok(()) => return Ok(Some(Outcome::Written)),
            Err(error) if is_link_refused(&error) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fail("link")(error)),
        }
        let there = parent
            .metadata(&name, Links::Refuse)
            .map_err(fail("look at"))?;
        if there.is_same_file(&source) {
            return Ok(Some(Outcome::Unchanged));
        }
        self.require_replaceable(header, &there)?;
        let temporary = self.temporary_name();
        match first_parent.hard_link(first_name, parent, &temporary) {
            Ok(()) => {}
            Err(error) if is_link_refused(&error) => return Ok(None),
            Err(error) => return Err(fail("link")(error)),
        }
        if let Err(error) = parent.rename(&temporary, &name) {
            // Nothing half done may stay.
            let _ = parent.remove(&temporary);
            return Err(fail("replace")(error));
        }
        Ok(Some(Outcome::Written))
    }

    /// Returns the first name of a file, and the directory that it is in; None if it is not there, or not of this tree.
    fn first_name(
        &self,
        header: &Header,
        first: &[u8],
    ) -> Result<Option<(Directory, Metadata)>, Failure> {
        if safe_path(first).is_err() {
            return Ok(None);
        }
        let (parent, name) = split(first);
        let found = self.beneath(parent).and_then(|directory| {
            if self.own_folder.is(&directory)? {
                return Ok(None);
            }
            let metadata = directory.metadata(name, Links::Refuse)?;
            Ok(Some((directory, metadata)))
        });
        match found {
            Err(error) if error.kind() == ErrorKind::NotFound || is_no_directory(&error) => {
                Ok(None)
            }
            other => other
                .map_err(|error| Failure::io("look at the first name of", &header.name, &error)),
        }
    }

    /// The name got the content itself, so further names link to it.
    pub(super) fn remember_first(&self, header: &Header) {
        if let Some(first) = &header.link {
            lock(&self.first_names).insert(first.clone(), header.name.clone());
        }
    }

    /// Sets modes, owners and times of the directories, those below before those above: what is above may
    /// lose the permission to go down.
    pub(super) fn finish_directories(&self, pool: &WorkerPool<'_>, observer: &dyn Observer) {
        let depth = |header: &Header| header.name.iter().filter(|&&byte| byte == b'/').count();
        let mut directories = std::mem::take(&mut *lock(&self.directories));
        directories.sort_by_cached_key(|header| std::cmp::Reverse(depth(header)));
        for level in directories.chunk_by(|a, b| depth(a) == depth(b)) {
            pool.for_each(level.iter(), |header| {
                if observer.is_interrupted() {
                    return;
                }
                if let Err(error) = self.finish_directory(header) {
                    let failure = Failure::io("set the metadata of", &header.name, &error);
                    observer.failed(&failure);
                }
            });
        }
    }

    fn finish_directory(&self, header: &Header) -> io::Result<()> {
        let directory = self.beneath(&header.name)?;
        let there = directory.own_metadata()?;
        let list = self.restorer.has_list(&directory)?;
        let owner = self.restorer.owner_of(header);
        let given = Given {
            owner: owner.is_none_or(|owner| owner == (there.uid, there.gid)),
            mode: false,
            list,
        };
        let is_rebuilt = !given.owner || list || list_of(header).is_some();
        if is_rebuilt && there.mode & 0o077 != 0 {
            // Neither the old rights nor the new ones are meant for another owner or another list.
            directory.set_own_mode(there.mode & OWNER_BITS)?;
        }
        self.restorer
            .apply(&OpenTarget(directory.as_fd()), header, given, || Ok(there))
    }

    fn require_replaceable(&self, header: &Header, there: &Metadata) -> Result<(), Failure> {
        if self.options.no_overwrite {
            return Err(Failure::new("extract", &header.name, Cause::NotOverwritten));
        }
        if there.kind == FileKind::Directory {
            return Err(Failure::new(
                "extract",
                &header.name,
                Cause::DirectoryInPlace,
            ));
        }
        if self.own_folder.links_to(there.identity()) {
            return Err(Failure::new("extract", &header.name, Cause::ArchiveInPlace));
        }
        Ok(())
    }

    /// Opens the directory that a member belongs into; it is made if it is not there.
    fn parent_of<'l>(
        &self,
        header: &Header,
        last: &'l mut LastParent,
    ) -> Result<(&'l mut Parent, Vec<u8>), Failure> {
        let path = safe_path(&header.name)
            .map_err(|cause| Failure::new("extract", &header.name, cause))?;
        let (parent, name) = split(&path);
        let reused = last.0.take().filter(|last| last.path == parent);
        let opened = match reused {
            Some(reused) => reused,
            None => {
                let directory = self
                    .ensure(parent)
                    .map_err(|error| Failure::io("open the directory of", &header.name, &error))?;
                let own = directory.own_metadata().map_err(|error| {
                    Failure::io("look at the directory of", &header.name, &error)
                })?;
                if self.own_folder.has(own.identity()) {
                    return Err(Failure::new("extract", &header.name, Cause::IntoArchive));
                }
                let lends_lists = self.restorer.lends_lists(&directory).map_err(|error| {
                    Failure::io(
                        "read the attributes of the directory of",
                        &header.name,
                        &error,
                    )
                })?;
                Parent {
                    path: parent.to_vec(),
                    lends_lists,
                    is_ours: own.uid == self.user,
                    directory,
                    new_files: NewFiles::default(),
                }
            }
        };
        Ok((last.0.insert(opened), name.to_vec()))
    }

    fn beneath(&self, path: &[u8]) -> io::Result<Directory> {
        self.root.open_beneath(path)
    }

    fn ensure(&self, path: &[u8]) -> io::Result<Directory> {
        match self.beneath(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => return other,
        }
        let mut directory = self.root.try_clone()?;
        let mut hasher = DefaultHasher::new();
        let mut has_made = false;
        for component in path.split(|&byte| byte == b'/') {
            hash_component(&mut hasher, component);
            directory = match directory.open_beneath(component) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if !has_made && self.own_folder.is(&directory)? {
                        return Err(Cause::IntoArchive.into());
                    }
                    has_made = true;
                    match directory.create_directory(component, 0o777) {
                        Ok(()) => {
                            lock(&self.made).insert(hasher.finish());
                        }
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                        Err(error) => return Err(error),
                    }
                    directory.open_beneath(component)?
                }
                other => other?,
            };
        }
        Ok(directory)
    }

    /// A name that an earlier run with the same process number left is passed over.
    fn create_temporary(&self, parent: &Directory) -> io::Result<(Vec<u8>, File)> {
        loop {
            let name = self.temporary_name();
            match parent.create_file(&name, 0o600) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                other => return Ok((name, other?)),
            }
        }
    }

    fn temporary_name(&self) -> Vec<u8> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        format!(".stook-{}-{number}.partial", std::process::id()).into_bytes()
    }
}

/// Returns the hash of a path without empty components.
fn hash_of(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for component in path.split(|&byte| byte == b'/') {
        hash_component(&mut hasher, component);
    }
    hasher.finish()
}

fn hash_component(hasher: &mut DefaultHasher, component: &[u8]) {
    hasher.write(component);
    hasher.write(b"/");
}

fn fill_file(
    file: &File,
    header: &Header,
    fill: impl FnOnce(&File) -> Result<(), ContentError>,
) -> Result<(), Failure> {
    fill(file).map_err(|error| match error {
        ContentError::Read(error) => Failure::io("read", &header.name, &error),
        ContentError::Write(error) => Failure::io("write", &header.name, &error),
        ContentError::Interrupted => Failure::new("extract", &header.name, Cause::Interrupted),
        ContentError::WrongMd5 => Failure::new("extract", &header.name, Cause::WrongMd5),
    })
}

/// Returns the path without `.` and empty components, or why it cannot be trusted.
pub(crate) fn safe_path(name: &[u8]) -> Result<Vec<u8>, Cause> {
    if name.starts_with(b"/") {
        return Err(Cause::AbsolutePath);
    }
    if name.len() > LONGEST_PATH {
        return Err(Cause::PathTooLong);
    }
    let components = name
        .split(|&byte| byte == b'/')
        .filter(|component| !matches!(component, [] | [b'.']));
    let components: Vec<&[u8]> = components.collect();
    if components.contains(&&b".."[..]) {
        return Err(Cause::OutsideTarget);
    }
    if components.is_empty() {
        return Err(Cause::NoName);
    }
    Ok(components.join(&b'/'))
}

fn is_same_file(there: &Metadata, size: u64, mtime: Mtime) -> bool {
    there.kind == FileKind::File && there.size == size && Mtime::from(there.mtime) == mtime
}

fn is_same_node(parent: &Directory, name: &[u8], there: &Metadata, header: &Header) -> bool {
    let is_same_kind = match header.kind {
        Kind::Symlink => {
            there.kind == FileKind::Symlink
                && parent
                    .read_link(name)
                    .is_ok_and(|target| target == header.target)
        }
        Kind::Fifo => there.kind == FileKind::Fifo,
        Kind::CharDevice => there.kind == FileKind::CharDevice && there.device == header.device,
        Kind::BlockDevice => there.kind == FileKind::BlockDevice && there.device == header.device,
        _ => false,
    };
    is_same_kind && Mtime::from(there.mtime) == Mtime::from(header.mtime)
}

fn make_node(parent: &Directory, name: &[u8], header: &Header) -> io::Result<()> {
    match header.kind {
        Kind::Symlink => parent.create_symlink(name, &header.target),
        Kind::CharDevice => parent.create_node(name, FileKind::CharDevice, header.device),
        Kind::BlockDevice => parent.create_node(name, FileKind::BlockDevice, header.device),
        _ => parent.create_node(name, FileKind::Fifo, (0, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_outside_are_refused() {
        for name in ["/etc/passwd", "..", "a/../../b", "../a", "a/.."] {
            assert!(safe_path(name.as_bytes()).is_err(), "{name}");
        }
        for empty in ["", ".", "./", "././"] {
            assert!(matches!(safe_path(empty.as_bytes()), Err(Cause::NoName)));
        }
        assert_eq!(safe_path(b"./a//b/./c").unwrap(), b"a/b/c");
        assert_eq!(safe_path(b"a..b/...").unwrap(), b"a..b/...");
    }
}
