//! FUSE's side: takes requests, has them done in the source at once, and answers them when they are due.
//!
//! Locks are left to the kernel, which is right for one mount. There is no `ioctl`, `poll`, `O_TMPFILE` or `readdirplus`;
//! the last on purpose, so that a walk pays one lookup per file, as it does on NFS. `access` is never asked for, since
//! the kernel checks permissions itself.

use super::answer::{GENERATION, Server, caller};
use super::options::Op;
use super::source::Changes;
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::AtFlags;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

/// Longest write that the kernel is asked to send; it allows no more.
const WRITE_BYTES: u32 = 1 << 20;

/// What makes the mount like a network file system, where the kernel can do it.
const CAPABILITIES: [InitFlags; 6] = [
    // Lookups in one directory side by side, as NFS does them.
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_ASYNC_DIO,
    // An open with O_TRUNC is one request.
    InitFlags::FUSE_ATOMIC_O_TRUNC,
    // Changes behind the mount are seen once the attributes are too old.
    InitFlags::FUSE_AUTO_INVAL_DATA,
    // Else each write asks for `security.capability` first.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
];

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for capability in CAPABILITIES {
            // An older kernel is slower or sends more requests; it works all the same.
            let _ = config.add_capabilities(capability);
        }
        // The kernel must not hold requests back: holding back is what this is for.
        let _ = config.set_max_background(u16::MAX);
        let _ = config.set_congestion_threshold(u16::MAX);
        let _ = config.set_max_write(WRITE_BYTES);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let call = self.begin(Op::Lookup);
        self.answer_entry(call, reply, self.source.lookup(parent.0, name));
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        self.counters.count(Op::Forget, 1);
        self.source.inodes.forget(node.0, lookups);
    }

    fn getattr(&self, _: &Request, node: INodeNo, file: Option<FileHandle>, reply: ReplyAttr) {
        let call = self.begin(Op::Getattr);
        let result = self.source.getattr(node.0, file.map(|file| file.0));
        self.answer_attributes(call, reply, result);
    }

    fn setattr(
        &self,
        request: &Request,
        node: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        file: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let call = self.begin(Op::Setattr);
        let changes = Changes {
            mode,
            owner: (user, group),
            size,
            times: [atime, mtime],
        };
        let file = file.map(|file| file.0);
        let result = self.source.setattr(caller(request), node.0, file, &changes);
        self.answer_attributes(call, reply, result);
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        let call = self.begin(Op::Readlink);
        let result = self.source.readlink(node.0);
        self.answer(call, reply, result, |reply, target| reply.data(&target));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let call = self.begin(Op::Mknod);
        let result = self
            .source
            .mknod(caller(request), parent.0, name, mode, device);
        self.answer_entry(call, reply, result);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let call = self.begin(Op::Mkdir);
        let result = self.source.mkdir(caller(request), parent.0, name, mode);
        self.answer_entry(call, reply, result);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let call = self.begin(Op::Unlink);
        let result = self.source.remove(parent.0, name, AtFlags::empty());
        self.answer_empty(call, reply, result);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let call = self.begin(Op::Rmdir);
        let result = self.source.remove(parent.0, name, AtFlags::REMOVEDIR);
        self.answer_empty(call, reply, result);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let call = self.begin(Op::Symlink);
        let result = self.source.symlink(caller(request), parent.0, name, target);
        self.answer_entry(call, reply, result);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let call = self.begin(Op::Rename);
        let (old, new) = ((parent.0, name), (new_parent.0, new_name));
        let result = self.source.rename(old, new, flags.bits());
        self.answer_empty(call, reply, result);
    }

    fn link(&self, _: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let call = self.begin(Op::Link);
        self.answer_entry(call, reply, self.source.link(node.0, parent.0, name));
    }

    fn open(&self, request: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let call = self.begin(Op::Open);
        let result = self.source.open(caller(request), node.0, flags.0);
        self.answer(call, reply, result, |reply, file| {
            reply.opened(FileHandle(file), FopenFlags::empty());
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let call = self.begin(Op::Create);
        let result = self
            .source
            .create(caller(request), parent.0, name, mode, flags);
        let ttl = self.ttl;
        self.answer(call, reply, result, move |reply, (attributes, file)| {
            let file = FileHandle(file);
            reply.created(&ttl, &attributes, GENERATION, file, FopenFlags::empty());
        });
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let call = self.begin(Op::Read);
        let result = self.source.read(file.0, offset, bytes as usize);
        self.answer(call, reply, result, |reply, data| reply.data(&data));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let call = self.begin(Op::Write);
        let drops_set_id = flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let result = self.source.write(file.0, offset, data, drops_set_id);
        self.answer(call, reply, result, ReplyWrite::written);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        let call = self.begin(Op::Flush);
        let result = if self.loses_writes {
            Err(rustix::io::Errno::NOSPC)
        } else {
            Ok(())
        };
        self.answer_empty(call, reply, result);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let call = self.begin(Op::Release);
        self.source.files.remove(file.0);
        self.answer_empty(call, reply, Ok(()));
    }

    fn fsync(&self, _: &Request, _: INodeNo, file: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let call = self.begin(Op::Fsync);
        self.answer_empty(call, reply, self.source.fsync(file.0, data_only));
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let call = self.begin(Op::Opendir);
        let result = self.source.opendir(node.0);
        self.answer(call, reply, result, |reply, directory| {
            reply.opened(FileHandle(directory), FopenFlags::empty());
        });
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        directory: FileHandle,
        position: u64,
        mut reply: ReplyDirectory,
    ) {
        let call = self.begin(Op::Readdir);
        let result = self.source.directories.get(directory.0);
        let result = result.and_then(|directory| {
            directory.read(position, |entry| {
                let node = INodeNo(self.source.inodes.node(entry.number));
                let name = OsStr::from_bytes(entry.name.to_bytes());
                reply.add(node, entry.position, entry.kind, name)
            })
        });
        self.answer(call, reply, result, |reply, ()| reply.ok());
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        directory: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let call = self.begin(Op::Releasedir);
        self.source.directories.remove(directory.0);
        self.answer_empty(call, reply, Ok(()));
    }

    fn fsyncdir(
        &self,
        _: &Request,
        _: INodeNo,
        directory: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        let call = self.begin(Op::Fsyncdir);
        self.answer_empty(call, reply, self.source.fsyncdir(directory.0));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let call = self.begin(Op::Statfs);
        let result = self.source.statfs();
        self.answer(call, reply, result, |reply, facts| {
            let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            reply.statfs(
                facts.f_blocks,
                facts.f_bfree,
                facts.f_bavail,
                facts.f_files,
                facts.f_ffree,
                small(facts.f_bsize),
                small(facts.f_namemax),
                small(facts.f_frsize),
            );
        });
    }

    fn setxattr(
        &self,
        _: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let call = self.begin(Op::Setxattr);
        let result = self.source.setxattr(node.0, name, value, flags);
        self.answer_empty(call, reply, result);
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, bytes: u32, reply: ReplyXattr) {
        let call = self.begin(Op::Getxattr);
        let result = self.source.getxattr(node.0, name, bytes as usize);
        self.answer_attribute(call, reply, result);
    }

    fn listxattr(&self, _: &Request, node: INodeNo, bytes: u32, reply: ReplyXattr) {
        let call = self.begin(Op::Listxattr);
        let result = self.source.listxattr(node.0, bytes as usize);
        self.answer_attribute(call, reply, result);
    }

    fn removexattr(&self, _: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let call = self.begin(Op::Removexattr);
        self.answer_empty(call, reply, self.source.removexattr(node.0, name));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let call = self.begin(Op::Fallocate);
        let result = self.source.fallocate(file.0, (offset, bytes), mode);
        self.answer_empty(call, reply, result);
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let call = self.begin(Op::Lseek);
        let result = self.source.lseek(file.0, offset, whence);
        self.answer(call, reply, result, ReplyLseek::offset);
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        from: FileHandle,
        from_offset: u64,
        _: INodeNo,
        to: FileHandle,
        to_offset: u64,
        bytes: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let call = self.begin(Op::CopyFileRange);
        let (from, to) = ((from.0, from_offset), (to.0, to_offset));
        let result = self.source.copy_file_range(from, to, bytes);
        self.answer(call, reply, result, ReplyWrite::written);
    }
}
