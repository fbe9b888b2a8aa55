//! The work itself: each request as the same system call in the source.
//!
//! Permissions are checked by the kernel before it asks (mount option `default_permissions`). What it asks for is done
//! with the rights of the server, and new entries are given to who asked.

use super::attributes::{attributes, timespec};
use super::handles::{Directory, Handles};
use super::inodes::{Held, Inodes, path_of};
use fuser::{FileAttr, TimeOrNow};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Stat, StatVfs, Timestamps, Uid,
    chmodat, chownat, fchmod, fstat, fstatvfs, fsync, ftruncate, linkat, mkdirat, mknodat, openat,
    readlinkat, renameat_with, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

pub(super) type Result<T> = std::result::Result<T, Errno>;

/// Flags of `open` that mean something in the source; the kernel has seen to the others, `O_APPEND` included.
const OPEN_FLAGS: OFlags = OFlags::ACCMODE
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::NOATIME);

/// A tree that is passed on.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) inodes: Inodes,
    pub(super) files: Handles<OwnedFd>,
    pub(super) directories: Handles<Directory>,
    root: OwnedFd,
    user: u32,
    group: u32,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) user: u32,
    pub(super) group: u32,
}

/// What is changed of an entry.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) mode: Option<u32>,
    pub(super) owner: (Option<u32>, Option<u32>),
    pub(super) size: Option<u64>,
    pub(super) times: [Option<TimeOrNow>; 2],
}

impl Source {
    pub(super) fn new(source: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            inodes: Inodes::new(source)?,
            files: Handles::default(),
            directories: Handles::default(),
            root: openat(CWD, source, flags, Mode::empty())?,
            user: geteuid().as_raw(),
            group: getegid().as_raw(),
        })
    }

    fn attributes(&self, stat: &Stat) -> Result<FileAttr> {
        attributes(stat, self.inodes.node(stat.st_ino))
    }

    pub(super) fn lookup(&self, parent: u64, name: &OsStr) -> Result<FileAttr> {
        let directory = self.inodes.directory(parent)?;
        self.attributes(&self.inodes.enter(&directory, name)?)
    }

    pub(super) fn getattr(&self, node: u64, file: Option<u64>) -> Result<FileAttr> {
        let stat = match file {
            Some(file) => fstat(&*self.files.get(file)?)?,
            None => self.inodes.stat(node)?,
        };
        self.attributes(&stat)
    }

    pub(super) fn setattr(
        &self,
        caller: Caller,
        node: u64,
        file: Option<u64>,
        changes: &Changes,
    ) -> Result<FileAttr> {
        let held = self.inodes.hold(node)?;
        if changes.owner != (None, None) {
            let (user, group) = changes.owner;
            own(&held, user, group)?;
        }
        if let Some(mode) = changes.mode {
            chmodat(
                CWD,
                path_of(&held),
                Mode::from_raw_mode(mode & 0o7777),
                AtFlags::empty(),
            )?;
        }
        if let Some(size) = changes.size {
            match file {
                Some(file) => truncate(&*self.files.get(file)?, size, caller)?,
                None => truncate(&self.inodes.open(node, OFlags::WRONLY)?, size, caller)?,
            }
        }
        let [last_access, last_modification] = changes.times.map(timespec);
        if changes.times != [None, None] {
            let times = Timestamps {
                last_access,
                last_modification,
            };
            utimensat(&held, "", &times, AtFlags::EMPTY_PATH)?;
        }
        self.attributes(&fstat(&held)?)
    }

    pub(super) fn readlink(&self, node: u64) -> Result<Vec<u8>> {
        Ok(readlinkat(&self.inodes.hold(node)?, "", Vec::new())?.into_bytes())
    }

    pub(super) fn mknod(
        &self,
        caller: Caller,
        parent: u64,
        name: &OsStr,
        mode: u32,
        device: u32,
    ) -> Result<FileAttr> {
        let directory = self.inodes.directory(parent)?;
        let kind = FileType::from_raw_mode(mode);
        mknodat(
            &directory,
            name,
            kind,
            Mode::from_raw_mode(mode & 0o7777),
            device.into(),
        )?;
        self.made(caller, &directory, name, Some(mode))
    }

    pub(super) fn mkdir(
        &self,
        caller: Caller,
        parent: u64,
        name: &OsStr,
        mode: u32,
    ) -> Result<FileAttr> {
        let directory = self.inodes.directory(parent)?;
        mkdirat(&directory, name, Mode::from_raw_mode(mode & 0o7777))?;
        self.made(caller, &directory, name, Some(mode))
    }

    pub(super) fn symlink(
        &self,
        caller: Caller,
        parent: u64,
        name: &OsStr,
        target: &Path,
    ) -> Result<FileAttr> {
        let directory = self.inodes.directory(parent)?;
        symlinkat(target, &directory, name)?;
        self.made(caller, &directory, name, None)
    }

    pub(super) fn create(
        &self,
        caller: Caller,
        parent: u64,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Result<(FileAttr, u64)> {
        let directory = self.inodes.directory(parent)?;
        let asked = open_flags(flags);
        let kept = asked & (OPEN_FLAGS | OFlags::EXCL | OFlags::TRUNC);
        let flags = kept | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&directory, name, flags, Mode::from_raw_mode(mode & 0o7777))?;
        let attributes = self.made(caller, &directory, name, Some(mode))?;
        Ok((attributes, self.files.insert(file)))
    }

    /// Gives a new entry to who asked, sets the bits of its mode that the umask of this process took, and enters it.
    fn made(
        &self,
        caller: Caller,
        directory: &Held,
        name: &OsStr,
        mode: Option<u32>,
    ) -> Result<FileAttr> {
        if (caller.user, caller.group) != (self.user, self.group) {
            let inherits = Mode::from_raw_mode(fstat(directory)?.st_mode).contains(Mode::SGID);
            let group = (!inherits).then(|| Gid::from_raw(caller.group));
            let user = Some(Uid::from_raw(caller.user));
            chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        let mut stat = self.inodes.enter(directory, name)?;
        if let Some(mode) = mode {
            let inherited = stat.st_mode & Mode::SGID.as_raw_mode();
            let wanted = mode & 0o7777 | inherited;
            if stat.st_mode & 0o7777 != wanted {
                let mode = Mode::from_raw_mode(wanted);
                chmodat(directory, name, mode, AtFlags::empty())?;
                stat.st_mode = stat.st_mode & !0o7777 | wanted;
            }
        }
        self.attributes(&stat)
    }

    pub(super) fn remove(&self, parent: u64, name: &OsStr, flags: AtFlags) -> Result<()> {
        let directory = self.inodes.directory(parent)?;
        let pinned = match flags.contains(AtFlags::REMOVEDIR) {
            true => None,
            false => self.inodes.pin(&directory, name),
        };
        let removed = unlinkat(&directory, name, flags);
        if removed.is_err() {
            self.inodes.settle(pinned, &directory, name);
        }
        removed
    }

    pub(super) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: u32,
    ) -> Result<()> {
        let flags = RenameFlags::from_bits_retain(flags);
        let old = self.inodes.directory(parent)?;
        let new = self.inodes.directory(new_parent)?;
        let moved = self.inodes.pin(&old, name);
        let in_the_way = self.inodes.pin(&new, new_name);
        let renamed = renameat_with(&old, name, &new, new_name, flags);
        if renamed.is_err() {
            self.inodes.settle(moved, &old, name);
            self.inodes.settle(in_the_way, &new, new_name);
            return renamed;
        }
        self.inodes.settle(moved, &new, new_name);
        if flags.contains(RenameFlags::EXCHANGE) {
            self.inodes.settle(in_the_way, &old, name);
        }
        Ok(())
    }

    pub(super) fn link(&self, node: u64, parent: u64, name: &OsStr) -> Result<FileAttr> {
        let directory = self.inodes.directory(parent)?;
        let held = self.inodes.hold(node)?;
        let flags = AtFlags::SYMLINK_FOLLOW;
        linkat(CWD, path_of(&held), &directory, name, flags)?;
        self.attributes(&self.inodes.enter(&directory, name)?)
    }

    pub(super) fn open(&self, caller: Caller, node: u64, flags: i32) -> Result<u64> {
        let flags = open_flags(flags);
        let file = self.inodes.open(node, flags & OPEN_FLAGS)?;
        if flags.contains(OFlags::TRUNC) {
            truncate(&file, 0, caller)?;
        }
        Ok(self.files.insert(file))
    }

    pub(super) fn opendir(&self, node: u64) -> Result<u64> {
        let held = self.inodes.directory(node)?;
        Ok(self.directories.insert(Directory::open(&held)?))
    }

    pub(super) fn fsyncdir(&self, directory: u64) -> Result<()> {
        fsync(&self.directories.get(directory)?.file)
    }

    pub(super) fn statfs(&self) -> Result<StatVfs> {
        fstatvfs(&self.root)
    }
}

fn open_flags(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags.cast_unsigned())
}

fn own(held: &OwnedFd, user: Option<u32>, group: Option<u32>) -> Result<()> {
    let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
    chownat(held, "", user, group, AtFlags::EMPTY_PATH)
}

/// Cuts or extends a file. The server is root and could keep set-id bits; an unprivileged caller could not.
fn truncate(file: &OwnedFd, size: u64, caller: Caller) -> Result<()> {
    if caller.user != 0 {
        drop_set_id(file)?;
    }
    ftruncate(file, size)
}

/// Takes the set-user-id bit off a file, and the set-group-id bit if its group may run it.
pub(super) fn drop_set_id(file: &OwnedFd) -> Result<()> {
    let mode = Mode::from_raw_mode(fstat(file)?.st_mode);
    let mut dropped = Mode::SUID;
    if mode.contains(Mode::XGRP) {
        dropped |= Mode::SGID;
    }
    if !mode.intersects(dropped) {
        return Ok(());
    }
    let kept = mode.difference(dropped).as_raw_mode() & 0o7777;
    fchmod(file, Mode::from_raw_mode(kept))
}
