//! Finding, looking at, reading, copying and removing a tree, one operation after the other.

use std::path::Path;

use stook_sys::{
    Directory, FileKind, Links, Metadata, NameBuffer, read_up_to_at, set_mtime, write_all_at,
};

use super::op_timer::Op;
use super::{BLOCK, Worker, open_root};
use crate::error::BenchError;

/// The names of a directory.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    /// The end of each name, and its kind.
    ends: Vec<(usize, Option<FileKind>)>,
}

/// A directory that is being worked on.
pub(super) struct Open<'a> {
    pub(super) root: &'a Path,
    pub(super) directory: Directory,
    /// Its path below the root; empty for the root.
    pub(super) path: Vec<u8>,
}

/// One entry of it that is no directory.
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    /// Its path below the root.
    pub(super) path: Vec<u8>,
    pub(super) kind: FileKind,
}

/// What is done with a tree.
pub(super) trait Work {
    /// Does what is to be done with a directory, before its entries.
    fn directory(&mut self, _worker: &mut Worker<'_>, _at: &Open<'_>) -> Result<(), BenchError> {
        Ok(())
    }
    /// Does what is to be done with anything else.
    fn entry(
        &mut self,
        worker: &mut Worker<'_>,
        at: &Open<'_>,
        entry: &Entry<'_>,
    ) -> Result<(), BenchError>;
    /// Returns true if nothing is to be done with entries.
    fn is_about_names(&self) -> bool {
        false
    }
}

/// Goes through a tree, a directory at a time; those in it come later.
pub(super) fn go_through(
    worker: &mut Worker<'_>,
    tree: &Path,
    work: &mut impl Work,
) -> Result<(), BenchError> {
    let root = open_root(worker, tree)?;
    let (mut buffer, mut names) = (NameBuffer::default(), Names::default());
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        // The directory before this one has been closed since.
        worker.timer.unchain();
        let directory =
            worker.time(Op::Open, ("open", tree, &path), || root.open_beneath(&path))?;
        let at = Open {
            root: tree,
            directory,
            path,
        };
        names.read(worker, &at, &mut buffer)?;
        work.directory(worker, &at)?;
        let mut start = 0;
        for (end, kind) in &names.ends {
            let name = &names.bytes[start..*end];
            start = *end;
            let path = joined(&at.path, name);
            let kind = match kind {
                Some(kind) => *kind,
                None => look_at(worker, &at, name, &path)?.kind,
            };
            if kind == FileKind::Directory {
                waiting.push(path);
            } else if !work.is_about_names() {
                work.entry(worker, &at, &Entry { name, path, kind })?;
            }
        }
    }
    Ok(())
}

impl Names {
    fn read(
        &mut self,
        worker: &mut Worker<'_>,
        at: &Open<'_>,
        buffer: &mut NameBuffer,
    ) -> Result<(), BenchError> {
        self.bytes.clear();
        self.ends.clear();
        worker.time(Op::List, ("list", at.root, &at.path), || {
            at.directory.names(buffer, |found| {
                self.bytes.extend_from_slice(found.name);
                self.ends.push((self.bytes.len(), found.kind));
            })
        })
    }
}

fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        name.to_vec()
    } else {
        [path, b"/", name].concat()
    }
}

fn look_at(
    worker: &mut Worker<'_>,
    at: &Open<'_>,
    name: &[u8],
    path: &[u8],
) -> Result<Metadata, BenchError> {
    worker.time(Op::Stat, ("look at", at.root, path), || {
        at.directory.metadata(name, Links::Refuse)
    })
}

/// Finds all names.
pub(super) fn find(worker: &mut Worker<'_>, tree: &Path) -> Result<(), BenchError> {
    struct Find;
    impl Work for Find {
        fn entry(
            &mut self,
            _: &mut Worker<'_>,
            _: &Open<'_>,
            _: &Entry<'_>,
        ) -> Result<(), BenchError> {
            Ok(())
        }
        fn is_about_names(&self) -> bool {
            true
        }
    }
    go_through(worker, tree, &mut Find)
}

/// Looks at every entry.
pub(super) fn stat(worker: &mut Worker<'_>, tree: &Path) -> Result<(), BenchError> {
    struct Stat;
    impl Work for Stat {
        fn directory(&mut self, worker: &mut Worker<'_>, at: &Open<'_>) -> Result<(), BenchError> {
            worker.time(Op::Stat, ("look at", at.root, &at.path), || {
                at.directory.own_metadata()
            })?;
            Ok(())
        }
        fn entry(
            &mut self,
            worker: &mut Worker<'_>,
            at: &Open<'_>,
            entry: &Entry<'_>,
        ) -> Result<(), BenchError> {
            look_at(worker, at, entry.name, &entry.path).map(drop)
        }
    }
    go_through(worker, tree, &mut Stat)
}

/// Reads every file.
pub(super) fn read(worker: &mut Worker<'_>, tree: &Path) -> Result<(), BenchError> {
    struct Read(Vec<u8>);
    impl Work for Read {
        fn entry(
            &mut self,
            worker: &mut Worker<'_>,
            at: &Open<'_>,
            entry: &Entry<'_>,
        ) -> Result<(), BenchError> {
            if entry.kind == FileKind::File {
                read_file(worker, at, entry, &mut self.0, &mut |_, _, _| Ok(()))?;
            }
            Ok(())
        }
    }
    go_through(worker, tree, &mut Read(vec![0; BLOCK]))
}

/// Takes blocks of a file with their offsets.
pub(super) type Sink<'s> = dyn FnMut(&mut Worker<'_>, &[u8], u64) -> Result<(), BenchError> + 's;

/// Opens, reads and closes a file. An end before the block is full needs no further look, as with `read_up_to_at`.
pub(super) fn read_file(
    worker: &mut Worker<'_>,
    at: &Open<'_>,
    entry: &Entry<'_>,
    block: &mut [u8],
    sink: &mut Sink<'_>,
) -> Result<(), BenchError> {
    let file = worker.time(Op::Open, ("open", at.root, &entry.path), || {
        at.directory.open_file(entry.name, Links::Refuse)
    })?;
    let mut offset = 0;
    loop {
        let len = worker.time(Op::Read, ("read", at.root, &entry.path), || {
            read_up_to_at(&file, block, offset)
        })?;
        sink(worker, &block[..len], offset)?;
        offset += len as u64;
        if len < block.len() {
            break;
        }
    }
    worker.close(file, at.root, &entry.path)
}

/// Copies a tree to where nothing is yet.
pub(super) fn copy(worker: &mut Worker<'_>, tree: &Path, copy: &Path) -> Result<(), BenchError> {
    let mut work = Copy {
        copy,
        root: Directory::open(copy.parent().unwrap_or(copy))?,
        name: copy
            .file_name()
            .unwrap_or_default()
            .as_encoded_bytes()
            .to_vec(),
        block: vec![0; BLOCK],
        directories: Vec::new(),
    };
    go_through(worker, tree, &mut work)?;
    // Last, because new entries change the time of a directory.
    for (path, metadata) in work.directories.iter().rev() {
        let target = work.target(path);
        worker.time(Op::SetTime, ("set the time of", copy, path), || {
            work.root.set_mtime(&target, metadata.mtime)
        })?;
    }
    Ok(())
}

struct Copy<'a> {
    copy: &'a Path,
    /// What the copy lies in.
    root: Directory,
    name: Vec<u8>,
    block: Vec<u8>,
    directories: Vec<(Vec<u8>, Metadata)>,
}

impl Copy<'_> {
    fn target(&self, path: &[u8]) -> Vec<u8> {
        if path.is_empty() {
            self.name.clone()
        } else {
            joined(&self.name, path)
        }
    }
}

impl Work for Copy<'_> {
    fn directory(&mut self, worker: &mut Worker<'_>, at: &Open<'_>) -> Result<(), BenchError> {
        let metadata = worker.time(Op::Stat, ("look at", at.root, &at.path), || {
            at.directory.own_metadata()
        })?;
        let target = self.target(&at.path);
        worker.time(Op::Mkdir, ("create", self.copy, &at.path), || {
            self.root.create_directory(&target, metadata.mode | 0o700)
        })?;
        self.directories.push((at.path.clone(), metadata));
        Ok(())
    }

    fn entry(
        &mut self,
        worker: &mut Worker<'_>,
        at: &Open<'_>,
        entry: &Entry<'_>,
    ) -> Result<(), BenchError> {
        let (target, copy, path) = (self.target(&entry.path), self.copy, &entry.path);
        let facts = look_at(worker, at, entry.name, path)?;
        if entry.kind == FileKind::Symlink {
            let read = ("read", at.root, path.as_slice());
            let to = worker.time(Op::Link, read, || at.directory.read_link(entry.name))?;
            worker.time(Op::Link, ("create", copy, path), || {
                self.root.create_symlink(&target, &to)
            })?;
            return worker.time(Op::SetTime, ("set the time of", copy, path), || {
                self.root.set_mtime(&target, facts.mtime)
            });
        }
        if entry.kind != FileKind::File {
            return Ok(());
        }
        let file = worker.time(Op::Create, ("create", copy, path), || {
            self.root.create_file(&target, facts.mode | 0o200)
        })?;
        read_file(
            worker,
            at,
            entry,
            &mut self.block,
            &mut |worker, bytes, offset| {
                if bytes.is_empty() {
                    return Ok(());
                }
                worker.time(Op::Write, ("write", copy, path), || {
                    write_all_at(&file, bytes, offset)
                })
            },
        )?;
        worker.time(Op::SetTime, ("set the time of", copy, path), || {
            set_mtime(&file, facts.mtime)
        })?;
        worker.close(file, copy, path)
    }
}

/// Removes a tree.
pub(super) fn delete(worker: &mut Worker<'_>, tree: &Path) -> Result<(), BenchError> {
    struct Delete(Vec<Vec<u8>>);
    impl Work for Delete {
        fn directory(&mut self, _: &mut Worker<'_>, at: &Open<'_>) -> Result<(), BenchError> {
            self.0.push(at.path.clone());
            Ok(())
        }
        fn entry(
            &mut self,
            worker: &mut Worker<'_>,
            at: &Open<'_>,
            entry: &Entry<'_>,
        ) -> Result<(), BenchError> {
            worker.time(Op::Unlink, ("remove", at.root, &entry.path), || {
                at.directory.remove(entry.name)
            })
        }
    }
    let mut work = Delete(Vec::new());
    go_through(worker, tree, &mut work)?;
    let above = Directory::open(tree.parent().unwrap_or(tree))?;
    let name = tree.file_name().unwrap_or_default().as_encoded_bytes();
    // What lies in a directory was found after it.
    for path in work.0.iter().rev() {
        let full = if path.is_empty() {
            name.to_vec()
        } else {
            joined(name, path)
        };
        worker.time(Op::Rmdir, ("remove", tree, path), || {
            above.remove_directory(&full)
        })?;
    }
    Ok(())
}

/// Returns the facts about an open directory or file, for a header.
pub(super) fn facts_of(
    worker: &mut Worker<'_>,
    at: &Open<'_>,
    entry: Option<&Entry<'_>>,
) -> Result<Metadata, BenchError> {
    match entry {
        Some(entry) => look_at(worker, at, entry.name, &entry.path),
        None => worker.time(Op::Stat, ("look at", at.root, &at.path), || {
            at.directory.own_metadata()
        }),
    }
}
