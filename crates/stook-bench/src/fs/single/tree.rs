//! Finding, looking at, reading, copying and removing a tree, one operation after the other.

use std::path::Path;

use stook_sys::{Directory, FileKind, Links, Metadata, NameBuffer, read_up_to_at, write_all_at};

use super::op_timer::Op;
use super::{BLOCK, Subject, Worker};
use crate::error::BenchError;

/// A directory that is being worked on.
pub(super) struct Open<'a> {
    root: &'a Path,
    directory: Directory,
    /// Its path below the root; empty for the root.
    pub(super) path: Vec<u8>,
}

/// One entry of it that is no directory.
pub(super) struct Entry<'a> {
    at: &'a Open<'a>,
    name: &'a [u8],
    /// Its path below the root.
    pub(super) path: Vec<u8>,
    pub(super) kind: FileKind,
}

/// What is found in a tree: each directory, and then its entries.
pub(super) enum Found<'a> {
    Directory(&'a Open<'a>),
    Entry(Entry<'a>),
}

/// Does something with what is found.
pub(super) type Work<'w> = dyn FnMut(&mut Worker<'_>, Found<'_>) -> Result<(), BenchError> + 'w;

/// Takes a block of a file and its offset.
type Take<'t> = dyn FnMut(&mut Worker<'_>, &[u8], u64) -> Result<(), BenchError> + 't;

/// Goes through a tree, a directory at a time; those in it come later.
pub(super) fn go_through(
    worker: &mut Worker<'_>,
    tree: &Path,
    work: &mut Work<'_>,
) -> Result<(), BenchError> {
    let root = worker.open_root(tree)?;
    let mut buffer = NameBuffer::default();
    // All names of a directory, and for each its end and its kind.
    let (mut names, mut ends) = (Vec::new(), Vec::new());
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        // The directory before this one has been closed since.
        worker.timer.unchain();
        let directory = worker.time(Op::Open, (tree, &path), || root.open_beneath(&path))?;
        let at = Open {
            root: tree,
            directory,
            path,
        };
        names.clear();
        ends.clear();
        worker.time(Op::List, at.subject(), || {
            at.directory.names(&mut buffer, |found| {
                names.extend_from_slice(found.name);
                ends.push((names.len(), found.kind));
            })
        })?;
        work(worker, Found::Directory(&at))?;
        let mut start = 0;
        for (end, kind) in &ends {
            let name = &names[start..*end];
            start = *end;
            let path = joined(&at.path, name);
            let mut entry = Entry {
                at: &at,
                name,
                path,
                kind: FileKind::File,
            };
            entry.kind = match kind {
                Some(kind) => *kind,
                None => entry.metadata(worker)?.kind,
            };
            if entry.kind == FileKind::Directory {
                waiting.push(entry.path);
            } else {
                work(worker, Found::Entry(entry))?;
            }
        }
    }
    Ok(())
}

fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    match (path, name) {
        (b"", other) | (other, b"") => other.to_vec(),
        _ => [path, b"/", name].concat(),
    }
}

impl Open<'_> {
    fn subject(&self) -> Subject<'_> {
        (self.root, &self.path)
    }

    pub(super) fn metadata(&self, worker: &mut Worker<'_>) -> Result<Metadata, BenchError> {
        worker.time(Op::Stat, self.subject(), || self.directory.own_metadata())
    }
}

impl Entry<'_> {
    fn subject(&self) -> Subject<'_> {
        (self.at.root, &self.path)
    }

    pub(super) fn metadata(&self, worker: &mut Worker<'_>) -> Result<Metadata, BenchError> {
        let look = || self.at.directory.metadata(self.name, Links::Refuse);
        worker.time(Op::Stat, self.subject(), look)
    }

    /// Returns what a symbolic link names.
    pub(super) fn link(&self, worker: &mut Worker<'_>) -> Result<Vec<u8>, BenchError> {
        worker.time(Op::Link, self.subject(), || {
            self.at.directory.read_link(self.name)
        })
    }

    /// Opens, reads and closes a file, whose blocks and their offsets are handed on. An end before the block is full needs
    /// no further look, as with `read_up_to_at`.
    pub(super) fn read(
        &self,
        worker: &mut Worker<'_>,
        block: &mut [u8],
        take: &mut Take<'_>,
    ) -> Result<(), BenchError> {
        let open = || self.at.directory.open_file(self.name, Links::Refuse);
        let file = worker.time(Op::Open, self.subject(), open)?;
        let (mut offset, mut len) = (0, block.len());
        while len == block.len() {
            len = worker.time(Op::Read, self.subject(), || {
                read_up_to_at(&file, block, offset)
            })?;
            take(worker, &block[..len], offset)?;
            offset += len as u64;
        }
        worker.close(file, self.subject())
    }
}

/// Looks at every entry.
pub(super) fn stat(worker: &mut Worker<'_>, tree: &Path) -> Result<(), BenchError> {
    go_through(worker, tree, &mut |worker, found| {
        match found {
            Found::Directory(at) => at.metadata(worker)?,
            Found::Entry(entry) => entry.metadata(worker)?,
        };
        Ok(())
    })
}

/// Reads every file.
pub(super) fn read(worker: &mut Worker<'_>, tree: &Path) -> Result<(), BenchError> {
    let mut block = vec![0; BLOCK];
    go_through(worker, tree, &mut |worker, found| match found {
        Found::Entry(entry) if entry.kind == FileKind::File => {
            entry.read(worker, &mut block, &mut |_, _, _| Ok(()))
        }
        _ => Ok(()),
    })
}

/// Copies a tree to where nothing is yet.
pub(super) fn copy(worker: &mut Worker<'_>, tree: &Path, copy: &Path) -> Result<(), BenchError> {
    let (holder, name) = holder_and_name(copy)?;
    let mut block = vec![0; BLOCK];
    let mut directories: Vec<(Vec<u8>, Metadata)> = Vec::new();
    go_through(worker, tree, &mut |worker, found| match found {
        Found::Directory(at) => {
            let metadata = at.metadata(worker)?;
            let make = || holder.create_directory(&joined(name, &at.path), metadata.mode | 0o700);
            worker.time(Op::Mkdir, (copy, &at.path), make)?;
            directories.push((at.path.clone(), metadata));
            Ok(())
        }
        Found::Entry(entry) => {
            let (target, subject) = (joined(name, &entry.path), (copy, entry.path.as_slice()));
            let facts = entry.metadata(worker)?;
            match entry.kind {
                FileKind::Symlink => {
                    let link = entry.link(worker)?;
                    worker.time(Op::Link, subject, || holder.create_symlink(&target, &link))?;
                    worker.time(Op::SetTime, subject, || {
                        holder.set_mtime(&target, facts.mtime)
                    })
                }
                FileKind::File => {
                    let create = || holder.create_file(&target, facts.mode | 0o200);
                    let file = worker.time(Op::Create, subject, create)?;
                    entry.read(
                        worker,
                        &mut block,
                        &mut |worker, bytes, offset| match bytes {
                            [] => Ok(()),
                            _ => worker
                                .time(Op::Write, subject, || write_all_at(&file, bytes, offset)),
                        },
                    )?;
                    worker.finish(file, facts.mtime, subject)
                }
                _ => Ok(()),
            }
        }
    })?;
    // Last, because new entries change the time of a directory.
    directories.iter().rev().try_for_each(|(path, metadata)| {
        let target = joined(name, path);
        worker.time(Op::SetTime, (copy, path), || {
            holder.set_mtime(&target, metadata.mtime)
        })
    })
}

/// Removes a tree.
pub(super) fn delete(worker: &mut Worker<'_>, tree: &Path) -> Result<(), BenchError> {
    let mut directories = Vec::new();
    go_through(worker, tree, &mut |worker, found| match found {
        Found::Directory(at) => {
            directories.push(at.path.clone());
            Ok(())
        }
        Found::Entry(entry) => {
            let remove = || entry.at.directory.remove(entry.name);
            worker.time(Op::Unlink, entry.subject(), remove)
        }
    })?;
    let (holder, name) = holder_and_name(tree)?;
    // What lies in a directory was found after it.
    directories.iter().rev().try_for_each(|path| {
        let remove = || holder.remove_directory(&joined(name, path));
        worker.time(Op::Rmdir, (tree, path), remove)
    })
}

fn holder_and_name(tree: &Path) -> Result<(Directory, &[u8]), BenchError> {
    let holder = Directory::open(tree.parent().unwrap_or(tree))?;
    Ok((
        holder,
        tree.file_name().unwrap_or_default().as_encoded_bytes(),
    ))
}
