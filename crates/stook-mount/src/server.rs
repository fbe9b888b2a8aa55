//! Answers about one tree, which any thread can give.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileType, Generation, INodeNo, Notifier, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus,
};
use stook_archive::{ArchiveError, EntryId, MemberKind, Patience};
use stook_sys::lock;

use crate::ahead::{Ahead, MOST_BYTES};
use crate::attributes::{Attributes, FOREVER};
use crate::content::{Content, Wanted};
use crate::event::{Event, Log};
use crate::statistics::Statistics;
use crate::tree::{DOTS, Tree};

/// Numbers are never given to another file.
pub(crate) const GENERATION: Generation = Generation(0);

/// How often one file is named in the log.
const BETWEEN_EVENTS: Duration = Duration::from_secs(60);

/// Files whose naming is remembered.
const MOST_LOGGED: usize = 4096;

/// `SEEK_DATA` and `SEEK_HOLE` of `lseek(2)`.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

thread_local! {
    /// What a thread reads into.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A tree, its content, and where to say what goes wrong with it.
pub(crate) struct Server {
    pub(crate) tree: Tree,
    pub(crate) content: Content,
    pub(crate) ahead: Ahead,
    statistics: Arc<Statistics>,
    log: Arc<dyn Log>,
    logged: Mutex<HashMap<EntryId, Instant>>,
}

impl Server {
    pub(crate) fn new(
        (tree, content): (Tree, Content),
        statistics: Arc<Statistics>,
        log: Arc<dyn Log>,
    ) -> Self {
        if let Some((names, entry)) = tree.left_out {
            let path = tree.catalogue.path(entry);
            log.log(&Event::LeftOut { names, path });
        }
        Self {
            ahead: Ahead::new(tree.catalogue.len()),
            tree,
            content,
            statistics,
            log,
            logged: Mutex::default(),
        }
    }

    /// Returns the attributes of an entry; says so if its header cannot be read.
    pub(crate) fn attributes(&self, entry: EntryId) -> Attributes {
        let attributes = self.tree.attributes(entry);
        if attributes.validity.is_zero() {
            self.log_unreadable(
                entry,
                "its header cannot be read, and the index does not say what that does".to_owned(),
            );
        }
        attributes
    }

    /// Answers a read. Returns the reply without patience, if it would have to wait.
    pub(crate) fn read(
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

    /// Sends the kernel those of these files that are small. What cannot be read is left to the reader who asks for it.
    pub(crate) fn send(&self, entries: Range<u32>, notifier: &Notifier) {
        let catalogue = &self.tree.catalogue;
        let is_wanted = |entry: &EntryId| {
            self.ahead.is_known(*entry)
                && catalogue.size(*entry) > 0
                && self.content.is_small(*entry)
                && catalogue.kind(*entry) == Some(MemberKind::File)
        };
        let entries = entries.filter_map(|number| catalogue.entry(number));
        let mut left = MOST_BYTES;
        for entry in entries.filter(is_wanted) {
            let whole = Wanted {
                offset: 0,
                len: catalogue.size(entry),
            };
            let sent = BUFFER.with_borrow_mut(|buffer| {
                let how = (Patience::Waits, &mut *buffer);
                let place = self.content.read(entry, whole, how).ok().flatten()?;
                let number = INodeNo(self.tree.number(entry));
                notifier.store(number, 0, &buffer[place]).ok()
            });
            left = left.saturating_sub(whole.len);
            if sent.is_none() || left == 0 {
                return;
            }
        }
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
    pub(crate) fn dots(
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

    /// Lists a directory without attributes. Without patience up to the first whose type is not in memory.
    pub(crate) fn list_names(
        &self,
        directory: EntryId,
        position: u64,
        patience: Patience,
        mut reply: ReplyDirectory,
    ) {
        for listed in self.tree.children_from(directory, position) {
            if patience == Patience::None && !self.tree.has_kind_in_memory(listed.entry) {
                break;
            }
            let kind = self.tree.kind(listed.entry);
            let name = OsStr::from_bytes(self.tree.catalogue.name(listed.entry));
            let number = INodeNo(self.tree.number(listed.entry));
            if reply.add(number, listed.next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// Lists a directory with attributes. Without patience up to the first whose attributes are not in memory.
    pub(crate) fn list(
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
            // A name whose header cannot be read is listed all the same; `stat` asks again, and fails.
            let Attributes {
                facts, validity, ..
            } = self.attributes(listed.entry);
            if reply.add(number, listed.next, name, &validity, &facts, GENERATION) {
                break;
            }
            self.ahead.set_known(listed.entry);
        }
        reply.ok();
    }

    pub(crate) fn seek(&self, entry: EntryId, offset: u64, whence: i32) -> Result<u64, Errno> {
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

/// An answer that there is no such name.
pub(crate) const NOTHING: FileAttr = FileAttr {
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
