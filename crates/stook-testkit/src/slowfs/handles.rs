//! Open files and directories, by the numbers that the kernel was given for them.

use super::attributes::file_type;
use super::inodes::Held;
use fuser::FileType;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, SeekFrom, openat, seek, statat};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Buffer of one `getdents` of the source.
const DIRECTORY_BYTES: usize = 32 * 1024;

/// What is open, by number.
#[derive(Debug)]
pub(super) struct Handles<T> {
    next: AtomicU64,
    open: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(1),
            open: RwLock::default(),
        }
    }
}

impl<T> Handles<T> {
    pub(super) fn insert(&self, value: T) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(number, Arc::new(value));
        number
    }

    pub(super) fn get(&self, number: u64) -> Result<Arc<T>, Errno> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&number).cloned().ok_or(Errno::BADF)
    }

    pub(super) fn remove(&self, number: u64) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let closed = open.remove(&number);
        drop(open);
        drop(closed);
    }
}

/// A directory that is being read.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) file: OwnedFd,
    ahead: Mutex<Ahead>,
}

/// Entries that were read and not yet asked for.
#[derive(Debug, Default)]
struct Ahead {
    /// The position that the first of `entries` follows.
    position: u64,
    entries: VecDeque<Name>,
}

/// One name in a directory.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) name: CString,
    pub(super) number: u64,
    pub(super) kind: FileType,
    /// Where to go on after it.
    pub(super) position: u64,
}

impl Directory {
    pub(super) fn open(held: &Held) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            file: openat(held, ".", flags, Mode::empty())?,
            ahead: Mutex::default(),
        })
    }

    /// Gives the names after `position` to `is_full` until it has no more room; a refused one comes again.
    pub(super) fn read(
        &self,
        position: u64,
        mut is_full: impl FnMut(&Name) -> bool,
    ) -> Result<(), Errno> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if ahead.position != position {
            ahead.entries.clear();
            seek(&self.file, SeekFrom::Start(position))?;
            ahead.position = position;
        }
        loop {
            if ahead.entries.is_empty() && !self.fill(&mut ahead.entries)? {
                return Ok(());
            }
            while let Some(name) = ahead.entries.front() {
                if is_full(name) {
                    return Ok(());
                }
                ahead.position = name.position;
                ahead.entries.pop_front();
            }
        }
    }

    /// Reads once; `false` at the end.
    fn fill(&self, entries: &mut VecDeque<Name>) -> Result<bool, Errno> {
        let mut buffer = [MaybeUninit::uninit(); DIRECTORY_BYTES];
        let mut directory = RawDir::new(&self.file, &mut buffer);
        while let Some(entry) = directory.next() {
            let entry = entry?;
            let kind = match file_type(entry.file_type()) {
                Some(kind) => kind,
                None => self.kind_of(entry.file_name())?,
            };
            entries.push_back(Name {
                name: entry.file_name().to_owned(),
                number: entry.ino(),
                kind,
                position: entry.next_entry_cookie(),
            });
            if directory.is_buffer_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// For file systems that do not tell the kind along with the name.
    fn kind_of(&self, name: &CStr) -> Result<FileType, Errno> {
        let stat = statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
        file_type(rustix::fs::FileType::from_raw_mode(stat.st_mode)).ok_or(Errno::IO)
    }
}
