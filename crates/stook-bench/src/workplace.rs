//! A directory to work in that is removed at the end: when the work is done, when it fails, when the user wants an end.
//!
//! Nothing is ever removed but what lies in the directory that was made here, under a name that nothing had.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use stook_sys::{Context, Directory, SysError};
use stook_tree::{Guard, RemoveObserver, RemoveOptions, TreeError, remove};

use crate::error::BenchError;

/// For the one who made it alone: what is measured may be anything.
const MODE: u32 = 0o700;

/// A directory that is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct WorkPlace {
    path: PathBuf,
    is_there: bool,
}

impl WorkPlace {
    /// Makes a directory in `holder`, which must be there.
    ///
    /// # Errors
    /// [`BenchError::Sys`] if it cannot be made.
    pub(crate) fn make(holder: &Path) -> Result<Self, BenchError> {
        let holder = stook_sys::absolute(holder)?;
        let opened = Directory::open_handle(&holder)?;
        for number in 0_u32.. {
            let name = format!("stook-bench-{}-{number}", std::process::id());
            let path = holder.join(&name);
            match opened.create_directory(name.as_bytes(), MODE) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => {
                    made.context("create", &path)?;
                    return Ok(Self {
                        path,
                        is_there: true,
                    });
                }
            }
        }
        unreachable!("one of four thousand million names is free")
    }

    /// Returns its path, with all links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory in it.
    ///
    /// # Errors
    /// [`BenchError::Sys`] if it cannot be made.
    pub(crate) fn make_directory(&self, name: &str) -> Result<PathBuf, BenchError> {
        let path = self.path.join(name);
        stook_sys::create_directory(&path)?;
        Ok(path)
    }

    /// Removes what has this name in it, with all below; nothing is fine.
    ///
    /// # Errors
    /// [`BenchError::Sys`] with the first thing that stays.
    pub(crate) fn clear(&self, name: &str) -> Result<(), BenchError> {
        Ok(remove_tree(&self.path.join(name))?)
    }

    /// Removes it, and tells what stays, which dropping it does not.
    ///
    /// # Errors
    /// [`BenchError::Sys`] with the first thing that stays.
    pub(crate) fn remove(mut self) -> Result<(), BenchError> {
        self.is_there = false;
        Ok(remove_tree(&self.path)?)
    }
}

impl Drop for WorkPlace {
    fn drop(&mut self) {
        if self.is_there {
            // Another error is on its way to the user already.
            let _ = remove_tree(&self.path);
        }
    }
}

/// Removes a tree, whatever modes its directories have.
fn remove_tree(path: &Path) -> Result<(), SysError> {
    let tree = Guard::new(true, true)?.admit(path)?;
    let options = RemoveOptions {
        force_chmod: true,
        ..RemoveOptions::default()
    };
    let first = FirstFailure::default();
    remove(&[tree], &options, None, &first);
    let failed = first.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), Err)
}

#[derive(Default)]
struct FirstFailure(Mutex<Option<SysError>>);

impl RemoveObserver for FirstFailure {
    fn failed(&self, error: TreeError) {
        use std::os::unix::ffi::OsStringExt;
        let path = std::ffi::OsString::from_vec(error.path);
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(SysError {
            operation: error.operation,
            path: path.into(),
            source: error.source,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use stook_testkit::TempDir;

    fn names(folder: &TempDir) -> Vec<String> {
        let names = std::fs::read_dir(folder.path()).unwrap();
        names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn it_goes_with_all_that_is_in_it_and_nothing_else() {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.join("mine"), "kept").unwrap();
        let place = WorkPlace::make(folder.path()).unwrap();
        let inner = place.make_directory("a/b").unwrap();
        std::fs::write(inner.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(folder.join("mine"), inner.join("link")).unwrap();
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o500)).unwrap();
        place.clear("a").unwrap();
        place.clear("a").unwrap();
        assert!(place.path().exists() && !place.path().join("a").exists());
        place.make_directory("c").unwrap();
        place.remove().unwrap();
        assert_eq!(names(&folder), ["mine"]);
        assert_eq!(
            std::fs::read_to_string(folder.join("mine")).unwrap(),
            "kept"
        );
    }

    #[test]
    fn two_at_once_are_two_and_dropping_removes() {
        let folder = TempDir::new().unwrap();
        let first = WorkPlace::make(folder.path()).unwrap();
        let second = WorkPlace::make(folder.path()).unwrap();
        assert_ne!(first.path(), second.path());
        drop(first);
        assert_eq!(names(&folder).len(), 1);
        drop(second);
        assert!(names(&folder).is_empty());
    }

    #[test]
    fn a_holder_that_is_not_there_is_named() {
        let error = WorkPlace::make(Path::new("no/such/place")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot resolve `no/such/place`: no such file or directory"
        );
    }
}
