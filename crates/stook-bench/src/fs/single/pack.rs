//! Packing a tree: every file looked at and read, the tar written in blocks of 1 MiB.

use std::fs::File;
use std::path::Path;

use stook_sys::{FileKind, Metadata, create_new_file, write_all_at};
use stook_volume::{Dialect, Header, Kind, encode, padding, trailer_len};

use super::op_timer::Op;
use super::tree::{Entry, Open, Work, facts_of, go_through, read_file};
use super::{BLOCK, Worker};
use crate::error::BenchError;

/// Packs a tree into a new file.
pub(super) fn pack(worker: &mut Worker<'_>, tree: &Path, tar: &Path) -> Result<(), BenchError> {
    let file = worker.timer.time(Op::Create, || create_new_file(tar))?;
    let mut work = Pack {
        out: Out {
            tar,
            file,
            offset: 0,
            bytes: Vec::with_capacity(2 * BLOCK),
        },
        block: vec![0; BLOCK],
    };
    go_through(worker, tree, &mut work)?;
    let mut out = work.out;
    let end = out.offset + out.bytes.len() as u64;
    out.pad(trailer_len(end));
    out.write(worker)?;
    worker.close(out.file, tar, b"")
}

/// The tar, as far as it is written, and what comes next.
struct Out<'a> {
    tar: &'a Path,
    file: File,
    offset: u64,
    bytes: Vec<u8>,
}

impl Out<'_> {
    fn header(&mut self, header: &Header) -> Result<(), BenchError> {
        encode(header, Dialect::default(), &mut self.bytes).map_err(|error| {
            let source = std::io::Error::other(error.to_string());
            super::failure("write", self.tar, b"", source).into()
        })
    }

    fn pad(&mut self, zeros: u64) {
        let len = self.bytes.len() + usize::try_from(zeros).unwrap_or(0);
        self.bytes.resize(len, 0);
    }

    fn write_if_full(&mut self, worker: &mut Worker<'_>) -> Result<(), BenchError> {
        if self.bytes.len() >= BLOCK {
            self.write(worker)
        } else {
            Ok(())
        }
    }

    fn write(&mut self, worker: &mut Worker<'_>) -> Result<(), BenchError> {
        // What was encoded and copied since is our own work.
        worker.timer.unchain();
        worker.time(Op::Write, ("write", self.tar, b""), || {
            write_all_at(&self.file, &self.bytes, self.offset)
        })?;
        self.offset += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }
}

struct Pack<'a> {
    out: Out<'a>,
    block: Vec<u8>,
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

impl Work for Pack<'_> {
    fn directory(&mut self, worker: &mut Worker<'_>, at: &Open<'_>) -> Result<(), BenchError> {
        let facts = facts_of(worker, at, None)?;
        // The tree itself has no name in itself.
        if !at.path.is_empty() {
            self.out
                .header(&header(&at.path, Kind::Directory, &facts))?;
            worker.timer.unchain();
        }
        Ok(())
    }

    fn entry(
        &mut self,
        worker: &mut Worker<'_>,
        at: &Open<'_>,
        entry: &Entry<'_>,
    ) -> Result<(), BenchError> {
        let facts = facts_of(worker, at, Some(entry))?;
        if entry.kind == FileKind::Symlink {
            let read = ("read", at.root, entry.path.as_slice());
            let target = worker.time(Op::Link, read, || at.directory.read_link(entry.name))?;
            let header = header(&entry.path, Kind::Symlink, &facts);
            return self.out.header(&Header { target, ..header });
        }
        if entry.kind != FileKind::File {
            return Ok(());
        }
        let Self { out, block } = self;
        out.header(&header(&entry.path, Kind::File, &facts))?;
        worker.timer.unchain();
        read_file(worker, at, entry, block, &mut |worker, bytes, _| {
            out.bytes.extend_from_slice(bytes);
            worker.timer.unchain();
            out.write_if_full(worker)
        })?;
        out.pad(padding(facts.size));
        Ok(())
    }
}
