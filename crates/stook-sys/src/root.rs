//! Questions about the root of a tree: what is above it, and who else works in it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::directory::metadata_of;
use crate::{Directory, FileId, calls};

impl Directory {
    /// Returns what identifies this directory and all above it, up to the root of the system.
    ///
    /// # Errors
    /// If one of them may not be searched, or this one has been removed.
    ///
    /// # Cost
    /// Three system calls for each level.
    pub fn identities_upwards(&self) -> io::Result<Vec<FileId>> {
        // A handle only: these directories need not be readable.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut identities = vec![self.own_metadata()?.identity()];
        let mut current: Option<OwnedFd> = None;
        loop {
            let base = current.as_ref().map_or(self.as_fd(), AsFd::as_fd);
            let above = calls::openat(base, "..", flags, Mode::empty())?;
            let identity = metadata_of(&above)?.identity();
            if identities.last() == Some(&identity) {
                return Ok(identities);
            }
            identities.push(identity);
            current = Some(above);
        }
    }

    /// Returns false if another process has locked the directory, else locks it for as long as it is open.
    ///
    /// On a file system without locks it returns true.
    pub fn lock(&self) -> bool {
        flock(self, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
    }

    /// Returns true if the directory is on ext2, ext3 or ext4.
    ///
    /// # Errors
    /// As `fstatfs`.
    pub fn is_on_ext(&self) -> io::Result<bool> {
        const EXT_SUPER_MAGIC: i64 = 0xEF53;
        Ok(calls::fstatfs(self)?.f_type == EXT_SUPER_MAGIC)
    }

    /// Waits until everything in the directory's file system is on the disk.
    ///
    /// # Errors
    /// As `syncfs`.
    pub fn sync_file_system(&self) -> io::Result<()> {
        Ok(calls::syncfs(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    #[test]
    fn what_is_above_is_found_and_a_lock_is_seen() -> Result<(), crate::SysError> {
        let folder = tempfile::tempdir().context("create", "a folder")?;
        let root = Directory::open(folder.path())?;
        root.create_directory(b"below", 0o700)
            .context("create", "below")?;
        let below = root.open_beneath(b"below").context("open", "below")?;
        let upwards = below.identities_upwards().context("look at", "below")?;
        let own = |directory: &Directory| directory.own_metadata().unwrap().identity();
        assert_eq!(upwards[..2], [own(&below), own(&root)]);
        assert_eq!(upwards.last(), Some(&own(&Directory::open("/".as_ref())?)));
        assert!(below.lock());
        let again = root.open_beneath(b"below").context("open", "below")?;
        assert!(!again.lock());
        drop(below);
        assert!(again.lock());
        Ok(())
    }
}
