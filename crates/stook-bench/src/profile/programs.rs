//! Programs that a name stands for.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::BenchError;

/// Returns the program that a name stands for, looked for as the shell does.
pub fn find_program(name: &OsStr, search_path: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return is_program(Path::new(name)).then(|| name.into());
    }
    let folders = search_path.as_bytes().split(|byte| *byte == b':');
    let mut paths = folders.map(|folder| match folder {
        b"" => Path::new(".").join(name),
        folder => Path::new(OsStr::from_bytes(folder)).join(name),
    });
    paths.find(|path| is_program(path))
}

/// As [`find_program`]; that there is none is an error.
pub(super) fn require_program(name: &OsStr, search_path: &OsStr) -> Result<PathBuf, BenchError> {
    const ENOENT: i32 = 2;
    find_program(name, search_path).ok_or_else(|| BenchError::Start {
        command: stook_sys::display_path(name),
        source: std::io::Error::from_raw_os_error(ENOENT),
    })
}

fn is_program(path: &Path) -> bool {
    let found = stook_sys::look_at(path);
    found.is_ok_and(|found| found.kind == stook_sys::FileKind::File && found.mode & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_the_shell_finds_them() {
        let path = OsStr::new("/no/such/folder:/usr/bin:/bin");
        assert!(find_program(OsStr::new("sh"), path).is_some());
        let found = find_program(OsStr::new("/bin/sh"), OsStr::new(""));
        assert_eq!(found, Some("/bin/sh".into()));
        for name in ["no-such-program", "/usr", "/etc/passwd"] {
            assert_eq!(find_program(OsStr::new(name), path), None, "{name}");
        }
    }
}
