//! Puts a [`Tree`] on disk, fd-relative, at any depth.
//!
//! Three passes: everything but hard links, then hard links, then the metadata of directories, because each pass
//! would change the modification times the next one sets. Going up is `openat("..")`, so the number of open files
//! does not grow with the depth.

use super::{Content, Entry, ROOT, Tree};
use crate::failure::{Describe, shown};
use crate::walk::open_directory;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chmodat,
    chownat, ftruncate, linkat, lsetxattr, makedev, mkdirat, mknodat, openat, symlinkat, unlinkat,
    utimensat,
};
use rustix::io::Errno;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

impl Tree {
    /// Writes the tree into `root`, which is made if it is missing.
    ///
    /// Directories that exist are kept; anything else in the way of an entry is removed first, never written
    /// through. So a second tree can be laid over a first one.
    ///
    /// # Errors
    /// When the tree was built with a wrong path (`InvalidInput`), or at the first failing system call.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        if let Some(fault) = self.faults.first() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, fault.clone()));
        }
        let shown_root = root.as_os_str().as_bytes();
        match mkdirat(CWD, root, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error).describe("make the directory", shown_root),
        }
        let root = open_directory(CWD, shown_root, OFlags::empty(), shown_root)?;
        self.traverse(&root, &mut Create)?;
        self.write_hard_links(&root)?;
        self.traverse(&root, &mut Finish)?;
        set_metadata(
            open_directory(&root, b".", OFlags::empty(), b".")?.as_fd(),
            b".",
            &self.nodes[ROOT].entry,
        )
    }

    /// Visits nodes from the root on: each before what is below it, each directory once more after that.
    fn traverse(&self, root: &OwnedFd, pass: &mut dyn Pass) -> io::Result<()> {
        let mut directory = open_directory(root, b".", OFlags::empty(), b".")?;
        let mut stack = vec![(ROOT, 0)];
        while let Some((number, position)) = stack.last_mut() {
            let node = &self.nodes[*number];
            if let Some(child_number) = node.children.get(*position).copied() {
                *position += 1;
                let child = &self.nodes[child_number];
                let described = |error| self.located(child_number, &error);
                pass.before(directory.as_fd(), &child.name, &child.entry)
                    .map_err(described)?;
                if child.entry.content == Content::Directory {
                    directory = open_directory(&directory, &child.name, OFlags::NOFOLLOW, b"")
                        .map_err(described)?;
                    stack.push((child_number, 0));
                }
                continue;
            }
            let done = *number;
            stack.pop();
            if done != ROOT {
                let described = |error| self.located(done, &error);
                directory =
                    open_directory(&directory, b"..", OFlags::empty(), b"..").map_err(described)?;
                pass.after(directory.as_fd(), &node.name, &node.entry)
                    .map_err(described)?;
            }
        }
        Ok(())
    }

    fn located(&self, number: usize, error: &io::Error) -> io::Error {
        io::Error::new(
            error.kind(),
            format!("`{}`: {error}", shown(&self.path_of(number))),
        )
    }

    fn write_hard_links(&self, root: &OwnedFd) -> io::Result<()> {
        for (number, node) in self.nodes.iter().enumerate() {
            let Content::HardLink(target) = &node.entry.content else {
                continue;
            };
            let path = self.path_of(number);
            let (from, from_name) = open_parent(root, target)?;
            let (to, to_name) = open_parent(root, &path)?;
            replacing(to.as_fd(), to_name, || {
                linkat(&from, from_name, &to, to_name, AtFlags::empty())
            })
            .describe("make the hard link", &path)?;
        }
        Ok(())
    }
}

/// Tells whether files in `directory` can have `user.` extended attributes.
#[must_use]
pub fn supports_xattrs(directory: &Path) -> bool {
    let Ok(scratch) = crate::TempDir::new_in(directory) else {
        return false;
    };
    lsetxattr(scratch.path(), "user.stook", b"1", XattrFlags::empty()).is_ok()
}

trait Pass {
    fn before(&mut self, parent: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> io::Result<()>;
    fn after(&mut self, parent: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> io::Result<()>;
}

struct Create;

impl Pass for Create {
    fn before(&mut self, parent: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> io::Result<()> {
        create(parent, name, entry)?;
        match entry.content {
            Content::Directory | Content::HardLink(_) => Ok(()),
            _ => set_metadata(parent, name, entry),
        }
    }

    fn after(&mut self, _: BorrowedFd<'_>, _: &[u8], _: &Entry) -> io::Result<()> {
        Ok(())
    }
}

struct Finish;

impl Pass for Finish {
    fn before(&mut self, _: BorrowedFd<'_>, _: &[u8], _: &Entry) -> io::Result<()> {
        Ok(())
    }

    fn after(&mut self, parent: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> io::Result<()> {
        set_metadata(parent, name, entry)
    }
}

fn create(parent: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> io::Result<()> {
    let node = |kind, device| {
        replacing(parent, name, || {
            mknodat(parent, name, kind, Mode::RUSR | Mode::WUSR, device)
        })
        .describe("make", name)
    };
    match &entry.content {
        Content::File(bytes) => write_file(parent, name, &[(0, bytes.clone())], bytes.len() as u64),
        Content::Sparse { extents, size } => write_file(parent, name, extents, *size),
        Content::Directory => create_directory(parent, name),
        Content::Symlink(target) => {
            replacing(parent, name, || symlinkat(target.as_slice(), parent, name))
                .describe("make the symbolic link", name)
        }
        Content::HardLink(_) => Ok(()),
        Content::Fifo => node(FileType::Fifo, 0),
        Content::Socket => node(FileType::Socket, 0),
        Content::CharacterDevice(major, minor) => {
            node(FileType::CharacterDevice, makedev(*major, *minor))
        }
        Content::BlockDevice(major, minor) => node(FileType::BlockDevice, makedev(*major, *minor)),
    }
}

fn create_directory(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let made = mkdirat(parent, name, Mode::RWXU);
    let stands = open_directory(parent, name, OFlags::NOFOLLOW, name);
    match made {
        Err(Errno::EXIST) if stands.is_ok() => Ok(()),
        Err(Errno::EXIST) => {
            unlinkat(parent, name, AtFlags::empty()).describe("replace", name)?;
            mkdirat(parent, name, Mode::RWXU).describe("make the directory", name)
        }
        made => made.describe("make the directory", name),
    }
}

fn write_file(
    parent: BorrowedFd<'_>,
    name: &[u8],
    extents: &[(u64, Vec<u8>)],
    size: u64,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = replacing(parent, name, || {
        openat(parent, name, flags, Mode::RUSR | Mode::WUSR)
    })
    .describe("make the file", name)?;
    let file = std::fs::File::from(file);
    for (offset, bytes) in extents {
        file.write_all_at(bytes, *offset).describe("write", name)?;
    }
    ftruncate(&file, size).describe("set the length of", name)
}

/// Runs `make`; when something is in its way, removes that and runs it again.
fn replacing<T>(
    parent: BorrowedFd<'_>,
    name: &[u8],
    make: impl Fn() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    match make() {
        Err(Errno::EXIST) => {
            unlinkat(parent, name, AtFlags::empty())?;
            make()
        }
        made => made,
    }
}

fn set_metadata(parent: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> io::Result<()> {
    if let Some((user, group)) = entry.owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        chownat(
            parent,
            name,
            Some(user),
            Some(group),
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .describe("change the owner of", name)?;
    }
    for (key, value) in &entry.xattrs {
        // There is no lsetxattrat before Linux 6.13; /proc names the directory at any depth.
        let mut path = format!("/proc/self/fd/{}/", parent.as_raw_fd()).into_bytes();
        path.extend_from_slice(name);
        lsetxattr(path.as_slice(), key.as_slice(), value, XattrFlags::empty())
            .describe("set an attribute of", name)?;
    }
    if !matches!(entry.content, Content::Symlink(_)) {
        chmodat(
            parent,
            name,
            Mode::from_raw_mode(entry.mode),
            AtFlags::empty(),
        )
        .describe("change the mode of", name)?;
    }
    let time = Timespec {
        tv_sec: entry.mtime.0,
        tv_nsec: entry.mtime.1.into(),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW).describe("set the time of", name)
}

/// Opens the directory that holds `path`, one name at a time, and returns it with the last name.
fn open_parent<'a>(root: &OwnedFd, path: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
    let mut directory = open_directory(root, b".", OFlags::empty(), b".")?;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            return Ok((directory, name));
        }
        directory = open_directory(&directory, name, OFlags::NOFOLLOW, path)?;
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "a hard link needs a target",
    ))
}
