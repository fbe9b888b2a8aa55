//! FUSE's side: takes requests, answers from memory, and has workers answer what would wait.
//!
//! The kernel does not ask for opening and closing, and may keep names, attributes, directories and content for ever: a
//! second walk or read costs this process nothing. Permissions are the kernel's to check (`default_permissions`).

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};

use fuser::{
    Errno, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig,
    LockOwner, Notifier, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};
use stook_archive::{EntryId, Patience};
use stook_timers::scope;

use crate::attributes::FOREVER;
use crate::content::Wanted;
use crate::nodes::is_version;
use crate::server::{GENERATION, NOTHING, Server};
use crate::statistics::{Call, Operation, Statistics};
use crate::workers::Workers;
use crate::xattrs::{self, Value};

/// The name of the directory of versions, in the root.
pub(crate) const VERSIONS_NAME: &[u8] = b".stook";

/// Requests that the kernel sends ahead of readers at a time.
const MOST_BACKGROUND: u16 = 64;

/// What makes the mount fast, where the kernel can do it.
const CAPABILITIES: [InitFlags; 6] = [
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_CACHE_SYMLINKS,
    // Names come with their attributes: else each name is asked for by itself.
    InitFlags::FUSE_DO_READDIRPLUS,
    // Content is dropped by the kernel only on request, never because an attribute is asked for again.
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    InitFlags::FUSE_HAS_EXPIRE_ONLY,
];

/// The file system as the library for FUSE takes it.
pub(crate) struct Requests {
    /// The tree that is shown.
    main: Arc<Server>,
    /// All versions of all files, as a directory that is not listed.
    versions: Option<Arc<Server>>,
    statistics: Arc<Statistics>,
    workers: Workers,
    /// Sends the kernel what it has not asked for; set once it is mounted.
    pub(crate) notifier: Arc<OnceLock<Notifier>>,
    /// The kernel does without opening and closing files, and directories.
    without_open: bool,
    without_opendir: bool,
}

impl Requests {
    pub(crate) fn new(main: Server, versions: Option<Server>, statistics: Arc<Statistics>) -> Self {
        Self {
            main: Arc::new(main),
            versions: versions.map(Arc::new),
            statistics,
            workers: Workers::default(),
            notifier: Arc::default(),
            without_open: false,
            without_opendir: false,
        }
    }

    fn begin(&self, operation: Operation) -> Call {
        Call::begin(&self.statistics, operation)
    }

    /// Returns the entry with a number, and what it is answered from.
    fn find(&self, node: INodeNo) -> Option<(&Arc<Server>, EntryId)> {
        let server = match is_version(node.0) {
            true => self.versions.as_ref()?,
            false => &self.main,
        };
        Some((server, server.tree.entry(node.0)?))
    }

    /// Returns a child of a directory: of the root, also the one that is not listed.
    fn child<'s>(
        &'s self,
        (server, parent): (&'s Arc<Server>, EntryId),
        name: &[u8],
    ) -> Option<(&'s Arc<Server>, EntryId)> {
        if let Some(entry) = server.tree.child(parent, name) {
            return Some((server, entry));
        }
        let is_hidden =
            name == VERSIONS_NAME && parent == EntryId::ROOT && Arc::ptr_eq(server, &self.main);
        let versions = self.versions.as_ref().filter(|_| is_hidden)?;
        Some((versions, EntryId::ROOT))
    }

    fn later(&self, call: Call, server: &Arc<Server>, job: impl FnOnce(&Server) + Send + 'static) {
        self.statistics.count_waited();
        let server = Arc::clone(server);
        self.workers.submit(move || {
            let scope = call.scope();
            job(&server);
            drop(scope);
            drop(call);
        });
    }

    /// Has a worker send the kernel the files behind one that it reads, if it reads them in order.
    fn send_ahead(&self, server: &Arc<Server>, entry: EntryId) {
        let Some(entries) = server.ahead.visit(&server.tree.catalogue, entry) else {
            return;
        };
        let (server, notifier) = (Arc::clone(server), Arc::clone(&self.notifier));
        self.workers.submit(move || {
            let _scope = scope!("send ahead");
            if let Some(notifier) = notifier.get() {
                server.send(entries, notifier);
            }
        });
    }

    /// Now if the attributes are in memory, else by a worker.
    fn when_known(
        &self,
        call: Call,
        (server, entry): (&Arc<Server>, EntryId),
        job: impl FnOnce(&Server) + Send + 'static,
    ) {
        if server.tree.is_in_memory(entry) {
            job(server);
            drop(call);
        } else {
            self.later(call, server, job);
        }
    }
}

impl Filesystem for Requests {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for capability in CAPABILITIES {
            // An older kernel sends more requests; it works all the same.
            let _ = config.add_capabilities(capability);
        }
        let mut can = |capability| config.add_capabilities(capability).is_ok();
        self.without_open = can(InitFlags::FUSE_NO_OPEN_SUPPORT);
        self.without_opendir = can(InitFlags::FUSE_NO_OPENDIR_SUPPORT);
        // It costs a request for each file that another user opens: not where there can be no lists.
        let servers = || {
            [Some(&self.main), self.versions.as_ref()]
                .into_iter()
                .flatten()
        };
        if servers().any(|server| server.tree.may_have_access_lists())
            && can(InitFlags::FUSE_POSIX_ACL)
        {
            servers().for_each(|server| server.tree.heed_access_lists());
        }
        let _ = config.set_max_background(MOST_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _scope = scope!("mount.lookup");
        let call = self.begin(Operation::Lookup);
        let Some(parent) = self.find(parent) else {
            return reply.error(Errno::ESTALE);
        };
        match self.child(parent, name.as_bytes()) {
            // The kernel remembers this, too.
            None => reply.entry(&FOREVER, &NOTHING, GENERATION),
            Some((server, entry)) => {
                server.ahead.set_known(entry);
                let answer = move |server: &Server| {
                    let attributes = server.attributes(entry);
                    if attributes.is_known {
                        reply.entry(&attributes.validity, &attributes.facts, GENERATION);
                    } else {
                        reply.error(Errno::EIO);
                    }
                };
                self.when_known(call, (server, entry), answer);
            }
        }
    }

    fn forget(&self, _: &Request, node: INodeNo, _: u64) {
        if let Some((server, entry)) = self.find(node) {
            server.ahead.forget(entry);
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let _scope = scope!("mount.getattr");
        let call = self.begin(Operation::Getattr);
        let Some((server, entry)) = self.find(node) else {
            return reply.error(Errno::ESTALE);
        };
        self.when_known(call, (server, entry), move |server| {
            let attributes = server.attributes(entry);
            if attributes.is_known {
                reply.attr(&attributes.validity, &attributes.facts);
            } else {
                reply.error(Errno::EIO);
            }
        });
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        let _scope = scope!("mount.readlink");
        let call = self.begin(Operation::Readlink);
        let Some((server, entry)) = self.find(node) else {
            return reply.error(Errno::ESTALE);
        };
        self.when_known(call, (server, entry), move |server| {
            match &*server.tree.catalogue.target(entry) {
                b"" => reply.error(Errno::EIO),
                target => reply.data(target),
            }
        });
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if self.without_open {
            reply.error(Errno::ENOSYS);
        } else {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
        }
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if self.without_opendir {
            reply.error(Errno::ENOSYS);
        } else {
            let flags = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR;
            reply.opened(FileHandle(0), flags);
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let _scope = scope!("mount.read");
        let call = self.begin(Operation::Read);
        let Some((server, entry)) = self.find(node) else {
            return reply.error(Errno::ESTALE);
        };
        let wanted = Wanted {
            offset,
            len: bytes.into(),
        };
        let is_small = offset == 0 && server.content.is_small(entry);
        if let Some(reply) = server.read(entry, wanted, Patience::None, reply) {
            self.later(call, server, move |server| {
                // With patience nothing is left to be answered.
                let _ = server.read(entry, wanted, Patience::Waits, reply);
            });
        }
        if is_small {
            self.send_ahead(server, entry);
        }
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        position: u64,
        mut reply: ReplyDirectory,
    ) {
        let _scope = scope!("mount.readdir");
        let call = self.begin(Operation::Readdir);
        let Some((server, directory)) = self.find(node) else {
            return reply.error(Errno::ESTALE);
        };
        if server.dots(directory, position, |number, next, name| {
            reply.add(INodeNo(number), next, FileType::Directory, name)
        }) {
            return reply.ok();
        }
        let mut next = server.tree.children_from(directory, position);
        match next.next() {
            Some(first) if !server.tree.has_kind_in_memory(first.entry) => {
                self.later(call, server, move |server| {
                    server.list_names(directory, position, Patience::Waits, reply);
                });
            }
            _ => server.list_names(directory, position, Patience::None, reply),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        position: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let _scope = scope!("mount.readdirplus");
        let call = self.begin(Operation::Readdir);
        let Some((server, directory)) = self.find(node) else {
            return reply.error(Errno::ESTALE);
        };
        let tree = &server.tree;
        let mut next = tree.children_from(directory, position);
        match next.next() {
            Some(first) if !tree.is_in_memory(first.entry) => {
                self.later(call, server, move |server| {
                    server.list(directory, position, Patience::Waits, reply);
                });
            }
            _ => server.list(directory, position, Patience::None, reply),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let _scope = scope!("mount.statfs");
        let _call = self.begin(Operation::Statfs);
        let tree = &self.main.tree;
        let blocks = tree.bytes.div_ceil(u64::from(BLOCK_BYTES));
        let files = tree.catalogue.len() as u64;
        reply.statfs(
            blocks,
            0,
            0,
            files,
            0,
            BLOCK_BYTES,
            LONGEST_NAME,
            BLOCK_BYTES,
        );
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        let _scope = scope!("mount.getxattr");
        let call = self.begin(Operation::Getxattr);
        let Some((server, entry)) = self.find(node) else {
            return reply.error(Errno::ESTALE);
        };
        let catalogue = &server.tree.catalogue;
        if let Some(value) = xattrs::value_in_memory(catalogue, entry, name.as_bytes()) {
            return answer_xattr(value, room, reply);
        }
        let name = name.as_bytes().to_vec();
        self.later(call, server, move |server| {
            answer_xattr(
                xattrs::value(&server.tree.catalogue, entry, &name),
                room,
                reply,
            );
        });
    }

    fn listxattr(&self, _: &Request, node: INodeNo, room: u32, reply: ReplyXattr) {
        let _scope = scope!("mount.listxattr");
        let call = self.begin(Operation::Listxattr);
        let Some((server, entry)) = self.find(node) else {
            return reply.error(Errno::ESTALE);
        };
        let answer = move |server: &Server| {
            let names = xattrs::names(&server.tree.catalogue, entry);
            answer_xattr(names.map_or(Value::Unknown, Value::Is), room, reply);
        };
        if server.tree.catalogue.may_have_xattrs(entry) {
            self.later(call, server, answer);
        } else {
            answer(server);
        }
    }

    fn lseek(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let _scope = scope!("mount.lseek");
        let call = self.begin(Operation::Lseek);
        let Some((server, entry)) = self.find(node) else {
            return reply.error(Errno::ESTALE);
        };
        let Ok(offset) = u64::try_from(offset) else {
            return reply.error(Errno::ENXIO);
        };
        self.later(call, server, move |server| {
            match server.seek(entry, offset, whence) {
                Ok(found) => reply.offset(i64::try_from(found).unwrap_or(i64::MAX)),
                Err(errno) => reply.error(errno),
            }
        });
    }
}

/// Unit of the size of the whole.
const BLOCK_BYTES: u32 = 4096;

const LONGEST_NAME: u32 = 1024;

fn answer_xattr(value: Value, room: u32, reply: ReplyXattr) {
    match value {
        Value::Missing => reply.error(Errno::ENODATA),
        Value::Unknown => reply.error(Errno::EIO),
        Value::Is(bytes) => match u32::try_from(bytes.len()) {
            Ok(len) if room == 0 => reply.size(len),
            Ok(len) if len <= room => reply.data(&bytes),
            _ => reply.error(Errno::ERANGE),
        },
    }
}
