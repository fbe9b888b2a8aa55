//! Files that get their name in one step: whoever looks, and after a crash, sees what was there before, or the new file, whole.
//!
//! ```text
//!   NAME.partial ──write, sync──> rename to NAME ──> sync the directory
//! ```

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Context, SysError};
use crate::file::{create_new_file, remove_file, rename, rename_to_new, sync_directory};

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

/// Writes a file, durably, in the place of what has its name. What an earlier call left half done goes.
///
/// # Errors
/// The operations "create", "write" and "remove" with `NAME.partial`, of which nothing stays; and as [`install`].
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), SysError> {
    let mut name = OsString::from(path);
    name.push(".partial");
    let partial = PathBuf::from(name);
    remove_file(&partial)?;
    let write = || {
        let mut file = create_new_file(&partial)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.context("write", &partial)?;
        install(&partial, path)
    };
    write().inspect_err(|_| {
        // The error to tell is the one of writing.
        let _ = remove_file(&partial);
    })
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
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
        // What was killed before the rename.
        std::fs::write(folder.path().join("file.partial"), b"half done").unwrap();
        for content in [&b"old"[..], b"new, and longer", b""] {
            replace_file(&path, content).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), content);
            assert_eq!(names(folder.path()), ["file"]);
        }
    }

    #[test]
    fn what_cannot_be_replaced_stays_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(replace_file(&path, b"x").unwrap_err().operation, "rename");
        assert_eq!(names(folder.path()), ["directory"]);
        let lost = replace_file(&folder.path().join("none/file"), b"x");
        assert_eq!(lost.unwrap_err().operation, "create");
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
