//! What metadata is set on: something open, or something that only has a name.

use std::io;
use std::os::fd::BorrowedFd;

use stook_sys::{Directory, Timestamp, remove_xattr, set_mode, set_mtime, set_owner, set_xattr};

/// Something whose owner, rights, attributes and time are set, open or by its name.
pub trait MetadataTarget {
    /// Sets user and group.
    ///
    /// # Errors
    /// That of the system call.
    fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()>;
    /// Sets the permission bits.
    ///
    /// # Errors
    /// That of the system call.
    fn set_mode(&self, mode: u32) -> io::Result<()>;
    /// Sets an extended attribute.
    ///
    /// # Errors
    /// That of the system call.
    fn set_xattr(&self, name: &[u8], value: &[u8]) -> io::Result<()>;
    /// Removes an extended attribute; one that is not there is fine.
    ///
    /// # Errors
    /// That of the system call.
    fn remove_xattr(&self, name: &[u8]) -> io::Result<()>;
    /// Sets the modification time.
    ///
    /// # Errors
    /// That of the system call.
    fn set_mtime(&self, mtime: Timestamp) -> io::Result<()>;
}

/// An open file or directory.
#[derive(Debug, Clone, Copy)]
pub struct OpenTarget<'f>(pub BorrowedFd<'f>);

impl MetadataTarget for OpenTarget<'_> {
    fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        set_owner(self.0, uid, gid)
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        set_mode(self.0, mode)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        set_xattr(self.0, name, value)
    }

    fn remove_xattr(&self, name: &[u8]) -> io::Result<()> {
        remove_xattr(self.0, name)
    }

    fn set_mtime(&self, mtime: Timestamp) -> io::Result<()> {
        set_mtime(self.0, mtime)
    }
}

/// Something that is not opened: opening a fifo or a device has consequences, and a link cannot be opened.
#[derive(Debug, Clone, Copy)]
pub struct NamedTarget<'n> {
    /// The directory that it is in.
    pub directory: &'n Directory,
    /// Its name there.
    pub name: &'n [u8],
}

impl MetadataTarget for NamedTarget<'_> {
    fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        self.directory.set_owner(self.name, uid, gid)
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.directory.set_mode(self.name, mode)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.directory.set_xattr(self.name, name, value)
    }

    fn remove_xattr(&self, name: &[u8]) -> io::Result<()> {
        self.directory.remove_xattr(self.name, name)
    }

    fn set_mtime(&self, mtime: Timestamp) -> io::Result<()> {
        self.directory.set_mtime(self.name, mtime)
    }
}
