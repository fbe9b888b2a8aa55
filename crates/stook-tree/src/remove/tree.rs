//! A tree as the user named it: a name in a directory.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_sys::Directory;

use crate::Reason;

/// A tree that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The directory that holds it.
    pub(crate) holder: PathBuf,
    /// Its name in there.
    pub(crate) name: Vec<u8>,
    /// What the user wrote in front of the name.
    pub(crate) prefix: Vec<u8>,
}

impl Tree {
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let refused = |why: Reason| Err(why.into());
        let bytes = path.as_os_str().as_bytes();
        let end = bytes.iter().rposition(|&byte| byte != b'/');
        let Some(end) = end else {
            // An empty path, or the root, whose name in itself is `.`.
            return match bytes {
                [] => refused(Reason::NoName),
                _ => Ok(Self::from_parts(b"/", b".")),
            };
        };
        let start = bytes[..end].iter().rposition(|&byte| byte == b'/');
        let (prefix, name) = bytes[..=end].split_at(start.map_or(0, |slash| slash + 1));
        if name == b"." || name == b".." {
            return refused(Reason::DotName);
        }
        Ok(Self::from_parts(prefix, name))
    }

    fn from_parts(prefix: &[u8], name: &[u8]) -> Self {
        let holder = if prefix.is_empty() { b"." } else { prefix };
        Self {
            holder: PathBuf::from(OsStr::from_bytes(holder)),
            name: name.to_vec(),
            prefix: prefix.to_vec(),
        }
    }

    /// Opens it, whatever it is mounted on, if it is a directory.
    ///
    /// # Errors
    /// If it is missing, or no directory.
    pub fn open(&self) -> io::Result<Directory> {
        let holder = Directory::open_handle(&self.holder).map_err(|error| error.source)?;
        holder.open_beneath(&self.name)
    }

    /// Returns its path as the user wrote it.
    pub fn path(&self) -> Vec<u8> {
        [self.prefix.as_slice(), &self.name].concat()
    }
}

/// Returns true if a path ends in a slash, and so can only name a directory.
pub(crate) fn names_directory(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_name_in_a_directory() {
        let parts = |path: &str| {
            let tree = Tree::at(Path::new(path)).unwrap();
            (
                tree.holder.to_str().unwrap().to_owned(),
                String::from_utf8(tree.path()).unwrap(),
            )
        };
        assert_eq!(parts("a"), (".".into(), "a".into()));
        assert_eq!(parts("a/b//"), ("a/".into(), "a/b".into()));
        assert_eq!(parts("/a"), ("/".into(), "/a".into()));
        assert_eq!(parts("../a"), ("../".into(), "../a".into()));
        assert_eq!(parts("//"), ("/".into(), "/.".into()));
        for refused in ["", ".", "..", "a/.", "a/../..", "./"] {
            assert!(Tree::at(Path::new(refused)).is_err(), "{refused}");
        }
    }
}
