//! A directory to work in that is removed at the end: when the work is done, when it fails, when the user wants an end.
//!
//! Nothing is ever removed but what lies in the directory that was made here, under a name that nothing had. Whether it is
//! still that one is looked at after it is opened: another one that has its name by then stays.

use std::path::{Path, PathBuf};

use stook_sys::{Context, Directory, FileId, Links, SysError, display_path};
use stook_tree::{Candidate, Decision, Guard, RemovalPolicy, RemoveOptions, remove};

use crate::error::BenchError;
use crate::trees::Failures;

/// For the one who made it alone: what is measured may be anything.
const MODE: u32 = 0o700;

/// A directory that is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct ScratchDirectory {
    path: PathBuf,
    identity: FileId,
    /// What tells the directory that it was made in from others.
    holder: FileId,
    is_there: bool,
}

impl ScratchDirectory {
    /// Makes a directory in `holder`, which must be there.
    ///
    /// # Errors
    /// [`BenchError::Sys`] if it cannot be made: so on a file system that is read-only.
    pub(crate) fn make(holder: &Path) -> Result<Self, BenchError> {
        let holder = stook_sys::absolute(holder)?;
        let opened = Directory::open_handle(&holder)?;
        let above = opened.own_metadata().context("look at", &holder)?;
        for number in 0_u32.. {
            let name = format!("stook-bench-{}-{number}", std::process::id());
            let path = holder.join(&name);
            match opened.create_directory(name.as_bytes(), MODE) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => {
                    made.context("create", &path)?;
                    let metadata = opened.metadata(name.as_bytes(), Links::Refuse);
                    return Ok(Self {
                        identity: metadata.context("look at", &path)?.identity(),
                        holder: above.identity(),
                        path,
                        is_there: true,
                    });
                }
            }
        }
        unreachable!("one of four thousand million names is free")
    }

    /// Returns its path, with all links resolved: never to be taken for an option, or by tar for a machine.
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

    /// Removes what has this path in it, with all below; nothing is fine.
    ///
    /// # Errors
    /// As [`ScratchDirectory::remove`].
    pub(crate) fn clear(&self, name: impl AsRef<Path>) -> Result<(), BenchError> {
        remove_tree(&self.path.join(name), None)
    }

    /// Removes it, and tells what stays, which dropping it does not.
    ///
    /// # Errors
    /// [`BenchError::Sys`] with the only thing that stays, [`BenchError::Refused`] with the first of several, or if
    /// something else has its place now.
    pub(crate) fn remove(mut self) -> Result<(), BenchError> {
        self.is_there = false;
        self.remove_if_own()
    }

    fn remove_if_own(&self) -> Result<(), BenchError> {
        let path = display_path(&self.path);
        let stays = |why: &str| Err(BenchError::refused(format!("`{path}` {why}")));
        match self.look()? {
            Found::Own => remove_tree(&self.path, Some(self.identity)),
            Found::Other => stays("is not the folder that was made, and stays"),
            // It went with all that was in it.
            Found::Nothing => Ok(()),
            Found::NoHolder => stays(
                "cannot be removed: the folder that holds it has vanished; if that comes back, so may this one",
            ),
        }
    }

    fn look(&self) -> Result<Found, SysError> {
        let holder = self.path.parent().unwrap_or(&self.path);
        let opened = match Directory::open_handle(holder) {
            Err(error) if error.is_not_found() => return Ok(Found::NoHolder),
            opened => opened?,
        };
        let name = self.path.file_name().unwrap_or_default();
        match opened.metadata(name.as_encoded_bytes(), Links::Refuse) {
            Ok(metadata) if metadata.identity() == self.identity => Ok(Found::Own),
            Ok(_) => Ok(Found::Other),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let above = opened.own_metadata().context("look at", holder)?;
                Ok(if above.identity() == self.holder {
                    Found::Nothing
                } else {
                    Found::NoHolder
                })
            }
            Err(error) => Err(error).context("look at", &self.path),
        }
    }
}

/// What has the name of a scratch directory.
enum Found {
    Own,
    Other,
    Nothing,
    /// Nothing has it, because the directory that it was made in is not there.
    NoHolder,
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if self.is_there {
            // Another error is on its way to the user already.
            let _ = self.remove_if_own();
        }
    }
}

/// Removes a tree, whatever modes its directories have; with an identity, only the directory that has it.
///
/// # Errors
/// As [`ScratchDirectory::remove`].
pub(crate) fn remove_tree(path: &Path, own: Option<FileId>) -> Result<(), BenchError> {
    let tree = Guard::new(true, true)?.with_archives(true).admit(path)?;
    let options = RemoveOptions {
        force_chmod: true,
        with_archives: true,
        ..RemoveOptions::default()
    };
    let failures = Failures::default();
    let policy = own.map(Only);
    let policy = policy.as_ref().map(|policy| policy as &dyn RemovalPolicy);
    remove(&[tree], &options, policy, &failures);
    failures.none(Path::new(""))
}

/// Gives free the directory with this identity, and all in it.
struct Only(FileId);

impl RemovalPolicy for Only {
    fn enters(&self, directory: &Directory, path: &[u8]) -> bool {
        let is_own = || matches!(directory.own_metadata(), Ok(own) if own.identity() == self.0);
        !path.is_empty() || is_own()
    }

    fn decide(&self, _: &Candidate<'_>) -> Decision {
        Decision::Remove
    }

    fn removes(&self, _path: &[u8]) -> bool {
        true
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
        let place = ScratchDirectory::make(folder.path()).unwrap();
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
        let first = ScratchDirectory::make(folder.path()).unwrap();
        let second = ScratchDirectory::make(folder.path()).unwrap();
        assert_ne!(first.path(), second.path());
        drop(first);
        assert_eq!(names(&folder).len(), 1);
        drop(second);
        assert!(names(&folder).is_empty());
    }

    #[test]
    fn what_has_its_place_now_is_left_alone() {
        let folder = TempDir::new().unwrap();
        let place = ScratchDirectory::make(folder.path()).unwrap();
        let path = place.path().to_owned();
        // It is kept, so that its number is not used again.
        std::fs::rename(&path, folder.join("moved")).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("theirs"), "").unwrap();
        let error = place.remove().unwrap_err().to_string();
        assert!(
            error.ends_with("is not the folder that was made, and stays"),
            "{error}"
        );
        assert!(path.join("theirs").exists());
        // As if they had been exchanged after the look.
        let other = stook_sys::look_at(folder.path()).unwrap().identity();
        remove_tree(&path, Some(other)).unwrap();
        assert!(path.join("theirs").exists());
    }

    #[test]
    fn a_link_to_it_in_its_place_is_left_alone() {
        let folder = TempDir::new().unwrap();
        let place = ScratchDirectory::make(folder.path()).unwrap();
        let path = place.path().to_owned();
        std::fs::rename(&path, folder.join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", &path).unwrap();
        assert!(place.remove().is_err());
        assert!(path.is_symlink());
    }

    #[test]
    fn a_holder_that_vanishes_is_reported_and_a_place_that_went_is_not() {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.join("target")).unwrap();
        let (first, second) = (folder.path(), folder.join("target"));
        let (gone, lost) = (
            ScratchDirectory::make(first).unwrap(),
            ScratchDirectory::make(&second).unwrap(),
        );
        std::fs::remove_dir(gone.path()).unwrap();
        gone.remove().unwrap();
        stook_testkit::remove_tree(&second).unwrap();
        let error = lost.remove().unwrap_err().to_string();
        assert!(
            error.contains("the folder that holds it has vanished"),
            "{error}"
        );
    }

    #[test]
    fn a_holder_that_is_not_there_is_named() {
        let error = ScratchDirectory::make(Path::new("no/such/place")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot resolve `no/such/place`: no such file or directory"
        );
    }
}
