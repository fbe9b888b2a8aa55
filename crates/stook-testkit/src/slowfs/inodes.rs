//! From the kernel's number of an inode to the entry in the source.
//!
//! A directory is held open with `O_PATH`, and everything in it is reached relative to it. Any other entry is kept as
//! its directory and its name: a million known files cost memory (about 120 bytes each), not descriptors. What the
//! kernel forgets is dropped. Descriptors are the limit for directories only, see `allow_many_directories`.
//!
//! A name can go while the kernel still knows the inode, so before a name is removed or moved the inode is pinned,
//! that is, held open too. This keeps its number from being used again, and open files without a name work. Whatever
//! is reached by name must have the right number; if the source was changed behind the mount it may not, and the
//! answer is `ESTALE`, upon which the kernel looks the path up again, as with NFS.
//!
//! Numbers are those of the source, so hard links are one inode in the mount as well. There is one file system: an
//! entry on another device is refused with `EXDEV`.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number that FUSE gives to the root.
const ROOT: u64 = 1;

/// More shards than reader threads make a clash unlikely.
const SHARDS: usize = 16;

/// An open entry that can be shared.
pub(super) type Held = Arc<OwnedFd>;

#[derive(Clone, Debug)]
enum Place {
    Held(Held),
    Named { directory: Held, name: Arc<OsStr> },
}

impl Place {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Held(one), Self::Held(two)) => Arc::ptr_eq(one, two),
            (
                Self::Named { directory, name },
                Self::Named {
                    directory: other,
                    name: other_name,
                },
            ) => Arc::ptr_eq(directory, other) && name == other_name,
            _ => false,
        }
    }
}

#[derive(Debug)]
struct Inode {
    /// How many answers told the kernel of it, less what it forgot.
    lookups: u64,
    place: Place,
}

/// The inodes that the kernel knows.
#[derive(Debug)]
pub(super) struct Inodes {
    shards: [Mutex<HashMap<u64, Inode>>; SHARDS],
    device: u64,
    root_number: u64,
}

/// An inode whose name is about to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pinned(u64);

impl Inodes {
    /// Opens the directory `source` as the root.
    ///
    /// # Errors
    /// When it is no directory that can be looked at.
    pub(super) fn new(source: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, source, flags, Mode::empty())?;
        let stat = fstat(&root)?;
        let inodes = Self {
            shards: Default::default(),
            device: stat.st_dev,
            root_number: stat.st_ino,
        };
        let inode = Inode {
            lookups: 1,
            place: Place::Held(Arc::new(root)),
        };
        inodes.shard(ROOT).insert(ROOT, inode);
        Ok(inodes)
    }

    /// Returns the kernel's number for a number of the source: the same, but that the root changes places with 1.
    pub(super) fn node(&self, number: u64) -> u64 {
        if number == self.root_number {
            ROOT
        } else if number == ROOT {
            self.root_number
        } else {
            number
        }
    }

    /// Returns a known directory, to reach what is in it.
    pub(super) fn directory(&self, node: u64) -> Result<Held, Errno> {
        match self.place(node)? {
            Place::Held(held) => Ok(held),
            Place::Named { .. } => Err(Errno::NOTDIR),
        }
    }

    /// Finds `name` in `directory` and lets the kernel know it.
    pub(super) fn enter(&self, directory: &Held, name: &OsStr) -> Result<Stat, Errno> {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if stat.st_dev != self.device {
            return Err(Errno::XDEV);
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return self.enter_directory(stat, directory, name);
        }
        let node = self.node(stat.st_ino);
        let place = Place::Named {
            directory: Arc::clone(directory),
            name: name.into(),
        };
        if let Some(known) = self.add(node, &place)
            && self.stat_at(node, &known).is_err()
        {
            self.replace(node, &known, place);
        }
        Ok(stat)
    }

    fn enter_directory(&self, stat: Stat, directory: &Held, name: &OsStr) -> Result<Stat, Errno> {
        let node = self.node(stat.st_ino);
        if let Some(inode) = self.shard(node).get_mut(&node) {
            inode.lookups += 1;
            return Ok(stat);
        }
        let held = open_path(directory, name)?;
        let stat = fstat(&held)?;
        if stat.st_dev != self.device {
            return Err(Errno::XDEV);
        }
        self.add(self.node(stat.st_ino), &Place::Held(Arc::new(held)));
        Ok(stat)
    }

    /// Counts one more lookup; returns the place of a known inode if it is by another name.
    fn add(&self, node: u64, place: &Place) -> Option<Place> {
        match self.shard(node).entry(node) {
            Entry::Vacant(vacant) => {
                vacant.insert(Inode {
                    lookups: 1,
                    place: place.clone(),
                });
                None
            }
            Entry::Occupied(mut occupied) => {
                let inode = occupied.get_mut();
                inode.lookups += 1;
                let is_other = matches!(inode.place, Place::Named { .. }) && !inode.place.is(place);
                is_other.then(|| inode.place.clone())
            }
        }
    }

    fn replace(&self, node: u64, old: &Place, new: Place) {
        if let Some(inode) = self.shard(node).get_mut(&node)
            && inode.place.is(old)
        {
            inode.place = new;
        }
    }

    /// Takes back `lookups`; an inode that has none left is dropped.
    pub(super) fn forget(&self, node: u64, lookups: u64) {
        if node == ROOT {
            return;
        }
        let dropped = match self.shard(node).entry(node) {
            Entry::Occupied(mut occupied) => {
                let left = occupied.get().lookups.saturating_sub(lookups);
                occupied.get_mut().lookups = left;
                (left == 0).then(|| occupied.remove())
            }
            Entry::Vacant(_) => None,
        };
        // Closing the last descriptor of a removed file frees its space: not under the lock.
        drop(dropped);
    }

    /// Returns the facts of a known inode.
    pub(super) fn stat(&self, node: u64) -> Result<Stat, Errno> {
        self.reach(node, |place| self.stat_at(node, place))
    }

    fn stat_at(&self, node: u64, place: &Place) -> Result<Stat, Errno> {
        match place {
            Place::Held(held) => fstat(held),
            Place::Named { directory, name } => {
                let stat = statat(directory, &**name, AtFlags::SYMLINK_NOFOLLOW)?;
                self.checked(node, stat)
            }
        }
    }

    /// Returns a known inode held open with `O_PATH`.
    pub(super) fn hold(&self, node: u64) -> Result<Held, Errno> {
        self.reach(node, |place| match place {
            Place::Held(held) => Ok(Arc::clone(held)),
            Place::Named { directory, name } => {
                let held = open_path(directory, name)?;
                self.checked(node, fstat(&held)?)?;
                Ok(Arc::new(held))
            }
        })
    }

    /// Opens a known file.
    pub(super) fn open(&self, node: u64, flags: OFlags) -> Result<OwnedFd, Errno> {
        // Without NONBLOCK a fifo that took the place of the file behind the mount would stop this thread.
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
        self.reach(node, |place| match place {
            Place::Held(held) => openat(CWD, path_of(held), flags, Mode::empty()),
            Place::Named { directory, name } => {
                let flags = flags | OFlags::NOFOLLOW;
                let file = openat(directory, &**name, flags, Mode::empty())?;
                self.checked(node, fstat(&file)?)?;
                Ok(file)
            }
        })
    }

    /// Holds the entry of this name open until it is forgotten or settled, if the kernel knows it by this name.
    ///
    /// Directories are held anyway and need no settling.
    pub(super) fn pin(&self, directory: &Held, name: &OsStr) -> Option<Pinned> {
        let held = open_path(directory, name).ok()?;
        let stat = fstat(&held).ok()?;
        let node = self.node(stat.st_ino);
        let mut shard = self.shard(node);
        let inode = shard.get_mut(&node)?;
        match &inode.place {
            Place::Named { name: known, .. } if **known == *name => {
                inode.place = Place::Held(Arc::new(held));
                Some(Pinned(node))
            }
            _ => None,
        }
    }

    /// Puts a pinned inode under the name that it has now.
    pub(super) fn settle(&self, pinned: Option<Pinned>, directory: &Held, name: &OsStr) {
        let Some(Pinned(node)) = pinned else { return };
        if let Some(inode) = self.shard(node).get_mut(&node) {
            inode.place = Place::Named {
                directory: Arc::clone(directory),
                name: name.into(),
            };
        }
    }

    /// Does `work` at the place of an inode, and again if a rename has moved it meanwhile.
    fn reach<T>(&self, node: u64, work: impl Fn(&Place) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut place = self.place(node)?;
        loop {
            match work(&place) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE) => {}
                result => return result,
            }
            let now = self.place(node)?;
            if now.is(&place) {
                return Err(Errno::STALE);
            }
            place = now;
        }
    }

    fn checked(&self, node: u64, stat: Stat) -> Result<Stat, Errno> {
        let is_same = self.node(stat.st_ino) == node && stat.st_dev == self.device;
        if is_same { Ok(stat) } else { Err(Errno::STALE) }
    }

    fn place(&self, node: u64) -> Result<Place, Errno> {
        let shard = self.shard(node);
        Ok(shard.get(&node).ok_or(Errno::STALE)?.place.clone())
    }

    fn shard(&self, node: u64) -> MutexGuard<'_, HashMap<u64, Inode>> {
        let shards = self.shards.len() as u64;
        let number = usize::try_from(node % shards).unwrap_or(0);
        self.shards[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_path(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

/// Returns a path that leads to just this entry, even when it is a symbolic link, for calls that take nothing else.
pub(super) fn path_of(held: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}
