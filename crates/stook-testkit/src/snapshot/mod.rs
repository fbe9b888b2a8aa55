//! Snapshots of trees: every fact of every entry, taken fd-relative at any depth, and compared in words.
//!
//! A snapshot holds all paths and all facts in memory, and reads every file: for trees of tests, not of users.
//! Access and change times are not recorded; nobody can restore the second.

mod compare;
mod expected;
mod take;
#[cfg(test)]
mod tests;

pub use compare::{Compare, Directories, Fact};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The state of a tree at one moment, without the root itself.
#[derive(Clone, Debug)]
pub struct Snapshot {
    entries: BTreeMap<Vec<u8>, Facts>,
    known: BTreeSet<Fact>,
}

/// What is known about one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// File, directory, link, ...
    pub kind: Kind,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// User and group number.
    pub owner: (u32, u32),
    /// Bytes of a regular file, 0 for others.
    pub size: u64,
    /// Modification time in nanoseconds since 1970, negative before.
    pub mtime_ns: i128,
    /// MD5 of a regular file in hex; `None` for others and for a file this user may not read.
    pub md5: Option<String>,
    /// Target of a symbolic link.
    pub target: Option<Vec<u8>>,
    /// Major and minor number of a device.
    pub device: Option<(u32, u32)>,
    /// Extended attributes by name.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first path, in byte order, of the same inode, when the tree has more than one.
    pub first_link: Option<Vec<u8>>,
    /// Whether a regular file takes less room than its size.
    pub has_holes: bool,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Named pipe.
    Fifo,
    /// Unix socket.
    Socket,
    /// Character device.
    CharacterDevice,
    /// Block device.
    BlockDevice,
    /// Something else.
    Unknown,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symbolic link",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
            Self::Unknown => "unknown kind",
        })
    }
}

impl Snapshot {
    /// Returns the facts of the entry at `path`, counted from the root.
    #[must_use]
    pub fn get(&self, path: impl AsRef<[u8]>) -> Option<&Facts> {
        self.entries.get(path.as_ref())
    }

    /// Returns every entry with its path, in byte order of the paths.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &Facts)> {
        self.entries
            .iter()
            .map(|(path, facts)| (path.as_slice(), facts))
    }

    /// Forgets every entry that `keep` does not want, as a model of an operation on a part of the tree.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &Facts) -> bool) {
        self.entries.retain(|path, facts| keep(path, facts));
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether the tree has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
