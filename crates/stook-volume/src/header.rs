//! What a member says about its entry, whatever the bytes that say it.

use stook_sys::Timestamp;

/// The type of an entry.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    #[default]
    File,
    /// A further name of a file stored before; zstash stores its content again.
    HardLink,
    /// A symbolic link.
    Symlink,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl Kind {
    /// Returns true if content follows the header of such a member.
    pub fn has_content(self) -> bool {
        matches!(self, Self::File | Self::HardLink)
    }

    /// Returns true for the two kinds that have a target.
    pub fn has_target(self) -> bool {
        matches!(self, Self::HardLink | Self::Symlink)
    }

    /// Returns true for the two kinds that have a device number.
    pub fn is_device(self) -> bool {
        matches!(self, Self::CharDevice | Self::BlockDevice)
    }
}

/// A run of stored bytes of a sparse file; what no segment covers is zeros.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segment {
    /// First byte, counted from the start of the file.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Everything a member says about its entry.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Header {
    /// Path in the tree, as bytes: no leading `./` and no trailing `/`, also for a directory.
    pub name: Vec<u8>,
    /// Type of the entry.
    pub kind: Kind,
    /// Where a symbolic link points, or the name a hard link shares its content with; else empty.
    pub target: Vec<u8>,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Number of the owner.
    pub uid: u64,
    /// Number of the group.
    pub gid: u64,
    /// Name of the owner, may be empty.
    pub uname: Vec<u8>,
    /// Name of the group, may be empty.
    pub gname: Vec<u8>,
    /// Bytes of content, holes included; 0 for all but files and hard links.
    pub size: u64,
    /// Time of the last change of the content.
    pub mtime: Timestamp,
    /// Major and minor number of a device; else zeros.
    pub device: (u32, u32),
    /// Extended attributes, sorted by name.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The segments of a sparse file, in ascending order, none empty; `None` if it is dense.
    pub sparse: Option<Vec<Segment>>,
    /// Identity shared by all names of one file (`STOOK.link`).
    pub link: Option<Vec<u8>>,
}
