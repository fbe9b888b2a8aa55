//! What `statx` returns about a file.

use rustix::fs::{FileType, Statx, StatxFlags, StatxTimestamp};

use crate::Timestamp;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl FileKind {
    pub(crate) fn of(kind: FileType) -> Option<Self> {
        Some(match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => return None,
        })
    }
}

/// The facts about one file that stook uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits, with set-id and sticky bits: `st_mode & 0o7777`.
    pub mode: u32,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// Number of names.
    pub links: u32,
    /// Bytes of content.
    pub size: u64,
    /// Bytes on disk, in units of 512.
    pub blocks: u64,
    /// Last change of the content.
    pub mtime: Timestamp,
    /// Inode number.
    pub inode: u64,
    /// Device that holds the file: major and minor number.
    pub filesystem: (u32, u32),
    /// For a device: its major and minor number.
    pub device: (u32, u32),
}

impl Metadata {
    /// What [`Metadata::of`] reads, and no more: a network file system asks its servers for what is wanted.
    pub(crate) const WANTED: StatxFlags = StatxFlags::TYPE
        .union(StatxFlags::MODE)
        .union(StatxFlags::NLINK)
        .union(StatxFlags::UID)
        .union(StatxFlags::GID)
        .union(StatxFlags::MTIME)
        .union(StatxFlags::INO)
        .union(StatxFlags::SIZE)
        .union(StatxFlags::BLOCKS);

    /// Returns metadata of which only the kind is known; all else is zero.
    pub fn of_kind(kind: FileKind) -> Self {
        Self {
            kind,
            mode: 0,
            uid: 0,
            gid: 0,
            links: 0,
            size: 0,
            blocks: 0,
            mtime: Timestamp::default(),
            inode: 0,
            filesystem: (0, 0),
            device: (0, 0),
        }
    }

    pub(crate) fn of(stat: &Statx) -> Self {
        Self {
            kind: FileKind::of(FileType::from_raw_mode(stat.stx_mode.into()))
                .unwrap_or(FileKind::File),
            mode: u32::from(stat.stx_mode) & 0o7777,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            links: stat.stx_nlink,
            size: stat.stx_size,
            blocks: stat.stx_blocks,
            mtime: timestamp(stat.stx_mtime),
            inode: stat.stx_ino,
            filesystem: (stat.stx_dev_major, stat.stx_dev_minor),
            device: (stat.stx_rdev_major, stat.stx_rdev_minor),
        }
    }

    /// Returns true if both describe the same file on the same file system.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    /// Returns what identifies this file on the machine.
    pub fn identity(&self) -> FileId {
        (self.filesystem, self.inode)
    }
}

/// File system and inode number.
pub type FileId = ((u32, u32), u64);

pub(crate) fn timestamp(stamp: StatxTimestamp) -> Timestamp {
    Timestamp {
        seconds: stamp.tv_sec,
        nanoseconds: stamp.tv_nsec,
    }
}
