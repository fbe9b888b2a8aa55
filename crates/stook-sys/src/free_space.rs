//! The room that a file system has left.

use std::path::Path;

use crate::{Context, SysError};

/// What may still be written to a file system by an ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes.
    pub bytes: u64,
    /// Inodes, that is files and directories; None where the file system makes them as they are needed.
    pub inodes: Option<u64>,
}

/// Returns the room on the file system that holds `path`. Quotas are not known.
///
/// # Errors
/// The operation "look at the file system of" with the path.
///
/// # Source
/// `statvfs(3)`; btrfs says that it has no inodes at all, and means that it has no limit of them.
pub fn free_room(path: &Path) -> Result<Room, SysError> {
    let found = rustix::fs::statvfs(path).context("look at the file system of", path)?;
    Ok(Room {
        bytes: found.f_bavail.saturating_mul(found.f_frsize),
        inodes: (found.f_files > 0).then_some(found.f_favail),
    })
}

#[cfg(test)]
mod tests {
    use super::free_room;

    #[test]
    fn the_room_is_told_or_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let room = free_room(folder.path()).unwrap();
        assert!(room.bytes > 0 && room.inodes != Some(0), "{room:?}");
        let error = free_room(&folder.path().join("gone")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot look at the file system of `")
        );
    }
}
