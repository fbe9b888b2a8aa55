//! The tree that `extract` writes into.
//!
//! A member's name is data from outside. It is refused if it is absolute or has a `..`; directories are
//! opened by [`Directory::open_beneath`], which follows no symbolic link; the last
//! component is only ever created anew or renamed over. So no name and no link in a volume, and none
//! that another process swaps in meanwhile, leads out of the target.
//!
//! - `parents.rs`: the directory that a member belongs into; `made.rs`: those that are made before their own member comes.
//! - `directories.rs`: directories as members, and what they get at the end; `links.rs`: further names of files.

mod directories;
mod last_parent;
mod links;
mod made;
mod parents;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_index::Mtime;
use stook_sys::{Directory, FileKind, Links, Metadata, SysError, effective_user};
use stook_timers::scope;
use stook_tree::{NamedTarget, OpenTarget};
use stook_volume::{Header, Kind};

use super::content::ContentError;
use super::metadata::{Given, Restorer, TargetOptions};
use super::own_folder::OwnFolder;
use crate::cause::Cause;
use crate::observer::{Failure, Observer};
pub(in crate::extract) use last_parent::LastParent;
use last_parent::Parent;
use made::MadeDirectories;
pub(in crate::extract) use made::NamesWithoutContent;

pub(in crate::extract) struct Target {
    root: Directory,
    own_folder: OwnFolder,
    options: TargetOptions,
    restorer: Restorer,
    user: u32,
    made: MadeDirectories,
    /// Directories of the archive, whose facts are set at the end.
    directories: Mutex<Vec<Header>>,
    /// For a file with several names whose first one is not here: the name that took its place.
    first_names: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    temporary: AtomicU64,
}

/// What became of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::extract) enum Outcome {
    Written,
    Unchanged,
}

impl Target {
    pub(in crate::extract) fn open(
        path: &Path,
        own_folder: OwnFolder,
        options: TargetOptions,
        expected: NamesWithoutContent,
    ) -> Result<Self, SysError> {
        Ok(Self {
            root: Directory::open(path)?,
            own_folder,
            options,
            restorer: Restorer::new(options),
            user: effective_user(),
            made: MadeDirectories::new(expected),
            directories: Mutex::default(),
            first_names: Mutex::default(),
            temporary: AtomicU64::new(0),
        })
    }

    /// Makes a regular file; `fill` writes its content.
    pub(in crate::extract) fn place_file(
        &self,
        header: &Header,
        mtime: Mtime,
        last: &mut LastParent<'_>,
        fill: impl FnOnce(&File) -> Result<(), ContentError>,
    ) -> Result<Outcome, Failure> {
        let (mut parent, name) = self.parent_of(header, last)?;
        let fail = |operation| move |error: io::Error| Failure::io(operation, &header.name, &error);
        let created = {
            let _scope = scope!("create");
            self.create(&mut parent, &name, header)
        };
        let list = parent.facts.lends_lists;
        let parent = parent.directory;
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
                if is_same_file(&there, header.size, mtime, self.options.time_tolerance) {
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
        parent: &mut Parent<'_>,
        name: &[u8],
        header: &Header,
    ) -> io::Result<(File, Given)> {
        let mode = self.restorer.mode_of(header);
        let seen = parent.facts.new_files;
        let list = parent.facts.lends_lists;
        let owner = self.restorer.owner_of(header);
        // Nobody else may read it before it belongs to its owner.
        let has_owner = owner.is_none() || (parent.facts.is_ours && owner == seen.owner);
        let is_plain = mode & !0o777 == 0 && header.xattrs.is_empty() && !list;
        if !has_owner || !is_plain {
            let file = parent.directory.create_file(name, 0o600)?;
            if seen.owner.is_none() {
                let found = stook_sys::metadata(&file)?;
                parent.facts.new_files.owner = Some((found.uid, found.gid));
            }
            let owner = has_owner || owner == parent.facts.new_files.owner;
            let mode = false;
            return Ok((file, Given { owner, mode, list }));
        }
        let file = parent.directory.create_file(name, mode)?;
        if seen.exact_mode != Some(mode) && stook_sys::metadata(&file)?.mode == mode {
            parent.facts.new_files.exact_mode = Some(mode);
        }
        let given = Given {
            owner: true,
            mode: parent.facts.new_files.exact_mode == Some(mode),
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
    pub(in crate::extract) fn tell_notes(&self, observer: &dyn Observer) {
        self.restorer.tell_notes(observer);
    }

    /// Makes anything but a regular file.
    pub(in crate::extract) fn place_other(
        &self,
        header: &Header,
        last: &mut LastParent<'_>,
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

    /// A link, fifo or device: made under a temporary name if the real one is taken.
    fn place_node(&self, header: &Header, last: &mut LastParent<'_>) -> Result<Outcome, Failure> {
        let (parent, name) = self.parent_of(header, last)?;
        let list = parent.facts.lends_lists;
        let parent = parent.directory;
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
                if is_same_node(parent, &name, &there, header, self.options.time_tolerance) {
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

fn is_same_file(there: &Metadata, size: u64, mtime: Mtime, time_tolerance: u64) -> bool {
    there.kind == FileKind::File
        && there.size == size
        && Mtime::from(there.mtime).0.abs_diff(mtime.0) <= time_tolerance
}

fn is_same_node(
    parent: &Directory,
    name: &[u8],
    there: &Metadata,
    header: &Header,
    time_tolerance: u64,
) -> bool {
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
    let difference = Mtime::from(there.mtime)
        .0
        .abs_diff(Mtime::from(header.mtime).0);
    is_same_kind && difference <= time_tolerance
}

fn make_node(parent: &Directory, name: &[u8], header: &Header) -> io::Result<()> {
    match header.kind {
        Kind::Symlink => parent.create_symlink(name, &header.target),
        Kind::CharDevice => parent.create_node(name, FileKind::CharDevice, header.device),
        Kind::BlockDevice => parent.create_node(name, FileKind::BlockDevice, header.device),
        _ => parent.create_node(name, FileKind::Fifo, (0, 0)),
    }
}
