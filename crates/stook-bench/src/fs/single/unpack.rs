//! Unpacking a tar as GNU tar does: in its order, each entry created, written, given its time and closed.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;

use stook_sys::{Directory, Timestamp, open_file, read_up_to_at, set_mtime, write_all_at};
use stook_volume::{Kind, Member, ReadAt, decode};

use super::op_timer::Op;
use super::{BLOCK, Worker, open_root};
use crate::error::BenchError;

/// Unpacks into a directory that is there.
pub(super) fn unpack(worker: &mut Worker<'_>, tar: &Path, tree: &Path) -> Result<(), BenchError> {
    let file = worker.timer.time(Op::Open, || open_file(tar))?;
    let root = open_root(worker, tree)?;
    let blocks = Blocks {
        file,
        worker: RefCell::new(worker),
        block: RefCell::new((0, Vec::new())),
    };
    let mut unpacker = Unpacker {
        tar,
        tree,
        root,
        content: vec![0; BLOCK],
        directories: Vec::new(),
    };
    let mut offset = 0;
    while let Some(member) = decode(&blocks, offset).map_err(|error| unreadable(tar, &error))? {
        unpacker.member(&blocks, &member)?;
        offset = member.end;
    }
    unpacker.set_times(&blocks)
}

fn unreadable(tar: &Path, error: &stook_volume::VolumeError) -> BenchError {
    super::failure("read", tar, b"", io::Error::other(error.to_string())).into()
}

/// The tar, read block by block, each of them timed.
struct Blocks<'a, 'w> {
    file: File,
    worker: RefCell<&'a mut Worker<'w>>,
    /// Where the block in memory begins, and its bytes.
    block: RefCell<(u64, Vec<u8>)>,
}

impl ReadAt for Blocks<'_, '_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut block = self.block.borrow_mut();
        let start = offset - offset % BLOCK as u64;
        if block.0 != start || block.1.is_empty() {
            block.0 = start;
            block.1.resize(BLOCK, 0);
            let bytes = &mut block.1;
            let read = || read_up_to_at(&self.file, bytes, start);
            let mut worker = self.worker.borrow_mut();
            worker.timer.unchain();
            let len = worker.timer.time(Op::Read, read)?;
            block.1.truncate(len);
        }
        let at = usize::try_from(offset - start).unwrap_or(usize::MAX);
        let rest = block.1.get(at..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

impl Blocks<'_, '_> {
    fn time<R>(
        &self,
        op: Op,
        what: (&'static str, &Path, &[u8]),
        operation: impl FnOnce() -> io::Result<R>,
    ) -> Result<R, BenchError> {
        self.worker.borrow_mut().time(op, what, operation)
    }
}

struct Unpacker<'a> {
    tar: &'a Path,
    tree: &'a Path,
    root: Directory,
    content: Vec<u8>,
    /// Directories and their times, which come last.
    directories: Vec<(Vec<u8>, Timestamp)>,
}

impl Unpacker<'_> {
    fn member(&mut self, blocks: &Blocks<'_, '_>, member: &Member) -> Result<(), BenchError> {
        let header = &member.header;
        let (tree, name) = (self.tree, header.name.as_slice());
        // What was decoded since is our own work.
        blocks.worker.borrow_mut().timer.unchain();
        match header.kind {
            Kind::Directory => {
                if !name.is_empty() && name != b"." {
                    blocks.time(Op::Mkdir, ("create", tree, name), || {
                        self.root.create_directory(name, header.mode | 0o700)
                    })?;
                }
                self.directories.push((name.to_vec(), header.mtime));
                Ok(())
            }
            Kind::Symlink => {
                blocks.time(Op::Link, ("create", tree, name), || {
                    self.root.create_symlink(name, &header.target)
                })?;
                self.set_time(blocks, name, header.mtime)
            }
            Kind::HardLink => blocks.time(Op::Link, ("create", tree, name), || {
                self.root.hard_link(&header.target, &self.root, name)
            }),
            Kind::File => self.file(blocks, member),
            _ => Ok(()),
        }
    }

    fn file(&mut self, blocks: &Blocks<'_, '_>, member: &Member) -> Result<(), BenchError> {
        let (tree, name) = (self.tree, member.header.name.as_slice());
        let file = blocks.time(Op::Create, ("create", tree, name), || {
            self.root.create_file(name, member.header.mode | 0o200)
        })?;
        let mut done = 0;
        while done < member.data_len {
            let wanted =
                usize::try_from(member.data_len - done).map_or(BLOCK, |rest| rest.min(BLOCK));
            let content = &mut self.content[..wanted];
            let read = blocks.read_at(content, member.data_offset + done);
            let len = read.map_err(|source| super::failure("read", self.tar, b"", source))?;
            if len == 0 {
                let cut = io::ErrorKind::UnexpectedEof.into();
                return Err(super::failure("read", self.tar, b"", cut).into());
            }
            // The content was copied since.
            blocks.worker.borrow_mut().timer.unchain();
            blocks.time(Op::Write, ("write", tree, name), || {
                write_all_at(&file, &content[..len], done)
            })?;
            done += len as u64;
        }
        blocks.time(Op::SetTime, ("set the time of", tree, name), || {
            set_mtime(&file, member.header.mtime)
        })?;
        blocks.worker.borrow_mut().close(file, tree, name)
    }

    fn set_times(&self, blocks: &Blocks<'_, '_>) -> Result<(), BenchError> {
        for (name, mtime) in self.directories.iter().rev() {
            let name: &[u8] = if name.is_empty() { b"." } else { name };
            self.set_time(blocks, name, *mtime)?;
        }
        Ok(())
    }

    fn set_time(
        &self,
        blocks: &Blocks<'_, '_>,
        name: &[u8],
        mtime: Timestamp,
    ) -> Result<(), BenchError> {
        let what = ("set the time of", self.tree, name);
        blocks.time(Op::SetTime, what, || self.root.set_mtime(name, mtime))
    }
}
