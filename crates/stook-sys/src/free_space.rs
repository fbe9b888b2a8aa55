//! Free space of a file system.

use std::path::Path;

use crate::{Context, SysError};

/// What may still be written to a file system by an ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes.
    pub bytes: u64,
    /// Inodes, that is files and directories; None where the file system makes them as they are needed.
    pub inodes: Option<u64>,
}

/// Returns the free space of the file system that holds `path`. Quotas are not known.
///
/// # Errors
/// The operation "look at the file system of" with the path.
///
/// # Source
/// `statvfs(3)`; btrfs says that it has no inodes at all, and means that it has no limit of them.
pub fn free_space(path: &Path) -> Result<FreeSpace, SysError> {
    let found = rustix::fs::statvfs(path).context("look at the file system of", path)?;
    Ok(FreeSpace {
        bytes: found.f_bavail.saturating_mul(found.f_frsize),
        inodes: (found.f_files > 0).then_some(found.f_favail),
    })
}

#[cfg(test)]
mod tests {
    use super::free_space;

    #[test]
    fn the_room_is_told_or_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let free = free_space(folder.path()).unwrap();
        assert!(free.bytes > 0 && free.inodes != Some(0), "{free:?}");
        let error = free_space(&folder.path().join("gone")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot look at the file system of `")
        );
    }
}
