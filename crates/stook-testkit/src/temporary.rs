//! Temporary directories that clean up after themselves, whatever was put in them.
//!
//! The remover is fd-relative, so trees deeper than `PATH_MAX` go away too, and it gives itself the
//! permissions it needs on the directories it empties. It stops at the first error: nothing else writes here.

use crate::failure::Describe;
use crate::tree::Tree;
use crate::walk::{Visited, Visitor, walk};
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, FileType, Mode, chmodat, unlinkat};
use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// An empty directory that is removed, with everything below it, when dropped.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Makes a directory in the system's temporary directory.
    ///
    /// # Errors
    /// When it cannot be made there.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    /// Makes a directory in `parent`, for tests that need a certain file system.
    ///
    /// # Errors
    /// When it cannot be made there.
    pub fn new_in(parent: &Path) -> io::Result<Self> {
        loop {
            let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("stook-test-{}-{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).describe("make the directory", path.as_os_str().as_bytes());
                }
            }
        }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of `name` in the directory; nothing is made.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Removes the directory now and reports what a drop would swallow.
    ///
    /// # Errors
    /// When something below it cannot be removed.
    pub fn close(self) -> io::Result<()> {
        remove_tree(&self.path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // No caller is left; `close` is there for tests that want to know.
        let _ = remove_tree(&self.path);
    }
}

/// A [`Tree`] written into a temporary directory of its own, with room for other things beside it.
#[derive(Debug)]
pub struct TempTree {
    directory: TempDir,
    root: PathBuf,
}

impl TempTree {
    /// Writes `tree` as `tree/` into a new temporary directory.
    ///
    /// # Errors
    /// Those of [`Tree::write`] and [`TempDir::new`].
    pub fn new(tree: &Tree) -> io::Result<Self> {
        let directory = TempDir::new()?;
        let root = directory.join("tree");
        tree.write(&root)?;
        Ok(Self { directory, root })
    }

    /// Returns the root of the written tree.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns a path outside the tree that is removed together with it; nothing is made.
    #[must_use]
    pub fn beside(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.join(name)
    }
}

/// Removes `root` and everything below it; a missing `root` is no error.
///
/// # Errors
/// At the first entry that cannot be removed.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    let bytes = root.as_os_str().as_bytes();
    match std::fs::symlink_metadata(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).describe("stat", bytes),
        Ok(metadata) if !metadata.is_dir() => {
            return std::fs::remove_file(root).describe("remove", bytes);
        }
        Ok(_) => {}
    }
    chmodat(rustix::fs::CWD, root, Mode::RWXU, AtFlags::empty())
        .describe("change the mode of", bytes)?;
    walk(root, &mut Remover)?;
    std::fs::remove_dir(root).describe("remove", bytes)
}

struct Remover;

impl Visitor for Remover {
    fn enter(&mut self, entry: &Visited<'_>) -> io::Result<()> {
        if FileType::from_raw_mode(entry.stat.st_mode) != FileType::Directory {
            return unlinkat(entry.parent, entry.name, AtFlags::empty())
                .describe("remove", entry.path);
        }
        if Mode::from_raw_mode(entry.stat.st_mode).contains(Mode::RWXU) {
            return Ok(());
        }
        chmodat(entry.parent, entry.name, Mode::RWXU, AtFlags::empty())
            .describe("change the mode of", entry.path)
    }

    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr, path: &[u8]) -> io::Result<()> {
        unlinkat(parent, name, AtFlags::REMOVEDIR).describe("remove", path)
    }
}

#[cfg(test)]
mod tests {
    use super::{TempDir, remove_tree};

    #[test]
    fn two_directories_differ_and_go_away() {
        let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        assert_ne!(one.path(), two.path());
        let path = one.path().to_owned();
        std::fs::write(one.join("f"), b"x").unwrap();
        drop(one);
        assert!(!path.exists());
        two.close().unwrap();
    }

    #[test]
    fn removing_what_is_not_there_is_fine_and_a_link_is_not_followed() {
        let directory = TempDir::new().unwrap();
        remove_tree(&directory.join("missing")).unwrap();
        std::fs::create_dir(directory.join("kept")).unwrap();
        std::os::unix::fs::symlink("kept", directory.join("link")).unwrap();
        remove_tree(&directory.join("link")).unwrap();
        assert!(directory.join("kept").exists());
        assert!(std::fs::symlink_metadata(directory.join("link")).is_err());
    }
}
