//! A depth-first walk of a tree at any depth with two open directories at most.
//!
//! It goes down with `openat` and up with `..`, and checks on the way up that it is back where it came from.
//! Entries of a directory are visited in byte order, then its subdirectories are entered. One thread, no tuning:
//! this is the yardstick for the walker of `stook-tree`, not a rival.

use crate::failure::Describe;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// One entry as the walk meets it.
pub(crate) struct Visited<'a> {
    pub(crate) parent: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) path: &'a [u8],
    pub(crate) stat: &'a Stat,
}

/// What is done on the way.
pub(crate) trait Visitor {
    /// Sees every entry, a directory before it is opened.
    fn enter(&mut self, entry: &Visited<'_>) -> io::Result<()>;

    /// Sees a directory again after everything below it.
    fn leave(&mut self, _parent: BorrowedFd<'_>, _name: &CStr, _path: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

struct Frame {
    name: CString,
    path_length: usize,
    identity: (u64, u64),
    pending: Vec<CString>,
}

/// Walks everything below `root`; `root` itself is not visited.
pub(crate) fn walk(root: &Path, visitor: &mut dyn Visitor) -> io::Result<()> {
    let mut directory = open_directory(
        CWD,
        root.as_os_str().as_bytes(),
        OFlags::empty(),
        root.as_os_str().as_bytes(),
    )?;
    let mut path = Vec::new();
    let mut frames = vec![enter_directory(
        &directory,
        CString::default(),
        &mut path,
        visitor,
    )?];
    while let Some(frame) = frames.last_mut() {
        if let Some(name) = frame.pending.pop() {
            push_name(&mut path, name.to_bytes());
            directory = open_directory(&directory, name.as_bytes(), OFlags::NOFOLLOW, &path)?;
            let child = enter_directory(&directory, name, &mut path, visitor)?;
            frames.push(child);
            continue;
        }
        let Some(done) = frames.pop() else { break };
        let Some(parent) = frames.last() else { break };
        directory = open_directory(&directory, b"..", OFlags::empty(), &path)?;
        if identity(&directory, &path)? != parent.identity {
            return Err(io::Error::other("the tree was moved while it was walked"));
        }
        visitor.leave(directory.as_fd(), &done.name, &path)?;
        path.truncate(parent.path_length);
    }
    Ok(())
}

/// Opens a directory for reading; `path` is for the error text.
pub(crate) fn open_directory(
    at: impl AsFd,
    name: &[u8],
    flags: OFlags,
    path: &[u8],
) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty()).describe("open the directory", path)
}

fn identity(directory: &OwnedFd, path: &[u8]) -> io::Result<(u64, u64)> {
    let stat = fstat(directory).describe("stat", path)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn enter_directory(
    directory: &OwnedFd,
    name: CString,
    path: &mut Vec<u8>,
    visitor: &mut dyn Visitor,
) -> io::Result<Frame> {
    let path_length = path.len();
    let mut pending = Vec::new();
    for name in sorted_names(directory, path)? {
        push_name(path, name.to_bytes());
        let stat =
            statat(directory, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).describe("stat", path)?;
        visitor.enter(&Visited {
            parent: directory.as_fd(),
            name: &name,
            path,
            stat: &stat,
        })?;
        path.truncate(path_length);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            pending.push(name);
        }
    }
    pending.reverse();
    Ok(Frame {
        name,
        path_length,
        identity: identity(directory, path)?,
        pending,
    })
}

fn sorted_names(directory: &OwnedFd, path: &[u8]) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).describe("read the directory", path)? {
        let entry = entry.describe("read the directory", path)?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn push_name(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
