//! One entry of a [`Tree`](super::Tree): what it holds and its metadata.

/// What an entry is and holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// A regular file with these bytes.
    File(Vec<u8>),
    /// A regular file of `size` bytes with data only at these offsets; the rest are holes.
    Sparse {
        /// Offset and bytes of each piece of data.
        extents: Vec<(u64, Vec<u8>)>,
        /// Length of the file.
        size: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
    /// One more name of the entry at this path, counted from the root of the tree.
    HardLink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A Unix socket that nobody listens on.
    Socket,
    /// A character device with major and minor number; only root can make one.
    CharacterDevice(u32, u32),
    /// A block device with major and minor number; only root can make one.
    BlockDevice(u32, u32),
}

/// An entry with its metadata; what is not set has fixed values, so that two writes give equal trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub(crate) content: Content,
    pub(crate) mode: u32,
    pub(crate) mtime: (i64, u32),
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Entry {
    /// Modification time, in seconds and nanoseconds, of entries that set none.
    pub const DEFAULT_MTIME: (i64, u32) = (1_600_000_000, 123_456_789);

    fn new(content: Content, mode: u32) -> Self {
        Self {
            content,
            mode,
            mtime: Self::DEFAULT_MTIME,
            owner: None,
            xattrs: Vec::new(),
        }
    }

    /// Sets the permission bits; the umask does not matter. No effect on symbolic and hard links.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode & 0o7777;
        self
    }

    /// Sets the modification time; `nanoseconds` count forward, before 1970 too. No effect on hard links.
    #[must_use]
    pub fn mtime(mut self, seconds: i64, nanoseconds: u32) -> Self {
        self.mtime = (seconds, nanoseconds);
        self
    }

    /// Sets user and group; only root can give files away. No effect on hard links.
    #[must_use]
    pub fn owner(mut self, user: u32, group: u32) -> Self {
        self.owner = Some((user, group));
        self
    }

    /// Adds an extended attribute; the name includes its namespace. No effect on hard links.
    #[must_use]
    pub fn xattr(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.xattrs
            .push((name.as_ref().to_vec(), value.as_ref().to_vec()));
        self
    }

    /// Returns what the entry is and holds.
    #[must_use]
    pub fn content(&self) -> &Content {
        &self.content
    }
}

/// Returns a regular file with these bytes, mode 0644.
pub fn file(bytes: impl AsRef<[u8]>) -> Entry {
    Entry::new(Content::File(bytes.as_ref().to_vec()), 0o644)
}

/// Returns a regular file of `size` bytes, mode 0644, with data at these offsets and holes elsewhere.
#[must_use]
pub fn sparse(extents: &[(u64, &[u8])], size: u64) -> Entry {
    let extents = extents
        .iter()
        .map(|(offset, bytes)| (*offset, bytes.to_vec()))
        .collect();
    Entry::new(Content::Sparse { extents, size }, 0o644)
}

/// Returns a directory, mode 0755.
#[must_use]
pub fn dir() -> Entry {
    Entry::new(Content::Directory, 0o755)
}

/// Returns a symbolic link with this target, which need not exist.
pub fn symlink(target: impl AsRef<[u8]>) -> Entry {
    Entry::new(Content::Symlink(target.as_ref().to_vec()), 0o777)
}

/// Returns one more name of the entry at `target`, a path from the root of the tree; the order of the two is free.
pub fn hardlink(target: impl AsRef<[u8]>) -> Entry {
    Entry::new(Content::HardLink(target.as_ref().to_vec()), 0)
}

/// Returns a named pipe, mode 0644.
#[must_use]
pub fn fifo() -> Entry {
    Entry::new(Content::Fifo, 0o644)
}

/// Returns a Unix socket, mode 0755.
#[must_use]
pub fn socket() -> Entry {
    Entry::new(Content::Socket, 0o755)
}

/// Returns a character device, mode 0600; only root can write it.
#[must_use]
pub fn character_device(major: u32, minor: u32) -> Entry {
    Entry::new(Content::CharacterDevice(major, minor), 0o600)
}

/// Returns a block device, mode 0600; only root can write it.
#[must_use]
pub fn block_device(major: u32, minor: u32) -> Entry {
    Entry::new(Content::BlockDevice(major, minor), 0o600)
}
