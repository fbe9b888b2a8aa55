//! Packing a tree: every file looked at and read, the tar written in blocks of 1 MiB.

use std::fs::File;
use std::io;
use std::path::Path;

use stook_sys::{FileKind, Metadata, create_new_file, write_all_at};
use stook_volume::{Dialect, Header, Kind, encode, padding, trailer_len};

use super::op_timer::Op;
use super::tree::{Found, go_through};
use super::{BLOCK, Worker, failure};
use crate::error::BenchError;

/// Packs a tree into a new file.
pub(super) fn pack(worker: &mut Worker<'_>, tree: &Path, tar: &Path) -> Result<(), BenchError> {
    let mut out = Out {
        tar,
        file: worker.timer.time(Op::Create, || create_new_file(tar))?,
        offset: 0,
        bytes: Vec::with_capacity(2 * BLOCK),
    };
    let mut block = vec![0; BLOCK];
    go_through(worker, tree, &mut |worker, found| match found {
        // The tree itself has no name in itself.
        Found::Directory(at) if at.path.is_empty() => at.metadata(worker).map(drop),
        Found::Directory(at) => {
            let facts = at.metadata(worker)?;
            out.header(worker, &header(&at.path, Kind::Directory, &facts))
        }
        Found::Entry(entry) => {
            let facts = entry.metadata(worker)?;
            match entry.kind {
                FileKind::Symlink => {
                    let target = entry.link(worker)?;
                    let header = header(&entry.path, Kind::Symlink, &facts);
                    out.header(worker, &Header { target, ..header })
                }
                FileKind::File => {
                    out.header(worker, &header(&entry.path, Kind::File, &facts))?;
                    entry.read(worker, &mut block, &mut |worker, bytes, _| {
                        out.add(worker, bytes)
                    })?;
                    out.pad(padding(facts.size));
                    Ok(())
                }
                _ => Ok(()),
            }
        }
    })?;
    out.pad(trailer_len(out.offset + out.bytes.len() as u64));
    out.write(worker)?;
    worker.close(out.file, (tar, b""))
}

/// The tar, as far as it is written, and what comes next. What is encoded and copied is our own work, and not counted.
struct Out<'a> {
    tar: &'a Path,
    file: File,
    offset: u64,
    bytes: Vec<u8>,
}

impl Out<'_> {
    fn header(&mut self, worker: &mut Worker<'_>, header: &Header) -> Result<(), BenchError> {
        let encoded = encode(header, Dialect::default(), &mut self.bytes);
        worker.timer.unchain();
        encoded.map_err(|error| {
            let source = io::Error::other(error.to_string());
            failure("write", (self.tar, b""), source)
        })
    }

    fn add(&mut self, worker: &mut Worker<'_>, bytes: &[u8]) -> Result<(), BenchError> {
        self.bytes.extend_from_slice(bytes);
        worker.timer.unchain();
        if self.bytes.len() < BLOCK {
            return Ok(());
        }
        self.write(worker)
    }

    fn pad(&mut self, zeros: u64) {
        let len = self.bytes.len() + usize::try_from(zeros).unwrap_or(0);
        self.bytes.resize(len, 0);
    }

    fn write(&mut self, worker: &mut Worker<'_>) -> Result<(), BenchError> {
        worker.timer.unchain();
        let write = || write_all_at(&self.file, &self.bytes, self.offset);
        worker.time(Op::Write, (self.tar, b""), write)?;
        self.offset += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }
}

fn header(path: &[u8], kind: Kind, facts: &Metadata) -> Header {
    Header {
        name: path.to_vec(),
        kind,
        mode: facts.mode,
        uid: facts.uid.into(),
        gid: facts.gid.into(),
        size: if kind == Kind::File { facts.size } else { 0 },
        mtime: facts.mtime,
        ..Header::default()
    }
}
