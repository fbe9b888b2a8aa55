//! A directory that nobody but its user can look into.

use std::path::Path;

use stook_sys::{Context, Directory, FileKind, Links, Metadata, create_directory, effective_user};

use crate::cache::error::CacheError;

/// What the directories of a cache have as their mode.
pub(super) const MODE: u32 = 0o700;

/// Opens a directory that is this user's alone, and makes it if it is missing.
///
/// # Errors
/// `Owner`, `Mode`, `NoDirectory`; `Sys` if it can be neither made nor opened.
pub(super) fn open_private(path: &Path) -> Result<Directory, CacheError> {
    let (above, name) = match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) if above.as_os_str().is_empty() => (Path::new("."), name),
        (Some(above), Some(name)) => (above, name),
        // The root of the system, or `..`.
        _ => return Err(CacheError::NoDirectory { path: path.into() }),
    };
    create_directory(above)?;
    let above = Directory::open(above)?;
    open_private_in(&above, name.as_encoded_bytes(), path)
}

/// As [`open_private`], in an open directory; `path` is for messages.
pub(super) fn open_private_in(
    above: &Directory,
    name: &[u8],
    path: &Path,
) -> Result<Directory, CacheError> {
    match above.create_directory(name, MODE) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).context("create", path).map_err(Into::into);
        }
        _ => {}
    }
    // What has the name is looked at first, and then what was opened: they may be two.
    let found = above
        .metadata(name, Links::Refuse)
        .context("look at", path)?;
    require_private(&found, path)?;
    let directory = above.open_beneath(name).context("open", path)?;
    require_private(&directory.own_metadata().context("look at", path)?, path)?;
    Ok(directory)
}

fn require_private(found: &Metadata, path: &Path) -> Result<(), CacheError> {
    let (path, user) = (|| path.to_owned(), effective_user());
    if found.kind != FileKind::Directory {
        return Err(CacheError::NoDirectory { path: path() });
    }
    if found.uid != user {
        let owner = found.uid;
        return Err(CacheError::Owner {
            path: path(),
            owner,
            user,
        });
    }
    if found.mode & 0o7777 != MODE {
        let mode = found.mode;
        return Err(CacheError::Mode { path: path(), mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_a_directory_of_our_own_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("above/cache");
        let made = open_private(&path).unwrap();
        assert_eq!(made.own_metadata().unwrap().mode, MODE);
        open_private(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        let error = open_private(&path).unwrap_err();
        assert!(
            matches!(error, CacheError::Mode { mode: 0o750, .. }),
            "{error}"
        );
        let text = format!(
            "cannot use `{}` as a cache: its mode is 0750, and must be 0700",
            path.display()
        );
        assert_eq!(error.to_string(), text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        let error = open_private(&link).unwrap_err();
        assert!(matches!(error, CacheError::NoDirectory { .. }), "{error}");
        let file = folder.path().join("file");
        std::fs::write(&file, b"").unwrap();
        let error = open_private(&file).unwrap_err();
        assert!(matches!(error, CacheError::NoDirectory { .. }), "{error}");
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        if !stook_sys::is_root() {
            stook_testkit::skip!("only root can give a directory to somebody else");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        open_private(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(12), None).unwrap();
        let error = open_private(&path).unwrap_err();
        assert!(
            matches!(
                error,
                CacheError::Owner {
                    owner: 12,
                    user: 0,
                    ..
                }
            ),
            "{error}"
        );
    }
}
