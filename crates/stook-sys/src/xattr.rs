//! Extended attributes of open files.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::Directory;
use crate::calls::{
    fgetxattr, flistxattr, fremovexattr, fsetxattr, lgetxattr, listxattrat, llistxattr,
    lremovexattr, lsetxattr,
};

/// Cleared when the kernel (before 6.13) or a seccomp filter refuses `listxattrat`.
static HAS_LISTXATTRAT: AtomicBool = AtomicBool::new(true);

/// A name and its value.
pub type Xattr = (Vec<u8>, Vec<u8>);

/// Returns the extended attributes of an open file or directory, sorted by name.
///
/// A file system without attributes gives none. Access control lists are among them, as
/// `system.posix_acl_access` and `system.posix_acl_default`.
///
/// # Errors
/// As `flistxattr` and `fgetxattr`; an attribute that vanishes meanwhile is left out.
///
/// # Cost
/// One system call for a file without attributes.
pub fn get_xattrs(fd: impl AsFd) -> io::Result<Vec<Xattr>> {
    let fd = fd.as_fd();
    let found = read_all(
        |list| flistxattr(fd, list),
        |name, value| fgetxattr(fd, name, value),
    );
    Ok(found?.unwrap_or_default())
}

/// Returns `None` if the file system does not know attributes.
fn read_all(
    list: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
    mut get: impl FnMut(&[u8], &mut [u8]) -> Result<usize, Errno>,
) -> io::Result<Option<Vec<Xattr>>> {
    let list = match grow(list) {
        Ok(list) => list,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    for name in list
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
    {
        match grow(|value| get(name, value)) {
            Ok(value) => found.push((name.to_vec(), value)),
            Err(Errno::NODATA | Errno::NOTSUP | Errno::PERM | Errno::ACCESS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    found.sort();
    Ok(Some(found))
}

/// Sets one extended attribute of an open file or directory.
///
/// # Errors
/// As `fsetxattr`.
pub fn set_xattr(fd: impl AsFd, name: &[u8], value: &[u8]) -> io::Result<()> {
    Ok(fsetxattr(fd, name, value, XattrFlags::empty())?)
}

/// Removes one extended attribute of an open file or directory; one that is not there is fine.
///
/// # Errors
/// As `fremovexattr`.
pub fn remove_xattr(fd: impl AsFd, name: &[u8]) -> io::Result<()> {
    match fremovexattr(fd, name) {
        Err(Errno::NODATA) => Ok(()),
        other => Ok(other?),
    }
}

/// Attributes of what cannot be opened, or only with consequences: a link, a fifo, a device. They need `/proc`.
impl Directory {
    /// As [`get_xattrs`], of an entry that is not opened; a link is not followed.
    ///
    /// # Errors
    /// As `llistxattr` and `lgetxattr`.
    pub fn xattrs(&self, name: &[u8]) -> io::Result<Vec<Xattr>> {
        Ok(self.xattrs_if_supported(name)?.unwrap_or_default())
    }

    /// As [`Directory::xattrs`]; `None` if the file system does not know attributes, so that callers need not ask again.
    ///
    /// # Errors
    /// As `llistxattr` and `lgetxattr`.
    ///
    /// # Cost
    /// One system call for an entry without attributes: since Linux 6.13 `listxattrat`, which takes 1.5 us where
    /// `llistxattr` by way of `/proc` takes 4.5.
    pub fn xattrs_if_supported(&self, name: &[u8]) -> io::Result<Option<Vec<Xattr>>> {
        read_all(
            |list| self.list_xattrs(name, list),
            |attribute, value| lgetxattr(&self.path_of(name), attribute, value),
        )
    }

    fn list_xattrs(&self, name: &[u8], list: &mut [u8]) -> Result<usize, Errno> {
        if HAS_LISTXATTRAT.load(Ordering::Relaxed) {
            match listxattrat(self, name, list) {
                Err(Errno::NOSYS | Errno::PERM) => HAS_LISTXATTRAT.store(false, Ordering::Relaxed),
                other => return other,
            }
        }
        llistxattr(&self.path_of(name), list)
    }

    /// As [`set_xattr`], of an entry that is not opened; a link is not followed.
    ///
    /// # Errors
    /// As `lsetxattr`.
    pub fn set_xattr(&self, name: &[u8], attribute: &[u8], value: &[u8]) -> io::Result<()> {
        let path = self.path_of(name);
        Ok(lsetxattr(path, attribute, value, XattrFlags::empty())?)
    }

    /// As [`remove_xattr`], of an entry that is not opened; a link is not followed.
    ///
    /// # Errors
    /// As `lremovexattr`.
    pub fn remove_xattr(&self, name: &[u8], attribute: &[u8]) -> io::Result<()> {
        match lremovexattr(self.path_of(name), attribute) {
            Err(Errno::NODATA) => Ok(()),
            other => Ok(other?),
        }
    }

    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        let directory = format!("/proc/self/fd/{}/", self.as_fd().as_raw_fd());
        [directory.as_bytes(), name].concat()
    }
}

/// Calls with a larger buffer until the answer fits; most files have no attributes at all.
fn grow(mut call: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut small = [0; 256];
    match call(&mut small) {
        Ok(len) => return Ok(small[..len].to_vec()),
        Err(Errno::RANGE) => {}
        Err(error) => return Err(error),
    }
    let mut large = vec![0; 64 << 10];
    loop {
        match call(&mut large) {
            Ok(len) => {
                large.truncate(len);
                return Ok(large);
            }
            Err(Errno::RANGE) if large.len() < 16 << 20 => large.resize(large.len() * 4, 0),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_sorted() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let file = crate::create_new_file(&folder.path().join("f")).unwrap();
        assert_eq!(get_xattrs(&file).unwrap(), []);
        if let Err(error) = set_xattr(&file, b"user.b", &[7; 3000]) {
            stook_testkit::skip!("no user attributes on this file system: {error}");
            return;
        }
        set_xattr(&file, b"user.a", b"").unwrap();
        set_xattr(&file, b"user.c", b"goes").unwrap();
        remove_xattr(&file, b"user.c").unwrap();
        remove_xattr(&file, b"user.c").unwrap();
        let found = get_xattrs(&file).unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        assert_eq!(directory.xattrs(b"f").unwrap(), found);
        directory.set_xattr(b"f", b"user.a", b"").unwrap();
        directory.set_xattr(b"f", b"user.d", b"goes").unwrap();
        directory.remove_xattr(b"f", b"user.d").unwrap();
        directory.remove_xattr(b"f", b"user.d").unwrap();
        assert_eq!(directory.xattrs(b"f").unwrap(), found);
        assert_eq!(
            found,
            [
                (b"user.a".to_vec(), vec![]),
                (b"user.b".to_vec(), vec![7; 3000])
            ]
        );
    }

    #[test]
    fn both_ways_to_list_attributes_agree() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let file = crate::create_new_file(&folder.path().join("f")).unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        if let Err(error) = set_xattr(&file, b"user.a", b"1") {
            stook_testkit::skip!("no user attributes on this file system: {error}");
            return;
        }
        let path = directory.path_of(b"f");
        for len in [3, 7, 100] {
            let (mut direct, mut by_proc) = (vec![0; len], vec![0; len]);
            let listed = listxattrat(&directory, b"f", &mut direct);
            if listed == Err(Errno::NOSYS) {
                stook_testkit::skip!("the kernel has no listxattrat");
                return;
            }
            assert_eq!(listed, llistxattr(&path, &mut by_proc), "{len}");
            assert_eq!(direct, by_proc);
        }
        let missing = listxattrat(&directory, b"none", &mut [0; 10]);
        assert_eq!(missing, Err(Errno::NOENT));
    }

    #[test]
    fn attributes_of_a_link_are_its_own() {
        let folder = tempfile::tempdir_in(".").unwrap();
        crate::create_new_file(&folder.path().join("f")).unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        directory.create_symlink(b"l", b"f").unwrap();
        if let Err(error) = directory.set_xattr(b"l", b"trusted.a", b"1") {
            stook_testkit::skip!("no trusted attributes here: {error}");
            return;
        }
        let found = directory.xattrs_if_supported(b"l").unwrap();
        assert_eq!(found, Some(vec![(b"trusted.a".to_vec(), b"1".to_vec())]));
        assert_eq!(directory.xattrs(b"f").unwrap(), []);
        directory.remove_xattr(b"l", b"trusted.a").unwrap();
        assert_eq!(directory.xattrs(b"l").unwrap(), []);
    }
}
