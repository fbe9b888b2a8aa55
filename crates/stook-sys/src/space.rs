//! How much room a file system has left.

use std::path::Path;

use crate::{Context, SysError};

/// What an ordinary user may still put on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Room for content.
    pub bytes: u64,
    /// Room for files and directories; None where the file system makes it as it goes.
    pub inodes: Option<u64>,
}

/// Returns the room on the file system that holds `path`.
///
/// # Errors
/// The operation "look at" with the path.
///
/// # Source
/// `statvfs(3)`; file systems without a table of inodes, such as btrfs, say that they have none at all.
pub fn free_space(path: &Path) -> Result<FreeSpace, SysError> {
    let found = rustix::fs::statvfs(path).context("look at", path)?;
    Ok(FreeSpace {
        bytes: found.f_bavail.saturating_mul(found.f_frsize),
        inodes: (found.f_files > 0).then_some(found.f_favail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_told_and_a_missing_path_is_named() {
        let found = free_space(&std::env::temp_dir()).unwrap();
        assert!(found.inodes.is_none_or(|inodes| inodes < u64::MAX));
        assert!(found.bytes < 1 << 60, "{found:?}");
        let error = free_space(Path::new("no/such/place")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot look at `no/such/place`: no such file or directory"
        );
    }
}
