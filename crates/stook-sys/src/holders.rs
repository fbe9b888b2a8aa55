//! Which processes use what is below a directory: what `fuser -m` tells, from `/proc`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::read_all;

/// A process that uses a directory or something below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub process: u32,
    /// Its name, of 15 bytes at most.
    pub name: String,
    /// How: `cwd`, `root`, `exe`, `fd 3` or `maps`.
    pub how: String,
}

/// Returns the processes that use a directory or something below it, as far as this process may look: of each the first use
/// that was found.
///
/// # Cost
/// Some system calls for each open file of each process. Nothing is asked of the file system itself.
///
/// # Source
/// `proc(5)`: links in `/proc/pid` name paths as the process sees them.
#[expect(
    clippy::disallowed_methods,
    reason = "what cannot be listed in /proc is passed over, so no error needs a path"
)]
pub fn holders_of(directory: &Path) -> Vec<Holder> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let held = numbers.filter_map(|process| {
        let place = format!("/proc/{process}");
        let how = use_of(Path::new(&place), directory)?;
        let name = read_all(&Path::new(&place).join("comm")).unwrap_or_default();
        let name = String::from_utf8_lossy(&name).trim_end().to_owned();
        Some(Holder { process, name, how })
    });
    held.collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what cannot be listed in /proc is passed over, so no error needs a path"
)]
fn use_of(process: &Path, directory: &Path) -> Option<String> {
    let leads_there = |link: &Path| fs::read_link(link).is_ok_and(|to| to.starts_with(directory));
    for name in ["cwd", "root", "exe"] {
        if leads_there(&process.join(name)) {
            return Some(name.to_owned());
        }
    }
    let files = fs::read_dir(process.join("fd")).ok()?;
    for file in files.flatten() {
        if leads_there(&file.path()) {
            return Some(format!("fd {}", file.file_name().display()));
        }
    }
    let maps = read_all(&process.join("maps")).ok()?;
    let is_mapped = maps.split(|&byte| byte == b'\n').any(|line| {
        let path = line.iter().position(|&byte| byte == b'/');
        path.is_some_and(|at| {
            Path::new(std::ffi::OsStr::from_bytes(&line[at..])).starts_with(directory)
        })
    });
    is_mapped.then(|| "maps".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_is_a_use() {
        let folder = tempfile::tempdir().unwrap();
        let is_own = |holder: &Holder| holder.process == std::process::id();
        assert!(!holders_of(folder.path()).iter().any(is_own));
        let file = fs::File::create(folder.path().join("a")).unwrap();
        let held = holders_of(folder.path());
        let own = held.iter().find(|holder| is_own(holder)).unwrap();
        assert!(own.how.starts_with("fd "), "{own:?}");
        drop(file);
        assert!(!holders_of(folder.path()).iter().any(is_own));
    }
}
