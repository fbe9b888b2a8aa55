//! FUSE's side: takes requests, answers from memory, and has workers answer what would wait.
//!
//! The kernel is told not to ask for opening and closing, and may keep names, attributes, directories and content for ever: a
//! second walk or read costs this process nothing. Permissions are the kernel's to check (`default_permissions`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};
use stook_archive::{ArchiveError, EntryId, Patience};
use stook_sys::lock;
use stook_timers::scope;

use crate::attributes::AccessLists;
use crate::content::{Content, Wanted};
use crate::event::{Event, Log};
use crate::statistics::{Call, Operation, Statistics};
use crate::tree::{DOTS, Tree};
use crate::workers::Workers;
use crate::xattrs::{self, Value};

/// How long the kernel may keep what it was told: as good as for ever.
const FOREVER: Duration = Duration::from_secs(1 << 32);

/// Numbers are never given to another file.
const GENERATION: Generation = Generation(0);

/// Requests that the kernel sends ahead of readers at a time.
const MOST_BACKGROUND: u16 = 64;

/// How often one file is named in the log.
const BETWEEN_EVENTS: Duration = Duration::from_secs(60);

/// Files whose naming is remembered.
const MOST_LOGGED: usize = 4096;

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

thread_local! {
    /// What a thread reads into.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// All that requests are answered from.
pub(crate) struct Server {
    tree: Tree,
    content: Content,
    statistics: Arc<Statistics>,
    log: Arc<dyn Log>,
    logged: Mutex<HashMap<EntryId, Instant>>,
}

/// The file system as the library for FUSE takes it.
pub(crate) struct Requests {
    server: Arc<Server>,
    workers: Workers,
    /// The kernel does without opening and closing files, and directories.
    without_open: bool,
    without_opendir: bool,
}

impl Requests {
    pub(crate) fn new(
        tree: Tree,
        content: Content,
        statistics: Arc<Statistics>,
        log: Arc<dyn Log>,
    ) -> Self {
        if let Some((names, entry)) = tree.left_out {
            let path = tree.catalogue.path(entry);
            log.log(&Event::LeftOut { names, path });
        }
        Self {
            server: Arc::new(Server {
                tree,
                content,
                statistics,
                log,
                logged: Mutex::default(),
            }),
            workers: Workers::default(),
            without_open: false,
            without_opendir: false,
        }
    }

    fn begin(&self, operation: Operation) -> Call {
        Call::begin(&self.server.statistics, operation)
    }

    fn later(&self, call: Call, job: impl FnOnce(&Server) + Send + 'static) {
        self.server.statistics.count_waited();
        let server = Arc::clone(&self.server);
        self.workers.submit(move || {
            job(&server);
            drop(call);
        });
    }

    /// Now if the attributes are in memory, else by a worker.
    fn when_known(&self, call: Call, entry: EntryId, job: impl FnOnce(&Server) + Send + 'static) {
        if self.server.tree.is_in_memory(entry) {
            job(&self.server);
            drop(call);
        } else {
            self.later(call, job);
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
        if let Some(server) = Arc::get_mut(&mut self.server)
            && server.tree.may_have_access_lists()
            && can(InitFlags::FUSE_POSIX_ACL)
        {
            // It costs a request for each file that another user opens: not where there can be no lists.
            server.tree.access_lists = AccessLists::Heeded;
        }
        let _ = config.set_max_background(MOST_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _scope = scope!("mount.lookup");
        let call = self.begin(Operation::Lookup);
        let tree = &self.server.tree;
        let found = tree
            .entry(parent.0)
            .map(|parent| tree.child(parent, name.as_bytes()));
        match found {
            None => reply.error(Errno::ESTALE),
            // The kernel remembers this, too.
            Some(None) => reply.entry(&FOREVER, &NOTHING, GENERATION),
            Some(Some(entry)) => {
                let answer = move |server: &Server| match server.attributes(entry) {
                    Some(attributes) => reply.entry(&FOREVER, &attributes, GENERATION),
                    None => reply.error(Errno::EIO),
                };
                self.when_known(call, entry, answer);
            }
        }
    }

    fn forget(&self, _: &Request, _: INodeNo, _: u64) {}

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let _scope = scope!("mount.getattr");
        let call = self.begin(Operation::Getattr);
        let Some(entry) = self.server.tree.entry(node.0) else {
            return reply.error(Errno::ESTALE);
        };
        self.when_known(call, entry, move |server| match server.attributes(entry) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::EIO),
        });
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        let _scope = scope!("mount.readlink");
        let call = self.begin(Operation::Readlink);
        let Some(entry) = self.server.tree.entry(node.0) else {
            return reply.error(Errno::ESTALE);
        };
        self.when_known(call, entry, move |server| {
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
        let Some(entry) = self.server.tree.entry(node.0) else {
            return reply.error(Errno::ESTALE);
        };
        let wanted = Wanted {
            offset,
            len: bytes.into(),
        };
        if let Some(reply) = self.server.read(entry, wanted, Patience::None, reply) {
            self.later(call, move |server| {
                let _scope = scope!("mount.read");
                // With patience nothing is left to be answered.
                let _ = server.read(entry, wanted, Patience::Waits, reply);
            });
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
        let _call = self.begin(Operation::Readdir);
        let Some(directory) = self.server.tree.entry(node.0) else {
            return reply.error(Errno::ESTALE);
        };
        let server = &self.server;
        if server.dots(directory, position, |number, next, name| {
            reply.add(INodeNo(number), next, FileType::Directory, name)
        }) {
            return reply.ok();
        }
        for listed in server.tree.children_from(directory, position) {
            // What is not in memory would take a header for each name: the type can be asked for later.
            let kind = server.tree.catalogue.kind(listed.entry);
            let kind = kind.map_or(FileType::RegularFile, crate::attributes::file_type);
            let name = OsStr::from_bytes(server.tree.catalogue.name(listed.entry));
            let number = INodeNo(server.tree.number(listed.entry));
            if reply.add(number, listed.next, kind, name) {
                break;
            }
        }
        reply.ok();
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
        let Some(directory) = self.server.tree.entry(node.0) else {
            return reply.error(Errno::ESTALE);
        };
        let tree = &self.server.tree;
        let mut next = tree.children_from(directory, position);
        match next.next() {
            Some(first) if !tree.is_in_memory(first.entry) => {
                self.later(call, move |server| {
                    let _scope = scope!("mount.readdirplus");
                    server.list(directory, position, Patience::Waits, reply);
                });
            }
            _ => self.server.list(directory, position, Patience::None, reply),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let _scope = scope!("mount.statfs");
        let _call = self.begin(Operation::Statfs);
        let tree = &self.server.tree;
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
        let Some(entry) = self.server.tree.entry(node.0) else {
            return reply.error(Errno::ESTALE);
        };
        let catalogue = &self.server.tree.catalogue;
        if let Some(value) = xattrs::value_in_memory(catalogue, entry, name.as_bytes()) {
            return answer_xattr(value, room, reply);
        }
        let name = name.as_bytes().to_vec();
        self.later(call, move |server| {
            let _scope = scope!("mount.getxattr");
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
        let Some(entry) = self.server.tree.entry(node.0) else {
            return reply.error(Errno::ESTALE);
        };
        let answer = move |server: &Server| {
            let names = xattrs::names(&server.tree.catalogue, entry);
            answer_xattr(names.map_or(Value::Unknown, Value::Is), room, reply);
        };
        if self.server.tree.catalogue.may_have_xattrs(entry) {
            self.later(call, answer);
        } else {
            answer(&self.server);
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
        let Some(entry) = self.server.tree.entry(node.0) else {
            return reply.error(Errno::ESTALE);
        };
        let Ok(offset) = u64::try_from(offset) else {
            return reply.error(Errno::ENXIO);
        };
        self.later(call, move |server| {
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

/// `SEEK_DATA` and `SEEK_HOLE` of `lseek(2)`.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

impl Server {
    /// Returns the attributes of an entry; says so if there are none.
    fn attributes(&self, entry: EntryId) -> Option<FileAttr> {
        let attributes = self.tree.attributes(entry);
        if attributes.is_none() {
            self.log_unreadable(
                entry,
                "nothing says what it is: its header cannot be read".to_owned(),
            );
        }
        attributes
    }

    /// Answers a read. Returns the reply without patience, if it would have to wait.
    fn read(
        &self,
        entry: EntryId,
        wanted: Wanted,
        patience: Patience,
        reply: ReplyData,
    ) -> Option<ReplyData> {
        BUFFER.with_borrow_mut(|buffer| {
            match self.content.read(entry, wanted, (patience, buffer)) {
                Ok(None) => return Some(reply),
                Ok(Some(place)) => {
                    self.statistics.count_read(place.len());
                    reply.data(&buffer[place]);
                }
                Err(error) => reply.error(self.errno(entry, &error)),
            }
            None
        })
    }

    fn errno(&self, entry: EntryId, error: &ArchiveError) -> Errno {
        if matches!(error, ArchiveError::NotAFile { .. }) {
            return Errno::EINVAL;
        }
        let cause = match error {
            ArchiveError::Damaged { cause, .. } => cause.to_string(),
            other => other.to_string(),
        };
        self.log_unreadable(entry, cause);
        Errno::EIO
    }

    fn log_unreadable(&self, entry: EntryId, cause: String) {
        self.statistics.count_unreadable();
        let mut logged = lock(&self.logged);
        let before = logged.get(&entry);
        if before.is_some_and(|before| before.elapsed() < BETWEEN_EVENTS) {
            return;
        }
        if logged.len() >= MOST_LOGGED {
            logged.clear();
        }
        logged.insert(entry, Instant::now());
        drop(logged);
        let catalogue = &self.tree.catalogue;
        self.log.log(&Event::Unreadable {
            path: catalogue.path(entry),
            place: catalogue.row_of(entry).map(|row| (row.volume, row.offset)),
            cause,
        });
    }

    /// Gives `.` and `..` to `is_full`, if the position is before them; returns true if there is no more room.
    fn dots(
        &self,
        directory: EntryId,
        position: u64,
        mut is_full: impl FnMut(u64, u64, &'static str) -> bool,
    ) -> bool {
        let above = self.tree.above(directory);
        let dots = [(directory, "."), (above, "..")];
        (1..=DOTS)
            .zip(dots)
            .filter(|(next, _)| *next > position)
            .any(|(next, (entry, name))| is_full(self.tree.number(entry), next, name))
    }

    /// Lists a directory with attributes. Without patience up to the first whose attributes are not in memory.
    fn list(
        &self,
        directory: EntryId,
        position: u64,
        patience: Patience,
        mut reply: ReplyDirectoryPlus,
    ) {
        if self.dots(directory, position, |number, next, name| {
            reply.add(
                INodeNo(number),
                next,
                name,
                &FOREVER,
                &dot(number),
                GENERATION,
            )
        }) {
            return reply.ok();
        }
        for listed in self.tree.children_from(directory, position) {
            if patience == Patience::None && !self.tree.is_in_memory(listed.entry) {
                break;
            }
            let name = OsStr::from_bytes(self.tree.catalogue.name(listed.entry));
            let number = INodeNo(self.tree.number(listed.entry));
            // Without attributes there is only the name, and the next `stat` fails.
            let attributes = self.attributes(listed.entry).unwrap_or(NOTHING);
            if reply.add(number, listed.next, name, &FOREVER, &attributes, GENERATION) {
                break;
            }
        }
        reply.ok();
    }

    fn seek(&self, entry: EntryId, offset: u64, whence: i32) -> Result<u64, Errno> {
        let size = self.tree.catalogue.size(entry);
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let reader = self.content.reader(entry, Patience::Waits);
        let reader = reader.map_err(|error| self.errno(entry, &error))?;
        let stored = |offset| {
            reader
                .as_ref()
                .and_then(|reader| reader.next_stored(offset))
        };
        match (whence, stored(offset)) {
            (SEEK_DATA, Some((begin, _))) => Ok(begin.max(offset)),
            (SEEK_DATA, None) => Err(Errno::ENXIO),
            (SEEK_HOLE, Some((begin, mut end))) if begin <= offset => {
                // Parts may follow each other without a hole between them.
                while let Some((begin, next)) = stored(end)
                    && begin == end
                {
                    end = next;
                }
                Ok(end.min(size))
            }
            (SEEK_HOLE, _) => Ok(offset),
            _ => Err(Errno::EINVAL),
        }
    }
}

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

/// An answer that there is no such name.
const NOTHING: FileAttr = FileAttr {
    ino: INodeNo(0),
    size: 0,
    blocks: 0,
    atime: UNIX_EPOCH,
    mtime: UNIX_EPOCH,
    ctime: UNIX_EPOCH,
    crtime: UNIX_EPOCH,
    kind: FileType::RegularFile,
    perm: 0,
    nlink: 0,
    uid: 0,
    gid: 0,
    rdev: 0,
    blksize: 0,
    flags: 0,
};

/// `.` and `..`, of which the kernel takes no more than name, type and number.
const fn dot(number: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        kind: FileType::Directory,
        ..NOTHING
    }
}
