//! Files that get their name in one step: at any moment, and after a crash, there is the old file or the new one, whole.
//!
//! ```text
//!   a temporary name ──write, sync──> rename to NAME ──> sync the directory
//! ```

use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Context, SysError};
use crate::file::{create_new_file, look_at, remove_file, rename, rename_to_new, sync_directory};
use crate::temporary::TemporaryNames;

/// Puts a file that is durable under a name, durably, in the place of what has it.
///
/// # Errors
/// As [`rename`], and "sync" with the directory.
pub fn install(from: &Path, to: &Path) -> Result<(), SysError> {
    rename(from, to)?;
    sync_directory(directory_of(to))
}

/// Puts a file that is durable under a name that nothing has, durably.
///
/// # Errors
/// As [`rename_to_new`], and "sync" with the directory.
pub fn install_new(from: &Path, to: &Path) -> Result<(), SysError> {
    rename_to_new(from, to)?;
    sync_directory(directory_of(to))
}

/// Writes a file in the place of what has its name. Its content is durable; so is its name, if the directory may be read.
///
/// # Errors
/// "look at" with the directory; "create" and "write" with a temporary name in it, of which nothing stays; and as
/// [`install`].
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), SysError> {
    let directory = directory_of(path);
    let inode = look_at(directory)?.identity().1;
    let name = TemporaryNames::new("partial").next(inode);
    let partial = directory.join(OsStr::from_bytes(&name));
    let write = || {
        let mut file = create_new_file(&partial)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.context("write", &partial)?;
        rename(&partial, path)
    };
    write().inspect_err(|_| {
        // The error to tell is the one of writing.
        let _ = remove_file(&partial);
    })?;
    match sync_directory(directory) {
        Err(error) if error.source.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        // Whose it is nobody knows.
        std::fs::write(folder.path().join("file.partial"), b"of a user").unwrap();
        for content in [&b"old"[..], b"new, and longer", b""] {
            replace_file(&path, content).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), content);
            assert_eq!(names(folder.path()), ["file", "file.partial"]);
        }
        let other = std::fs::read(folder.path().join("file.partial")).unwrap();
        assert_eq!(other, b"of a user");
    }

    #[test]
    fn what_cannot_be_replaced_stays_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(replace_file(&path, b"x").unwrap_err().operation, "rename");
        assert_eq!(names(folder.path()), ["directory"]);
        let lost = replace_file(&folder.path().join("none/file"), b"x");
        assert_eq!(lost.unwrap_err().operation, "look at");
    }

    #[test]
    fn what_has_the_name_is_replaced_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        std::fs::write(&from, b"new").unwrap();
        std::fs::write(&to, b"old").unwrap();
        assert!(install_new(&from, &to).is_err());
        assert_eq!(std::fs::read(&to).unwrap(), b"old");
        install(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"new");
        install_new(&to, &from).unwrap();
        assert_eq!(names(folder.path()), ["from"]);
    }
}
