//! Files that running programs have mapped: their pages cannot be dropped.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::error::BenchError;
use crate::trees::numbers_in;

/// Returns the files that processes have mapped; of other users' processes only root may know.
///
/// # Errors
/// [`BenchError::Sys`] if `/proc` cannot be read.
pub(super) fn mapped_files() -> Result<HashSet<PathBuf>, BenchError> {
    let processes = numbers_in(Path::new("/proc"))?.into_iter();
    let maps = processes.map(|process| PathBuf::from(format!("/proc/{process}/maps")));
    // A process that has ended meanwhile has mapped nothing.
    let texts = maps.filter_map(|path| stook_sys::read_text(&path).ok());
    Ok(texts.flat_map(|text| paths_in(&text)).collect())
}

/// `7f12a000-7f12b000 r--p 00000000 fe:00 1234    /usr/lib/libc.so.6`: the path is the sixth field, and may hold blanks.
///
/// # Source
/// `proc_pid_maps(5)`.
fn paths_in(maps: &str) -> Vec<PathBuf> {
    let path = |line: &str| line.find('/').map(|at| PathBuf::from(&line[at..]));
    let mut paths: Vec<PathBuf> = maps.lines().filter_map(path).collect();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_at_the_end_of_a_line() {
        let maps = "55-56 r-xp 00000000 fe:00 1234     /usr/bin/a b\n55-57 rw-p 00000000 fe:00 1234     /usr/bin/a b\n\
                    7f-80 rw-p 00000000 00:00 0        [heap]\n7f-80 rw-p 00000000 00:00 0 \n";
        assert_eq!(paths_in(maps), [PathBuf::from("/usr/bin/a b")]);
    }

    #[test]
    fn this_program_is_mapped() {
        let own = stook_sys::absolute(Path::new("/proc/self/exe")).unwrap();
        assert!(mapped_files().unwrap().contains(&own));
    }
}
