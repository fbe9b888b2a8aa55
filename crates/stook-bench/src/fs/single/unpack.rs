//! Unpacking a tar as GNU tar does: in its order, each entry created, written, given its time and closed.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;

use stook_sys::{Directory, Timestamp, open_file, read_up_to_at, write_all_at};
use stook_volume::{Kind, Member, ReadAt, decode};

use super::op_timer::Op;
use super::{BLOCK, Worker, failure};
use crate::error::BenchError;

/// Unpacks into a directory that is there.
pub(super) fn unpack(worker: &mut Worker<'_>, tar: &Path, tree: &Path) -> Result<(), BenchError> {
    let blocks = Blocks {
        file: worker.timer.time(Op::Open, || open_file(tar))?,
        unpacker: RefCell::new(Unpacker {
            tar,
            tree,
            root: worker.open_root(tree)?,
            worker,
            directories: Vec::new(),
        }),
        block: RefCell::new((0, Vec::new())),
    };
    let mut content = vec![0; BLOCK];
    let unreadable = |source| failure("read", (tar, b""), source);
    let mut offset = 0;
    loop {
        let member = decode(&blocks, offset);
        let member = member.map_err(|error| unreadable(io::Error::other(error.to_string())))?;
        let Some(member) = member else { break };
        // What was decoded and copied since the last operation is our own work.
        blocks.unpacker.borrow_mut().worker.timer.unchain();
        match member.header.kind {
            Kind::File => blocks.file(&member, &mut content)?,
            _ => blocks.unpacker.borrow_mut().other(&member)?,
        }
        offset = member.end;
    }
    blocks.unpacker.into_inner().set_times()
}

/// The tar, read block by block, each of them timed.
struct Blocks<'a, 'w> {
    file: File,
    unpacker: RefCell<Unpacker<'a, 'w>>,
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
            let timer = &mut self.unpacker.borrow_mut().worker.timer;
            timer.unchain();
            let len = timer.time(Op::Read, || read_up_to_at(&self.file, bytes, start))?;
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
    fn file(&self, member: &Member, content: &mut [u8]) -> Result<(), BenchError> {
        let header = &member.header;
        let file = self.unpacker.borrow_mut().create(member)?;
        let mut done = 0;
        while done < member.data_len {
            let rest = usize::try_from(member.data_len - done).unwrap_or(BLOCK);
            let wanted = &mut content[..rest.min(BLOCK)];
            let read = self.read_at(wanted, member.data_offset + done);
            let unpacker = &mut *self.unpacker.borrow_mut();
            let read = read.and_then(|len| match len {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                len => Ok(len),
            });
            let len = read.map_err(|source| failure("read", (unpacker.tar, b""), source))?;
            unpacker.worker.timer.unchain();
            let write = || write_all_at(&file, &wanted[..len], done);
            unpacker
                .worker
                .time(Op::Write, (unpacker.tree, &header.name), write)?;
            done += len as u64;
        }
        let unpacker = &mut *self.unpacker.borrow_mut();
        unpacker
            .worker
            .finish(file, header.mtime, (unpacker.tree, &header.name))
    }
}

struct Unpacker<'a, 'w> {
    tar: &'a Path,
    tree: &'a Path,
    root: Directory,
    worker: &'a mut Worker<'w>,
    /// Directories and their times, which come last.
    directories: Vec<(Vec<u8>, Timestamp)>,
}

impl Unpacker<'_, '_> {
    fn create(&mut self, member: &Member) -> Result<File, BenchError> {
        let (name, mode) = (&member.header.name, member.header.mode | 0o200);
        let create = || self.root.create_file(name, mode);
        self.worker.time(Op::Create, (self.tree, name), create)
    }

    fn other(&mut self, member: &Member) -> Result<(), BenchError> {
        let Self {
            tree, root, worker, ..
        } = self;
        let header = &member.header;
        let name = header.name.as_slice();
        match header.kind {
            Kind::Directory => {
                if !name.is_empty() && name != b"." {
                    let make = || root.create_directory(name, header.mode | 0o700);
                    worker.time(Op::Mkdir, (tree, name), make)?;
                }
                self.directories.push((name.to_vec(), header.mtime));
                Ok(())
            }
            Kind::Symlink => {
                let make = || root.create_symlink(name, &header.target);
                worker.time(Op::Link, (tree, name), make)?;
                worker.time(Op::SetTime, (tree, name), || {
                    root.set_mtime(name, header.mtime)
                })
            }
            Kind::HardLink => {
                let make = || root.hard_link(&header.target, root, name);
                worker.time(Op::Link, (tree, name), make)
            }
            _ => Ok(()),
        }
    }

    fn set_times(self) -> Result<(), BenchError> {
        self.directories.iter().rev().try_for_each(|(name, mtime)| {
            let name: &[u8] = if name.is_empty() { b"." } else { name };
            let set = || self.root.set_mtime(name, *mtime);
            self.worker.time(Op::SetTime, (self.tree, name), set)
        })
    }
}
